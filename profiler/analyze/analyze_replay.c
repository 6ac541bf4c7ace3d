/* analyze_replay.c: the replay of analyze_whatif_peak() in short. See analyze_space.h.
 *
 * Invariant: every choice of options has the same peak as by analyze_whatif_peak(). Moments in
 * which no class of an option changes are one with the moment before, the one with more live,
 * unless a sweep has begun or ended between them.
 */
#include "analyze_space.h"

#include "base_memory.h"

#include <stdlib.h>

/* The options' classes, numbered; number[residual]: plus 1, 0: of no option. */
static void number_classes(struct analyze_replay *replay, const struct analyze_whatif *whatif,
                           uint32_t *number)
{
    for (size_t i = 0; i < whatif->tape->n_residuals; i++) {
        const struct read_residual *r = &whatif->tape->residual[i];
        if (whatif->of[i] == 0)
            continue;
        replay->class_[replay->n_classes] = (struct analyze_replay_class){
            .option = whatif->of[i] - 1, .again = r->read_bytes > 0 ? r->largest_bytes : 0};
        number[i] = (uint32_t)++replay->n_classes;
    }
}

/* A moment ends; n: changes since the one before. */
static void end_moment(struct analyze_replay *replay, int64_t rest, uint32_t n, bool backward)
{
    const bool first = replay->n_moments == 0;
    struct analyze_replay_moment *last = first ? NULL : &replay->moment[replay->n_moments - 1];
    if (n > 0 || first || last->backward != backward)
        replay->moment[replay->n_moments++] =
            (struct analyze_replay_moment){.rest = rest, .n_changes = n, .backward = backward};
    else if (rest > last->rest)
        last->rest = rest;
}

static void replay_shorten(struct analyze_replay *replay, const struct read_tape *tape,
                           const uint32_t *number)
{
    int64_t rest = 0;
    uint32_t n = 0; /* changes of this moment */
    for (size_t i = 0; i < tape->n_changes; i++) {
        const struct read_change *change = &tape->change[i];
        const uint32_t class_ = number[change->residual];
        struct analyze_replay_change *last = &replay->change[replay->n_changes];
        if (class_ == 0) {
            rest += change->delta;
        } else if (n > 0 && last[-1].class_ == class_ - 1) {
            last[-1].delta += change->delta;
        } else {
            *last = (struct analyze_replay_change){.class_ = class_ - 1, .delta = change->delta};
            replay->n_changes++;
            n++;
        }
        if (!change->ends)
            continue;
        end_moment(replay, rest, n, change->backward);
        n = 0;
    }
    replay->n_changes -= n; /* of a moment that never ended */
}

void analyze_replay_make(struct analyze_replay *replay, const struct analyze_whatif *whatif)
{
    const struct read_tape *tape = whatif->tape;
    uint32_t *number = base_calloc(tape->n_residuals + 1, sizeof *number);
    *replay = (struct analyze_replay){
        .class_ = base_calloc(tape->n_residuals + 1, sizeof *replay->class_),
        .moment = base_calloc(tape->n_changes + 1, sizeof *replay->moment),
        .change = base_calloc(tape->n_changes + 1, sizeof *replay->change),
    };
    number_classes(replay, whatif, number);
    replay_shorten(replay, tape, number);
    free(number);
}

void analyze_replay_free(struct analyze_replay *replay)
{
    free(replay->class_);
    free(replay->moment);
    free(replay->change);
    *replay = (struct analyze_replay){0};
}
