/* profile_seeds.c: see profile_seeds.h.
 *
 * Between them the seeds have every kind of packet, a kind and a field that no reader knows,
 * numbers of every length, and tapes that live, died, or were merged.
 */
#include "profile_seeds.h"

#include "trace.h"

#include "counters.def"
#include "profile_frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 8 };

static void seed_put_header(struct maker_bytes *seed, const char *clock, size_t n_arguments)
{
    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    char *argument[] = {(char *)"./fit", (char *)"--rate=0.1", (char *)"a\033[31m \xc3\xa9"};
    header.version = 1;
    header.library_version = (char *)"0.1";
    header.program = (char *)"/nowhere/fit";
    header.argument = argument;
    header.n_argument = n_arguments;
    header.working_directory = (char *)"/nowhere";
    header.pid = 4711;
    header.start_unix_ns = 1700000000000000000u;
    header.clock = (char *)(uintptr_t)clock;
    header.collector = (char *)"seed";
    header.options = (char *)"depth=8,time=exact";
    if (n_arguments == 0) {
        header.runs = 2;
        header.ranked = true;
        header.rank = 1;
        header.ranks = 2;
    }
    maker_put(seed, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_HEADER, &header);
}

static void seed_put_overhead(struct maker_bytes *seed, double forward, double backward)
{
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    overhead.forward_ticks = forward;
    overhead.backward_ticks = backward;
    overhead.taken_ticks = 12;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_OVERHEAD, &overhead);
}

static void seed_put_modules(struct maker_bytes *seed, size_t n)
{
    static const char *const path[] = {"/nowhere/fit", "/nowhere/libm.so.6", ""};
    uint8_t id[] = {0xde, 0xad, 0, 0xff};
    Tapescope__Module module[3], *list[3];
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    for (size_t i = 0; i < n; i++) {
        tapescope__module__init(&module[i]);
        module[i].path = (char *)(uintptr_t)path[i];
        module[i].build_id = (ProtobufCBinaryData){i == 1 ? 0 : sizeof id, i == 1 ? NULL : id};
        module[i].start = 0x1000 * (1 + 8 * i);
        module[i].end = module[i].start + 0x8000;
        module[i].bias = i == 0 ? 0 : 0x7f0000000000;
        list[i] = &module[i];
    }
    modules.module = list;
    modules.n_module = n;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_MODULES, &modules);
}

/* Places of two sites, one of them twice, with a text that is no text. */
static void seed_put_symbols(struct maker_bytes *seed)
{
    Tapescope__Symbol symbol[3], *list[3];
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    for (size_t i = 0; i < 3; i++) {
        tapescope__symbol__init(&symbol[i]);
        symbol[i].pc = i == 2 ? UINT64_MAX : 0x2001;
        symbol[i].line = i == 2 ? UINT32_MAX : 41;
        symbol[i].function = (char *)(i == 1 ? "f\xff\033" : "f");
        symbol[i].file = (char *)(i == 2 ? "" : "/nowhere/a.c");
        symbol[i].module = (char *)"/bin/a";
        symbol[i].source_line = 7;
        symbol[i].function_line = 5;
        symbol[i].depth = (uint32_t)i;
        symbol[i].outermost = i > 0;
        symbol[i].wrapped = i == 2;
        symbol[i].offset = 1u << 20;
        list[i] = &symbol[i];
    }
    symbols.symbol = list;
    symbols.n_symbol = 3;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
}

/* n scopes from number `first` on, with keys and without, whose parent comes before it, or after
 * it, or is not there; expectations of all kinds, of scopes that are there or not. */
