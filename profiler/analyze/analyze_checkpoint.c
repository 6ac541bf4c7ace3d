/* analyze_checkpoint.c: see analyze_checkpoint.h.
 *
 * A function's frame is a node of the call tree together with the function that its lines are of.
 * What a frame has recorded in the trace is cut at its calls, and at the iterations of its loops:
 * rows that were met equally often belong to one loop. A frame (ad_frame_begin) of a part keeps
 * what is used after it in any of its repetitions.
 */
#include "analyze_checkpoint.h"

#include "analyze_merge.h"
#include "analyze_tree.h"
#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum {
    MOST_FRAMES = 48, /* those with the most bytes */
    MOST_LEVELS = 6,  /* loops of one frame */
    MOST_NEAR = 64,   /* frames that are looked at for one that has both of two statements */
    MOST_OUTPUTS = 64 /* of ad_checkpoint */
};
/* A frame with a smaller part of the bytes is not looked at. */
static const double LEAST_SHARE = 0.02;
/* The model is trusted where it is so near to what was measured. */
static const double MOST_OFF = 0.1;
/* Items and operands that the model goes through, in all. Frames come by their bytes, so that those
 * which are left out have the fewest. */
static const double MOST_WORK = 2e8;
/* What lowers the peak by less is no proposal; a frame may be needed at many places. */
static const double LEAST_GAIN = 0.02, LEAST_FRAME_GAIN = 0.05;

struct range {
    uint32_t from, to; /* items */
    uint32_t run;      /* the call that it is in */
};

struct finder {
    struct analyze_proposals *proposals;
    const struct analyze_result *analysis;
    struct analyze_trace trace;
    const struct analyze_tree *tree;
    uint32_t *node;     /* [items]: of the tree; NONE: none */
    uint32_t *above;    /* [nodes]: the node that calls it, as far as that is known or inferred */
    bool *is_inferred;  /* [nodes]: it is */
    uint32_t *depth;    /* [nodes]: how many are above */
    uint32_t *frame_of; /* [nodes] */
    struct analyze_parts parts;
    size_t room;
    struct range *range; /* of the candidate */
    size_t n_ranges, room_ranges;
    uint32_t n_runs; /* calls that they are in */
    double work;
    uint32_t *token; /* [items]: what repeats where a loop does, from 1 on; 0: nothing does */
    uint32_t n_tokens;
    uint32_t *count;          /* [tokens + 1]: of the frame that is looked at */
    uint32_t *first, n_first; /* items of the frame that begin an op or are a statement */
    struct base_table seen;   /* candidates, by a hash of their cuts */
    bool *stays;              /* [made]: the frame's end keeps it */
    bool *used;               /* [made]: by anything */
    uint32_t *nth;            /* [tokens + 1]: how often a part has had it so far */
    size_t rows_before;       /* rows of the tapes before this one */
};

/* ---- frames ---- */

struct checkpoint_frame {
    uint32_t parent; /* node; */
    const char *function;
    double bytes;
};

static int compare_frames(const void *x, const void *y)
{
    const struct checkpoint_frame *a = x, *b = y;
    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

static bool is_begin(const struct analyze_item *item)
{
    return item->kind == TRACE_VALUE || item->kind == TRACE_STATEMENT ||
           item->kind == TRACE_FUSED_LOOP;
}

static bool is_made(const struct analyze_item *item)
{
    return is_begin(item) || item->kind == TRACE_RECORD || item->kind == TRACE_BYTES;
}

static double item_bytes(const struct finder *f, const struct analyze_item *item)
{
    double bytes = (double)item->bytes;
    if (item->kind == TRACE_VALUE)
        bytes += (double)f->trace.made[item->made].buffer;
    return item->weight * bytes;
}

/* The node that a row is part of. */
static void find_nodes(struct finder *f)
{
    const struct read_profile *profile = f->analysis->profile;
    const struct read_tape *tape = f->trace.tape;
    size_t before = 0;
    for (size_t i = 0; &profile->tape[i] != tape; i++)
        before += profile->tape[i].n_rows;
    f->rows_before = before;
    f->node = base_calloc(f->trace.n_items + 1, sizeof *f->node);
    for (size_t i = 0; i < f->trace.n_items; i++) {
        const struct analyze_item *item = &f->trace.item[i];
        const bool known = item->row > 0 && is_made(item) && tape->row[item->row - 1].pc != 0;
        f->node[i] = known ? f->tree->row_node[before + item->row - 1] : NONE;
    }
}

/* ---- callers of statements ---- */

/* A run of statements has the path of its first one. The tree has statements of functions that were
 * called later below a node "(run)", with their callers unknown. Where such a function began
 * another run, its caller is known from there. Else the function is taken to be called from where
 * the statements before and behind it stand: from the innermost frame that has both. */

static bool is_run_node(const struct finder *f, uint32_t node)
{
    const struct analyze_line *line = &f->tree->node[node].line;
    return node != 0 && !line->file && line->function && strcmp(line->function, "(run)") == 0;
}

/* The outermost node of a function whose caller nobody saw. */
static bool is_apart(const struct finder *f, uint32_t node)
{
    return node != 0 && is_run_node(f, f->tree->node[node].parent);
}

static uint64_t function_key(const struct analyze_line *line)
{
    return base_hash(base_hash(2, (uint64_t)(uintptr_t)line->function),
                     (uint64_t)(uintptr_t)line->module);
}

/* What is known of a function: the node that calls it (NONE: none was seen), if it is one. */
struct caller {
    uint32_t above;
    bool several;
};

/* below_run: [nodes]. */
static void find_known_callers(struct finder *f, const bool *below_run)
{
    const struct analyze_tree *tree = f->tree;
    struct base_table functions = {0};
    struct caller *caller = base_calloc(tree->n_nodes + 1, sizeof *caller);
    size_t n = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const uint32_t parent = tree->node[i].parent;
        if (below_run[i] || !tree->node[i].line.function)
            continue;
        const uint64_t key = function_key(&tree->node[i].line);
        const int64_t at = base_table_find(&functions, key);
        if (at < 0) {
            caller[n] = (struct caller){.above = parent};
            base_table_add(&functions, key, n++);
        } else {
            caller[at].several |= caller[at].above != parent;
        }
    }
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const int64_t at =
            is_apart(f, i) ? base_table_find(&functions, function_key(&tree->node[i].line)) : -1;
        if (at >= 0 && !caller[at].several)
            f->above[i] = caller[at].above;
    }
    base_table_free(&functions);
    free(caller);
}

