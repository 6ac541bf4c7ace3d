/* test_disk_account.c: what lies in a tape's file is in the account as that, by line: of tensors
 * the bytes of each buffer, of statements those of each line in the blocks that went.
 */
#include <tapescope/ad_real.h>

#include "disk_folder.h"
#include "observe_support.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_disk.h"
#include "tape_disk_writer.h"
#include "tape_residuals.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { SIZE = 16384, BYTES = SIZE * 8, BUDGET = 2 << 20, N = 4, STEPS = 120000 };

static double data[SIZE];
static ad_real x[N];

static void begin(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = BUDGET, .spill = folder});
}

static void end(void)
{
    teardown();
    check_gone();
}

/* The ledger of the observation that runs, which adds up. */
static const struct tape_ledger *ledger_checked(void)
{
    const struct tape_ledger *ledger = observe_ledger();
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    return ledger;
}

/* Live bytes on disk of all classes of an op's rows. */
static uint64_t disk_of(const struct tape_ledger *ledger, const char *op)
{
    const struct tape_residuals *r = ledger->residuals;
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct tape_class *c = tape_class_at(r, i);
        if (c->kind == TAPE_DISK && strcmp(tape_ledger_row(ledger, c->producer)->op, op) == 0)
            n += c->live_bytes;
    }
    return n;
}

/* ---- tensors ---- */

static ad_tensor tensors(int n)
{
    ad_tensor h = ad_leaf(tape, AD_F64, 1, (const int64_t[]){SIZE}, data);
    for (int k = 0; k < n; k++)
        h = ad_exp(ad_tanh(h));
    return h;
}

static struct tape *tape_observed_now(void)
{
    return (void *)((char *)(uintptr_t)observe_ledger() - offsetof(struct tape, ledger));
}

static uint64_t tensors_on_disk(void)
{
    uint64_t n = 0;
    struct tape *t = tape_observed_now();
    for (uint32_t i = 0; i < t->n_values; i++)
        n += t->entries[i].flags & TAPE_ON_DISK ? BYTES : 0;
    return n;
}

TEST(tensors_are_charged_to_the_lines_that_made_them)
{
    begin();
    observe_begin(UINT64_MAX);
    const ad_mark mark = ad_tape_mark(tape);
    const ad_tensor y = ad_sum(tensors(40));
    check_ok(ad_tape_status(tape));
    const struct tape_ledger *ledger = ledger_checked();
    const uint64_t disk = tensors_on_disk();
    ck_assert_uint_gt(disk, 60 * BYTES);
    ck_assert_uint_eq(ledger->disk_bytes, disk);
    ck_assert_uint_eq(ledger->spilled_bytes, disk);
    ck_assert_uint_eq(disk_of(ledger, "tanh") + disk_of(ledger, "exp"), disk);
    ck_assert_uint_ge(disk_of(ledger, "tanh"), 30 * BYTES);
    ck_assert_uint_eq(observe_row(ledger, "tanh")->spilled_bytes, disk_of(ledger, "tanh"));
    ck_assert_uint_le(ledger->memory_peak_bytes, BUDGET);
    ck_assert_uint_gt(ledger->disk_write_ticks, 0);
    ck_assert_uint_eq(ledger->disk_read_ticks, 0);
    check_ok(ad_backward(y));
    ledger = ledger_checked();
    ck_assert_uint_gt(ledger->disk_read_ticks, 0);
    ck_assert_uint_le(ledger->memory_peak_bytes, BUDGET);
    check_ok(ad_tape_rewind(tape, mark));
    ledger = ledger_checked();
    ck_assert_uint_eq(ledger->disk_bytes, 0);
    ck_assert_uint_ge(ledger->spilled_bytes, disk);
    tensors(40);
    check_ok(ad_tape_reset(tape));
    tensors(1);
    ck_assert_uint_le(ledger_checked()->memory_peak_bytes, BUDGET);
    tape_observe_end();
    end();
}

