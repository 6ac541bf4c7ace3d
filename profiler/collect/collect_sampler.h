/* collect_sampler.h: samples of what each thread of the process does, taken by a signal handler.
 *
 * Invariants: the handler takes no lock, allocates nothing, and reads what threads publish, the
 * interrupted registers and its stack, no more; memory that it may touch is never unmapped. A
 * thread's signals are counted where they come, and each of them is recorded (with what the thread
 * did), partial (with the interrupted address alone), lost, or outside of the steps that are
 * measured, so that fired = recorded + partial + lost + outside. No state here is guarded by a lock
 * of its own: all but the handler's is for the collector's mutex.
 */
#ifndef COLLECT_SAMPLER_H
#define COLLECT_SAMPLER_H

#include "collect.h"
#include "collect_helper.h"
#include "waiting.def"

#include <pthread.h>
#include <signal.h>

enum {
    COLLECT_STACK = 32,         /* addresses of a sample, the innermost ones */
    COLLECT_WORDS = 64,         /* of the stack's top, in a sample outside of ops */
    COLLECT_RING = 512,         /* samples of a thread that wait to be read; a power of 2 */
    COLLECT_MOST_THREADS = 512, /* that are sampled at once */
    COLLECT_NAMED_THREADS = 64, /* told apart in the profile; all others together */
    COLLECT_MOST_PUBLISHERS = 256,
    COLLECT_TICK_NS = 20000000,     /* between two looks of the helper thread */
    COLLECT_LATE_NS = 100000,       /* a signal that comes later did not find its thread running */
    COLLECT_CALL_UNKNOWN = 1 << 20, /* a system call, whose number is not known */
    COLLECT_LEAST_HZ = 1,
    COLLECT_MOST_HZ = 10000
};

/* ---- collect_take.c: one sample; pure functions of their arguments, safe in a handler ---- */

/* One sample, as the handler leaves it. */
struct collect_sample {
    uint64_t fired;           /* the thread's signals up to this one */
    uint64_t wall_ns, cpu_ns; /* since the sample before it */
    uint64_t late_ns;         /* since the timer had fired */
    struct tape_doing doing;
    uint32_t statement; /* is_statement: the lowest bits of its pc */
    bool is_statement;
    bool shared;      /* `doing` is that of the one thread that is in an op, not of this thread */
    bool outside;     /* of the steps that are measured: it is counted, and nothing else */
    bool publishes;   /* the thread has ever been in an op */
    bool interrupted; /* see struct collect_moment */
    uint32_t call;    /* likewise */
    uintptr_t caller; /* likewise */
    uint32_t n_pcs;
    uintptr_t pc[COLLECT_STACK]; /* the interrupted one, then return addresses */
    uintptr_t frame, stack;      /* registers, as of struct collect_moment */
    uint32_t n_words;
    uintptr_t word[COLLECT_WORDS]; /* from the stack pointer upwards */
};

/* What the handler saw. */
struct collect_moment {
    uint64_t wall_ns, cpu_ns;
    uintptr_t pc, frame, stack; /* program counter, frame pointer, stack pointer */
    uint32_t call;              /* number of the system call that it was in, plus 1; 0: none */
    bool interrupted;           /* the signal ended that call: it was waiting for sure */
    uintptr_t caller;           /* where that is sched_yield(): who calls it */
};

/* Who publishes what he does. */
struct collect_publishers {
    uint32_t n; /* written with release after the entry */
    const struct tape_now *now[COLLECT_MOST_PUBLISHERS];
};

/* A thread that is sampled. */
struct collect_thread {
    /* The handler's; others read them with atomic loads. */
    uint64_t fired, lost, wall_ns, cpu_ns;
    uint64_t random; /* state of the generator, not 0 */
    uint64_t due_ns; /* when the timer that is armed fires; 0: not known */
    uint64_t period_ns;
    uint32_t head;
    uint32_t busy;         /* the handler runs */
    uintptr_t stack_begin; /* a stack pointer that was seen; 0: none yet */
    /* The collector's; the handler reads them. */
    uint32_t tail;
    uint32_t armed;
    uint32_t outside;                   /* of the steps that are measured; read with acquire */
    uint64_t from_wall_ns, from_cpu_ns; /* time before is no sample's */
    uintptr_t low, high;                /* its stack; 0: not known */
    const struct tape_now *now;
    uint32_t owner; /* of `now`, while it is the thread's */
    pid_t tid;
    /* The collector's alone. */
    timer_t timer;
    uint32_t slot;   /* in the table of all slots */
    uint32_t number; /* in the profile */
    bool seen;       /* in the scan under way */
    uint64_t read;   /* signals whose samples were taken from the ring or found lost */
    struct collect_sample ring[COLLECT_RING];
};

