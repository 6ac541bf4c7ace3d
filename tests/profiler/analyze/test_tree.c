/* test_tree.c: call paths made by hand, read, joined to a tree and reported.
 *
 * No module of these profiles can be opened: frames are told apart by address.
 */
#include "analyze_tree.h"
#include "profile_maker.h"
#include "report_tree.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATHS = 100 };

static struct maker_bytes bytes;
static struct read_profile *profile;
static struct analyze_result *analysis;

struct path {
    uint32_t id, parent;
    uint64_t pc;
};

static void put_paths(const struct path *from, size_t n, uint64_t refused)
{
    Tapescope__Path path[MOST_PATHS], *list[MOST_PATHS];
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    ck_assert_uint_le(n, MOST_PATHS);
    for (size_t i = 0; i < n; i++) {
        tapescope__path__init(&path[i]);
        path[i].id = from[i].id;
        path[i].parent = from[i].parent;
        path[i].pc = from[i].pc;
        list[i] = &path[i];
    }
    paths.path = list;
    paths.n_path = n;
    paths.refused = refused;
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_PATHS, &paths);
}

static void begin(void)
{
    bytes = (struct maker_bytes){0};
    maker_put_header(&bytes, "step:1", 1);
}

static void finish(void)
{
    profile = maker_read(&bytes);
    analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
}

static void teardown(void)
{
    analyze_free(analysis);
    read_profile_free(profile);
    analysis = NULL;
    profile = NULL;
    bytes = (struct maker_bytes){0};
}

/* A row on a path: calls, as many forward ticks, twice as many backward, ten times the bytes. */
static void add(struct maker_ledger *made, uint32_t path, uint64_t pc, const char *op,
                uint64_t calls)
{
    Tapescope__Row *row = maker_add_row(made, (uint32_t)made->ledger.n_row, pc, op);
    row->path = path;
    row->calls = calls;
    row->forward_ticks = calls;
    row->backward_ticks = 2 * calls;
    row->record_bytes = 10 * calls;
    made->ledger.forward_ticks += calls;
    made->ledger.backward_ticks += 2 * calls;
    made->ledger.handed_out_bytes += 10 * calls;
}

static struct analyze_tree *make(struct analyze_tree_options options)
{
    struct analyze_tree *tree = analyze_tree_make(analysis, &options);
    ck_assert_ptr_nonnull(tree);
    struct analyze_cost sum = tree->node[0].all;
    analyze_cost_add(&sum, &tree->left_out);
    ck_assert_mem_eq(&sum, &analysis->sum, sizeof sum);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        ck_assert_uint_lt(tree->node[i].parent, i);
        ck_assert_uint_eq(tree->node[i].depth, tree->node[tree->node[i].parent].depth + 1);
    }
    return tree;
}

/* The node reached over frames of these addresses, from the outermost; 0 ends them. */
static const struct analyze_tree_node *at(const struct analyze_tree *tree, const uint64_t *offset)
{
    uint32_t i = 0;
    for (; *offset; offset++) {
        for (i = tree->node[i].child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
            if (tree->node[i].line.offset == *offset && !tree->node[i].line.own)
                break;
        if (i == ANALYZE_NO_NODE)
            return NULL;
    }
    return &tree->node[i];
}
#define AT(tree, ...) at(tree, (const uint64_t[]){__VA_ARGS__, 0})

static void put_usual(void)
{
    begin();
    put_paths((const struct path[]){{1, 0, 0x10}, {2, 1, 0x20}, {3, 2, 0x30}}, 3, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 0, 0, "padding", 1);
    add(made, 3, 0x30, "tanh", 4);
    add(made, 2, 0x20, "mul", 2);
    maker_put_ledger(&bytes, made);
    put_paths((const struct path[]){{4, 1, 0x30}, {5, 3, 0x20}, {6, 5, 0x40}}, 3, 7);
    made = maker_new_ledger(2);
    add(made, 4, 0x30, "tanh", 8);
    add(made, 6, 0x40, "exp", 16);
    add(made, 0, 0x50, "log", 32);
    maker_put_ledger(&bytes, made);
    finish();
}

TEST(rows_of_all_tapes_are_one_tree)
{
    put_usual();
    ck_assert_uint_eq(profile->n_call_paths, 6);
    ck_assert_uint_eq(profile->paths_refused, 7);
    struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = false});
    ck_assert(tree->has_paths);
    ck_assert_uint_eq(tree->node[0].all.calls, 63);
    ck_assert_uint_eq(AT(tree, 0x10)->line.cost.calls, 0);
    ck_assert_uint_eq(AT(tree, 0x10)->all.calls, 30);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20)->line.cost.calls, 2);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20)->all.calls, 22);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x30)->line.cost.calls, 4);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x30, 0x20, 0x40)->line.cost.backward_ns, 32);
    ck_assert_uint_eq(AT(tree, 0x10, 0x30)->line.cost.calls, 8);
    ck_assert_uint_eq(AT(tree, 0x50)->line.cost.calls, 32); /* without a path */
    ck_assert_str_eq(AT(tree, 0x10, 0x20)->line.ops.name[0], "mul");
    ck_assert_ptr_null(AT(tree, 0x20));
    analyze_tree_free(tree);
}

