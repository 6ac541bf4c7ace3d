/* rosenbrock_real.c: that function as statements.
 *
 * Invariant: as in real.h.
 */
#include "real.h"
#include "rosenbrock.h"

ad_real real_rosenbrock(int n, const ad_real *x)
{
    return rosenbrock(n, x);
}
