/* unwind_copy.c: the callers of an interrupted function, by the tables that compilers write
 * (.eh_frame), from a copy of the top of its stack.
 *
 * Nothing is read but the copy and the tables of modules that are loaded at that moment: they
 * cannot be unloaded meanwhile, since the loader's lock is held. What a table says by another
 * expression than that of a linker's entries, or by another register than the stack's and the
 * frame's pointer, is not known here.
 *
 * The form of the tables: Linux Standard Base Core 5.0, 10.6; their instructions: DWARF 5, 6.4.2.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "unwind.h"

#include <link.h>
#include <string.h>

#ifdef __x86_64__

enum { REMEMBERED = 4, FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };

/* How to come to the caller, at one address. */
struct cfi_row {
    uint64_t base; /* a register; ... */
    int64_t offset;
    bool known;       /* base and offset are; `ends`: there is no caller */
    bool ends, saved; /* saved: the frame pointer, at so many bytes above the caller's stack */
    bool fp_known;
    int64_t saved_at;
};

/* Reads bytes of a table; `bad`: what it says is not known here. */
struct cfi_bytes {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t cfi_number(struct cfi_bytes *bytes, size_t n)
{
    uint64_t value = 0;
    if (bytes->bad || (size_t)(bytes->end - bytes->at) < n) {
        bytes->bad = true;
        return 0;
    }
    memcpy(&value, bytes->at, n);
    bytes->at += n;
    return value;
}

static uint64_t cfi_leb(struct cfi_bytes *bytes, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)cfi_number(bytes, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && !bytes->bad);
    if (is_signed && shift < 64 && byte & 0x40)
        value |= ~UINT64_C(0) << shift;
    return value;
}

static void cfi_skip(struct cfi_bytes *bytes, uint64_t n)
{
    if (bytes->bad || n > (uint64_t)(bytes->end - bytes->at))
        bytes->bad = true;
    else
        bytes->at += n;
}

/* A distance of 4 bytes from the place where it stands. */
static const uint8_t *cfi_relative(struct cfi_bytes *bytes)
{
    const uint8_t *const from = bytes->at;
    return from + (int32_t)(uint32_t)cfi_number(bytes, 4);
}

/* An entry of .eh_frame behind its length, or nothing. */
static struct cfi_bytes cfi_entry(const uint8_t *at)
{
    uint32_t length;
    memcpy(&length, at, sizeof length);
    return length == 0 || length == UINT32_MAX
               ? (struct cfi_bytes){.bad = true}
               : (struct cfi_bytes){at + sizeof length, at + sizeof length + length, false};
}

/* What functions have in common. */
struct cfi_common {
    uint64_t code_unit;
    int64_t data_unit;
    struct cfi_bytes instructions;
    bool augmented;
};

enum { PC_RELATIVE_4 = 0x1b, UNSIGNED_4 = 0x03, TABLE_RELATIVE_4 = 0x3b };

static struct cfi_common cfi_common_of(const uint8_t *at)
{
    struct cfi_common common = {.instructions = cfi_entry(at)};
    struct cfi_bytes *bytes = &common.instructions;
    const uint64_t id = cfi_number(bytes, 4), version = cfi_number(bytes, 1);
    const char *letters = (const char *)bytes->at;
    while (cfi_number(bytes, 1) != 0 && !bytes->bad) {
    }
    common.code_unit = cfi_leb(bytes, false);
    common.data_unit = (int64_t)cfi_leb(bytes, true);
    const uint64_t column = cfi_leb(bytes, false);
    bytes->bad |= id != 0 || version != 1 || column != RETURN_ADDRESS;
    if (bytes->bad || *letters == '\0')
        return common;
    common.augmented = *letters++ == 'z';
    const uint64_t n = cfi_leb(bytes, false);
    struct cfi_bytes more = *bytes;
    for (; *letters != '\0' && !more.bad; letters++) {
        static const uint8_t size[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};
        const bool one = *letters == 'R' || *letters == 'L' || *letters == 'P';
        const uint8_t how = one ? (uint8_t)cfi_number(&more, 1) : 0;
        if (*letters == 'P')
            cfi_skip(&more, size[how & 15]);
        /* 'S' is a signal's frame, in which a return address is none. */
        if ((*letters == 'R' && how != PC_RELATIVE_4) || (!one && *letters != 'B'))
            more.bad = true;
    }
    cfi_skip(bytes, n);
    bytes->bad |= more.bad || !common.augmented;
    return common;
}

