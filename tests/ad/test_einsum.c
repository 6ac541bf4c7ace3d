/* test_einsum.c: sums of products by an equation: values and gradients against plain loops over all
 * letters, for many equations, some of them random; and equations that are refused.
 */
#include "oracle.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = 26, MOST_IN = 5, MOST = 4096, RANDOM = 300 };

static double x[MOST_IN][MOST], dx[MOST_IN][MOST], y[MOST], dy[MOST], got[MOST];

/* An equation of small letters alone, with an arrow, and its operands' extents; 1 broadcasts. */
struct plain {
    int n;
    char term[MOST_IN + 1][16]; /* the last one is the result */
    int64_t shape[MOST_IN][8];
    int64_t extent[LETTERS];
    int64_t size[MOST_IN + 1];
};

static void plain_read(struct plain *p, const char *equation)
{
    int k = 0, at = 0;
    memset(p->term, 0, sizeof p->term);
    for (const char *c = equation; *c; c++) {
        if (*c == ',' || *c == '-') {
            k++;
            at = 0;
            c += *c == '-';
        } else {
            p->term[k][at++] = *c;
        }
    }
    p->n = k;
    memcpy(p->term[MOST_IN], p->term[k], sizeof p->term[0]);
}

static void plain_measure(struct plain *p)
{
    for (int l = 0; l < LETTERS; l++)
        p->extent[l] = 1;
    for (int k = 0; k < p->n; k++) {
        p->size[k] = 1;
        for (int i = 0; p->term[k][i]; i++) {
            int64_t *extent = &p->extent[p->term[k][i] - 'a'];
            *extent = p->shape[k][i] != 1 ? p->shape[k][i] : *extent;
            p->size[k] *= p->shape[k][i];
        }
        ck_assert_int_le(p->size[k], MOST);
    }
    p->size[MOST_IN] = 1;
    for (int i = 0; p->term[MOST_IN][i]; i++)
        p->size[MOST_IN] *= p->extent[p->term[MOST_IN][i] - 'a'];
    ck_assert_int_le(p->size[MOST_IN], MOST);
}

/* Place of the element that the letters' values name. */
static int64_t place(const struct plain *p, int k, const int64_t *value)
{
    int64_t at = 0;
    for (int i = 0; p->term[k][i]; i++) {
        const int letter = p->term[k][i] - 'a';
        const int64_t extent = k < MOST_IN ? p->shape[k][i] : p->extent[letter];
        at = at * extent + (extent == 1 ? 0 : value[letter]);
    }
    return at;
}

/* y, and the adjoints dx for dy, by a loop over all values of all letters. */
static void plain_run(const struct plain *p)
{
    int64_t value[LETTERS] = {0}, all = 1;
    memset(y, 0, sizeof y);
    memset(dx, 0, sizeof dx);
    for (int l = 0; l < LETTERS; l++)
        all *= p->extent[l];
    for (int64_t i = 0; i < all; i++) {
        double term = 1;
        const int64_t at = place(p, MOST_IN, value);
        for (int k = 0; k < p->n; k++)
            term *= x[k][place(p, k, value)];
        y[at] += term;
        for (int k = 0; k < p->n; k++) {
            double others = dy[at];
            for (int m = 0; m < p->n; m++)
                others *= m == k ? 1 : x[m][place(p, m, value)];
            dx[k][place(p, k, value)] += others;
        }
        for (int l = LETTERS - 1; l >= 0 && ++value[l] == p->extent[l]; l--)
            value[l] = 0;
    }
}

