/* reverse_written.c: see reverse_written.h. */
#include "reverse_written.h"

#include "common_own.h"
#include "common_rounds.h"

#include "real.h"

#include <tapescope/ad_tensor_program.h>

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

/* FOLDER/program.c, and what it is compiled to. */
struct written_file {
    const char *of; /* the case */
    char folder[PATH_BYTES];
    void *library, *adjoint;
    double *work;
};

struct written {
    struct problem problem;
    struct written_file file;
    double *primal_work, *gradient, *by_hand;
};

static bool complain_of(const struct written_file *f, const char *why)
{
    fprintf(stderr, "%s as C: %s\n", f->of, why);
    return false;
}

static bool written_complain(const struct written *w, const char *why)
{
    return complain_of(&w->file, why);
}

static void path_of(const struct written_file *f, const char *name, char path[PATH_BYTES + 16])
{
    (void)snprintf(path, PATH_BYTES + 16, "%s/%s", f->folder, name);
}

/* ---- the file ---- */

static FILE *file_begin(struct written_file *f)
{
    char path[PATH_BYTES + 16];
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/bench_reverse.XXXXXX");
    if (!mkdtemp(f->folder)) {
        f->folder[0] = 0;
        (void)complain_of(f, strerror(errno));
        return NULL;
    }
    path_of(f, "program.c", path);
    FILE *const file = fopen(path, "w");
    if (!file)
        (void)complain_of(f, strerror(errno));
    return file;
}

static bool file_end(const struct written_file *f, FILE *file)
{
    /* An enumerator has no address. */
    fprintf(file, "const long program_room = program_work;\n");
    return fclose(file) == 0 || complain_of(f, strerror(errno));
}

static ad_status program_write(const struct written *w, struct real *real, FILE *file)
{
    const int64_t n = (int64_t)w->problem.n_variables;
    ad_real y = {0};
    ad_real_leaves(real->tape, n, w->problem.x, real->x);
    ad_tape_program_begin(real->tape);
    real->objective->value(&w->problem, real->x, real->work, &y);
    const ad_status status = ad_tape_program_end(real->tape);
    return status == AD_OK ? ad_tape_write_c(file, real->tape, "program", 1, &y, n, real->x, 0)
                           : status;
}

static bool numbers_write(struct written *w)
{
    struct real real;
    FILE *const file = file_begin(&w->file);
    if (!file)
        return false;
    bool done = real_open(&real, &w->problem, &program_gmm_loop, NULL);
    if (done) {
        done = program_write(w, &real, file) == AD_OK ||
               written_complain(w, ad_tape_message(real.tape));
        real_close(&real);
    }
    return file_end(&w->file, file) && done;
}

/* Processor seconds of the compiler; 0: there is none; NaN: it failed. */
static double file_compile(const struct written_file *f)
{
    char source[PATH_BYTES + 16], object[PATH_BYTES + 16];
    path_of(f, "program.c", source);
    path_of(f, "program.so", object);
    static char headers[] = BENCH_INCLUDE;
    char *const argv[] = {"cc",    "-std=c99", "-O2",  "-I",   headers, "-shared",
                          "-fPIC", "-o",       object, source, "-lm",   NULL};
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

static bool file_open(struct written_file *f)
{
    char path[PATH_BYTES + 16];
    path_of(f, "program.so", path);
    f->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const long *const room = f->library ? dlsym(f->library, "program_room") : NULL;
    f->adjoint = room ? dlsym(f->library, "program_adjoint") : NULL;
    if (!f->adjoint)
        return complain_of(f, dlerror());
    f->work = malloc(((size_t)*room + 1) * sizeof *f->work);
    return f->work || complain_of(f, "no memory");
}

/* Compiles and opens it, and tells what the compiler took. *none: there is no compiler. */
static bool file_make(struct written_file *f, bool *none)
{
    const double seconds = file_compile(f);
    *none = seconds == 0;
    if (*none) {
        fprintf(stderr, "%s: no rows of the program as C: there is no compiler `cc`\n", f->of);
        return true;
    }
    if (isnan(seconds))
        return complain_of(f, "`cc` does not compile it");
    if (!file_open(f))
        return false;
    rounds_row("reverse", f->of, "written_compile", seconds, "bound", compile_bound,
               seconds / compile_bound, "s");
    return true;
}

static void file_close(struct written_file *f)
{
    static const char *const files[] = {"program.c", "program.so"};
    for (size_t k = 0; f->folder[0] && k < sizeof files / sizeof *files; k++) {
        char path[PATH_BYTES + 16];
        path_of(f, files[k], path);
        (void)remove(path);
    }
    if (f->folder[0])
        (void)rmdir(f->folder);
    if (f->library)
        dlclose(f->library);
    free(f->work);
}

/* ---- numbers ---- */

static const char *adjoint_run(const struct written *w)
{
    const double one = 1;
    written_adjoint *adjoint;
    *(void **)(void *)&adjoint = w->file.adjoint;
    return adjoint(w->problem.x, &one, w->gradient, w->file.work);
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
    return !line || written_complain(r->of, line);
}

/* The gradient is the one that was written by hand. */
static bool written_is_right(const struct written *w)
{
    double value;
    const char *line = adjoint_run(w);
    w->problem.spec->kind->gradient(&w->problem, w->problem.x, w->primal_work, &value, w->by_hand);
    if (line)
        return written_complain(w, line);
    return problem_distances(w->problem.n_gradient, w->gradient, w->by_hand) <= 1e-9 ||
           written_complain(w, "another gradient than the one by hand");
}

static bool written_rows(const struct options *options, const struct written *w)
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
    return rounds_compare(&plan, &(struct rounds_side){"tapescope", rounds_repeat, &adjoint},
                          &(struct rounds_side){"primal", rounds_repeat, &primal});
}

