/* disk_folder.h: the folder in which a test's tape has its file, and what is left there. */
#ifndef DISK_FOLDER_H
#define DISK_FOLDER_H

#include "tape_fixture.h"
#include "unnamed_files.h"

#include <sys/resource.h>

static char folder[] = "disk-XXXXXX";

static inline void folder_make(void)
{
    memcpy(folder, "disk-XXXXXX", sizeof folder);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void check_gone(void)
{
    ck_assert_int_eq(unnamed_files_of(folder).n, 0);
    ck_assert_int_eq(folder_entries(folder), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* A tape whose file may have only so many bytes. No assertion in between: Check writes to a file as
 * well. */
static inline void tape_begin_limited(uint64_t budget, rlim_t bytes)
{
    struct rlimit limit, few;
    modules_find();
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    few = limit;
    few.rlim_cur = bytes;
    const int set = setrlimit(RLIMIT_FSIZE, &few);
    const ad_status status =
        ad_tape_create(&tape, &(ad_tape_options){.budget_bytes = budget, .spill = folder});
    const int back = setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert(set == 0 && back == 0 && status == AD_OK);
}

/* The tape's error names the folder, and a line of this file. */
static inline void check_told_at(ad_status status, const char *file)
{
    ck_assert_msg(status == AD_ERROR_FILE && strstr(ad_tape_message(tape), "the tape's file in ") &&
                      strstr(ad_tape_message(tape), folder) && strstr(ad_tape_message(tape), file),
                  "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

#endif
