/* reverse_written.c: see reverse_written.h. */
#include "reverse_written.h"

#include "common_own.h"
#include "common_rounds.h"

#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const char written_name[] = "gmm_d10_k25";

extern const struct real_objective program_gmm_loop;
extern char **environ;

enum { PATH_BYTES = 64 };
static const double compile_bound = 5; /* seconds of a processor */

typedef const char *written_adjoint(const double *x, const double *y_bar, double *x_bar,
                                    double *work);

struct written {
    struct problem problem;
    char folder[PATH_BYTES];
    void *library;
    written_adjoint *adjoint;
    double *work, *primal_work, *gradient, *by_hand;
};

static bool written_complain(const char *why)
{
    fprintf(stderr, "%s as C: %s\n", written_name, why);
    return false;
}

static void path_of(const struct written *w, const char *name, char path[PATH_BYTES + 16])
{
    (void)snprintf(path, PATH_BYTES + 16, "%s/%s", w->folder, name);
}

/* ---- the file ---- */

static ad_status program_write(const struct written *w, struct real *real, FILE *file)
{
    const int64_t n = (int64_t)w->problem.n_variables;
    ad_real y = {0};
    ad_real_leaves(real->tape, n, w->problem.x, real->x);
    ad_tape_program_begin(real->tape);
    real->objective->value(&w->problem, real->x, real->work, &y);
    const ad_status status = ad_tape_program_end(real->tape);
    return status == AD_OK ? ad_tape_write_c(file, real->tape, "mixture", 1, &y, n, real->x, 0)
                           : status;
}

static bool file_write(const struct written *w)
{
    struct real real;
    char path[PATH_BYTES + 16];
    path_of(w, "mixture.c", path);
    FILE *const file = fopen(path, "w");
    if (!file)
        return written_complain(strerror(errno));
    bool done = real_open(&real, &w->problem, &program_gmm_loop, NULL);
    if (done) {
        done =
            program_write(w, &real, file) == AD_OK || written_complain(ad_tape_message(real.tape));
        /* An enumerator has no address. */
        fprintf(file, "const long mixture_room = mixture_work;\n");
        real_close(&real);
    }
    return (fclose(file) == 0 || written_complain(strerror(errno))) && done;
}

/* Processor seconds of the compiler; 0: there is none; NaN: it failed. */
static double file_compile(const struct written *w)
{
    char source[PATH_BYTES + 16], object[PATH_BYTES + 16];
    path_of(w, "mixture.c", source);
    path_of(w, "mixture.so", object);
    char *const argv[] = {"cc", "-std=c99", "-O2",  "-shared", "-fPIC",
                          "-o", object,     source, "-lm",     NULL};
    pid_t child;
    int status;
    struct rusage used;
    if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) != 0)
        return 0;
    if (wait4(child, &status, 0, &used) != child || status != 0)
        return (double)NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static bool library_open(struct written *w)
{
    char path[PATH_BYTES + 16];
    path_of(w, "mixture.so", path);
    w->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const long *const room = w->library ? dlsym(w->library, "mixture_room") : NULL;
    *(void **)(void *)&w->adjoint = room ? dlsym(w->library, "mixture_adjoint") : NULL;
    if (!w->adjoint)
        return written_complain(dlerror());
    w->work = malloc(((size_t)*room + 1) * sizeof *w->work);
    w->primal_work = malloc(w->problem.work_bytes + 1);
    w->gradient = malloc(w->problem.n_gradient * sizeof *w->gradient);
    w->by_hand = malloc(w->problem.n_gradient * sizeof *w->by_hand);
    return (w->work && w->primal_work && w->gradient && w->by_hand) ||
           written_complain("no memory");
}

/* ---- rounds ---- */

static const char *adjoint_run(const struct written *w)
{
    const double one = 1;
    return w->adjoint(w->problem.x, &one, w->gradient, w->work);
}

static const char *primal_run(const struct written *w)
{
    double value;
    w->problem.spec->kind->value(&w->problem, w->problem.x, w->primal_work, &value);
    return NULL;
}

struct written_repeated {
    const struct written *of;
    const char *(*run)(const struct written *w);
};

static bool written_once(void *context)
{
    const struct written_repeated *r = context;
    const char *line = r->run(r->of);
    return !line || written_complain(line);
}

/* The gradient is the one that was written by hand. */
static bool written_is_right(const struct written *w)
{
    double value;
    const char *line = adjoint_run(w);
    w->problem.spec->kind->gradient(&w->problem, w->problem.x, w->primal_work, &value, w->by_hand);
    if (line)
        return written_complain(line);
    return problem_distances(w->problem.n_gradient, w->gradient, w->by_hand) <= 1e-9 ||
           written_complain("another gradient than the one by hand");
}

static bool written_rows(const struct options *options, const struct written *w, double seconds)
{
    char metric[OWN_METRIC_BYTES];
    (void)snprintf(metric, sizeof metric, "f64_%dt_written_adjoint", options->threads);
    struct written_repeated run[] = {{w, adjoint_run}, {w, primal_run}};
    struct rounds_repeated adjoint = {written_once, &run[0]}, primal = {written_once, &run[1]};
    const struct rounds_plan plan = {.suite = "reverse",
                                     .case_name = written_name,
                                     .unit = "ns",
                                     .metric = {metric},
                                     .n_metrics = 1,
                                     .rounds = options->rounds,
                                     .seconds = options->seconds};
    rounds_row("reverse", written_name, "written_compile", seconds, "bound", compile_bound,
               seconds / compile_bound, "s");
    return rounds_compare(&plan, &(struct rounds_side){"tapescope", rounds_repeat, &adjoint},
                          &(struct rounds_side){"primal", rounds_repeat, &primal});
}

static bool written_measure(const struct options *options, struct written *w)
{
    if (!file_write(w))
        return false;
    const double seconds = file_compile(w);
    if (seconds == 0) {
        fprintf(stderr, "%s: no rows of the program as C: there is no compiler `cc`\n",
                written_name);
        return true;
    }
    if (isnan(seconds))
        return written_complain("`cc` does not compile it");
    return library_open(w) && written_is_right(w) && written_rows(options, w, seconds);
}

static void written_close(struct written *w)
{
    static const char *const files[] = {"mixture.c", "mixture.so"};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[PATH_BYTES + 16];
        path_of(w, files[k], path);
        (void)remove(path);
    }
    (void)rmdir(w->folder);
    if (w->library)
        dlclose(w->library);
    free(w->work);
    free(w->primal_work);
    free(w->gradient);
    free(w->by_hand);
}

bool written_compare(const struct options *options)
{
    struct written w = {.folder = "/tmp/bench_reverse.XXXXXX"};
    if (!problem_open(&w.problem, problem_find(written_name), NULL))
        return false;
    bool done = mkdtemp(w.folder) != NULL || written_complain(strerror(errno));
    if (done) {
        done = written_measure(options, &w);
        written_close(&w);
    }
    problem_close(&w.problem);
    return done;
}
