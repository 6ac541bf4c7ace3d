/* ad_tensor_calls.c: see ad_tensor_calls.h. */
#include "ad_tensor_calls.h"

#include "tape_account.h"

#include <stdlib.h>
#include <string.h>

enum { WORK_LINE = 64, REPEATS_TRIED = 48, ROUNDS_SAVED = 3 };

/* ---- lists ---- */

/* The place of n elements more; NULL: no memory. */
static void *list_add(struct tensor_calls *c, struct call_list *l, uint32_t n)
{
    const struct tape_memory *memory = c->t->memory;
    void *at = NULL;
    if (!c->failed && l->n <= UINT32_MAX - n - 1)
        at = tape_array_reserve(memory, l->at, l->n + n + 1, &l->size, l->bytes);
    c->failed = c->failed || !at;
    if (!at)
        return NULL;
    l->at = at;
    l->n += n;
    return (char *)at + (size_t)(l->n - n) * l->bytes;
}

static void list_drop(const struct tensor_calls *c, struct call_list *l)
{
    if (l->at)
        c->t->memory->release(l->at, c->t->memory->payload);
}

/* ---- what is told ---- */

static uint64_t span_of(kernel_ref a)
{
    uint64_t last = 0;
    if (a->size == 0)
        return 0;
    for (int axis = 0; axis < a->rank; axis++)
        last += (uint64_t)(a->shape[axis] - 1) * (uint64_t)a->strides[axis];
    return (last + 1) * kernel_dtype_bytes(a->dtype);
}

/* Bytes of the sweep's buffers are in use, or of an array that lies outside. */
static bool span_add(struct tensor_calls *c, const void *data, uint64_t bytes)
{
    const uint64_t from = (uint64_t)(uintptr_t)data;
    if (from >= TAPE_TOLD_OUTSIDE || bytes == 0)
        return true;
    struct call_segment *s = list_add(c, &c->spans, 1);
    if (s)
        *s = (struct call_segment){from, from + bytes, 0};
    return s != NULL;
}

static bool place_add(struct tensor_calls *c, const void *data, uint64_t bytes)
{
    struct call_place *p = list_add(c, &c->places, 1);
    if (p)
        *p = (struct call_place){.at = (uint64_t)(uintptr_t)data};
    return p && span_add(c, data, bytes);
}

static bool layout_add(struct tensor_calls *c, kernel_ref a)
{
    ad_kernel_array layout = {
        .size = a->size, .dense = a->contiguous, .dtype = a->dtype, .rank = a->rank};
    uint32_t *id = list_add(c, &c->layout_ids, 1), k = 0;
    if (!id)
        return false;
    for (int axis = 0; axis < a->rank; axis++) {
        layout.shape[axis] = a->shape[axis];
        layout.strides[axis] = a->strides[axis];
    }
    const ad_kernel_array *all = c->layouts.at;
    while (k < c->layouts.n && memcmp(&all[k], &layout, sizeof layout) != 0)
        k++;
    *id = k;
    if (k < c->layouts.n)
        return true;
    ad_kernel_array *added = list_add(c, &c->layouts, 1);
    if (added)
        *added = layout;
    return added != NULL;
}

static uint64_t hash_add(uint64_t h, uint64_t word)
{
    return (h ^ word) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
}

static uint32_t kind_bucket(const struct tensor_calls *c, const struct call_kind *k)
{
    const uint32_t *layout = c->layout_ids.at;
    const int64_t *attr = c->attrs.at;
    const uint32_t arrays = k->op ? (uint32_t)k->n_out + k->n_in : 0;
    uint64_t h = hash_add((uint64_t)(uintptr_t)k->op, k->bytes);
    h = hash_add(h, (uint64_t)k->site.pc + k->site.line);
    for (uint32_t a = 0; a < arrays; a++)
        h = hash_add(h, layout[k->layout + a]);
    for (uint32_t a = 0; a < k->n_attr; a++)
        h = hash_add(h, (uint64_t)attr[k->attr + a]);
    return (uint32_t)(h >> 40) % CALL_BUCKETS;
}

static bool kind_is(const struct tensor_calls *c, const struct call_kind *a,
                    const struct call_kind *b)
{
    const uint32_t *layout = c->layout_ids.at;
    const int64_t *attr = c->attrs.at;
    const size_t arrays = a->op ? (size_t)a->n_out + a->n_in : 0;
    return a->op == b->op && a->site.pc == b->site.pc && a->site.line == b->site.line &&
           a->recorded == b->recorded && a->bytes == b->bytes && a->n_out == b->n_out &&
           a->n_in == b->n_in && a->n_attr == b->n_attr && a->adds == b->adds &&
           a->back == b->back &&
           (arrays == 0 ||
            memcmp(layout + a->layout, layout + b->layout, arrays * sizeof *layout) == 0) &&
           (a->n_attr == 0 ||
            memcmp(attr + a->attr, attr + b->attr, a->n_attr * sizeof *attr) == 0);
}

