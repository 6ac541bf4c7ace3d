/* export_formats.h: the writers of all formats.
 *
 * Private to profiler/export.
 */
#ifndef PROFILER_EXPORT_FORMATS_H
#define PROFILER_EXPORT_FORMATS_H

#include "export.h"

/* The tape with the greatest peak, or NULL. */
const struct read_tape *export_peak_tape(const struct read_profile *profile);
/* Says in job->error that no bytes over time were recorded, and returns 1. */
int export_no_bytes(const struct export_job *job);

#define ROW(X, name, ...) int export_##name(const struct export_job *job);
EXPORT_FORMATS(ROW, )
#undef ROW

#endif
