/* test_debug.c: breaks and the callback of records: at which records they come, forward and
 * backward, what a callback sees and may not do, and that neither changes a number.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 3, LOG = 64 };

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define HERE(...) (line = __LINE__, __VA_ARGS__)

static const double data[N] = {1, -2, 3};
static unsigned line;
static volatile sig_atomic_t traps;
static char said[LOG][256]; /* by the log */
static int n_said;

static void on_trap(int number)
{
    (void)number;
    traps++;
}

static void hear(ad_log_level level, const char *message, void *payload)
{
    (void)payload;
    ck_assert_int_eq(level, AD_LOG_INFO);
    ck_assert_int_lt(n_said, LOG);
    snprintf(said[n_said++], sizeof *said, "%s", message);
}

static void setup(void)
{
    tape_begin(NULL);
    traps = n_said = 0;
    signal(SIGTRAP, on_trap);
    ad_on_log(hear, NULL);
}

static void end(void)
{
    ad_on_log(NULL, NULL);
    signal(SIGTRAP, SIG_DFL);
    teardown_fine();
}

static ad_tensor leaf(void)
{
    return ad_leaf(tape, AD_F64, 1, SHAPE(N), data);
}

/* So many stops since the last call, the last of them with these words at `line`. */
static void check_stops(int n, const char *words, unsigned at)
{
    char expected[256];
    snprintf(expected, sizeof expected, "break: %s at test_debug.c:%u in ", words, at);
    ck_assert_int_eq(traps, n);
    ck_assert_int_eq(n_said, n);
    if (n > 0)
        ck_assert_msg(strncmp(said[n - 1], expected, strlen(expected)) == 0, "%s, not %s",
                      said[n - 1], expected);
    traps = n_said = 0;
}

static void check_when(const char *when)
{
    const char *comma = strrchr(said[0], ',');
    ck_assert_msg(comma && strcmp(comma + 2, when) == 0, "%s", said[0]);
}

TEST(an_op_stops_at_each_of_its_records_in_the_direction_that_is_asked_for)
{
    const ad_tensor x = leaf();
    ad_tensor h, y;
    ck_assert_int_eq(ad_break_on_op(tape, "tanh", AD_BREAK_FORWARD), AD_OK);
    HERE(h = ad_tanh(x));
    const unsigned of_tanh = line;
    check_when("forward");
    check_stops(1, "tanh", of_tanh);
    ad_tanh(ad_detach(x)); /* no record */
    y = ad_sum(ad_exp(h));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_stops(0, "", 0);
    ck_assert_int_eq(ad_break_on_op(tape, "tanh", AD_BREAK_BACKWARD), AD_OK); /* in place of it */
    ad_tanh(x); /* nothing depends on it, so no adjoint comes to it */
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_when("backward");
    check_stops(1, "tanh", of_tanh);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK); /* it stays */
    HERE(y = ad_sum(ad_tanh(leaf())));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_stops(1, "tanh", line);
    ck_assert_int_eq(ad_break_on_op(tape, "tanh", AD_BREAK_OFF), AD_OK);
    ck_assert_int_eq(ad_break_on_op(tape, "tanh", AD_BREAK_OFF), AD_OK); /* there is none */
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_tanh(leaf()))), AD_OK);
    check_stops(0, "", 0);
}

enum { AT = __LINE__ + 3 };
static ad_tensor sin_and(ad_tensor h, ad_tensor one)
{
    return ad_add(ad_sin(h), one);
}

TEST(a_line_stops_whatever_it_records_and_no_other)
{
    const ad_tensor x = leaf();
    ck_assert_int_eq(ad_break_on_line(tape, "folders/test_debug.c", AT, AD_BREAK_BOTH), AD_OK);
    ck_assert_int_eq(ad_break_on_line(tape, "test_debug.d", AT, AD_BREAK_BOTH), AD_OK);
    ad_tensor h = x, y;
    for (int i = 0; i < 4; i++) {
        const ad_tensor one = ad_scale(h, 0.5);
        ck_assert_int_eq(traps, 2 * i);
        h = sin_and(h, one);
        y = ad_sum(h);
    }
    check_when("forward");
    check_stops(8, "add", AT);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_when("backward");
    check_stops(8, "sin", AT);
}

