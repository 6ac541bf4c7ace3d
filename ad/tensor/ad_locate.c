/* ad_locate.c: the whole of a program counter of which a statement has kept the lower half. */
#include "ad_internal.h"

#include <link.h>

struct search {
    uint32_t low;
    uintptr_t near;
    uintptr_t found; /* in some object; 0: in none so far */
    bool certain;    /* in the object that has `near` as well */
};

/* An address in [start, start + bytes) with this lower half, or 0. */
static uintptr_t within(uintptr_t start, uintptr_t bytes, uint32_t low)
{
    const uintptr_t at = start + (uint32_t)(low - (uint32_t)start);
    return at - start < bytes ? at : 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *payload)
{
    struct search *s = payload;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && !s->certain; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        const uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        const uintptr_t at = within(start, segment->p_memsz, s->low);
        if (!at)
            continue;
        s->certain = s->near - start < segment->p_memsz;
        if (s->certain || !s->found)
            s->found = at;
    }
    return s->certain;
}

uintptr_t ad_locate(uint32_t low, uintptr_t near)
{
    if (low == 0)
        return near;
    struct search s = {.low = low, .near = near};
    dl_iterate_phdr(look, &s);
    return s.found ? s.found : near;
}
