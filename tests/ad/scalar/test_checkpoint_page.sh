#!/bin/sh
# What docs/how-to/checkpoint.md shows first, of loops whose steps decide when they end, and of states on
# disk, compiled and run; what it shows of steps is that of the example, see test_examples.sh.
set -eu
cd "$(mktemp -d "$TEST_BINARY_DIR/checkpoint page XXXXXX")"
trap 'rm -rf "$PWD"' EXIT

# shown HEADING WHAT: the code below a heading: functions, or what is called, which is indented.
shown() {
    awk -v heading="$1" -v calls="$2" '
        /^#+ / { on = $0 == heading }
        on && /^```/ { code = !code; next }
        on && code && /^[a-z]/ { inside = 1 }
        on && code && (calls ? !inside : inside) { print }
        on && code && /^}/ { inside = 0 }' "$TAPESCOPE_SOURCE_DIR/docs/how-to/checkpoint.md"
}
{
    printf '#include <math.h>\n#include <stdio.h>\n#include <tapescope/ad.h>\n#include <tapescope/ad_real.h>\n'
    shown "### Until a step is the last" ""
    shown "# Checkpoints: less memory for more time" ""
    printf 'static ad_status blocks(ad_tape tape, struct block *part, ad_tensor h)\n{\n'
    shown "# Checkpoints: less memory for more time" 1
    cat <<'PROGRAM'
    return status;
}

static bool cell(ad_tape tape, int64_t i, int n_in, const ad_tensor *in, int n_out,
                 ad_tensor *out, void *payload)
{
    (void)tape, (void)i, (void)n_in, (void)n_out;
    out[0] = ad_tanh(ad_add(in[0], in[1]));
    out[1] = ad_mul(in[1], *(ad_tensor *)payload);
    return true;
}

static ad_tensor weights; /* a sweep reads it again */

static ad_status on_disk(ad_tape tape, ad_tensor *hc)
{
PROGRAM
    shown "### States on disk" 1 | sed 's|"/scratch"|"."|; s/100000/100/'
    cat <<'PROGRAM'
    return ad_tape_status(tape);
}

int main(void)
{
    ad_tape tape;
    ad_real u[2], leaf[2], direct;
    double g[2], h[2];
    int64_t steps = 0;
    if (ad_tape_create(&tape, NULL) != AD_OK ||
        ad_real_leaves(tape, 2, (double[]){0.5, 0.9}, leaf) != AD_OK)
        return 1;
    u[0] = leaf[0], u[1] = leaf[1];
PROGRAM
    shown "### Until a step is the last" 1
    cat <<'PROGRAM'
    if (ad_real_backward(tape, u[0]) != AD_OK || ad_real_gradients(tape, 2, leaf, g) != AD_OK)
        return 1;
    ad_tape_zero_gradients(tape);
    direct = leaf[0];
    for (int64_t i = 0; i < steps; i++)
        ad_set(&direct, ad_real_cos(ad_real_mul(direct, leaf[1])));
    if (ad_real_backward(tape, direct) != AD_OK || ad_real_gradients(tape, 2, leaf, h) != AD_OK)
        return 1;
    printf("%d %d %d\n", steps > 10, g[0] == h[0] && g[1] == h[1], direct.value == u[0].value);
    ad_tape_reset(tape);
    weights = ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, (double[]){0.5});
    ad_tensor hc[2] = {ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, (double[]){0.1}),
                       ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, (double[]){0.2})};
    printf("%d\n", on_disk(tape, hc) == AD_OK && ad_backward(ad_sum(hc[0])) == AD_OK);
    ad_tape_reset(tape);
    ad_tensor in = ad_leaf(tape, AD_F64, 2, (int64_t[]){1, 1}, (double[]){0.5});
    struct block part[16];
    for (int s = 0; s < 16; s++)
        part[s] = (struct block){in, ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, (double[]){0.1}), 2};
    printf("%d\n", blocks(tape, part, in) == AD_OK);
    return ad_tape_destroy(tape) != AD_OK;
}
PROGRAM
} >page.c
CPATH=$TAPESCOPE_INCLUDE_DIRS
export CPATH
# shellcheck disable=SC2086 # a list of options
"$TEST_C_COMPILER" -std=gnu11 -g -Wall -Wextra -Werror $TEST_SANITIZE_FLAGS page.c -o page \
    -L"$TAPESCOPE_LIB_DIR" -Wl,-rpath,"$TAPESCOPE_LIB_DIR" -ltapescope -lm
printed=$(./page | tr '\n' ' ')
[ "$printed" = "1 1 1 1 1 " ] || { echo "it prints: $printed"; exit 1; }
echo "1 passed, 0 failed"
