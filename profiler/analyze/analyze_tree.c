/* analyze_tree.c: rows to a tree of calls.
 *
 * See analyze_tree.h for the invariant.
 *
 * A row's path ends at the call that recorded it, which the row has as well, with the line that the
 * compiler gave. A row of statements is different: its path is that of the call that opened the
 * run, and its statement may stand in another function. It is put where its function is on that
 * path, or else below its end.
 */
#include "analyze_tree.h"

#include "analyze_frames.h"
#include "analyze_join.h"
#include "analyze_merge.h"
#include "analyze_places.h"
#include "analyze_samples.h"
#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* Frames of one path; what a forged profile has beyond is cut off. NODES: for each path and row. */
enum {
    MOST_DEPTH = 4096,
    NODES = 64,
    LEAST_NODES = 1 << 16,
    MOST_NODES = 1 << 20,
    NEAR = 256,
    MOST_OWN = 64
};

/* What is known of a call path, by its place in the profile. */
struct tree_known {
    uint32_t parent; /* place, or ANALYZE_NO_NODE */
    uint32_t depth;
    uint32_t node; /* of the tree, ANALYZE_NO_NODE: not asked for yet */
    bool focus, ignore;
    bool opens;        /* a run of statements and fused loops, which all have this path */
    bool seen, begins; /* see know_loops() */
};

struct tree_builder {
    struct analyze_tree *tree;
    const struct read_profile *profile;
    const struct analyze_tree_options *options;
    struct analyze_frames frames;
    struct tree_known *known;
    struct base_table nodes; /* by {parent, frame} */
    struct base_table parts; /* by {node, phase, thread} */
    size_t room, room_parts, most;
    uint32_t own[MOST_OWN], n_own; /* nodes of the tape's own rows */
    uint32_t idle;                 /* node of what analyze_line.idle is; 0: not there yet */
};

static struct analyze_line tree_line_of(const struct analyze_frame *frame)
{
    const struct symbols_place *place = &frame->place;
    return (struct analyze_line){
        .own = false,
        .file = place->file,
        .function = place->function,
        .module = place->module,
        .line = place->line,
        .function_line = place->function_line,
        .offset = place->offset,
    };
}

static uint32_t add_node(struct tree_builder *m, uint32_t parent, uint32_t frame,
                         struct analyze_line line, bool cut)
{
    struct analyze_tree *tree = m->tree;
    struct analyze_tree_node *node = BASE_ARRAY_GROW(tree->node, tree->n_nodes, &m->room);
    uint32_t i = (uint32_t)tree->n_nodes++;
    node[i] = (struct analyze_tree_node){.line = line,
                                         .parent = parent,
                                         .child = ANALYZE_NO_NODE,
                                         .next = ANALYZE_NO_NODE,
                                         .frame = frame,
                                         .cut = cut};
    if (parent != ANALYZE_NO_NODE) {
        node[i].next = node[parent].child;
        node[parent].child = i;
        node[i].depth = node[parent].depth + 1;
    }
    return i;
}

/* The parent's node of that frame; found or made. */
static uint32_t tree_child_of(struct tree_builder *m, uint32_t parent, uint32_t frame,
                              struct analyze_line line, bool cut)
{
    struct analyze_tree *tree = m->tree;
    const uint64_t key = (uint64_t)parent << 32 | frame;
    const int64_t known = base_table_find(&m->nodes, key);
    if (known >= 0)
        return (uint32_t)known;
    if (tree->n_nodes >= m->most || tree->node[parent].depth >= MOST_DEPTH) {
        tree->too_large = true;
        return parent;
    }
    base_table_add(&m->nodes, key, tree->n_nodes);
    return add_node(m, parent, frame, line, cut);
}

/* Goes from a node to what a frame is below it. */
static uint32_t tree_descend(struct tree_builder *m, uint32_t node, uint32_t frame)
{
    const struct analyze_frame *at = &m->frames.frame[frame];
    if (at->hidden)
        return node;
    for (uint32_t up = node; m->options->flat && up != 0; up = m->tree->node[up].parent)
        if (m->tree->node[up].frame == frame)
            return up;
    return tree_child_of(m, node, frame, tree_line_of(at), at->cut);
}

