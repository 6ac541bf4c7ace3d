/* bench_compile.c: what it takes to compile formulas over ad_real: processor seconds and megabytes
 * of the compiler, against the same computation over double; and of `tapescope cc`, against the
 * same clang. The sources are written here, but for
 * the problems of bench_scalar, each file of reals/ beside that of problems/.
 *
 * Both compilers are measured where there are both; --quick leaves out what takes longer than a few
 * seconds. The exit status is 1 if something does not compile.
 */
#include "common_options.h"
#include "common_rounds.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* As rows name it; run as BENCH_TAPESCOPE. */
#define TAPESCOPE_CC "tapescope_cc"

static struct options options;
static char folder[] = "/tmp/bench_compile.XXXXXX";

/* ---- the sources ---- */

/* A number that looks random: which variable stands where. */
static int draw(unsigned *state, int n)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)(*state >> 16) % n;
}

static void print_head(FILE *f, bool real)
{
    fprintf(f, "#include <%s>\n", real ? "tapescope/ad_real.h" : "math.h");
}

static void print_statements(FILE *f, bool real, int n, const char *name, unsigned *state)
{
    const char *type = real ? "ad_real" : "double";
    fprintf(f, "void %s(%s *x);\nvoid %s(%s *x)\n{\n", name, type, name, type);
    for (int i = 0; i < n; i++) {
        const int y = draw(state, 8), a = draw(state, 8), b = draw(state, 8), c = draw(state, 8);
        fprintf(f,
                real ? "    ad_set(&x[%d], ad_real_add(ad_real_mul(x[%d], x[%d]), "
                       "ad_real_sin(x[%d])));\n"
                     : "    x[%d] = x[%d] * x[%d] + sin(x[%d]);\n",
                y, a, b, c);
    }
    fprintf(f, "}\n");
}

/* A sum of n products, each behind the sum of those before. */
static void print_terms(FILE *f, bool real, int n)
{
    const char *type = real ? "ad_real" : "double";
    fprintf(f, "%s f(const %s *x);\n%s f(const %s *x)\n{\n    return ", type, type, type, type);
    if (real)
        fprintf(f, "ad_real_of(");
    for (int i = 1; i < n; i++)
        fprintf(f, real ? "ad_real_add(" : "(");
    fprintf(f, "x[0]");
    for (int i = 1; i < n; i++)
        fprintf(f, real ? ", ad_real_mul(x[%d], ad_real_sin(x[%d])))" : " + x[%d] * sin(x[%d]))",
                i % 4, (i + 1) % 4);
    fprintf(f, real ? ");\n}\n" : ";\n}\n");
}

static bool write_source(const char *path, bool real, int functions, int statements, int terms)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    unsigned state = 1;
    print_head(f, real);
    for (int i = 0; i < functions; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%d", i);
        print_statements(f, real, statements, name, &state);
    }
    if (terms)
        print_terms(f, real, terms);
    return fclose(f) == 0;
}

/* ---- the compiler ---- */

struct cost {
    double seconds, megabytes;
};

/* One run of the compiler; false: it fails. */
static bool compile_once(const char *compiler, const char *level, const char *source,
                         struct cost *cost)
{
    char generated[] = "-I" BENCH_GENERATED, include[] = "-I" BENCH_INCLUDE,
         problems[] = "-I" BENCH_SOURCE "/problems", reals[] = "-I" BENCH_SOURCE "/reals";
    const bool ours = strcmp(compiler, TAPESCOPE_CC) == 0;
    char *const argv[] = {ours ? BENCH_TAPESCOPE : (char *)(uintptr_t)compiler,
                          ours ? "cc" : "-g0", /* which changes nothing */
                          (char *)(uintptr_t)level,
                          "-std=gnu11",
                          include,
                          generated,
                          problems,
                          reals,
                          "-c",
                          "-o",
                          "/dev/null",
                          (char *)(uintptr_t)source,
                          NULL};
    pid_t child;
    int status;
    struct rusage used;
    if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) != 0 ||
        wait4(child, &status, 0, &used) != child || status != 0)
        return false;
    cost->seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    cost->megabytes = (double)used.ru_maxrss / 1024;
    return true;
}

