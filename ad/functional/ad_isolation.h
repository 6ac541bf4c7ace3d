/* ad_isolation.h: a function of the user's by itself: the leaves x[n] are the only variables, and
 * nothing that the user can see of the tape changes but what is kept on purpose.
 *
 * Meanwhile the leaves' adjoints are buffers of the isolation's own, and whatever else was on the
 * tape before is constant, so that no gradient of the user's is touched and sweeps see the leaves
 * alone. What would drop or change anything older is refused (tape.fixed).
 */
#ifndef AD_ISOLATION_H
#define AD_ISOLATION_H

#include "ad_internal.h"
#include "ad_scratch.h"

struct ad_isolated_leaf {
    uint32_t value, epoch;
    void *adjoint; /* the tape's, to be put back */
    void *own;     /* receives sweeps', those of the function as well */
};

struct ad_isolation {
    /* The caller's: */
    ad_tape tape;
    struct tape *t;
    struct tape_site site;
    const char *what; /* the call, for messages; static storage */
    const char *by;   /* the same for messages of what it refuses meanwhile; NULL: what */
    int n;
    const ad_tensor *x;
    /* Where what is constant ends, and its records; NULL: at the end of the tape. */
    const struct tape_mark *older;
    /* The isolation's: */
    struct ad_scratch scratch; /* for the caller as well, until the end */
    struct ad_isolated_leaf *leaf;
    struct tape_arena_mark arena; /* before the buffers */
    uint32_t level;               /* everything that is made meanwhile lies behind this mark */
    struct tape_fixed fixed;      /* of an isolation whose function begins this one */
    bool hold;
    uint32_t n_values, epoch, sweeps, swept_epoch;
    uint32_t *flags; /* [n_values], as they were */
};

/* Begins it. After an error, which is the tape's, there is nothing to end. Errors: the tape's that
 * there is; AD_ERROR_ARGUMENT, AD_ERROR_HANDLE, AD_ERROR_TAPE (x, n), AD_ERROR_STATE (under
 * no_grad, while a checkpoint's function runs), AD_ERROR_MEMORY. */
ad_status ad_isolation_begin(struct ad_isolation *s);

/* The tape is still there; if so, no reset and no rewind can have taken what was on it. False: the
 * thread's error says so. */
bool ad_isolation_intact(const struct ad_isolation *s);

/* Calls the function. *y: its result, whatever it is; leaves that it made are constants. */
ad_status ad_isolation_call(struct ad_isolation *s, ad_function *function, void *payload,
                            uint32_t *y);

/* The next sweep gives the leaves' gradients anew. */
void ad_isolation_clear(struct ad_isolation *s);

/* The gradient of x[i] that the sweeps since have given, or NULL: zeros. */
const void *ad_isolation_gradient(const struct ad_isolation *s, int i);

/* Drops what was made since the begin; handles of it become stale. */
void ad_isolation_drop(struct ad_isolation *s);

/* The same of the mark at `level`, which goes as well; gradients stay, unlike by a rewind. */
void ad_isolation_drop_level(struct tape *t, uint32_t level);

/* Ends it: all is dropped, or stays behind the mark `level`. */
void ad_isolation_end(struct ad_isolation *s);
void ad_isolation_end_keeping(struct ad_isolation *s);

#endif
