/* pass_threads.c: programs of several threads.
 *
 * What OpenMP and POSIX threads do is the runtime's (plain_threads.c); here it is called. A region
 * of `#pragma omp parallel` is a function that clang has made; variables that it takes by value
 * come as words, whose shadow goes along as of any copy.
 *
 * All of this is done before functions are gone over: behind what switches a thread to another fork
 * of the tape an index in a register means nothing (pass_across.c).
 */
#include "pass.h"

#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* Functions that the runtime has under the name ad_plain_call_NAME. The first passes words. */
static const char fork_call[] = "__kmpc_fork_call";
static const char *const wrapped[] = {fork_call,
                                      "__kmpc_barrier",
                                      "__kmpc_reduce",
                                      "__kmpc_reduce_nowait",
                                      "__kmpc_end_reduce",
                                      "__kmpc_end_reduce_nowait",
                                      "pthread_create",
                                      "pthread_join",
                                      NULL};

/* Behind them others' writes are seen; before them own ones are shown; or both. */
static const char *const takes[] = {"__kmpc_critical",
                                    "__kmpc_critical_with_hint",
                                    "__kmpc_ordered",
                                    "__kmpc_doacross_wait",
                                    "omp_set_lock",
                                    "omp_test_lock",
                                    "omp_set_nest_lock",
                                    "omp_test_nest_lock",
                                    "pthread_mutex_lock",
                                    "pthread_mutex_trylock",
                                    "pthread_mutex_timedlock",
                                    "pthread_rwlock_rdlock",
                                    "pthread_rwlock_wrlock",
                                    "pthread_spin_lock",
                                    "pthread_spin_trylock",
                                    "sem_wait",
                                    "sem_trywait",
                                    "sem_timedwait",
                                    NULL};
static const char *const gives[] = {"__kmpc_end_critical",
                                    "__kmpc_end_ordered",
                                    "__kmpc_doacross_post",
                                    "omp_unset_lock",
                                    "omp_unset_nest_lock",
                                    "pthread_mutex_unlock",
                                    "pthread_cond_signal",
                                    "pthread_cond_broadcast",
                                    "pthread_rwlock_unlock",
                                    "pthread_spin_unlock",
                                    "sem_post",
                                    NULL};
static const char *const both[] = {"pthread_cond_wait", "pthread_cond_timedwait",
                                   "pthread_barrier_wait", NULL};

/* Of libomp, what passes values in ways that are not followed. */
static const char *const refused[] = {"__kmpc_omp_task",
                                      "__kmpc_taskloop",
                                      "__kmpc_fork_teams",
                                      "__kmpc_omp_target",
                                      "__tgt_",
                                      "__kmpc_threadprivate_cached",
                                      "__kmpc_fork_call_if",
                                      NULL};

static bool begins_as(const char *const *begin, const char *name)
{
    for (; *begin; begin++)
        if (strncmp(name, *begin, strlen(*begin)) == 0)
            return true;
    return false;
}

static const char *without_prefix(const char *name)
{
    static const char prefix[] = "ad_plain_call_";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

bool pass_switches_tape(const char *name)
{
    const char *of = without_prefix(name);
    return strcmp(name, "ad_plain_publish_") == 0 ||
           (of != name && (strcmp(of, "atomic_add") == 0 ||
                           (of[0] && strcmp(of, fork_call) != 0 && pass_is_one_of(wrapped, of))));
}

bool pass_is_thread_call(const char *name)
{
    static const char *const begin[] = {"__kmpc_", "omp_", "pthread_", "sem_", NULL};
    return begins_as(begin, name);
}

bool pass_is_refused_thread_call(const char *name)
{
    return begins_as(refused, name);
}

bool pass_is_outlined(const struct pass *p, value function)
{
    return base_table_find(&p->outlined, base_hash(0, (uint64_t)(uintptr_t)function)) >= 0;
}

bool pass_gives_words(const struct pass *p, value call)
{
    value callee = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    return callee && LLVMIsAFunction(callee) &&
           (strcmp(without_prefix(pass_name_of(callee)), fork_call) == 0 ||
            pass_is_outlined(p, callee));
}

/* ---- calls are found, and changed ---- */

typedef void change(struct pass *p, value call, const char *name);

static void each_call(struct pass *p, const char *name, change *make)
{
    value function = LLVMGetNamedFunction(p->module, name), *call = NULL;
    size_t n = 0, room = 0;
    if (!function || !LLVMIsDeclaration(function))
        return;
    for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!pass_is_call(user) || LLVMGetCalledValue(user) != function)
            continue;
        BASE_ARRAY_GROW(call, n, &room);
        call[n++] = user;
    }
    for (size_t k = 0; k < n; k++)
        make(p, call[k], name);
    free(call);
}