TEST(statements_and_fused_loops_stop_as_ops_do)
{
    ad_real x[N], y, z;
    double g[N], same[N];
    ck_assert_int_eq(ad_real_leaves(tape, N, data, x), AD_OK);
    for (int on = 0; on < 2; on++) {
        const ad_mark mark = ad_tape_mark(tape);
        if (on)
            ck_assert_int_eq(ad_break_on_op(tape, "dot", AD_BREAK_BOTH), AD_OK);
        ad_set(&z, ad_real_exp(x[2])); /* nothing depends on it */
        HERE(ad_set(&y, ad_real_mul(x[0], x[1])));
        ad_set(&y, ad_real_add(y, ad_real_dot(N, x, x)));
        const unsigned of_dot = line + 1;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, N, x, on ? same : g), AD_OK);
        check_stops(2 * on, "dot", of_dot);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    ck_assert_mem_eq(g, same, sizeof g);
    ck_assert_int_eq(ad_break_on_op(tape, "dot", AD_BREAK_OFF), AD_OK);
    ck_assert_int_eq(ad_break_on_line(tape, "test_debug.c", __LINE__ + 2, AD_BREAK_BOTH), AD_OK);
    for (int i = 0; i < 5; i++) {
        HERE(ad_set(&y, ad_real_mul(x[0], i)));
        ad_set(&z, ad_real_sin(y));
    }
    check_when("forward");
    check_stops(5, "statement", line);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK); /* of five statements one has an adjoint */
    check_when("backward");
    check_stops(1, "statement", line);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_int_eq(ad_break_on_op(tape, "statement", AD_BREAK_BOTH), AD_OK);
    ad_set(&z, ad_real_sin(x[0]));
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    check_stops(0, "", 0);
}

TEST(the_first_nan_stops_with_the_message_of_its_error)
{
    ad_real x, y;
    const double zero = 0;
    ck_assert_int_eq(ad_break_on_nan(tape, AD_BREAK_FORWARD), AD_OK);
    const ad_tensor v = leaf();
    HERE(ad_sqrt(v));
    check_stops(1, "sqrt: value nan of element [1]", line);
    check_error(AD_ERROR_NONFINITE, "sqrt: value nan");
    ad_scale(ad_reciprocal(ad_leaf(tape, AD_F64, 0, NULL, &zero)), 2); /* inf is none */
    ck_assert_int_eq(ad_real_leaves(tape, 1, &zero, &x), AD_OK);
    HERE(ad_set(&y, ad_real_log(ad_real_sub(x, 1))));
    check_stops(1, "statement: value nan", line);
    check_error(AD_ERROR_NONFINITE, "statement: value nan");
    /* Backward it is an error alone, unless that is asked for. */
    for (int when = AD_BREAK_FORWARD; when <= AD_BREAK_BACKWARD; when++) {
        ad_tensor a = ad_leaf(tape, AD_F64, 1, SHAPE(1), &zero), b;
        ck_assert_int_eq(ad_break_on_nan(tape, when), AD_OK);
        HERE(b = ad_sqrt(a));
        b = ad_sum(ad_mul(b, a)); /* its pullback at b has the adjoint 0: 0 / 0 */
        ck_assert_int_eq(ad_backward(b), AD_ERROR_NONFINITE);
        check_stops(when == AD_BREAK_BACKWARD,
                    "sqrt: adjoint nan of element [0] of operand 1 (x), backward,", line);
        check_error(AD_ERROR_NONFINITE, "sqrt: adjoint nan");
    }
    ck_assert_int_eq(ad_break_on_nan(tape, AD_BREAK_OFF), AD_OK);
    ad_sqrt(v);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_NAN), AD_OK); /* which is another matter */
    ck_assert_int_eq(ad_break_on_nan(tape, AD_BREAK_OFF), AD_OK);
    ad_sqrt(v);
    check_stops(0, "", 0);
    check_error(AD_ERROR_NONFINITE, "sqrt: value nan");
    ck_assert_int_eq(ad_break_on_nan(tape, AD_BREAK_BOTH), AD_OK);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_OFF), AD_OK);
    HERE(ad_sqrt(v));
    check_stops(1, "sqrt: value nan of element [1]", line);
    check_error(AD_ERROR_NONFINITE, "sqrt: value nan");
}