/* The node of the function whose caller is not known that this one is of; NONE: all are known. */
static uint32_t unknown_of(const struct finder *f, uint32_t node)
{
    for (; node != 0 && node != NONE; node = f->above[node])
        if (is_run_node(f, f->above[node]))
            return node;
    return NONE;
}

/* The node of a that is in the innermost frame which b is in as well; NONE: there is none. */
static uint32_t common_frame(const struct finder *f, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < MOST_NEAR && a != 0 && a != NONE; i++, a = f->above[a])
        for (uint32_t k = 0, up = b; k < MOST_NEAR && up != 0 && up != NONE; k++, up = f->above[up])
            if (f->above[a] == f->above[up] && f->tree->node[a].line.function &&
                f->tree->node[a].line.function == f->tree->node[up].line.function)
                return a;
    return NONE;
}

/* Frames that a function may be called from, and how many of its statements say so. */
struct vote {
    uint32_t function, above; /* a node of each */
    uint64_t n;
};

/* Each function whose caller is not known is called from the frame with the most votes. */
static void take_votes(struct finder *f, const struct vote *vote, size_t n)
{
    const struct analyze_tree *tree = f->tree;
    struct base_table functions = {0};
    size_t *most = base_calloc(n + 1, sizeof *most), n_functions = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = function_key(&tree->node[vote[i].function].line);
        const int64_t at = base_table_find(&functions, key);
        if (at < 0) {
            most[n_functions] = i;
            base_table_add(&functions, key, n_functions++);
        } else if (vote[i].n > vote[most[at]].n) {
            most[at] = i;
        }
    }
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        if (!is_apart(f, i) || !is_run_node(f, f->above[i]))
            continue;
        const int64_t at = base_table_find(&functions, function_key(&tree->node[i].line));
        f->is_inferred[i] = true;
        f->above[i] = at < 0 ? f->above[i] : vote[most[at]].above;
    }
    base_table_free(&functions);
    free(most);
}

static void infer_callers(struct finder *f)
{
    const struct analyze_tree *tree = f->tree;
    struct base_table votes = {0};
    struct vote *vote = NULL;
    size_t n = 0, room = 0;
    uint32_t before = NONE;
    for (size_t i = 0, from = 0; i < f->trace.n_items; i++) {
        if (f->node[i] == NONE || unknown_of(f, f->node[i]) != NONE)
            continue;
        const uint32_t above =
            before != NONE && i > from ? common_frame(f, before, f->node[i]) : NONE;
        for (size_t k = from; k < i && above != NONE; k++) {
            const uint32_t unknown = f->node[k] == NONE ? NONE : unknown_of(f, f->node[k]);
            if (unknown == NONE)
                continue;
            const uint64_t key =
                base_hash(base_hash(function_key(&tree->node[unknown].line), f->above[above]),
                          (uint64_t)(uintptr_t)tree->node[above].line.function);
            int64_t at = base_table_find(&votes, key);
            if (at < 0) {
                BASE_ARRAY_GROW(vote, n, &room);
                vote[n] = (struct vote){.function = unknown, .above = above};
                base_table_add(&votes, key, n);
                at = (int64_t)n++;
            }
            vote[at].n++;
        }
        before = f->node[i];
        from = i + 1;
    }
    take_votes(f, vote, n);
    base_table_free(&votes);
    free(vote);
}

static void find_statement_callers(struct finder *f)
{
    const size_t n = f->tree->n_nodes;
    bool *below_run = base_calloc(n + 1, sizeof *below_run);
    f->above = base_calloc(n + 1, sizeof *f->above);
    f->is_inferred = base_calloc(n + 1, sizeof *f->is_inferred);
    f->depth = base_calloc(n + 1, sizeof *f->depth);
    f->above[0] = NONE;
    for (uint32_t i = 1; i < n; i++) {
        f->above[i] = f->tree->node[i].parent;
        below_run[i] = is_run_node(f, i) || below_run[f->above[i]];
    }
    find_known_callers(f, below_run);
    infer_callers(f);
    /* What is known or inferred to call is itself below no "(run)". */
    for (int run = 0; run < 2; run++)
        for (uint32_t i = 1; i < n; i++)
            if (below_run[i] == (run == 1))
                f->depth[i] = f->depth[f->above[i]] + 1;
    free(below_run);
}

/* An op is known by its row; a statement by its line, since its row's path is that of the run. */
static void find_tokens(struct finder *f)
{
    struct base_table tokens = {0};
    f->token = base_calloc(f->trace.n_items + 1, sizeof *f->token);
    for (size_t i = 0; i < f->trace.n_items; i++) {
        const struct analyze_item *item = &f->trace.item[i];
        if (!is_begin(item) || item->row == 0)
            continue;
        const struct read_row *row = &f->trace.tape->row[item->row - 1];
        uint64_t key = base_hash(1, item->row);
        if (item->kind != TRACE_VALUE)
            key = base_hash(base_hash(base_hash(0, row->pc), row->line),
                            (uint64_t)(uintptr_t)row->op);
        int64_t at = base_table_find(&tokens, key);
        if (at < 0) {
            at = f->n_tokens++;
            base_table_add(&tokens, key, (size_t)at);
        }
        f->token[i] = (uint32_t)at + 1;
    }
    base_table_free(&tokens);
    f->count = base_calloc(f->n_tokens + 1, sizeof *f->count);
}

