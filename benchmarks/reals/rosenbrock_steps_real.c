/* rosenbrock_steps_real.c: that function as steps of a program.
 *
 * Invariant: as in real.h.
 */
#define AD_REAL_PROGRAM 1
#include "real.h"
#include "rosenbrock.h"

ad_real real_rosenbrock_steps(int n, const ad_real *x)
{
    return rosenbrock(n, x);
}
