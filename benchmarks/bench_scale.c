/* bench_scale.c: messages between ranks as ops against MPI's own calls, their adjoints against
 * them, what a profile of ranks costs, and what docs/explanation/scale.md counts with and is
 * compared with: a message by its length, the smallest op, and steps. scripts/bench starts it by
 * mpirun, on one rank, on two and on four.
 *
 * Rows go to standard output, from rank 0. The exit status is 1 if something of ours failed.
 *
 * Invariant: all ranks run the same rounds, with as many calls in each; rank 0 says how many.
 */
#include "common_environment.h"
#include "common_options.h"
#include "common_own.h"
#include "common_rounds.h"
#include "plate.h"

#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCALE_MOST_CALLS = 1000, SCALE_MOST_BYTES = 32 << 20 };

struct scale_bench {
    struct options options;
    int rank, size;
    ad_mpi_comm comm;
    ad_tape tape;
    bool wrong;
    double *data, *into; /* MPI's own calls: of the longest message; into has one for each rank */
};

static void scale_row(const struct scale_bench *b, const char *name, const char *metric,
                      double ours, const char *peer, double peer_figure, double ratio,
                      const char *unit)
{
    char with_ranks[64];
    snprintf(with_ranks, sizeof with_ranks, "%dr_%s", b->size, metric);
    if (b->rank == 0)
        rounds_row("scale", name, with_ranks, ours, peer, peer_figure, ratio, unit);
}

static bool scale_wants(const struct scale_bench *b, const char *name)
{
    return options_want(b->options.case_name, name);
}

static void scale_check(struct scale_bench *b)
{
    if (ad_tape_status(b->tape) == AD_OK)
        return;
    fprintf(stderr, "scale: %s\n", ad_tape_message(b->tape));
    b->wrong = true;
    ad_tape_clear_error(b->tape);
}

/* ---- messages: MPI's call, and ours ---- */

static int scale_next(const struct scale_bench *b)
{
    return (b->rank + 1) % b->size;
}

static int scale_last(const struct scale_bench *b)
{
    return (b->rank + b->size - 1) % b->size;
}

