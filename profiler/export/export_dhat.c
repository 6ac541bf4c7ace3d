/* export_dhat.c: bytes of tapes and how long they lived, for valgrind's dh_view.html: a program
 * point for each call path, op and purpose.
 *
 * The format: version 2 of DHAT's output, as valgrind's dh_view.js reads it.
 */
#include "base_json.h"
#include "base_number.h"
#include "base_strings.h"
#include "export_classes.h"
#include "export_formats.h"

/* Of all blocks, those that hold this part of the bytes. */
static uint64_t dhat_part_of(uint64_t count, uint64_t bytes, uint64_t of)
{
    return of > 0 ? read_whole((double)count * ((double)bytes / (double)of)) : 0;
}

static void put_point(struct base_json *json, const struct export_job *job,
                      const struct export_places *places, const struct export_class *class,
                      size_t name)
{
    const uint64_t at_end = dhat_part_of(class->count, class->live_bytes, class->bytes);
    const uint64_t at_peak = dhat_part_of(class->count, class->peak_bytes, class->bytes);
    const double lifetime = class->bytes > 0 ? class->byte_ns / (double)class->bytes : 0;
    base_json_object(json, NULL);
    base_json_u64(json, "tb", class->bytes);
    base_json_u64(json, "tbk", class->count);
    base_json_u64(json, "tl", read_whole(lifetime * (double)class->count));
    base_json_u64(json, "mb", base_greater(class->peak_bytes, class->live_bytes));
    base_json_u64(json, "mbk", base_greater(at_peak, at_end));
    base_json_u64(json, "gb", class->peak_bytes);
    base_json_u64(json, "gbk", at_peak);
    base_json_u64(json, "eb", class->live_bytes);
    base_json_u64(json, "ebk", at_end);
    base_json_array(json, "fs");
    base_json_u64(json, NULL, name);
    for (uint32_t at = class->node; at != 0 && at != ANALYZE_NO_NODE;
         at = job->tree->node[at].parent)
        base_json_u64(json, NULL, places->of_node[at] + UINT64_C(1));
    base_json_end(json);
    base_json_end(json);
}

/* Number 0 is the root, then places, then what bytes are for, each name once. */
static void dhat_put_frames(struct base_json *json, const struct export_job *job,
                            const struct export_places *places, const struct base_strings *names)
{
    char name[EXPORT_NAME_ROOM], file[EXPORT_NAME_ROOM], text[2 * EXPORT_NAME_ROOM + 64];
    base_json_array(json, "ftbl");
    base_json_text(json, NULL, "[root]");
    for (size_t i = 0; i < places->n; i++) {
        const struct analyze_tree_node *node = &job->tree->node[places->node[i]];
        snprintf(text, sizeof text, "0x%zX: %s (%s:%u)", i, export_function(name, node),
                 *export_file(file, node) ? file : "?", (unsigned)node->line.line);
        base_json_text(json, NULL, text);
    }
    for (size_t i = 0; i < names->n; i++) {
        snprintf(text, sizeof text, "0x%zX: %s", places->n + i, names->text[i]);
        base_json_text(json, NULL, text);
    }
    base_json_end(json);
}

static void dhat_put_all(const struct export_job *job, const struct export_places *places,
                         const struct export_classes *classes, struct base_strings *names)
{
    struct base_json json;
    char name[EXPORT_NAME_ROOM];
    const struct read_profile *profile = job->analysis->profile;
    const uint64_t at_peak = read_profile_since(profile, classes->peak_tape->peak_ticks);
    base_json_begin(&json, job->out);
    base_json_u64(&json, "dhatFileVersion", 2);
    base_json_text(&json, "mode", "tape");
    base_json_text(&json, "verb", "Allocated");
    base_json_bool(&json, "bklt", true); /* blocks have lifetimes */
    base_json_bool(&json, "bkacc", false);
    base_json_text(&json, "tu", "ns");
    base_json_text(&json, "Mtu", "ms");
    base_json_u64(&json, "tuth", 1000); /* what lives shorter is marked */
    base_json_text(&json, "cmd", export_clean(name, profile->program, ""));
    base_json_u64(&json, "pid", profile->pid);
    base_json_u64(&json, "te", base_greater(profile->duration_ns, at_peak));
    base_json_u64(&json, "tg", at_peak);
    base_json_array(&json, "pps");
    for (size_t i = 0; i < classes->n; i++)
        if (classes->class[i].bytes > 0)
            put_point(
                &json, job, places, &classes->class[i],
                1 + places->n +
                    (size_t)base_strings_add(names, export_class_name(name, &classes->class[i])));
    base_json_end(&json);
    dhat_put_frames(&json, job, places, names);
    base_json_finish(&json);
}

int export_dhat(const struct export_job *job)
{
    struct export_places places = {0};
    struct export_classes classes;
    struct base_strings names = {0};
    const int status = export_classes_make(&classes, job);
    export_places_make(&places, job->tree);
    if (status == 0)
        dhat_put_all(job, &places, &classes, &names);
    base_strings_free(&names);
    export_places_free(&places);
    export_classes_free(&classes);
    return status;
}
