/* problem.h: the scalar problems that are measured: what they are, and what is asked of each.
 *
 * Invariant: a problem's inputs depend on its case and its data folder alone, so that every
 * program sees the same ones.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROBLEM_SIZES = 3 };

struct problem;

/* What all problems of one kind share. The functions take a problem that problem_open opened, the
 * n_variables independents x, and work_bytes of memory of any content. */
struct problem_kind {
    /* Makes inputs of those sizes by a formula: sets input, x and the counts. False: no memory. */
    bool (*make)(struct problem *problem, const int *sizes);

    /* Reads them from a file of the ADBench suite in a folder. False: said why on standard error.
     * NULL: there is no such file. */
    bool (*read)(struct problem *problem, const char *folder);

    void (*drop)(void *input);

    /* n_outputs numbers, in plain C. */
    void (*value)(const struct problem *problem, const double *x, void *work, double *outputs);

    /* The same and its derivatives, written by hand: n_gradient numbers, their order said by the
     * kind's header. */
    void (*gradient)(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *gradient);
};

/* A named case: a kind at some size. file: below the data folder, or NULL. */
struct problem_case {
    const char *name;
    const struct problem_kind *kind;
    const char *file;
    int sizes[PROBLEM_SIZES];
};

struct problem {
    const struct problem_case *spec;
    void *input; /* what the kind's header says */
    double *x;   /* n_variables: where the derivatives are taken */
    size_t n_variables, n_outputs, n_gradient;
    size_t work_bytes; /* that the gradient needs; the value needs no more */
};

/* All of them, ended by one without a name. */
extern const struct problem_case problem_cases[];

/* The case of that name, or NULL. */
const struct problem_case *problem_find(const char *name);

/* Opens a case with inputs of its own, or with ADBench's where folder is not NULL and the case has
 * a file. False, having said why on standard error, leaves nothing open. */
bool problem_open(struct problem *problem, const struct problem_case *spec, const char *folder);

void problem_close(struct problem *problem);

/* The distance of two numbers as ADBench measures it: |a - b| / max(1, |a| + |b|). */
double problem_distance(double a, double b);

/* The greatest distance of n pairs; NaN anywhere gives NaN. */
double problem_distances(size_t n, const double *a, const double *b);

#ifdef __cplusplus
}
#endif

#endif