static void cfi_set_offset(struct cfi_row *row, uint64_t reg, int64_t offset)
{
    if (reg == FRAME_POINTER) {
        row->saved = row->fp_known = true;
        row->saved_at = offset;
    } else if (reg == RETURN_ADDRESS && offset != -8) {
        row->known = false;
    }
}

/* Of a register that is kept in no such way. */
static void cfi_lose(struct cfi_row *row, uint64_t reg)
{
    if (reg == FRAME_POINTER)
        row->fp_known = false;
    else if (reg == RETURN_ADDRESS)
        row->known = false;
}

static void cfi_restore(struct cfi_row *row, const struct cfi_row *first, uint64_t reg)
{
    if (reg == FRAME_POINTER) {
        row->saved = first->saved;
        row->saved_at = first->saved_at;
        row->fp_known = first->fp_known;
    }
}

/* The one expression that is known is that of entries by which functions of other modules are
 * called: one word more from the second instruction on. `ld` writes: stack pointer + 8 + ((pc &
 * 15) >= n) << 3. */
static void cfi_set_expression(struct cfi_row *row, struct cfi_bytes *bytes, uintptr_t pc)
{
    static const uint8_t entry[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    enum { LITERAL = 0x30, WHICH = 6 };
    const uint64_t n = cfi_leb(bytes, false);
    const uint8_t *const at = bytes->at;
    cfi_skip(bytes, n);
    row->known = !bytes->bad && n == sizeof entry && memcmp(at, entry, WHICH) == 0 &&
                 memcmp(at + WHICH + 1, entry + WHICH + 1, sizeof entry - WHICH - 1) == 0 &&
                 at[WHICH] >= LITERAL && at[WHICH] < LITERAL + 16;
    if (row->known) {
        row->base = STACK_POINTER;
        row->offset = (pc & 15) >= (uintptr_t)(at[WHICH] - LITERAL) ? 16 : 8;
    }
}

/* Runs instructions up to the row of an address `pc`, which is so many bytes behind the function's
 * begin. */
static void cfi_run(struct cfi_row *row, struct cfi_common *common, struct cfi_bytes *bytes,
                    const struct cfi_row *first, uintptr_t pc, uint64_t upto)
{
    struct cfi_row kept[REMEMBERED];
    unsigned n_kept = 0;
    uint64_t here = 0, reg;
    while (bytes->at < bytes->end && !bytes->bad && here <= upto) {
        const uint8_t op = (uint8_t)cfi_number(bytes, 1);
        switch (op >> 6 ? op & 0xc0 : op) {
        case 0x40: /* advance_loc */
            here += (op & 0x3f) * common->code_unit;
            break;
        case 0x80: /* offset */
            cfi_set_offset(row, op & 0x3f, (int64_t)cfi_leb(bytes, false) * common->data_unit);
            break;
        case 0xc0: /* restore */
            cfi_restore(row, first, op & 0x3f);
            break;
        case 0x00: /* nop */
            break;
        case 0x02: /* advance_loc1, 2, 4 */
        case 0x03:
        case 0x04:
            here += cfi_number(bytes, (size_t)1 << (op - 2)) * common->code_unit;
            break;
        case 0x05: /* offset_extended */
            reg = cfi_leb(bytes, false);
            cfi_set_offset(row, reg, (int64_t)cfi_leb(bytes, false) * common->data_unit);
            break;
        case 0x06: /* restore_extended */
            cfi_restore(row, first, cfi_leb(bytes, false));
            break;
        case 0x07: /* undefined: of the return address, in the outermost function */
            reg = cfi_leb(bytes, false);
            row->ends |= reg == RETURN_ADDRESS;
            cfi_lose(row, reg);
            break;
        case 0x08: /* same_value */
            reg = cfi_leb(bytes, false);
            row->saved &= reg != FRAME_POINTER;
            row->fp_known |= reg == FRAME_POINTER;
            break;
        case 0x09: /* register */
            cfi_lose(row, cfi_leb(bytes, false));
            cfi_leb(bytes, false);
            break;
        case 0x0a: /* remember_state */
            bytes->bad |= n_kept == REMEMBERED;
            if (!bytes->bad)
                kept[n_kept++] = *row;
            break;
        case 0x0b: /* restore_state */
            bytes->bad |= n_kept == 0;
            if (!bytes->bad)
                *row = kept[--n_kept];
            break;
        case 0x0c: /* def_cfa */
            row->base = cfi_leb(bytes, false);
            row->offset = (int64_t)cfi_leb(bytes, false);
            row->known = true;
            break;
        case 0x0d: /* def_cfa_register */
            row->base = cfi_leb(bytes, false);
            break;
        case 0x0e: /* def_cfa_offset */
            row->offset = (int64_t)cfi_leb(bytes, false);
            break;
        case 0x0f: /* def_cfa_expression */
            cfi_set_expression(row, bytes, pc);
            break;
        case 0x10: /* expression, val_expression */
        case 0x16:
            cfi_lose(row, cfi_leb(bytes, false));
            cfi_skip(bytes, cfi_leb(bytes, false));
            break;
        case 0x2e: /* GNU_args_size */
            cfi_leb(bytes, false);
            break;
        default:
            bytes->bad = true;
        }
    }
}

/* The row of an address by a module's .eh_frame_hdr: a sorted table of functions. */
static struct cfi_row cfi_find(const uint8_t *header, uintptr_t pc)
{
    struct cfi_row row = {.fp_known = true}, first;
    uint32_t n;
    if (header[0] != 1 || header[1] != PC_RELATIVE_4 || header[2] != UNSIGNED_4 ||
        header[3] != TABLE_RELATIVE_4)
        return row;
    memcpy(&n, header + 8, sizeof n);
    const uint8_t *const table = header + 12;
    const int64_t wanted = (int64_t)(pc - (uintptr_t)header);
    uint32_t low = 0, high = n;
    int32_t pair[2];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        memcpy(pair, table + (size_t)8 * middle, sizeof pair);
        if (pair[0] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return row;
    memcpy(pair, table + (size_t)8 * (low - 1), sizeof pair);
    struct cfi_bytes bytes = cfi_entry(header + pair[1]);
    const uint8_t *const back = bytes.at;
    if (bytes.bad)
        return row;
    struct cfi_common common = cfi_common_of(back - cfi_number(&bytes, 4));
    if (common.instructions.bad)
        return row;
    const uintptr_t begin = (uintptr_t)cfi_relative(&bytes);
    const uint64_t length = cfi_number(&bytes, 4);
    cfi_skip(&bytes, cfi_leb(&bytes, false));
    if (bytes.bad || pc < begin || pc - begin >= length)
        return row;
    first = row;
    cfi_run(&row, &common, &common.instructions, &first, pc, 0);
    first = row;
    cfi_run(&row, &common, &bytes, &first, pc, pc - begin);
    row.known &= !bytes.bad && !common.instructions.bad;
    return row;
}

struct copy_search {
    uintptr_t pc;
    struct cfi_row row;
};

static int search_module(struct dl_phdr_info *info, size_t size, void *payload)
{
    struct copy_search *search = payload;
    const uint8_t *header = NULL;
    bool within = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD)
            within |= search->pc >= begin && search->pc - begin < part->p_memsz;
        else if (part->p_type == PT_GNU_EH_FRAME)
            header = (const uint8_t *)begin; /* NOLINT(performance-no-int-to-ptr) */
    }
    if (within && header != NULL)
        search->row = cfi_find(header, search->pc);
    return within;
}

