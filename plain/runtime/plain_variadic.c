/* plain_variadic.c: floating arguments among the `...` of a function; see
 * plain/pass/pass_variadic.c. */
#include "plain_shadow.h"

#include <stdint.h>
#include <string.h>

enum { REGISTERS = 8, STACK = REGISTERS + 1, ROOM = 64 };

/* Shadow's words of arguments in floating registers; the number of words on the stack; these. */
#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))
extern OF_THREAD uint64_t ad_plain_variadic_[ROOM];
extern OF_THREAD uintptr_t ad_plain_variadic_of_;
OF_THREAD uint64_t ad_plain_variadic_[ROOM];
OF_THREAD uintptr_t ad_plain_variadic_of_; /* the function that they are for */

/* A function begins: what is for another one is nothing. */
void ad_plain_variadic_take_(void *function, uint64_t *word);
void ad_plain_variadic_take_(void *function, uint64_t *word)
{
    memset(word, 0, STACK * sizeof *word);
    if (ad_plain_variadic_of_ == (uintptr_t)function)
        memcpy(word, ad_plain_variadic_, (STACK + ad_plain_variadic_[REGISTERS]) * sizeof *word);
    ad_plain_variadic_of_ = 0;
}

/* As the x86-64 convention has it (System V ABI, 3.5.7). */
struct list {
    uint32_t general, floating;
    char *stack, *saved;
};
enum { SAVED_GENERAL = 48, SAVED_FLOATING = 16 };

/* va_start has run. */
void ad_plain_variadic_begin_(const void *at, const uint64_t *word);
void ad_plain_variadic_begin_(const void *at, const uint64_t *word)
{
    const struct list *list = at;
    for (size_t k = 0; k < REGISTERS; k++)
        memcpy(plain_shadow(list->saved + SAVED_GENERAL + SAVED_FLOATING * k), &word[k],
               sizeof *word);
    memcpy(plain_shadow(list->stack), word + STACK, word[REGISTERS] * sizeof *word);
}