/* The frames with the most bytes; *n of them. */
static struct checkpoint_frame *find_frames(struct finder *f, size_t *n)
{
    const struct analyze_tree *tree = f->tree;
    struct base_table frames = {0};
    struct checkpoint_frame *frame = base_calloc(tree->n_nodes + 1, sizeof *frame);
    double all = 0;
    *n = 0;
    f->frame_of = base_calloc(tree->n_nodes + 1, sizeof *f->frame_of);
    for (size_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        const char *function = node->line.function;
        const uint64_t key = base_hash(base_hash(0, f->above[i]), (uint64_t)(uintptr_t)function);
        int64_t at = base_table_find(&frames, key);
        if (at < 0) {
            at = (int64_t)(*n)++;
            frame[at] = (struct checkpoint_frame){.parent = f->above[i], .function = function};
            base_table_add(&frames, key, (size_t)at);
        }
        f->frame_of[i] = (uint32_t)at;
    }
    for (size_t i = 0; i < f->trace.n_items; i++) {
        const double bytes = item_bytes(f, &f->trace.item[i]);
        if (f->node[i] == NONE)
            continue;
        all += bytes;
        for (uint32_t node = f->node[i]; node != 0 && node != NONE; node = f->above[node])
            frame[f->frame_of[node]].bytes += bytes;
    }
    base_table_free(&frames);
    qsort(frame, *n, sizeof *frame, compare_frames);
    while (*n > MOST_FRAMES || (*n > 0 && frame[*n - 1].bytes < LEAST_SHARE * all))
        --*n;
    return frame;
}

static bool is_in_frame(const struct finder *f, const struct checkpoint_frame *frame, uint32_t item)
{
    const struct analyze_tree *tree = f->tree;
    for (uint32_t node = f->node[item]; node != 0 && node != NONE; node = f->above[node])
        if (f->above[node] == frame->parent && tree->node[node].line.function &&
            tree->node[node].line.function == frame->function)
            return true;
    return false;
}

/* ---- candidates ---- */

static void range_add(struct finder *f, uint32_t from, uint32_t to, uint32_t run)
{
    while (to > from && !is_made(&f->trace.item[to - 1]))
        to--; /* what releases after it is not part of it */
    if (to == from)
        return;
    BASE_ARRAY_GROW(f->range, f->n_ranges, &f->room_ranges);
    f->range[f->n_ranges++] = (struct range){from, to, run};
}

/* Makes parts of `each` ranges. */
static void parts_make(struct finder *f, uint32_t each)
{
    uint32_t n = 0, in_part = 0, run = NONE;
    memset(f->parts.of, 0, f->trace.n_items * sizeof *f->parts.of);
    for (size_t i = 0; i < f->n_ranges; i++) {
        const struct range *range = &f->range[i];
        const bool follows = i > 0 && run == range->run && in_part < each;
        if (!follows) {
            n++;
            in_part = 0;
        }
        const uint32_t from = follows ? f->range[i - 1].to : range->from;
        for (uint32_t k = from; k < range->to; k++)
            f->parts.of[k] = n;
        in_part++;
        run = range->run;
    }
    f->parts.n = n;
}

/* The innermost node that all of the ranges are below. */
static uint32_t common_node(const struct finder *f)
{
    uint32_t common = NONE;
    for (size_t i = 0; i < f->n_ranges; i++)
        for (uint32_t k = f->range[i].from; k < f->range[i].to; k++) {
            uint32_t node = f->node[k];
            if (node == NONE || !is_begin(&f->trace.item[k])) /* the record of the next run */
                continue;
            if (common == NONE)
                common = node;
            while (node != common) {
                if (f->depth[node] >= f->depth[common])
                    node = f->above[node];
                else
                    common = f->above[common];
            }
        }
    return common;
}

/* The line of an item right below a node; NONE: it is elsewhere. */
static uint32_t line_below(const struct finder *f, uint32_t item, uint32_t above)
{
    uint32_t node = f->node[item];
    while (node != NONE && node != 0 && f->above[node] != above)
        node = f->above[node];
    return node == 0 ? NONE : node;
}

/* Statements whose caller is not known: from the first line of a part to its last one. */
static bool place_span(const struct finder *f, struct analyze_proposal *p)
{
    const struct analyze_tree *tree = f->tree;
    const struct range *middle = &f->range[f->n_ranges / 2];
    uint32_t first = NONE, last = NONE;
    bool run = false;
    for (size_t k = 0; k < f->n_ranges; k++)
        for (uint32_t i = f->range[k].from; i < f->range[k].to; i++)
            for (uint32_t up = f->node[i]; up != 0 && up != NONE && !run; up = f->above[up])
                run = f->is_inferred[up];
    for (uint32_t i = middle->from; i < middle->to; i++) {
        first = first == NONE ? f->node[i] : first;
        last = f->node[i] == NONE ? last : f->node[i];
    }
    if (!run || first == NONE)
        return false;
    p->line = tree->node[first].line;
    p->last_line = tree->node[last].line.line;
    p->last_function = tree->node[last].line.function;
    return true;
}

/* Says where the candidate stands: lines of a function, or all of its calls. */
static void proposal_place(const struct finder *f, struct analyze_proposal *p)
{
    const struct analyze_tree *tree = f->tree;
    uint32_t above = common_node(f), lines = 0;
    if (place_span(f, p))
        return;
    size_t elsewhere = 0;
    bool itself = false;
    for (size_t i = 0; i < f->trace.n_items; i++)
        itself |= f->parts.of[i] > 0 && is_begin(&f->trace.item[i]) && f->node[i] == above;
    if (above != NONE && itself)
        above = f->above[above];
    for (uint32_t i = 0; i < f->trace.n_items && above != NONE; i++) {
        const bool is_in = f->parts.of[i] > 0 && is_begin(&f->trace.item[i]);
        const uint32_t node = is_in ? line_below(f, i, above) : NONE;
        if (node == NONE)
            continue;
        const struct analyze_line *line = &tree->node[node].line;
        const uint32_t last = p->last_line;
        if (lines++ == 0 || line->line < p->line.line)
            p->line = *line;
        p->last_line = line->line > last ? line->line : last;
    }
    for (uint32_t i = 0; i < f->trace.n_items && above != NONE; i++) {
        /* A trace that is cut begins within a call. */
        const bool cut =
            f->trace.is_cut && i < f->range[0].from && f->trace.item[i].kind != TRACE_VALUE;
        const uint32_t node = f->parts.of[i] == 0 && !cut ? line_below(f, i, above) : NONE;
        elsewhere += node != NONE && tree->node[node].line.function == p->line.function;
    }
    if (elsewhere > 0 || lines == 0 || !p->line.function || strcmp(p->line.function, "main") == 0)
        return;
    p->callee = p->line.function;
    if (p->line.function_line > 0)
        p->line.line = p->last_line = p->line.function_line;
}

/* ---- times ---- */