/* ---- the callback ---- */

struct told {
    int n;
    char op[LOG][32], where[LOG][64];
    int n_in[LOG], n_out[LOG];
    int64_t n_numbers[LOG], size[LOG];
    double first[LOG]; /* of the results: an element, or a number */
    uint32_t index[LOG];
    ad_tensor result[LOG];
    ad_status (*meddle)(void);
};

static void tell(const ad_recorded *r, void *payload)
{
    struct told *s = payload;
    ck_assert_int_lt(s->n, LOG);
    snprintf(s->op[s->n], sizeof *s->op, "%s", r->op);
    snprintf(s->where[s->n], sizeof *s->where, "%s", r->where);
    s->n_in[s->n] = r->n_in;
    s->n_out[s->n] = r->n_out;
    s->n_numbers[s->n] = r->n_numbers;
    s->index[s->n] = r->index;
    s->first[s->n] = r->n_out > 0 && r->out[0].data ? *(double *)r->out[0].data : r->value;
    s->size[s->n] = r->n_out > 0 ? r->out[0].size : 0;
    if (r->n_out > 0)
        s->result[s->n] = r->result[0];
    s->n++;
    if (s->meddle) {
        ck_assert_int_eq(s->meddle(), AD_ERROR_STATE);
        ck_assert_msg(strstr(ad_tape_message((ad_tape){0}), "while a callback") != NULL, "%s",
                      ad_tape_message((ad_tape){0}));
        ad_tape_clear_error((ad_tape){0});
    }
}

static void check_told(const struct told *s, int i, const char *op, unsigned at)
{
    char place[64];
    snprintf(place, sizeof place, "test_debug.c:%u in ", at);
    ck_assert_int_lt(i, s->n);
    ck_assert_str_eq(s->op[i], op);
    ck_assert_msg(strncmp(s->where[i], place, strlen(place)) == 0, "%s, not %s", s->where[i],
                  place);
}

TEST(a_callback_is_told_of_records_alone_with_their_shapes_values_and_handles)
{
    static struct told s;
    double value[N];
    const ad_tensor x = leaf(), c = ad_constant(tape, AD_F64, 1, SHAPE(N), data);
    memset(&s, 0, sizeof s);
    ck_assert_int_eq(ad_on_record(tape, tell, &s), AD_OK);
    ad_tensor h, y;
    ad_exp(c);
    HERE(h = ad_mul(x, c));
    y = ad_sum(h);
    ck_assert_int_eq(ad_backward(y), AD_OK); /* is none */
    ck_assert_int_eq(s.n, 2);
    check_told(&s, 0, "mul", line);
    check_told(&s, 1, "sum", line + 1);
    ck_assert_int_eq(s.n_in[0], 2);
    ck_assert_int_eq(s.n_out[0], 1);
    ck_assert_int_eq(s.size[0], N);
    ck_assert_double_eq(s.first[0], data[0] * data[0]);
    ck_assert_double_eq(s.first[1], 14);
    ck_assert_int_eq(ad_value(s.result[0], value, N), AD_OK); /* for later */
    ck_assert_double_eq(value[1], 4);
    ck_assert_mem_eq(&s.result[1], &y, sizeof y);
    ck_assert_int_eq(ad_on_record(tape, NULL, NULL), AD_OK);
    ad_exp(x);
    ck_assert_int_eq(s.n, 2);
}

