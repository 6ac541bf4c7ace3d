/* ad_profile.h: taking a profile from within the program. Part of <tapescope/ad.h>.
 *
 * A profile is of the process: one is taken at a time, of all tapes of all threads. Any thread may
 * call these; a failure never changes a result. `tapescope record` does the same from outside.
 */
#ifndef TAPESCOPE_AD_PROFILE_H
#define TAPESCOPE_AD_PROFILE_H

#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the options of later calls of ad_profile_start, in the form of ad_profile_start_with. NULL:
 * those of the environment's TAPESCOPE_OPTIONS again. Begins no profile. AD_ERROR_ARGUMENT: as
 * there; the former options stay. */
AD_API ad_status ad_profile_init(const char *options);
/* Begins to measure; the profile is written to path as it goes (NULL: "tapescope.prof"), or to
 * path.RANK in a process that is one of several ranks of MPI. Returns
 * AD_ERROR_PROFILE with the reason in the thread's error, AD_ERROR_STATE if a profile is being
 * taken. */
AD_API ad_status ad_profile_start(const char *path);
/* The same with these options: "name=value" with commas between, such as "depth=32,time=exact".
 * NULL or "": as ad_profile_start, which takes them from the environment's TAPESCOPE_OPTIONS.
 * docs/reference/commands.md lists them (record). AD_ERROR_ARGUMENT: an option that is unknown or
 * whose value is not one of its own; nothing begins then. */
AD_API ad_status ad_profile_start_with(const char *path, const char *options);
/* Ends the measurement and completes the file. */
AD_API ad_status ad_profile_stop(void);
/* Drops what was measured so far, and empties the file; the measurement goes on as if it began
 * here. What is on a tape counts as handed out at this moment. AD_ERROR_STATE: no profile is being
 * taken; AD_ERROR_PROFILE: it cannot begin again, and has ended. */
AD_API ad_status ad_profile_clear(void);
/* What was measured so far as a complete profile in memory, *bytes long, for the caller to free();
 * the measurement goes on. The bytes are those of a file of ad_profile_write. */
AD_API ad_status ad_profile_fetch(void **data, size_t *bytes);
/* Writes what was measured so far as a complete profile to another file, named as that of
 * ad_profile_start is; the measurement goes on. */
AD_API ad_status ad_profile_write(const char *path);

/* A step of the computation (an iteration of training, a solution) ends here, in any thread: with
 * the option steps=A:B, or `tapescope record --steps A:B`, steps A to B alone are measured, counted
 * from 0. In a program that never calls it, each sweep that ends well is a step. */
AD_API void ad_profile_step(void);

#ifdef __cplusplus
}
#endif

#include <tapescope/ad_scope.h>

#endif
