/* check_quietly.h: an assertion for what runs a million times.
 *
 * Each of Check's own assertions writes to a file when it holds, so that a crash can be placed;
 * that takes most of the time of a test that compares element by element.
 */
#ifndef CHECK_QUIETLY_H
#define CHECK_QUIETLY_H

#include <check.h>
#include <math.h>

#define CHECK_QUIETLY(condition, ...)                                                              \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

/* |x - right| < tolerance; false for NaN. */
#define CHECK_NEAR(x, right, tolerance)                                                            \
    do {                                                                                           \
        const double check_x = (x), check_right = (right);                                         \
        CHECK_QUIETLY(fabs(check_x - check_right) < (tolerance), "%.17g, not %.17g", check_x,      \
                      check_right);                                                                \
    } while (0)

#endif