/* The kind, whose layouts and attributes are the last of the lists; these go where there is one of
 * it already. */
static bool kind_find(struct tensor_calls *c, const struct call_kind *made, uint32_t *kind)
{
    uint32_t *bucket = &c->bucket[kind_bucket(c, made)], k = *bucket;
    while (k != UINT32_MAX && !kind_is(c, calls_kind(c, k), made))
        k = calls_kind(c, k)->next;
    *kind = k;
    if (k != UINT32_MAX) {
        c->layout_ids.n = made->layout;
        c->attrs.n = made->attr;
        return true;
    }
    struct call_kind *added = list_add(c, &c->kinds, 1);
    if (!added)
        return false;
    *added = *made;
    added->next = *bucket;
    *kind = *bucket = c->kinds.n - 1;
    return true;
}

static struct call_kind kind_begin(const struct tensor_calls *c, uint32_t row)
{
    return (struct call_kind){.site = tape_row_site(c->t, row),
                              .recorded = tape_row(c->t, row)->op,
                              .layout = c->layout_ids.n,
                              .attr = c->attrs.n,
                              .back = c->going_back};
}

static void call_add(struct tensor_calls *c, const struct call_kind *made, uint32_t place)
{
    struct call_told told = {.place = place, .next = UINT32_MAX};
    if (c->failed || !kind_find(c, made, &told.kind))
        return;
    struct call_told *added = list_add(c, &c->told, 1);
    if (added)
        *added = told;
}

static void teller_call(struct tape_teller *to, const struct kernel_call *call, uint32_t row)
{
    struct tensor_calls *c = (struct tensor_calls *)(void *)to;
    struct call_kind made = kind_begin(c, row);
    const uint32_t place = c->places.n;
    made.op = call->op;
    made.bytes = call->workspace == KERNEL_NO_WORKSPACE ? 0 : kernel_workspace(call);
    made.n_out = (uint16_t)call->n_out;
    made.n_in = (uint16_t)call->n_in;
    made.n_attr = (uint16_t)call->n_attr;
    made.adds = call->accumulate;
    for (int o = 0; o < call->n_out; o++)
        if (!layout_add(c, call->out[o]) ||
            !place_add(c, call->out[o]->data, span_of(call->out[o])))
            return;
    for (int i = 0; i < call->n_in; i++)
        if (!layout_add(c, call->in[i]) || !place_add(c, call->in[i]->data, span_of(call->in[i])))
            return;
    if (made.bytes > 0 && !place_add(c, call->workspace, made.bytes))
        return;
    int64_t *attr = list_add(c, &c->attrs, made.n_attr);
    if (attr && made.n_attr > 0)
        memcpy(attr, call->attr, made.n_attr * sizeof *attr);
    call_add(c, &made, place);
}

static void teller_move(struct tape_teller *to, void *at, const void *from, uint64_t bytes,
                        uint32_t row)
{
    struct tensor_calls *c = (struct tensor_calls *)(void *)to;
    struct call_kind made = kind_begin(c, row);
    const uint32_t place = c->places.n;
    made.n_out = 1;
    made.n_in = from != NULL;
    made.bytes = bytes;
    if (bytes > 0 && place_add(c, at, bytes) && (!from || place_add(c, from, bytes)))
        call_add(c, &made, place);
}

static void teller_outside(struct tape_teller *to, enum tape_told_array what, uint32_t x,
                           uint64_t at, uint64_t bytes)
{
    struct tensor_calls *c = (struct tensor_calls *)(void *)to;
    struct call_outside *o = list_add(c, &c->outside, 1);
    if (o)
        *o = (struct call_outside){.from = at, .bytes = bytes, .x = x, .what = what};
}

static void teller_forward(struct tape_teller *to)
{
    struct tensor_calls *c = (struct tensor_calls *)(void *)to;
    c->n_forward = c->told.n;
    c->going_back = true;
    c->result = c->places.n;
    c->results = c->layout_ids.n;
    for (uint32_t k = 0; k < c->m; k++) {
        const kernel_ref a = &c->t->entries[c->y[k]].array;
        if (!layout_add(c, a) || !place_add(c, a->data, span_of(a)))
            return;
    }
}

