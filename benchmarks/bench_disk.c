/* bench_disk.c: a tape on disk, where its file does not stay in the cache, against the disk itself.
 * Each measurement is a process in a memory cgroup, to whose limit the pages of its files count.
 * Who may make none (it wants root) gets no rows, and is told so.
 *
 *     bench_disk --data /scratch        in that folder; the default is "."
 */
#include "common_forked.h"
#include "common_options.h"
#include "common_rounds.h"

#include <tapescope/ad_real.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A virtual disk may lend a rate for some hundred MB and then want it back, so who comes second is
 * slower: both begin rested, in turns the first. */
enum { DISK_REST_US = 1500000 };

enum { DISK_LIMIT = 128 << 20, DISK_BUDGET = 16 << 20, DISK_SWARM = 8, DISK_PIECE = 1 << 20 };

struct disk_bench {
    const char *folder;
    char group[128]; /* the cgroup's folder */
    const char *members;
    long steps;
    uint64_t bytes; /* of the tape */
    bool spilled;   /* of the run to come */
};

/* ---- the cgroup ---- */

static bool disk_write(const char *folder, const char *name, long number)
{
    char path[256], text[32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int f = open(path, O_WRONLY | O_CLOEXEC);
    const int n = snprintf(text, sizeof text, "%ld", number);
    const bool done = f >= 0 && write(f, text, (size_t)n) == n;
    if (f >= 0)
        close(f);
    return done;
}

static bool disk_limit(struct disk_bench *b)
{
    static const char *const way[][3] = {
        {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "tasks"},
        {"/sys/fs/cgroup", "memory.max", "cgroup.procs"},
    };
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        snprintf(b->group, sizeof b->group, "%s/tapescope-bench.%ld", way[i][0], (long)getpid());
        b->members = way[i][2];
        if (mkdir(b->group, 0700) != 0)
            continue;
        if (disk_write(b->group, way[i][1], DISK_LIMIT))
            return true;
        rmdir(b->group);
    }
    return false;
}

/* ---- the disk ---- */

static bool disk_complain(const char *what)
{
    fprintf(stderr, "disk: %s: %s\n", what, strerror(errno));
    return false;
}

/* Writes so many bytes to a file without a name and to the disk, and reads them: seconds. */
static bool disk_alone(void *context, double *figures)
{
    const struct disk_bench *b = context;
    static char piece[DISK_PIECE];
    const uint64_t pieces = b->bytes / DISK_PIECE;
    if (!disk_write(b->group, b->members, 0))
        return disk_complain(b->group);
    const int f = open(b->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (f < 0)
        return disk_complain(b->folder);
    memset(piece, 1, sizeof piece);
    const double begun = rounds_now();
    for (uint64_t i = 0; i < pieces; i++)
        if (write(f, piece, sizeof piece) != sizeof piece)
            return disk_complain(b->folder);
    if (fdatasync(f) != 0)
        return disk_complain(b->folder);
    const double written = rounds_now();
    if (posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED) != 0 || lseek(f, 0, SEEK_SET) != 0)
        return disk_complain(b->folder);
    const double dropped = rounds_now();
    for (uint64_t i = 0; i < pieces; i++)
        if (read(f, piece, sizeof piece) != sizeof piece)
            return disk_complain(b->folder);
    figures[1] = (rounds_now() - dropped) / 1e9;
    figures[0] = (written - begun) / 1e9;
    close(f);
    return true;
}

/* ---- the tape ---- */

/* One of examples/disk. Formulas are long once they are macros.
 * NOLINTNEXTLINE(readability-function-size) */
static void disk_step(ad_real *u, ad_real *v)
{
    const double h = 1e-4;
    for (int k = 0; k < DISK_SWARM; k++) {
        const ad_real left = u[(k + DISK_SWARM - 1) % DISK_SWARM];
        ad_set(&v[k], ad_real_add(v[k], ad_real_mul(h, ad_real_sin(ad_real_sub(left, u[k])))));
        ad_set(&u[k], ad_real_add(u[k], ad_real_mul(h, v[k])));
    }
}