/* A word of the copy, whose first is that at the address `sp`. */
static bool copy_word(const struct unwind_copy *copy, uintptr_t at, uintptr_t *word)
{
    const uintptr_t i = (at - copy->sp) / sizeof *word;
    if (at < copy->sp || at % sizeof *word != 0 || i >= copy->n_words)
        return false;
    *word = copy->word[i];
    return true;
}

bool unwind_caller(struct unwind_copy *copy)
{
    /* A return address may be that of the next function, if its own ends in a call. */
    struct copy_search search = {.pc = copy->pc - copy->is_return};
    (void)dl_iterate_phdr(search_module, &search);
    const struct cfi_row *row = &search.row;
    if (!row->known || row->ends ||
        (row->base != STACK_POINTER && (row->base != FRAME_POINTER || !copy->fp_known)))
        return false;
    const uintptr_t base = row->base == STACK_POINTER ? copy->at : copy->fp;
    const uintptr_t caller = base + (uintptr_t)row->offset;
    uintptr_t pc, fp = copy->fp;
    if (caller <= copy->at || !copy_word(copy, caller - sizeof pc, &pc))
        return false;
    copy->fp_known = row->saved ? copy_word(copy, caller + (uintptr_t)row->saved_at, &fp)
                                : copy->fp_known && row->fp_known;
    copy->fp = fp;
    copy->pc = pc;
    copy->at = caller;
    copy->is_return = true;
    return pc != 0;
}

#else

bool unwind_caller(struct unwind_copy *copy)
{
    (void)copy;
    return false;
}

#endif