static void square_part(ad_tape t, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                        void *payload)
{
    (void)t;
    (void)n_in;
    (void)n_out;
    (void)payload;
    ad_set(&out[0], ad_real_mul(in[0], in[0]));
}

TEST(numbers_are_told_with_their_index_and_value)
{
    static struct told s;
    ad_real x[N], y, z;
    ad_tensor t;
    ad_status status;
    memset(&s, 0, sizeof s);
    ck_assert_int_eq(ad_on_record(tape, tell, &s), AD_OK);
    HERE(status = ad_real_leaves(tape, N, data, x));
    ck_assert_int_eq(status, AD_OK);
    check_told(&s, 0, "leaves", line);
    ck_assert_int_eq(s.n_numbers[0], N);
    ck_assert_uint_eq(s.index[0], x[0].index);
    HERE(ad_set(&y, ad_real_mul(x[0], x[1])));
    check_told(&s, 1, "statement", line);
    ck_assert_int_eq(s.n_numbers[1], 1);
    ck_assert_uint_eq(s.index[1], y.index);
    ck_assert_double_eq(s.first[1], y.value);
    HERE(y = ad_real_sum(N, x));
    check_told(&s, 2, "sum", line);
    ck_assert_uint_eq(s.index[2], y.index);
    ck_assert_double_eq(s.first[2], 2);
    HERE(t = ad_tensor_of_reals(tape, 1, SHAPE(N), x));
    check_told(&s, 3, "tensor_of_reals", line);
    ck_assert_int_eq(s.size[3], N);
    HERE(status = ad_reals_of_tensor(t, N, x));
    ck_assert_int_eq(status, AD_OK);
    check_told(&s, 4, "reals_of_tensor", line);
    ck_assert_uint_eq(s.index[4], x[0].index);
    s.n = 0;
    HERE(status = ad_real_checkpoint(tape, square_part, NULL, 1, x, 1, &z));
    ck_assert_int_eq(status, AD_OK);
    check_told(&s, s.n - 1, "real_checkpoint", line);
    ck_assert_uint_eq(s.index[s.n - 1], z.index);
    ck_assert_double_eq(s.first[s.n - 1], 1);
    ck_assert_int_eq(ad_on_record(tape, NULL, NULL), AD_OK);
}

static void tanh_part(ad_tape t, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                      void *payload)
{
    (void)t;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = ad_tanh(in[0]);
}

static ad_status twice(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->out[0].data)[i] = 2 * ((const double *)c->in[0].data)[i];
    return AD_OK;
}

static ad_status twice_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < c->in[0].size; i++)
        ((double *)c->in_adjoint[0].data)[i] += 2 * ((const double *)c->out_adjoint[0].data)[i];
    return AD_OK;
}

