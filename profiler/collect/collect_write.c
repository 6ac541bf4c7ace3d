/* collect_write.c: packets of profile.proto as frames in a buffer.
 *
 * A buffer holds whole frames at any time: a packet that cannot be added leaves it as it was.
 */
#include "collect.h"

#include "collect_paths.h"
#include "profile.pb-c.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FORMAT_VERSION = 1,
    ROWS_PER_PACKET = 1 << 16, /* some 16 MiB at most, well below PROFILE_MAX_PAYLOAD */
    PATHS_PER_PACKET = 1 << 16,
    ARGUMENT_BYTES = 1 << 20, /* of the command line, what is more is left out */
};

static bool write_reserve(struct collect_buffer *out, size_t more)
{
    if (more <= out->capacity - out->n)
        return true;
    size_t capacity = 2 * out->capacity > out->n + more ? 2 * out->capacity : out->n + more;
    uint8_t *data = realloc(out->data, capacity);
    if (data == NULL)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

bool collect_put_bytes(struct collect_buffer *out, const void *data, size_t n)
{
    if (!write_reserve(out, n))
        return false;
    if (n > 0)
        memcpy(out->data + out->n, data, n);
    out->n += n;
    return true;
}

static bool put_packet(struct collect_buffer *out, const Tapescope__Packet *packet)
{
    size_t n = tapescope__packet__get_packed_size(packet);
    if (n > PROFILE_MAX_PAYLOAD || !write_reserve(out, PROFILE_FRAME_BYTES + n))
        return false;
    uint8_t *head = out->data + out->n;
    tapescope__packet__pack(packet, head + PROFILE_FRAME_BYTES);
    profile_frame_put(head, head + PROFILE_FRAME_BYTES, (uint32_t)n);
    out->n += PROFILE_FRAME_BYTES + n;
    return true;
}

bool collect_put_packet(struct collect_buffer *out, const Tapescope__Packet *packet)
{
    return put_packet(out, packet);
}

struct arguments {
    struct collect_buffer text; /* each ended by a zero byte */
    char **at;
    size_t n;
};

/* The process's arguments, read from the system: a module has no main(). What cannot be read is
 * left out. False: no memory. */
static bool read_arguments(struct arguments *arguments)
{
    struct collect_buffer *text = &arguments->text;
    if (collect_file_read(text, "/proc/self/cmdline", ARGUMENT_BYTES) == ENOMEM)
        return false;
    if (text->n > 0)
        text->data[text->n - 1] = '\0';
    size_t n = 0;
    for (size_t i = 0; i < text->n; i++)
        n += text->data[i] == '\0';
    arguments->at = calloc(n + 1, sizeof *arguments->at);
    if (arguments->at == NULL)
        return false;
    for (size_t i = 0; i < text->n; i += strlen((char *)text->data + i) + 1)
        arguments->at[arguments->n++] = (char *)text->data + i;
    return true;
}

bool collect_put_head(struct collect_buffer *out, const char *library_version, const char *program,
                      const char *clock, const char *options)
{
    char directory[PATH_MAX];
    struct arguments arguments = {0};
    bool ok = read_arguments(&arguments);
    if (getcwd(directory, sizeof directory) == NULL)
        directory[0] = '\0';

    Tapescope__Header header = TAPESCOPE__HEADER__INIT;
    header.version = FORMAT_VERSION;
    header.library_version = (char *)library_version;
    header.program = (char *)program;
    header.n_argument = arguments.n;
    header.argument = arguments.at;
    header.working_directory = directory;
    header.pid = (uint64_t)getpid();
    header.start_unix_ns = collect_time_unix();
    header.clock = (char *)clock;
    header.collector = (char *)"tapescope-collect";
    header.options = (char *)options;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_HEADER;
    packet.header = &header;
    size_t before = out->n;
    ok = ok && collect_put_bytes(out, PROFILE_MAGIC, PROFILE_MAGIC_BYTES) &&
         put_packet(out, &packet);
    if (!ok)
        out->n = before;
    free(arguments.at);
    free(arguments.text.data);
    return ok;
}

bool collect_put_modules(struct collect_buffer *out, const struct collect_modules *modules)
{
    Tapescope__Module *module = calloc(modules->n + 1, sizeof *module);
    Tapescope__Module **list = calloc(modules->n + 1, sizeof *list);
    bool ok = module != NULL && list != NULL;
    for (size_t i = 0; ok && i < modules->n; i++) {
        const struct collect_module *from = &modules->module[i];
        tapescope__module__init(&module[i]);
        module[i].path = from->path;
        module[i].build_id.len = from->n_build_id;
        module[i].build_id.data = (uint8_t *)from->build_id;
        module[i].start = from->start;
        module[i].end = from->end;
        module[i].bias = from->bias;
        list[i] = &module[i];
    }
    if (ok) {
        Tapescope__Modules message = TAPESCOPE__MODULES__INIT;
        message.n_module = modules->n;
        message.module = list;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        packet.kind_case = TAPESCOPE__PACKET__KIND_MODULES;
        packet.modules = &message;
        ok = put_packet(out, &packet);
    }
    free(module);
    free(list);
    return ok;
}

bool collect_put_overhead(struct collect_buffer *out, const struct collect_overhead *from)
{
    if (from->forward_ticks == 0 && from->backward_ticks == 0)
        return true;
    Tapescope__Overhead overhead = TAPESCOPE__OVERHEAD__INIT;
    overhead.forward_ticks = from->forward_ticks;
    overhead.backward_ticks = from->backward_ticks;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_OVERHEAD;
    packet.overhead = &overhead;
    return collect_put_packet(out, &packet);
}

bool collect_put_clock(struct collect_buffer *out, const struct collect_stamp *stamp)
{
    Tapescope__Clock clock = TAPESCOPE__CLOCK__INIT;
    clock.ticks = stamp->ticks;
    clock.monotonic_ns = stamp->monotonic_ns;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_CLOCK;
    packet.clock = &clock;
    return put_packet(out, &packet);
}

/* n paths that the file does not have yet. */
static bool put_path_packet(struct collect_buffer *out, const struct collect_path_map *map,
                            uint32_t n)
{
    Tapescope__Path *path = calloc(n + (size_t)1, sizeof *path);
    Tapescope__Path **list = calloc(n + (size_t)1, sizeof *list);
    bool ok = path != NULL && list != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        struct collect_path from = collect_path_at(map->listed[map->written + i]);
        tapescope__path__init(&path[i]);
        path[i].id = map->written + i + 1;
        path[i].parent = collect_path_map_id(map, from.parent);
        path[i].pc = from.pc;
        path[i].number = map->listed[map->written + i];
        list[i] = &path[i];
    }
    if (ok) {
        Tapescope__Paths message = TAPESCOPE__PATHS__INIT;
        message.n_path = n;
        message.path = list;
        message.refused = map->refused;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        packet.kind_case = TAPESCOPE__PACKET__KIND_PATHS;
        packet.paths = &message;
        ok = collect_put_packet(out, &packet);
    }
    free(path);
    free(list);
    return ok;
}