TEST(what_costs_least_is_folded_into_its_caller)
{
    put_usual();
    struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = false});
    const struct analyze_cost whole = tree->node[0].all;
    analyze_tree_fold(tree, tree->n_nodes); /* all have room */
    ck_assert_uint_eq(tree->n_folded, 0);
    ck_assert_uint_eq(tree->n_nodes, 9);
    analyze_tree_fold(tree, 5);
    ck_assert_uint_eq(tree->n_nodes, 5);
    ck_assert_uint_eq(tree->n_folded, 4);
    ck_assert_mem_eq(&tree->node[0].all, &whole, sizeof whole);
    ck_assert_uint_eq(tree->node[0].line.cost.calls, 1); /* of the tape */
    ck_assert_uint_eq(AT(tree, 0x50)->line.cost.calls, 32);
    ck_assert_uint_eq(AT(tree, 0x10)->line.cost.calls, 8);
    ck_assert_uint_eq(AT(tree, 0x10)->folded, 1);
    ck_assert_uint_eq(AT(tree, 0x10)->all.calls, 30);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20)->line.cost.calls, 2);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x30)->line.cost.calls, 20);
    ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x30)->folded, 2);
    ck_assert_ptr_null(AT(tree, 0x10, 0x30));
    for (size_t i = 0; i < 6; i++) /* rows of nodes that are gone are their callers' */
        ck_assert_uint_lt(tree->row_node[i], 5);
    ck_assert_ptr_eq(&tree->node[tree->row_node[4]], AT(tree, 0x10, 0x20, 0x30));
    analyze_tree_fold(tree, 1);
    ck_assert_uint_eq(tree->n_folded, 8);
    ck_assert_uint_eq(tree->node[0].folded, 8);
    ck_assert_mem_eq(&tree->node[0].line.cost, &whole, sizeof whole);
    analyze_tree_free(tree);
}

TEST(a_frame_that_calls_itself_is_counted_once)
{
    put_usual();
    for (int flat = 0; flat < 2; flat++) {
        size_t n;
        struct analyze_tree *tree = make((struct analyze_tree_options){.flat = flat});
        struct analyze_line *line = analyze_tree_inclusive(tree, &n);
        ck_assert_ptr_nonnull(line);
        for (size_t i = 0; i < n; i++) {
            const uint64_t all = line[i].offset == 0x10   ? 30
                                 : line[i].offset == 0x20 ? 22
                                 : line[i].offset == 0x30 ? flat ? 12 : 28
                                 : line[i].offset == 0x40 ? 16
                                 : line[i].offset == 0x50 ? 32
                                                          : 1;
            ck_assert_uint_eq(line[i].cost.calls, all);
        }
        ck_assert_uint_eq(n, 6);
        if (flat) /* back to the 0x20 that is there */
            ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x40)->line.cost.calls, 16);
        free(line);
        analyze_tree_free(tree);
    }
}

