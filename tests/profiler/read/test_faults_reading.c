/* test_faults_reading.c: every read of the program `tapescope` fails once and from then on: the
 * report is the whole one, or the failure is said. Where an allocation fails, the program ends with
 * one line.
 *
 * The commands run in this process, as the program runs them, or in a copy of it.
 */
#include "cli.h"
#include "cli_memory.h"
#include "cli_options.h"
#include "exhaustive.h"
#include "export.h"
#include "profile_seeds.h"
#include "program_support.h"
#include "run_cases.h"
#include "sanitizers.h"
#include "shim.h"
#include "tape_hook.h"

#include <check.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- commands ---- */

enum { MOST_ARGUMENTS = 8 };

struct command {
    const char *argument[MOST_ARGUMENTS]; /* NULL: the profile's path, and the end */
};

static const struct cli_command *find_command(const char *name)
{
    size_t n;
    const struct cli_command *const *all = cli_commands(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    ck_abort_msg("no command %s", name);
}

/* What a command gave; texts are the caller's. */
struct outcome {
    int status;
    char *out, *err;
};

/* What is random in the addresses that `view` prints: a port, always of five digits, and a
 * token. */
static void mask_addresses(char *text)
{
    static const char host[] = "http://127.0.0.1:";
    for (char *at = text; (at = strstr(at, host)) != NULL;)
        for (at += strlen(host); isxdigit((unsigned char)*at) || *at == '/'; at++)
            *at = 'x';
}

/* Runs a command on a profile. What it prints goes to streams of ours, and kind, at and sticky to
 * shim_arm; *calls: what shim_disarm returned. */
static struct outcome run(const struct command *command, const char *profile, enum shim_kind kind,
                          int at, bool sticky, int *calls)
{
    struct outcome outcome = {0};
    char *argv[MOST_ARGUMENTS + 2];
    int argc = 0;
    size_t n;
    for (; command->argument[argc]; argc++)
        argv[argc] = (char *)command->argument[argc];
    argv[argc++] = (char *)profile;
    argv[argc] = NULL;
    FILE *out = stdout, *err = stderr;
    fflush(NULL);
    stdout = open_memstream(&outcome.out, &n);
    stderr = open_memstream(&outcome.err, &n);
    shim_arm(kind, at, sticky);
    outcome.status = find_command(argv[0])->run(argc, argv);
    *calls = shim_disarm();
    fclose(stdout);
    fclose(stderr);
    stdout = out;
    stderr = err;
    if (outcome.out && outcome.err) {
        mask_addresses(outcome.out);
        mask_addresses(outcome.err);
    }
    return outcome;
}

static void drop(struct outcome *outcome)
{
    free(outcome->out);
    free(outcome->err);
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->status == b->status && strcmp(a->out, b->out) == 0 && strcmp(a->err, b->err) == 0;
}

/* `tape --records` prints what it reads as it comes. */
static bool is_streamed(const struct command *command)
{
    return strcmp(command->argument[0], "tape") == 0 &&
           strcmp(command->argument[1], "--records") == 0;
}

/* A failure is said by name. A source that cannot be read leaves numbers without text, and all
 * costs; single events that cannot be read again leave a page without them. */
static void check_failure(const struct outcome *got, const struct command *command,
                          const char *profile, enum shim_kind kind)
{
    static const char *const reason[] = {
        [SHIM_EIO] = "Input/output error", [SHIM_EMFILE] = "Too many open files"};
    ck_assert_msg(strstr(got->err, reason[kind]), "status %d, said '%s'", got->status, got->err);
    if (got->status == CLI_OK) {
        const bool no_events = strstr(got->err, "the page has no single events");
        ck_assert(no_events || strstr(got->err, "showing line numbers without text"));
        ck_assert(strstr(got->out, " total\n") || strstr(got->err, "html: "));
        return;
    }
    ck_assert(got->status == CLI_FAILED || got->status == CLI_BAD_PROFILE);
    ck_assert(got->status != CLI_BAD_PROFILE || strstr(got->err, profile));
    if (!is_streamed(command))
        ck_assert_str_eq(got->out, "");
}

/* Of the calls one after the other: one in six that fail, of those that are only interrupted or
 * short, which change nothing, one in fifteen; each if every case is tried (exhaustive.h). */
static int fail_step(enum shim_kind kind)
{
    return (int)exhaustive_step(shim_is_harmless(kind) ? 15 : 6);
}

/* Every n (or as fail_step has it) until the command makes no call of that number; returns how many
 * there were. */
static int fail_each(const struct command *command, const char *profile, enum shim_kind kind,
                     bool sticky)
{
    int calls, failed = 0;
    struct outcome whole = run(command, profile, kind, 0, false, &calls);
    int descriptors = shim_count_descriptors();
    for (int n = 1;; n += fail_step(kind)) {
        struct outcome got = run(command, profile, kind, n, sticky, &calls);
        ck_assert_int_eq(shim_count_descriptors(), descriptors);
        if (!same(&got, &whole)) {
            ck_assert_msg(!shim_is_harmless(kind) && calls >= n, "%s %d: '%s' '%s'",
                          shim_kind_name[kind], n, got.out, got.err);
            check_failure(&got, command, profile, kind);
            failed++;
        }
        drop(&got);
        if (calls < n)
            break;
    }
    ck_assert_int_eq(failed > 0, !shim_is_harmless(kind));
    drop(&whole);
    return calls;
}

/* ---- the end of memory ---- */

enum { LEAST_CALLS = 12, SAMPLED = 3 };

/* Runs a command in a copy of this process, in which the allocation number `at` fails. Returns its
 * status and what it wrote to standard error; 0: all allocations, without one that fails, go to
 * *calls. */
static int run_copy(const struct command *command, const char *profile, int at, bool sticky,
                    char said[4096], int *calls)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    const pid_t copy = fork();
    ck_assert_int_ge(copy, 0);
    if (copy == 0) {
        dup2(ends[1], STDERR_FILENO);
        cli_end_without_memory();
        const struct outcome got = run(command, profile, SHIM_MEMORY, at, sticky, calls);
        if (at == 0)
            dprintf(STDERR_FILENO, "%d", *calls);
        else
            dprintf(STDERR_FILENO, "%s", got.err);
        _exit(got.status);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], said + n, 4095 - n)) > 0;)
        n += (size_t)got;
    said[n] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(copy, &status, 0), copy);
    ck_assert_msg(WIFEXITED(status), "%s", said);
    return WEXITSTATUS(status);
}

