/* crash.c: a program that ends badly, or starts others, in the middle of its work. */
#include <tapescope/ad.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static double data[4];

static void work(ad_tape tape, int n)
{
    static const int64_t shape[1] = {4};
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data); // @leaf
    AD_SCOPE("work")
    {
        for (int i = 0; i < n; i++)
            x = ad_tanh(x); // @tanh
    }
}

/* In a child process: works on the tape that it inherited and on one of its own, then ends. */
static int child(ad_tape tape, int by_exit)
{
    ad_tape own;
    if (ad_tape_create(&own, NULL) != AD_OK)
        return 1;
    work(tape, 50);
    work(own, 50);
    ad_tape_destroy(own);
    if (by_exit)
        exit(0);
    _exit(0);
}

static int fork_twice(ad_tape tape)
{
    for (int by_exit = 0; by_exit < 2; by_exit++) {
        int status = 1;
        pid_t id = fork();
        if (id == 0)
            child(tape, by_exit);
        if (id < 0 || waitpid(id, &status, 0) != id || status != 0)
            return 1;
    }
    work(tape, 100);
    return 0;
}

/* Works until it is killed; after a while its id goes to the pipe of the test. */
static int run(ad_tape tape)
{
    const char *number = getenv("CRASH_PIPE");
    pid_t id = getpid();
    work(tape, 1000);
    if (!number || write(atoi(number), &id, sizeof id) != (ssize_t)sizeof id)
        return 2;
    for (;;) {
        work(tape, 1000);
        ad_tape_reset(tape);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    work(tape, 100);
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    if (strcmp(how, "exec") == 0) {
        execl(argv[0], argv[0], "return", (char *)NULL);
        return 2;
    }
    if (strcmp(how, "fork") == 0)
        return fork_twice(tape);
    if (strcmp(how, "run") == 0)
        return run(tape);
    if (strcmp(how, "return") == 0)
        return 3;
    return 2;
}
