/* test_collect_paths.c: the collector's tree of call paths, the stacks that it is made of, and what
 * is loaded, which a fork must find whole.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect.h"
#include "collect_paths.h"
#include "run_cases.h"
#include "stack_kinds.h"
#include "unwind.h"

#include <check.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, MOST = 16 };

static uint32_t path_of(size_t n, const uintptr_t *frame)
{
    return collect_path_of(frame, n, false);
}

/* Its frames, the innermost first, are those of the path. */
static void check_path(uint32_t path, size_t n, const uintptr_t *frame, bool cut)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_ne(path, 0);
        struct collect_path at = collect_path_at(path);
        ck_assert_uint_eq(at.pc, frame[i]);
        ck_assert_uint_lt(at.parent, path);
        path = at.parent;
    }
    if (cut) {
        ck_assert_uint_ne(path, 0);
        ck_assert_uint_eq(collect_path_at(path).pc, 0);
        path = collect_path_at(path).parent;
    }
    ck_assert_uint_eq(path, 0);
}

TEST(a_stack_has_one_number_and_its_callers_are_its_parents)
{
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    const uintptr_t a[] = {0x30, 0x20, 0x10}, b[] = {0x31, 0x20, 0x10}, c[] = {0x20, 0x10};
    uint32_t first = path_of(3, a), second = path_of(3, b), outer = path_of(2, c);
    check_path(first, 3, a, false);
    check_path(second, 3, b, false);
    ck_assert_uint_ne(first, second);
    ck_assert_uint_eq(collect_path_at(first).parent, outer);
    ck_assert_uint_eq(collect_path_at(second).parent, outer);
    for (int i = 0; i < 3; i++) { /* in any order, after shorter and longer ones */
        ck_assert_uint_eq(path_of(3, a), first);
        ck_assert_uint_eq(path_of(2, c), outer);
        ck_assert_uint_eq(path_of(3, b), second);
    }
    /* What is cut off is no caller: these are other paths. */
    uint32_t cut = collect_path_of(a, 3, true);
    ck_assert_uint_ne(cut, first);
    check_path(cut, 3, a, true);
    ck_assert_uint_eq(path_of(3, a), first);
    ck_assert_uint_eq(collect_path_of(a, 3, true), cut);
    ck_assert_uint_eq(collect_paths_refused(), 0);
}

/* Random stacks with common ends, checked frame by frame. */
static void *many(void *seed)
{
    unsigned state = *(const unsigned *)seed;
    uintptr_t frame[MOST] = {0};
    for (int i = 0; i < (*TEST_SANITIZE_FLAGS ? 4000 : 20000); i++) {
        state = state * 1103515245u + 12345u;
        const size_t n = 1 + state / 65536 % MOST, changed = state / 7 % (n + 1);
        for (size_t k = 0; k < changed; k++)
            frame[k] = 0x1000 + (state >> (k % 16)) % 5;
        for (size_t k = 0; k < n; k++)
            frame[k] = frame[k] ? frame[k] : 0x1000;
        check_path(path_of(n, frame), n, frame, false);
        if (i % 16 == 0)
            check_path(collect_path_of(frame, n, true), n, frame, true);
    }
    return NULL;
}