static void note_region(struct pass *p, value call, const char *name)
{
    (void)name;
    value f = LLVMGetOperand(call, 2);
    const uint64_t key = base_hash(0, (uint64_t)(uintptr_t)f);
    if (LLVMIsAFunction(f) && base_table_find(&p->outlined, key) < 0)
        base_table_add(&p->outlined, key, 0);
}

/* The runtime gives 1: threads add one after the other. What clang has made for 2, atomic
 * operations, never runs. */
static void leave_out_atomic(struct pass *p, value call, const char *name)
{
    (void)p, (void)name;
    for (LLVMUseRef use = LLVMGetFirstUse(call); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsASwitchInst(user))
            continue;
        for (unsigned k = 1; k < LLVMGetNumSuccessors(user); k++)
            if (LLVMConstIntGetZExtValue(LLVMGetOperand(user, 2 * k)) == 2)
                pass_never_reached(LLVMGetSuccessor(user, k));
    }
}

static void publish(struct pass *p, value call, bool behind)
{
    if (behind)
        pass_build_after(p, call);
    else
        LLVMPositionBuilderBefore(p->build, call);
    LLVMSetCurrentDebugLocation2(p->build, LLVMInstructionGetDebugLoc(call));
    pass_call_runtime(p, "ad_plain_publish_", p->nothing, 0, NULL);
}

static void publish_around(struct pass *p, value call, const char *name)
{
    if (!pass_is_one_of(takes, name))
        publish(p, call, false);
    if (!pass_is_one_of(gives, name))
        publish(p, call, true);
}

/* Threads meet before one of them gives its values to the others. */
static void meet_before(struct pass *p, value call, const char *name)
{
    (void)name;
    value argument[] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1)};
    LLVMPositionBuilderBefore(p->build, call);
    LLVMSetCurrentDebugLocation2(p->build, LLVMInstructionGetDebugLoc(call));
    pass_call_runtime(p, "ad_plain_call___kmpc_barrier", p->nothing, 2, argument);
}

/* Atomic additions of doubles are the runtime's. */
static void atomic_change(struct pass *p, value v)
{
    const LLVMAtomicRMWBinOp how = LLVMGetAtomicRMWBinOp(v);
    if (LLVMTypeOf(v) != p->real ||
        (how != LLVMAtomicRMWBinOpFAdd && how != LLVMAtomicRMWBinOpFSub))
        return;
    LLVMPositionBuilderBefore(p->build, v);
    LLVMSetCurrentDebugLocation2(p->build, LLVMInstructionGetDebugLoc(v));
    value argument[] = {LLVMGetOperand(v, 0), LLVMGetOperand(v, 1)};
    if (how == LLVMAtomicRMWBinOpFSub)
        argument[1] = LLVMBuildFNeg(p->build, argument[1], "");
    value before = pass_call_runtime(p, "ad_plain_call_atomic_add", p->real, 2, argument);
    LLVMReplaceAllUsesWith(v, before);
    LLVMInstructionEraseFromParent(v);
}

static void atomics_change(struct pass *p)
{
    for (value f = LLVMGetFirstFunction(p->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            for (value v = LLVMGetFirstInstruction(block), next; v; v = next) {
                next = LLVMGetNextInstruction(v);
                if (LLVMIsAAtomicRMWInst(v))
                    atomic_change(p, v);
            }
}

void pass_threads_prepare(struct pass *p)
{
    static const char *const *const lists[] = {takes, gives, both};
    each_call(p, fork_call, note_region);
    each_call(p, "__kmpc_reduce", leave_out_atomic);
    each_call(p, "__kmpc_reduce_nowait", leave_out_atomic);
    each_call(p, "__kmpc_copyprivate", meet_before);
    for (unsigned k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const char *const *name = lists[k]; *name; name++)
            each_call(p, *name, publish_around);
    atomics_change(p);
    for (const char *const *name = wrapped; *name; name++)
        pass_call_renamed(p, *name);
}
