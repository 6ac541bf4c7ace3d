/* common_scalar.h: the figures of a scalar problem, whoever computes it.
 *
 * Invariant: programs of ours and of others take their figures by this code, in the same way.
 */
#ifndef COMMON_SCALAR_H
#define COMMON_SCALAR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Figures in ns, and the bytes of the tape at its end (NAN: the library does not say). Cold is the
 * first gradient of a process, everything included. */
enum {
    SCALAR_TOTAL_WARM,
    SCALAR_TOTAL_COLD,
    SCALAR_RECORD_COLD,
    SCALAR_RECORD_WARM,
    SCALAR_REVERSE_WARM,
    SCALAR_TIMES,
    SCALAR_TAPE_BYTES = SCALAR_TIMES,
    SCALAR_STATEMENTS, /* on the tape at its end (NAN: the library does not say) */
    SCALAR_FIGURES
};

/* One gradient. It sets what figures it knows of record and reverse; where reading a clock would
 * disturb, as with a thousand small tapes, it reads one only if `clocked`. */
struct scalar_step {
    double record, reverse;   /* ns; NAN: not measured */
    double bytes, statements; /* NAN: unknown */
};

/* A way to the gradient. step() returns false having said why. */
struct scalar_way {
    bool (*step)(void *context, bool clocked, struct scalar_step *step);
    void *context;
};

/* Measures in processes of their own: one for the first gradient, and one that goes on for so many
 * seconds after two steps that warm it up. Figures are medians. */
bool scalar_measure(const struct scalar_way *way, double seconds, double *figures);

/* The figures of a peer's answer, "ok" and SCALAR_FIGURES numbers: times into result[SCALAR_TIMES],
 * the bytes of a tape into *bytes. False unless it is such an answer; NULL is none. */
bool scalar_answer(const char *answer, double *result, double *bytes);

#ifdef __cplusplus
}
#endif

#endif