/* Which of x the value is, or n. */
static uint32_t input_of(const struct tensor_calls *c, uint32_t value)
{
    uint32_t k = 0;
    while (k < c->n && c->x[k] != value)
        k++;
    return k;
}

static void teller_leaf(struct tape_teller *to, uint32_t x, bool reached)
{
    struct tensor_calls *c = (struct tensor_calls *)(void *)to;
    const uint32_t k = input_of(c, x);
    if (k < c->n)
        c->reached[k] = reached;
}

/* ---- places ---- */

static int segment_compare(const void *a, const void *b)
{
    const struct call_segment *s = a, *r = b;
    return s->from < r->from ? -1 : s->from > r->from;
}

/* Spans that overlap or touch are one segment; segments lie behind each other, from a line on as
 * they did. */
static bool segments_make(struct tensor_calls *c)
{
    struct call_segment *span = c->spans.at, *s = NULL;
    if (c->spans.n > 1)
        qsort(span, c->spans.n, sizeof *span, segment_compare);
    for (uint32_t k = 0; k < c->spans.n; k++) {
        if (s && span[k].from <= s->to) {
            s->to = span[k].to > s->to ? span[k].to : s->to;
            continue;
        }
        if (!(s = list_add(c, &c->segments, 1)))
            return false;
        *s = span[k];
    }
    s = c->segments.at;
    for (uint32_t k = 0; k < c->segments.n; k++) {
        s[k].at = (c->work + WORK_LINE - 1) / WORK_LINE * WORK_LINE + s[k].from % WORK_LINE;
        c->work = s[k].at + s[k].to - s[k].from;
    }
    return true;
}

/* An array outside of which calls make use. */
static void outside_use(struct tensor_calls *c, struct call_outside *o)
{
    const uint32_t input = o->what == TAPE_TOLD_SEED ? o->x : input_of(c, o->x);
    o->used = true;
    if (o->what == TAPE_TOLD_SEED) {
        o->to = (struct call_place){.base = BASE_SEED, .index = input};
    } else if (input < c->n) {
        o->to = (struct call_place){
            .base = o->what == TAPE_TOLD_GRADIENT ? BASE_GRADIENT : BASE_INPUT, .index = input};
    } else if (o->what == TAPE_TOLD_GRADIENT) {
        o->to.at = (c->work + WORK_LINE - 1) / WORK_LINE * WORK_LINE;
        c->work = o->to.at + o->bytes;
    } else {
        const int dtype = c->t->entries[o->x].array.dtype;
        o->to = (struct call_place){.base = BASE_NUMBERS, .index = (uint32_t)dtype};
        o->to.at = c->numbers[dtype] * kernel_dtype_bytes(dtype);
        c->numbers[dtype] += o->bytes / kernel_dtype_bytes(dtype);
    }
}

/* The last element that begins at `at` or before, or the first one; a list of what begins with
 * `from`, which rises. */