/* The frames of an address; those that are new are looked at by the filters. */
static struct analyze_chain chain_of(struct tree_builder *m, uint64_t pc, uint32_t line, bool own)
{
    const struct analyze_tree_options *options = m->options;
    size_t before = m->frames.n_frames;
    const struct analyze_chain *chain = analyze_frames_of(&m->frames, pc, line, own);
    for (size_t i = before; i < m->frames.n_frames; i++) {
        struct analyze_frame *frame = &m->frames.frame[i];
        struct analyze_line place = tree_line_of(frame);
        frame->focus = options->focus && options->focus(options->payload, &place);
        frame->ignore = options->ignore && options->ignore(options->payload, &place);
    }
    return *chain;
}

static uint32_t frame_of(const struct tree_builder *m, const struct analyze_chain *chain,
                         uint32_t i)
{
    return m->frames.list[chain->first + i];
}

/* From the outermost function of a chain to the innermost, or the other way. */
static uint32_t descend_chain(struct tree_builder *m, uint32_t node,
                              const struct analyze_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++)
        node =
            tree_descend(m, node, frame_of(m, chain, m->options->inverted ? i : chain->n - 1 - i));
    return node;
}

static void tree_see(struct tree_known *known, const struct tree_builder *m,
                     const struct analyze_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        known->focus |= m->frames.frame[frame_of(m, chain, i)].focus;
        known->ignore |= m->frames.frame[frame_of(m, chain, i)].ignore;
    }
}

/* A path that a statement has, or that ends at the very call of one of its rows, is that of a run,
 * if other rows have it, too. An op's path ends at its own call, or further outwards where there
 * was no room for more. */
static void know_runs(struct tree_builder *m)
{
    const struct read_profile *profile = m->profile;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++) {
            const struct read_row *row = &profile->tape[i].row[j];
            const size_t at = row->path ? read_profile_path(profile, row->path) : SIZE_MAX;
            if (at != SIZE_MAX &&
                (strcmp(row->op, "statement") == 0 || profile->call_path[at].pc == row->pc))
                m->known[at].opens = true;
        }
}

/* A function that a compiler makes of a parallel loop's body. */
static bool tree_is_loop(const struct analyze_frame *frame)
{
    const struct symbols_place *place = &frame->place;
    return place->function && place->module &&
           (strstr(place->function, "._omp_fn.") || strstr(place->function, ".omp_outlined"));
}

/* The key of such a function, where the address is in one; 0. */
static uint64_t tree_loop_of(const struct tree_builder *m, const struct analyze_chain *chain)
{
    if (chain->n == 0)
        return 0;
    const struct analyze_frame *frame = &m->frames.frame[frame_of(m, chain, chain->n - 1)];
    return tree_is_loop(frame) ? base_hash(base_hash_text(frame->place.function),
                                           base_hash_text(frame->place.module))
                               : 0;
}

static bool is_seen(const struct tree_builder *m, const struct analyze_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct analyze_frame *frame = &m->frames.frame[frame_of(m, chain, i)];
        if (!frame->hidden && !frame->cut)
            return true;
    }
    return false;
}

/* The threads of a parallel loop begin with its function, and nobody calls it there. It is called
 * where the thread that began the loop calls it, which does its share as well. known->begins: of
 * paths whose outermost frame that is seen is such a function. Those are never callers here, so
 * that no path leads back to itself. */
static void know_loops(struct tree_builder *m)
{
    const struct read_profile *profile = m->profile;
    struct base_table callers = {0}; /* of functions of loops: a path of a caller */
    bool any = false;
    for (size_t i = 0; i < m->frames.n_frames && !any && !m->tree->analysis->threads; i++)
        any = tree_is_loop(&m->frames.frame[i]);
    for (size_t i = 0; i < profile->n_call_paths && any; i++) {
        const struct analyze_chain chain = chain_of(m, profile->call_path[i].pc, 0, false);
        const uint32_t parent = m->known[i].parent;
        const bool below = parent != ANALYZE_NO_NODE && m->known[parent].seen;
        const uint64_t loop = tree_loop_of(m, &chain);
        m->known[i].seen = below || is_seen(m, &chain);
        m->known[i].begins = below ? m->known[parent].begins : loop != 0;
        if (loop != 0 && below && !m->known[i].begins && base_table_find(&callers, loop) < 0)
            base_table_add(&callers, loop, parent);
    }
    for (size_t i = 0; i < profile->n_call_paths && callers.n > 0; i++) {
        const uint32_t parent = m->known[i].parent;
        if (!m->known[i].begins || (parent != ANALYZE_NO_NODE && m->known[parent].seen))
            continue;
        const struct analyze_chain chain = chain_of(m, profile->call_path[i].pc, 0, false);
        const int64_t caller = base_table_find(&callers, tree_loop_of(m, &chain));
        if (caller >= 0)
            m->known[i].parent = (uint32_t)caller;
    }
    base_table_free(&callers);
}

