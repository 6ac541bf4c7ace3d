/* files.c: for test_save_load_numpy.sh: `files IN OUT NAME…` loads tensors of these names and saves
 * them again; with -t before, those of two axes as transposed views. Fails with the tape's message.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_file.h>

#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

int main(int argc, char **argv)
{
    const int transposed = argc > 1 && strcmp(argv[1], "-t") == 0, first = 1 + transposed;
    const int n = argc - first - 2;
    const char *const *names = (const char *const *)argv + first + 2;
    ad_tensor x[MOST];
    ad_tape tape;
    if (n < 0 || n > MOST || ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    ad_status status = ad_load(tape, argv[first], n, names, x); /* @load */
    for (int i = 0; i < n && transposed && status == AD_OK; i++)
        if (ad_rank(x[i]) == 2)
            x[i] = ad_transpose(x[i]);
    if (status == AD_OK)
        status = ad_save(tape, argv[first + 1], n, names, x);
    if (status != AD_OK)
        fprintf(stderr, "%s: %s\n", ad_status_name(status), ad_tape_message(tape));
    ad_tape_destroy(tape);
    return status != AD_OK;
}