static void seed_put_scopes(struct maker_bytes *seed, uint32_t first, size_t n)
{
    static const char *const name[] = {"train", "", "a/b, \"c\"\n"};
    Tapescope__ScopeKey key = TAPESCOPE__SCOPE_KEY__INIT, *keys[2] = {&key, &key};
    Tapescope__Scope scope[MOST_ROWS], *list[MOST_ROWS];
    Tapescope__Expectation expectation[3], *expectations[3];
    Tapescope__Steps steps = TAPESCOPE__STEPS__INIT;
    Tapescope__Scopes scopes = TAPESCOPE__SCOPES__INIT;
    key.key = (char *)"index";
    key.value = -7;
    for (size_t i = 0; i < n; i++) {
        tapescope__scope__init(&scope[i]);
        scope[i].id = first + (uint32_t)i;
        scope[i].parent = i == 4 ? 1000 : i == 2 ? first + 3 : (uint32_t)i;
        scope[i].thread = i / 2;
        scope[i].name = (char *)(uintptr_t)name[i % 3];
        scope[i].key = keys;
        scope[i].n_key = i % 3;
        scope[i].calls = 3 * i;
        scope[i].recorded_calls = i;
        scope[i].open_calls = i / 3;
        scope[i].ticks = 1000 * i;
        scope[i].sweep_ticks = 300 * i;
        scope[i].overhead_ticks = 20 * i;
        scope[i].records = 5 * i;
        list[i] = &scope[i];
    }
    for (uint32_t i = 0; i < 3; i++) {
        tapescope__expectation__init(&expectation[i]);
        expectation[i].id = i + 1;
        expectation[i].kind = i;
        expectation[i].pc = 0x2001 + 0x100 * i;
        expectation[i].line = 40 + i;
        expectation[i].scope = i == 1 ? 0 : first + 50 * i;
        expectation[i].bound = i == 0 ? 2.5 : 1e6;
        expectation[i].times = 4;
        expectations[i] = &expectation[i];
    }
    steps.first = 3;
    steps.last = UINT64_MAX;
    steps.seen = 5;
    steps.by_call = n > 3;
    scopes.scope = list;
    scopes.n_scope = n;
    scopes.expectation = expectations;
    scopes.n_expectation = 3;
    scopes.lost = 1;
    scopes.steps = &steps;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_SCOPES, &scopes);
}

/* n messages, of two calls, and meetings of clocks. */
static void seed_put_messages(struct maker_bytes *seed, bool again, size_t n)
{
    enum { MOST = 64 };
    Tapescope__Messages messages = TAPESCOPE__MESSAGES__INIT;
    Tapescope__MessageCall call[2], *calls[2] = {&call[0], &call[1]};
    Tapescope__Meeting meeting = TAPESCOPE__MEETING__INIT, *meetings[1] = {&meeting};
    uint32_t of[MOST];
    int64_t start[MOST];
    uint64_t column[MOST];
    for (uint32_t i = 0; i < 2; i++) {
        tapescope__message_call__init(&call[i]);
        call[i].kind = 3 * i;
        call[i].backward = i > 0;
        call[i].pc = 0x2001 + i;
        call[i].line = 40 + i;
        call[i].op = (char *)(i > 0 ? "mpi_send" : "mpi_allreduce");
        call[i].communicator = 1;
        call[i].ranks = 4;
        call[i].root = call[i].to = i > 0 ? 2 : -1;
        call[i].from = -1;
        call[i].to_tag = call[i].from_tag = 7;
    }
    for (size_t i = 0; i < n && i < MOST; i++) {
        of[i] = (uint32_t)i % 2;
        start[i] = 100 - (int64_t)i;
        column[i] = 10 * (uint64_t)i;
    }
    meeting.own = 1000;
    meeting.theirs = 2000;
    meeting.width = 30;
    messages.call = calls;
    messages.n_call = 2;
    messages.n_message_call = messages.n_message_start = messages.n_message_ticks =
        messages.n_message_number = messages.n_message_bytes = n < MOST ? n : MOST;
    messages.message_call = of;
    messages.message_start = start;
    messages.message_ticks = messages.message_number = messages.message_bytes = column;
    messages.meeting = meetings;
    messages.n_meeting = 1;
    messages.left_out = n;
    messages.again = again;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_MESSAGES, &messages);
}

