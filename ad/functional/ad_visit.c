/* ad_visit.c: leaves of a struct's members, gradients into a struct of the same type, and its
 * arrays to and from a file, by the user's function that names the members.
 *
 * A visit is one call of that function. What it finds is a list of members; the second visit, to
 * where gradients go, is held to the first.
 */
#include "ad_derivative.h"
#include "ad_npz.h"

#include <tapescope/ad_file.h>

#include "tape_value.h"

#include <string.h>

struct visited {
    const char *name;
    ad_tensor leaf;
    int dtype, rank;
    int64_t shape[AD_MAX_RANK], size;
    void *data; /* of the leaf, where its gradient goes, or of the file */
};

enum visit_mode {
    VISIT_LEAVES,   /* leaves are made */
    VISIT_HANDLES,  /* they are there */
    VISIT_TARGETS,  /* where gradients go */
    VISIT_SPOILING, /* the same after a failure */
    VISIT_ARRAYS,   /* arrays alone, for a file */
};

struct ad_visitor {
    struct tape *t;
    ad_tape tape;
    const char *what; /* the call */
    struct tape_site site;
    enum visit_mode mode;
    struct tape_memory memory;
    struct visited *member; /* [n] of a list of `size` */
    uint32_t n, size;
    uint32_t at; /* VISIT_TARGETS: how many have come */
};

/* The user's function has not destroyed the tape. */
static bool visitor_intact(const struct ad_visitor *v)
{
    return ad_tape_find(v->tape.slot, v->tape.generation, v->what, v->site) == v->t;
}

/* The member that comes is the one of the first visit. */
static ad_status visit_target(struct ad_visitor *v, const struct visited *m, struct tape_site site)
{
    if (v->at >= v->n)
        return (ad_status)tape_fail(v->t, TAPE_ERROR_STATE, site,
                                    "visit: %s: there were only %u members at the first visit",
                                    m->name, v->n);
    struct visited *first = &v->member[v->at];
    if (strcmp(first->name, m->name) != 0 || first->dtype != m->dtype || first->rank != m->rank ||
        memcmp(first->shape, m->shape, (size_t)m->rank * sizeof *m->shape) != 0)
        return (ad_status)tape_fail(
            v->t, TAPE_ERROR_STATE, site,
            "visit: member %u is %s, at the first visit it was %s, or of another shape", v->at,
            m->name, first->name);
    first->data = m->data;
    v->at++;
    return AD_OK;
}

/* Room for one more member. */
static bool visitor_reserve(struct ad_visitor *v, struct tape_site site)
{
    struct visited *member =
        tape_array_reserve(&v->memory, v->member, v->n + 1, &v->size, sizeof *member);
    if (member)
        v->member = member;
    else
        tape_fail(v->t, TAPE_ERROR_MEMORY, site, "visit: out of memory");
    return member != NULL;
}

static ad_status visit_array(struct ad_visitor *v, struct visited *m, struct tape_site site)
{
    struct tape *t = v->t;
    m->size = 1;
    for (int d = 0; d < m->rank; d++)
        if (__builtin_mul_overflow(m->size, m->shape[d], &m->size))
            return (ad_status)tape_fail(t, TAPE_ERROR_SHAPE, site,
                                        "visit: the size of the shape of %s overflows", m->name);
    if (!m->data && m->size > 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "visit: the data of %s is a null pointer", m->name);
    if (!visitor_reserve(v, site))
        return (ad_status)t->error.code;
    v->member[v->n++] = *m;
    return AD_OK;
}

static ad_status visit_leaf(struct ad_visitor *v, struct visited *m, ad_tensor *leaf,
                            struct tape_site site)
{
    struct tape *t = v->t;
    uint32_t value;
    if (!visitor_reserve(v, site))
        return (ad_status)t->error.code;
    if (v->mode == VISIT_LEAVES) {
        const enum tape_status status =
            tape_borrow(t, m->dtype, m->rank, m->shape, m->data, TAPE_GIVEN_LEAF, site, &value);
        if (status != TAPE_OK)
            return (ad_status)status;
        *leaf = ad_handle_of(t, v->tape.slot, v->tape.generation, value);
    }
    value = ad_value_on(t, *leaf, site, "visit: %s", m->name);
    if (!value)
        return (ad_status)t->error.code;
    const struct kernel_array *a = &t->entries[value].array;
    char text[96];
    if (a->dtype != m->dtype || a->rank != m->rank ||
        memcmp(a->shape, m->shape, (size_t)m->rank * sizeof *m->shape) != 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_SHAPE, site,
                                    "visit: %s has not the shape and dtype of its leaf, %s",
                                    m->name, kernel_describe(a, text, sizeof text));
    m->size = a->size;
    m->leaf = *leaf;
    v->member[v->n++] = *m;
    return AD_OK;
}