/* What a statement takes beside its own time. In a checkpoint: the first call has constants, and
 * the second one operands of before. In a section: likewise, and its end copies the statements and
 * sweeps them. Measured (Zen 3): 14 to 19 ns, and 22 to 24. */
static const double CHECKPOINT_NS = 17, SECTION_NS = 23;

/* The forward time of the tape's statements, which looks at some of them are for all. */
struct looked {
    double ticks, bytes, looks;
    double model; /* what the corrected times of all lines add up to */
};

static bool is_statement(const struct read_row *row)
{
    return strcmp(row->op, "statement") == 0;
}

/* A line is expected in as many looks as are its part of the bytes. Few looks at it leave that as
 * it is; see read_estimate.c. */
static double line_model(const struct looked *all, const struct read_row *row)
{
    const double part = (double)row->record_bytes / all->bytes;
    return read_corrected(part * all->ticks, (double)row->forward_looks, part * all->looks);
}

static struct looked find_looked(const struct read_tape *tape)
{
    struct looked all = {0};
    for (size_t i = 0; i < tape->n_rows; i++)
        if (is_statement(&tape->row[i])) {
            all.ticks += (double)tape->row[i].estimated_forward_ticks;
            all.bytes += (double)tape->row[i].record_bytes;
            all.looks += (double)tape->row[i].forward_looks;
        }
    for (size_t i = 0; i < tape->n_rows && all.bytes > 0; i++)
        if (is_statement(&tape->row[i]))
            all.model += line_model(&all, &tape->row[i]);
    return all;
}

/* How much of each row the ranges are, by what the trace has of it: of an op's row; of a
 * statement's line, since its row's path is that of a run, and other runs have other rows. */
static double *find_shares(const struct finder *f)
{
    const struct read_tape *tape = f->trace.tape;
    uint32_t n_lines, *of = analyze_trace_lines(tape, &n_lines);
    double *share = base_calloc(tape->n_rows + 1, sizeof *share);
    double *all = base_calloc(n_lines + tape->n_rows + 1, sizeof *all);
    double *within = base_calloc(n_lines + tape->n_rows + 1, sizeof *within);
    for (uint32_t i = 0; i < tape->n_rows; i++)
        of[i] = is_statement(&tape->row[i]) ? of[i] : n_lines + i;
    for (size_t i = 0; i < f->trace.n_items; i++) {
        const struct analyze_item *item = &f->trace.item[i];
        if (!is_begin(item) || item->row == 0)
            continue;
        all[of[item->row - 1]]++;
        within[of[item->row - 1]] += f->parts.of[i] > 0;
    }
    for (size_t i = 0; i < tape->n_rows; i++)
        share[i] = all[of[i]] > 0 ? within[of[i]] / all[of[i]] : 0;
    free(all);
    free(within);
    free(of);
    return share;
}

/* The time of the ranges' ops and statements. */
static void proposal_cost(const struct finder *f, struct analyze_proposal *p)
{
    const struct read_profile *profile = f->analysis->profile;
    const struct read_tape *tape = f->trace.tape;
    const bool again = p->deed != ANALYZE_PREACCUMULATE; /* else nothing is computed again */
    if (profile->without_times)
        return;
    double *share = find_shares(f);
    double ticks = 0, estimated = 0, looks = 0, more_ns = 0;
    const struct looked looked = find_looked(tape);
    p->cost_known = true;
    for (size_t i = 0; i < tape->n_rows; i++) {
        const struct read_row *row = &tape->row[i];
        if (!(share[i] > 0))
            continue;
        if (is_statement(row)) {
            p->cost_is_estimate = true;
            p->cost_known = p->cost_known && (!again || looked.model > 0);
            more_ns += share[i] * (double)row->calls * (again ? CHECKPOINT_NS : SECTION_NS);
            looks += share[i] * (double)row->forward_looks;
            if (again && looked.model > 0)
                estimated += share[i] * line_model(&looked, row) * (looked.ticks / looked.model);
        } else if (again) {
            /* What is only looked up, as a constant is, has no time of its own. */
            p->cost_known = p->cost_known && !(row->untimed && p->deed != ANALYZE_CHECKPOINT);
            ticks += share[i] * (double)row->forward_ticks;
        }
    }
    free(share);
    p->cost_ns = read_profile_ns(profile, read_whole(ticks + estimated)) + read_whole(more_ns);
    if (estimated > 0) {
        /* Of the time of all statements; and of the part of it that is these. */
        const double of_all = 1 / looked.looks,
                     of_part = (1 - estimated / looked.ticks) / (looks + (double)READ_MODEL_LOOKS);
        p->error_ns = read_profile_ns(profile, read_whole(estimated * sqrt(of_all + of_part)));
    }
}

/* What the model lacks was there before the trace, and stays. What it has too much of, it has of
 * everything. */
static uint64_t promised_peak(const struct analyze_proposals *all, uint64_t model)
{
    if (all->model_bytes <= all->peak_bytes)
        return model + (all->peak_bytes - all->model_bytes);
    return read_whole((double)model * ((double)all->peak_bytes / (double)all->model_bytes));
}

static int compare_borders(const void *x, const void *y)
{
    const struct analyze_border *a = x, *b = y;
    return a->inputs + a->outputs < b->inputs + b->outputs
               ? -1
               : a->inputs + a->outputs > b->inputs + b->outputs;
}

/* Weighs the ranges as parts of `each`. False: they cannot be that. */
static bool candidate_weigh(struct finder *f, struct analyze_proposal *p, uint32_t each)
{
    const struct analyze_proposals *all = f->proposals;
    f->work += 2 * (double)f->trace.n_items + (double)f->trace.n_refs + (double)f->trace.n_made;
    if (f->work > MOST_WORK && p->each > 0)
        return true;
    parts_make(f, each);
    f->parts.deed = p->deed;
    struct analyze_border *border = base_calloc(f->parts.n + 1, sizeof *border);
    const uint64_t model = analyze_trace_peak(&f->trace, &f->parts, border);
    qsort(border, f->parts.n, sizeof *border, compare_borders);
    const uint64_t inputs = border[f->parts.n / 2].inputs, outputs = border[f->parts.n / 2].outputs;
    free(border);
    if (p->deed == ANALYZE_CHECKPOINT && (inputs > MOST_OUTPUTS || outputs > MOST_OUTPUTS))
        return false;
    const uint64_t bytes = promised_peak(all, model);
    if (p->each > 0 && bytes >= p->peak_bytes)
        return true;
    p->peak_bytes = bytes;
    p->each = each;
    p->inputs = inputs;
    p->outputs = outputs;
    return true;
}