/* n patterns from id `first` on: of a Jacobian whose cells have several values, without colours; of
 * a coloured Hessian that is smaller than a picture may be; of a kind that no reader knows; of
 * nothing. */
static void seed_put_patterns(struct maker_bytes *seed, uint32_t first, size_t n)
{
    static const uint64_t rows[] = {1000, 3, 3, 0}, columns[] = {2, 3, 3, 7};
    static uint64_t cell[64 * 2];
    Tapescope__Pattern pattern[4], *list[4];
    Tapescope__Patterns patterns = TAPESCOPE__PATTERNS__INIT;
    for (size_t i = 0; i < sizeof cell / sizeof *cell; i++)
        cell[i] = i % 3 ? 0 : 1 + i % 15;
    for (size_t i = 0; i < n; i++) {
        Tapescope__Pattern *p = list[i] = &pattern[i];
        tapescope__pattern__init(p);
        p->id = first + (uint32_t)i;
        p->kind = (uint32_t)i % 3;
        p->pc = 0x2001 + 0x100 * i;
        p->line = 40 + (uint32_t)i;
        p->rows = rows[i];
        p->columns = columns[i];
        p->coloured = i == 1;
        p->colours = i == 1 ? 2 : 0;
        p->calls = 3 + i;
        p->cell = cell;
        p->n_cell = i == 0 ? sizeof cell / sizeof *cell : (size_t)(rows[i] * columns[i]);
        for (size_t k = 0; k < p->n_cell; k++)
            p->values += cell[k];
    }
    patterns.pattern = list;
    patterns.n_pattern = n;
    patterns.left_out = n;
    patterns.again = first > 1;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_PATTERNS, &patterns);
}

/* n events of the sites of scopes and ops, whose starts go back and forth. */
static void seed_put_events(struct maker_bytes *seed, size_t n, uint32_t n_sites)
{
    Tapescope__EventSite site[MOST_ROWS], *sites[MOST_ROWS];
    Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
    uint32_t place[MOST_ROWS];
    int64_t start[MOST_ROWS], record[MOST_ROWS];
    uint64_t ticks[MOST_ROWS];
    for (uint32_t i = 0; i < n_sites; i++) {
        tapescope__event_site__init(&site[i]);
        site[i].kind = i; /* the last is none that is known */
        site[i].thread = 4711;
        site[i].process = i % 2 ? 4710 : 0;
        site[i].tape = i;
        site[i].pc = 0x2001;
        site[i].line = 41;
        site[i].op = (char *)"matmul";
        site[i].scope = i;
        site[i].process = i % 3;
        site[i].path = i % 2 ? i + 1 : UINT32_MAX;
        site[i].again = i % 2 == 0;
        site[i].part = i % 3 == 0;
        sites[i] = &site[i];
    }
    for (size_t i = 0; i < n; i++) {
        place[i] = n_sites > 0 ? (uint32_t)i % n_sites : 0;
        start[i] = i % 2 ? -100 : INT64_MAX / 2;
        record[i] = i % 3 ? 5 : -5;
        ticks[i] = i * UINT64_C(1000000007);
    }
    timeline.site = sites;
    timeline.n_site = n_sites;
    timeline.event_site = place;
    timeline.event_start = start;
    timeline.event_record = record;
    timeline.event_ticks = ticks;
    timeline.n_event_site = timeline.n_event_start = timeline.n_event_record =
        timeline.n_event_ticks = n;
    timeline.left_out = n;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_TIMELINE, &timeline);
}

static void seed_put_end(struct maker_bytes *seed)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    end.ticks = 2000;
    end.unix_ns = 1700000000000001000u;
    end.reason = (char *)"stop";
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_END, &end);
}

