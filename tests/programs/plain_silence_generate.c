/* plain_silence_generate.c: prints random functions in which a gradient is easily lost, for
 * plain_silence.c. plain_silence_generate SEED COUNT
 *
 * Each is a few plain steps and one or two that may lose: foreign functions, bits, text, files,
 * threads, assembly. The harmless have none of these. $ stands for a random element of v, @ for a
 * small number. */
#include "plain_below.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const plain[] = {
    "v[$] = sin(v[$]) * v[$] + 0.1 * v[$];",
    "v[$] += tanh(v[$]) - x[@];",
    "memcpy(&v[$], &m.v[$], sizeof(double));",
    "m.v[$] = v[$] * v[$];",
    "h[$] = v[$] + h[@];",
    "if (v[$] > 0.31) { v[$] = 0.5 * v[$]; } else { h[@] = v[$]; }",
    "changed(v, 6);",
    "changed(h, 8);",
    "m = many_changed(m);",
    "v[$] = scaled(v[$]);",
    "memmove(v, v + 1, 3 * sizeof *v);",
    "qsort(h, 8, sizeof *h, by_size);",
    "h = realloc(h, (8 + 9 * @) * sizeof *h); if (!h) abort();",
    "w[@] = v[$] - 0.5;",
    "on_posix_thread(v);",
    "v[$] = (double)(float)0.5 * v[$];",
    "for (int i = 0; i < 4; i++) { w[i] += v[i] * h[i]; }",
};