static uint64_t ranges_hash(const struct finder *f, enum analyze_deed deed)
{
    uint64_t h = base_hash(0, (uint64_t)deed);
    for (size_t i = 0; i < f->n_ranges; i++)
        h = base_hash(base_hash(h, f->range[i].from), f->range[i].to);
    return h;
}

static double times_of(const struct finder *f)
{
    double times = 0;
    for (size_t i = 0; i < f->n_ranges; i++) {
        double weight = INFINITY;
        for (uint32_t k = f->range[i].from; k < f->range[i].to; k++)
            if (f->trace.item[k].weight < weight)
                weight = f->trace.item[k].weight;
        times += weight;
    }
    return times;
}

/* The one that stands at the same place: cut elsewhere, or found by another way. */
static struct analyze_proposal *proposal_same(const struct analyze_proposals *all,
                                              const struct analyze_proposal *p)
{
    for (size_t i = 0; i < all->n; i++) {
        struct analyze_proposal *at = &all->proposal[i];
        if (at->deed == p->deed && at->callee == p->callee && at->line.file == p->line.file &&
            at->line.line == p->line.line && at->last_line == p->last_line)
            return at;
    }
    return NULL;
}

static void proposal_add(struct finder *f, const struct analyze_proposal *p)
{
    struct analyze_proposal *same = proposal_same(f->proposals, p);
    if (same) {
        const bool smaller = p->deed == ANALYZE_FRAME && p->times != same->times;
        if (smaller ? p->times > same->times : p->peak_bytes < same->peak_bytes)
            *same = *p;
        return;
    }
    BASE_ARRAY_GROW(f->proposals->proposal, f->proposals->n, &f->room);
    f->proposals->proposal[f->proposals->n++] = *p;
}

static void candidate_try(struct finder *f, bool is_loop, enum analyze_deed deed)
{
    struct analyze_proposal p = {.deed = deed, .is_loop = is_loop};
    const uint64_t key = ranges_hash(f, deed);
    const uint32_t n = (uint32_t)f->n_ranges;
    if (n == 0 || base_table_find(&f->seen, key) >= 0)
        return;
    base_table_add(&f->seen, key, 0);
    const uint32_t in_run = n / (f->n_runs > 0 ? f->n_runs : 1),
                   most = is_loop && in_run > 1 ? (in_run + 1) / 2 : 1;
    for (uint32_t each = 1; each <= most; each += each < 4 ? 1 : each)
        candidate_weigh(f, &p, each);
    const uint32_t root = (uint32_t)lround(sqrt(in_run));
    if (root > 1 && root < most)
        candidate_weigh(f, &p, root);
    if (p.each == 0 || (double)p.peak_bytes > (1 - LEAST_GAIN) * (double)f->proposals->peak_bytes)
        return;
    p.times = read_whole(times_of(f));
    parts_make(f, (uint32_t)p.each);
    proposal_cost(f, &p);
    proposal_place(f, &p);
    proposal_add(f, &p);
}

/* ---- parts in frames ---- */

static uint32_t frame_part_of(const struct finder *f, uint32_t made)
{
    const uint32_t item = f->trace.made[made].item;
    return item < f->trace.n_items ? f->parts.of[item] : 0;
}

static bool is_released_by_frame(const struct finder *f, uint32_t item)
{
    return f->trace.item[item].kind == TRACE_VALUE &&
           !f->trace.made[f->trace.item[item].made].given;
}

/* What is used behind its part. Of the last part it is not known, if nothing is made behind it. */
static void find_uses(struct finder *f)
{
    const struct analyze_trace *trace = &f->trace;
    uint32_t last = 0;
    memset(f->stays, 0, trace->n_made * sizeof *f->stays);
    memset(f->used, 0, trace->n_made * sizeof *f->used);
    for (uint32_t i = 0; i < trace->n_items; i++) {
        const struct analyze_item *item = &trace->item[i];
        last = is_made(item) ? f->parts.of[i] : last;
        for (uint32_t k = item->n_out; k < item->n_out + item->n_in; k++) {
            const uint32_t made = trace->ref[item->first + k] & ~ANALYZE_READS,
                           part = frame_part_of(f, made);
            f->used[made] = true;
            f->stays[made] |= part > 0 && part != f->parts.of[i];
        }
    }
    for (uint32_t made = 0; made < trace->n_made && last > 0; made++)
        f->stays[made] |= !f->used[made] && frame_part_of(f, made) == last;
}

/* The place of a value within its part, the same in each repetition; 0: it has none. */
static uint64_t place_in_part(struct finder *f, uint32_t item)
{
    const uint32_t token = f->token[item];
    return token == 0 ? 0 : base_hash(base_hash(3, token), f->nth[token]++) | 1;
}

/* The program names what stays, the same at each repetition: what is used of one stays of all. */
static void spread_uses(struct finder *f)
{
    struct base_table kept = {0};
    for (int run = 0; run < 2; run++) {
        memset(f->nth, 0, (f->n_tokens + 1) * sizeof *f->nth);
        for (uint32_t i = 0, part = 0; i < f->trace.n_items; i++) {
            for (uint32_t k = f->parts.of[i] != part ? i : 0; k-- > 0 && f->parts.of[k] == part;)
                f->nth[f->token[k]] = 0;
            part = f->parts.of[i];
            if (part == 0 || !is_released_by_frame(f, i))
                continue;
            bool *stays = &f->stays[f->trace.item[i].made];
            const uint64_t place = place_in_part(f, i);
            if (run == 0 && *stays && place != 0 && base_table_find(&kept, place) < 0)
                base_table_add(&kept, place, 0);
            *stays |= run == 1 && place != 0 && base_table_find(&kept, place) >= 0;
        }
    }
    memset(f->nth, 0, (f->n_tokens + 1) * sizeof *f->nth);
    base_table_free(&kept);
}

