/* ad_locate.c: the whole of a program counter of which a statement has kept the lowest bits.
 *
 * Several addresses may have these bits. The right one stands behind the instruction that gave it:
 * one that reads the program counter (AD_HERE_ASM_), or a call, whose return address it is.
 */
#include "ad_internal.h"

#include "tape_hook.h"

#include <link.h>
#include <string.h>

struct search {
    uint32_t low;
    uintptr_t near;
    uintptr_t found;
    int likely; /* how much speaks for it; 0: none is found */
};

enum behind { BEHIND_OTHER, BEHIND_CALL, BEHIND_HERE };
enum { LIKELY_MOST = 6 };

#if defined(__x86_64__)
static bool is_call(const unsigned char *pc, uintptr_t room)
{
    if (room >= 5 && pc[-5] == 0xE8)
        return true;
    static const unsigned char length[] = {2, 3, 6, 7}; /* of a call through register or memory */
    for (unsigned k = 0; k < sizeof length; k++)
        if (room >= length[k] && pc[-length[k]] == 0xFF && (pc[1 - length[k]] >> 3 & 7) == 2)
            return true;
    return false;
}

/* What stands before a program counter, in code of so many bytes before it. */
static enum behind instruction_behind(uintptr_t at, uintptr_t room)
{
    const unsigned char *pc = (const unsigned char *)at; // NOLINT(performance-no-int-to-ptr)
    static const unsigned char here[4];                  /* lea 0(%rip), to any register */
    if (room >= 6 && pc[-6] == 0x8D && (pc[-5] & 0xC7) == 0x05 &&
        memcmp(pc - 4, here, sizeof here) == 0)
        return BEHIND_HERE;
    return is_call(pc, room) ? BEHIND_CALL : BEHIND_OTHER;
}
#elif defined(__aarch64__)
/* The instruction that reads its own address lies there, not before. */
static enum behind instruction_behind(uintptr_t at, uintptr_t room)
{
    const uint32_t *pc = (const uint32_t *)at; // NOLINT(performance-no-int-to-ptr)
    if (at % sizeof *pc != 0)
        return BEHIND_OTHER;
    if ((*pc & UINT32_C(0xFFFFFFE0)) == UINT32_C(0x10000000))
        return BEHIND_HERE;
    const bool call =
        room >= sizeof *pc && (pc[-1] >> 26 == 0x25 || (pc[-1] & 0xFFFFFC1F) == 0xD63F0000);
    return call ? BEHIND_CALL : BEHIND_OTHER;
}
#else
static enum behind instruction_behind(uintptr_t at, uintptr_t room)
{
    (void)at, (void)room;
    return BEHIND_OTHER;
}
#endif

/* By: in the code that has `near` as well; enum behind. */
static const int likely[2][3] = {{1, 2, 4}, {3, 5, LIKELY_MOST}};

static uintptr_t apart(uintptr_t a, uintptr_t b)
{
    return a < b ? b - a : a - b;
}

static void consider(struct search *s, uintptr_t at, enum behind behind, bool beside)
{
    const int here = likely[beside][behind];
    if (here < s->likely || (here == s->likely && apart(at, s->near) >= apart(s->found, s->near)))
        return;
    s->found = at;
    s->likely = here;
}

static int look(struct dl_phdr_info *info, size_t size, void *payload)
{
    const uintptr_t step = (uintptr_t)1 << TAPE_SITE_BITS;
    struct search *s = payload;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        const uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        const bool beside = s->near - start < segment->p_memsz;
        for (uintptr_t at = start + ((s->low - start) & (step - 1)); at - start < segment->p_memsz;
             at += step) {
            const bool readable = segment->p_flags & PF_R;
            consider(s, at, readable ? instruction_behind(at, at - start) : BEHIND_OTHER, beside);
        }
    }
    return s->likely == LIKELY_MOST;
}

uintptr_t ad_locate(uint32_t low, uintptr_t near)
{
    if (low == 0)
        return near;
    struct search s = {.low = low, .near = near};
    dl_iterate_phdr(look, &s);
    return s.likely ? s.found : near;
}