/* A number from 1 to n; those that come one after the other lie far from each other. */
static int next_place(int n)
{
    static double at = 0;
    at += 0.6180339887498949;
    at -= (int)at;
    return 1 + (int)(at * n);
}

/* Of all allocations the last, and some before it: others for each command. What opens a file asks
 * for memory itself, and says that there is none as of any other reason. */
static void end_memory(const struct command *command, const char *profile)
{
    char said[4096];
    int calls = 0, ended = 0, status = run_copy(command, profile, 0, false, said, &calls);
    calls = atoi(said);
    ck_assert_int_ge(calls, LEAST_CALLS);
    (void)status;
    for (int i = 0; i < SAMPLED; i++) {
        const int at = i == 0 ? calls : next_place(calls);
        status = run_copy(command, profile, at, i % 2, said, &calls);
        if (status == CLI_NO_MEMORY) {
            ck_assert_str_eq(said, "tapescope: out of memory\n");
            ended++;
        } else {
            ck_assert_msg(strstr(said, "Cannot allocate memory") != NULL, "%s: %d of %d: %d '%s'",
                          command->argument[0], at, calls, status, said);
        }
    }
    ck_assert_int_ge(ended, 1);
}

/* ---- all of them ---- */

static const enum shim_kind kinds[] = {SHIM_EIO, SHIM_EMFILE, SHIM_EINTR, SHIM_ONE_BYTE, SHIM_HALF};

static void fail_all(const struct command *command, const char *profile)
{
    end_memory(command, profile);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int least = kinds[i] == SHIM_EMFILE ? 1 : 2;
        ck_assert_int_ge(fail_each(command, profile, kinds[i], false), least);
        ck_assert_int_ge(fail_each(command, profile, kinds[i], true), 1);
    }
}

/* ---- the tests ---- */

static void setup(void)
{
    setenv("COLUMNS", "80", 1);
    program_setup();
    ck_assert(shim_watch(""));
}

static const char *write_seed(int number)
{
    static struct maker_bytes seed;
    const char *path = program_path("seed.prof");
    profile_seed_make((unsigned)number, &seed);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(seed.data, 1, seed.n, file), seed.n);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

TEST_EACH(a_small_profile_is_reported_whole_or_the_failure_is_said, PROFILE_SEEDS)
{
    const struct command commands[] = {
        {{"info"}},
        {{"top", "--sort", "tape", "-n", "2"}},
        {{"top", "--by", "op"}},
        {{"top", "--by", "scope", "--map=/=/x"}},
        {{"top", "--expectations"}},
        {{"top", "--patterns"}},
        {{"tape", "-n", "2"}},
        {{"whatif", "--budget", "100"}},
        {{"tree", "--inverted"}},
        {{"top", "--cum"}},
        {{"html", "-o", program_path("small.html")}},
        {{"export", "-o", program_path("out"), "-f", "speedscope"}},
    };
    const char *path = write_seed(_i);
    /* Under a sanitizer each command reads a third of the profiles, and each profile is read. */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if ((i + (size_t)_i) % sanitizers_step(3) == 0)
            fail_all(&commands[i], path);
}