/* A tape with n rows from index `first` on, whose counters are multiples of unit. */
static void seed_put_tape(struct maker_bytes *seed, uint64_t tape, uint32_t first, size_t n,
                          uint64_t unit)
{
    static const char *const op[] = {"padding", "matmul", "tanh", "add", "sum", "", "exp", "log"};
    Tapescope__Row row[MOST_ROWS], *list[MOST_ROWS];
    Tapescope__Ledger ledger = TAPESCOPE__LEDGER__INIT;
    for (size_t i = 0; i < n; i++) {
        uint64_t k = (i + 1) * unit;
        tapescope__row__init(&row[i]);
        row[i].index = first + (uint32_t)i;
        row[i].pc = i == 0 && first == 0 ? 0 : 0x2001 + 0x100 * i;
        row[i].line = i == 0 ? 0 : (uint32_t)(40 + i);
        row[i].op = (char *)(uintptr_t)op[(first + i) % 8];
        row[i].kept_by = i == 3 ? 1000 : (uint32_t)i; /* the fourth's keeper is in no packet */
        row[i].kept_others = i % 2 == 1;
        row[i].scope = (uint32_t)i;
        row[i].shape = (char *)(uintptr_t)(i % 3 == 2 ? "f64[3] of [3,4], [4]" : "");
        row[i].thread = tape == 0 ? 7 + i % 3 : 0;
        row[i].path = tape % 2 == 0 ? first + (uint32_t)i : 0;
#define X(name) row[i].name = k; /* where nothing more is said below */
        ROW_COUNTERS(X)
#undef X
        row[i].forward_ticks = 3 * k;
        row[i].backward_calls = i == 2 ? 0 : k;
        row[i].backward_ticks = 5 * k;
        row[i].recompute_calls = i == 1 ? k : 0;
        row[i].recompute_ticks = i == 1 ? 2 * k : 0;
        row[i].forward_flops = 7 * k;
        row[i].backward_flops = 14 * k;
        row[i].recompute_flops = i == 1 ? 7 * k : 0;
        row[i].forward_moved = 24 * k;
        row[i].recompute_moved = i == 1 ? 24 * k : 0;
        row[i].backward_moved = 40 * k;
        row[i].record_bytes = 48 * k;
        row[i].value_bytes = 64 * k;
        row[i].adjoint_bytes = 64 * k;
        row[i].kept_bytes = 32 * k;
        row[i].live_bytes = i == 1 ? 64 * k : 0;
        row[i].peak_bytes = 64 * k;
        row[i].spilled_bytes = i == 1 && n <= 3 ? 16 * k : 0;
        ledger.spilled_bytes += row[i].spilled_bytes;
        ledger.forward_ticks += row[i].forward_ticks;
        ledger.backward_ticks += row[i].backward_ticks;
        ledger.recompute_ticks += row[i].recompute_ticks;
        ledger.handed_out_bytes += 176 * k;
        ledger.live_bytes += row[i].live_bytes;
        ledger.peak_bytes += row[i].peak_bytes;
        list[i] = &row[i];
    }
    ledger.tape = tape;
    ledger.thread = tape == 0 ? 0 : 4711;
    ledger.row = list;
    ledger.n_row = n;
    ledger.peak_count = 1;
    ledger.reserved_bytes = 1u << 30;
    ledger.touched_bytes = 1u << 16;
    ledger.sweeps = unit;
    ledger.records = n * unit;
    ledger.ticks = 1500;
    if (ledger.spilled_bytes > 0) {
        ledger.disk_bytes = tape == 0 ? 0 : 16;
        ledger.memory_peak_bytes = 100;
        ledger.disk_write_ticks = 3;
        ledger.disk_read_ticks = 2;
    }
    ledger.tapes = tape == 0 ? unit : 0;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_LEDGER, &ledger);
}

/* A trace with entries of all kinds: two iterations of an op, a view, what they release, statements
 * newest first, and a fused loop. */
