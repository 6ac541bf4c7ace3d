/* analyze_live.c: see analyze_live.h.
 *
 * Lines of two states are the same if all that names them is: their strings are equal pointers as
 * long as the symbols stay open. Where those were opened anew, one state has no line that is under
 * way.
 */
#include "analyze_live.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

enum { READINGS = 64 };
#define SPAN_NS UINT64_C(1000000000)

/* Running totals at one time. */
struct live_reading {
    uint64_t at_ns, phase_ns[ANALYZE_LIVE_PHASES], sweeps, steps;
};

/* What names a line, and its time so far. */
struct live_known {
    const char *file, *function, *module, *op, *shape;
    uint64_t offset;
    uint32_t line, kind;
    uint64_t phase_ns[ANALYZE_LIVE_PHASES];
};

struct analyze_live {
    struct analyze_result *analysis;
    struct analyze_live_view view;
    bool has_view;
    struct live_reading reading[READINGS]; /* the oldest first */
    unsigned n_readings;
    struct live_known *known; /* ordered by compare_known */
    size_t n_known, n_mappings;
    unsigned stretch, in_stretch; /* readings that one place of the history is of */
};

struct analyze_live *analyze_live_new(void)
{
    struct analyze_live *live = base_calloc(1, sizeof *live);
    live->stretch = 1;
    return live;
}

void analyze_live_free(struct analyze_live *live)
{
    if (!live)
        return;
    analyze_free(live->analysis);
    free(live->known);
    free(live);
}

const struct analyze_live_view *analyze_live_view(const struct analyze_live *live)
{
    return live->has_view ? &live->view : NULL;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_known(const void *x, const void *y)
{
    const struct live_known *a = x, *b = y;
    int order = compare_numbers((uintptr_t)a->file, (uintptr_t)b->file);
    order = order ? order : compare_numbers(a->line, b->line);
    order = order ? order : compare_numbers((uintptr_t)a->op, (uintptr_t)b->op);
    order = order ? order : compare_numbers((uintptr_t)a->function, (uintptr_t)b->function);
    order = order ? order : compare_numbers((uintptr_t)a->shape, (uintptr_t)b->shape);
    order = order ? order : compare_numbers((uintptr_t)a->module, (uintptr_t)b->module);
    order = order ? order : compare_numbers(a->offset, b->offset);
    return order ? order : compare_numbers(a->kind, b->kind);
}

static struct live_known name_line(const struct analyze_line *line)
{
    const struct analyze_cost *cost = &line->cost;
    return (struct live_known){
        .file = line->file,
        .function = line->function,
        .module = line->module,
        .op = line->ops.n > 0 ? line->ops.name[0] : NULL,
        .shape = line->shape,
        .offset = line->offset,
        .line = line->line,
        .kind = (line->own ? 1 : 0) | (line->idle ? 2 : 0),
#define ROW(X, NAME, name, ...) cost->name##_ns,
        .phase_ns = {PHASE_LIST(ROW, ) cost->other_ns},
#undef ROW
    };
}

static uint64_t live_since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* Compares a line with what was known of it. */
static void compare_line(struct analyze_live *live, const struct analyze_line *line,
                         const struct live_known *now)
{
    static const struct live_known nothing;
    struct analyze_live_view *view = &live->view;
    const struct live_known *before =
        bsearch(now, live->known, live->n_known, sizeof *now, compare_known);
    before = before ? before : &nothing;
    uint64_t most = 0, sum = 0;
    enum analyze_live_phase phase = ANALYZE_LIVE_FORWARD;
    for (unsigned i = 0; i < ANALYZE_LIVE_PHASES; i++) {
        const uint64_t ns = live_since(now->phase_ns[i], before->phase_ns[i]);
        sum += ns;
        if (ns > most) {
            most = ns;
            phase = (enum analyze_live_phase)i;
        }
    }
    view->all_ns += sum;
    if (line->idle || sum <= view->line_ns)
        return;
    view->line = line;
    view->line_ns = sum;
    view->line_phase = phase;
}

/* Finds the line under way, and remembers all for the next time. */
static void live_compare_lines(struct analyze_live *live)
{
    const struct analyze_result *analysis = live->analysis;
    const bool comparable = live->known && live->n_mappings == analysis->n_mappings;
    struct live_known *known = base_calloc(analysis->n_lines + 1, sizeof *known);
    live->view.line = NULL;
    live->view.line_ns = live->view.all_ns = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        known[i] = name_line(&analysis->line[i]);
        if (comparable)
            compare_line(live, &analysis->line[i], &known[i]);
    }
    qsort(known, analysis->n_lines, sizeof *known, compare_known);
    free(live->known);
    live->known = known;
    live->n_known = analysis->n_lines;
    live->n_mappings = analysis->n_mappings;
}

