/* export_classes.h: what the bytes of tapes are for, by call path.
 *
 * Private to profiler/export. Invariant: no two classes have the same node, op and kind; their
 * bytes add up to those of all residuals whose rows are in the tree.
 */
#ifndef PROFILER_EXPORT_CLASSES_H
#define PROFILER_EXPORT_CLASSES_H

#include "export_places.h"

struct export_class {
    uint32_t node; /* of the tree: the line that recorded */
    const char *op;
    enum read_residual_kind kind;
    uint64_t count, bytes, live_bytes;
    uint64_t peak_bytes; /* of the tape with the greatest peak */
    double byte_ns;      /* bytes times ns that they were live */
};

struct export_classes {
    struct export_class *class;
    size_t n;
    const struct read_tape *peak_tape;
    uint32_t *of_peak; /* the class of each residual of that tape, or ANALYZE_NO_NODE */
};

/* Of the tapes of the job. Returns 0, or 1 with a line in job->error: the profile has none. The
 * caller frees it in any case. */
int export_classes_make(struct export_classes *classes, const struct export_job *job);
void export_classes_free(struct export_classes *classes);

/* "saved value: matmul". Returns buf. */
char *export_class_name(char buf[EXPORT_NAME_ROOM], const struct export_class *class);

#endif
