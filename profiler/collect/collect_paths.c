/* collect_paths.c: the tree of call paths, and the look-up that every op makes.
 *
 * Nodes are never moved or freed, and a table that was outgrown stays as well, so that a look-up
 * takes no lock: a thread that finds no node in an old table looks again under the lock. Each
 * thread remembers its last stack, since the next one differs from it in few frames.
 */
#include "collect_paths.h"

#include "unwind.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)UNWIND_DEPTH > (int)COLLECT_PATH_DEPTH,
               "one more tells whether there are more");

enum { CHUNK = 1 << 12, CHUNKS = COLLECT_PATH_NODES / CHUNK, LEAST_SLOTS = 1 << 12, BETWEEN = 256 };

struct slots {
    const struct slots *before; /* outgrown, and perhaps still looked at */
    uint32_t n;                 /* a power of 2 */
    uint32_t used;              /* under the lock */
    uint32_t slot[];            /* 0: free; else a node */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collect_path *chunk[CHUNKS];
static uint32_t n_nodes; /* the last node's number: 0 stands for no path and has no node */
static struct slots *table;
static uint64_t refused;

/* The stack that a thread had last, the outermost frame first. */
struct path_memory {
    uint32_t n;
    uint32_t root; /* 0, or the node that stands for what was cut off */
    uint32_t node[COLLECT_PATH_DEPTH];
    uintptr_t pc[COLLECT_PATH_DEPTH];
    struct unwind_stack stack;
};

/* A pointer, because a module's own room for thread-local data is small, and asking for more ends
 * the process where there is none. */
static _Thread_local struct path_memory *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void paths_forget(void *memory)
{
    free(memory);
    mine = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, paths_forget) == 0;
}

void collect_paths_open(enum collect_unwinder unwinder)
{
    pthread_once(&once, make_key);
    if (unwinder == COLLECT_UNWIND_LIBUNWIND)
        unwind_prime();
}

/* The calling thread's memory of its last stack; NULL: there is no room for one. */
static struct path_memory *my_last(void)
{
    if (mine != NULL || !has_key)
        return mine;
    struct path_memory *made = malloc(sizeof *made);
    if (made == NULL || pthread_setspecific(key, made) != 0) {
        free(made);
        return NULL;
    }
    made->n = made->root = 0;
    made->stack.first = made->stack.end = 0;
    made->stack.named = UINT32_MAX;
    made->stack.whole = false;
    made->stack.n_held = 0;
    made->stack.life = 0;
    mine = made;
    return made;
}

static const struct collect_path *paths_node_of(uint32_t i)
{
    return &__atomic_load_n(&chunk[i / CHUNK], __ATOMIC_ACQUIRE)[i % CHUNK];
}

static uint32_t paths_hash(uint32_t parent, uintptr_t pc)
{
    const uint64_t h = (uint64_t)pc * UINT64_C(0x9E3779B97F4A7C15) ^
                       (uint64_t)parent * UINT64_C(0xC2B2AE3D27D4EB4F);
    return (uint32_t)(h >> 32);
}

/* The node, or 0 with *place the free slot where it belongs. */
static uint32_t paths_find(const struct slots *slots, uint32_t parent, uintptr_t pc,
                           uint32_t *place)
{
    uint32_t i = paths_hash(parent, pc) & (slots->n - 1);
    for (;; i = (i + 1) & (slots->n - 1)) {
        uint32_t found = __atomic_load_n(&slots->slot[i], __ATOMIC_ACQUIRE);
        if (found == 0) {
            *place = i;
            return 0;
        }
        const struct collect_path *node = paths_node_of(found);
        if (node->pc == pc && node->parent == parent)
            return found;
    }
}

/* Room for one more; NULL: no memory. Under the lock. */
static struct slots *paths_room(void)
{
    struct slots *old = table;
    if (old != NULL && 2 * (old->used + 1) <= old->n)
        return old;
    uint32_t n = old != NULL ? 2 * old->n : LEAST_SLOTS, place = 0;
    struct slots *slots = calloc(1, sizeof *slots + n * sizeof slots->slot[0]);
    if (slots == NULL)
        return NULL;
    slots->n = n;
    slots->before = old;
    for (uint32_t i = 1; i <= n_nodes; i++) {
        const struct collect_path *node = paths_node_of(i);
        (void)paths_find(slots, node->parent, node->pc, &place);
        slots->slot[place] = i;
    }
    slots->used = n_nodes;
    __atomic_store_n(&table, slots, __ATOMIC_RELEASE);
    return slots;
}

/* The node, made if there is room for it, or 0. Under the lock. */
static uint32_t find_or_make(uint32_t parent, uintptr_t pc)
{
    uint32_t place = 0, found = table != NULL ? paths_find(table, parent, pc, &place) : 0;
    if (found != 0)
        return found;
    uint32_t i = n_nodes + 1;
    struct slots *slots = i < COLLECT_PATH_NODES ? paths_room() : NULL;
    if (slots == NULL)
        return 0;
    if (chunk[i / CHUNK] == NULL) {
        struct collect_path *made = malloc(CHUNK * sizeof *made);
        if (made == NULL)
            return 0;
        __atomic_store_n(&chunk[i / CHUNK], made, __ATOMIC_RELEASE);
    }
    chunk[i / CHUNK][i % CHUNK] = (struct collect_path){pc, parent};
    (void)paths_find(slots, parent, pc, &place);
    __atomic_store_n(&n_nodes, i, __ATOMIC_RELEASE);
    __atomic_store_n(&slots->slot[place], i, __ATOMIC_RELEASE);
    slots->used++;
    return i;
}

