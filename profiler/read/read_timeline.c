/* read_timeline.c: single events, handed on one by one as their packets are read.
 *
 * Nothing is kept of an event but that there was one, so that a profile of any number of them
 * takes no more memory than its largest packet.
 */
#include "read_state.h"

static bool columns_agree(const Tapescope__Timeline *timeline)
{
    const size_t n = timeline->n_event_site;
    return timeline->n_event_record == n && timeline->n_event_start == n &&
           timeline->n_event_ticks == n;
}

enum read_status read_apply_timeline(struct read_state *state, const Tapescope__Timeline *timeline)
{
    struct read_profile *profile = state->profile;
    if (!columns_agree(timeline))
        return READ_BAD;
    struct read_event event = {0};
    for (size_t i = 0; i < timeline->n_event_site; i++) {
        if (timeline->event_site[i] >= timeline->n_site)
            return READ_BAD;
        const Tapescope__EventSite *site = timeline->site[timeline->event_site[i]];
        event.start_ticks += (uint64_t)timeline->event_start[i];
        event.record += (uint64_t)timeline->event_record[i];
        if (site->kind >= READ_EVENT_KINDS) /* a later writer's */
            continue;
        profile->n_events++;
        if (!state->each_event)
            continue;
        event.kind = (enum read_event_kind)site->kind;
        event.process = site->process;
        event.thread = site->thread;
        event.tape = site->tape;
        event.pc = site->pc;
        event.line = site->line;
        event.op = site->op;
        event.path = site->path;
        event.again = site->again;
        event.part = site->part;
        event.scope = read_scope_place(state, site->scope);
        event.ticks = timeline->event_ticks[i];
        state->each_event(state->payload, profile, &event);
    }
    if (timeline->left_out > profile->events_left_out)
        profile->events_left_out = timeline->left_out;
    return READ_OK;
}