#define ENTRY(kind, n) ((uint32_t)TRACE_##kind | (uint32_t)(n) << TRACE_KIND_BITS)
static uint32_t seed_trace[] = {
    ENTRY(VALUE, 8),
    0,
    1,
    1,
    72,
    16,
    0,
    1,
    ENTRY(VALUE, 8),
    0,
    2,
    2,
    72,
    16,
    16,
    0,
    ENTRY(BYTES, 3),
    0,
    32,
    ENTRY(RECORD, 7),
    0,
    40,
    1,
    1,
    2,
    1 | TRACE_READS,
    ENTRY(VALUE, 8),
    0,
    3,
    2,
    72,
    0,
    16,
    0,
    ENTRY(VALUE, 8),
    0,
    4,
    4,
    72,
    16,
    16,
    0,
    ENTRY(RECORD, 7),
    0,
    40,
    1,
    1,
    4,
    3 | TRACE_READS,
    ENTRY(RELEASE, 3),
    0,
    2,
    ENTRY(STATEMENT, 6),
    1,
    12,
    28,
    11,
    10,
    ENTRY(STATEMENT, 5),
    1,
    11,
    16,
    10,
    ENTRY(FUSED_LOOP, 7),
    1,
    64,
    13,
    3,
    11,
    2,
    ENTRY(SWEEP, 2),
    0,
    ENTRY(VALUE, 8),
    0,
    5,
    5,
    72,
    16,
    16,
    0,
    ENTRY(USE, 4),
    0,
    4,
    5,
    ENTRY(REWIND, 3),
    0,
    5,
};
#undef ENTRY

/* Two classes of the rows from `first` on, and how they changed; then what was live. */
static void seed_put_residuals(struct maker_bytes *seed, uint64_t tape, uint32_t first,
                               uint64_t unit)
{
    Tapescope__ResidualClass class_[2], *list[2] = {&class_[0], &class_[1]};
    uint32_t part[] = {0, 1, 0, 9}, flags[] = {0, 1, 3, 3}, phase[] = {0, 1};
    int64_t delta[] = {64, 128, -64, -128};
    uint64_t ticks[] = {1100, 5, 20, 0}, most[] = {192 * unit, 128}, least[] = {0, 64};
    Tapescope__Stretch stretch = TAPESCOPE__STRETCH__INIT;
    Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
    Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
    for (uint32_t i = 0; i < 2; i++) {
        tapescope__residual_class__init(list[i]);
        class_[i].index = i;
        class_[i].producer = first + i;
        class_[i].consumer = i == 0 ? 0 : first + 2;
        class_[i].kind = i == 0 ? 2 : 0;
        class_[i].shared = i == 1;
        class_[i].released_by = i;
        class_[i].count = unit;
        class_[i].bytes = 64 * unit;
        class_[i].live_bytes = 64;
        class_[i].peak_bytes = 128 * unit;
        class_[i].largest_bytes = 64;
        class_[i].read_bytes = 64;
        class_[i].first_ticks = 1100;
        class_[i].released_others = i == 0;
        class_[i].read_live_bytes = 32;
        class_[i].last_ticks = 1900;
        class_[i].by_call = 1;
        class_[i].by_sweep = 2;
        class_[i].by_frame = 3;
        class_[i].by_rewind = 4;
        class_[i].by_reset = 64 * (unit - 1);
        class_[i].by_destroy = 5;
        class_[i].byte_ticks = 1e3 * (double)unit;
    }
    residuals.tape = timeline.tape = tape;
    residuals.part = list;
    residuals.n_part = 2;
    stretch.part = part;
    stretch.flags = flags;
    stretch.delta = delta;
    stretch.ticks = ticks;
    stretch.n_part = stretch.n_flags = stretch.n_delta = stretch.n_ticks = 4;
    stretch.merged = 1;
    stretch.truncated = tape == 0;
    stretch.trace = seed_trace;
    stretch.n_trace = sizeof seed_trace / sizeof *seed_trace;
    stretch.trace_cut = stretch.trace_hides = tape == 0;
    stretch.trace_uses = tape != 0;
    residuals.stretch = &stretch;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_RESIDUALS, &residuals);
    timeline.ticks = ticks;
    timeline.most_bytes = most;
    timeline.least_bytes = least;
    timeline.phase = phase;
    timeline.n_ticks = timeline.n_most_bytes = timeline.n_least_bytes = timeline.n_phase = 2;
    timeline.peak_ticks = 1105;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_TIMELINE, &timeline);
}

