/* ad_message.c: messages of other libraries, for the profile. */
#include "ad_internal.h"

#include "tape_account.h"

#include <tapescope/ad_message.h>

_Static_assert((int)AD_MESSAGE_END == (int)TAPE_MESSAGE_END, "kinds");
_Static_assert((int)AD_MESSAGE_SEND == (int)TAPE_MESSAGE_SEND, "kinds");

static struct tape_hook *message_hook(void)
{
    uint32_t session;
    struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    return hook != NULL && tape_session_of(hook, &session) ? hook : NULL;
}

uint64_t ad_message_clock(void)
{
    const struct tape_hook *hook = message_hook();
    return hook != NULL && hook->message != NULL ? hook->clock() : 0;
}

void ad_message_tell(const ad_message *message)
{
    struct tape_hook *hook = message_hook();
    if (hook == NULL || hook->message == NULL)
        return;
    const struct tape_message told = {.kind = (uint32_t)message->kind,
                                      .backward = message->backward,
                                      .line = message->line,
                                      .pc = (uintptr_t)message->caller,
                                      .op = message->op,
                                      .comm = message->comm,
                                      .ranks = message->ranks,
                                      .number = message->number,
                                      .root = message->root,
                                      .to = message->to,
                                      .from = message->from,
                                      .to_tag = message->to_tag,
                                      .from_tag = message->from_tag,
                                      .bytes = message->bytes,
                                      .start = message->start,
                                      .end = hook->clock()};
    if (told.end >= told.start)
        hook->message(hook, &told);
}

void ad_message_meet(uint64_t own, uint64_t theirs, uint64_t width)
{
    struct tape_hook *hook = message_hook();
    const struct tape_meeting meeting = {own, theirs, width};
    if (hook != NULL && hook->meeting != NULL)
        hook->meeting(hook, &meeting);
}