TEST(checkpoints_are_told_of_and_what_sweeps_record_again_and_rules_by_their_names)
{
    static const ad_custom_rule rule = {
        .name = "twice", .forward = twice, .pullback = twice_pullback, .own_bytes = 8};
    static struct told s;
    const ad_tensor x = leaf();
    ad_tensor h, y;
    ad_status status;
    memset(&s, 0, sizeof s);
    ck_assert_int_eq(ad_on_record(tape, tell, &s), AD_OK);
    HERE(status = ad_checkpoint(tape, tanh_part, NULL, 1, &x, 1, &h));
    ck_assert_int_eq(status, AD_OK);
    ck_assert_int_eq(s.n, 1);
    check_told(&s, 0, "checkpoint", line);
    ck_assert_double_eq(s.first[0], tanh(1));
    HERE(status = ad_custom(tape, &rule, NULL, 1, &h, 1, &y));
    ck_assert_int_eq(status, AD_OK);
    check_told(&s, 1, "twice", line);
    ck_assert_int_eq(s.n_out[1], 1); /* its own bytes are none of the user's */
    ck_assert_double_eq(s.first[1], 2 * tanh(1));
    y = ad_sum(y);
    ck_assert_int_eq(ad_break_on_op(tape, "twice", AD_BREAK_BACKWARD), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    check_stops(1, "twice", line);
    ck_assert_int_eq(s.n, 4);
    ck_assert_str_eq(s.op[3], "tanh");
}

static ad_tensor held;
static ad_status meddle_op(void)
{
    ad_tensor y = ad_exp(held);
    return y.value ? AD_OK : ad_tape_status((ad_tape){0});
}

static ad_status meddle_sweep(void)
{
    return ad_backward(held);
}

static ad_status meddle_reset(void)
{
    return ad_tape_reset(tape);
}

static ad_status meddle_off(void)
{
    return ad_on_record(tape, NULL, NULL);
}

TEST(a_callback_cannot_use_the_tape_and_leaves_it_as_it_was)
{
    static struct told s;
    ad_status (*const meddles[])(void) = {meddle_op, meddle_sweep, meddle_reset, meddle_off};
    double g[N], same[N];
    const ad_tensor x = held = leaf();
    const ad_tensor y = ad_sum(ad_exp(x));
    ck_assert_int_eq(ad_backward(y), AD_OK);
    ck_assert_int_eq(ad_gradient(x, g, N), AD_OK);
    memset(&s, 0, sizeof s);
    ck_assert_int_eq(ad_on_record(tape, tell, &s), AD_OK);
    for (size_t i = 0; i < sizeof meddles / sizeof *meddles; i++) {
        s.meddle = meddles[i];
        ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
        const ad_stats before = stats();
        const ad_tensor z = ad_sum(ad_exp(x));
        ck_assert_uint_eq(stats().records, before.records + 2);
        ck_assert_int_eq(ad_backward(z), AD_OK);
        ck_assert_int_eq(ad_gradient(x, same, N), AD_OK);
        ck_assert_mem_eq(g, same, sizeof g);
    }
    ck_assert_int_eq(s.n, 8);
}

static ad_real number;

static void record_number(const ad_recorded *r, void *payload)
{
    ad_real *y = payload;
    (void)r;
    ad_set(y, ad_real_mul(number, 2));
}

TEST(a_statement_in_a_callback_is_an_error_of_its_tape)
{
    ad_real y, z;
    ck_assert_int_eq(ad_real_leaves(tape, 1, data, &number), AD_OK);
    const ad_tensor x = leaf();
    ck_assert_int_eq(ad_on_record(tape, record_number, &z), AD_OK);
    ad_set(&y, ad_real_sin(number));
    check_error(AD_ERROR_STATE, "statement: recorded by a callback, while the tape calls it");
    ad_exp(x);
    check_error(AD_ERROR_STATE, "statement: recorded by a callback, while the tape calls it");
    ck_assert_int_eq(ad_on_record(tape, NULL, NULL), AD_OK);
    ad_set(&y, ad_real_sin(number));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, number), cos(1));
}

TEST(forks_stop_and_tell_as_their_parent)
{
    static struct told s;
    ad_tape child[2];
    ad_real x, y[2], sum;
    memset(&s, 0, sizeof s);
    ck_assert_int_eq(ad_real_leaves(tape, 1, data, &x), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    ck_assert_int_eq(ad_on_record(tape, tell, &s), AD_OK);
    ck_assert_int_eq(ad_break_on_op(tape, "statement", AD_BREAK_FORWARD), AD_OK);
    ck_assert_int_eq(ad_tape_fork(tape, 2, child), AD_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ad_tape_record_begin(child[i]), AD_OK);
        HERE(ad_set(&y[i], ad_real_mul(x, i + 2)));
        ck_assert_int_eq(ad_tape_record_end(child[i]), AD_OK);
    }
    ck_assert_int_eq(s.n, 2);
    check_told(&s, 1, "statement", line);
    check_stops(2, "statement", line);
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(ad_tape_join(tape, child[i], 1, &y[i]), AD_OK);
    check_told(&s, 3, "join", __LINE__ - 1);
    ad_set(&sum, ad_real_add(y[0], y[1]));
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    ck_assert_double_eq(ad_real_gradient(tape, x), 5);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
}