/* Call paths, one behind frames that were cut off, one whose parent is in no packet, one that
 * refers to a later one, and one that is there twice. */
static void seed_put_paths(struct maker_bytes *seed, uint32_t first)
{
    static const struct {
        uint32_t id, parent;
        uint64_t pc;
    } from[] = {{1, 0, 0x2401}, {2, 1, 0x2101},  {3, 0, 0},      {4, 3, 0x2201},
                {5, 6, 0x2301}, {6, 99, 0x2301}, {6, 1, 0x2301}, {8, 7, UINT64_MAX}};
    enum { PATHS = sizeof from / sizeof *from };
    Tapescope__Path path[PATHS], *list[PATHS];
    Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
    for (int i = 0; i < PATHS; i++) {
        tapescope__path__init(&path[i]);
        path[i].id = first + from[i].id;
        path[i].parent = from[i].parent ? first + from[i].parent : 0;
        path[i].pc = from[i].pc;
        path[i].number = first + (uint32_t)i / 2; /* two have the same; 0: none */
        list[i] = &path[i];
    }
    paths.path = list;
    paths.n_path = PATHS;
    paths.refused = first;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_PATHS, &paths);
}

static void seed_put_final(struct maker_bytes *seed, uint64_t tape)
{
    Tapescope__Ledger ledger = TAPESCOPE__LEDGER__INIT;
    ledger.tape = tape;
    ledger.final = true;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_LEDGER, &ledger);
}

/* A packet of a kind that a later writer may add: field 1000, four bytes. */
static void seed_put_unknown(struct maker_bytes *seed)
{
    static const uint8_t payload[] = {0xc2, 0x3e, 4, 'n', 'e', 'w', '!'};
    maker_put_frame(seed, payload, sizeof payload);
}

struct threads {
    Tapescope__Threads all;
    Tapescope__Thread thread[2], *list[2];
};

static Tapescope__Threads *make_threads(struct threads *to, uint64_t unit)
{
    tapescope__threads__init(&to->all);
    for (uint32_t i = 0; i < 2; i++) {
        Tapescope__Thread *thread = to->list[i] = &to->thread[i];
        *thread = (Tapescope__Thread)TAPESCOPE__THREAD__INIT;
        thread->index = i;
        thread->tid = i == 0 ? 0 : 4711;
        thread->name = (char *)(i == 0 ? "others" : "fit \033[31m");
        thread->recorded = 6 * unit;
        thread->partial = i == 0 ? unit : 0;
        thread->lost = thread->outside = 2;
        thread->fired = thread->recorded + thread->partial + 4;
        thread->wall_ns = 40000000 * unit;
        thread->cpu_ns = 30000000 * unit;
    }
    to->all.thread = to->list;
    to->all.n_thread = 2;
    to->all.process_cpu_ns = 61000000 * unit;
    return &to->all;
}