static uint32_t child_of(uint32_t parent, uintptr_t pc)
{
    uint32_t place;
    const struct slots *slots = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    uint32_t found = slots != NULL ? paths_find(slots, parent, pc, &place) : 0;
    if (found != 0)
        return found;
    pthread_mutex_lock(&lock);
    found = find_or_make(parent, pc);
    pthread_mutex_unlock(&lock);
    return found;
}

static uint32_t paths_refuse(struct path_memory *last, uint32_t known, uint32_t path)
{
    if (last != NULL)
        last->n = known;
    __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    return path;
}

uint32_t collect_path_of(const uintptr_t *frame, size_t n, bool cut)
{
    struct path_memory *last = my_last();
    uint32_t path = 0, known = 0, depth = (uint32_t)n;
    if (cut && last != NULL && last->root != 0)
        path = last->root;
    else if (cut && (path = child_of(0, 0)) == 0)
        return paths_refuse(last, 0, 0);
    if (last == NULL) {
        while (depth-- > 0) {
            uint32_t next = child_of(path, frame[depth]);
            if (next == 0)
                return paths_refuse(NULL, 0, path);
            path = next;
        }
        return path;
    }
    if (last->root != path) {
        last->root = path;
        last->n = 0;
    }
    const uint32_t most = last->n < depth ? last->n : depth;
    const uintptr_t *at = frame + n;
    while (known < most && last->pc[known] == at[-1]) {
        known++;
        at--;
    }
    if (known > 0)
        path = last->node[known - 1];
    if (known == depth) /* what lies further in stays known */
        return path;
    for (; known < depth; known++) {
        const uintptr_t pc = *--at;
        const uint32_t next = child_of(path, pc);
        if (next == 0)
            return paths_refuse(last, known, path);
        last->pc[known] = pc;
        last->node[known] = path = next;
    }
    last->n = depth;
    return path;
}

void collect_path_refuse(void)
{
    __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
}

uint32_t collect_path_cut(uint32_t path, uintptr_t site, unsigned keep)
{
    unsigned depth = 0;
    uint32_t outer = path;
    for (uint32_t at = path; at != 0; at = paths_node_of(at)->parent)
        depth++;
    if (depth > 0 && depth <= keep + 1)
        return path;
    for (; depth > keep; depth--)
        outer = paths_node_of(outer)->parent;
    const uint32_t cut = child_of(outer, 0);
    return cut != 0 ? child_of(cut, site) : 0;
}

/* The path of a whole stack. */
static uint32_t path_along(struct unwind_stack *stack)
{
    uint32_t at = stack->named < stack->end ? stack->named : stack->end;
    uint32_t path = at < stack->end ? stack->name[at] : 0;
    while (at > stack->first) {
        const uint32_t next = child_of(path, stack->frame[at - 1].pc);
        if (next == 0) {
            stack->named = at;
            return paths_refuse(NULL, 0, path);
        }
        stack->name[--at] = path = next;
    }
    stack->named = at;
    return path;
}

/* Puts the frames of root->path in the place of what lies outwards of root->pc in frame[n], which
 * has room for `most`. Returns how many there are then; *cut: there were more outwards. */
static size_t paths_replant(uintptr_t *frame, size_t n, size_t most,
                            const struct collect_path_root *root, bool *cut)
{
    size_t k =
        1; /* the site may be that of the root again, in a function that is called by itself */
    while (k < n && frame[k] != root->pc)
        k++;
    if (k == n)
        return n;
    while (k > 1 && frame[k - 1] >= root->from && frame[k - 1] < root->to)
        k--;
    for (uint32_t at = root->path; at != 0 && k < most; at = paths_node_of(at)->parent) {
        const uintptr_t pc = paths_node_of(at)->pc;
        *cut |= pc == 0;
        if (pc != 0)
            frame[k++] = pc;
    }
    return k;
}

uint32_t collect_path_here(enum collect_unwinder unwinder, unsigned depth, uintptr_t site,
                           const struct collect_path_root *root)
{
    uintptr_t frame[COLLECT_PATH_DEPTH + 1]; /* one more tells whether there are more */
    bool cut = false;
    /* The library's frames between a root and what it leads to do not count. */
    const size_t most =
        root == NULL || depth + BETWEEN > COLLECT_PATH_DEPTH ? depth + 1 : depth + BETWEEN;
    struct path_memory *last = my_last();
    size_t n = 0;
    if (unwinder == COLLECT_UNWIND_FRAME_POINTERS) {
        n = unwind_by_frame_pointers(site, frame, most);
    } else if (last != NULL && (n = unwind_along(site, most, &last->stack)) > 0) {
        struct unwind_stack *stack = &last->stack;
        if (n <= depth && root == NULL)
            return path_along(stack);
        stack->named = UINT32_MAX; /* what is cut off, or in another place, has no name */
        n = n < most ? n : most;
        for (size_t i = 0; i < n; i++)
            frame[i] = stack->frame[stack->first + i].pc;
    } else {
        n = unwind_by_cursor(site, frame, most);
    }
    if (n == 0)
        return collect_path_of(&site, 1, true);
    if (__builtin_expect(root != NULL, 0))
        n = paths_replant(frame, n, depth + 1, root, &cut);
    return collect_path_of(frame, n < depth ? n : depth, cut || n > depth);
}

uint32_t collect_paths_count(void)
{
    return __atomic_load_n(&n_nodes, __ATOMIC_ACQUIRE);
}

struct collect_path collect_path_at(uint32_t i)
{
    return *paths_node_of(i);
}

uint64_t collect_paths_refused(void)
{
    return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

void collect_paths_before_fork(void)
{
    pthread_mutex_lock(&lock);
    unwind_before_fork();
}

void collect_paths_after_fork(void)
{
    unwind_after_fork();
    pthread_mutex_unlock(&lock);
}