bool collect_put_paths(struct collect_buffer *out, struct collect_path_map *map,
                       const struct collect_ledger *ledger, bool all)
{
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if ((all || ledger->row[i].changed) && !collect_path_map_add(map, ledger->row[i].path))
            return false;
    return collect_put_new_paths(out, map);
}

bool collect_put_new_paths(struct collect_buffer *out, struct collect_path_map *map)
{
    size_t before = out->n;
    const uint64_t refused = collect_paths_refused() - map->refused_before;
    const uint32_t written = map->written;
    if (map->written == map->n && refused == map->refused)
        return true;
    map->refused = refused;
    do {
        uint32_t n = map->n - map->written;
        n = n < PATHS_PER_PACKET ? n : PATHS_PER_PACKET;
        if (!put_path_packet(out, map, n)) {
            out->n = before;
            map->written = written;
            return false;
        }
        map->written += n;
    } while (map->written < map->n);
    return true;
}

static void fill_row(Tapescope__Row *to, const struct collect_row *from, uint32_t index,
                     const struct collect_path_map *paths)
{
    tapescope__row__init(to);
    to->index = index;
    to->pc = from->pc;
    to->line = from->line;
    to->path = collect_path_map_id(paths, from->path);
    to->op = (char *)from->op;
    to->shape = from->shape ? (char *)from->shape : to->shape;
    to->kept_by = from->kept_by;
    to->kept_others = from->kept_others != 0;
#define X(name) to->name = from->name;
    TAPE_ROW_COUNTERS(X)
#undef X
    to->scope = from->scope;
}

static void fill_totals(Tapescope__Ledger *to, const struct collect_ledger *from)
{
    to->tape = from->tape;
    to->thread = from->thread;
    to->tapes = from->tapes;
    to->ticks = from->ticks;
#define X(name) to->name = from->name;
    TAPE_LEDGER_COUNTERS(X)
#undef X
}

static bool put_rows(struct collect_buffer *out, const struct collect_ledger *ledger,
                     Tapescope__Row **list, size_t n)
{
    Tapescope__Ledger message = TAPESCOPE__LEDGER__INIT;
    fill_totals(&message, ledger);
    message.n_row = n;
    message.row = list;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_LEDGER;
    packet.ledger = &message;
    return put_packet(out, &packet);
}

bool collect_put_ledger(struct collect_buffer *out, const struct collect_ledger *ledger,
                        const struct collect_path_map *paths, bool all)
{
    uint32_t most = ledger->n_rows < ROWS_PER_PACKET ? ledger->n_rows : ROWS_PER_PACKET;
    Tapescope__Row *row = calloc(most + (size_t)1, sizeof *row);
    Tapescope__Row **list = calloc(most + (size_t)1, sizeof *list);
    bool ok = row != NULL && list != NULL;
    size_t before = out->n, n = 0;
    for (uint32_t i = 0; ok && i < ledger->n_rows; i++) {
        if (!all && !ledger->row[i].changed)
            continue;
        if (n == most) {
            ok = put_rows(out, ledger, list, n);
            n = 0;
        }
        fill_row(&row[n], &ledger->row[i], i, paths);
        list[n] = &row[n];
        n++;
    }
    ok = ok && put_rows(out, ledger, list, n);
    if (!ok)
        out->n = before;
    free(row);
    free(list);
    return ok;
}

bool collect_put_final(struct collect_buffer *out, const struct collect_ledger *ledger)
{
    Tapescope__Ledger message = TAPESCOPE__LEDGER__INIT;
    message.tape = ledger->tape;
    message.thread = ledger->thread;
    message.ticks = ledger->ticks;
    message.final = true;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_LEDGER;
    packet.ledger = &message;
    return put_packet(out, &packet);
}

bool collect_put_end(struct collect_buffer *out, uint64_t ticks, const char *reason)
{
    Tapescope__End end = TAPESCOPE__END__INIT;
    end.ticks = ticks;
    end.unix_ns = collect_time_unix();
    end.reason = (char *)reason;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_END;
    packet.end = &end;
    return put_packet(out, &packet);
}