/* ---- the recording as text ---- */

/* What ad_tape_print writes, without the folders and functions of places. */
static const char *printed(int64_t most)
{
    static char text[1 << 14];
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_int_eq(ad_tape_print(file, tape, most), AD_OK);
    fclose(file);
    for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
        ck_assert_msg(end - at <= 80, "%s", at);
    return text;
}

static void check_printed(const char *text, const char *format, unsigned at)
{
    char expected[1024];
    snprintf(expected, sizeof expected, format, at);
    ck_assert_msg(strstr(text, expected) != NULL, "%s\nlacks\n%s", text, expected);
}

/* What ad_tape_write_graph writes, without places and with records numbered in their order. */
static const char *drawn(int64_t most)
{
    static char text[1 << 14], plain[1 << 14];
    char known[64][16];
    int n = 0;
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_int_eq(ad_tape_write_graph(file, tape, most), AD_OK);
    fclose(file);
    char *to = plain;
    for (const char *at = text; *at;) {
        const size_t place =
            strncmp(at, "\\n/", 3) == 0 || strncmp(at, "\\ntest", 6) == 0 ? strcspn(at, "\"") : 0;
        size_t digits = 0;
        if (*at == 'r' && at[-1] == ' ')
            digits = strspn(at + 1, "0123456789");
        if (digits > 0) {
            int k = 0;
            while (k < n && (strlen(known[k]) != digits || memcmp(known[k], at + 1, digits) != 0))
                k++;
            if (k == n)
                snprintf(known[n++], sizeof *known, "%.*s", (int)digits, at + 1);
            to += sprintf(to, "r%d", k);
            at += 1 + digits;
        } else if (place > 0) {
            at += place;
        } else {
            *to++ = *at++;
        }
    }
    *to = 0;
    return plain;
}

TEST(a_recording_is_drawn_as_a_graph)
{
    const double weights[N] = {1, 2, 3};
    ad_real x[2], y;
    const ad_tensor c = ad_constant(tape, AD_F64, 2, SHAPE(2, N), (double[]){1, 2, 3, 4, 5, 6});
    const ad_tensor w = ad_leaf(tape, AD_F64, 2, SHAPE(N, 1), weights);
    ck_assert_str_eq(drawn(0), "digraph tape {\n  rankdir=BT;\n  node [fontname=monospace];\n}\n");
    const ad_tensor h = ad_tanh(ad_matmul(c, w));
    ck_assert_str_eq(drawn(0), "digraph tape {\n  rankdir=BT;\n  node [fontname=monospace];\n"
                               "  r0 [label=\"tanh\\nv4 f64 [2,1]\"];\n"
                               "  r1 -> r0;\n"
                               "  r1 [label=\"matmul\\nv3 f64 [2,1]\"];\n"
                               "  v1 [shape=box, label=\"constant\\nv1 f64 [2,3]\"];\n"
                               "  v1 -> r1 [color=grey] [penwidth=2];\n"
                               "  v2 [shape=box, label=\"leaf\\nv2 f64 [3,1]\"];\n"
                               "  v2 -> r1;\n"
                               "}\n");
    ck_assert_int_eq(ad_tape_record_begin(tape), AD_OK);
    ck_assert_int_eq(ad_reals_of_tensor(h, 2, x), AD_OK);
    ad_set(&y, ad_real_mul(x[0], x[1]));
    const char *text = drawn(0);
    check_printed(text, "  r0 [shape=note, label=\"numbers 3 to 3\"];\n", 0);
    check_printed(text, "  r1 -> r0 [style=dashed];\n", 0);
    check_printed(text, "  r2 -> r1", 0);
    text = drawn(1);
    check_printed(text, "label=\"2 records more\"", 0);
    check_printed(text, "[label=\"matmul", 0);
    ck_assert_ptr_null(strstr(text, "tanh"));
    char *all = strdup(drawn(0));
    ck_assert_str_eq(drawn(2), all); /* they are all */
    free(all);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK);
    (void)y;
}