/* The seed has single events, samples, scopes and symbols. */
TEST(what_is_read_twice_is_written_whole_or_the_failure_is_said)
{
    const char *path = write_seed(1);
    const struct command commands[] = {
        {{"tape", "--records", "-n", "3"}},
        {{"tape", "--records", "--json"}},
        {{"merge", "--json", "-o", program_path("packed.prof")}},
        {{"merge", "--json", "-o", program_path("sum.prof"), path}},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fail_all(&commands[i], path);
}

TEST(a_program_is_reported_with_its_lines_or_the_failure_is_said)
{
    const char *profile = program_path("a.prof");
    program_build("account");
    ck_assert_int_eq(setenv("TAPESCOPE_OPTIONS", "timeline=65536", 1), 0);
    ck_assert_int_eq(program_record(profile, program_path("account"), "tapes"), 0);
    const struct command commands[] = {
        {{"info", "--exact"}},
        {{"info", "--json"}},
        {{"top", "--json", "--by", "file", "--phase", "forward"}},
        {{"top", "--roofline", "--sort", "ratio"}},
        {{"tree", "--focus", "main", "--by", "function"}},
        {{"tree", "--json", "--recursion=flat"}},
        {{"top", "--focus", "a", "--ignore", "b", "--map=/=/x"}},
        {{"top"}},
        {{"top", "--by", "function"}},
        {{"tree", "--map=/=/x", "--flat"}},
        {{"tape", "--lifetime", "--ignore", "b", "--map=/=/x"}},
        {{"tape", "--json"}},
        {{"whatif"}},
        {{"annotate", "--no-color", "account.c"}},
        {{"annotate", "--context", "1", program_source("account.c")}},
        {{"annotate", "--json", "--focus", "layer", "account.c"}},
        {{"growth", "--sizes", "1,2", profile}},
        {{"diff", "--sort", "relative", profile}},
        {{"check", "--max-tape", "account.c:1=1GiB", "--base", profile}},
        {{"html", "-o", program_path("a.html")}},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fail_all(&commands[i], profile);
    const char *out = program_path("out");
    for (int i = 0; i < EXPORT_KINDS; i++) {
        const struct command export = {{"export", "-o", out, "-f", export_format_names[i]}};
        end_memory(&export, profile);
    }
    /* Without call paths: packing them looks into the system's libraries, which takes time. */
    const char *flat = program_path("b.prof");
    setenv("TAPESCOPE_OPTIONS", "depth=0", 1);
    ck_assert_int_eq(program_record(flat, program_path("account"), "tapes"), 0);
    unsetenv("TAPESCOPE_OPTIONS");
    const struct command pack = {{"merge", "-o", program_path("packed.prof")}};
    const struct command top = {{"top"}};
    const struct command merge = {{"merge", "-o", program_path("sum.prof"), flat}};
    fail_all(&pack, flat);
    fail_all(&merge, flat);
    fail_all(&top, program_path("packed.prof"));
}

/* A disk that takes so many bytes; a stream on a file asks again after a short write. */
static ssize_t put(void *cookie, const char *data, size_t n)
{
    size_t *room = cookie;
    (void)data;
    if (n > *room) {
        errno = ENOSPC;
        n = *room;
    }
    *room -= n;
    return (ssize_t)n;
}

static int run_on_disk(const char *profile, size_t room, char **err)
{
    char *argv[] = {(char *)"info", (char *)profile, NULL};
    size_t n;
    FILE *out = stdout, *old_err = stderr;
    stdout = fopencookie(&room, "w", (cookie_io_functions_t){.write = put});
    stderr = open_memstream(err, &n);
    setvbuf(stdout, NULL, _IOFBF, 64);
    int status = cmd_info(2, argv);
    fclose(stdout);
    fclose(stderr);
    stdout = out;
    stderr = old_err;
    return status;
}

TEST(a_report_that_does_not_fit_on_the_disk_is_said_to_be_cut_at_any_byte)
{
    const char *path = write_seed(0);
    int calls;
    const struct command info = {{"info"}};
    struct outcome whole = run(&info, path, SHIM_EIO, 0, false, &calls);
    size_t n = strlen(whole.out);
    ck_assert_uint_gt(n, 200);
    for (size_t room = 0; room <= n; room++) {
        char *err = NULL;
        int status = run_on_disk(path, room, &err);
        ck_assert_int_eq(status, room < n ? CLI_FAILED : CLI_OK);
        static const char *const texts[] = {
            "tapescope: cannot write the report: No space left on device\n",
            "tapescope: cannot write the report\n"};
        bool cut = room < n;
        ck_assert_msg(cut ? !strcmp(err, texts[0]) || !strcmp(err, texts[1]) : !*err, "%s", err);
        free(err);
    }
    drop(&whole);
}

/* The program runs whatever becomes of its profile, unless it cannot be started; what is not whole
 * is said. */
static void check_recording(const struct outcome *got, const struct outcome *whole)
{
    static const char *const reasons[] = {"Input/output error", "Too many open files",
                                          "No space left on device"};
    int said = 0;
    if (same(got, whole))
        return;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        said += strstr(got->err, reasons[i]) != NULL;
    ck_assert_msg(said == 1, "status %d, said '%s'", got->status, got->err);
    if (strstr(got->err, "cannot run"))
        ck_assert_int_eq(got->status, CLI_CANNOT_EXECUTE);
    else if (strstr(got->err, "cannot write"))
        ck_assert_msg(got->status == CLI_USAGE || got->status == CLI_FAILED ||
                          got->status == CLI_NO_PROFILE,
                      "status %d, said '%s'", got->status, got->err);
    else
        ck_assert(got->status == 0 || got->status == CLI_NO_PROFILE);
}

TEST(a_program_is_recorded_or_the_failure_is_said)
{
    const char *profile = program_path("a.prof");
    program_build("account");
    const struct command command = {{"record", "-o", profile, program_path("account")}};
    end_memory(&command, "tapes");
    for (int i = SHIM_MEMORY + 1; i < SHIM_KINDS; i++) {
        enum shim_kind kind = (enum shim_kind)i;
        for (int sticky = 0; sticky < 2; sticky++) {
            int calls, failed = 0;
            struct outcome whole = run(&command, "tapes", kind, 0, false, &calls);
            ck_assert_msg(whole.status == 0 && strstr(whole.err, " lines, 3 tapes"), "%s",
                          whole.err);
            int descriptors = shim_count_descriptors();
            for (int n = 1; n == 1 || calls >= n - 1; n += fail_step(kind)) {
                struct outcome got = run(&command, "tapes", kind, n, sticky, &calls);
                ck_assert_int_eq(shim_count_descriptors(), descriptors);
                check_recording(&got, &whole);
                failed += !same(&got, &whole);
                drop(&got);
            }
            ck_assert_int_eq(failed > 0, !shim_is_harmless(kind));
            drop(&whole);
        }
    }
}

/* An address in a small object, described by the module that completes error messages. */
TEST(an_address_is_described_whole_or_not_and_the_next_time_again)
{
    void *object = dlopen(TAPESCOPE_LIB_DIR "/tapescope/tapescope-collect.so", RTLD_NOW);
    ck_assert_msg(object != NULL, "%s", dlerror());
    uintptr_t pc = (uintptr_t)dlsym(object, TAPE_COLLECT_OPEN) + 8;
    for (int sticky = 0; sticky < 2; sticky++) {
        int failed = 0, calls = 1;
        char whole[256] = "", got[256] = "";
        for (int n = 0; n <= calls; n++) {
            void *module = dlopen(TAPESCOPE_LIB_DIR "/tapescope/tapescope-symbols.so", RTLD_NOW);
            ck_assert_msg(module != NULL, "%s", dlerror());
            tape_symbol_describe_fn *describe;
            *(void **)&describe = dlsym(module, TAPE_SYMBOL_DESCRIBE);
            ck_assert(shim_watch("/tapescope-symbols.so"));
            shim_arm(SHIM_MEMORY, n, sticky);
            int status = describe(pc, 0, got, sizeof got);
            calls = n <= shim_disarm() ? n + 1 : n;
            if (n == 0)
                memcpy(whole, got, sizeof whole);
            ck_assert(n > 0 || strstr(whole, "collect.c:"));
            if (status != 0) {
                failed++;
                ck_assert_int_eq(status, -1);
                ck_assert_int_eq(describe(pc, 0, got, sizeof got), 0);
            }
            ck_assert_str_eq(got, whole);
            dlclose(module);
        }
        ck_assert_int_ge(failed, 10);
    }
    dlclose(object);
}

RUN_TESTS(setup, program_teardown)