/* Samples from index `first` on, of two threads: one in every phase, and one more outside. */
static void seed_put_samples(struct maker_bytes *seed, uint32_t first, uint64_t unit, uint64_t all)
{
    struct threads threads;
    static const char *const op[] = {"", "matmul", "statement", "tanh", ""};
    static uint64_t stack[] = {0x2104, 0x2201, 0x7f0000012345};
    Tapescope__Sample sample[5], *list[5];
    Tapescope__Samples samples = TAPESCOPE__SAMPLES__INIT;
    for (uint32_t i = 0; i < 5; i++) {
        tapescope__sample__init(&sample[i]);
        sample[i].index = first + i;
        sample[i].thread = i % 2;
        sample[i].phase = i % 4;
        sample[i].pc = i % 4 == 0 ? 0 : 0x2001 + 0x100 * (uint64_t)i;
        sample[i].line = i == 1 ? 41 : 0;
        sample[i].path = i % 4 == 0 ? 0 : first + i;
        sample[i].op = (char *)(uintptr_t)op[i];
        sample[i].shared = i == 3;
        sample[i].waiting = i == 4 ? 9 : i;
        sample[i].stack = stack;
        sample[i].n_stack = i == 0 ? 3 : i == 4;
        sample[i].count = (i + 1) * unit;
        sample[i].partial = i == 4 ? unit : 0;
        sample[i].working = (i + 1) * unit;
        sample[i].wall_ns = 4000000 * (i + 1) * unit;
        sample[i].cpu_ns = 3000000 * (i + 1) * unit;
        list[i] = &sample[i];
    }
    samples.period_ns = 4000000;
    samples.sample = list;
    samples.n_sample = 5;
    samples.threads = all > 0 ? make_threads(&threads, all) : NULL;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_SAMPLES, &samples);
}

static void seed_put_threads(struct maker_bytes *seed, uint64_t unit)
{
    struct threads threads;
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_THREADS, make_threads(&threads, unit));
}

/* Pieces of profiles that a sum keeps. */
static void seed_put_part(struct maker_bytes *seed, uint32_t place, size_t n)
{
    Tapescope__Part part = TAPESCOPE__PART__INIT;
    part.place = place;
    part.piece = (ProtobufCBinaryData){.data = (uint8_t *)"TAPESCP1", .len = n};
    maker_put_packet(seed, TAPESCOPE__PACKET__KIND_PART, &part);
}