TEST(a_recording_is_printed_with_its_pullbacks_by_line)
{
    const double weights[N] = {1, 2, 3};
    ad_real x[20], y, z;
    const ad_tensor c = ad_constant(tape, AD_F64, 2, SHAPE(2, N), (double[]){1, 2, 3, 4, 5, 6});
    const ad_tensor w = ad_leaf(tape, AD_F64, 2, SHAPE(N, 1), weights);
    ck_assert_str_eq(printed(0), "2 values, 0 records, 0 statements\n");
    ad_tensor h, t;
    HERE(h = ad_tanh(ad_matmul(c, w)));
    const char *text = printed(0);
    check_printed(text, "test_debug.c:%u in ", line);
    check_printed(text,
                  "\n  v3 = matmul(v1, v2) f64 [2,1]         -> v2; 48 bytes, 12 flops\n"
                  "                                           reads v1\n"
                  "  v4 = tanh(v3) f64 [2,1]               -> v3; 16 bytes, ",
                  0);
    check_printed(text, " flops\n                                           reads its result\n", 0);
    HERE(t = ad_concat((ad_tensor[]){h, h, h, h, h}, 5, 0));
    check_printed(printed(0),
                  "  v5 = concat(v4, v4, v4, ... of 5) f64 [10,1]\n"
                  "    -> v4, v4, v4, ... of 5; 0 bytes, ",
                  0);
    ck_assert_int_eq(ad_real_leaves(tape, 20, (double[20]){1, 2}, x), AD_OK);
    y = x[0];
    for (int i = 0; i < 4; i++) {
        HERE(ad_set(&z, ad_real_mul(y, x[1])));
        ad_set(&y, ad_real_add(z, x[0]));
    }
    text = printed(0);
    ck_assert_ptr_nonnull(strstr(text, "values, 5 records, 8 statements\n"));
    check_printed(text, "test_debug.c:%u in ", line);
    check_printed(text,
                  "  statement x 4: numbers 21 to 27       -> 8 operands; 112 bytes, - flops\n", 0);
    check_printed(text, "test_debug.c:%u in ", line + 1);
    check_printed(text,
                  "  statement x 4: numbers 22 to 28       -> 8 operands; 48 bytes, - flops\n", 0);
    HERE(y = ad_real_dot(20, x, x));
    text = printed(0);
    check_printed(text, "test_debug.c:%u in ", line);
    check_printed(text, "  dot x 1: numbers 29 to 29             -> 2 operands; ", 0);
    text = printed(1); /* the first and the last of six */
    check_printed(text, "  v3 = matmul", 0);
    check_printed(text, "... 4 records more ...\n", 0);
    check_printed(text, "  dot x 1", 0);
    ck_assert_ptr_null(strstr(text, "concat"));
    char *all = strdup(printed(0));
    ck_assert_str_eq(printed(3), all); /* they are all */
    free(all);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK); /* it goes on */
    ck_assert_double_eq(ad_real_gradient(tape, x[1]), 4);
    (void)t;
}

/* ---- where its time is, and what is refused ---- */

static void take_time(const ad_recorded *r, void *payload)
{
    (void)r;
    (void)payload;
    observe_ticks += 1000000;
}