TEST(without_levels_each_frame_is_there_once)
{
    put_usual();
    struct analyze_tree *tree = make((struct analyze_tree_options){.combine = false});
    struct analyze_tree *flat = analyze_tree_flatten(tree);
    ck_assert_ptr_nonnull(flat);
    ck_assert_uint_eq(flat->n_nodes, 7);
    ck_assert_mem_eq(&flat->node[0].all, &tree->node[0].all, sizeof flat->node[0].all);
    analyze_tree_free(tree);
    static const struct {
        uint64_t offset, self, all;
    } want[] = {{0x10, 0, 30}, {0x20, 2, 22}, {0x30, 12, 28}, {0x40, 16, 16}, {0x50, 32, 32}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct analyze_tree_node *node = AT(flat, want[i].offset);
        ck_assert_ptr_nonnull(node);
        ck_assert_uint_eq(node->line.cost.calls, want[i].self);
        ck_assert_uint_eq(node->all.calls, want[i].all);
        ck_assert_uint_eq(node->depth, 1);
    }
    analyze_tree_free(flat);
}

TEST(what_is_called_through_a_line_is_not_its_own)
{
    put_usual();
    analyze_call_through(analysis);
    ck_assert_uint_eq(analysis->n_through, 3);
    for (size_t i = 0; i < analysis->n_through; i++) {
        const struct analyze_line *line = &analysis->through[i];
        /* 0x20 has 2 of 22 calls itself, 0x30 has 12 of 28. */
        ck_assert_uint_eq(line->cost.calls, line->offset == 0x10   ? 30
                                            : line->offset == 0x20 ? 20
                                                                   : 16);
        ck_assert_uint_eq(line->cost.backward_ns, 2 * line->cost.calls);
    }
}

static bool is_exp(void *payload, const struct analyze_line *line)
{
    (void)payload;
    return line->ops.n > 0 && strcmp(line->ops.name[0], "exp") == 0;
}

TEST(only_rows_of_lines_that_are_kept_were_called)
{
    put_usual();
    analyze_select(analysis, is_exp, NULL);
    analyze_call_through(analysis);
    ck_assert_uint_eq(analysis->n_through, 3);
    for (size_t i = 0; i < analysis->n_through; i++)
        ck_assert_uint_eq(analysis->through[i].cost.calls, 16);
}

TEST(an_inverted_tree_begins_with_what_records)
{
    put_usual();
    struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = true});
    ck_assert_uint_eq(AT(tree, 0x30)->all.calls, 12);
    ck_assert_str_eq(AT(tree, 0x30)->line.ops.name[0], "tanh");
    ck_assert_uint_eq(AT(tree, 0x30, 0x10)->all.calls, 8);
    ck_assert_uint_eq(AT(tree, 0x30, 0x20, 0x10)->all.calls, 4);
    ck_assert_uint_eq(AT(tree, 0x40, 0x20, 0x30, 0x20, 0x10)->all.calls, 16);
    analyze_tree_free(tree);
}

static bool has_offset(void *payload, const struct analyze_line *line)
{
    return !line->own && line->offset == *(const uint64_t *)payload;
}

TEST(focus_and_ignore_ask_for_any_frame)
{
    uint64_t twenty = 0x20;
    put_usual();
    struct analyze_tree *tree =
        make((struct analyze_tree_options){.focus = has_offset, .payload = &twenty});
    ck_assert_uint_eq(tree->node[0].all.calls, 22);
    ck_assert_uint_eq(tree->n_left_out, 3);
    analyze_tree_free(tree);
    tree = make((struct analyze_tree_options){.ignore = has_offset, .payload = &twenty});
    ck_assert_uint_eq(tree->node[0].all.calls, 41);
    analyze_tree_free(tree);
}

TEST(a_path_may_refer_to_anything)
{
    begin();
    /* To itself, to a later one, to one that is not there; ids twice, backwards and 0. */
    put_paths((const struct path[]){{1, 1, 0x10},
                                    {2, 3, 0x20},
                                    {3, 2, 0x30},
                                    {9, 7, 0x90},
                                    {9, 1, 0x91},
                                    {4, 1, 0x40},
                                    {0, 0, 0x50},
                                    {UINT32_MAX, 9, 0x60}},
              8, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 1, 0x10, "a", 1);
    add(made, 3, 0x30, "b", 2);
    add(made, 9, 0x90, "c", 4);
    add(made, 4, 0x40, "d", 8);
    add(made, UINT32_MAX, 0x60, "e", 16);
    add(made, 77, 0x70, "f", 32);
    maker_put_ledger(&bytes, made);
    finish();
    for (int inverted = 0; inverted < 2; inverted++) {
        struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = inverted});
        ck_assert_uint_eq(tree->node[0].all.calls, 63);
        if (!inverted) {
            ck_assert_uint_eq(AT(tree, 0x10)->line.cost.calls, 1);
            ck_assert_uint_eq(AT(tree, 0x20, 0x30)->line.cost.calls, 2);
            ck_assert_uint_eq(AT(tree, 0x90, 0x60)->line.cost.calls, 16);
            ck_assert_uint_eq(AT(tree, 0x40)->line.cost.calls, 8);
            ck_assert_uint_eq(AT(tree, 0x70)->line.cost.calls, 32);
        }
        analyze_tree_free(tree);
    }
}

