/* tape_fixture.h: the tape of a test's case, and what is asked of it: for tests with one tape.
 *
 * Invariant: one test file includes it once; its setup makes the tape.
 */
#ifndef TAPE_FIXTURE_H
#define TAPE_FIXTURE_H

#include "check_quietly.h"

#include <tapescope/ad.h>

#include <stdlib.h>
#include <string.h>

static ad_tape tape;

/* Messages find the source's lines by a module that lies with the library under test. */
static inline void modules_find(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
}

/* A new tape, or with NULL one by default. */
static inline void tape_begin(const ad_tape_options *options)
{
    modules_find();
    ck_assert_int_eq(ad_tape_create(&tape, options), AD_OK);
}

static inline void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* The same where a case leaves no error. */
static inline void teardown_fine(void)
{
    ck_assert_msg(ad_tape_status(tape) == AD_OK, "%s", ad_tape_message(tape));
    teardown();
}

static inline ad_stats stats(void)
{
    ad_stats s;
    ck_assert_int_eq(ad_tape_stats(tape, &s), AD_OK);
    return s;
}

static inline void check_ok(ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
}

/* The tape, or a thread's own error, has this status and a message with these words, which is
 * cleared. */
static inline void check_error_of(ad_tape where, ad_status status, const char *words)
{
    ck_assert_msg(ad_tape_status(where) == status && strstr(ad_tape_message(where), words),
                  "%s: %s", ad_status_name(ad_tape_status(where)), ad_tape_message(where));
    ad_tape_clear_error(where);
}

static inline void check_error(ad_status status, const char *words)
{
    check_error_of(tape, status, words);
}

/* A call that returned `status` was refused with this code, and a message with these words. */
static inline void check_call_refused(ad_status status, ad_status code, const char *words)
{
    ck_assert_int_eq(status, code);
    check_error(code, words);
}

/* The same, and the message names the file `named`. */
static inline void check_error_in(ad_tape where, ad_status status, const char *words,
                                  const char *named)
{
    ck_assert_msg(strstr(ad_tape_message(where), named) != NULL, "%s", ad_tape_message(where));
    check_error_of(where, status, words);
}

#endif