static uint32_t last_from(const struct call_list *l, uint64_t at)
{
    uint32_t low = 0, high = l->n;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        uint64_t from;
        memcpy(&from, (const char *)l->at + (size_t)middle * l->bytes, sizeof from);
        if (from <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void place_outside(struct tensor_calls *c, struct call_place *p)
{
    struct call_outside *o = (struct call_outside *)c->outside.at + last_from(&c->outside, p->at);
    if (!o->used)
        outside_use(c, o);
    const uint64_t by = p->at - o->from;
    *p = o->to;
    p->at += by;
}

static void place_inside(const struct tensor_calls *c, struct call_place *p)
{
    const struct call_segment *s = c->segments.at;
    s = c->segments.n > 0 ? s + last_from(&c->segments, p->at) : NULL;
    const bool inside = s && p->at >= s->from && p->at < s->to;
    *p = (struct call_place){.at = inside ? s->at + p->at - s->from : 0};
}

/* ---- what repeats ---- */

static bool place_goes_on(const struct call_place *a, const struct call_place *b,
                          const struct call_place *next)
{
    return a->base == b->base && b->base == next->base && a->index == b->index &&
           b->index == next->index && b->at - a->at == next->at - b->at;
}

/* Whether call k goes on from the call a period before as that from the one before it; of the
 * second round it is enough that arrays have the same base. */
static bool call_goes_on(const struct tensor_calls *c, uint32_t k, uint32_t period, bool second)
{
    const struct call_told *a = calls_told(c, k - (second ? 1 : 2) * period),
                           *b = calls_told(c, k - period), *next = calls_told(c, k);
    if (b->kind != next->kind)
        return false;
    const uint32_t n = kind_places(calls_kind(c, next->kind));
    for (uint32_t i = 0; i < n; i++) {
        const struct call_place *p = calls_place(c, b->place + i),
                                *q = calls_place(c, next->place + i);
        if (second ? p->base != q->base || p->index != q->index
                   : !place_goes_on(calls_place(c, a->place + i), p, q))
            return false;
    }
    return true;
}

static uint32_t rounds_of(const struct tensor_calls *c, uint32_t first, uint32_t period,
                          uint32_t end)
{
    uint32_t rounds = 1;
    for (;; rounds++) {
        const uint64_t from = (uint64_t)first + (uint64_t)rounds * period;
        if (from + period > end)
            return rounds;
        for (uint32_t k = 0; k < period; k++)
            if (!call_goes_on(c, (uint32_t)from + k, period, rounds == 1))
                return rounds;
    }
}

/* The stretch that begins with a call and saves most; rounds of 1: none does. */
static struct call_stretch stretch_best(const struct tensor_calls *c, uint32_t first, uint32_t end)
{
    struct call_stretch best = {first, 1, 1};
    uint64_t saved = ROUNDS_SAVED - 1;
    uint32_t next = calls_told(c, first)->next;
    for (int tries = 0; tries < REPEATS_TRIED && next < end; tries++) {
        const uint32_t period = next - first, rounds = rounds_of(c, first, period, end);
        if ((uint64_t)period * (rounds - 1) > saved) {
            best = (struct call_stretch){first, period, rounds};
            saved = (uint64_t)period * (rounds - 1);
        }
        next = calls_told(c, next)->next;
    }
    return best;
}

static bool stretches_find(struct tensor_calls *c, uint32_t from, uint32_t end)
{
    const uint32_t begun = c->stretches.n;
    for (uint32_t k = from; k < end;) {
        const struct call_stretch best = stretch_best(c, k, end);
        struct call_stretch *last =
            c->stretches.n > begun ? (struct call_stretch *)c->stretches.at + c->stretches.n - 1
                                   : NULL;
        k += best.period * best.rounds;
        if (best.rounds == 1 && last && last->rounds == 1) {
            last->period++;
            continue;
        }
        if (!(last = list_add(c, &c->stretches, 1)))
            return false;
        *last = best;
    }
    return true;
}

/* For each call the next of its kind. */
static void told_link(struct tensor_calls *c)
{
    for (uint32_t k = 0; k < c->kinds.n; k++)
        calls_kind(c, k)->next = UINT32_MAX;
    for (uint32_t k = c->told.n; k-- > 0;) {
        struct call_told *told = calls_told(c, k);
        told->next = calls_kind(c, told->kind)->next;
        calls_kind(c, told->kind)->next = k;
    }
}

bool calls_make(struct tensor_calls *c, struct tape *t, uint32_t m, const uint32_t *y, uint32_t n,
                const uint32_t *x, bool *reached)
{
    *c = (struct tensor_calls){
        .teller = {teller_call, teller_move, teller_outside, teller_forward, teller_leaf},
        .t = t,
        .m = m,
        .n = n,
        .y = y,
        .x = x,
        .reached = reached,
        .layouts.bytes = sizeof(struct ad_kernel_array),
        .layout_ids.bytes = sizeof(uint32_t),
        .attrs.bytes = sizeof(int64_t),
        .kinds.bytes = sizeof(struct call_kind),
        .told.bytes = sizeof(struct call_told),
        .places.bytes = sizeof(struct call_place),
        .spans.bytes = sizeof(struct call_segment),
        .outside.bytes = sizeof(struct call_outside),
        .segments.bytes = sizeof(struct call_segment),
        .stretches.bytes = sizeof(struct call_stretch)};
    memset(c->bucket, 0xff, sizeof c->bucket);
    if (!tape_tell(t, &c->teller, m, y)) {
        c->failed = t->error.code == TAPE_OK;
        return false;
    }
    if (c->failed || !segments_make(c))
        return false;
    for (uint32_t k = 0; k < c->places.n; k++) {
        struct call_place *p = calls_place(c, k);
        if (p->at >= TAPE_TOLD_OUTSIDE)
            place_outside(c, p);
        else
            place_inside(c, p);
    }
    told_link(c);
    const bool found = stretches_find(c, 0, c->n_forward);
    c->n_forward_stretches = c->stretches.n;
    return found && stretches_find(c, c->n_forward, c->told.n);
}

void calls_drop(struct tensor_calls *c)
{
    struct call_list *const all[] = {&c->layouts,  &c->layout_ids, &c->attrs, &c->kinds,
                                     &c->told,     &c->places,     &c->spans, &c->outside,
                                     &c->segments, &c->stretches};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        list_drop(c, all[k]);
}