static struct live_reading read_totals(const struct analyze_result *analysis, uint64_t now_ns)
{
    const struct analyze_totals *total = &analysis->total;
    uint64_t within = 0;
#define ROW(X, NAME, name, ...) within += total->name##_ns;
    PHASE_LIST(ROW, )
#undef ROW
    return (struct live_reading){
        .at_ns = now_ns,
#define ROW(X, NAME, name, ...) total->name##_ns,
        .phase_ns = {PHASE_LIST(ROW, ) analysis->profile->is_sampled
                         ? analysis->sum.other_ns
                         : live_since(analysis->profile->duration_ns, within)},
#undef ROW
        .sweeps = total->sweeps,
        .steps = analysis->profile->has_steps ? analysis->profile->seen_steps : 0,
    };
}

/* The oldest reading of the last second, or else the one before. */
static const struct live_reading *base_of(const struct analyze_live *live)
{
    const unsigned last = live->n_readings - 1;
    unsigned base = last > 0 ? last - 1 : 0;
    while (base > 0 && live->reading[last].at_ns - live->reading[base - 1].at_ns <= SPAN_NS)
        base--;
    return &live->reading[base];
}

static void add_reading(struct analyze_live *live, uint64_t now_ns)
{
    struct analyze_live_view *view = &live->view;
    if (live->n_readings == READINGS) {
        memmove(live->reading, live->reading + 1, (READINGS - 1) * sizeof *live->reading);
        live->n_readings--;
    }
    const struct live_reading now = read_totals(live->analysis, now_ns);
    live->reading[live->n_readings++] = now;
    static const struct live_reading nothing;
    const struct live_reading *base = live->n_readings > 1 ? base_of(live) : &nothing;
    view->span_ns = live->n_readings > 1 ? live_since(now.at_ns, base->at_ns) : 0;
    view->span_sweeps = live_since(now.sweeps, base->sweeps);
    view->span_steps = live_since(now.steps, base->steps);
    for (unsigned i = 0; i < ANALYZE_LIVE_PHASES; i++)
        view->phase_ns[i] = live_since(now.phase_ns[i], base->phase_ns[i]);
    view->recent_ns = view->taken_ns > 0 ? live_since(now_ns, view->taken_ns) : 0;
    view->taken_ns = now_ns;
    view->steps = now.steps;
}

/* A full history is merged by pairs. */
static void add_history(struct analyze_live *live, uint64_t bytes)
{
    struct analyze_live_view *view = &live->view;
    if (live->in_stretch > 0 && view->n_history > 0) {
        uint64_t *last = &view->history[view->n_history - 1];
        *last = bytes > *last ? bytes : *last;
    } else {
        if (view->n_history == ANALYZE_LIVE_HISTORY) {
            for (unsigned i = 0; i < ANALYZE_LIVE_HISTORY / 2; i++) {
                const uint64_t a = view->history[2 * i], b = view->history[2 * i + 1];
                view->history[i] = a > b ? a : b;
            }
            view->n_history = ANALYZE_LIVE_HISTORY / 2;
            live->stretch *= 2;
        }
        view->history[view->n_history++] = bytes;
    }
    live->in_stretch = (live->in_stretch + 1) % live->stretch;
}

void analyze_live_take(struct analyze_live *live, const struct read_profile *state, uint64_t now_ns)
{
    if (!live->analysis)
        live->analysis = analyze_profile(state, NULL, NULL);
    else
        analyze_again(live->analysis, state);
    live_compare_lines(live);
    live->view.analysis = live->analysis;
    live->view.is_sampled = state->is_sampled;
    live->view.has_bytes = read_profile_has_bytes(state);
    live->view.has_steps = state->has_steps;
    add_reading(live, now_ns);
    add_history(live, live->analysis->total.live_bytes);
    live->has_view = true;
}