TEST(threads_find_the_same_numbers)
{
    static unsigned seed[THREADS] = {1, 2, 1, 2};
    pthread_t thread[THREADS];
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, many, &seed[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    uint32_t n = collect_paths_count();
    many(&seed[0]); /* again: nothing is new */
    many(&seed[1]);
    ck_assert_uint_eq(collect_paths_count(), n);
    for (uint32_t i = 1; i <= n; i++) /* no two are the same */
        ck_assert_uint_lt(collect_path_at(i).parent, i);
}

TEST(a_call_whose_tape_has_no_row_left_keeps_its_outermost_callers)
{
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    const uint64_t refused = collect_paths_refused();
    const uintptr_t whole[] = {0x70, 0x60, 0x50, 0x40, 0x30};
    const uint32_t path = path_of(5, whole);
    const uint32_t kept = collect_path_cut(path, 0x70, 2);
    ck_assert_uint_eq(collect_path_at(kept).pc, 0x70);
    ck_assert_uint_eq(collect_path_at(collect_path_at(kept).parent).pc, 0);
    ck_assert_uint_eq(collect_path_at(collect_path_at(kept).parent).parent, path_of(2, whole + 3));
    ck_assert_uint_eq(collect_path_cut(path, 0x70, 4), path); /* nothing is between */
    const uint32_t cut = collect_path_cut(path, 0x70, 0);
    ck_assert_uint_eq(collect_path_at(cut).pc, 0x70);
    const uint32_t outer = collect_path_at(cut).parent;
    ck_assert_uint_eq(collect_path_at(outer).pc, 0);
    ck_assert_uint_eq(collect_path_at(outer).parent, 0);
    ck_assert_uint_eq(collect_path_cut(0, 0x70, 0), cut);
    ck_assert_uint_eq(collect_paths_refused(), refused);
    collect_path_refuse();
    ck_assert_uint_eq(collect_paths_refused(), refused + 1);
    const uintptr_t frame[] = {0x70}; /* as a stack whose outer frames were cut off */
    ck_assert_uint_eq(collect_path_of(frame, 1, true), cut);
}

TEST(a_full_tree_gives_the_nearest_path_outwards_and_counts)
{
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    const uintptr_t known[] = {0x20, 0x10};
    const uint32_t outer = path_of(2, known);
    uintptr_t frame[2] = {0, 0x10};
    uint32_t last = 0;
    for (uintptr_t i = 0; i < COLLECT_PATH_NODES; i++) {
        frame[0] = 0x100 + i;
        last = path_of(2, frame);
    }
    ck_assert_uint_lt(collect_paths_count(), COLLECT_PATH_NODES);
    const uint64_t refused = collect_paths_refused();
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(last, collect_path_at(outer).parent);
    const uintptr_t deep[] = {0x40, 0x30, 0x20, 0x10}, other[] = {0x50};
    ck_assert_uint_eq(path_of(4, deep), outer);
    ck_assert_uint_eq(path_of(1, other), 0);
    ck_assert_uint_eq(collect_paths_refused(), refused + 2);
    ck_assert_uint_eq(path_of(2, known), outer); /* what is known stays */
}

TEST(a_child_process_goes_on_with_the_tree)
{
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    const uintptr_t a[] = {0x30, 0x20}, b[] = {0x31, 0x20};
    uint32_t path = path_of(2, a);
    collect_paths_before_fork();
    pid_t child = fork();
    collect_paths_after_fork();
    if (child == 0)
        _exit(path_of(2, a) == path && path_of(2, b) != path ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* ---- what is loaded ---- */

/* The collector's, for names from the system's list of mappings, which are not looked at here. */
int collect_file_read(struct collect_buffer *to, const char *path, size_t most)
{
    (void)to, (void)path, (void)most;
    return ENOENT;
}

bool collect_put_bytes(struct collect_buffer *to, const void *data, size_t n)
{
    (void)to, (void)data, (void)n;
    return false;
}

const char *collect_reason(int error)
{
    return strerror(error);
}

static void leave_it(struct collect_open *open)
{
    (void)open;
}

static bool stop; /* atomic */

static int pass(struct dl_phdr_info *info, size_t size, void *payload)
{
    (void)info, (void)size, (void)payload;
    return 0;
}

static uintptr_t locate(uint32_t low, uintptr_t near)
{
    return low + near + (uintptr_t)dl_iterate_phdr(pass, NULL);
}

/* Again and again, as if libraries had come. */
static void *look_what_is_loaded(void *failed)
{
    struct collect_modules modules = {.n = 0};
    collect_locate *const find = collect_modules_locate(locate);
    while (!*(bool *)failed && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        modules.adds = 0;
        *(bool *)failed = collect_modules_refresh(&modules) != NULL || find(3, 4) != 7;
    }
    collect_modules_free(&modules);
    return NULL;
}

/* The loader has a lock that a fork does not free: a child in which it were held would hang. */
TEST(no_fork_comes_while_another_thread_looks_what_is_loaded)
{
    enum { FORKS = 50, HANGS_S = 60 };
    static struct collect_open open = {.forget = leave_it};
    pthread_t thread;
    bool failed = false;
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    collect_open_add(&open);
    ck_assert_int_eq(pthread_create(&thread, NULL, look_what_is_loaded, &failed), 0);
    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            signal(SIGALRM, SIG_DFL); /* Check has a use for it */
            alarm(HANGS_S);
            _exit(dl_iterate_phdr(pass, NULL));
        }
        int status = -1;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(status == 0, "fork %d: %x", i, (unsigned)status);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(!failed);
    collect_open_remove(&open);
}

/* ---- stacks ---- */

/* What the library does between the user's call and the collector, some levels of it. */
__attribute__((noinline)) static uint32_t here(enum collect_unwinder unwinder, unsigned depth,
                                               uintptr_t site, int levels)
{
    uint32_t path = levels > 0 ? here(unwinder, depth, site, levels - 1)
                               : collect_path_here(unwinder, depth, site, NULL);
    __asm__ volatile("");
    return path;
}

__attribute__((noinline)) static uint32_t op(enum collect_unwinder unwinder, unsigned depth)
{
    uint32_t path = here(unwinder, depth, (uintptr_t)__builtin_return_address(0), 5);
    __asm__ volatile("");
    return path;
}

__attribute__((noinline)) static uint32_t nested(enum collect_unwinder unwinder, unsigned depth,
                                                 int n)
{
    uint32_t path = n > 0 ? nested(unwinder, depth, n - 1) : op(unwinder, depth);
    __asm__ volatile("");
    return path;
}

static unsigned length(uint32_t path)
{
    unsigned n = 0;
    for (; path != 0; path = collect_path_at(path).parent)
        n += collect_path_at(path).pc != 0;
    return n;
}

static bool is_cut(uint32_t path)
{
    while (path != 0 && collect_path_at(path).pc != 0)
        path = collect_path_at(path).parent;
    return path != 0;
}

TEST_EACH(stacks_of_any_depth_are_followed_and_cut_where_they_are_too_deep, 2)
{
    const enum collect_unwinder unwinder =
        _i ? COLLECT_UNWIND_FRAME_POINTERS : COLLECT_UNWIND_LIBUNWIND;
    collect_paths_open(unwinder);
    unsigned base = 0;
    for (int n = 0; n < 100; n++) {
        uint32_t path = 0, before = 0;
        volatile int three = 3; /* a loop that is not unrolled has one call */
        for (int i = 0; i < three; i++, before = path) {
            path = nested(unwinder, 1000, n);
            ck_assert(i == 0 || path == before);
        }
        ck_assert(!is_cut(path));
        if (n == 0)
            base = length(path);
        ck_assert_uint_eq(length(path), base + (unsigned)n);
        path = nested(unwinder, 7, n);
        ck_assert_uint_eq(length(path), base + (unsigned)n < 7 ? base + (unsigned)n : 7);
        ck_assert(is_cut(path) == (base + (unsigned)n > 7));
        unwind_forget(); /* and learns again */
    }
    ck_assert_uint_eq(length(nested(unwinder, COLLECT_PATH_DEPTH, 3000)), COLLECT_PATH_DEPTH);
}

/* Two functions with the same frame, so that what they call lies at the same place. */
#define CALLER(name)                                                                               \
    __attribute__((noinline)) static uint32_t name(int n)                                          \
    {                                                                                              \
        uint32_t path = nested(COLLECT_UNWIND_LIBUNWIND, 64, n);                                   \
        __asm__ volatile("" ::"r"(#name));                                                         \
        return path;                                                                               \
    }
CALLER(one_caller)
CALLER(other_caller)

TEST(a_stack_that_was_the_same_is_another_where_an_outer_call_is)
{
    uint32_t (*const caller[])(int) = {one_caller, other_caller};
    uint32_t path[2] = {0};
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    for (int i = 0; i < 60; i++) { /* each stack some times, as a loop of the program has it */
        const int k = i / 5 % 2;
        const uint32_t found = caller[k](6);
        ck_assert(path[k] == 0 || path[k] == found);
        path[k] = found;
    }
    ck_assert_uint_ne(path[0], path[1]);
    ck_assert_uint_eq(length(path[0]), length(path[1]));
}

static unsigned compared, compared_depth;

/* What is found along the last stack is what the cursor finds. */
__attribute__((noinline)) static void compare(void)
{
    static uintptr_t frame[COLLECT_PATH_DEPTH + 1];
    const uintptr_t site = (uintptr_t)__builtin_return_address(0);
    const unsigned depth = compared_depth;
    const uint32_t path = collect_path_here(COLLECT_UNWIND_LIBUNWIND, depth, site, NULL);
    const size_t n = unwind_by_cursor(site, frame, depth + 1);
    ck_assert_uint_gt(n, 0);
    if (path != collect_path_of(frame, n < depth ? n : depth, n > depth))
        ck_abort_msg("after %u stacks, of %zu frames", compared, n);
    compared++;
}

TEST(a_stack_is_found_along_the_one_before)
{
    static const unsigned depths[] = {64, COLLECT_PATH_DEPTH, 10, 33};
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    for (unsigned round = 0; compared < 4000; round++) {
        compared_depth = depths[round % 4];
        if (round % 20 == 0)
            unwind_forget();
        stack_kinds_walk(round % 8 ? 12 : 90, compare);
    }
}

static struct unwind_stack in_turn;

/* Not inlined, and of two places. */
__attribute__((noinline)) static size_t note_site(uintptr_t *site)
{
    uintptr_t frame[COLLECT_PATH_DEPTH + 1];
    *site = (uintptr_t)__builtin_return_address(0);
    const size_t along = unwind_along(*site, COLLECT_PATH_DEPTH, &in_turn);
    const size_t n = unwind_by_cursor(*site, frame, COLLECT_PATH_DEPTH);
    for (size_t i = 0; i < along; i++)
        ck_assert_uint_eq(in_turn.frame[in_turn.first + i].pc, frame[i]);
    return along == n ? n : 0;
}

TEST(places_of_one_function_in_turn_are_compared_by_the_list_of_words)
{
    uintptr_t site[2] = {0};
    size_t n[2] = {0};
    uint32_t listed = 0;
    collect_paths_open(COLLECT_UNWIND_LIBUNWIND);
    for (int i = 0; i < 20; i++) {
        n[0] = note_site(&site[0]);
        listed += in_turn.n_held > 0;
        n[1] = note_site(&site[1]);
        listed += in_turn.n_held > 0;
        if (i == 9) /* the first times are the cursor's */
            listed = 0;
    }
    ck_assert_uint_ne(site[0], site[1]);
#ifdef __x86_64__
    ck_assert_uint_gt(n[0], 1);
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_uint_eq(listed, 20);
#endif
}

TEST_EACH(a_site_that_is_not_on_the_stack_is_a_path_of_its_own, 2)
{
    const enum collect_unwinder unwinder =
        _i ? COLLECT_UNWIND_FRAME_POINTERS : COLLECT_UNWIND_LIBUNWIND;
    const uintptr_t site = 0x123456;
    collect_paths_open(unwinder);
    check_path(collect_path_here(unwinder, 64, site, NULL), 1, &site, true);
}

RUN_TESTS(NULL, NULL)
