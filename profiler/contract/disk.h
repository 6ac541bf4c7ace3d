/* disk.h: what of a tape may lie in its file (ad_tape_options.spill): the tape writes by it, and
 * the analyser says what could go.
 */
#ifndef PROFILER_CONTRACT_DISK_H
#define PROFILER_CONTRACT_DISK_H

/* A tensor's buffer of at least so many bytes: each that goes is a mapping of the process, of which
 * there may be some ten thousands. */
enum { DISK_TENSOR_LEAST = 64 << 10 };

#endif
