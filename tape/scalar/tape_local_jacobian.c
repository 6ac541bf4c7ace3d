/* tape_local_jacobian.c: see tape_local_jacobian.h.
 *
 * The runs are copied with the words' indices renumbered: results of the part come first, then one
 * element that stands for constants, then what the part reads of older values, each found once by
 * hashing.
 */
#include "tape_local_jacobian.h"

#include "tape_preaccumulate.h"
#include "tape_statement_sweep.h"

#include <string.h>

enum {
    OPERAND_BYTES = 12,
    KEYS_LEAST = 32,
    WIDE_BYTES = 64 << 20 /* adjoints beyond it are swept for fewer rows at a time */
};

static const char no_memory[] = "there is no memory for its Jacobian";
static const char larger[] = "its Jacobian takes no fewer bytes";

/* ---- memory ---- */

void *tape_scratch(struct tape *t, enum tape_scratch_use use, uint64_t bytes)
{
    struct tape_scratch *s = &t->sections->scratch[use];
    if (s->p && bytes <= s->bytes)
        return s->p;
    void *p = tape_arena_buffer(&t->arena, bytes);
    if (!p) {
        t->arena.refused = 0; /* no error says so */
        return NULL;
    }
    tape_account_buffer(t, t->sections->row, bytes);
    if (s->p) {
        memcpy(p, s->p, s->bytes);
        tape_arena_free(&t->arena, s->p, s->bytes);
        tape_account_free(t, t->sections->row, s->bytes);
    }
    *s = (struct tape_scratch){p, bytes};
    return p;
}

void tape_scratch_free(struct tape *t)
{
    for (int k = 0; k < TAPE_SCRATCHES; k++) {
        struct tape_scratch *s = &t->sections->scratch[k];
        if (!s->p)
            continue;
        tape_arena_free(&t->arena, s->p, s->bytes);
        tape_account_free(t, t->sections->row, s->bytes);
        s->p = NULL;
    }
}

/* ---- numbers for indices ---- */

struct jacobian_part {
    struct tape *t;
    uint32_t first, n;                 /* indices of the part's own results */
    uint32_t *keys, n_keys, keys_size; /* key of each number from 1 on: inputs, then outputs */
    uint32_t *table, shift;            /* numbers by key, 0: none */
    struct tape_run *runs;             /* newest first */
    uint32_t n_runs, n_inputs;
};

static uint32_t place_of(const struct jacobian_part *p, uint32_t key)
{
    const uint32_t mask = p->keys_size * 2 - 1;
    uint32_t at = (uint32_t)(key * UINT32_C(2654435769)) >> p->shift;
    while (p->table[at] && p->keys[p->table[at]] != key)
        at = (at + 1) & mask;
    return at;
}

/* Room for twice as many keys, or for the first. */
static bool keys_grow(struct jacobian_part *p)
{
    const uint64_t size = p->keys_size ? (uint64_t)p->keys_size * 2 : KEYS_LEAST;
    uint32_t *keys = size <= UINT32_C(1) << 30
                         ? tape_scratch(p->t, SCRATCH_KEYS, (size + 1) * sizeof *keys)
                         : NULL;
    uint32_t *table = keys ? tape_scratch(p->t, SCRATCH_TABLE, size * 2 * sizeof *table) : NULL;
    if (!table)
        return false;
    p->keys = keys;
    p->table = table;
    p->keys_size = (uint32_t)size;
    p->shift = 32 - (uint32_t)__builtin_ctz((uint32_t)size * 2);
    memset(table, 0, size * 2 * sizeof *table);
    for (uint32_t k = 1; k <= p->n_keys; k++)
        table[place_of(p, keys[k])] = k;
    return true;
}

/* The key's number, new or not; 0: out of memory. */
static uint32_t jacobian_number_of(struct jacobian_part *p, uint32_t key)
{
    uint32_t at = place_of(p, key);
    if (p->table[at])
        return p->table[at];
    if (p->n_keys == p->keys_size) {
        if (!keys_grow(p))
            return 0;
        at = place_of(p, key);
    }
    p->keys[++p->n_keys] = key;
    return p->table[at] = p->n_keys;
}

/* ---- the copy ---- */

static const char *copy_run(struct jacobian_part *p, const struct tape_run *run, uint32_t *to)
{
    if (run->fused_loop)
        return "it holds a record of a whole loop";
    for (const uint32_t *w = run->word_end; w < run->word_begin;) {
        const struct tape_operands o = tape_statement_operands(w);
        while (w < o.index)
            *to++ = *w++;
        for (const uint32_t *const end = w + o.n; w < end; w++) {
            uint32_t local = *w - p->first;
            if (*w < p->first) {
                const uint32_t number = *w ? jacobian_number_of(p, *w) : 0;
                if (*w && !number)
                    return no_memory;
                local = p->n + number;
            }
            *to++ = local;
        }
    }
    return NULL;
}