/* Parents come before their children: one pass finds what holds of each path. */
static void know_paths(struct tree_builder *m)
{
    const struct read_profile *profile = m->profile;
    m->known = base_calloc(profile->n_call_paths + 1, sizeof *m->known);
    for (size_t i = 0; i < profile->n_call_paths; i++) {
        const struct read_path *path = &profile->call_path[i];
        struct tree_known *known = &m->known[i];
        size_t parent = path->parent ? read_profile_path(profile, path->parent) : SIZE_MAX;
        *known = (struct tree_known){.parent = ANALYZE_NO_NODE, .node = ANALYZE_NO_NODE};
        if (parent < i && m->known[parent].depth < MOST_DEPTH) {
            *known = m->known[parent];
            known->parent = (uint32_t)parent;
            known->depth++;
        }
        struct analyze_chain chain = chain_of(m, path->pc, 0, false);
        tree_see(known, m, &chain);
        /* The outer paths have their nodes already, if they have any frame. */
        known->node = ANALYZE_NO_NODE;
    }
}

/* The node of a path, all of its frames included; not of an inverted tree. */
static uint32_t node_of_path(struct tree_builder *m, uint32_t place)
{
    uint32_t pending[2 * MOST_DEPTH + 2], n = 0, node = 0; /* of a loop's thread, and its caller */
    for (; place != ANALYZE_NO_NODE; place = m->known[place].parent) {
        if (m->known[place].node != ANALYZE_NO_NODE) {
            node = m->known[place].node;
            break;
        }
        pending[n++] = place;
    }
    while (n > 0) {
        place = pending[--n];
        struct analyze_chain chain = chain_of(m, m->profile->call_path[place].pc, 0, false);
        node = descend_chain(m, node, &chain);
        m->known[place].node = node;
    }
    return node;
}

static bool same_function(const struct analyze_frame *a, const struct analyze_frame *b)
{
    return a->place.function && b->place.function &&
           strcmp(a->place.function, b->place.function) == 0 && a->place.module &&
           b->place.module && strcmp(a->place.module, b->place.module) == 0;
}

/* The path that leads to a row's own frame. A run of statements has one path, that of its first:
 * the others, and its fused loops, may be of functions that were called later, whose callers nobody
 * saw. Of those *apart is true, and the path is the outermost frame, which calls all of its
 * thread's. */
static uint32_t path_to_row(struct tree_builder *m, const struct read_row *row,
                            const struct analyze_chain *own, bool *apart)
{
    size_t found = row->path ? read_profile_path(m->profile, row->path) : SIZE_MAX;
    *apart = false;
    if (found == SIZE_MAX || own->n == 0)
        return ANALYZE_NO_NODE;
    uint32_t place = (uint32_t)found, outermost = place;
    if (m->profile->call_path[place].pc == row->pc)
        return m->known[place].parent;
    const uint32_t function = frame_of(m, own, own->n - 1);
    uint32_t at = place;
    for (int i = 0; i < NEAR && at != ANALYZE_NO_NODE; i++, at = m->known[at].parent) {
        struct analyze_chain chain = chain_of(m, m->profile->call_path[at].pc, 0, false);
        if (chain.n == 0)
            continue;
        const struct analyze_frame *frame = &m->frames.frame[frame_of(m, &chain, chain.n - 1)];
        if (same_function(frame, &m->frames.frame[function]))
            return m->known[at].parent;
        if (!frame->hidden && !frame->cut)
            outermost = at;
    }
    *apart = m->known[place].opens && m->frames.frame[function].place.function;
    return *apart ? outermost : place;
}

static bool is_kept(const struct tree_builder *m, const struct tree_known *known,
                    const struct analyze_line *line)
{
    const struct analyze_tree_options *options = m->options;
    if (options->selected && !analyze_keeps(m->tree->analysis, line))
        return false;
    if (options->focus && !known->focus && !options->focus(options->payload, line))
        return false;
    return !options->ignore || (!known->ignore && !options->ignore(options->payload, line));
}

