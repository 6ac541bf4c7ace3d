/* test_sites.c: every op is charged to the line and function that called it, however the program
 * was compiled and linked.
 *
 * Each compiler and form is tried with two of the three sources at one level, by the build without
 * optimisation with one; the C program as PIE at every level; each form of debug information by one
 * compiler, in the build without optimisation, since the code that reads it is the same; and with
 * TAPESCOPE_EXHAUSTIVE every form and source at every level by both (exhaustive.h).
 *
 * The expected lines are marked in the programs' sources. What a machine lacks (a compiler, a
 * linker for link-time optimisation) is printed as skipped.
 */
#include "exhaustive.h"
#include "program_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *c, *cxx;
} compilers[] = {{"gcc", "g++"}, {"clang", "clang++"}};
static const char *const levels[] = {"-O0", "-O2", "-O3"};

enum form { PIE, NO_PIE, SHARED, STATIC, LTO };
static const char *const form_names[] = {"pie", "no-pie", "shared", "static", "lto"};

/* One program: a compiler, a language, a level, a way of linking. */
struct variant {
    const char *compiler, *level;
    const char *language; /* "c" or "c++" */
    const char *source;   /* name in tests/programs */
    enum form form;
    const char *debug;  /* a flag more, or NULL */
    const char *linker; /* of link-time optimisation, or NULL */
    char name[128];
};

static void add_common(struct program_command *command, const struct variant *v)
{
    bool c = strcmp(v->language, "c") == 0;
    program_add_all(command, v->compiler, c ? "-std=gnu11" : "-std=c++17", "-g", v->level, "-Wall",
                    "-Wextra", "-Werror", "-x", v->language, NULL);
    if (v->debug)
        program_add(command, v->debug);
    program_add_includes(command);
}

/* sites.c and its main function apart, joined by an archive or at run time. */
static void build_object(const struct variant *v, const char *object)
{
    struct program_command command = {0};
    add_common(&command, v);
    program_add_all(&command, program_source(v->source), "-x", "none", "-o", object, NULL);
    if (v->form == SHARED) {
        program_add_all(&command, "-fPIC", "-shared", NULL);
        program_add_shared(&command);
    } else {
        program_add(&command, "-c");
    }
    program_must(&command);
}

static void build(const struct variant *v)
{
    const char *object = program_path("sites.so");
    char define[PATH_MAX + 32];
    struct program_command command = {0};
    add_common(&command, v);
    program_add(&command, program_source("sites_main.c"));
    if (v->form == SHARED || v->form == STATIC)
        build_object(v, object);
    else
        program_add(&command, program_source(v->source));
    program_add_all(&command, "-x", "none", "-o", program_path("sites"), NULL);
    if (v->form == SHARED) {
        snprintf(define, sizeof define, "-DSITES_OBJECT=\"%s\"", object);
        program_add_all(&command, define, "-ldl", NULL);
    } else if (v->form == STATIC) {
        const char *archive = program_path("libsites.a");
        struct program_command ar = {0};
        remove(archive);
        program_add_all(&ar, "ar", "rcs", archive, object, NULL);
        program_must(&ar);
        program_add(&command, archive);
        program_add_static(&command);
    } else {
        if (v->form == PIE)
            program_add_all(&command, "-fPIE", "-pie", NULL);
        else if (v->form == NO_PIE)
            program_add_all(&command, "-fno-pie", "-no-pie", NULL);
        else
            program_add(&command, "-flto");
        if (v->linker)
            program_add(&command, v->linker);
        program_add_shared(&command);
    }
    program_must(&command);
}

