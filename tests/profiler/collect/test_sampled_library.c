/* test_sampled_library.c: what the library does outside of ops is its caller's.
 *
 * The profile is made by hand: a library, a program and a library of the system, with samples that
 * lie in each.
 */
#include "analyze_tree.h"
#include "profile_maker.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { LIBRARY = 0x10000, PROGRAM = 0x20000, SYSTEM = 0x30000, COLLECTOR = 0x40000 };

static void put_modules(struct maker_bytes *bytes)
{
    static const char *const path[] = {"/opt/lib/libtapescope.so.0", "/home/me/program",
                                       "/usr/lib/libc.so.6", "/opt/lib/tapescope-collect.so"};
    Tapescope__Module module[4], *list[4];
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    for (unsigned i = 0; i < 4; i++) {
        tapescope__module__init(&module[i]);
        module[i].path = (char *)(uintptr_t)path[i];
        module[i].start = (i + 1) * UINT64_C(0x10000);
        module[i].end = module[i].start + 0x1000;
        list[i] = &module[i];
    }
    modules.module = list;
    modules.n_module = 4;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_MODULES, &modules);
}

/* Of each address in the library the line of tape.c, in the program that of main.c. */
static void put_symbols(struct maker_bytes *bytes)
{
    static const uint64_t pc[] = {LIBRARY + 0x101, LIBRARY + 0x201, PROGRAM + 0x301,
                                  PROGRAM + 0x401};
    Tapescope__Symbol symbol[4], *list[4];
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    for (unsigned i = 0; i < 4; i++) {
        tapescope__symbol__init(&symbol[i]);
        symbol[i].pc = pc[i];
        symbol[i].function = (char *)(i < 2 ? "tape_apply" : "main");
        symbol[i].file = (char *)(i < 2 ? "/lib/tape.c" : "/home/me/main.c");
        symbol[i].module = (char *)(i < 2 ? "/opt/lib/libtapescope.so.0" : "/home/me/program");
        symbol[i].source_line = i + 1;
        list[i] = &symbol[i];
    }
    symbols.symbol = list;
    symbols.n_symbol = 4;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
}

/* The i-th takes 10^i ns: the interrupted address, then return addresses. */
static void put_samples(struct maker_bytes *bytes)
{
    static uint64_t stack[][3] = {
        {LIBRARY + 0x100, LIBRARY + 0x201, PROGRAM + 0x301},   /* called by the program */
        {COLLECTOR + 0x100, LIBRARY + 0x201, PROGRAM + 0x301}, /* by way of the profiler */
        {LIBRARY + 0x100},                                     /* by nobody knows whom */
        {LIBRARY + 0x100, SYSTEM + 0x101},                     /* a thread of the library's */
        {PROGRAM + 0x400, PROGRAM + 0x301},                    /* the program's own */
    };
    enum { N = sizeof stack / sizeof *stack };
    static const size_t depth[N] = {3, 3, 1, 2, 2};
    Tapescope__Sample sample[N], *list[N];
    Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
    for (uint64_t i = 0, ns = 1; i < N; i++, ns *= 10) {
        tapescope__sample__init(&sample[i]);
        sample[i].index = (uint32_t)i;
        sample[i].op = (char *)"";
        sample[i].stack = stack[i];
        sample[i].n_stack = depth[i];
        sample[i].count = 1;
        sample[i].wall_ns = sample[i].cpu_ns = ns;
        list[i] = &sample[i];
    }
    samples.period_ns = 1000;
    samples.sample = list;
    samples.n_sample = N;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_SAMPLES, &samples);
}

static struct read_profile *make(void)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "step:1", 1);
    put_modules(&bytes);
    put_symbols(&bytes);
    put_samples(&bytes);
    return maker_read(&bytes);
}

/* Other time of a place; file NULL: of what has none. */
static uint64_t other_of(const struct analyze_result *analysis, const char *file, uint32_t line)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        if (file ? at->file && strcmp(at->file, file) == 0 && at->line == line : !at->file)
            ns += at->cost.other_ns;
    }
    return ns;
}

START_TEST(what_the_library_does_is_its_callers)
{
    struct read_profile *profile = make();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 3), 11);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 4), 10000);
    ck_assert_uint_eq(other_of(analysis, "/lib/tape.c", 1), 0);
    ck_assert_uint_eq(other_of(analysis, NULL, 0), 1100);
    ck_assert_uint_eq(analysis->n_lines, 3);
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->file)
            continue;
        ck_assert_str_eq(line->module, "/opt/lib/libtapescope.so.0");
        ck_assert_ptr_null(line->function);
        ck_assert_uint_eq(line->offset, 0);
    }
    analyze_free(analysis);
    read_profile_free(profile);
}
END_TEST

/* The own time of a line of a file; in an inverted tree the lines are the outermost nodes. */
static uint64_t self_of(const struct analyze_tree *tree, bool inverted, const char *file,
                        uint32_t line)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct analyze_line *at = &tree->node[i].line;
        if (at->file && strcmp(at->file, file) == 0 && at->line == line)
            ns += !inverted                   ? at->cost.other_ns
                  : tree->node[i].parent == 0 ? tree->node[i].all.other_ns
                                              : 0;
    }
    return ns;
}

START_TEST(its_frames_are_there_if_asked_for)
{
    struct read_profile *profile = make();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    for (int inverted = 0; inverted < 2; inverted++) {
        for (int system = 0; system < 2; system++) {
            const struct analyze_tree_options how = {.inverted = inverted, .system = system};
            struct analyze_tree *tree = analyze_tree_make(analysis, &how);
            ck_assert_ptr_nonnull(tree);
            ck_assert_uint_eq(tree->node[0].all.other_ns, 11111);
            ck_assert_uint_eq(self_of(tree, inverted, "/home/me/main.c", 4), 10000);
            /* Where nobody knows who called, the frame that was interrupted stands there. */
            ck_assert_uint_eq(self_of(tree, inverted, "/home/me/main.c", 3), system ? 0 : 11);
            ck_assert_uint_eq(self_of(tree, inverted, "/lib/tape.c", 1), system ? 1101 : 1100);
            analyze_tree_free(tree);
        }
    }
    analyze_free(analysis);
    read_profile_free(profile);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("library");
    tcase_add_test(cases, what_the_library_does_is_its_callers);
    tcase_add_test(cases, its_frames_are_there_if_asked_for);
    return run_cases("sampled_library", cases);
}
