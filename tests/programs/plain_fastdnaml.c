/* plain_fastdnaml.c: fastDNAml, a program of 1993 that finds evolutionary trees, as a library: the
 * gradient of the likelihood by the lengths of the tree's branches, at its maximum and beside it,
 * against differences. Reads what the program reads.
 */
#define main fastdnaml_main
#include "fastDNAml.c"
#undef main
#include <tapescope/ad_plain.h>

enum { BRANCHES = 64 };

static tree *found;
static nodeptr branch[BRANCHES];
static int branches;

static double likelihood(const double *z)
{
    int i;
    for (i = 0; i < branches; i++)
        branch[i]->z = branch[i]->back->z = z[i];
    initrav(found, found->start);
    initrav(found, found->start->back);
    return evaluate(found, found->start);
}

/* As the program's main function does. */
static int find_tree(void)
{
    analdef *adef = malloc(sizeof *adef);
    rawdata *rdta = malloc(sizeof *rdta);
    cruncheddata *cdta = malloc(sizeof *cdta);
    bestlist *best = calloc(1, sizeof *best);
    int i;
    found = malloc(sizeof *found);
    if (!getinput(adef, rdta, cdta, found) || !makeweights(adef, rdta, cdta) ||
        !makevalues(rdta, cdta) || (adef->empf && !empiricalfreqs(rdta, cdta)))
        return 0;
    reportfreqs(adef, rdta);
    if (!linkdata2tree(rdta, cdta, found) ||
        !linkxarray(3, 3, cdta->endsite, &freextip, &usedxtip) || !setupnodex(found) ||
        !initBestTree(best, adef->nkeep, found->mxtips, cdta->endsite) ||
        !makeDenovoTree(found, best, adef))
        return 0;
    for (i = 1; i <= 2 * found->mxtips - 2; i++) {
        nodeptr p = found->nodep[i], q = p;
        do {
            if (q->back && q->number < q->back->number && branches < BRANCHES)
                branch[branches++] = q;
            q = q->next;
        } while (q && q != p);
    }
    return branches > 0;
}

int main(void)
{
    double z[BRANCHES], gradient[BRANCHES], step = 1e-4, y;
    ad_real k[BRANCHES];
    ad_tape tape;
    int i, s, beside, wrong = 0;
    if (!find_tree() || ad_tape_create(&tape, NULL) != AD_OK)
        return 1;
    for (beside = 0; beside < 2; beside++) {
        double worst = 0, greatest = 0;
        for (i = 0; i < branches; i++)
            z[i] = branch[i]->z * (beside ? 0.97 : 1);
        if (ad_plain_leaves(tape, branches, z, k) != AD_OK)
            return 1;
        y = likelihood(z);
        if (ad_plain_backward(tape, &y) != AD_OK ||
            ad_plain_gradients(tape, branches, k, gradient) != AD_OK) {
            fprintf(stderr, "%s\n", ad_tape_message(tape));
            return 1;
        }
        ad_tape_reset(tape);
        for (i = 0; i < branches; i++) {
            const double at = z[i];
            double f[4], slope, apart;
            for (s = 0; s < 4; s++) {
                z[i] = at + step * (s < 2 ? s - 2 : s - 1);
                f[s] = likelihood(z);
            }
            z[i] = at;
            slope = (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * step);
            apart = fabs(slope - gradient[i]) / (1 + fabs(slope));
            worst = apart > worst || apart != apart ? apart : worst;
            greatest = fabs(gradient[i]) > greatest ? fabs(gradient[i]) : greatest;
        }
        likelihood(z);
        wrong += !(worst < 1e-6) || (greatest > 1) != beside || ad_plain_dropped() > 0;
        fprintf(stderr, "%-14s %s, apart by %.1e\n", beside ? "beside it" : "at the maximum",
                wrong ? "WRONG" : "right", worst);
    }
    ad_tape_destroy(tape);
    return wrong > 0;
}