/* Compares the marks of one source line with the analysis; returns how many there are. */
static size_t check_marks(const struct analyze_result *analysis, const struct variant *v,
                          const char *file, unsigned number, const char *from, const char *end)
{
    size_t n = 0;
    char op[32], function[64], rest[128];
    unsigned calls;
    for (; (from = memchr(from, '@', (size_t)(end - from))) != NULL; from++) {
        snprintf(rest, sizeof rest, "%.*s", (int)strcspn(from + 1, " \n"), from + 1);
        if (sscanf(rest, "%31[^:]:%63[^:]:%u", op, function, &calls) != 3)
            continue;
        const struct analyze_line *line = program_find(analysis, file, number, op);
        ck_assert_msg(line != NULL, "%s: %s:%u: nothing is charged to %s", v->name, file, number,
                      op);
        ck_assert_msg(line->cost.calls == calls, "%s: %s:%u: %s has %llu calls instead of %u",
                      v->name, file, number, op, (unsigned long long)line->cost.calls, calls);
        ck_assert_msg(line->function && strcmp(line->function, function) == 0,
                      "%s: %s:%u: %s is in %s instead of %s", v->name, file, number, op,
                      line->function ? line->function : "(unknown)", function);
        n++;
    }
    return n;
}

static void check_profile(const struct variant *v, const char *path)
{
    const char *file = v->source;
    char *text = program_text(program_source(file));
    struct program_profile opened = program_open(path);
    size_t marks = 0, charged = 0;
    unsigned number = 1;
    for (const char *line = text, *end; *line; line = end + 1, number++) {
        end = strchrnul(line, '\n');
        marks += check_marks(opened.analysis, v, file, number, line, end);
        if (!*end)
            break;
    }
    for (size_t i = 0; i < opened.analysis->n_lines; i++)
        charged += !opened.analysis->line[i].own;
    ck_assert_msg(marks == charged, "%s: %zu lines are charged instead of %zu", v->name, charged,
                  marks);
    ck_assert(opened.profile->complete);
    program_check_sums(opened.analysis);
    program_close(&opened);
    free(text);
}

/* The message of a failing nested call names its line and function. */
static void check_message(const struct variant *v)
{
    char expected[64];
    char *text = program_text(program_source("sites.c"));
    snprintf(expected, sizeof expected, "sites.c:%u in failing\n", program_line(text, "error"));
    free(text);
    struct program_command command = {0};
    program_add_all(&command, program_path("sites"), "sites_error", NULL);
    program_must(&command);
    ck_assert_msg(strncmp(program_output, "linear: ", 8) == 0 &&
                      strstr(program_output, expected) != NULL,
                  "%s: %s instead of %s", v->name, program_output, expected);
}

static void check_variant(struct variant *v)
{
    snprintf(v->name, sizeof v->name, "%s %s %s %s", v->compiler, v->level, form_names[v->form],
             v->debug ? v->debug : "");
    const char *profile = program_path("sites.prof");
    build(v);
    int status = program_record(profile, program_path("sites"), NULL);
    ck_assert_msg(status == 0, "%s: status %#x: %s", v->name, (unsigned)status, program_output);
    check_profile(v, profile);
    if (v->form == PIE && strcmp(v->language, "c") == 0)
        check_message(v);
}

#ifdef NDEBUG
static const bool is_optimised = true;
#else
static const bool is_optimised = false;
#endif

/* Whether the tests take this level of a form and a source (0: in C). Where the code is that of
 * PIE, -O3 has nothing of its own. Of the sources one in three is left to the other forms. */
static bool is_taken(enum form form, size_t compiler, size_t level, size_t source)
{
    const size_t n = form == NO_PIE || form == STATIC ? 2 : 3;
    if (level >= n)
        return false;
    if ((form == PIE && source == 0) || exhaustive_is_asked())
        return true;
    const size_t third = (form + compiler + source) % 3;
    return (form + source) % n == level && (is_optimised ? third != 0 : third == 1);
}

