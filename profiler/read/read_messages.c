/* read_messages.c: messages between ranks, and meetings of clocks.
 *
 * See read_state.h for the invariant: a message takes some bytes of the file, and is kept in few
 * more.
 */
#include "read_state.h"

#include <stdlib.h>

static bool messages_agree(const Tapescope__Messages *messages)
{
    const size_t n = messages->n_message_call;
    return messages->n_message_start == n && messages->n_message_ticks == n &&
           messages->n_message_number == n && messages->n_message_bytes == n;
}

static void apply_call(struct read_state *state, const Tapescope__MessageCall *from)
{
    struct read_profile *profile = state->profile;
    BASE_ARRAY_GROW(profile->message_call, profile->n_message_calls, &state->room_message_calls);
    profile->message_call[profile->n_message_calls++] = (struct read_message_call){
        .kind = from->kind,
        .backward = from->backward,
        .pc = from->pc,
        .line = from->line,
        .op = read_intern_op(state, from->op),
        .comm = from->communicator,
        .ranks = from->ranks,
        .root = from->root,
        .to = from->to,
        .from = from->from,
        .to_tag = from->to_tag,
        .from_tag = from->from_tag,
    };
}

/* Times and bytes that no run has are a forger's. */
static uint64_t message_bounded(uint64_t n)
{
    return n < READ_MOST_OF_MESSAGE ? n : READ_MOST_OF_MESSAGE;
}

static void apply_messages(struct read_state *state, const Tapescope__Messages *messages)
{
    struct read_profile *profile = state->profile;
    const size_t first = profile->n_message_calls;
    uint64_t start = 0;
    for (size_t i = 0; i < messages->n_call; i++)
        apply_call(state, messages->call[i]);
    for (size_t i = 0; i < messages->n_message_call; i++) {
        start += (uint64_t)messages->message_start[i];
        const uint32_t call = messages->message_call[i];
        if (messages->call[call]->kind >= READ_MESSAGE_KINDS) /* a later writer's */
            continue;
        BASE_ARRAY_GROW(profile->message, profile->n_messages, &state->room_messages);
        profile->message[profile->n_messages++] =
            (struct read_message){.call = first + call,
                                  .number = messages->message_number[i],
                                  .start = start,
                                  .ticks = message_bounded(messages->message_ticks[i]),
                                  .bytes = message_bounded(messages->message_bytes[i])};
    }
    for (size_t i = 0; i < messages->n_meeting; i++) {
        const Tapescope__Meeting *from = messages->meeting[i];
        BASE_ARRAY_GROW(profile->meeting, profile->n_meetings, &state->room_meetings);
        profile->meeting[profile->n_meetings++] =
            (struct read_meeting){from->own, from->theirs, from->width};
    }
}

enum read_status read_apply_messages(struct read_state *state, const Tapescope__Messages *messages)
{
    struct read_profile *profile = state->profile;
    if (!messages_agree(messages))
        return READ_BAD;
    for (size_t i = 0; i < messages->n_message_call; i++)
        if (messages->message_call[i] >= messages->n_call)
            return READ_BAD;
    if (messages->again) {
        profile->n_messages = profile->n_message_calls = profile->n_meetings = 0;
        profile->messages_left_out = 0;
    }
    apply_messages(state, messages);
    if (messages->left_out > profile->messages_left_out)
        profile->messages_left_out = messages->left_out;
    return READ_OK;
}

void read_free_messages(struct read_profile *profile)
{
    free(profile->message);
    free(profile->message_call);
    free(profile->meeting);
}