TEST(a_statement_is_below_the_call_that_opened_its_run)
{
    begin();
    put_paths((const struct path[]){{1, 0, 0x10}, {2, 1, 0x20}}, 2, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 2, 0x24, "statement", 4); /* its function is not known: below */
    maker_put_ledger(&bytes, made);
    finish();
    struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = false});
    ck_assert_uint_eq(AT(tree, 0x10, 0x20, 0x24)->line.cost.calls, 4);
    analyze_tree_free(tree);
}

TEST(outer_frames_that_were_cut_off_are_a_frame)
{
    begin();
    put_paths((const struct path[]){{1, 0, 0}, {2, 1, 0x20}}, 2, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 2, 0x20, "exp", 1);
    maker_put_ledger(&bytes, made);
    finish();
    struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = false});
    const struct analyze_tree_node *cut = &tree->node[tree->node[0].child];
    ck_assert(cut->cut);
    ck_assert_uint_eq(tree->node[cut->child].line.cost.calls, 1);
    analyze_tree_free(tree);
}

static void put_symbol(uint64_t pc, char *function)
{
    Tapescope__Symbol symbol = TAPESCOPE__SYMBOL__INIT, *list[] = {&symbol};
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    symbol.pc = pc;
    symbol.function = function;
    symbol.file = "/loop.c";
    symbol.module = "/loop";
    symbol.source_line = (uint32_t)pc;
    symbol.outermost = true;
    symbols.symbol = list;
    symbols.n_symbol = 1;
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
}