/* The equation gives what the plain one does; operands are views as the layout says. */
static void check(const char *equation, struct plain *p, int layout, ad_dtype dtype)
{
    ad_tensor in[MOST_IN];
    char what[80];
    const double tolerance = dtype == AD_F32 ? 2e-5 : 1e-13;
    plain_measure(p);
    for (int k = 0; k < p->n; k++)
        oracle_draw((unsigned)k, p->size[k], -1, 1, x[k]);
    oracle_draw(9, p->size[MOST_IN], -1, 1, dy);
    plain_run(p);
    oracle_begin(dtype);
    for (int k = 0; k < p->n; k++) {
        in[k] = oracle_tensor((enum oracle_layout)((layout + k) % ORACLE_LAYOUTS),
                              (int)strlen(p->term[k]), p->shape[k], x[k]);
        ck_assert_int_eq(ad_retain_gradient(in[k]), AD_OK);
    }
    const ad_tensor z = ad_einsum(equation, in, p->n);
    ck_assert_msg(ad_rank(z) == (int)strlen(p->term[MOST_IN]), "%s: %s", equation,
                  ad_tape_message(oracle_tape()));
    int64_t shape[AD_MAX_RANK];
    ck_assert_int_eq(ad_shape(z, shape), AD_OK);
    for (int i = 0; i < ad_rank(z); i++)
        ck_assert_int_eq(shape[i], p->extent[p->term[MOST_IN][i] - 'a']);
    (void)snprintf(what, sizeof what, "%s: element", equation);
    oracle_value(z, got);
    oracle_close(what, p->size[MOST_IN], got, y, tolerance);
    oracle_sweep(z, dy);
    for (int k = 0; k < p->n; k++) {
        (void)snprintf(what, sizeof what, "%.40s: gradient of operand %d", equation, k + 1);
        oracle_gradient(in[k], got);
        oracle_close(what, p->size[k], got, dx[k], tolerance);
    }
    oracle_end();
}

/* The equation, the same without "..." and with an arrow, the operands' extents. */
static const struct {
    const char *equation, *plain;
    int64_t shape[3][5];
} known[] = {
    {"ij,jk->ik", "ij,jk->ik", {{3, 4}, {4, 5}}},
    {"ij,jk", "ij,jk->ik", {{3, 4}, {4, 5}}},
    {" i j , j k -> k i ", "ij,jk->ki", {{3, 4}, {4, 5}}},
    {"ij,kj->ik", "ij,kj->ik", {{3, 4}, {5, 4}}},
    {"ba", "ba->ab", {{3, 4}}},
    {"ij->ij", "ij->ij", {{3, 4}}},
    {"ij->", "ij->", {{3, 4}}},
    {"ij->j", "ij->j", {{3, 4}}},
    {"ii", "ii->", {{4, 4}}},
    {"ii->i", "ii->i", {{4, 4}}},
    {"iji->ij", "iji->ij", {{3, 2, 3}}},
    {"iii->i", "iii->i", {{3, 3, 3}}},
    {"ijij->ji", "ijij->ji", {{3, 2, 3, 2}}},
    {"iijj->ij", "iijj->ij", {{3, 3, 2, 2}}},
    {"i,i", "i,i->", {{5}, {5}}},
    {"i,j->ij", "i,j->ij", {{3}, {4}}},
    {"i,j->ji", "i,j->ji", {{3}, {4}}},
    {"i,i->i", "i,i->i", {{3}, {3}}},
    {"bij,bjk->bik", "bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
    {"ibj,bjk->ikb", "ibj,bjk->ikb", {{3, 2, 4}, {2, 4, 5}}},
    {"bij,bkj->b", "bij,bkj->b", {{2, 3, 4}, {2, 5, 4}}},
    {"ijk,jil->kl", "ijk,jil->kl", {{2, 3, 4}, {3, 2, 5}}},
    {"ijkl,jl->ik", "ijkl,jl->ik", {{2, 3, 4, 2}, {3, 2}}},
    {"ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
    {"i,ij,j->", "i,ij,j->", {{3}, {3, 4}, {4}}},
    {"ik,jk,lk->ijl", "ik,jk,lk->ijl", {{2, 3}, {4, 3}, {2, 3}}},
    {",i->i", ",i->i", {{0}, {3}}},
    {",", ",->", {{0}, {0}}},
    {"", "->", {{0}}},
    {"ij,ij->ij", "ij,ij->ij", {{3, 4}, {3, 4}}},
    {"ij,i->ij", "ij,i->ij", {{3, 4}, {3}}},
    {"i,ij->ij", "i,ij->ij", {{3}, {3, 4}}},
    {"bi,bj->bji", "bi,bj->bji", {{2, 3}, {2, 4}}},
    {"aab,b->a", "aab,b->a", {{3, 3, 2}, {2}}},
    {"ij,jk->ik", "ij,jk->ik", {{3, 0}, {0, 5}}},
    {"ij,jk->ik", "ij,jk->ik", {{0, 3}, {3, 5}}},
    {"ii->i", "ii->i", {{0, 0}}},
    {"Zb,bA", "zb,ba->az", {{3, 4}, {4, 5}}},
    {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 1, 2, 3}, {1, 2, 3, 2}}},
    {"...ij,jk", "aij,jk->aik", {{2, 3, 4}, {4, 2}}},
    {"...i,...i->...", "abi,bi->ab", {{2, 3, 4}, {3, 4}}},
    {"i...,i...", "iab,ib->ab", {{2, 3, 4}, {2, 4}}},
    {"i...->...i", "iab->abi", {{2, 3, 4}}},
    {"...", "ab->ab", {{3, 4}}},
    {"...,...", "ab,b->ab", {{3, 4}, {1}}},
    {"...ij->ij", "aij->ij", {{2, 3, 4}}},
    {"...i,j...->j...i", "abi,jb->jabi", {{2, 1, 2}, {3, 2}}},
    {"...i->...", "ai->a", {{1, 3}}},
    {"...,...", "a,a->a", {{0}, {1}}},
};

