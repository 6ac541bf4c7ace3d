/* analyze_ranks.h: messages of the ranks of one run, by line: what each waited and transferred. */
#ifndef PROFILER_ANALYZE_RANKS_H
#define PROFILER_ANALYZE_RANKS_H

#include "analyze.h"
#include "analyze_messages.h"

/* Messages of one line of one rank, in one phase. Times in ns; what they waited and transferred is
 * of the measured ones alone. */
struct analyze_rank_line {
    int32_t rank;
    bool backward;
    uint64_t pc;
    uint32_t call_line; /* as the profile has it */
    const char *file;   /* as the rank's analysis has it; NULL: unknown */
    uint32_t line;      /* 0: unknown */
    uint32_t ranks;     /* most of the communicators */
    const char *op;     /* the profile's */
    uint64_t calls, measured_calls, bytes;
    int64_t ns, waiting_ns, transfer_ns;
};

struct analyze_rank {
    int32_t rank;
    struct analyze_offset offset;
    uint64_t left_out; /* messages */
    uint64_t calls, measured_calls;
    int64_t ns, waiting_ns, transfer_ns;
};

struct analyze_ranks {
    const struct analyze_result *const *analysis; /* [n], as given */
    struct analyze_rank *rank;                    /* [n] */
    struct analyze_log *log; /* [n], their messages as in the profiles, on rank 0's clock, in ns
                              * since the first of the analyses' profiles began */
    size_t n;
    struct analyze_rank_line *line; /* by rank, then as they came */
    size_t n_lines;
};

/* What is of this process of the ranks' sum is of the rank at this place; false: of none. */
bool analyze_ranks_place(const struct analyze_ranks *ranks, uint32_t process, size_t *rank);

/* Since the sum began, on rank 0's clock: a time of a process of the sum, and one of the logs. May
 * be below 0. */
int64_t analyze_ranks_since(const struct analyze_ranks *ranks, const struct read_profile *sum,
                            uint32_t process, uint64_t since_ns);
int64_t analyze_ranks_logged(const struct analyze_ranks *ranks, const struct read_profile *sum,
                             int64_t log_ns);

/* The rows of one rank in a view, laid beside n rows of the ranks' sum in the same view, in the
 * order of analyze_group(); NULL: it has none. The array is the caller's to free(), and so is
 * *rows, which it points into. */
const struct analyze_line **analyze_ranks_beside(const struct analyze_ranks *ranks, size_t rank,
                                                 const struct analyze_line *line, size_t n,
                                                 enum analyze_by by, struct analyze_line **rows);

/* Of the profiles of one run's ranks. Where rank 0's is missing, or clocks have not met, clocks are
 * those of the system. The caller frees it with analyze_ranks_free; it points into the analyses. */
struct analyze_ranks *analyze_ranks(const struct analyze_result *const *analysis, size_t n);
void analyze_ranks_free(struct analyze_ranks *ranks);

#endif
