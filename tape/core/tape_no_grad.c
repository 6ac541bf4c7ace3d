/* tape_no_grad.c: the levels of ad_tape_no_grad_begin that are open, and where each was begun.
 *
 * The outermost levels are remembered; those beyond the table are counted alone, and the last one
 * in it, which is open too, is named instead.
 */
#include "tape_no_grad.h"

#include <stdio.h>

void tape_no_grad_begin(struct tape *t, struct tape_site site)
{
    if (t->no_grad < TAPE_NO_GRAD_LEVELS)
        t->no_grad_levels[t->no_grad] = (struct tape_no_grad_level){site, t->no_grad_begun + 1};
    t->no_grad++;
    t->no_grad_begun++;
}

void tape_no_grad_restore(struct tape *t, const struct tape_mark *mark)
{
    t->no_grad = mark->no_grad;
    /* Levels that were begun since then took the place of some that are open again. */
    for (int i = 0; i < t->no_grad && i < TAPE_NO_GRAD_LEVELS; i++)
        if (t->no_grad_levels[i].number > mark->no_grad_begun)
            t->no_grad_levels[i] = (struct tape_no_grad_level){{0, 0}, 0};
}

struct tape_site tape_no_grad_site(const struct tape *t)
{
    const int named = t->no_grad < TAPE_NO_GRAD_LEVELS ? t->no_grad : TAPE_NO_GRAD_LEVELS;
    return named ? t->no_grad_levels[named - 1].site : (struct tape_site){0, 0};
}

const char *tape_no_grad_open(const struct tape *t, char buf[TAPE_NO_GRAD_TEXT])
{
    char where[TAPE_NO_GRAD_TEXT - 64] = "";
    buf[0] = 0;
    if (t->no_grad == 0)
        return buf;
    const struct tape_site site = tape_no_grad_site(t);
    if (site.pc || site.line)
        t->describe(site, where, sizeof where);
    (void)snprintf(buf, TAPE_NO_GRAD_TEXT, "; no_grad%s%s is still open",
                   where[0] ? " begun at " : "", where);
    return buf;
}