TEST_EACH(equations_give_what_loops_over_their_letters_give, 2)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int layout = 0; layout < ORACLE_LAYOUTS; layout++) {
            struct plain p;
            plain_read(&p, known[i].plain);
            for (int k = 0; k < p.n; k++)
                memcpy(p.shape[k], known[i].shape[k], sizeof known[i].shape[k]);
            check(known[i].equation, &p, layout, _i ? AD_F32 : AD_F64);
        }
}

static uint64_t state;

static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* Up to five operands of up to four axes, of six letters; any of these in the result, once. */
static void random_equation(struct plain *p, char *text)
{
    int64_t extent[6];
    bool seen[6] = {false};
    int at = 0;
    for (int l = 0; l < 6; l++)
        extent[l] = 1 + draw(3);
    p->n = 1 + draw(MOST_IN);
    memset(p->term, 0, sizeof p->term);
    for (int k = 0; k < p->n; k++) {
        const int rank = draw(5);
        if (k > 0)
            text[at++] = ',';
        for (int i = 0; i < rank; i++) {
            const int l = draw(6);
            seen[l] = true;
            text[at++] = p->term[k][i] = (char)('a' + l);
            p->shape[k][i] = extent[l];
        }
    }
    text[at++] = '-';
    text[at++] = '>';
    for (int i = 0, first = draw(6); i < 6; i++) {
        const int l = (first + 5 * i) % 6;
        if (seen[l] && draw(2) == 0) {
            p->term[MOST_IN][strlen(p->term[MOST_IN])] = (char)('a' + l);
            text[at++] = (char)('a' + l);
        }
    }
    text[at] = 0;
}

TEST(random_equations_give_what_loops_over_their_letters_give)
{
    state = 20240229;
    for (int i = 0; i < RANDOM; i++) {
        struct plain p;
        char text[64];
        random_equation(&p, text);
        check(text, &p, i % ORACLE_LAYOUTS, AD_F64);
    }
}

static ad_tensor of_three(ad_tape tape, const ad_tensor *in, int n, void *payload)
{
    (void)tape;
    return ad_einsum(payload, in, n);
}

TEST(gradients_agree_with_differences)
{
    static char *const equations[] = {"ij,jk,kk->i", "iij,jk,ki", "...ij,jk,k...->...i"};
    oracle_draw(1, 27, -1, 1, x[0]);
    for (int i = 0; i < 3; i++) {
        oracle_begin(AD_F64);
        const ad_tensor in[] = {
            i == 0 ? oracle_leaf(2, SHAPE(3, 3), x[0]) : oracle_leaf(3, SHAPE(3, 3, 3), x[0]),
            oracle_leaf(2, SHAPE(3, 3), x[0] + 3), oracle_leaf(2, SHAPE(3, 3), x[0] + 9)};
        ck_assert_msg(ad_check_gradient(oracle_tape(), of_three, 3, in, 1e-7, equations[i], NULL) ==
                          AD_OK,
                      "%s", ad_tape_message((ad_tape){0, 0}));
        oracle_end();
    }
}

/* ---- misuse ---- */

