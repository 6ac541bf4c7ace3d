/* check_quietly.h: Check's assertions, in loops of millions as well. run_cases.h includes it.
 */
#ifndef CHECK_QUIETLY_H
#define CHECK_QUIETLY_H

#include <check.h>
#include <math.h>

/* Check tells its parent of each assertion that holds, by a write: in loops of millions that was
 * most of a test's time. Here a place is told of when it is reached first. */
#define _mark_point(file, line)                                                                    \
    __extension__({                                                                                \
        static char marked_;                                                                       \
        if (!__atomic_load_n(&marked_, __ATOMIC_RELAXED)) {                                        \
            __atomic_store_n(&marked_, 1, __ATOMIC_RELAXED);                                       \
            (_mark_point)(file, line);                                                             \
        }                                                                                          \
    })

/* |x - right| < tolerance; false for NaN. */
#define CHECK_NEAR(x, right, tolerance)                                                            \
    do {                                                                                           \
        const double check_x = (x), check_right = (right);                                         \
        ck_assert_msg(fabs(check_x - check_right) < (tolerance), "%.17g, not %.17g", check_x,      \
                      check_right);                                                                \
    } while (0)

#endif