/* What to name at the frame's end, by the part that has most of it. */
static void frame_name_kept(const struct finder *f, struct analyze_proposal *p)
{
    const struct analyze_trace *trace = &f->trace;
    uint32_t *n = base_calloc(f->parts.n + 1, sizeof *n), most = 1;
    for (uint32_t i = 0; i < trace->n_items; i++) {
        const uint32_t part = f->parts.of[i];
        if (part == 0 || !is_released_by_frame(f, i) || !f->stays[trace->item[i].made])
            continue;
        if (++n[part] > n[most])
            most = part;
    }
    p->outputs = n[most];
    for (uint32_t i = 0; i < trace->n_items && p->n_kept < ANALYZE_KEPT; i++) {
        const struct analyze_item *item = &trace->item[i];
        if (f->parts.of[i] != most || !is_released_by_frame(f, i) || !f->stays[item->made] ||
            item->row == 0 || f->node[i] == NONE)
            continue;
        const struct analyze_line *line = &f->tree->node[f->node[i]].line;
        p->kept[p->n_kept++] =
            (struct analyze_kept){trace->tape->row[item->row - 1].op, line->file, line->line};
    }
    free(n);
}

/* Whether some sweep begins within the lines of the proposal, or what they call. */
static bool sweeps_within(const struct finder *f, const struct analyze_proposal *p)
{
    const struct read_tape *tape = f->trace.tape;
    for (size_t i = 0; i < tape->n_rows; i++) {
        const struct read_row *row = &tape->row[i];
        if (row->backward_calls == 0 || row->record_bytes > 0 || row->value_bytes > 0)
            continue; /* an op's */
        uint32_t node = f->tree->row_node[f->rows_before + i];
        if (node == NONE)
            return true;
        for (; node != 0 && node != NONE; node = f->above[node]) {
            const struct analyze_line *line = &f->tree->node[node].line;
            if (line->function && line->function == p->line.function &&
                (p->callee || (line->line >= p->line.line && line->line <= p->last_line)))
                return true;
        }
    }
    return false;
}

/* A sweep of the part's own comes before its frame's end. */
static void frames_end_behind_sweeps(struct finder *f)
{
    const uint32_t n = (uint32_t)f->trace.n_items;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t part = f->parts.of[i];
        if (part == 0 || (i + 1 < n && f->parts.of[i + 1] == part))
            continue;
        uint32_t to = i + 1;
        for (uint32_t k = to; k < n && f->parts.of[k] == 0 && !is_made(&f->trace.item[k]); k++)
            to = f->trace.item[k].kind == TRACE_SWEEP ? k + 1 : to;
        for (uint32_t k = i + 1; k < to; k++)
            f->parts.of[k] = part;
        i = to - 1;
    }
}

/* Parts end behind the last op. Other bytes may be of what begins when the part has ended. */
static void frames_trim(struct finder *f)
{
    for (uint32_t i = (uint32_t)f->trace.n_items, behind = 0; i-- > 0;) {
        const bool is_op =
            f->trace.item[i].kind == TRACE_VALUE || f->trace.item[i].kind == TRACE_RECORD;
        const uint32_t part = f->parts.of[i];
        if (part != behind && !is_op)
            f->parts.of[i] = 0;
        else
            behind = part;
    }
}

/* A turn ends with what each has: what comes then in some is behind the loop, as a rule. */
static void turns_trim(struct finder *f)
{
    for (size_t k = 0; k < f->n_ranges; k++) {
        struct range *range = &f->range[k];
        uint32_t to = range->to, end = range->to;
        while (to > range->from &&
               (!is_begin(&f->trace.item[to - 1]) || f->count[f->token[to - 1]] < f->n_ranges)) {
            to--;
            end = is_begin(&f->trace.item[to]) ? to : end;
        }
        range->to = to > range->from ? end : range->to;
    }
}

/* Whether each range is one turn of one loop, or one call: what it has several times is no more
 * than what it has once. Of several loops with as many turns, a range would have most turns; of
 * several calls in a row, a range would have all. */
static bool is_repetition(struct finder *f, bool is_loop)
{
    bool is_one = true, has_head = !is_loop;
    size_t once = 0, others = 0;
    for (size_t k = 0; k < f->n_ranges; k++) {
        const struct range *range = &f->range[k];
        for (uint32_t i = range->from; i < range->to; i++) {
            const uint32_t token = f->token[i], n = f->count[token], before = f->nth[token];
            if (!is_begin(&f->trace.item[i]))
                continue;
            f->nth[token]++;
            is_one = is_one && (!is_loop || n != f->n_ranges || before == 0);
            has_head = has_head || n == f->n_ranges;
            if (is_loop || before == 0) {
                const bool is_other = is_loop ? n < f->n_ranges : n > f->n_ranges;
                once += !is_other;
                others += is_other;
            }
        }
        for (uint32_t i = range->from; i < range->to; i++)
            f->nth[f->token[i]] = 0;
    }
    return is_one && has_head && others <= once;
}

/* Each range as a frame: a function's call or a loop's body, whose values' uses are known. */
static void candidate_frame(struct finder *f, bool is_loop)
{
    struct analyze_proposal p = {
        .deed = ANALYZE_FRAME, .is_loop = is_loop, .each = 1, .cost_known = true};
    uint64_t bytes = 0;
    if (is_loop)
        turns_trim(f);
    const uint64_t key = ranges_hash(f, ANALYZE_FRAME);
    if (!f->proposals->knows_uses || f->work > MOST_WORK || base_table_find(&f->seen, key) >= 0 ||
        !is_repetition(f, is_loop))
        return;
    base_table_add(&f->seen, key, 0);
    f->work += 6 * (double)f->trace.n_items + 2 * (double)f->trace.n_refs + (double)f->trace.n_made;
    parts_make(f, 1);
    frames_trim(f);
    find_uses(f);
    spread_uses(f);
    for (uint32_t i = 0; i < f->trace.n_items; i++)
        if (f->parts.of[i] > 0 && is_released_by_frame(f, i) && !f->stays[f->trace.item[i].made])
            bytes += f->trace.made[f->trace.item[i].made].buffer;
    if ((double)bytes < LEAST_FRAME_GAIN * (double)f->proposals->peak_bytes)
        return;
    proposal_place(f, &p);
    if (!is_loop && !p.callee)
        return;
    frame_name_kept(f, &p);
    if (sweeps_within(f, &p))
        frames_end_behind_sweeps(f);
    f->parts.deed = ANALYZE_FRAME;
    f->parts.stays = f->stays;
    p.peak_bytes = promised_peak(f->proposals, analyze_trace_peak(&f->trace, &f->parts, NULL));
    p.times = read_whole(times_of(f));
    if ((double)p.peak_bytes <= (1 - LEAST_FRAME_GAIN) * (double)f->proposals->peak_bytes)
        proposal_add(f, &p);
}