/* The equation of [3,4] and [4,5], or of as many of them. */
static const struct {
    const char *equation;
    int n;
    ad_status status;
    const char *text;
} wrong[] = {
    {"ij,jk->ik", 1, AD_ERROR_ARGUMENT, "\"ij,jk->ik\" of f64 [3,4]: the equation names more "},
    {"ij", 2, AD_ERROR_ARGUMENT, "\"ij\" of f64 [3,4], f64 [4,5]: the equation names fewer "},
    {"ij->i,jk", 2, AD_ERROR_ARGUMENT, "names fewer operands than 2"},
    {"ij,jk->i,k", 2, AD_ERROR_ARGUMENT, "character 9, ',', is behind the result"},
    {"ij,jk->ik->", 2, AD_ERROR_ARGUMENT, "character 10, '-', is behind the result"},
    {"ij,jk-ik", 2, AD_ERROR_ARGUMENT, "character 6, '-', does not begin an arrow"},
    {"ij,j1->i1", 2, AD_ERROR_ARGUMENT, "character 5, '1', is no label, comma, arrow"},
    {"ij,j.->i", 2, AD_ERROR_ARGUMENT, "character 5, '.', is no label"},
    {"\u00e9j,jk->", 2, AD_ERROR_ARGUMENT,
     "\"\u00e9j,jk->\" of f64 [3,4], f64 [4,5]: character 1, '\u00e9', is"},
    {"i\u20ac,jk->", 2, AD_ERROR_ARGUMENT, "character 2, '\u20ac', is no label"},
    {"i\U0001d6fc,jk->", 2, AD_ERROR_ARGUMENT, "character 2, '\U0001d6fc', is no label"},
    {"i\xe2\x82,jk->", 2, AD_ERROR_ARGUMENT, "character 2, 0xe2, is no label"},
    {"i\xe2\x82,jk->", 2, AD_ERROR_ARGUMENT, "einsum: \"i\\xe2\\x82,jk->\" of"},
    {"\xed\xa0\x80,jk->", 2, AD_ERROR_ARGUMENT, "einsum: \"\\xed\\xa0\\x80,jk->\" of"},
    {"ij\t,jk->", 2, AD_ERROR_ARGUMENT, "character 3, 0x09, is no label"},
    {"ij\x1b[0m,jk->", 2, AD_ERROR_ARGUMENT, "einsum: \"ij\\x1b[0m,jk->\" of"},
    {"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii\u00e9", 2,
     AD_ERROR_ARGUMENT, "iii\" of f64 [3,4], f64 [4,5]: character 9 is one"},
    {"...i...,jk->", 2, AD_ERROR_ARGUMENT, "character 5, '.', is no label"},
    {"ij,jk->i*", 2, AD_ERROR_ARGUMENT, "character 9, '*', is no label"},
    {"abcdefghi,jk->", 2, AD_ERROR_ARGUMENT, "character 9 is one label too many: 8 axes"},
    {"ij,jk->il", 2, AD_ERROR_ARGUMENT, "'l' of the result is of no operand"},
    {"ij,jk->ii", 2, AD_ERROR_ARGUMENT, "'i' of the result is named twice"},
    {"ijk,kl->il", 2, AD_ERROR_SHAPE, "operand 1 has 2 axes, the equation names 3"},
    {"i,jk->i", 2, AD_ERROR_SHAPE, "operand 1 has 2 axes, the equation names 1"},
    {"ij,ik->jk", 2, AD_ERROR_SHAPE,
     "einsum: \"ij,ik->jk\" of f64 [3,4], f64 [4,5]: 'i' has extents 3 and 4"},
    {"Qq,qQ", 2, AD_ERROR_SHAPE, "'Q' has extents 3 and 5"},
    {"...,...", 2, AD_ERROR_SHAPE, "\"...\" has extents 3 and 4 in axis 2 from its end"},
};

TEST(equations_that_cannot_be_read_are_refused_and_leave_nothing)
{
    oracle_begin(AD_F64);
    oracle_draw(1, 20, -1, 1, x[0]);
    const ad_tensor in[] = {oracle_leaf(2, SHAPE(3, 4), x[0]), oracle_leaf(2, SHAPE(4, 5), x[0])};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ad_stats before, after;
        ck_assert_int_eq(ad_tape_stats(oracle_tape(), &before), AD_OK);
        const ad_tensor z = ad_einsum(wrong[i].equation, in, wrong[i].n);
        ck_assert_msg(strstr(ad_tape_message(oracle_tape()), "test_einsum.c") != NULL, "%s",
                      ad_tape_message(oracle_tape()));
        oracle_refused(z, wrong[i].status, wrong[i].text);
        ck_assert_int_eq(ad_tape_stats(oracle_tape(), &after), AD_OK);
        ck_assert_int_eq(memcmp(&before, &after, sizeof before), 0);
    }
    oracle_end();
}