/* Of the tape itself: a node for each op. A tape has few; what a forged profile has more is one. */
static uint32_t own_node(struct tree_builder *m, const struct read_row *row,
                         const struct analyze_line *line)
{
    for (uint32_t i = 0; i < m->n_own; i++)
        if (i + 1 == MOST_OWN || strcmp(m->tree->node[m->own[i]].line.ops.name[0], row->op) == 0)
            return m->own[i];
    uint32_t made = add_node(m, 0, ANALYZE_NO_NODE, *line, false);
    m->own[m->n_own++] = made;
    return made;
}

/* The node whose own a row's cost is, ANALYZE_NO_NODE: left out; line: the row's, for filters. */
static uint32_t node_of_row(struct tree_builder *m, const struct read_row *row,
                            struct analyze_line *line)
{
    struct tree_known known = {.focus = false};
    if (row->pc == 0) {
        line->own = true;
        if (!is_kept(m, &known, line))
            return ANALYZE_NO_NODE;
        return own_node(m, row, line);
    }
    struct analyze_chain own = chain_of(m, row->pc, row->line, true);
    bool apart;
    uint32_t place = path_to_row(m, row, &own, &apart);
    const uint32_t run = apart ? analyze_frames_named(&m->frames, "(run)") : 0;
    if (place != ANALYZE_NO_NODE)
        known = m->known[place];
    tree_see(&known, m, &own);
    if (own.n > 0) {
        struct analyze_names ops = line->ops;
        *line = tree_line_of(&m->frames.frame[frame_of(m, &own, 0)]);
        line->ops = ops;
    }
    if (!is_kept(m, &known, line))
        return ANALYZE_NO_NODE;
    m->tree->has_paths |= row->path != 0;
    if (!m->options->inverted) {
        uint32_t from = place != ANALYZE_NO_NODE ? node_of_path(m, place) : 0;
        return descend_chain(m, apart ? tree_descend(m, from, run) : from, &own);
    }
    uint32_t node = descend_chain(m, 0, &own);
    uint32_t first = node;
    while (first != 0 && m->tree->node[first].depth > 1)
        first = m->tree->node[first].parent;
    analyze_names_add(&m->tree->node[first].line.ops, &line->ops);
    if (apart)
        node = tree_descend(m, node, run);
    for (; place != ANALYZE_NO_NODE; place = m->known[place].parent) {
        struct analyze_chain chain = chain_of(m, m->profile->call_path[place].pc, 0, false);
        node = descend_chain(m, node, &chain);
    }
    return node;
}

static enum read_phase tree_phase_of(enum read_phase counter)
{
    return counter == READ_PHASE_NONE ? READ_PHASE_FORWARD : counter;
}