/* Ranges of ops, or of statements; of both there is no deed, and a leaf may be made in none. */
static void candidate_add(struct finder *f, bool is_loop)
{
    bool ops = false, statements = false, leaves = false;
    for (size_t i = 0; i < f->n_ranges; i++)
        for (uint32_t k = f->range[i].from; k < f->range[i].to; k++) {
            ops |= f->trace.item[k].kind == TRACE_VALUE;
            leaves |=
                f->trace.item[k].kind == TRACE_VALUE && f->trace.made[f->trace.item[k].made].leaf;
            statements |= f->trace.item[k].kind == TRACE_STATEMENT ||
                          f->trace.item[k].kind == TRACE_FUSED_LOOP;
        }
    if (ops && !statements && !leaves)
        candidate_try(f, is_loop, ANALYZE_CHECKPOINT);
    if (ops && !statements)
        candidate_frame(f, is_loop);
    if (statements && !ops) {
        candidate_try(f, is_loop, ANALYZE_REAL_CHECKPOINT);
        candidate_try(f, is_loop, ANALYZE_PREACCUMULATE);
    }
}

/* ---- calls and loops of a frame ---- */

/* What the frame has recorded, as stretches that nothing else interrupts; of[item]: stretch plus 1.
 * Returns how many. */
static uint32_t find_runs(struct finder *f, const struct checkpoint_frame *frame, uint32_t *of)
{
    uint32_t n = 0;
    bool within = false;
    memset(f->count, 0, (f->n_tokens + 1) * sizeof *f->count);
    f->n_first = 0;
    for (uint32_t i = 0; i < f->trace.n_items; i++) {
        const struct analyze_item *item = &f->trace.item[i];
        if (!is_begin(item)) { /* records and releases belong to what is before them */
            of[i] = within ? n : 0;
            continue;
        }
        const bool now = is_in_frame(f, frame, i);
        n += now && !within;
        within = now;
        of[i] = now ? n : 0;
        /* Where as many leaves are made as there are layers, they are no loop with them. */
        if (!now || (item->kind == TRACE_VALUE && f->trace.made[item->made].leaf))
            continue;
        f->count[f->token[i]]++;
        f->first[f->n_first++] = i;
    }
    return n;
}

static uint32_t frame_token(const struct finder *f, uint32_t k)
{
    return f->token[f->first[k]];
}

static bool is_level(const struct finder *f, uint32_t count, uint32_t level)
{
    return count == level || (f->trace.is_cut && (count + 1 == level || count == level + 1));
}

/* Where each stretch begins and ends, of what was met at least so often. */
static void find_ends(const struct finder *f, const uint32_t *of, uint32_t level, uint32_t n,
                      struct range *end)
{
    for (uint32_t i = 0; i < n; i++)
        end[i] = (struct range){NONE, 0, i + 1};
    for (uint32_t k = 0; k < f->n_first; k++) {
        struct range *at = &end[of[f->first[k]] - 1];
        if (f->count[frame_token(f, k)] + f->trace.is_cut < level)
            continue;
        if (at->from == NONE)
            at->from = f->first[k];
        uint32_t to = f->first[k] + 1;
        while (to < f->trace.n_items && !is_begin(&f->trace.item[to]))
            to++;
        at->to = to;
    }
}

/* Cuts before the level's first row; or behind its last, where an inner loop comes first. */
static void cut_loop(struct finder *f, const uint32_t *of, uint32_t level, uint32_t n_runs)
{
    uint32_t head = 0, tail = 0;
    bool inner = false;
    for (uint32_t k = 0; k < f->n_first; k++) {
        const uint32_t token = frame_token(f, k);
        if (!is_level(f, f->count[token], level)) {
            inner |= head == 0 && f->count[token] > level;
            continue;
        }
        if (head == token)
            break;
        if (head == 0)
            head = token;
        tail = token;
    }
    struct range *end = base_calloc(n_runs + 1, sizeof *end);
    find_ends(f, of, level, n_runs, end);
    uint32_t from = NONE, run = 0;
    f->n_ranges = 0;
    for (uint32_t k = 0; k < f->n_first; k++) {
        const uint32_t item = f->first[k], token = frame_token(f, k);
        if (of[item] != run) {
            if (from != NONE && run > 0)
                range_add(f, from, end[run - 1].to, run);
            run = of[item];
            from = inner ? end[run - 1].from : NONE;
        }
        if (!inner && token == head) {
            if (from != NONE)
                range_add(f, from, item, run);
            from = item;
        }
        if (inner && token == tail && from != NONE) {
            uint32_t to = item + 1;
            while (to < f->trace.n_items && !is_begin(&f->trace.item[to]))
                to++;
            range_add(f, from, to, run);
            from = k + 1 < f->n_first && of[f->first[k + 1]] == run &&
                           f->first[k + 1] < end[run - 1].to
                       ? f->first[k + 1]
                       : NONE;
        }
    }
    if (from != NONE && run > 0 && !inner)
        range_add(f, from, end[run - 1].to, run);
    free(end);
}