__attribute__((noinline)) static ad_tensor exp_of(ad_tensor x)
{
    return ad_exp(x);
}

TEST(a_callback_s_time_is_on_no_line)
{
    teardown_fine();
    tape = observe_tape();
    observe_begin(UINT64_MAX);
    const ad_tensor x = leaf();
    ck_assert_int_eq(ad_on_record(tape, take_time, NULL), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(exp_of(x))), AD_OK);
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *row = observe_row(l, "exp");
    ck_assert_uint_eq(row->calls, 1);
    ck_assert_uint_gt(row->forward_ticks, 0);
    ck_assert_uint_lt(row->forward_ticks, 1000000);
    ck_assert_uint_lt(row->backward_ticks, 1000000);
    observe_check_sums(l);
    tape_observe_end();
}

TEST(mistakes_are_refused_by_name)
{
    char op[8], longer[64];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(ad_break_on_line(tape, "f.c", 0, AD_BREAK_BOTH), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_line: line 0");
    ck_assert_int_eq(ad_break_on_line(tape, NULL, 1, AD_BREAK_BOTH), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_line: a null pointer");
    ck_assert_int_eq(ad_break_on_line(tape, "folder/", 1, AD_BREAK_BOTH), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_line: a name of 0 characters, from 1 to 47");
    ck_assert_int_eq(ad_break_on_op(tape, longer, AD_BREAK_BOTH), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_op: a name of 63 characters, from 1 to 47");
    ck_assert_int_eq(ad_break_on_op(tape, NULL, AD_BREAK_BOTH), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_op: a null pointer");
    ck_assert_int_eq(ad_break_on_op(tape, "exp", 4), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_op: 4 is no ad_break_when");
    ck_assert_int_eq(ad_break_on_nan(tape, -1), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "break_on_nan: -1 is no ad_break_when");
    ck_assert_int_eq(ad_on_record((ad_tape){0}, NULL, NULL), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0}, AD_ERROR_HANDLE, "on_record: the handle is zero");
    ck_assert_int_eq(ad_tape_print(NULL, tape, 0), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "tape_print: file is a null pointer");
    ck_assert_int_eq(ad_tape_print(stdout, tape, -1), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "tape_print: most is negative");
    ck_assert_int_eq(ad_tape_write_graph(NULL, tape, 0), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "tape_write_graph: file is a null pointer");
    ck_assert_int_eq(ad_tape_write_graph(stdout, tape, -1), AD_ERROR_ARGUMENT);
    check_error(AD_ERROR_ARGUMENT, "tape_write_graph: most is negative");
    FILE *unwritable = fopen("/dev/null", "r");
    ck_assert_int_eq(ad_tape_print(unwritable, tape, 0), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tape_print: ");
    ck_assert_int_eq(ad_tape_write_graph(unwritable, tape, 0), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tape_write_graph: ");
    FILE *full = fopen("/dev/full", "w");
    ck_assert_int_eq(ad_tape_write_graph(full, tape, 0), AD_ERROR_STATE);
    check_error_of((ad_tape){0}, AD_ERROR_STATE, "tape_write_graph: No space left on device");
    fclose(full);
    fclose(unwritable);
    for (int i = 0; i <= 8; i++) {
        snprintf(op, sizeof op, "op%d", i);
        ck_assert_int_eq(ad_break_on_op(tape, op, AD_BREAK_BOTH), i < 8 ? AD_OK : AD_ERROR_LIMIT);
    }
    check_error(AD_ERROR_LIMIT, "break_on_op: the tape has 8 breaks already");
    ck_assert_int_eq(ad_break_on_op(tape, "op3", AD_BREAK_OFF), AD_OK);
    ck_assert_int_eq(ad_break_on_op(tape, "exp", AD_BREAK_FORWARD), AD_OK);
    HERE(ad_exp(leaf()));
    check_stops(1, "exp", line);
}

RUN_TESTS(setup, end)