/* Begins a thread's sampling at this moment. seed: any. */
void collect_take_begin(struct collect_thread *thread, uint64_t period_ns, uint64_t seed,
                        const struct collect_moment *now);
/* Counts a signal, and puts a sample into the ring or counts it as lost. */
void collect_take(struct collect_thread *thread, const struct collect_moment *moment,
                  const struct collect_publishers *publishers);
/* Nanoseconds until the next one: uniform between period / 1024 and that much less than twice the
 * period. A thread that the signal wakes has done little when the next may come. */
uint64_t collect_take_interval(struct collect_thread *thread);

/* ---- collect_registers.c: likewise safe in a handler ---- */

/* Code that may be read; elsewhere a program may have some that it can run and not read. */
struct collect_code {
    uintptr_t low, high;
};
/* Fills in what the registers tell, of a moment whose other members are 0. */
void collect_registers_read(struct collect_moment *moment, const void *context,
                            const struct collect_code *code);
/* x86-64 alone: the number that the code before this instruction, a system call, asks for, plus
 * 1. */
uint32_t collect_call_before(const uint8_t *call);

/* ---- collect_waiting.c ---- */

/* What a thread waits for that is not on a processor; as in the profile. */
#define X(NAME) COLLECT_WAITING_##NAME,
enum collect_waiting { WAITING_LIST(X) };
#undef X
/* call: as in struct collect_moment. */
enum collect_waiting collect_waiting_of(uint32_t call);
bool collect_waiting_sleeps(uint32_t call);
bool collect_waiting_yields(uint32_t call);

/* ---- collect_samples.c: equal samples together ---- */

/* Samples of one thread that did the same. */
struct collect_aggregate {
    uint32_t thread;
    uint32_t phase, line, path;
    uint32_t waiting;
    uintptr_t pc;
    const char *op;
    bool shared, changed;
    uint32_t n_pcs, first_pc; /* in collect_samples.pc; within an op there are none */
#define X(name) uint64_t name;
    SAMPLE_COUNTERS(X)
#undef X
};

/* What the profile says of a thread. */
struct collect_thread_total {
    pid_t tid; /* 0: several threads */
    char name[16];
#define X(name) uint64_t name;
    THREAD_COUNTERS(X)
#undef X
    bool changed;
};

struct collect_samples {
    struct collect_aggregate *aggregate;
    uint32_t n, capacity;
    uint32_t *slot; /* hash table: place of an aggregate, plus 1 */
    uint32_t n_slots;
    uint64_t *pc;
    uint32_t n_pcs, pc_capacity;
    bool full; /* something was lost for want of room here */
    struct collect_thread_total thread[COLLECT_NAMED_THREADS + 1]; /* [0]: all that have no own */
    uint32_t n_threads;
};

/* Adds a sample, which found its thread at work or not: whole, or with the interrupted address
 * alone. False: no room. */
bool collect_samples_add(struct collect_samples *samples, const struct collect_sample *sample,
                         uint32_t thread, enum collect_waiting waiting, bool working, bool partial);
/* Whatever was added counts as outside of the steps that are measured. */
void collect_samples_void(struct collect_samples *samples);
void collect_samples_free(struct collect_samples *samples);

/* As those of collect.h; what changed since the last packet, or `all`;
 * the marks of change stay. */
bool collect_put_samples(struct collect_buffer *out, const struct collect_samples *samples,
                         uint64_t period_ns, uint64_t process_ns, struct collect_path_map *paths,
                         bool all);
void collect_samples_written(struct collect_samples *samples);

/* ---- collect_sampler.c: timers, threads, the handler ---- */

