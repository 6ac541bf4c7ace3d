/* read_follow.c: see read_follow.h.
 *
 * Invariant: `pending` holds what was read behind the last whole frame, and no more than one frame
 * and what one call reads.
 */
#include "read_follow.h"

#include "base_memory.h"
#include "profile_frame.h"
#include "read_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLLOW_MOST = 8 << 20, FOLLOW_STEP = 1 << 16 };

struct read_follow {
    char *path;
    int fd; /* -1: not open yet */
    bool has_magic, ended;
    uint8_t *pending;
    size_t n, room;
    uint64_t read;
    struct read_state state;
    struct read_profile now; /* the last state that was asked for; owns its tapes and their rows */
};

struct read_follow *read_follow_new(const char *path)
{
    struct read_follow *follow = base_calloc(1, sizeof *follow);
    follow->fd = -1;
    follow->path = base_strdup(path);
    follow->state.brief = true;
    follow->state.profile = base_calloc(1, sizeof *follow->state.profile);
    follow->state.profile->path = base_strdup(path);
    return follow;
}

static void drop_state(struct read_follow *follow)
{
    for (size_t i = 0; i < follow->now.n_tapes; i++)
        free(follow->now.tape[i].row);
    free(follow->now.tape);
    follow->now = (struct read_profile){0};
}

void read_follow_free(struct read_follow *follow)
{
    if (!follow)
        return;
    drop_state(follow);
    if (follow->fd >= 0)
        close(follow->fd);
    read_state_free(&follow->state);
    read_profile_free(follow->state.profile);
    free(follow->pending);
    free(follow->path);
    free(follow);
}

uint64_t read_follow_bytes(const struct read_follow *follow)
{
    return follow->read;
}

/* Bytes of the file that are new; 0: there are none; -1: they cannot be read. */
static ssize_t read_more(struct read_follow *follow)
{
    if (follow->fd < 0) {
        follow->fd = open(follow->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (follow->fd < 0)
            return errno == ENOENT || errno == EINTR ? 0 : -1;
    }
    if (follow->n + FOLLOW_STEP > follow->room) {
        size_t room = 2 * follow->room + FOLLOW_STEP;
        follow->pending = base_reallocarray(follow->pending, room, 1);
        follow->room = room;
    }
    ssize_t got;
    do
        got = read(follow->fd, follow->pending + follow->n, FOLLOW_STEP);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        follow->n += (size_t)got;
        follow->read += (uint64_t)got;
    }
    return got;
}

/* Applies the whole frames of what is pending; false: what comes is of no use any more. */
static bool apply_pending(struct read_follow *follow, size_t *n_applied)
{
    const uint8_t *at = follow->pending;
    size_t left = follow->n;
    bool ok = true;
    if (!follow->has_magic && left >= PROFILE_MAGIC_BYTES) {
        ok = memcmp(at, PROFILE_MAGIC, PROFILE_MAGIC_BYTES) == 0;
        follow->has_magic = true;
        at += PROFILE_MAGIC_BYTES;
        left -= PROFILE_MAGIC_BYTES;
    }
    while (ok && follow->has_magic && left >= PROFILE_FRAME_BYTES) {
        uint32_t n, crc;
        ok = profile_frame_get(at, &n, &crc);
        if (!ok || left - PROFILE_FRAME_BYTES < n)
            break;
        at += PROFILE_FRAME_BYTES;
        ok = profile_crc(at, n) == crc && read_apply_bytes(&follow->state, at, n) == READ_OK;
        at += n;
        left -= PROFILE_FRAME_BYTES + n;
        if (ok) {
            ++*n_applied;
            follow->state.profile->n_packets++;
            ok = !follow->state.profile->complete;
        }
    }
    if (left > 0 && left < follow->n)
        memmove(follow->pending, at, left);
    follow->n = left;
    return ok;
}

enum read_follow_status read_follow_take(struct read_follow *follow)
{
    size_t applied = 0;
    ssize_t got = 1;
    for (size_t read = 0; !follow->ended && got > 0 && read < FOLLOW_MOST; read += (size_t)got) {
        got = read_more(follow);
        if (got < 0 || (got > 0 && !apply_pending(follow, &applied)))
            follow->ended = true;
        if (got < 0)
            break;
    }
    return applied > 0 ? READ_FOLLOW_NEW : follow->ended ? READ_FOLLOW_ENDED : READ_FOLLOW_SAME;
}

/* A copy, since the tape's own goes on to grow. */
static void copy_tape(struct read_profile *now, const struct read_tape *from)
{
    struct read_tape *to = &now->tape[now->n_tapes];
    struct read_row *row = base_calloc(from->n_rows + 1, sizeof *row);
    *to = *from;
    to->row = row;
    if (from->n_rows > 0)
        memcpy(row, from->row, from->n_rows * sizeof *row);
    for (size_t i = 0; i < from->n_rows; i++)
        row[i].scope = row[i].path = 0;
    to->residual = NULL;
    to->change = NULL;
    to->trace = NULL;
    to->moment = NULL;
    to->n_residuals = to->n_changes = to->n_trace = to->n_moments = 0;
    now->n_tapes++;
}

const struct read_profile *read_follow_state(struct read_follow *follow)
{
    struct read_state *state = &follow->state;
    drop_state(follow);
    if (!state->has_header)
        return NULL;
    read_calibrate(state);
    follow->now = *state->profile;
    struct read_profile *now = &follow->now;
    now->n_scopes = now->n_expectations = now->n_patterns = now->n_tapes = 0;
    if (!now->end_reason)
        now->end_reason = (char *)"";
    now->tape = base_calloc(state->n_tapes + 1, sizeof *now->tape);
    for (size_t i = 0; i < state->n_tapes; i++)
        if (!(now->complete && state->tape[i].tape.final))
            copy_tape(now, &state->tape[i].tape);
    read_bound(now);
    if (!state->samples_have_times)
        read_weigh_samples(now, &state->threads);
    for (size_t i = 0; i < now->n_tapes; i++) {
        read_take_off_overhead(now, &now->tape[i]);
        read_estimate(now, &now->tape[i]);
    }
    return now;
}