/* Seconds of the recording and of the sweep, bytes of the tape. */
static bool disk_tape(void *context, double *figures)
{
    const struct disk_bench *b = context;
    const ad_tape_options on_disk = {.budget_bytes = DISK_BUDGET, .spill = b->folder};
    ad_tape tape;
    ad_real u[DISK_SWARM], v[DISK_SWARM], energy;
    double start[DISK_SWARM];
    if (b->spilled && !disk_write(b->group, b->members, 0))
        return disk_complain(b->group);
    for (int k = 0; k < DISK_SWARM; k++)
        start[k] = 1 + 0.1 * k;
    if (ad_tape_create(&tape, b->spilled ? &on_disk : NULL) != AD_OK) {
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
        return false;
    }
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, DISK_SWARM, start, u);
    const double begun = rounds_now();
    for (int k = 0; k < DISK_SWARM; k++)
        ad_set(&v[k], 0);
    for (long i = 0; i < b->steps; i++)
        disk_step(u, v);
    ad_set(&energy, ad_real_square(v[0]));
    const double recorded = rounds_now();
    const ad_status status = ad_real_backward(tape, energy);
    figures[1] = (rounds_now() - recorded) / 1e9;
    figures[0] = (recorded - begun) / 1e9;
    ad_stats stats;
    ad_tape_stats(tape, &stats);
    figures[2] = (double)stats.live_bytes;
    if (status != AD_OK)
        fprintf(stderr, "disk: %s\n", ad_tape_message(tape));
    ad_tape_record_end(tape);
    ad_tape_destroy(tape);
    return status == AD_OK;
}

/* ---- the program ---- */

struct disk_phase {
    const char *metric;
    double tape[ROUNDS_MAX], memory[ROUNDS_MAX], disk[ROUNDS_MAX], ratio[ROUNDS_MAX],
        more[ROUNDS_MAX];
};

static void disk_rows(struct disk_phase *p, const char *name, size_t rounds)
{
    char metric[64];
    double more[ROUNDS_MAX];
    for (size_t r = 0; r < rounds; r++) {
        p->ratio[r] = p->tape[r] / p->disk[r];
        more[r] = p->tape[r] - p->memory[r];
        p->more[r] = more[r] / p->disk[r];
    }
    rounds_row("disk", name, p->metric, rounds_median(p->tape, rounds), "disk",
               rounds_median(p->disk, rounds), rounds_median(p->ratio, rounds), "s");
    snprintf(metric, sizeof metric, "%s_more", p->metric);
    rounds_row("disk", name, metric, rounds_median(more, rounds), "disk",
               rounds_median(p->disk, rounds), rounds_median(p->more, rounds), "s");
}

static bool disk_rounds(struct disk_bench *b, size_t rounds)
{
    static struct disk_phase phase[3] = {
        {.metric = "record"}, {.metric = "sweep"}, {.metric = "both"}};
    char name[32];
    for (size_t r = 0; r < rounds; r++) {
        double tape[3], memory[3], disk[2];
        b->spilled = false;
        bool done = forked(disk_tape, b, 3, memory);
        b->spilled = true;
        b->bytes = (uint64_t)memory[2];
        for (int k = 0; k < 2 && done; k++) {
            usleep(DISK_REST_US);
            done =
                (size_t)k == r % 2 ? forked(disk_alone, b, 2, disk) : forked(disk_tape, b, 3, tape);
        }
        if (!done)
            return false;
        for (int k = 0; k < 3; k++) {
            phase[k].tape[r] = k < 2 ? tape[k] : tape[0] + tape[1];
            phase[k].memory[r] = k < 2 ? memory[k] : memory[0] + memory[1];
            phase[k].disk[r] = k < 2 ? disk[k] : disk[0] + disk[1];
        }
    }
    snprintf(name, sizeof name, "swarm_%llu_mib", (unsigned long long)(b->bytes >> 20));
    for (int k = 0; k < 3; k++)
        disk_rows(&phase[k], name, rounds);
    return true;
}

static const char *disk_case(size_t k)
{
    return k == 0 ? "swarm" : NULL;
}

int main(int argc, char **argv)
{
    const struct options options = options_read(
        argc, argv,
        &(struct options_program){.name = "bench_disk",
                                  .known = "cirq",
                                  .case_name = disk_case,
                                  .more = "data: the folder of the tape's file, \".\" by default",
                                  .defaults = {.rounds = 5, .seconds = 1, .data = "."}});
    struct disk_bench b = {.folder = options.data, .steps = options.quick ? 800000 : 2600000};
    if (!disk_limit(&b)) {
        fprintf(stderr, "disk: skipped, no memory cgroup can be made here\n");
        return EXIT_SUCCESS;
    }
    const bool done = disk_rounds(&b, (size_t)options.rounds);
    rmdir(b.group);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