/* Runs a form with all compilers and levels; with sanitizers, only what their runtime allows. */
static void check_form(enum form form, const char *linker, size_t compiler)
{
    struct variant v = {.form = form, .linker = linker};
    if (!program_exists(compilers[compiler].c)) {
        printf("skipped: %s is not installed\n", compilers[compiler].c);
        return;
    }
    bool cxx = program_exists(compilers[compiler].cxx);
    if (!cxx)
        printf("skipped: %s is not installed\n", compilers[compiler].cxx);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        v.level = levels[i];
        for (size_t k = 0; k < (cxx ? 3 : 1); k++) {
            v.compiler = k == 0 ? compilers[compiler].c : compilers[compiler].cxx;
            v.language = k == 0 ? "c" : "c++";
            v.source = k < 2 ? "sites.c" : "sites_cpp.cpp";
            if (is_taken(form, compiler, i, k))
                check_variant(&v);
        }
    }
}

TEST_EACH(each_op_is_charged_to_its_own_line_and_function, 2 * LTO)
{
    if (*TEST_SANITIZE_FLAGS) {
        printf("skipped: programs of several compilers, in a sanitized build\n");
        return;
    }
    check_form((enum form)(_i % LTO), NULL, (size_t)_i / LTO);
}

/* clang's objects for link-time optimisation need lld, or gold with a plug-in. */
static const char *lto_linker(void)
{
    static const char *const linkers[] = {"-fuse-ld=lld", "-fuse-ld=gold"};
    FILE *file = fopen(program_path("empty.c"), "w");
    ck_assert_ptr_nonnull(file);
    fputs("int main(void) { return 0; }\n", file);
    fclose(file);
    for (size_t i = 0; i < 2; i++) {
        struct program_command command = {0};
        program_add_all(&command, "clang", "-flto", linkers[i], "-o", program_path("empty"),
                        program_path("empty.c"), NULL);
        if (program_run(&command) == 0)
            return linkers[i];
    }
    return NULL;
}

TEST_EACH(link_time_optimisation_keeps_the_lines, 2)
{
    const char *linker = NULL;
    bool clang = strcmp(compilers[_i].c, "clang") == 0;
    if (*TEST_SANITIZE_FLAGS)
        return;
    if (clang && program_exists("clang") && !(linker = lto_linker())) {
        printf("skipped: clang -flto has neither lld nor gold's plug-in\n");
        return;
    }
    check_form(LTO, linker, (size_t)_i);
}

TEST(a_sanitized_or_other_build_of_the_same_compiler_keeps_the_lines)
{
    const char *name = strrchr(TEST_C_COMPILER, '/');
    name = name ? name + 1 : TEST_C_COMPILER;
    if (!*TEST_SANITIZE_FLAGS &&
        (strcmp(name, compilers[0].c) == 0 || strcmp(name, compilers[1].c) == 0))
        return;                      /* each_op_... has had it */
    for (size_t i = 0; i < 5; i++) { /* as PIE at each level, and the other two at -O2 */
        const enum form form = i < 3 ? PIE : i == 3 ? NO_PIE : SHARED;
        struct variant v = {.compiler = TEST_C_COMPILER,
                            .level = i < 3 ? levels[i] : "-O2",
                            .language = "c",
                            .source = "sites.c",
                            .form = form};
        check_variant(&v);
    }
}

TEST(every_form_of_debug_information_has_the_lines)
{
    static const char *const forms[] = {"-gdwarf-4",
                                        "-gdwarf-5",
                                        "-gz=zlib",
                                        "-fdebug-types-section",
                                        "-ffunction-sections",
                                        "-fno-omit-frame-pointer"};
    bool all = !*TEST_SANITIZE_FLAGS;
    if (is_optimised && !exhaustive_is_asked())
        return;
    for (size_t c = 0; c < (all ? 2 : 1); c++) {
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            /* Optimised DWARF 4 of gcc has range lists that begin with what ends a list. */
            struct variant v = {.compiler = all ? compilers[c].c : TEST_C_COMPILER,
                                .level = i == 0 ? "-O0" : "-O2",
                                .language = "c",
                                .source = "sites.c",
                                .form = SHARED,
                                .debug = forms[i]};
            if ((i % 2 == c || !all || exhaustive_is_asked()) && program_exists(v.compiler))
                check_variant(&v);
        }
    }
}

RUN_TESTS(program_setup, program_teardown)