/* NaN, as far as the arguments make sense. */
static void visit_spoil(const struct visited *m, const int64_t *shape)
{
    int64_t size = 1;
    if (m->rank < 0 || m->rank > AD_MAX_RANK || (m->rank > 0 && !shape))
        return;
    for (int d = 0; d < m->rank; d++)
        if (shape[d] < 0 || __builtin_mul_overflow(size, shape[d], &size))
            return;
    if (m->dtype == KERNEL_F32 || m->dtype == KERNEL_F64)
        ad_spoil(m->dtype, m->data, size);
}

ad_status ad_visit_site(ad_visitor *v, const char *name, ad_tensor *leaf, ad_dtype dtype, int rank,
                        const int64_t *shape, void *data, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    struct visited m = {.name = name, .dtype = (int)dtype, .rank = rank, .data = data};
    if (!v)
        return ad_fail(AD_ERROR_ARGUMENT, site, "visit: visitor is a null pointer");
    if (v->mode == VISIT_SPOILING) {
        visit_spoil(&m, shape);
        return AD_OK;
    }
    struct tape *t = v->t;
    if (v->mode == VISIT_LEAVES && leaf) /* as the result of an op that failed */
        *leaf = (ad_tensor){v->tape.slot, v->tape.generation, 0, 0};
    if (!visitor_intact(v))
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!name || !leaf)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "visit: %s is a null pointer",
                                    name ? "leaf" : "name");
    if (tape_extents_check(t, name, rank, shape, site) != TAPE_OK)
        return (ad_status)t->error.code;
    if (dtype != AD_F32 && dtype != AD_F64)
        return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, site, "visit: %s is neither f32 nor f64",
                                    name);
    if (rank > 0)
        memcpy(m.shape, shape, (size_t)rank * sizeof *shape);
    if (v->mode == VISIT_ARRAYS)
        return visit_array(v, &m, site);
    return v->mode == VISIT_TARGETS ? visit_target(v, &m, site) : visit_leaf(v, &m, leaf, site);
}

/* One visit. */
static ad_status visit(struct ad_visitor *v, enum visit_mode mode, ad_visit_function *function,
                       void *model)
{
    struct tape *t = v->t;
    v->mode = mode;
    v->at = 0;
    if (mode == VISIT_SPOILING) {
        function(model, v);
        return AD_OK;
    }
    const struct tape_fixed fixed = t->fixed;
    t->fixed = (struct tape_fixed){t->n_values, t->n_marks, t->n_frames, t->last_record, "visit"};
    function(model, v);
    if (!visitor_intact(v))
        return ad_failed();
    t->fixed = fixed;
    if (v->t->error.code == TAPE_OK && mode == VISIT_TARGETS && v->at < v->n)
        return (ad_status)tape_fail(v->t, TAPE_ERROR_STATE, v->site,
                                    "%s: %u members were visited in the gradients, %u in the model",
                                    v->what, v->at, v->n);
    return (ad_status)v->t->error.code;
}

static void visitor_end(struct ad_visitor *v)
{
    if (v->member)
        v->memory.release(v->member, v->memory.payload);
}

/* Begins what a call does with visits. */
static ad_status visitor_begin(struct ad_visitor *v, ad_visit_function *function, const void *model)
{
    v->t = ad_tape_find(v->tape.slot, v->tape.generation, v->what, v->site);
    if (!v->t)
        return ad_failed();
    v->memory = *v->t->memory;
    if (v->t->error.code != TAPE_OK)
        return (ad_status)v->t->error.code;
    if (!function || !model)
        return (ad_status)tape_fail(v->t, TAPE_ERROR_ARGUMENT, v->site, "%s: %s is a null pointer",
                                    v->what, function ? "model" : "visit");
    return AD_OK;
}

ad_status ad_visit_leaves_site(ad_tape tape, ad_visit_function *function, void *model,
                               unsigned ad_line_)
{
    struct ad_visitor v = {.tape = tape, .site = AD_HERE, .what = "visit_leaves"};
    ad_status status = visitor_begin(&v, function, model);
    if (status == AD_OK) {
        const struct tape_mark before = tape_mark_here(v.t);
        status = visit(&v, VISIT_LEAVES, function, model);
        if (status != AD_OK && visitor_intact(&v))
            tape_drop_behind(v.t, &before);
    }
    visitor_end(&v);
    return status;
}