static void put_body(unsigned number, struct maker_bytes *seed)
{
    switch (number) {
    case 0: /* a program that used no tape, but messages */
        seed_put_header(seed, "tsc", 0);
        seed_put_messages(seed, false, 8);
        seed_put_messages(seed, true, 5);
        seed_put_part(seed, 0, 8);
        seed_put_part(seed, 0, 0);
        seed_put_part(seed, 1, 3);
        break;
    case 1: /* one tape, calibrated */
        seed_put_header(seed, "tsc", 1);
        seed_put_modules(seed, 1);
        seed_put_overhead(seed, 2.5, 3);
        maker_put_clock(seed, 1000, 500);
        seed_put_scopes(seed, 1, 5);
        seed_put_tape(seed, 1, 0, 3, 2);
        seed_put_residuals(seed, 1, 0, 2);
        seed_put_scopes(seed, 3, 4);
        seed_put_patterns(seed, 1, 4);
        seed_put_symbols(seed);
        seed_put_events(seed, 8, 5);
        maker_put_clock(seed, 2000, 900);
        break;
    case 2: /* two tapes over three modules */
        seed_put_header(seed, "monotonic", 3);
        seed_put_modules(seed, 3);
        seed_put_overhead(seed, (double)NAN, -1e300);
        maker_put_clock(seed, 5, 5);
        seed_put_paths(seed, 0);
        seed_put_tape(seed, 1, 0, 5, 1);
        seed_put_tape(seed, 2, 1, 4, 1000);
        seed_put_patterns(seed, 1, 3);
        seed_put_patterns(seed, 2, 2);
        seed_put_paths(seed, 2);
        seed_put_events(seed, 6, 4);
        break;
    case 3: /* later packets of a row replace earlier ones */
        seed_put_header(seed, "step:1000", 2);
        seed_put_tape(seed, 1, 0, 2, 1);
        seed_put_tape(seed, 1, 1, 2, 2);
        seed_put_tape(seed, 1, 0, 3, 3);
        seed_put_threads(seed, 1);
        seed_put_samples(seed, 0, 1, 0);
        seed_put_samples(seed, 3, 2, 3);
        break;
    case 4: /* a tape that died and was merged, one that lives */
        seed_put_header(seed, "tsc", 1);
        maker_put_clock(seed, 1, 1);
        seed_put_tape(seed, 1, 0, 2, 4);
        seed_put_tape(seed, 2, 0, 2, 1);
        seed_put_residuals(seed, 2, 0, 1);
        seed_put_final(seed, 1);
        seed_put_tape(seed, 0, 0, 2, 6);
        seed_put_residuals(seed, 0, 0, 3);
        break;
    case 5: /* the greatest numbers that fit without the sums running over */
        seed_put_header(seed, "tsc", 1);
        maker_put_clock(seed, 1, 1);
        seed_put_tape(seed, UINT64_MAX, UINT32_MAX - 2, 2, UINT64_MAX / 4096);
        seed_put_residuals(seed, UINT64_MAX, UINT32_MAX - 2, UINT64_MAX / 4096);
        maker_put_clock(seed, UINT64_MAX, UINT64_MAX);
        break;
    case 6: /* packets that a later version may write, modules again */
        seed_put_header(seed, "tsc", 0);
        seed_put_unknown(seed);
        seed_put_modules(seed, 1);
        seed_put_modules(seed, 2);
        seed_put_tape(seed, 7, 0, 8, 3);
        seed_put_unknown(seed);
        break;
    case 7: /* many short-lived tapes */
        seed_put_header(seed, "monotonic", 1);
        for (uint64_t tape = 1; tape <= 5; tape++) {
            seed_put_tape(seed, tape, 0, 1, tape);
            seed_put_final(seed, tape);
        }
        seed_put_tape(seed, 0, 0, 1, 9);
        break;
    case 8: /* no end: killed between a tape's last packet and its merge */
        seed_put_header(seed, "tsc", 1);
        seed_put_modules(seed, 1);
        seed_put_tape(seed, 1, 0, 3, 2);
        seed_put_final(seed, 1);
        break;
    default: /* no end: killed at work, the clock read once */
        seed_put_header(seed, "tsc", 1);
        seed_put_paths(seed, UINT32_MAX - 8);
        maker_put_clock(seed, 1000, 500);
        seed_put_scopes(seed, 0, 3);
        seed_put_events(seed, 3, 1);
        seed_put_tape(seed, 0, 0, 2, 2);
        seed_put_tape(seed, 3, 0, 4, 1);
        seed_put_threads(seed, 1);
        seed_put_samples(seed, UINT32_MAX - 4, 1, 0);
        break;
    }
    if (number < PROFILE_SEEDS_COMPLETE)
        seed_put_end(seed);
}

void profile_seed_make(unsigned number, struct maker_bytes *seed)
{
    memset(seed, 0, sizeof *seed);
    put_body(number, seed);
    if (seed->n > PROFILE_SEED_BYTES) {
        fprintf(stderr, "profile_seeds: number %u is too large\n", number);
        abort();
    }
}

void profile_seed_repair(uint8_t *data, size_t n)
{
    if (n < PROFILE_MAGIC_BYTES)
        return;
    memcpy(data, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    for (size_t at = PROFILE_MAGIC_BYTES; n - at > PROFILE_FRAME_BYTES;) {
        uint32_t length, crc;
        size_t left = n - at - PROFILE_FRAME_BYTES;
        if (!profile_frame_get(data + at, &length, &crc) || length > left)
            length = left < PROFILE_MAX_PAYLOAD ? (uint32_t)left : PROFILE_MAX_PAYLOAD;
        profile_frame_put(data + at, data + at + PROFILE_FRAME_BYTES, length);
        at += PROFILE_FRAME_BYTES + length;
    }
}