static const char *jacobian_copy(struct jacobian_part *p, uint32_t last)
{
    uint64_t words = 0;
    for (uint32_t at = p->t->last_record; at != last; p->n_runs++) {
        struct tape_record *r = tape_record_at(p->t, at);
        const struct tape_run *run = tape_run_of(r);
        words += (uint64_t)(run->word_begin - run->word_end);
        p->n += run->n;
        at = r->previous;
    }
    p->runs = tape_scratch(p->t, SCRATCH_RUNS, (uint64_t)p->n_runs * sizeof *p->runs);
    uint32_t *to = p->runs ? tape_scratch(p->t, SCRATCH_WORDS, words * sizeof *to) : NULL;
    if (!to || !keys_grow(p))
        return no_memory;
    uint32_t at = p->t->last_record;
    for (uint32_t k = 0; k < p->n_runs; k++) {
        struct tape_record *r = tape_record_at(p->t, at);
        const struct tape_run *run = tape_run_of(r);
        const char *why = copy_run(p, run, to);
        if (why)
            return why;
        p->runs[k] = *run;
        p->runs[k].first -= p->first;
        p->runs[k].word_end = to;
        p->runs[k].word_begin = to += run->word_begin - run->word_end;
        at = r->previous;
    }
    p->n_inputs = p->n_keys;
    return NULL;
}

/* ---- sweeps ---- */

static uint64_t adjoint_bytes(const struct jacobian_part *p, uint32_t width)
{
    return ((uint64_t)p->n + p->n_inputs + 1) * width * sizeof(double);
}

/* Adjoints of everything by `rows` rows from row r on. */
static double *jacobian_sweep(struct jacobian_part *p, uint32_t r, uint32_t rows, uint32_t width)
{
    double *adjoint = tape_scratch(p->t, SCRATCH_ADJOINTS, adjoint_bytes(p, width));
    if (!adjoint)
        return NULL;
    memset(adjoint, 0, adjoint_bytes(p, width));
    for (uint32_t k = 0; k < rows; k++) {
        const uint32_t output = p->keys[p->n_inputs + 1 + r + k] - p->first;
        adjoint[(size_t)output * width + k] = 1;
    }
    for (uint32_t k = 0; k < p->n_runs; k++)
        tape_run_pullback(&p->runs[k], adjoint, width, NULL);
    return adjoint;
}

/* Appends what is not zero of `rows` rows. False: that would take too many bytes. */
static bool jacobian_harvest(const struct jacobian_part *p, const double *adjoint, uint32_t rows,
                             uint32_t width, uint64_t most, struct tape_local_jacobian *j)
{
    const double *inputs = adjoint + ((size_t)p->n + 1) * width;
    for (uint32_t k = 0; k < rows; k++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_inputs; i++) {
            const double partial = inputs[(size_t)i * width + k];
            if (partial == 0)
                continue;
            const uint64_t more = tape_statement_bytes(n + 1, n + 1) - tape_statement_bytes(n, n);
            if (j->bytes + more >= most)
                return false;
            j->partial[j->n_entries] = partial;
            j->index[j->n_entries++] = p->keys[i + 1];
            j->bytes += more;
            n++;
        }
        j->n[j->n_rows++] = n;
    }
    return true;
}

static const char *sweep_rows(struct jacobian_part *p, uint32_t n_rows, uint64_t most,
                              struct tape_local_jacobian *j)
{
    uint32_t width = TAPE_MAX_WIDTH;
    while (width > 1 && adjoint_bytes(p, width) > WIDE_BYTES)
        width /= 2;
    while (j->n_rows < n_rows) {
        const uint32_t left = n_rows - j->n_rows;
        while (width > 1 && width / 2 >= left)
            width /= 2;
        const uint32_t rows = left < width ? left : width;
        const double *adjoint = jacobian_sweep(p, j->n_rows, rows, width);
        if (!adjoint)
            return no_memory;
        if (!jacobian_harvest(p, adjoint, rows, width, most, j))
            return larger;
    }
    return NULL;
}

const char *tape_local_jacobian(struct tape *t, uint32_t last, uint32_t first, uint64_t most,
                                int64_t m, uint32_t *output, struct tape_local_jacobian *j)
{
    struct jacobian_part p = {.t = t, .first = first};
    *j = (struct tape_local_jacobian){0};
    const char *why = jacobian_copy(&p, last);
    j->n_inputs = p.n_inputs;
    if (why)
        return why;
    for (int64_t i = 0; i < m; i++)
        if (output[i] >= first && !jacobian_number_of(&p, output[i]))
            return no_memory;
    const uint32_t n_rows = p.n_keys - p.n_inputs;
    j->bytes = n_rows * tape_statement_bytes(0, 0);
    if (j->bytes >= most)
        return larger;
    const uint64_t entries = (most - j->bytes) / OPERAND_BYTES + 1;
    j->partial = tape_scratch(t, SCRATCH_ROWS, entries * OPERAND_BYTES + n_rows * sizeof *j->n);
    if (!j->partial)
        return no_memory;
    j->index = (uint32_t *)(void *)(j->partial + entries);
    j->n = j->index + entries;
    why = sweep_rows(&p, n_rows, most, j);
    for (int64_t i = 0; i < m && !why; i++)
        if (output[i] >= first)
            output[i] = first + jacobian_number_of(&p, output[i]) - p.n_inputs - 1;
    return why;
}