static const char *const risky[] = {
    /* foreign functions */
    "v[$] = foreign_sum(v, 4);",
    "v[$] = foreign_sum(h, 8);",
    "v[$] = foreign_half(v[$]);",
    "v[$] = (double)foreign_long((long double)v[$] * 2);",
    "foreign_scale(w, 4);",
    "foreign_scale(v + @, 2);",
    "foreign_fill(h, 4);",
    "foreign_swap(&v[$], &h[@]);",
    "v[$] = foreign_of_many(m);",
    "v[$] = foreign_of_many((struct many){{v[$], 1, 2, v[$], 3, 4}});",
    "v[$] = foreign_of_pair((struct pair){v[$], 2});",
    "m = foreign_many(v[$]);",
    "{ const struct object o = {4, v}; v[$] = foreign_of_object(&o); }",
    "{ struct object *o = malloc(sizeof *o); if (!o) abort(); o->n = 3; o->data = h; "
    "v[$] = foreign_of_object(o); free(o); }",
    "v[$] = foreign_variadic(3, v[$], 2.0, v[$]);",
    "{ static double a[2]; a[0] = a[1] = 0; foreign_keep(a); a[1] = v[$]; v[$] = "
    "foreign_of_kept(); }",
    "{ double *a = calloc(4, sizeof *a); if (!a) abort(); foreign_keep(a + 1); a[2] = v[$]; "
    "v[$] = foreign_of_kept(); free(a); }",
    "{ static double a[2]; a[0] = a[1] = 0; kept_by_thread(a); a[1] = v[$]; v[$] = "
    "foreign_of_kept(); }",
    "{ double *b = foreign_map(); b[1] = v[$]; foreign_unmap(b); v[$] += foreign_half(0.5); }",
    "{ double *b = foreign_buffer(); b[@] = v[$]; v[$] = foreign_of_buffer(); }",
    "{ double *b = foreign_buffer(); b[3] = v[$]; v[$] = b[3] * v[$]; }",
    "foreign_put(v[$]); v[$] = foreign_got();",
    "{ double *b = foreign_alloc(9); b[8] = v[$]; v[$] = b[8] + b[2]; foreign_free(b); }",
    "{ double *a = malloc(64); if (!a) abort(); a[2] = x[0] - 0.7; free(a); "
    "double *b = foreign_alloc(8); v[$] += b[2]; foreign_free(b); }",
    "v[$] = foreign_apply(scaled, v[$]);",
    "parameter = v[$]; v[$] = foreign_apply(with_parameter, 0.5); parameter = 0;",
    "v[$] = foreign_with(of_payload, v);",
    "v[$] = foreign_with(of_payload, h + @);",
    "v[$] = foreign_thread(of_payload, v);",
    "v[$] = foreign_thread(of_payload, h);",
    "known_global = v[$]; v[$] = foreign_of_global(); known_global = 0;",
    "known_array[@] = v[$]; v[$] = foreign_of_array(); known_array[0] = known_array[1] = "
    "known_array[2] = known_array[3] = 0;",
    "known_array[900] = v[$]; v[$] = foreign_of_array(); known_array[900] = 0;",
    "known_own = v[$]; v[$] = foreign_of_own(); known_own = 0;",
    "on_c11_thread(v);",
    "{ double (*volatile f)(double) = foreign_half; v[$] = f(v[$]); }",
    "{ void (*volatile f)(double *, int) = foreign_scale; f(h, 4); }",
    /* bits */
    "{ union bits b = {.d = v[$]}; b.u ^= UINT64_C(1) << 63; v[$] = b.d; }",
    "{ union bits b = {.d = v[$]}; v[$] = foreign_of_bits(b.u); }",
    "{ union bits b = {.d = v[$]}, c; c.u = b.u + (UINT64_C(1) << 52); v[$] = c.d; }",
    "{ word *b = (word *)h; b[@] ^= UINT64_C(1) << 63; }",
    "{ word *b = (word *)v; b[$] += (word)@ << 52; }",
    "{ word b[2]; memcpy(b, h, sizeof b); b[1] |= UINT64_C(1) << 63; memcpy(h, b, sizeof b); }",
    "{ const __m128i b = _mm_loadu_si128((const __m128i *)h); "
    "_mm_storeu_si128((__m128i *)(h + 2), _mm_xor_si128(b, _mm_set1_epi64x(INT64_MIN))); }",
    "_mm_storeu_pd(h, _mm_mul_pd(_mm_loadu_pd(v), _mm_loadu_pd(h + 2)));",
    "_mm_storeu_pd(h, _mm_sqrt_pd(_mm_mul_pd(_mm_loadu_pd(v), _mm_loadu_pd(v))));",
    "v[$] = _mm_cvtsd_f64(_mm_max_sd(_mm_set_sd(v[$]), _mm_set_sd(0.3)));",
    "{ unsigned __int128 b; memcpy(&b, h, sizeof b); b ^= (unsigned __int128)1 << 127; "
    "memcpy(h + 4, &b, sizeof b); }",
    "v[$] = (double)(long)(4 * v[$]) * v[$];",
    "v[$] = (double)(int)(1000 * v[$]) / 1000 + v[$] - (double)(long long)v[$];",
    "{ char c[80]; memcpy(c + 3, v, 32); memcpy(h, c + 3, 32); }",
    "{ char c[80]; for (int i = 0; i < 16; i++) { c[i] = ((char *)v)[i]; } memcpy(h, c, 16); }",
    "{ volatile char c[16]; for (int i = 0; i < 16; i++) { c[i] = ((char *)v)[i]; } "
    "for (int i = 0; i < 16; i++) { ((char *)h)[i] = c[i]; } }",
    "{ const uintptr_t a = (uintptr_t)&v[$]; v[$] = *(const double *)a * 2; }",
    /* assembly */
    "__asm__(\"addsd %1, %0\" : \"+x\"(v[$]) : \"x\"(v[$]));",
    "__asm__ volatile(\"movsd (%0), %%xmm0; addsd %%xmm0, %%xmm0; movsd %%xmm0, (%1)\" : : "
    "\"r\"(&v[$]), \"r\"(&h[@]) : \"xmm0\", \"memory\");",
    "{ const uintptr_t a = (uintptr_t)&v[$], b = (uintptr_t)&h[@]; __asm__ volatile(\"movsd (%0), "
    "%%xmm0; movsd %%xmm0, (%1)\" : : \"r\"(a), \"r\"(b) : \"xmm0\", \"memory\"); }",
    /* text and files */
    "snprintf(text, sizeof text, \"%.17g\", v[$]); v[$] = strtod(text, NULL);",
    "sprintf(text, \"%d %.17g\", 3, v[$]); v[$] = atof(text + 2);",
    "snprintf(text, sizeof text, \"%.17g %.17g\", v[$], v[$]); "
    "if (sscanf(text, \"%lf %lf\", &v[0], &h[@]) != 2) { abort(); }",
    "snprintf(text, sizeof text, \"%.17g\", v[$]); v[$] = foreign_parse(text);",
    "snprintf(text, sizeof text, \"%.17g\", v[$]); { char t[160]; strcpy(t, text); v[$] = atof(t); "
    "}",
    "foreign_print(text, sizeof text, v[$]); v[$] = atof(text);",
    "rewind(file); fprintf(file, \"%.17g\\n\", v[$]); rewind(file); if (fscanf(file, \"%lf\", "
    "&v[$]) != 1) { "
    "abort(); }",
    "rewind(file); fprintf(file, \"%.17g\\n\", v[$]); rewind(file); if (!fgets(text, sizeof text, "
    "file)) { "
    "abort(); } "
    "v[$] = strtod(text, NULL);",
    "if (fwrite(h, sizeof *h, 4, file) != 4) { abort(); } rewind(file); "
    "if (fread(w, sizeof *w, 4, file) != 4) { abort(); }",
    "fflush(file); if (pwrite(fileno(file), v, 16, 0) != 16 || pread(fileno(file), w, 16, 0) != "
    "16) { abort(); }",
    "if (sscanf(\"0.25 2\", \"%lf %lf\", &v[$], &h[@]) != 2) { abort(); }",
    /* of the C library */
    "strncpy((char *)&w[@], (const char *)&v[$], sizeof(double));",
    "if (!memccpy(&w[@], &v[$], 256, sizeof(double))) { w[@] *= 2; }",
    "{ double e[2]; int n; e[0] = frexp(v[$], &n); e[1] = modf(3 * v[$], &w[@]); "
    "v[$] = ldexp(e[0], n) + e[1]; }",
    "if (canonicalize(&w[@], &v[$]) != 0) { abort(); }",
    "{ double s, c; sincos(v[$], &s, &c); v[$] = s * c; }",
    "{ const double *const f = bsearch(&h[3], (qsort(h, 8, sizeof *h, by_size), h), 8, sizeof *h, "
    "by_size); "
    "if (f) { v[$] = *f; } }",
    "v[$] = nextafter(v[$], 10);",
    "v[$] = remainder(v[$] * 7, 1.5);",
    "{ int q; v[$] = remquo(v[$] * 7, 1.5, &q); }",
    "v[$] = lgamma_r(v[$] * v[$] + 1.25, &(int){0});",
    "v[$] = drem(v[$] * 5, 1.25) + scalbln(v[$], 2) + logb(v[$]);",
    "v[$] = jn(2, v[$]);",
    "v[$] = fmaxl(v[$], 0.3L) + sinl(v[$]) + fminf(0.2f, 3.0f);",
    "{ _Float16 f = (_Float16)v[$]; v[$] = (double)f; }",
    "{ __float128 f = v[$]; f = f * f; v[$] = (double)f; }",
};