TEST(a_product_of_too_many_axes_is_refused_and_leaves_nothing)
{
    static const int64_t twos[] = {2, 2, 2, 2, 2, 2, 2, 2};
    ad_stats before, after;
    oracle_begin(AD_F64);
    const ad_tensor one = oracle_leaf(8, twos, x[0]), in[] = {one, one, one};
    ck_assert_int_eq(ad_tape_stats(oracle_tape(), &before), AD_OK);
    const ad_tensor z = ad_einsum("abcdefgh,abcdijkl,efghijkl->aei", in, 3);
    oracle_refused(z, AD_ERROR_SHAPE,
                   "the product of two operands would have 9 axes, 8 are possible");
    /* A sum and diagonals are recorded before. */
    oracle_refused(ad_einsum("mabcdefg,abcdijkk,efgijknn->abcefij", in, 3), AD_ERROR_SHAPE,
                   "9 axes");
    ck_assert_int_eq(ad_tape_stats(oracle_tape(), &after), AD_OK);
    ck_assert_uint_eq(before.values, after.values);
    ck_assert_uint_eq(before.records, after.records);
    ck_assert_uint_eq(before.live_bytes, after.live_bytes);
    oracle_refused(ad_einsum("abcdefgh,ijklmnop", in, 2), AD_ERROR_SHAPE,
                   "the result would have 16 axes, 8 are possible");
    oracle_refused(ad_einsum("...,ijklmnop->...i", in, 2), AD_ERROR_SHAPE,
                   "the result would have 9 axes, 8 are possible");
    oracle_end();
}

TEST(operands_that_are_none_or_of_other_types_are_refused)
{
    static const int64_t whole[12];
    const ad_tape none = {0, 0};
    ad_tape other;
    ad_tensor in[2];
    oracle_begin(AD_F64);
    in[0] = oracle_leaf(2, SHAPE(3, 4), x[0]);
    in[1] = ad_constant(oracle_tape(), AD_I64, 2, SHAPE(3, 4), whole);
    oracle_refused(ad_einsum("ij,ij", in, 2), AD_ERROR_DTYPE,
                   "einsum: \"ij,ij\": operand 2 is i64: all are f32 or all f64");
    in[1] = ad_cast(in[0], AD_F32);
    oracle_refused(ad_einsum("ij,ij", in, 2), AD_ERROR_DTYPE, "operand 2 is f32");
    oracle_refused(ad_einsum(NULL, in, 2), AD_ERROR_ARGUMENT, "einsum: equation is a null pointer");
    oracle_refused(ad_einsum("i", in, 65), AD_ERROR_ARGUMENT,
                   "einsum: 65 operands, from 1 to 64 are possible");
    in[1] = (ad_tensor){0};
    oracle_refused(ad_einsum("ij,ij", in, 2), AD_ERROR_HANDLE,
                   "einsum: operand 2 is a handle of zeros: no tensor");
    ad_tape_clear_error(none);
    in[1] = in[0];
    in[1].value += 1000;
    oracle_refused(ad_einsum("ij,ij", in, 2), AD_ERROR_HANDLE,
                   "einsum: operand 2 was dropped by a reset or a rewind");
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    in[1] = ad_scalar_f64(other, 1);
    oracle_refused(ad_einsum("ij,", in, 2), AD_ERROR_TAPE, "einsum: operand 2 is of another tape");
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_int_eq(ad_einsum("ij", NULL, 1).value, 0);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(none), "einsum: tensors is a null pointer"));
    ad_tape_clear_error(none);
    ck_assert_int_eq(ad_einsum("ij", in, 0).value, 0);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(none), "einsum: 0 operands, from 1 to 64"));
    ad_tape_clear_error(none);
    oracle_end();
}

RUN_TESTS(NULL, NULL)
