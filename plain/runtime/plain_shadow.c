/* plain_shadow.c: the shadows' address ranges, and stretches of them.
 *
 * Programs that can be loaded anywhere, their heap, libraries and stacks lie in two ranges of
 * addresses, as MemorySanitizer has them. Both have a shadow and one of floats' checks. Nothing is
 * taken of memory but where it is written.
 */
#include "plain_shadow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t ad_plain_has_floats_;

/* Nobody reads it: plain/pass/pass_instrument.c names it for the linker's message. */
extern const uint8_t ad_plain_must_be_linked_by_tapescope_cc;
const uint8_t ad_plain_must_be_linked_by_tapescope_cc;

static const struct {
    uintptr_t begin, bytes;
} ranges[2] = {{0x510000000000, 0x0f0000000000}, {0x710000000000, 0x0f0000000000}};

int plain_has_shadow(const void *at)
{
    const uintptr_t x = (uintptr_t)at;
    return x - ranges[0].begin < ranges[0].bytes || x - ranges[1].begin < ranges[1].bytes;
}

static void map(uintptr_t begin, size_t bytes)
{
    begin &= ~(uintptr_t)4095;
    bytes += 4096;
    void *at = mmap((void *)begin, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == (void *)begin)
        return;
    fprintf(stderr,
            "tapescope: this program was compiled by `tapescope cc` and cannot run: the addresses "
            "from %p on, where indices are kept, are taken (%s); sanitizers take them, and "
            "programs that are not position independent (-no-pie) lie elsewhere\n",
            (void *)begin, strerror(errno));
    _exit(125);
}

__attribute__((constructor(101))) static void shadows_make(void)
{
    if (!plain_has_shadow((const void *)getauxval(AT_ENTRY))) {
        fprintf(stderr, "tapescope: this program was compiled by `tapescope cc` and must be linked "
                        "as one that can be loaded anywhere (-pie)\n");
        _exit(125);
    }
    for (unsigned k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        map(ranges[k].begin - PLAIN_DISTANCE, ranges[k].bytes);
        map(ranges[k].begin - PLAIN_DISTANCE_OF_CHECKS, ranges[k].bytes);
    }
}

/* Pages that hold nothing are given back rather than cleared. */
static void clear(void *shadow, size_t n)
{
    enum { MANY = 1 << 17, PAGE = 4096 };
    if (n < MANY) {
        memset(shadow, 0, n);
        return;
    }
    char *const begin = (char *)(((uintptr_t)shadow + PAGE - 1) / PAGE * PAGE);
    char *const end = (char *)(((uintptr_t)shadow + n) / PAGE * PAGE);
    memset(shadow, 0, (size_t)(begin - (char *)shadow));
    memset(end, 0, (size_t)((char *)shadow + n - end));
    if (madvise(begin, (size_t)(end - begin), MADV_DONTNEED) != 0)
        memset(begin, 0, (size_t)(end - begin));
}

void plain_forget(void *at, size_t n)
{
    clear(plain_shadow(at), n);
}

void plain_copied(void *to, const void *from, size_t n)
{
    memmove(plain_shadow(to), plain_shadow(from), n);
    if (ad_plain_has_floats_)
        memmove(plain_checks(to), plain_checks(from), n);
}