TEST(threads_of_a_parallel_loop_are_below_what_began_it_unless_asked_apart)
{
    begin();
    put_symbol(0x10, "main");
    put_symbol(0x20, "main._omp_fn.0");
    put_paths((const struct path[]){{1, 0, 0x10}, {2, 1, 0x20}, {3, 0, 0x20}}, 3, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    add(made, 2, 0x20, "exp", 3);
    add(made, 3, 0x20, "exp", 5);
    maker_put_ledger(&bytes, made);
    finish();
    for (int apart = 0; apart < 2; apart++) {
        analysis->threads = apart;
        struct analyze_tree *tree = make((struct analyze_tree_options){.inverted = false});
        ck_assert_uint_eq(tree->n_nodes, apart ? 4 : 3);
        for (uint32_t i = 1; i < tree->n_nodes; i++)
            if (strcmp(tree->node[i].line.function, "main") == 0)
                ck_assert_uint_eq(tree->node[i].all.calls, apart ? 3 : 8);
        analyze_tree_free(tree);
    }
}

TEST(a_path_of_many_frames_ends_somewhere)
{
    enum { FRAMES = 6000 };
    begin();
    bytes.n_frames = 0;
    for (uint32_t i = 0; i < FRAMES; i += MOST_PATHS) {
        struct path path[MOST_PATHS];
        for (uint32_t k = 0; k < MOST_PATHS; k++)
            path[k] = (struct path){i + k + 1, i + k, 0x1000 + i + k};
        bytes.n_frames = 0; /* where they begin does not matter here */
        put_paths(path, MOST_PATHS, 0);
    }
    struct maker_ledger *made = maker_new_ledger(1);
    for (uint32_t i = 0; i < 8; i++)
        add(made, FRAMES - i, 0x1000 + FRAMES - i - 1, "exp", 1);
    maker_put_ledger(&bytes, made);
    finish();
    for (int how = 0; how < 4; how++) {
        struct analyze_tree *tree =
            make((struct analyze_tree_options){.inverted = how & 1, .flat = how & 2});
        ck_assert_uint_eq(tree->node[0].all.calls, 8);
        ck_assert_uint_lt(tree->n_nodes, 8 * FRAMES);
        analyze_tree_free(tree);
    }
}

/* ---- the report ---- */

static char *text;
static size_t length;

static void print(struct analyze_tree_options how, struct report_tree_options look, unsigned width,
                  bool exact, bool json)
{
    struct analyze_tree *tree = make(how);
    free(text);
    text = NULL;
    struct report_style style = {.width = width, .exact = exact, .json = json};
    style.out = open_memstream(&text, &length);
    look.inverted = how.inverted;
    report_tree(tree, &look, &style);
    fclose(style.out);
    analyze_tree_free(tree);
}

static unsigned widest(void)
{
    unsigned most = 0, n = 0;
    const char *end = strstr(text, " sites are without"); /* a note, not cut */
    for (const char *c = text; *c && c + 1 != end; c++) {
        n = *c == '\n' ? 0 : n + 1;
        most = n > most ? n : most;
    }
    return most;
}

static unsigned count_lines(void)
{
    unsigned n = 0;
    for (const char *c = text; *c; c++)
        n += *c == '\n';
    return n;
}

TEST(the_tree_fits_and_says_the_sums)
{
    const struct analyze_tree_options how = {.inverted = false};
    put_usual();
    for (unsigned width = 40; width <= 200; width += 40) {
        print(how, (struct report_tree_options){.max_depth = 0}, width, false, false);
        ck_assert_uint_le(widest(), width);
        ck_assert_ptr_nonnull(strstr(text, "(all)"));
        ck_assert_ptr_nonnull(strstr(text, "(tape) padding"));
    }
    print(how, (struct report_tree_options){.max_depth = 0}, 80, true, false);
    ck_assert_ptr_nonnull(strstr(text, " 100%   189    0      63      126  630    63 (all)\n"));
    ck_assert_uint_eq(count_lines(), 9 + 2); /* nodes, heading, sites without lines */
    free(text);
    text = NULL;
}

TEST(what_is_shown_can_be_limited_and_ordered)
{
    const struct analyze_tree_options how = {.inverted = false};
    put_usual();
    print(how, (struct report_tree_options){.max_depth = 1}, 80, false, false);
    ck_assert_ptr_nonnull(strstr(text, "... 5 more nodes, counted in those above.\n"));
    print(how, (struct report_tree_options){.min_count = 17}, 80, false, false);
    ck_assert_ptr_nonnull(strstr(text, "... 4 more nodes"));
    /* 8 calls of 30 are no more than 3 times the root of 30, 20 of 22 are. */
    print(how, (struct report_tree_options){.noise_floor = 3}, 80, false, false);
    ck_assert_ptr_nonnull(strstr(text, "... 2 more nodes"));
    print(how, (struct report_tree_options){.order = REPORT_TREE_BY_CALLS}, 80, true, false);
    ck_assert_ptr_nonnull(strstr(text, "+0x50"));
    ck_assert(strstr(text, "+0x50") < strstr(text, "+0x10"));
    print(how, (struct report_tree_options){.order = REPORT_TREE_BY_SOURCE}, 80, true, false);
    print(how, (struct report_tree_options){.metric = REPORT_SORT_TAPE}, 80, true, false);
    ck_assert_ptr_nonnull(strstr(text, " 100%  630    0"));
    free(text);
    text = NULL;
}

TEST(the_json_has_every_node_with_its_parent)
{
    put_usual();
    print((struct analyze_tree_options){.inverted = false},
          (struct report_tree_options){.max_depth = 0}, 80, false, true);
    ck_assert_ptr_nonnull(strstr(text, "\"tapescope\": \"tree\""));
    unsigned nodes = 0;
    for (const char *c = text; (c = strstr(c, "\"depth\":")) != NULL; c++)
        nodes++;
    ck_assert_uint_eq(nodes, 9);
    ck_assert_ptr_nonnull(strstr(text, "\"paths_refused\": 7"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "\"warning\": \"too many call paths: 7 calls are shown without "
                                 "some of their callers\""));
    free(text);
    text = NULL;
}

RUN_TESTS(NULL, teardown)
