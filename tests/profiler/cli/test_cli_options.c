/* test_cli_options.c: the values of options, and that every command's table is sound.
 */
#include "cli_args.h"
#include "run_cases.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const colours[] = {"red", "green", "grey", NULL};

/* Stores text; what is said about a wrong value goes nowhere. */
static bool store(enum cli_kind kind, const char *text, void *target)
{
    struct cli_option option = {
        .name = "it", .kind = kind, .value = "X", .choice = colours, .constant = 7};
    fflush(stderr);
    int saved = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
    bool ok = cli_store("test", &option, text, target);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    return ok;
}

TEST(sizes_have_units_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},           {"4096", 4096},       {"12B", 12},
                {"64KiB", 65536},   {"64K", 65536},       {"1.5MiB", 3 << 19},
                {"2G", 1ull << 31}, {"1EiB", 1ull << 60}, {"0.5K", 512}};
    static const char *const bad[] = {"",    "x",     "-1",    "1.2", "1KB", "1Ki",  "1 K",
                                      "1iB", "1KiBs", "16EiB", "1e3", ".",   "1..5K"};
    uint64_t bytes = 1;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(store(CLI_BYTES, good[i].text, &bytes), "%s", good[i].text);
        ck_assert_uint_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!store(CLI_BYTES, bad[i], &bytes), "%s", bad[i]);
}

TEST(percentages_and_numbers_are_taken_whole)
{
    double value = -1;
    ck_assert(store(CLI_PERCENT, "2%", &value) && fabs(value - 0.02) < 1e-15);
    ck_assert(store(CLI_PERCENT, "0.5%", &value) && fabs(value - 0.005) < 1e-15);
    ck_assert(store(CLI_NUMBER, "1.1", &value) && fabs(value - 1.1) < 1e-15);
    ck_assert(store(CLI_NUMBER, "1e9", &value) && value == 1e9);
    ck_assert(store(CLI_NUMBER, ".5e-1", &value) && fabs(value - 0.05) < 1e-15);
    for (const char *const *bad = (const char *const[]){"2", "%", "-2%", "2%%", "", NULL}; *bad;
         bad++)
        ck_assert_msg(!store(CLI_PERCENT, *bad, &value), "%s", *bad);
    for (const char *const *bad = (const char *const[]){"", "nan", "-1", "+1", "1x", "inf", "1e",
                                                        "1e999", "0x1", "e3", ".", NULL};
         *bad; bad++)
        ck_assert_msg(!store(CLI_NUMBER, *bad, &value), "%s", *bad);
}

TEST(choices_may_be_begun_if_only_one_begins_so)
{
    int choice = -1;
    unsigned set = 0;
    ck_assert(store(CLI_CHOICE, "red", &choice) && choice == 0);
    ck_assert(store(CLI_CHOICE, "gree", &choice) && choice == 1);
    ck_assert(!store(CLI_CHOICE, "gre", &choice));
    ck_assert(!store(CLI_CHOICE, "", &choice));
    ck_assert(store(CLI_SET, "grey,red", &set) && set == 5);
    ck_assert(!store(CLI_SET, "red,", &set));
    ck_assert(!store(CLI_SET, "red,blue", &set));
}

TEST(lists_flags_and_constants_reach_their_targets)
{
    struct cli_list list = {.n = 0};
    bool flag = false;
    int constant = 0;
    ck_assert(store(CLI_FLAG, NULL, &flag) && flag);
    ck_assert(store(CLI_CONSTANT, NULL, &constant) && constant == 7);
    for (size_t i = 0; i < CLI_LIST_MOST; i++)
        ck_assert(store(CLI_LIST, i % 2 ? "b" : "a", &list));
    ck_assert(!store(CLI_LIST, "c", &list));
    ck_assert_uint_eq(list.n, CLI_LIST_MOST);
    ck_assert_str_eq(list.item[1], "b");
}

static const struct cli_option *seen[64];
static size_t n_seen;

static void see(void *payload, const struct cli_option *option)
{
    (void)payload;
    ck_assert_uint_lt(n_seen, 64);
    seen[n_seen++] = option;
}

TEST(no_command_has_two_options_of_one_name_and_each_is_explained)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n; i++) {
        n_seen = 0;
        cli_each_option(command[i], see, NULL);
        for (size_t j = 0; j < n_seen; j++) {
            const struct cli_option *option = seen[j];
            bool bare = option->kind == CLI_FLAG || option->kind == CLI_CONSTANT;
            ck_assert_msg(*option->text && bare == !option->value, "%s --%s", command[i]->name,
                          option->name);
            ck_assert_msg((option->choice != NULL) ==
                              (option->kind == CLI_CHOICE || option->kind == CLI_SET),
                          "%s --%s", command[i]->name, option->name);
            for (size_t k = 0; k < j; k++)
                ck_assert_msg(strcmp(seen[k]->name, option->name) != 0 &&
                                  (!option->letter || seen[k]->letter != option->letter),
                              "%s: --%s and --%s", command[i]->name, seen[k]->name, option->name);
        }
    }
}

/* One option for a letter: but -r, --roofline and --runs, as in perf. */
TEST(a_letter_means_the_same_in_every_command)
{
    const char *meaning[128] = {NULL};
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n; i++) {
        n_seen = 0;
        cli_each_option(command[i], see, NULL);
        for (size_t j = 0; j < n_seen; j++) {
            const unsigned char letter = (unsigned char)seen[j]->letter;
            if (!letter || letter == 'r')
                continue;
            if (!meaning[letter])
                meaning[letter] = seen[j]->name;
            ck_assert_msg(strcmp(meaning[letter], seen[j]->name) == 0, "-%c: --%s, in %s --%s",
                          letter, meaning[letter], command[i]->name, seen[j]->name);
        }
    }
}

TEST(a_mistyped_name_is_near_by_its_length)
{
    static const char *const names[] = {"by",       "map",     "time",     "sort", "limit",
                                        "max-peak", "ignore",  "timeline", "json", "max-total-tape",
                                        "no-color", "quickfix"};
    static const struct {
        const char *typed, *nearest;
    } cases[] = {
        {"tiem", "time"},
        {"srot", "sort"},
        {"sortedby", "sort"},
        {"sort-by", "sort"},
        {"max-pek", "max-peak"},
        {"maxpeak", "max-peak"},
        {"ingroe", "ignore"},
        {"nocolour", "no-color"},
        {"max-totaltap", "max-total-tape"},
        {"quikcfix", "quickfix"},
        {"limits", "limit"},
        {"yb", "by"},
        {"peak", "max-peak"},
        {"color", "no-color"},
        {"tape", "max-total-tape"},
        {"xyz", NULL},
        {"foo", NULL},
        {"mood", NULL},
        {"", NULL},
        {"threshold", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *nearest =
            cli_nearest(cases[i].typed, names, (int)(sizeof names / sizeof *names));
        ck_assert_msg(nearest ? cases[i].nearest && strcmp(nearest, cases[i].nearest) == 0
                              : !cases[i].nearest,
                      "%s: %s", cases[i].typed, nearest ? nearest : "none");
    }
}

TEST(words_are_wrapped_and_never_cut)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    cli_put_wrapped(out, "one two three\nfour incomprehensible five", 3, 4, 12);
    fclose(out);
    ck_assert_str_eq(text, " one two\n    three\n    four\n    incomprehensible\n    five\n");
    free(text);
}

RUN_TESTS(NULL, NULL)
