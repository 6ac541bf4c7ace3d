/* export_classes.c: see export_classes.h. */
#include "export_classes.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_strings.h"
#include "export_formats.h"

#include <stdlib.h>
#include <string.h>

struct classes_writer {
    const struct export_job *job;
    struct export_classes *classes;
    struct base_strings keys; /* their places are those of the classes */
    size_t room;
};

/* The place of a class, which begins empty. */
static uint32_t class_place(struct classes_writer *m, uint32_t node, const char *op,
                            enum read_residual_kind kind)
{
    struct export_classes *classes = m->classes;
    char *key = base_asprintf("%u %d %s", (unsigned)node, (int)kind, op);
    const size_t place = (size_t)base_strings_add(&m->keys, key);
    free(key);
    if (place == classes->n) {
        BASE_ARRAY_GROW(classes->class, classes->n, &m->room);
        classes->class[classes->n++] = (struct export_class){.node = node, .op = op, .kind = kind};
    }
    return (uint32_t)place;
}

/* row_node: of the tape's first row. */
static void add_tape(struct classes_writer *m, const struct read_tape *tape,
                     const uint32_t *row_node)
{
    const bool at_peak = tape == m->classes->peak_tape;
    const double ticks_per_ns = m->job->analysis->profile->ticks_per_ns;
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        const uint32_t node = r->producer > 0 ? row_node[r->producer - 1] : 0;
        const char *op = r->producer > 0 ? tape->row[r->producer - 1].op : "";
        const uint32_t place =
            node != ANALYZE_NO_NODE ? class_place(m, node, op, r->kind) : ANALYZE_NO_NODE;
        if (at_peak)
            m->classes->of_peak[i] = place;
        if (place == ANALYZE_NO_NODE)
            continue;
        struct export_class *class = &m->classes->class[place];
        class->count += r->count;
        class->bytes += r->bytes;
        class->live_bytes += r->live_bytes;
        class->peak_bytes += at_peak ? r->peak_bytes : 0;
        class->byte_ns += r->byte_ticks / ticks_per_ns;
    }
}

int export_classes_make(struct export_classes *classes, const struct export_job *job)
{
    const struct read_profile *profile = job->analysis->profile;
    struct classes_writer m = {.job = job, .classes = classes};
    size_t n = 0;
    *classes = (struct export_classes){.peak_tape = export_peak_tape(profile)};
    for (size_t i = 0; i < profile->n_tapes; i++)
        n += profile->tape[i].n_residuals;
    if (n == 0)
        return export_no_bytes(job);
    classes->of_peak = base_calloc(classes->peak_tape->n_residuals + 1, sizeof *classes->of_peak);
    const uint32_t *row_node = job->tree->row_node;
    for (size_t i = 0; i < profile->n_tapes; i++) {
        add_tape(&m, &profile->tape[i], row_node);
        row_node += profile->tape[i].n_rows;
    }
    base_strings_free(&m.keys);
    return 0;
}

void export_classes_free(struct export_classes *classes)
{
    free(classes->class);
    free(classes->of_peak);
    *classes = (struct export_classes){0};
}

char *export_class_name(char buf[EXPORT_NAME_ROOM], const struct export_class *class)
{
    static const char *const kinds[READ_RESIDUAL_KINDS] = {
        [READ_SAVED] = "saved value", [READ_VALUE] = "value",  [READ_RECORD] = "record",
        [READ_ADJOINT] = "adjoint",   [READ_DISK] = "on disk",
    };
    char text[EXPORT_NAME_ROOM];
    snprintf(text, sizeof text, "%s: %s", kinds[class->kind], class->op);
    return export_clean(buf, text, "");
}
