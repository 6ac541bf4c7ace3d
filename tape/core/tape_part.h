/* tape_part.h: features that keep state of their own on a tape, and are told what becomes of it.
 *
 * The tape knows them by these verbs alone. A verb that is NULL is not the part's.
 */
#ifndef TAPE_PART_H
#define TAPE_PART_H

#include "tape_types.h"

struct tape_part {
    /* What it keeps on a tape: so many bytes, which begin as zeros and lie behind the struct tape.
     * attach tells the part where, before any other verb. */
    size_t bytes;
    void (*attach)(struct tape *t, void *state);

    /* The tape begins, new or once more; is about to be reset, after which it begins; ends. */
    void (*begin)(struct tape *t);
    void (*reset)(struct tape *t);
    void (*end)(struct tape *t);

    /* What is being written behind the tape's back (t->open) becomes part of it. */
    void (*settle)(struct tape *t);

    /* What waits to be charged (t->charges_wait) is charged now: the sweep under way would have
     * done so with each record when it comes to it, and to what lies there once. */
    void (*charge)(struct tape *t);

    /* A mark is taken. Before one that the user sets: memory, so that a rewind need not ask;
     * false: there is none. A rewind: what is behind the mark is dropped; buffers before `end`
     * (NULL: all) are given back one by one, the others with the arena's end. */
    bool (*reserve)(struct tape *t);
    void (*mark)(const struct tape *t, struct tape_mark *mark);
    void (*rewind)(struct tape *t, const struct tape_mark *mark, const char *end);
    /* A call of a function of the user's is over, and what is behind the mark is dropped; of one of
     * scalars there is a rewind besides. */
    void (*call_drop)(struct tape *t, const struct tape_mark *mark);

    /* A leaf has come. */
    enum tape_status (*leaf)(struct tape *t, const struct tape_value *leaf, struct tape_site site);

    /* A new observation charges what is on the tape already, before its records; and how many of
     * the live bytes nothing has been written to. */
    void (*account)(struct tape *t);
    uint64_t (*unused)(const struct tape *t);

    /* A sweep begins and has ended; own: its row. The first says why there may be none now, the
     * second is false where there is no memory. */
    enum tape_status (*sweep_refuse)(struct tape *t, const char *what, struct tape_site site);
    bool (*sweep_begin)(struct tape *t, uint32_t own);
    void (*sweep_end)(struct tape *t);

    /* Why there may be no recorded derivative of y by what has TAPE_STARTS. */
    enum tape_status (*graph_refuse)(struct tape *t, uint32_t y, struct tape_site site);

    /* A walk of tape_reach begins and has ended. False: there is no memory. */
    bool (*reach_begin)(struct tape *t);
    void (*reach_end)(struct tape *t);
};

/* In tape_parts.c, which alone knows which there are; NULL behind the last. */
extern const struct tape_part *const tape_parts[];

/* Calls a verb of every part that has it; of those that may fail, until one does. */
#define TAPE_PARTS_CALL(verb, ...)                                                                 \
    do {                                                                                           \
        for (const struct tape_part *const *part_ = tape_parts; *part_; part_++)                   \
            if ((*part_)->verb)                                                                    \
                (*part_)->verb(__VA_ARGS__);                                                       \
    } while (0)
#define TAPE_PARTS_ALL(ok, verb, ...)                                                              \
    do {                                                                                           \
        for (const struct tape_part *const *part_ = tape_parts; *part_ && (ok); part_++)           \
            if ((*part_)->verb)                                                                    \
                (ok) = (*part_)->verb(__VA_ARGS__);                                                \
    } while (0)
#define TAPE_PARTS_STATUS(status, verb, ...)                                                       \
    do {                                                                                           \
        for (const struct tape_part *const *part_ = tape_parts; *part_ && (status) == TAPE_OK;     \
             part_++)                                                                              \
            if ((*part_)->verb)                                                                    \
                (status) = (*part_)->verb(__VA_ARGS__);                                            \
    } while (0)

/* Before anything is recorded or read. Costs a comparison where nothing is being written. */
static inline void tape_settle(struct tape *t)
{
    if (__builtin_expect(t->open != UINT32_MAX, 0))
        TAPE_PARTS_CALL(settle, t);
}

#endif