static bool written_measure(const struct options *options, struct written *w)
{
    bool none;
    if (!numbers_write(w) || !file_make(&w->file, &none))
        return false;
    if (none)
        return true;
    w->primal_work = malloc(w->problem.work_bytes + 1);
    w->gradient = malloc(w->problem.n_gradient * sizeof *w->gradient);
    w->by_hand = malloc(w->problem.n_gradient * sizeof *w->by_hand);
    if (!w->primal_work || !w->gradient || !w->by_hand)
        return written_complain(w, "no memory");
    return written_is_right(w) && written_rows(options, w);
}

bool written_compare(const struct options *options)
{
    struct written w = {.file = {.of = written_name}};
    if (!problem_open(&w.problem, problem_find(written_name), NULL))
        return false;
    const bool done = written_measure(options, &w);
    file_close(&w.file);
    free(w.primal_work);
    free(w.gradient);
    free(w.by_hand);
    problem_close(&w.problem);
    return done;
}

/* ---- tensors ---- */

typedef const char *tensors_adjoint(const void *const *x, void *const *y, const void *const *y_bar,
                                    void *const *x_bar, double *work);

struct tensors_written {
    const struct workload *workload;
    struct written_file file;
    int64_t n[WORKLOAD_MAX_ARRAYS];
    double *x[WORKLOAD_MAX_ARRAYS], *gradient[WORKLOAD_MAX_ARRAYS], *swept;
};

static bool tensors_once(void *context)
{
    struct tensors_written *w = context;
    double loss;
    const double one = 1;
    tensors_adjoint *adjoint;
    *(void **)(void *)&adjoint = w->file.adjoint;
    const char *why =
        adjoint((const void *const *)(void *)w->x, (void *const[]){&loss},
                (const void *const[]){&one}, (void *const *)(void *)w->gradient, w->file.work);
    return !why || complain_of(&w->file, why);
}

static bool tensors_write(struct tensors_written *w, ad_tensor loss)
{
    const struct workload *of = w->workload;
    FILE *const file = file_begin(&w->file);
    if (!file)
        return false;
    const bool done = ad_tensor_write_c(file, of->tape, "program", 1, &loss, of->n_parameters,
                                        of->parameter) == AD_OK ||
                      complain_of(&w->file, ad_tape_message(of->tape));
    return file_end(&w->file, file) && done;
}

/* Gradients are those of the sweep that was, bit for bit. */
static bool tensors_are_right(struct tensors_written *w)
{
    const struct workload *of = w->workload;
    for (int k = 0; k < of->n_parameters; k++) {
        const size_t n = (size_t)(w->n[k] = ad_size(of->parameter[k]));
        w->x[k] = malloc(n * sizeof(double));
        w->gradient[k] = malloc(n * sizeof(double));
        if (!w->x[k] || !w->gradient[k])
            return complain_of(&w->file, "no memory");
        if (ad_value(of->parameter[k], w->x[k], w->n[k]) != AD_OK)
            return complain_of(&w->file, ad_tape_message(of->tape));
    }
    bool same = tensors_once(w);
    for (int k = 0; k < of->n_parameters && same; k++) {
        free(w->swept);
        w->swept = malloc((size_t)w->n[k] * sizeof(double));
        if (!w->swept || ad_gradient(of->parameter[k], w->swept, w->n[k]) != AD_OK)
            return complain_of(&w->file, "its gradients cannot be read");
        const void *is = w->gradient[k], *was = w->swept;
        same = memcmp(is, was, (size_t)w->n[k] * sizeof(double)) == 0;
        if (!same)
            (void)complain_of(&w->file, "its gradients are not those of a sweep");
    }
    return same;
}

bool written_tensors_compare(const struct options *options, const struct workload *workload,
                             ad_tensor loss, const struct rounds_side *peer)
{
    char metric[OWN_METRIC_BYTES];
    struct tensors_written w = {.workload = workload, .file = {.of = workload->spec->name}};
    struct rounds_repeated adjoint = {tensors_once, &w};
    (void)snprintf(metric, sizeof metric, "f64_%dt_written", options->threads);
    const struct rounds_plan plan = {.suite = "reverse",
                                     .case_name = workload->spec->name,
                                     .unit = "ns",
                                     .metric = {metric},
                                     .n_metrics = 1,
                                     .rounds = options->rounds,
                                     .seconds = options->seconds};
    bool none, done = tensors_write(&w, loss) && file_make(&w.file, &none);
    if (done && !none)
        done = tensors_are_right(&w) &&
               rounds_compare(&plan, &(struct rounds_side){"tapescope", rounds_repeat, &adjoint},
                              peer);
    file_close(&w.file);
    for (int k = 0; k < WORKLOAD_MAX_ARRAYS; k++) {
        free(w.x[k]);
        free(w.gradient[k]);
    }
    free(w.swept);
    return done;
}
