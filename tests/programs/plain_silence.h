/* plain_silence.h: what plain_silence.c and plain_silence_foreign.c know of each other. */
#ifndef PLAIN_SILENCE_H
#define PLAIN_SILENCE_H

#include <stddef.h>

struct many {
    double v[6];
};
struct pair {
    double a, b;
};
struct object {
    int n;
    const double *data;
};

double foreign_sum(const double *x, int n);
double foreign_half(double x);
long double foreign_long(long double x);
void foreign_scale(double *x, int n);
void foreign_fill(double *x, int n);
void foreign_swap(double *a, double *b);
double foreign_of_many(struct many m);
double foreign_of_pair(struct pair p);
struct many foreign_many(double x);
double foreign_of_object(const struct object *o);
double foreign_variadic(int n, ...);
double foreign_of_bits(unsigned long long bits);
void foreign_keep(double *x);
double foreign_of_kept(void);
double *foreign_map(void);
void foreign_unmap(double *x);
double *foreign_buffer(void);
double foreign_of_buffer(void);
void foreign_put(double x);
double foreign_got(void);
double *foreign_alloc(int n);
void foreign_free(double *x);
double foreign_apply(double (*f)(double), double x);
double foreign_with(double (*f)(void *), void *payload);
double foreign_thread(double (*f)(void *), void *payload);
double foreign_of_global(void);
double foreign_of_array(void);
double foreign_of_own(void);
double foreign_parse(const char *text);
void foreign_print(char *text, size_t n, double x);

extern double known_global, known_array[1000];
extern _Thread_local double known_own;

#endif