/* Which buffers go does not depend on how far the thread is that writes them. */
TEST(a_slow_thread_changes_no_byte_of_the_account)
{
    uint64_t disk[2], memory_peak[2];
    for (int slow = 0; slow < 2; slow++) {
        ad_tensor h;
        begin();
        observe_begin(UINT64_MAX);
        h = tensors(1);
        for (int k = 0; k < 40; k++) {
            h = ad_exp(ad_tanh(h));
            if (slow)
                usleep(1000); /* then it is the recorder that is slow */
        }
        check_ok(ad_tape_status(tape));
        disk[slow] = ledger_checked()->disk_bytes;
        memory_peak[slow] = ledger_checked()->memory_peak_bytes;
        tape_observe_end();
        if (slow)
            end();
        else
            teardown();
    }
    ck_assert_uint_eq(disk[0], disk[1]);
    ck_assert_uint_eq(memory_peak[0], memory_peak[1]);
}

TEST(what_lay_there_before_the_observation_was_not_written_in_it)
{
    begin();
    ad_tensor y = ad_sum(tensors(40));
    observe_begin(UINT64_MAX);
    y = ad_neg(y);
    const struct tape_ledger *ledger = ledger_checked();
    ck_assert_uint_eq(ledger->disk_bytes, tensors_on_disk());
    ck_assert_uint_gt(disk_of(ledger, "tanh"), 30 * BYTES);
    ck_assert_uint_eq(ledger->spilled_bytes, 0);
    check_ok(ad_backward_release(y));
    ledger = ledger_checked();
    ck_assert_uint_eq(ledger->disk_bytes, 0);
    check_ok(ad_tape_reset(tape));
    ledger_checked();
    tape_observe_end();
    end();
}

/* ---- statements ---- */

static void statements(int n, ad_real *u)
{
    for (int i = 0; i < n; i++) {
        ad_set(&u[i % N], ad_real_sin(u[i % N]));
        ad_set(&u[i % N], ad_real_mul(u[i % N], x[(i + 1) % N]));
    }
}

static void record(void)
{
    static const double start[N] = {0.5, 0.25, 0.75, 0.125};
    check_ok(ad_tape_record_begin(tape));
    check_ok(ad_real_leaves(tape, N, start, x));
}

/* A block's head, and parts of pages at its ends, stay in memory though its lines' bytes are said
 * to be on disk. */
static void check_near(uint64_t bytes, const struct tape_ledger *ledger)
{
    ck_assert_int_eq(tape_disk_writer_wait(tape_observed_now()->disk->writer, 0), 0);
    const int64_t file = unnamed_files_of(folder).allocated;
    ck_assert_uint_eq(ledger->disk_bytes, bytes);
    ck_assert_int_gt((int64_t)bytes, file * 9 / 10);
    ck_assert_int_lt((int64_t)bytes, file * 11 / 10);
}

TEST(statements_are_charged_to_their_lines)
{
    ad_real u[N], v[N];
    double g[N];
    begin();
    observe_begin(UINT64_MAX);
    record();
    memcpy(u, x, sizeof x);
    statements(STEPS, u);
    check_ok(ad_tape_status(tape));
    const struct tape_ledger *ledger = ledger_checked();
    const uint64_t disk = disk_of(ledger, "statement");
    ck_assert_uint_gt(disk, BUDGET);
    check_near(disk, ledger);
    ck_assert_uint_eq(ledger->spilled_bytes, disk);
    const ad_mark mark = ad_tape_mark(tape);
    memcpy(v, u, sizeof u);
    statements(STEPS, v);
    check_ok(ad_real_backward(tape, v[0]));
    check_ok(ad_real_gradients(tape, N, x, g));
    ck_assert_uint_gt(disk_of(ledger_checked(), "statement"), disk + BUDGET);
    check_ok(ad_tape_rewind(tape, mark));
    ledger = ledger_checked();
    ck_assert_uint_eq(ledger->disk_bytes, disk_of(ledger, "statement"));
    ck_assert_uint_gt(ledger->disk_bytes, disk);
    ck_assert_uint_lt(ledger->disk_bytes, disk + BUDGET);
    check_ok(ad_tape_record_end(tape));
    check_ok(ad_tape_reset(tape));
    ck_assert_uint_eq(ledger_checked()->disk_bytes, 0);
    tape_observe_end();
    end();
}