/* What of a row's cost is of a phase. */
static struct analyze_cost tree_cost_of_phase(const struct analyze_cost *cost,
                                              enum read_phase phase)
{
    struct analyze_cost part = {0};
#define ROW(X, name, field, unit, of, ...)                                                         \
    if (phase == tree_phase_of(READ_PHASE_##of))                                                   \
        part.name = cost->name;
    COUNTERS(ROW, COUNTER_NONE, )
#undef ROW
    if (phase == READ_PHASE_FORWARD) {
        part.untimed_calls = cost->untimed_calls;
        part.byte_ns = cost->byte_ns;
    }
    return part;
}

static void tree_add_part(struct tree_builder *m, uint32_t node, const struct analyze_cost *cost,
                          enum read_phase phase, uint64_t thread)
{
    struct analyze_tree *tree = m->tree;
    const uint64_t key = base_hash(base_hash(node, phase), thread);
    size_t walk;
    if (analyze_cost_is_nothing(cost) && !(cost->byte_ns > 0))
        return;
    for (int64_t at = base_table_first(&m->parts, key, &walk); at >= 0;
         at = base_table_next(&m->parts, key, &walk)) {
        struct analyze_tree_part *part = &tree->part[at];
        if (part->node == node && part->phase == phase && part->thread == thread) {
            analyze_cost_add(&part->cost, cost);
            return;
        }
    }
    base_table_add(&m->parts, key, tree->n_parts);
    BASE_ARRAY_GROW(tree->part, tree->n_parts, &m->room_parts);
    tree->part[tree->n_parts++] = (struct analyze_tree_part){node, phase, thread, *cost};
}

/* Whose cost it is: a sample has one phase, a tape's row has all. */
struct tree_owner {
    bool row;
    enum read_phase phase;
    uint64_t thread;
};

static void tree_add_parts(struct tree_builder *m, uint32_t node, const struct analyze_cost *cost,
                           const struct tree_owner *owner)
{
    if (!owner->row) {
        tree_add_part(m, node, cost, owner->phase, owner->thread);
        return;
    }
    for (int phase = READ_PHASE_FORWARD; phase < READ_PHASES; phase++) {
        const struct analyze_cost part = tree_cost_of_phase(cost, (enum read_phase)phase);
        tree_add_part(m, node, &part, (enum read_phase)phase, owner->thread);
    }
}

static void tree_add_cost(struct tree_builder *m, uint32_t at, const struct analyze_line *line,
                          bool named, const struct tree_owner *owner)
{
    if (at == ANALYZE_NO_NODE) {
        analyze_cost_add(&m->tree->left_out, &line->cost);
        m->tree->n_left_out++;
        return;
    }
    struct analyze_tree_node *node = &m->tree->node[at];
    analyze_cost_add(&node->line.cost, &line->cost);
    if (m->options->parts)
        tree_add_parts(m, at, &line->cost, owner);
    if (named)
        analyze_names_add(&node->line.ops, &line->ops);
}

/* Returns the row's node. */
static uint32_t tree_add_row(struct tree_builder *m, const struct read_row *row,
                             const struct analyze_cost *cost, const struct tree_owner *owner)
{
    struct analyze_line line = {.ops = {.name = {row->op}, .n = 1}};
    if (analyze_cost_is_nothing(cost) && !(cost->byte_ns > 0))
        return ANALYZE_NO_NODE;
    uint32_t at = node_of_row(m, row, &line);
    line.cost = *cost;
    tree_add_cost(m, at, &line, !m->options->inverted || row->pc == 0, owner);
    return at;
}

static uint32_t add_tape_row(struct tree_builder *m, const struct read_tape *tape,
                             const struct read_row *row, bool at_peak)
{
    const struct analyze_cost cost = analyze_row_cost(m->profile, row, at_peak);
    const uint64_t thread = row->thread ? row->thread : tape->thread;
    return tree_add_row(m, row, &cost, &(struct tree_owner){.row = true, .thread = thread});
}

/* Code that has nothing to do with tapes, with its own stack. The interrupted address is no return
 * address. What the library does is its caller's, unless its frames are asked for. */
static void add_code(struct tree_builder *m, const struct read_sample *sample,
                     const struct analyze_line *line, const struct tree_owner *owner)
{
    struct tree_known known = {.focus = false};
    const size_t n = sample->n_stack < MOST_DEPTH ? sample->n_stack : MOST_DEPTH;
    const size_t caller = m->frames.system ? 0 : analyze_sample_owner(sample, m->frames.analysis);
    const size_t first = caller < n ? caller : 0;
    uint32_t node = 0;
    for (size_t i = first; i < n; i++) {
        struct analyze_chain chain = chain_of(m, sample->stack[i] + (i == 0), 0, i == first);
        tree_see(&known, m, &chain);
    }
    if (!is_kept(m, &known, line)) {
        tree_add_cost(m, ANALYZE_NO_NODE, line, false, owner);
        return;
    }
    for (size_t k = first; k < n; k++) {
        const size_t i = m->options->inverted ? k : n - 1 - (k - first);
        struct analyze_chain chain = chain_of(m, sample->stack[i] + (i == 0), 0, i == first);
        node = descend_chain(m, node, &chain);
    }
    tree_add_cost(m, node, line, !m->options->inverted, owner);
}

/* Nobody calls what has no work. */
static void add_idle(struct tree_builder *m, struct analyze_line *line,
                     const struct tree_owner *owner)
{
    const struct tree_known known = {.focus = false};
    const struct analyze_cost cost = line->cost;
    if (!is_kept(m, &known, line)) {
        tree_add_cost(m, ANALYZE_NO_NODE, line, false, owner);
        return;
    }
    line->cost = (struct analyze_cost){0};
    if (m->idle == 0)
        m->idle = add_node(m, 0, ANALYZE_NO_NODE, *line, false);
    line->cost = cost;
    tree_add_cost(m, m->idle, line, false, owner);
}

/* The system's number of a sampled thread; 0: unknown, or several. */
static uint64_t tree_thread_of(const struct read_profile *profile, uint32_t index)
{
    for (size_t i = 0; i < profile->n_threads; i++)
        if (profile->thread[i].index == index)
            return profile->thread[i].tid;
    return 0;
}

static void add_sample(struct tree_builder *m, const struct read_sample *sample)
{
    struct analyze_line line;
    const struct read_row row = {
        .pc = sample->pc, .op = sample->op, .line = sample->line, .path = sample->path};
    analyze_sample_line(&line, sample, m->frames.analysis);
    /* A formula outside of ops is forward time. */
    const struct tree_owner owner = {
        .phase = sample->phase == READ_PHASE_NONE && line.cost.forward_ns > 0 ? READ_PHASE_FORWARD
                                                                              : sample->phase,
        .thread = tree_thread_of(m->profile, sample->thread),
    };
    if (sample->phase != READ_PHASE_NONE)
        tree_add_row(m, &row, &line.cost, &owner);
    else if (line.idle)
        add_idle(m, &line, &owner);
    else
        add_code(m, sample, &line, &owner);
}

static int tree_compare_parts(const void *x, const void *y)
{
    const struct analyze_tree_part *a = x, *b = y;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* As sum_up() rounds the nodes: the sums after the last part of a node are its own. `left_out` has
 * no times yet. */
static void tree_round_parts(struct analyze_tree *tree)
{
    struct analyze_times times = {0};
    struct analyze_cost left_out = tree->left_out;
    if (tree->n_parts > 0)
        qsort(tree->part, tree->n_parts, sizeof *tree->part, tree_compare_parts);
    analyze_round_times(&times, tree->analysis->profile, &left_out);
    for (size_t i = 0; i < tree->n_parts; i++)
        analyze_round_times(&times, tree->analysis->profile, &tree->part[i].cost);
}

/* Rounds running sums, so that the times of all nodes add up to the rounded sum; then adds what is
 * below to what is above. What was left out comes first. */
static void sum_up(struct analyze_tree *tree)
{
    struct analyze_times times = {0};
    analyze_round_times(&times, tree->analysis->profile, &tree->left_out);
    for (size_t i = 0; i < tree->n_nodes; i++) {
        analyze_round_times(&times, tree->analysis->profile, &tree->node[i].line.cost);
        tree->node[i].all = tree->node[i].line.cost;
    }
    for (size_t i = tree->n_nodes; i-- > 1;)
        analyze_cost_add(&tree->node[tree->node[i].parent].all, &tree->node[i].all);
}

static void tree_make(struct tree_builder *m)
{
    const struct read_profile *profile = m->profile;
    size_t n_rows = 0, peak = analyze_peak_tape(profile);
    for (size_t i = 0; i < profile->n_tapes; i++)
        n_rows += profile->tape[i].n_rows;
    m->most = NODES * (n_rows + profile->n_call_paths + profile->n_samples);
    m->most = m->most < LEAST_NODES ? LEAST_NODES : m->most > MOST_NODES ? MOST_NODES : m->most;
    add_node(m, ANALYZE_NO_NODE, ANALYZE_NO_NODE, (struct analyze_line){.own = true}, false);
    m->tree->row_node = base_calloc(n_rows + 1, sizeof *m->tree->row_node);
    know_paths(m);
    know_loops(m);
    know_runs(m);
    uint32_t *row_node = m->tree->row_node;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            *row_node++ = add_tape_row(m, &profile->tape[i], &profile->tape[i].row[j], i == peak);
    for (size_t i = 0; i < profile->n_samples; i++)
        add_sample(m, &profile->sample[i]);
    m->tree->n_frames = m->frames.n_frames;
    tree_round_parts(m->tree);
    sum_up(m->tree);
}

struct analyze_tree *analyze_tree_make(const struct analyze_result *analysis,
                                       const struct analyze_tree_options *options)
{
    struct analyze_tree *tree = base_calloc(1, sizeof *tree);
    struct tree_builder m = {
        .tree = tree,
        .profile = analysis->profile,
        .options = options,
        .frames = {.analysis = analysis, .combine = options->combine, .system = options->system}};
    tree->analysis = analysis;
    tree_make(&m);
    analyze_frames_free(&m.frames);
    free(m.known);
    base_table_free(&m.nodes);
    base_table_free(&m.parts);
    return tree;
}

void analyze_tree_free(struct analyze_tree *tree)
{
    if (!tree)
        return;
    free(tree->row_node);
    free(tree->part);
    free(tree->node);
    free(tree);
}

/* An outer node is of the same place: what this one has is counted there. */
static bool is_within_itself(const struct analyze_tree *tree, uint32_t i)
{
    const uint32_t frame = tree->node[i].frame;
    for (uint32_t up = tree->node[i].parent; up != ANALYZE_NO_NODE; up = tree->node[up].parent)
        if (tree->node[up].frame == frame)
            return true;
    return false;
}

/* The lines, and for each frame the place of its line, plus 1; the caller frees both. */
static struct analyze_line *make_lines(const struct analyze_tree *tree, size_t *n,
                                       uint32_t **places)
{
    struct analyze_line *line = base_calloc(tree->n_nodes + 1, sizeof *line);
    uint32_t *place = base_calloc(tree->n_frames + 1, sizeof *place);
    *places = place;
    *n = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->frame == ANALYZE_NO_NODE) { /* the tape's own */
            line[*n] = node->line;
            line[(*n)++].cost = node->all;
            continue;
        }
        if (node->cut)
            continue;
        if (place[node->frame] == 0) {
            line[*n] = node->line;
            line[*n].cost = (struct analyze_cost){0};
            place[node->frame] = (uint32_t)++ * n;
        }
        struct analyze_line *to = &line[place[node->frame] - 1];
        analyze_names_add(&to->ops, &node->line.ops);
        if (!is_within_itself(tree, i))
            analyze_cost_add(&to->cost, &node->all);
    }
    return line;
}

struct analyze_line *analyze_tree_inclusive(const struct analyze_tree *tree, size_t *n)
{
    uint32_t *place;
    struct analyze_line *line = make_lines(tree, n, &place);
    free(place);
    return line;
}

/* Takes b, of which no counter is greater, from a. */
static void tree_inclusive_subtract(struct analyze_cost *a, const struct analyze_cost *b)
{
#define X(name) a->name -= b->name;
    ANALYZE_COST_MEMBERS(X)
#undef X
    a->byte_ns = a->byte_ns > b->byte_ns ? a->byte_ns - b->byte_ns : 0;
}

/* As analyze_tree_inclusive(), but only what was called through the line, and only lines through
 * which anything was: with what such a line recorded itself it is the same. Not of an inverted
 * tree. */
static struct analyze_line *tree_through(const struct analyze_tree *tree, size_t *n)
{
    uint32_t *place;
    struct analyze_line *line = make_lines(tree, n, &place);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *node = &tree->node[i];
        if (node->frame != ANALYZE_NO_NODE && place[node->frame] > 0)
            tree_inclusive_subtract(&line[place[node->frame] - 1].cost, &node->line.cost);
    }
    free(place);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!line[i].own && !line[i].idle && !analyze_cost_is_nothing(&line[i].cost))
            line[kept++] = line[i];
    *n = kept;
    return line;
}

