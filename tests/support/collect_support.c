/* collect_support.c: see collect_support.h. */
#include "collect_support.h"
#include "check_quietly.h"

#include "profile_frame.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char collect_folder[] = "/tmp/test_collect.XXXXXX";
char collect_path[PATH_MAX], collect_other_path[PATH_MAX], collect_error[512];
struct tape_collector *collect;
const struct tape_collect_options *collect_options;

struct collect_profile collect_profile;

struct tape_row collect_rows[4][TAPE_ROW_CHUNK];
struct tape_ledger collect_tapes[4];

struct tape_collector *collect_try_open(const char *to)
{
    void *module =
        dlopen(TAPESCOPE_LIB_DIR "/tapescope/tapescope-collect.so", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(module != NULL, "%s", dlerror());
    tape_collect_open_fn *open_collector;
    void *symbol = dlsym(module, TAPE_COLLECT_OPEN);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&open_collector, &symbol, sizeof symbol);
    collect_error[0] = '\0';
    return open_collector(to, "1.2.3", collect_options, collect_error, sizeof collect_error);
}

void collect_start(void)
{
    collect = collect_try_open(collect_path);
    ck_assert_msg(collect != NULL, "%s", collect_error);
}

void collect_stop(void)
{
    ck_assert_msg(collect->close(collect, collect_error, sizeof collect_error) == 0, "%s",
                  collect_error);
}

static void free_profile(void)
{
    for (size_t i = 0; i < collect_profile.n; i++)
        tapescope__packet__free_unpacked(collect_profile.packet[i], NULL);
    collect_profile.n = 0;
}

void collect_read(const char *from)
{
    free_profile();
    FILE *file = fopen(from, "rb");
    ck_assert_ptr_nonnull(file);
    char magic[PROFILE_MAGIC_BYTES];
    ck_assert_uint_eq(fread(magic, 1, sizeof magic, file), sizeof magic);
    ck_assert_mem_eq(magic, PROFILE_MAGIC, sizeof magic);
    uint8_t head[PROFILE_FRAME_BYTES];
    size_t got;
    while ((got = fread(head, 1, sizeof head, file)) == sizeof head) {
        uint32_t n, crc;
        ck_assert(profile_frame_get(head, &n, &crc));
        uint8_t *payload = malloc(n);
        ck_assert_ptr_nonnull(payload);
        ck_assert_uint_eq(fread(payload, 1, n, file), n);
        ck_assert_uint_eq(profile_crc(payload, n), crc);
        ck_assert_uint_lt(collect_profile.n, MOST_PACKETS);
        collect_profile.packet[collect_profile.n] = tapescope__packet__unpack(NULL, n, payload);
        ck_assert_ptr_nonnull(collect_profile.packet[collect_profile.n++]);
        free(payload);
    }
    ck_assert_uint_eq(got, 0);
    collect_profile.bytes = (size_t)ftell(file);
    fclose(file);
}

bool collect_is_ledger(size_t i, uint64_t tape)
{
    return collect_profile.packet[i]->kind_case == TAPESCOPE__PACKET__KIND_LEDGER &&
           collect_profile.packet[i]->ledger->tape == tape;
}

size_t collect_count_ledgers(uint64_t tape)
{
    size_t n = 0;
    for (size_t i = 0; i < collect_profile.n; i++)
        n += collect_is_ledger(i, tape);
    return n;
}

const Tapescope__Ledger *collect_nth_ledger(uint64_t tape, size_t n)
{
    for (size_t i = 0; i < collect_profile.n; i++)
        if (collect_is_ledger(i, tape) && n-- == 0)
            return collect_profile.packet[i]->ledger;
    ck_abort_msg("tape %llu has too few packets", (unsigned long long)tape);
    return NULL;
}

const char *collect_end_reason(void)
{
    const Tapescope__Packet *last = collect_profile.packet[collect_profile.n - 1];
    return last->kind_case == TAPESCOPE__PACKET__KIND_END ? last->end->reason : "none";
}

struct tape_ledger *collect_make_tape(unsigned t, uint64_t unit)
{
    struct tape_ledger *ledger = &collect_tapes[t];
    *ledger = (struct tape_ledger){.tape = t + 1, .thread = 3, .tid = 7, .n_rows = 2};
    ledger->chunk[0] = collect_rows[t];
    memset(collect_rows[t], 0, sizeof collect_rows[t]);
    static const char *const op[] = {"matmul", "tanh"};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t value = unit;
        collect_rows[t][i] =
            (struct tape_row){.pc = UINT64_C(0x1000) * (i + 1), .op = op[i], .line = 41 + i};
#define X(name) collect_rows[t][i].name = value++ * (i + 1);
        ROW_COUNTERS(X)
#undef X
    }
    collect_rows[t][0].kept_by = 2;
    ledger->forward_ticks = 100 * unit;
    ledger->handed_out_bytes = 200 * unit;
    ledger->peak_bytes = 300 * unit;
    ledger->reserved_bytes = 400 * unit;
    ledger->records = unit;
    return ledger;
}

void collect_flush(const struct tape_ledger *ledger, bool final)
{
    collect->hook.flush(&collect->hook, ledger, final);
}

void collect_wait_until_due(void)
{
    while (collect->hook.clock() < collect->hook.due) {
    }
}

void collect_setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(collect_folder));
    snprintf(collect_path, sizeof collect_path, "%s/a.prof", collect_folder);
    snprintf(collect_other_path, sizeof collect_other_path, "%s/b.prof", collect_folder);
    setenv("TAPESCOPE_CLOCK", "step:1000000", 1);
}

void collect_teardown(void)
{
    free_profile();
    unlink(collect_path);
    unlink(collect_other_path);
    ck_assert_int_eq(rmdir(collect_folder), 0);
    memset(collect_folder + sizeof collect_folder - 7, 'X', 6); /* mkdtemp's pattern again */
}