/* The gradients of the members of one visit go to those of the other. */
static ad_status gradients(struct ad_visitor *v)
{
    struct ad_scratch scratch = {.memory = v->memory};
    ad_tensor *x = ad_scratch_get(&scratch, v->n, sizeof *x);
    void **buffer = ad_scratch_get(&scratch, v->n, sizeof *buffer);
    int64_t *count = ad_scratch_get(&scratch, v->n, sizeof *count);
    if (!x || !buffer || !count) {
        ad_scratch_free(&scratch);
        return (ad_status)tape_fail(v->t, TAPE_ERROR_MEMORY, v->site, "%s: out of memory", v->what);
    }
    for (uint32_t i = 0; i < v->n; i++) {
        const struct visited *m = &v->member[i];
        x[i] = m->leaf;
        buffer[i] = m->data;
        count[i] = m->size;
    }
    const ad_status status = ad_gradients_read((int)v->n, x, buffer, count, v->site);
    ad_scratch_free(&scratch);
    return status;
}

ad_status ad_visit_gradients_site(ad_tape tape, ad_visit_function *function, void *model, void *to,
                                  unsigned ad_line_)
{
    struct ad_visitor v = {.tape = tape, .site = AD_HERE, .what = "visit_gradients"};
    ad_status status = visitor_begin(&v, function, model);
    if (status == AD_OK && !to)
        status = (ad_status)tape_fail(v.t, TAPE_ERROR_ARGUMENT, v.site,
                                      "%s: gradients is a null pointer", v.what);
    if (status == AD_OK)
        status = visit(&v, VISIT_HANDLES, function, model);
    if (status == AD_OK)
        status = visit(&v, VISIT_TARGETS, function, to);
    if (status == AD_OK)
        status = gradients(&v);
    if (status != AD_OK && function && to)
        visit(&v, VISIT_SPOILING, function, to);
    visitor_end(&v);
    return status;
}

/* ---- files ---- */

/* The members as arrays of a file. NULL: the tape's error. */
static struct ad_npz_array *visited_arrays(const struct ad_visitor *v, struct ad_npz *f)
{
    struct ad_npz_array *a = ad_scratch_get(&f->scratch, v->n, sizeof *a);
    if (!a)
        tape_fail(v->t, TAPE_ERROR_MEMORY, v->site, "%s: out of memory", v->what);
    for (uint32_t i = 0; a && i < v->n; i++) {
        const struct visited *m = &v->member[i];
        a[i] = (struct ad_npz_array){.name = m->name, .given = true};
        a[i].array = (struct ad_npy_array){
            .dtype = m->dtype, .rank = m->rank, .size = m->size, .data = m->data};
        memcpy(a[i].array.shape, m->shape, (size_t)m->rank * sizeof *m->shape);
    }
    return a;
}

static void take_arrays(const struct ad_visitor *v, const struct ad_npz_array *a)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->member[i].size > 0)
            memcpy(v->member[i].data, a[i].array.data,
                   (size_t)a[i].array.size * kernel_dtype_bytes(a[i].array.dtype));
}

/* One visit, whose arrays go to the file or come from it. */
static ad_status visit_file(struct ad_visitor *v, const char *path, ad_visit_function *function,
                            void *model, bool loads)
{
    struct ad_npz f = {.what = v->what, .path = path, .site = v->site};
    ad_status status;
    if (!ad_npz_begin(&f, v->tape, &status))
        return status;
    status = visitor_begin(v, function, model);
    if (status == AD_OK)
        status = visit(v, VISIT_ARRAYS, function, model);
    if (status == AD_OK) {
        struct ad_npz_array *a = visited_arrays(v, &f);
        const int n = (int)v->n;
        status = !a      ? (ad_status)v->t->error.code
                 : loads ? ad_npz_read(&f, n, a)
                         : ad_npz_write(&f, n, a);
        if (a && status == AD_OK && loads)
            take_arrays(v, a);
    }
    ad_scratch_free(&f.scratch);
    visitor_end(v);
    return status;
}

ad_status ad_visit_save_site(ad_tape tape, const char *path, ad_visit_function *function,
                             void *model, unsigned ad_line_)
{
    struct ad_visitor v = {.tape = tape, .site = AD_HERE, .what = "visit_save"};
    return visit_file(&v, path, function, model, false);
}

ad_status ad_visit_load_site(ad_tape tape, const char *path, ad_visit_function *function,
                             void *model, unsigned ad_line_)
{
    struct ad_visitor v = {.tape = tape, .site = AD_HERE, .what = "visit_load"};
    return visit_file(&v, path, function, model, true);
}