struct analyze_tree *analyze_tree_flatten(const struct analyze_tree *tree)
{
    uint32_t *place;
    size_t n;
    struct analyze_line *line = make_lines(tree, &n, &place);
    struct analyze_tree *flat = base_calloc(1, sizeof *flat);
    struct analyze_tree_node *node = base_calloc(n + 1, sizeof *node);
    *flat = *tree;
    flat->is_flat = true;
    flat->node = node;
    flat->row_node = NULL;
    flat->part = NULL;
    flat->n_parts = 0;
    flat->n_nodes = n + 1;
    node[0] = tree->node[0];
    node[0].child = ANALYZE_NO_NODE;
    for (size_t i = n; i > 0; i--) { /* so that the children are in order */
        node[i] = (struct analyze_tree_node){.line = line[i - 1],
                                             .all = line[i - 1].cost,
                                             .parent = 0,
                                             .child = ANALYZE_NO_NODE,
                                             .next = node[0].child,
                                             .depth = 1};
        if (!line[i - 1].own && !line[i - 1].idle)
            node[i].line.cost = (struct analyze_cost){0};
        node[0].child = (uint32_t)i;
    }
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct analyze_tree_node *from = &tree->node[i];
        if (from->frame != ANALYZE_NO_NODE && place[from->frame] > 0)
            analyze_cost_add(&node[place[from->frame]].line.cost, &from->line.cost);
    }
    free(line);
    free(place);
    return flat;
}