/* The least of several runs of each of two sources, in turn, and the rows that compare them. */
static bool compare(const char *case_name, const char *compiler, const char *peer,
                    const char *level, const char *real, const char *plain)
{
    struct cost least[2] = {{1e30, 1e30}, {1e30, 1e30}};
    if (!options_want(options.case_name, case_name))
        return true;
    for (int round = 0; round < options.rounds; round++)
        for (int side = 0; side < 2; side++) {
            struct cost cost;
            if (!compile_once(side ? peer : compiler, level, side ? plain : real, &cost)) {
                fprintf(stderr, "compile %s: %s %s fails\n", case_name, side ? peer : compiler,
                        level);
                return false;
            }
            if (cost.seconds < least[side].seconds)
                least[side].seconds = cost.seconds;
            if (cost.megabytes < least[side].megabytes)
                least[side].megabytes = cost.megabytes;
        }
    char metric[64];
    snprintf(metric, sizeof metric, "seconds_%s%s", compiler, level);
    metric[strcspn(metric, "-")] = '_';
    rounds_row("compile", case_name, metric, least[0].seconds, "plain_c", least[1].seconds,
               least[0].seconds / least[1].seconds, "s");
    snprintf(metric, sizeof metric, "memory_%s%s", compiler, level);
    metric[strcspn(metric, "-")] = '_';
    rounds_row("compile", case_name, metric, least[0].megabytes, "plain_c", least[1].megabytes,
               least[0].megabytes / least[1].megabytes, "MB");
    return true;
}

/* ---- the cases ---- */

static const struct {
    const char *name, *level;
    int functions, statements, terms;
    bool slow;
} written[] = {
    {"header", "-O0", 0, 0, 0, false},           {"formula32", "-O2", 0, 0, 32, false},
    {"statements40", "-O2", 1, 40, 0, false},    {"statements80", "-O2", 1, 80, 0, false},
    {"statements1000", "-O2", 1, 1000, 0, true}, {"file3000", "-O0", 100, 30, 0, true},
};

static const char *const problem[] = {"gmm",    "hand",   "lstm", "bundle",
                                      "chains", "heston", "heat", "bodies"};

static const char *case_name(size_t k)
{
    const size_t n = sizeof written / sizeof *written;
    return k < n                                      ? written[k].name
           : k - n < sizeof problem / sizeof *problem ? problem[k - n]
                                                      : NULL;
}

static bool measure(const char *compiler)
{
    char real[256], plain[256];
    bool fine = true;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        if (written[i].slow && options.quick)
            continue;
        snprintf(real, sizeof real, "%s/real.c", folder);
        snprintf(plain, sizeof plain, "%s/plain.c", folder);
        if (!write_source(real, true, written[i].functions, written[i].statements,
                          written[i].terms) ||
            !write_source(plain, false, written[i].functions, written[i].statements,
                          written[i].terms)) {
            perror(folder);
            return false;
        }
        fine &= compare(written[i].name, compiler, compiler, written[i].level, real, plain);
    }
    for (size_t i = 0; i < sizeof problem / sizeof *problem; i++) {
        snprintf(real, sizeof real, "%s/reals/%s_real.c", BENCH_SOURCE, problem[i]);
        snprintf(plain, sizeof plain, "%s/problems/%s.c", BENCH_SOURCE, problem[i]);
        fine &= compare(problem[i], compiler, compiler, "-O2", real, plain);
    }
    return fine;
}

/* The problems over double, which record, against the same clang alone. */
static bool measure_plain(void)
{
    bool fine = true;
    for (size_t i = 0; i < sizeof problem / sizeof *problem; i++) {
        char source[256];
        snprintf(source, sizeof source, "%s/problems/%s.c", BENCH_SOURCE, problem[i]);
        fine &= compare(problem[i], TAPESCOPE_CC, "clang-19", "-O2", source, source);
    }
    return fine;
}

int main(int argc, char **argv)
{
    options = options_read(argc, argv,
                           &(struct options_program){.name = "bench_compile",
                                                     .known = "crq",
                                                     .case_name = case_name,
                                                     .defaults = {.rounds = 3, .seconds = 1}});
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    bool fine = true;
    static const char *const compilers[] = {"gcc", "clang"};
    for (int i = 0; i < 2; i++) {
        char probe[64];
        snprintf(probe, sizeof probe, "command -v %s >/dev/null", compilers[i]);
        if (system(probe) == 0) // NOLINT(cert-env33-c): what a shell finds is what is asked
            fine &= measure(compilers[i]);
        else
            fprintf(stderr, "compile: there is no %s\n", compilers[i]);
    }
    if (BENCH_PLAIN)
        fine &= measure_plain();
    static const char *const left[] = {"real.c", "plain.c"};
    for (int i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, left[i]);
        unlink(path);
    }
    rmdir(folder);
    return fine ? 0 : 1;
}