static void bare_allreduce(struct scale_bench *b, int n)
{
    MPI_Allreduce(b->data, b->into, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void our_allreduce(struct scale_bench *b, ad_tensor x, int64_t n)
{
    (void)n;
    ad_mpi_allreduce(b->comm, x, AD_MPI_SUM);
}

/* There and back, between neighbours. */
static void bare_pingpong(struct scale_bench *b, int n)
{
    const int peer = b->rank ^ 1;
    for (int turn = 0; turn < 2; turn++)
        if (turn == b->rank % 2)
            MPI_Send(b->data, n, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(b->into, n, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void our_pingpong(struct scale_bench *b, ad_tensor x, int64_t n)
{
    const int peer = b->rank ^ 1;
    for (int turn = 0; turn < 2; turn++)
        if (turn == b->rank % 2)
            ad_mpi_send(b->comm, x, peer, 1);
        else
            ad_mpi_recv(b->comm, b->tape, AD_F64, 1, &n, peer, 1);
}

static void bare_sendrecv(struct scale_bench *b, int n)
{
    MPI_Sendrecv(b->data, n, MPI_DOUBLE, scale_next(b), 1, b->into, n, MPI_DOUBLE, scale_last(b), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void our_sendrecv(struct scale_bench *b, ad_tensor x, int64_t n)
{
    ad_mpi_sendrecv(b->comm, x, scale_next(b), 1, AD_F64, 1, &n, scale_last(b), 1);
}

static void bare_irecv(struct scale_bench *b, int n)
{
    MPI_Request request[2];
    MPI_Irecv(b->into, n, MPI_DOUBLE, scale_last(b), 1, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(b->data, n, MPI_DOUBLE, scale_next(b), 1, MPI_COMM_WORLD, &request[1]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
}

static void our_irecv(struct scale_bench *b, ad_tensor x, int64_t n)
{
    ad_mpi_request request[2];
    ad_mpi_irecv(b->comm, b->tape, AD_F64, 1, &n, scale_last(b), 1, &request[0]);
    ad_mpi_isend(b->comm, x, scale_next(b), 1, &request[1]);
    ad_mpi_wait(&request[0]);
    ad_mpi_wait(&request[1]);
}

static void bare_bcast(struct scale_bench *b, int n)
{
    MPI_Bcast(b->data, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void our_bcast(struct scale_bench *b, ad_tensor x, int64_t n)
{
    (void)n;
    ad_mpi_bcast(b->comm, x, 0);
}

static void bare_allgather(struct scale_bench *b, int n)
{
    MPI_Allgather(b->data, n, MPI_DOUBLE, b->into, n, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void our_allgather(struct scale_bench *b, ad_tensor x, int64_t n)
{
    (void)n;
    ad_mpi_allgather(b->comm, x);
}

static const struct scale_message {
    const char *name;
    void (*bare)(struct scale_bench *b, int n);
    void (*ours)(struct scale_bench *b, ad_tensor x, int64_t n);
    int calls;  /* of ours, one after the other */
    bool timed; /* in all lengths: for the model */
} scale_messages[] = {
    {"allreduce", bare_allreduce, our_allreduce, 1, true},
    {"pingpong", bare_pingpong, our_pingpong, 2, true},
    {"sendrecv", bare_sendrecv, our_sendrecv, 1, false},
    {"isend_irecv", bare_irecv, our_irecv, 4, false},
    {"bcast", bare_bcast, our_bcast, 1, false},
    {"allgather", bare_allgather, our_allgather, 1, false},
};
enum { SCALE_MESSAGES = sizeof scale_messages / sizeof *scale_messages };

static const int scale_lengths[] = {1, 1000, 30000, 1000000};
enum { SCALE_LENGTHS = sizeof scale_lengths / sizeof *scale_lengths };

/* As many calls as take so long, on all ranks. */
static int scale_calls(struct scale_bench *b, const struct scale_message *m, int n)
{
    enum { TRIED = 5 };
    m->bare(b, n);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = rounds_now();
    for (int i = 0; i < TRIED; i++)
        m->bare(b, n);
    const double each = (rounds_now() - begun) / TRIED, most = SCALE_MOST_BYTES / 8.0 / n / b->size;
    double calls = fmin(fmin(b->options.seconds * 1e9 / each, SCALE_MOST_CALLS), most);
    MPI_Bcast(&calls, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return calls < 1 ? 1 : (int)calls;
}

/* Medians of both in ns of a call, and rows. Returns MPI's own. */
static double scale_compare(struct scale_bench *b, const struct scale_message *m, int n)
{
    static double bare[ROUNDS_MAX], ours[ROUNDS_MAX], ratio[ROUNDS_MAX], more[ROUNDS_MAX];
    const int64_t shape = n;
    const int calls = scale_calls(b, m, n);
    for (int r = -1; r < b->options.rounds; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = rounds_now();
        for (int i = 0; i < calls; i++)
            m->bare(b, n);
        const double own = (rounds_now() - begun) / calls;
        ad_tape_reset(b->tape);
        const ad_tensor x = ad_leaf(b->tape, AD_F64, 1, &shape, b->data);
        MPI_Barrier(MPI_COMM_WORLD);
        begun = rounds_now();
        for (int i = 0; i < calls; i++)
            m->ours(b, x, shape);
        const double op = (rounds_now() - begun) / calls;
        if (r < 0)
            continue;
        bare[r] = own;
        ours[r] = op;
        ratio[r] = op / own;
        more[r] = (op - own) / m->calls;
    }
    scale_check(b);
    char name[64];
    snprintf(name, sizeof name, "%s_%d", m->name, n);
    const size_t rounds = (size_t)b->options.rounds;
    const double of_mpi = rounds_median(bare, rounds), wrapper = rounds_median(more, rounds);
    scale_row(b, name, "forward", rounds_median(ours, rounds), "mpi", of_mpi,
              rounds_median(ratio, rounds), "ns");
    if (n == 1 && b->size == 2) /* more of them wait for each other's processors */
        scale_row(b, name, "wrapper", wrapper, "bound", 2000, wrapper / 2000, "ns");
    return of_mpi;
}

/* What a message takes is modelled as latency + bytes x time of a byte: the first by the shortest,
 * the second by the two longest. ours: the model's figure; peer: what was measured, in the third
 * row of a message that the model was not made of. */
static void scale_model(const struct scale_bench *b, const char *name, const double *ns)
{
    const double byte = (ns[3] - ns[2]) / 8 / (scale_lengths[3] - scale_lengths[2]);
    const double latency = ns[0] - 8 * byte, said = latency + 8 * byte * scale_lengths[1];
    scale_row(b, name, "latency", latency, "shortest", ns[0], latency / ns[0], "ns");
    scale_row(b, name, "byte", byte, "longest", ns[3] / 8 / scale_lengths[3],
              byte * 8 * scale_lengths[3] / ns[3], "ns");
    scale_row(b, name, "model_of_8000_bytes", said, "measured", ns[1], said / ns[1], "ns");
}

static void scale_of_messages(struct scale_bench *b)
{
    for (int k = 0; k < SCALE_MESSAGES; k++) {
        const struct scale_message *m = &scale_messages[k];
        double ns[SCALE_LENGTHS];
        if (!scale_wants(b, m->name) || b->size == 1)
            continue;
        for (int l = 0; l < (m->timed ? SCALE_LENGTHS : 1); l++)
            ns[l] = scale_compare(b, m, scale_lengths[l]) / m->calls;
        if (m->timed)
            scale_model(b, m->name, ns);
    }
}

/* ---- an allreduce's adjoint ---- */

static double *scale_begun, *scale_ended;

/* All ranks come to it together, as forward. */
static ad_status scale_begins(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    MPI_Barrier(MPI_COMM_WORLD);
    *scale_begun = rounds_now();
    return AD_OK;
}

static ad_status scale_ends(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    *scale_ended = rounds_now();
    return AD_OK;
}

/* One call forward and one sweep, in ns; added: the operand has an adjoint before. */
static void scale_adjoint_once(struct scale_bench *b, int n, bool added, double *forward,
                               double *backward)
{
    const int64_t shape = n;
    double begun = 0, ended = 0;
    ad_tape_reset(b->tape);
    const ad_tensor leaf = ad_leaf(b->tape, AD_F64, 1, &shape, b->data), x = ad_scale(leaf, 0.5);
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = rounds_now();
    const ad_tensor y = ad_mpi_allreduce(b->comm, x, AD_MPI_SUM);
    *forward += rounds_now() - before;
    const ad_tensor loss = ad_sum(added ? ad_add(y, ad_scale(x, 3)) : y);
    ad_on_adjoint(x, scale_ends, NULL);
    ad_on_adjoint(y, scale_begins, NULL);
    scale_begun = &begun;
    scale_ended = &ended;
    ad_mpi_backward(b->comm, b->tape, loss);
    *backward += ended - begun;
}

static void scale_of_adjoints(struct scale_bench *b)
{
    static const int lengths[] = {1, 100, 1000, 10000, 30000, 100000, 1000000};
    static double forward[ROUNDS_MAX], backward[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const size_t rounds = (size_t)b->options.rounds;
    if (!scale_wants(b, "adjoint") || b->size != 2)
        return;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const int n = lengths[l];
        const int calls = n < 10000 ? 200 : n < 100000 ? 20 : n < 1000000 ? 10 : 3;
        char name[64];
        snprintf(name, sizeof name, "adjoint_%d", n);
        for (int added = 0; added < 2; added++) {
            for (int r = -1; r < b->options.rounds; r++) {
                double f = 0, g = 0;
                for (int i = 0; i < calls; i++)
                    scale_adjoint_once(b, n, added, &f, &g);
                if (r < 0)
                    continue;
                forward[r] = f / calls;
                backward[r] = g / calls;
                ratio[r] = g / f;
            }
            scale_check(b);
            scale_row(b, name, added ? "added" : "fresh", rounds_median(backward, rounds),
                      "forward", rounds_median(forward, rounds), rounds_median(ratio, rounds),
                      "ns");
        }
    }
}

/* ---- profiles of ranks ---- */

struct scale_step {
    const char *name;
    bool (*run)(struct scale_bench *b, struct plate *p);
};

static bool scale_plate_step(struct scale_bench *b, struct plate *p)
{
    double cost;
    return plate_gradient(p, b->data, &cost, b->into);
}

/* A perceptron whose weights come from rank 0, so that its gradient goes back there as a sum; a
 * rank has as many rows of the batch as of the plate. */
static bool scale_mlp_step(struct scale_bench *b, struct plate *p)
{
    enum { WIDTH = 256, LAYERS = 3 };
    const int64_t wide[2] = {WIDTH, WIDTH}, rows[2] = {p->own, WIDTH};
    ad_tape_reset(b->tape);
    ad_tensor y = ad_constant(b->tape, AD_F64, 2, rows, b->data);
    for (int i = 0; i < LAYERS; i++) {
        const ad_tensor own =
            ad_leaf(b->tape, AD_F64, 2, wide, b->data + (size_t)i * WIDTH * WIDTH);
        const ad_tensor w = ad_mpi_bcast(b->comm, own, 0);
        y = ad_tanh(ad_matmul(y, w));
    }
    const ad_tensor loss = ad_sum(ad_square(y));
    return ad_mpi_backward(b->comm, b->tape, loss) == AD_OK;
}

/* In the first steps of a profile rows are made and call paths found: they are timed apart. */
enum { SCALE_FIRST = 5 };

/* In ns of one of so many steps on all ranks. */
static double scale_time(struct scale_bench *b, const struct scale_step *s, struct plate *p,
                         int steps)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = rounds_now();
    for (int i = 0; i < steps && !b->wrong; i++)
        b->wrong = !s->run(b, p);
    MPI_Barrier(MPI_COMM_WORLD);
    return (rounds_now() - begun) / steps;
}

/* The same under a profile, after its first ones, whose step is *first. */
static double scale_profiled(struct scale_bench *b, const struct scale_step *s, struct plate *p,
                             int steps, const char *file, const char *how, double *first)
{
    if (ad_profile_start_with(file, how) != AD_OK) {
        fprintf(stderr, "scale: %s\n", ad_tape_message((ad_tape){0}));
        b->wrong = true;
    }
    *first = scale_time(b, s, p, SCALE_FIRST);
    const double ns = scale_time(b, s, p, steps);
    ad_profile_stop();
    return ns;
}

/* 64 profiles like that of rank 0 into one, in seconds. They do not know whose they are, since a
 * rank is merged once. Others wait for what rank 0 does next. */
static void scale_merge(struct scale_bench *b, const struct scale_step *s, struct plate *p,
                        int steps, const struct own_path *path)
{
    enum { PROFILES = 64 };
    static const char ranks[] = "OMPI_COMM_WORLD_SIZE";
    char program[4096], command[3 * 4096 + 256];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char size[16];
    double first;
    snprintf(command, sizeof command, "%s.%d", path->file, b->rank);
    unlink(command);
    snprintf(size, sizeof size, "%d", b->size);
    setenv(ranks, "1", 1);
    scale_profiled(b, s, p, steps, path->file, NULL, &first);
    setenv(ranks, size, 1);
    if (b->rank != 0 || n < 0)
        return;
    program[n] = 0;
    const char *folder = dirname(program);
    snprintf(command, sizeof command,
             "for i in $(seq 0 %d); do cp '%s' '%s/all.'$i || exit 1; done", PROFILES - 1,
             path->file, path->folder);
    bool done = system(command) == 0;
    snprintf(command, sizeof command, "'%s/tapescope' merge -o '%s/sum' '%s'/all.* >&2", folder,
             path->folder, path->folder);
    const double begun = rounds_now();
    done = system(command) == 0 && done;
    const double seconds = (rounds_now() - begun) / 1e9;
    char merged[64];
    snprintf(merged, sizeof merged, "merge_%d_%s", PROFILES, s->name);
    rounds_row("scale", merged, "seconds", seconds, "bound", 5, seconds / 5, "s");
    snprintf(command, sizeof command, "rm -f '%s/sum' '%s'/all.*", path->folder, path->folder);
    if (system(command) != 0 || !done)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void scale_of_profiles(struct scale_bench *b)
{
    static const struct scale_step steps[] = {{"plate", scale_plate_step}, {"mlp", scale_mlp_step}};
    static const char *const ways[][2] = {{"profiled", NULL}, {"profiled_exact", "time=exact"}};
    static double on[ROUNDS_MAX], off[ROUNDS_MAX], ratio[ROUNDS_MAX], first[ROUNDS_MAX],
        more[ROUNDS_MAX];
    struct plate p = {.tape = b->tape,
                      .rows = 256,
                      .columns = 256,
                      .steps = 20,
                      .ratio = 0.2,
                      .weight = 0.01,
                      .observed = b->data};
    struct own_path path;
    if (!scale_wants(b, "profile") || b->size != 2)
        return;
    plate_divide(&p, b->comm);
    if (!own_path_make(&path)) {
        fprintf(stderr, "scale: no temporary folder for the profile\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    const size_t rounds = (size_t)b->options.rounds;
    for (int s = 0; s < 2; s++) {
        scale_time(b, &steps[s], &p, 1);
        double n = b->options.seconds * 1e10 / scale_time(b, &steps[s], &p, 1);
        MPI_Bcast(&n, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int w = 0; w < 2; w++) {
            for (int r = -1; r < b->options.rounds; r++) {
                double begins;
                const double with =
                    scale_profiled(b, &steps[s], &p, (int)n + 1, path.file, ways[w][1], &begins);
                const double without = scale_time(b, &steps[s], &p, (int)n + 1);
                if (r < 0)
                    continue;
                on[r] = with;
                off[r] = without;
                ratio[r] = with / without;
                first[r] = SCALE_FIRST * (begins - with);
                more[r] = first[r] / without;
            }
            scale_check(b);
            scale_row(b, steps[s].name, ways[w][0], rounds_median(on, rounds), "off",
                      rounds_median(off, rounds), rounds_median(ratio, rounds), "ns");
            if (w == 0)
                scale_row(b, steps[s].name, "first", rounds_median(first, rounds), "off",
                          rounds_median(off, rounds), rounds_median(more, rounds), "ns");
        }
        scale_merge(b, &steps[s], &p, (int)n + 1, &path);
    }
    own_path_drop(&path);
}

/* ---- what is predicted ---- */

/* The smallest op with its sweep, by itself. */
static void scale_of_ops(struct scale_bench *b)
{
    enum { OPS = 1000 };
    static double forward[ROUNDS_MAX], all[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const size_t rounds = (size_t)b->options.rounds;
    const int64_t one = 1;
    if (!scale_wants(b, "op") || b->size != 1)
        return;
    for (int r = -1; r < b->options.rounds; r++) {
        ad_tape_reset(b->tape);
        ad_tensor x = ad_leaf(b->tape, AD_F64, 1, &one, b->data);
        const double begun = rounds_now();
        for (int i = 0; i < OPS; i++)
            x = ad_scale(x, 0.5);
        const double between = rounds_now();
        if (ad_backward(ad_sum(x)) != AD_OK)
            b->wrong = true;
        const double ended = rounds_now();
        if (r < 0)
            continue;
        forward[r] = (between - begun) / OPS;
        all[r] = (ended - begun) / OPS;
        ratio[r] = all[r] / forward[r];
    }
    scale_check(b);
    scale_row(b, "op", "op", rounds_median(all, rounds), "forward", rounds_median(forward, rounds),
              rounds_median(ratio, rounds), "ns");
}

/* Steps of a plate or batch that the ranks divide, and of one with so many rows a rank. The ratio
 * is ns of a row. */
static void scale_of_steps(struct scale_bench *b)
{
    static const struct scale_step steps[] = {{"step_plate", scale_plate_step},
                                              {"step_mlp", scale_mlp_step}};
    static double ns[ROUNDS_MAX];
    for (int s = 0; s < 4; s++) {
        const struct scale_step *step = &steps[s / 2];
        const bool weak = s % 2;
        if (!scale_wants(b, step->name))
            continue;
        struct plate p = {.tape = b->tape,
                          .rows = weak ? 128 * b->size : 256,
                          .columns = 256,
                          .steps = 20,
                          .ratio = 0.2,
                          .weight = 0.01,
                          .observed = b->data};
        plate_divide(&p, b->comm);
        for (int r = -1; r < b->options.rounds; r++) {
            const double took = scale_time(b, step, &p, 5);
            if (r >= 0)
                ns[r] = took;
        }
        scale_check(b);
        const double median = rounds_median(ns, (size_t)b->options.rounds);
        scale_row(b, step->name, weak ? "weak" : "strong", median, "rows", (double)p.rows,
                  median / (double)p.rows, "ns");
    }
}

/* ---- the program ---- */

static const char *scale_case(size_t k)
{
    static const char *const others[] = {"adjoint",    "profile",  "op",
                                         "step_plate", "step_mlp", NULL};
    return k < SCALE_MESSAGES ? scale_messages[k].name : others[k - SCALE_MESSAGES];
}

int main(int argc, char **argv)
{
    struct scale_bench b = {.options = options_read(argc, argv,
                                                    &(struct options_program){
                                                        .name = "bench_scale",
                                                        .known = "crsq",
                                                        .case_name = scale_case,
                                                        .more = "scripts/bench starts it by mpirun",
                                                        .defaults = {.rounds = 31, .seconds = 0.01},
                                                        .quick_seconds = 0.003})};
    environment_settle(argv, 1);
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS ||
        ad_mpi_init(&b.comm, MPI_COMM_WORLD, NULL) != AD_OK ||
        ad_tape_create(&b.tape, NULL) != AD_OK) {
        fprintf(stderr, "scale: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    b.rank = ad_mpi_rank(b.comm);
    b.size = ad_mpi_size(b.comm);
    if (b.size % 2 != 0 && b.size != 1) {
        fprintf(stderr, "scale: an even number of ranks, please: mpirun -n 2 bench_scale\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const size_t longest = (size_t)scale_lengths[SCALE_LENGTHS - 1];
    b.data = calloc(longest, sizeof *b.data);
    b.into = calloc(longest * (size_t)b.size, sizeof *b.into);
    if (!b.data || !b.into)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    scale_of_messages(&b);
    scale_of_adjoints(&b);
    scale_of_profiles(&b);
    scale_of_ops(&b);
    scale_of_steps(&b);
    free(b.data);
    free(b.into);
    ad_tape_destroy(b.tape);
    ad_mpi_free(&b.comm);
    MPI_Finalize();
    return b.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