/* Into the middle of what is on disk, with an observation that began later. */
TEST(a_block_that_is_taken_back_is_memory)
{
    ad_real u[N];
    begin();
    record();
    memcpy(u, x, sizeof x);
    statements(STEPS / 2, u);
    const ad_mark mark = ad_tape_mark(tape);
    statements(STEPS, u);
    observe_begin(UINT64_MAX);
    statements(1, u);
    const struct tape_ledger *ledger = ledger_checked();
    const uint64_t disk = disk_of(ledger, "statement");
    check_near(disk, ledger);
    ck_assert_uint_eq(ledger->spilled_bytes, 0);
    check_ok(ad_tape_rewind(tape, mark));
    ledger = ledger_checked();
    ck_assert_uint_eq(ledger->disk_bytes, disk_of(ledger, "statement"));
    ck_assert_uint_lt(ledger->disk_bytes, disk);
    check_ok(ad_tape_record_end(tape));
    tape_observe_end();
    end();
}

/* ---- read ahead ---- */

/* Whether the process has the page in its tables: its file's, once somebody has read it there. */
static bool page_is_there(const char *at)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t entry = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const ssize_t got =
        pread(fd, &entry, sizeof entry, (off_t)((uintptr_t)at / page * sizeof entry));
    close(fd);
    ck_assert_int_eq(got, sizeof entry);
    return entry >> 63;
}

/* This thread does nothing meanwhile: the tape's own has read it. */
static bool page_comes(const char *at)
{
    for (int i = 0; i < 10000; i++) {
        if (page_is_there(at))
            return true;
        usleep(1000);
    }
    return false;
}

enum { LAYERS = 40, OLDER = 3 };

static ad_tensor layer_result[2 * LAYERS];
static const char *layer_place[2 * LAYERS]; /* in the file before the sweep; NULL: not there */
static int layers_seen, layers_missed;

/* In the middle, so that no page is near that is read for another value. */
static const char *middle_of(ad_tensor h)
{
    const struct tape_value *v = &tape_observed_now()->entries[h.value];
    return v->flags & TAPE_ON_DISK ? (const char *)v->array.data + BYTES / 2 : NULL;
}

/* The sweep has come to a result, and stands: what it will read for an older one comes. */
static ad_status layer_waits(const ad_custom_array *adjoint, void *payload)
{
    const int k = (int)((ad_tensor *)payload - layer_result);
    const char *at = k >= OLDER ? layer_place[k - OLDER] : NULL;
    (void)adjoint;
    if (at && layers_missed == 0) {
        layers_seen++;
        layers_missed += !page_comes(at);
    }
    return AD_OK;
}

TEST(a_sweep_has_the_thread_read_what_it_comes_to_later)
{
    begin();
    observe_begin(UINT64_MAX);
    ad_tensor h = tensors(0);
    for (int k = 0; k < 2 * LAYERS; k++) {
        h = layer_result[k] = k % 2 ? ad_exp(h) : ad_tanh(h);
        check_ok(ad_on_adjoint(h, layer_waits, &layer_result[k]));
    }
    h = ad_sum(h);
    check_ok(ad_tape_status(tape));
    ck_assert_int_eq(tape_disk_writer_wait(tape_observed_now()->disk->writer, 0), 0);
    for (int k = 0; k < 2 * LAYERS; k++) {
        layer_place[k] = middle_of(layer_result[k]);
        ck_assert(!layer_place[k] || !page_is_there(layer_place[k]));
    }
    layers_seen = layers_missed = 0;
    check_ok(ad_backward(h));
#ifdef MADV_POPULATE_READ
    ck_assert_int_gt(layers_seen, LAYERS);
    ck_assert_int_eq(layers_missed, 0);
#endif
    tape_observe_end();
    end();
}

TEST(a_sweep_has_the_thread_read_two_blocks_of_statements_ahead)
{
    ad_real u[N];
    begin();
    observe_begin(UINT64_MAX);
    record();
    memcpy(u, x, sizeof x);
    statements(STEPS, u);
    struct tape *t = tape_observed_now();
    const struct tape_disk *d = t->disk;
    int fresh = 0;
    ck_assert_int_eq(tape_disk_writer_wait(d->writer, 0), 0);
    for (uint32_t k = d->n; k > 2; k--) {
        const char *const ahead = d->range[k - 3].at + d->range[k - 3].n / 2;
        fresh += !page_is_there(ahead); /* early blocks are short, and near to others */
        ck_assert(tape_disk_fetch(t, d->range[k - 1].at, (struct tape_site){0, 0}));
#ifdef MADV_POPULATE_READ
        ck_assert(page_comes(ahead));
#endif
    }
    ck_assert_int_gt(fresh, 10);
    check_ok(ad_tape_record_end(tape));
    tape_observe_end();
    end();
}

RUN_TESTS(folder_make, NULL)