static void step(const char *text)
{
    printf("    ");
    for (const char *c = text; *c; c++)
        if (*c == '$')
            printf("%u", below(6));
        else if (*c == '@')
            printf("%u", below(4));
        else
            putchar(*c);
    printf("\n");
}

/* One of four has plain steps alone. */
static bool is_harmless(unsigned k)
{
    return k % 4 == 3;
}

static const char *kind_of(unsigned k)
{
    return is_harmless(k) ? "harmless" : "silence";
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    const unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    /* In their order, so that few functions have all. */
    const unsigned n_risky = sizeof risky / sizeof *risky;
    unsigned next = 0;
    for (unsigned k = 0; k < n; k++) {
        const bool safe = is_harmless(k);
        printf("static double %s_%u(const double *x)\n{\n    BEGIN\n", kind_of(k), k);
        const unsigned steps = 2 + below(4), at = below(steps), again = below(2 * steps);
        for (unsigned i = 0; i < steps; i++)
            if (!safe && (i == at || i == again))
                step(risky[i == at ? next++ % n_risky : below(n_risky)]);
            else
                step(plain[below(sizeof plain / sizeof *plain)]);
        printf("    END\n}\n\n");
    }
    printf("static const struct silent {\n    const char *name;\n    double (*function)(const "
           "double *);\n"
           "} silent[] = {\n");
    for (unsigned k = 0; k < n; k++)
        printf("    {\"%s_%u\", %s_%u},\n", kind_of(k), k, kind_of(k), k);
    printf("};\n");
    return 0;
}