void analyze_call_through(struct analyze_result *analysis)
{
    const struct analyze_tree_options how = {.selected = true};
    struct analyze_tree *tree = analyze_tree_make(analysis, &how);
    size_t n = 0;
    struct analyze_line *line = tree_through(tree, &n);
    analyze_tree_free(tree);
    free(analysis->through);
    analysis->through = line;
    analysis->n_through = n;
}

/* While the pairs are made; the lists have room for the nodes of either tree. */
struct joiner {
    const struct analyze_tree *tree[2];
    const struct analyze_edit *edit;
    struct analyze_tree_pair *pair;
    size_t n;
    const struct analyze_line **list[2];
};

/* A line of a list is the first member of its node. */
static uint32_t tree_join_place_of(const struct analyze_tree *tree, const struct analyze_line *line)
{
    return line ? (uint32_t)((const struct analyze_tree_node *)(const void *)line - tree->node)
                : ANALYZE_NO_NODE;
}

/* Children stand in the order of their line, then of their place in the tree. */
static int tree_join_compare_lines(const void *x, const void *y)
{
    const struct analyze_line *a = *(const struct analyze_line *const *)x;
    const struct analyze_line *b = *(const struct analyze_line *const *)y;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a < b ? -1 : a > b;
}

static size_t list_children(struct joiner *j, int side, uint32_t parent)
{
    const struct analyze_tree *tree = j->tree[side];
    size_t n = 0;
    if (parent == ANALYZE_NO_NODE)
        return 0;
    for (uint32_t i = tree->node[parent].child; i != ANALYZE_NO_NODE; i = tree->node[i].next)
        j->list[side][n++] = &tree->node[i].line;
    qsort(j->list[side], n, sizeof *j->list[side], tree_join_compare_lines);
    return n;
}

