/* live.c: steps of two lines whose costs differ, until a line comes on standard input; told so, it
 * ends otherwise. Arguments: what it does at its end ("crash", or its exit status), and how many
 * lines it writes before its steps. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapescope/ad.h>
#include <unistd.h>

enum { N = 100000 };

static ad_tensor dear(ad_tensor x)
{
    return ad_sin(ad_tanh(ad_exp(ad_scale(x, -1)))); // @dear
}

static ad_tensor cheap(ad_tensor x)
{
    return ad_sum(x); // @cheap
}

static int is_told(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 1;
}

int main(int argc, char **argv)
{
    static double data[N];
    const char *end = argc > 1 ? argv[1] : "0";
    ad_tape tape;
    for (int i = 1; argc > 2 && i <= atoi(argv[2]); i++)
        printf("output %d\n", i);
    fflush(stdout);
    fprintf(stderr, "caf\303\251 \033[1mbold\033[0m\n");
    ad_tape_create(&tape, NULL);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, data);
    ad_mark start = ad_tape_mark(tape);
    do {
        if (ad_backward(cheap(dear(x))) != AD_OK)
            return 99;
        ad_tape_rewind(tape, start);
    } while (!is_told());
    printf("the end\n");
    fflush(stdout);
    if (strcmp(end, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would end it otherwise */
        raise(SIGSEGV);
    }
    return atoi(end);
}
