/* collect_messages.c: messages between ranks: gathered, packed when there are enough, bounded in
 * bytes; and meetings of clocks.
 *
 * They have a lock of their own, which is taken inside the collector's mutex and never the other
 * way: a message waits for no packet to be written. Invariant: the bytes of all packets together
 * stay within the limit: the first packet that would not is left out, and every message after it,
 * and they are counted. So what there is of a rank is a begin of all.
 */
#include "collect.h"

#include "profile.pb-c.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 1024, MOST_CALLS = 256, CALL_SLOTS = 1024, MOST_MEETINGS = 64 };

/* A packet under way. */
struct message_batch {
    uint32_t n, n_calls;
    uint64_t last_start;
    uint32_t call_of[MOST_MESSAGES];
    int64_t start[MOST_MESSAGES];
    uint64_t ticks[MOST_MESSAGES], number[MOST_MESSAGES], bytes[MOST_MESSAGES];
    struct tape_message call[MOST_CALLS]; /* what several messages have alike */
    uint16_t slot[CALL_SLOTS];            /* hash table: place plus 1 */
};

struct collect_messages {
    pthread_mutex_t mutex;
    bool closed, full, again, written;
    uint64_t most_bytes, used, left_out, said;
    struct message_batch *batch; /* NULL: none yet */
    struct collect_buffer done;  /* packets that wait for the file */
    uint32_t n_meetings, meetings_written;
    struct tape_meeting meeting[MOST_MEETINGS];
};

struct collect_messages *collect_messages_open(uint64_t most_bytes)
{
    struct collect_messages *messages = calloc(1, sizeof *messages);
    if (messages == NULL)
        return NULL;
    messages->most_bytes = most_bytes;
    pthread_mutex_init(&messages->mutex, NULL);
    return messages;
}

/* Another thread may come late: it finds them closed. */
void collect_messages_close(struct collect_messages *messages)
{
    if (messages == NULL)
        return;
    pthread_mutex_lock(&messages->mutex);
    messages->closed = true;
    free(messages->batch);
    free(messages->done.data);
    messages->batch = NULL;
    messages->done = (struct collect_buffer){0};
    pthread_mutex_unlock(&messages->mutex);
}

static void batch_empty(struct message_batch *b)
{
    b->n = b->n_calls = 0;
    b->last_start = 0;
    memset(b->slot, 0, sizeof b->slot);
}

void collect_messages_clear(struct collect_messages *messages)
{
    pthread_mutex_lock(&messages->mutex);
    if (messages->batch != NULL)
        batch_empty(messages->batch);
    messages->done.n = 0;
    messages->left_out = messages->said = 0;
    messages->n_meetings = messages->meetings_written = 0;
    messages->full = messages->used > messages->most_bytes;
    messages->again = messages->written;
    pthread_mutex_unlock(&messages->mutex);
}

static void fill_calls(Tapescope__MessageCall *to, Tapescope__MessageCall **list,
                       const struct message_batch *b)
{
    for (uint32_t i = 0; i < b->n_calls; i++) {
        const struct tape_message *from = &b->call[i];
        tapescope__message_call__init(&to[i]);
        to[i].kind = from->kind;
        to[i].backward = from->backward;
        to[i].pc = from->pc;
        to[i].line = from->line;
        to[i].op = (char *)from->op;
        to[i].communicator = from->comm;
        to[i].ranks = from->ranks;
        to[i].root = from->root;
        to[i].to = from->to;
        to[i].from = from->from;
        to[i].to_tag = from->to_tag;
        to[i].from_tag = from->from_tag;
        list[i] = &to[i];
    }
}

static bool put_messages(struct collect_buffer *out, struct message_batch *b)
{
    Tapescope__MessageCall call[MOST_CALLS], *calls[MOST_CALLS];
    Tapescope__Messages message = TAPESCOPE__MESSAGES__INIT;
    fill_calls(call, calls, b);
    message.n_call = b->n_calls;
    message.call = calls;
    message.n_message_call = message.n_message_start = message.n_message_ticks =
        message.n_message_number = message.n_message_bytes = b->n;
    message.message_call = b->call_of;
    message.message_start = b->start;
    message.message_ticks = b->ticks;
    message.message_number = b->number;
    message.message_bytes = b->bytes;
    return collect_put_packet(out, TAPESCOPE__PACKET__KIND_MESSAGES, &message);
}

/* Packs what there is, or leaves it out. */
static void messages_pack(struct collect_messages *messages)
{
    struct message_batch *b = messages->batch;
    const size_t before = messages->done.n;
    if (b == NULL || b->n == 0)
        return;
    if (!messages->full && put_messages(&messages->done, b))
        messages->used += messages->done.n - before;
    else
        messages->full = true;
    if (messages->full || messages->used > messages->most_bytes) {
        messages->full = true;
        messages->done.n = before;
        messages->left_out += b->n;
    }
    batch_empty(b);
}