static void add_pair(struct joiner *j, uint32_t parent, const struct analyze_line *base,
                     const struct analyze_line *now, bool moved)
{
    j->pair[j->n++] = (struct analyze_tree_pair){
        .parent = parent,
        .node = {tree_join_place_of(j->tree[0], base), tree_join_place_of(j->tree[1], now)},
        .moved = moved,
    };
}

/* Adds what a pair's calls called. */
static void add_below(struct joiner *j, uint32_t parent)
{
    const uint32_t *node = j->pair[parent].node;
    const size_t n[2] = {list_children(j, 0, node[0]), list_children(j, 1, node[1])};
    if (n[0] == 0 || n[1] == 0) {
        for (size_t i = 0; i < n[0]; i++)
            add_pair(j, parent, j->list[0][i], NULL, false);
        for (size_t i = 0; i < n[1]; i++)
            add_pair(j, parent, NULL, j->list[1][i], false);
        return;
    }
    struct analyze_join join;
    const struct analyze_line *const *const list[2] = {j->list[0], j->list[1]};
    analyze_join_lists(&join, list, n, j->edit);
    for (size_t i = 0; i < join.n_rows; i++)
        add_pair(j, parent, join.row[i].line[0], join.row[i].line[1], join.row[i].moved);
    analyze_join_free(&join);
}

struct analyze_tree_pair *analyze_tree_join(const struct analyze_tree *base,
                                            const struct analyze_tree *now, size_t *n)
{
    struct analyze_edit *edit = analyze_edit_make(base->analysis, now->analysis);
    struct joiner j = {.tree = {base, now}, .edit = edit};
    j.pair = base_calloc(base->n_nodes + now->n_nodes, sizeof *j.pair);
    j.list[0] = base_calloc(base->n_nodes, sizeof *j.list[0]);
    j.list[1] = base_calloc(now->n_nodes, sizeof *j.list[1]);
    add_pair(&j, ANALYZE_NO_NODE, &base->node[0].line, &now->node[0].line, false);
    for (uint32_t i = 0; i < j.n; i++)
        add_below(&j, i);
    free(j.list[0]);
    free(j.list[1]);
    analyze_edit_free(edit);
    *n = j.n;
    return j.pair;
}