struct collect_sampler {
    uint64_t period_ns;
    bool running, untimed;
    uint64_t write_ns, write_due; /* between writings, and when the next one is due */
    uint64_t most_ns;             /* which the former does not exceed */
    bool first;                   /* no scan was made yet: what there is was there before */
    bool stepped;                 /* some steps alone are measured */
    bool outside;                 /* of them, at this moment */
    uint64_t began_ns;            /* processor time of the process when that last began, */
    uint64_t ended_ns;            /* and ended */
    const char *ended;            /* why it ended before it was asked to */
    bool told_end, told_full, told_unarmed;
    struct collect_code code; /* the C library's, where system calls are; high is written last */
    uint32_t unarmed;         /* threads for which there was no timer */
    struct collect_publishers publishers;
    struct collect_thread *thread[COLLECT_MOST_THREADS]; /* those that are sampled now */
    uint32_t n_threads;
    struct collect_samples samples;
    struct sigaction before;
    uintptr_t (*locate)(uint32_t low, uintptr_t near);
    struct collect_helper helper; /* ticks every COLLECT_TICK_NS */
};

/* For times that are not exact: has the hook read no clock, so that this sampler's helper thread
 * has to say what is due, and samples each thread of the process, if that was asked for. tick is
 * called on the helper thread until collect_helper_join. False: not so, or nobody
 * takes samples, which is said (path: as of collect_say). */
bool collect_sampler_open(struct collect_sampler *sampler, struct tape_hook *hook,
                          const struct tape_collect_options *options, const char *path,
                          uint64_t (*tick)(void *payload), void *payload);
/* Whether it is time to write; then not again for up to the interval of
 * the options. */
bool collect_sampler_is_due(struct collect_sampler *sampler);
/* Packets of samples and threads, call paths that are new in them first: what changed since it was
 * last written, or all. False: no memory. */
bool collect_sampler_put(struct collect_sampler *sampler, struct collect_buffer *out,
                         struct collect_path_map *paths, bool all);
/* The calling thread publishes at `now`. */
void collect_sampler_publish(struct collect_sampler *sampler, const struct tape_now *now);
/* Finds threads that came or went, and takes what waits in the rings. modules: what code there
 * is. */
void collect_sampler_scan(struct collect_sampler *sampler, const struct collect_modules *modules);
/* Where some steps alone are measured: what there is counts as outside of them, and what comes does
 * so as well, unless it is wanted. */
void collect_sampler_begin(struct collect_sampler *sampler, const struct collect_modules *modules,
                           bool wanted);
/* What comes is outside. */
void collect_sampler_end(struct collect_sampler *sampler);
/* Ends sampling and takes what waits: every signal of every thread is accounted for then. */
void collect_sampler_stop(struct collect_sampler *sampler, const struct collect_modules *modules);
void collect_sampler_free(struct collect_sampler *sampler);

/* The child of a fork has no timers: its SIGPROF is as it was before. Safe in a handler of fork. */
void collect_sampler_forget(struct collect_sampler *sampler);

/* ---- collect_drain.c ---- */

/* Takes what waits in a thread's ring; last: no more comes, and every signal has been counted. */
void collect_drain(struct collect_sampler *sampler, struct collect_thread *thread,
                   const struct collect_modules *modules);
void collect_drain_last(struct collect_sampler *sampler, struct collect_thread *thread,
                        const struct collect_modules *modules);
/* What the user should know of the samples, each once; log and path as of collect_say. */
void collect_sampler_tell(struct collect_sampler *sampler,
                          bool (*log)(int level, const char *message), const char *path);

/* ---- collect_threads.c: what the system says of threads ---- */

/* The numbers of the process's threads, ascending, `room` at most; how many there are. */
uint32_t collect_threads_list(pid_t *tid, uint32_t room);
void collect_thread_name(char name[16], pid_t tid);
/* One of the library's own, which takes no signal: it waits for `tapescope attach`. */
bool collect_thread_is_own(pid_t tid);
/* Processor time of a thread of this process, in ns; 0: it is gone. */
uint64_t collect_thread_cpu(pid_t tid);
/* The mapping that has the address; false: none, or the system does not tell. */
bool collect_mapping_of(uintptr_t address, uintptr_t *low, uintptr_t *high);

#endif