static int compare_counts(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* How often the frame's tokens were met, each number once; those of the most tokens where there are
 * too many: numbers of few are often those of branches. */
static uint32_t find_levels(const struct finder *f, uint32_t *level)
{
    uint32_t *all = base_calloc(f->n_tokens + 1, sizeof *all), n = 0, kept = 0;
    uint32_t of[MOST_LEVELS];
    for (size_t i = 1; i <= f->n_tokens; i++)
        if (f->count[i] > 1)
            all[n++] = f->count[i];
    qsort(all, n, sizeof *all, compare_counts);
    for (uint32_t i = 0; i < n;) {
        uint32_t to = i + 1, at = kept;
        while (to < n && is_level(f, all[to], all[i]))
            to++;
        for (uint32_t k = 0; at == MOST_LEVELS && k < kept; k++)
            if (of[k] < to - i && (at == MOST_LEVELS || of[k] < of[at]))
                at = k;
        if (at < MOST_LEVELS) {
            level[at] = all[i];
            of[at] = to - i;
            kept += at == kept;
        }
        i = to;
    }
    free(all);
    return kept;
}

static void look_at_frame(struct finder *f, const struct checkpoint_frame *frame)
{
    uint32_t *of = base_calloc(f->trace.n_items + 1, sizeof *of), level[MOST_LEVELS];
    const uint32_t n_runs = f->n_runs = find_runs(f, frame, of);
    /* A stretch with something that was met once in it is one call. */
    f->n_ranges = 0;
    uint32_t once = 0;
    for (uint32_t k = 0; k < f->n_first; k++)
        once += f->count[frame_token(f, k)] <= n_runs;
    for (uint32_t i = 0; (once > 0 || n_runs > 1) && i < f->trace.n_items;) {
        uint32_t to = i;
        while (to < f->trace.n_items && of[to] == of[i])
            to++;
        if (of[i] > 0)
            range_add(f, i, to, of[i]);
        i = to;
    }
    candidate_add(f, false);
    const uint32_t n = find_levels(f, level);
    for (uint32_t i = 0; i < n; i++) {
        cut_loop(f, of, level[i], n_runs);
        if (f->n_ranges > n_runs)
            candidate_add(f, true);
    }
    free(of);
}

/* ---- all of them ---- */

static int compare_proposals(const void *x, const void *y)
{
    const struct analyze_proposal *a = x, *b = y;
    const bool frame = a->deed == ANALYZE_FRAME;
    if (frame != (b->deed == ANALYZE_FRAME))
        return frame ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a->times > b->times ? -1 : a->times < b->times; /* the smaller parts */
}

/* Whether a has a lower peak than b at no more cost, as far as that is known. */
static bool is_dominated(const struct analyze_proposal *b, const struct analyze_proposal *a)
{
    if (a->peak_bytes > b->peak_bytes || (a->peak_bytes == b->peak_bytes && a > b))
        return false;
    if (b->deed == ANALYZE_FRAME)
        return a->deed == ANALYZE_FRAME;
    return !(b->cost_known && a->cost_known && a->cost_ns > b->cost_ns);
}

static void proposals_mark(struct analyze_proposals *all)
{
    if (all->n > 0)
        qsort(all->proposal, all->n, sizeof *all->proposal, compare_proposals);
    for (size_t i = 0; i < all->n; i++) {
        struct analyze_proposal *p = &all->proposal[i];
        p->is_best = true;
        for (size_t k = 0; k < all->n && p->is_best; k++)
            p->is_best = k == i || !is_dominated(p, &all->proposal[k]);
    }
}

void analyze_proposals_make(struct analyze_proposals *proposals,
                            const struct analyze_result *analysis, const struct analyze_tree *tree)
{
    const struct read_profile *profile = analysis->profile;
    *proposals = (struct analyze_proposals){0};
    if (profile->n_tapes == 0)
        return;
    const struct read_tape *tape = &profile->tape[analyze_peak_tape(profile)];
    struct finder f = {.proposals = proposals, .analysis = analysis};
    analyze_trace_make(&f.trace, tape);
    proposals->peak_bytes = tape->peak_bytes;
    proposals->is_traced = f.trace.n_items > 0;
    proposals->is_cut = f.trace.is_cut;
    proposals->is_hidden = f.trace.is_hidden;
    proposals->knows_uses = f.trace.has_uses && !f.trace.is_hidden && !f.trace.is_cut;
    for (size_t i = 0; i < f.trace.n_items && !proposals->has_ops; i++)
        proposals->has_ops = is_released_by_frame(&f, (uint32_t)i);
    proposals->model_bytes = analyze_trace_peak(&f.trace, NULL, NULL);
    const double off = fabs((double)proposals->model_bytes - (double)tape->peak_bytes);
    proposals->is_bound = f.trace.is_hidden || off > MOST_OFF * (double)tape->peak_bytes;
    struct analyze_tree *made =
        tree ? NULL : analyze_tree_make(analysis, &(struct analyze_tree_options){0});
    f.tree = tree ? tree : made;
    find_nodes(&f);
    find_statement_callers(&f);
    find_tokens(&f);
    f.parts.of = base_calloc(f.trace.n_items + 1, sizeof *f.parts.of);
    f.first = base_calloc(f.trace.n_items + 1, sizeof *f.first);
    f.stays = base_calloc(f.trace.n_made + 1, sizeof *f.stays);
    f.used = base_calloc(f.trace.n_made + 1, sizeof *f.used);
    f.nth = base_calloc(f.n_tokens + 1, sizeof *f.nth);
    size_t n_frames = 0;
    struct checkpoint_frame *frame = find_frames(&f, &n_frames);
    for (size_t i = 0; i < n_frames && f.work < MOST_WORK; i++)
        look_at_frame(&f, &frame[i]);
    proposals_mark(proposals);
    free(frame);
    free(f.node);
    free(f.above);
    free(f.is_inferred);
    free(f.depth);
    free(f.frame_of);
    free(f.parts.of);
    free(f.first);
    free(f.stays);
    free(f.used);
    free(f.nth);
    free(f.token);
    free(f.count);
    free(f.range);
    base_table_free(&f.seen);
    analyze_tree_free(made);
    analyze_trace_free(&f.trace);
}

void analyze_proposals_free(struct analyze_proposals *proposals)
{
    free(proposals->proposal);
    *proposals = (struct analyze_proposals){0};
}

/* A cost that is not known is more than any other. */
static bool is_cheaper(const struct analyze_proposal *p, const struct analyze_proposal *than)
{
    return p->cost_known != than->cost_known ? p->cost_known : p->cost_ns < than->cost_ns;
}

const struct analyze_proposal *analyze_proposals_fit(const struct analyze_proposals *proposals,
                                                     uint64_t budget)
{
    const struct analyze_proposal *best = NULL;
    for (size_t i = 0; i < proposals->n && !proposals->is_bound; i++) {
        const struct analyze_proposal *p = &proposals->proposal[i];
        if (p->peak_bytes <= budget && (!best || is_cheaper(p, best)))
            best = p;
    }
    return best;
}