static bool call_is(const struct tape_message *a, const struct tape_message *b)
{
    return a->pc == b->pc && a->op == b->op && a->line == b->line && a->comm == b->comm &&
           a->kind == b->kind && a->backward == b->backward && a->ranks == b->ranks &&
           a->root == b->root && a->to == b->to && a->from == b->from && a->to_tag == b->to_tag &&
           a->from_tag == b->from_tag;
}

/* The place of a message's call in the batch, or MOST_CALLS: it has no room for one more. */
static uint32_t messages_call_of(struct message_batch *b, const struct tape_message *m)
{
    uint64_t h = m->pc ^ (uint64_t)m->line << 40 ^ m->comm << 20 ^ (uint64_t)m->backward << 8;
    h ^= (uint64_t)(uint32_t)m->to << 48 ^ (uint64_t)(uint32_t)m->from << 32 ^
         (uint64_t)(uint32_t)m->to_tag << 24 ^ (uint64_t)(uint32_t)m->from_tag << 12;
    h = (h ^ (uint64_t)m->kind << 4 ^ (uint64_t)(uint32_t)m->root << 56) *
        UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t k = (uint32_t)(h >> 40);; k++) {
        uint16_t *slot = &b->slot[k % CALL_SLOTS];
        if (*slot == 0) {
            if (b->n_calls == MOST_CALLS)
                return MOST_CALLS;
            b->call[b->n_calls] = *m;
            *slot = (uint16_t)(++b->n_calls);
            return b->n_calls - 1;
        }
        if (call_is(&b->call[*slot - 1], m))
            return *slot - 1U;
    }
}

static void messages_append(struct collect_messages *messages, const struct tape_message *m)
{
    struct message_batch *b = messages->batch;
    uint32_t place = b->n < MOST_MESSAGES ? messages_call_of(b, m) : MOST_CALLS;
    if (place == MOST_CALLS) {
        messages_pack(messages);
        place = messages_call_of(b, m);
    }
    b->call_of[b->n] = place;
    b->start[b->n] = (int64_t)(m->start - b->last_start);
    b->ticks[b->n] = m->end - m->start;
    b->number[b->n] = m->number;
    b->bytes[b->n] = m->bytes;
    b->last_start = m->start;
    b->n++;
}

void collect_messages_take(struct collect_messages *messages, const struct tape_message *m)
{
    pthread_mutex_lock(&messages->mutex);
    if (messages->batch == NULL && !messages->closed && !messages->full)
        messages->batch = calloc(1, sizeof *messages->batch);
    if (messages->batch != NULL && !messages->full) {
        messages_append(messages, m);
    } else if (!messages->closed) {
        messages->full = true;
        messages->left_out++;
    }
    pthread_mutex_unlock(&messages->mutex);
}

/* Without room the newest takes the place of the one before it. */
void collect_messages_meet(struct collect_messages *messages, const struct tape_meeting *meeting)
{
    pthread_mutex_lock(&messages->mutex);
    if (messages->n_meetings == MOST_MEETINGS)
        messages->n_meetings--;
    if (messages->meetings_written > messages->n_meetings)
        messages->meetings_written = messages->n_meetings;
    messages->meeting[messages->n_meetings++] = *meeting;
    pthread_mutex_unlock(&messages->mutex);
}

/* What no packet of messages says: meetings, what was left out, and that it begins again. */
static bool put_messages_rest(struct collect_buffer *out, struct collect_messages *messages)
{
    Tapescope__Meeting meeting[MOST_MEETINGS], *list[MOST_MEETINGS];
    Tapescope__Messages message = TAPESCOPE__MESSAGES__INIT;
    message.meeting = list;
    for (uint32_t i = messages->meetings_written; i < messages->n_meetings; i++) {
        tapescope__meeting__init(&meeting[i]);
        meeting[i].own = messages->meeting[i].own;
        meeting[i].theirs = messages->meeting[i].theirs;
        meeting[i].width = messages->meeting[i].width;
        list[message.n_meeting++] = &meeting[i];
    }
    message.left_out = messages->left_out;
    message.again = messages->again;
    if (message.n_meeting == 0 && !message.again && messages->left_out == messages->said)
        return true;
    if (!collect_put_packet(out, TAPESCOPE__PACKET__KIND_MESSAGES, &message))
        return false;
    messages->meetings_written = messages->n_meetings;
    messages->said = messages->left_out;
    messages->again = false;
    messages->written = true;
    return true;
}

bool collect_put_messages(struct collect_buffer *out, struct collect_messages *messages, bool all)
{
    pthread_mutex_lock(&messages->mutex);
    if (all)
        messages_pack(messages);
    bool ok = put_messages_rest(out, messages);
    if (messages->done.n > 0) {
        ok = ok && collect_put_bytes(out, messages->done.data, messages->done.n);
        messages->written = true;
    }
    messages->done.n = 0;
    pthread_mutex_unlock(&messages->mutex);
    return ok;
}
