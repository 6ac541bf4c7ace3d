/* ad_message.h: for libraries whose ops are messages between the processes of a program, as those
 * of ad_mpi.h: they tell the profile that is being taken what each call was, so that what it waited
 * can be told from what it took (docs/how-to/profile.md, "Many ranks").
 */
#ifndef TAPESCOPE_AD_MESSAGE_H
#define TAPESCOPE_AD_MESSAGE_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ad_message_kind {
    AD_MESSAGE_ALL,       /* each rank waits for all: allreduce, alltoall, barrier, ... */
    AD_MESSAGE_FROM_ROOT, /* all wait for the root: bcast, scatter */
    AD_MESSAGE_TO_ROOT,   /* the root waits for all: reduce, gather */
    AD_MESSAGE_SEND,      /* a send, a receive, or both, that ends with the call */
    AD_MESSAGE_BEGIN,     /* the begin of one, which AD_MESSAGE_END of the same number ends */
    AD_MESSAGE_END
} ad_message_kind;

/* A call that has ended. Ranks are those of the whole program; -1: none, or not known yet. */
typedef struct ad_message {
    ad_message_kind kind;
    bool backward;      /* in a sweep */
    const char *op;     /* static storage: the op's name */
    const void *caller; /* return address in the user's code, and its line */
    unsigned line;
    uint64_t comm;   /* the same on all ranks of the communicator, and no other's */
    uint32_t ranks;  /* of it */
    uint64_t number; /* collective: among those of comm */
    int root, to, to_tag, from, from_tag;
    uint64_t bytes; /* that this rank gives */
    uint64_t start; /* ad_message_clock as the call began */
} ad_message;

/* The profile's clock, in ticks; 0: no profile is being taken. */
AD_API uint64_t ad_message_clock(void);
/* The call ends now. Takes neither memory nor system calls but once in some thousand calls. */
AD_API void ad_message_tell(const ad_message *message);
/* Rank 0's clock was at `theirs` when this one's was at `own`, by a message there and back that
 * took `width` of rank 0's ticks. */
AD_API void ad_message_meet(uint64_t own, uint64_t theirs, uint64_t width);

#ifdef __cplusplus
}
#endif

#endif
