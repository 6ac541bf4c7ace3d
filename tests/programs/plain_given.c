/* plain_given.c: memory that a function of another compiler was given before the recording, or by
 * another thread, and which holds variables when it reads it: that is said. The functions of the
 * other compiler are this file with FOREIGN. The only argument says when: before, thread, or never,
 * where the function reads nothing; or text: that is short, which such a function reads a number
 * of. Prints how often it was said that a gradient is lost. */
double foreign_kept(void);
double foreign_parse(const char *text);
void foreign_keep(const double *x);

#ifdef FOREIGN
#include <stdlib.h>

double foreign_parse(const char *text)
{
    return strtod(text, NULL);
}

static const double *kept;

void foreign_keep(const double *x)
{
    kept = x;
}

double foreign_kept(void)
{
    return kept ? kept[0] + 2 * kept[1] : 0;
}

#else

#include <tapescope/ad_plain.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *keep(void *at)
{
    foreign_keep(at);
    return NULL;
}

/* Texts of one and of two digits, at all places of a word. */
static int of_text(ad_tape tape, double *x)
{
    double y = 0;
    ad_real k[2];
    if (ad_plain_leaves(tape, 2, x, k) != AD_OK)
        return 2;
    for (int at = 0; at < 8; at++) {
        char text[16] = "";
        snprintf(text + at, sizeof text - 8, at % 2 ? "%g" : "%.2g", x[at % 2] * (at % 2 ? 1 : 6));
        y += foreign_parse(text + at);
    }
    char text[16] = "7";
    y += foreign_parse(text);
    printf("%g %llu\n", y, (unsigned long long)ad_plain_dropped());
    return ad_tape_destroy(tape) != AD_OK;
}

int main(int n, char **word)
{
    double x[2] = {2, 3}, *given = calloc(2, sizeof *given);
    const char *when = n > 1 ? word[1] : "";
    ad_tape tape;
    ad_real k[2];
    pthread_t thread;
    if (!given || ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    if (strcmp(when, "text") == 0)
        return of_text(tape, x);
    if (strcmp(when, "before") == 0)
        keep(given);
    if (ad_plain_leaves(tape, 2, x, k) != AD_OK)
        return 2;
    if (strcmp(when, "thread") == 0 &&
        (pthread_create(&thread, NULL, keep, given) != 0 || pthread_join(thread, NULL) != 0))
        return 2;
    given[0] = x[0] * x[1];
    given[1] = x[1];
    const double y = foreign_kept() + given[0] + given[1];
    printf("%g %llu\n", y, (unsigned long long)ad_plain_dropped());
    free(given);
    return ad_tape_destroy(tape) != AD_OK;
}

#endif
