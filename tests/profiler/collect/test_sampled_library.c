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

enum {
    LIBRARY = 0x10000,
    PROGRAM = 0x20000,
    SYSTEM = 0x30000,
    COLLECTOR = 0x40000,
    PLAIN = 0x50000,
    MODULES = 5
};

static void put_modules(struct maker_bytes *bytes)
{
    static const char *const path[] = {"/opt/lib/libtapescope.so.0", "/home/me/program",
                                       "/usr/lib/libc.so.6", "/opt/lib/tapescope-collect.so",
                                       "/opt/lib/libtapescope_plain.so.0.2"};
    Tapescope__Module module[MODULES], *list[MODULES];
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    for (unsigned i = 0; i < MODULES; i++) {
        tapescope__module__init(&module[i]);
        module[i].path = (char *)(uintptr_t)path[i];
        module[i].start = (i + 1) * UINT64_C(0x10000);
        module[i].end = module[i].start + 0x1000;
        list[i] = &module[i];
    }
    modules.module = list;
    modules.n_module = MODULES;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_MODULES, &modules);
}

/* Of each address in the library the line of tape.c, in the program that of main.c. */
static void put_symbols(struct maker_bytes *bytes)
{
    static const struct {
        uint64_t pc;
        const char *function, *file, *module;
        uint32_t line;
        bool wrapped;
    } is[] = {
        {LIBRARY + 0x101, "tape_apply", "/lib/tape.c", "/opt/lib/libtapescope.so.0", 1, false},
        {LIBRARY + 0x201, "tape_apply", "/lib/tape.c", "/opt/lib/libtapescope.so.0", 2, false},
        {PROGRAM + 0x301, "main", "/home/me/main.c", "/home/me/program", 3, false},
        {PROGRAM + 0x401, "main", "/home/me/main.c", "/home/me/program", 4, false},
        {PROGRAM + 0x501, "main", "/home/me/main.c", "/home/me/program", 5, true},
        {PROGRAM + 0x601, "main", "/home/me/main.c", "/home/me/program", 6, false},
        {PLAIN + 0x101, "ad_plain_by_sin_", "/lib/by.h", "/opt/lib/libtapescope_plain.so.0.2", 9,
         true},
        {SYSTEM + 0x101, "exp", "e_exp.c", "/usr/lib/libc.so.6", 157, false},
    };
    enum { N = sizeof is / sizeof *is };
    Tapescope__Symbol symbol[N], *list[N];
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    for (unsigned i = 0; i < N; i++) {
        tapescope__symbol__init(&symbol[i]);
        symbol[i].pc = is[i].pc;
        symbol[i].function = (char *)(uintptr_t)is[i].function;
        symbol[i].file = (char *)(uintptr_t)is[i].file;
        symbol[i].module = (char *)(uintptr_t)is[i].module;
        symbol[i].source_line = is[i].line;
        symbol[i].wrapped = is[i].wrapped;
        symbol[i].outermost = true;
        list[i] = &symbol[i];
    }
    symbols.symbol = list;
    symbols.n_symbol = N;
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
        {SYSTEM + 0x100, SYSTEM + 0x201, PROGRAM + 0x401},     /* libm for it, in two frames */
        {SYSTEM + 0x100, PROGRAM + 0x501},                     /* libm for a formula */
        {SYSTEM + 0x100},                                      /* libm for nobody knows whom */
        {SYSTEM + 0x100, LIBRARY + 0x201, PROGRAM + 0x501}, /* for the library, for the program */
        {SYSTEM + 0x100, PLAIN + 0x101, PROGRAM + 0x601},   /* a function of plain C */
    };
    enum { N = sizeof stack / sizeof *stack };
    static const size_t depth[N] = {3, 3, 1, 2, 2, 3, 2, 1, 3, 3};
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

TEST(what_the_library_does_is_its_callers)
{
    struct read_profile *profile = make();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 3), 11);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 4), 110000);
    ck_assert_uint_eq(other_of(analysis, "/lib/tape.c", 1), 0);
    ck_assert_uint_eq(other_of(analysis, NULL, 0), 1100);
    ck_assert_uint_eq(analysis->n_lines, 7);
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

static uint64_t forward_of(const struct analyze_result *analysis, const char *file, uint32_t line)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        if (at->file && strcmp(at->file, file) == 0 && at->line == line)
            ns += at->cost.forward_ns;
        ck_assert(at->cost.forward_ns == 0 || strcmp(at->ops.name[0], "statement") == 0);
    }
    return ns;
}

TEST(what_the_systems_libraries_do_is_their_callers_unless_they_are_asked_for)
{
    struct read_profile *profile = make();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    /* A formula is forward, with what it has libm compute; what the library does for it is not. */
    ck_assert_uint_eq(forward_of(analysis, "/home/me/main.c", 5), 1000000);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 5), 100000000);
    ck_assert_uint_eq(forward_of(analysis, "/home/me/main.c", 6), 1000000000);
    ck_assert_uint_eq(forward_of(analysis, "/lib/by.h", 9), 0);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 4), 110000);
    ck_assert_uint_eq(other_of(analysis, "e_exp.c", 157), 10000000);
    analyze_show_libraries(analysis);
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 4), 10000);
    ck_assert_uint_eq(other_of(analysis, "e_exp.c", 157), 1111100000);
    ck_assert_uint_eq(analysis->sum.forward_ns, 0);
    /* The library's own frames stay its callers'. */
    ck_assert_uint_eq(other_of(analysis, "/home/me/main.c", 3), 11);
    analyze_free(analysis);
    read_profile_free(profile);
}

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

TEST(its_frames_are_there_if_asked_for)
{
    struct read_profile *profile = make();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    for (int inverted = 0; inverted < 2; inverted++) {
        for (int system = 0; system < 2; system++) {
            const struct analyze_tree_options how = {.inverted = inverted, .system = system};
            struct analyze_tree *tree = analyze_tree_make(analysis, &how);
            ck_assert_ptr_nonnull(tree);
            ck_assert_uint_eq(tree->node[0].all.other_ns, 110111111);
            ck_assert_uint_eq(self_of(tree, inverted, "/home/me/main.c", 4),
                              system ? 10000 : 110000);
            /* Where nobody knows who called, the frame that was interrupted stands there. */
            ck_assert_uint_eq(self_of(tree, inverted, "/home/me/main.c", 3), system ? 0 : 11);
            ck_assert_uint_eq(self_of(tree, inverted, "/lib/tape.c", 1), system ? 1101 : 1100);
            analyze_tree_free(tree);
        }
    }
    analyze_free(analysis);
    read_profile_free(profile);
}

RUN_TESTS(NULL, NULL)
