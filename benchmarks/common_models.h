/* common_models.h: the larger computations of common_workloads.h: a recurrent network, attention,
 * a Gaussian process.
 */
#ifndef COMMON_MODELS_H
#define COMMON_MODELS_H

#include "common_workloads.h"

ad_status lstm_create(struct workload *w);
ad_tensor lstm_forward(const struct workload *w);

ad_status attn_create(struct workload *w);
ad_tensor attn_forward(const struct workload *w);

ad_status gp_create(struct workload *w);
ad_tensor gp_forward(const struct workload *w);

#endif
