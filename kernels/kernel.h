/* kernel.h: what an op is, and how it is run. The public face of kernels/.
 *
 * Kernels are mathematics on buffers: no allocation, no I/O, no mutable state; workspace is
 * declared by the op and supplied by the caller. The tape knows ops only through `const struct
 * kernel_op *`.
 *
 * Invariant: everything that is to be known about an op stands in its row (elementwise.def) or in
 * its file (kernels/ops/FOLDER/NAME.c); nothing outside kernels/ switches on which op it is.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KERNEL_MAX_RANK = 8,
    KERNEL_MAX_IN = 6,
    KERNEL_MAX_OUT = 4,
    KERNEL_MAX_ATTR = 24,     /* 64-bit words, see kernel_attr_kind */
    KERNEL_ERROR_BYTES = 200, /* a shape error's text, with its terminating zero */
};

enum kernel_dtype { KERNEL_F32, KERNEL_F64, KERNEL_I64, KERNEL_DTYPES };

/* An n-dimensional array. Strides are in elements, may be 0 (broadcast) and are never negative.
 * `contiguous` says that the elements lie in row-major order without gaps. Shape and strides belong
 * to whoever made the array. A rank-0 array has size 1. */
struct kernel_array {
    void *data;
    const int64_t *shape;
    const int64_t *strides;
    int64_t size; /* number of elements */
    uint8_t dtype;
    uint8_t rank;
    bool contiguous;
    /* In a sweep of several seeds: the array is that of the first, those of the others follow, so
     * many elements behind each other; 0: it is the same for all. Ops see one of them. */
    uint32_t seed_stride;
};

typedef const struct kernel_array *kernel_ref;

/* What a shape rule says of one output. */
struct kernel_shape {
    int64_t extent[KERNEL_MAX_RANK];
    int64_t stride[KERNEL_MAX_RANK]; /* only with view_of >= 0 */
    int64_t offset;                  /* elements from the viewed data; only with view_of >= 0 */
    uint8_t dtype;
    uint8_t rank;
    int8_t same_as; /* input whose rank and extents (not dtype) these are, extent[] unset; or -1 */
    int8_t view_of; /* input whose buffer the output aliases, no forward is run; or -1 */
};

/* One run of an op. Attributes are 64-bit words: integers, flags, or doubles bit for bit; a list
 * (axes, a shape) stands last and takes the rest of the words. */
struct kernel_call {
    const struct kernel_op *op;
    const kernel_ref *in;
    struct kernel_array *const *out;
    const int64_t *attr;
    int n_in, n_out, n_attr;
    bool accumulate; /* out += result instead of out = result; only where op->accumulates */
    void *workspace; /* 64-byte aligned, of kernel_workspace() bytes, or KERNEL_NO_WORKSPACE */
    char *error;     /* KERNEL_ERROR_BYTES; a rule that refuses writes its reason here */
};

struct kernel_depends; /* kernel_depends.h */

struct kernel_cost {
    uint64_t flops;
    uint64_t bytes; /* read and written, each operand once */
};

enum kernel_attr_kind {
    KERNEL_ATTR_FLAG,  /* one word, 0 or 1; that of a public op is in KERNEL_FLAG_MAP */
    KERNEL_ATTR_INT,   /* one word */
    KERNEL_ATTR_REAL,  /* one word, a double's bits: kernel_attr_real() */
    KERNEL_ATTR_DTYPE, /* one word, an enum kernel_dtype */
    /* One word, a field of the public function's options, where 0 stands for 0, for 1, or for the
     * extent of the kernel on this axis ("stride_h": kernel_h). The op itself sees no default. */
    KERNEL_ATTR_OPTION,
    KERNEL_ATTR_OPTION_ONE,
    KERNEL_ATTR_OPTION_KERNEL,
    KERNEL_ATTR_AXES,  /* the rest: axes, negative ones count from the end; none means all */
    KERNEL_ATTR_SHAPE, /* the rest: extents, or other numbers, one for each axis of the result */
    KERNEL_ATTR_LIST   /* the rest: numbers, as many as the op's shapes say */
};

struct kernel_attr_info {
    const char *name;
    enum kernel_attr_kind kind;
};

/* The flags of public ops: the public name behind AD_, the attribute, what it asks for. The bits
 * follow the rows, the first one is bit 1: no row moves or goes, a new one stands at the end. */
#define KERNEL_FLAG_MAP(X)                                                                         \
    X(KEEPDIM, "keepdim", "the axes that go stay, of extent 1")                                    \
    X(CAUSAL, "causal", "row i sees columns 0 to i alone")                                         \
    X(KEEP_WEIGHTS, "keep_weights", "the weights stay on the tape")                                \
    X(UPPER, "upper", "the upper triangle, else the lower")                                        \
    X(TRANSPOSED, "transposed", "the matrix transposed")                                           \
    X(UNIT_DIAGONAL, "unit_diagonal", "the diagonal is taken for 1")                               \
    X(DESCENDING, "descending", "from the greatest to the least")                                  \
    X(REVERSE, "reverse", "from the end of the axis")                                              \
    X(SKIP_PADDING, "skip_padding", "means over what lies inside of x alone")                      \
    X(SMALLEST, "smallest", "the least numbers, in ascending order")

/* One for each bit from bit 1 on; a name of NULL ends it. */
struct kernel_flag {
    const char *name, *attribute, *text;
};
extern const struct kernel_flag kernel_flags[];
/* The bit of an attribute's flag; 0: it has no public name. */
unsigned kernel_flag_bit(const char *attribute);

/* Input and attributes that exercise an op: drives gradcheck, edge tests and benchmarks. */
struct kernel_sample {
    int n_in, n_attr;
    uint8_t dtype[KERNEL_MAX_IN]; /* KERNEL_I64 where it must be, else KERNEL_F64: any float */
    uint8_t rank[KERNEL_MAX_IN];
    uint8_t switches; /* bit i: a float that is drawn like an integer; no gradient in it is asked */
    int64_t shape[KERNEL_MAX_IN][KERNEL_MAX_RANK];
    double low[KERNEL_MAX_IN], high[KERNEL_MAX_IN]; /* domain; integers are drawn in [low, high) */
    double diagonal[KERNEL_MAX_IN]; /* (k + 1) times that is added to element (k, k) or [k] */
    int64_t attr[KERNEL_MAX_ATTR];
};

/* The rule context. A pullback is written once against it. One context runs kernels in place
 * (adjoints accumulate with beta = 1), the other records what the pullback does on the tape, so
 * that it can be differentiated again.
 *
 * adjoint[o] is the adjoint of output o, NULL where none has arrived. in[i]->data may be read by
 * ops given to the context only where the op says that it saves input i (out[o] likewise); shape
 * and dtype are always there. kernel_emit() gives NULL when memory ran out, and all calls then do
 * nothing with a NULL operand, so that a rule needs no error handling. */
struct kernel_rule {
    const struct kernel_rule_class *class_;
    const struct kernel_op *op;
    const kernel_ref *in;
    const kernel_ref *out;
    const kernel_ref *adjoint;
    const int64_t *attr;
    int n_in, n_out, n_attr;
    uint64_t needs; /* bit i: input i wants an adjoint */
};

struct kernel_rule_class {
    bool records;
    void (*emit)(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                 const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results);
    void (*accumulate)(struct kernel_rule *rule, int input, const struct kernel_op *op, int n_in,
                       const kernel_ref *in, int n_attr, const int64_t *attr);
    /* NULL: emitted, then accumulated. */
    void (*accumulate_all)(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                           const kernel_ref *in, int n_attr, const int64_t *attr);
};

/* True if input i wants an adjoint: work for others can be left out. */
static inline bool kernel_needs(const struct kernel_rule *rule, int i)
{
    return (rule->needs >> i & 1) != 0;
}

/* All outputs of `op` applied to values of the rule, into results[op->n_out]; all NULL if that
 * failed. Their buffers live until the pullback returns. */
static inline void kernel_emit_all(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                                   const kernel_ref *in, int n_attr, const int64_t *attr,
                                   kernel_ref *results)
{
    rule->class_->emit(rule, op, n_in, in, n_attr, attr, results);
}

/* Output 0 of `op` applied to values of the rule; its buffer lives until the pullback returns. */
static inline kernel_ref kernel_emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                                     const kernel_ref *in, int n_attr, const int64_t *attr)
{
    kernel_ref results[KERNEL_MAX_OUT];
    kernel_emit_all(rule, op, n_in, in, n_attr, attr, results);
    return results[0];
}

/* Adds output 0 of `op` to the adjoint of input `input`, summed over the axes along which that
 * input was broadcast. Does nothing if the input wants no adjoint. */
static inline void kernel_accumulate(struct kernel_rule *rule, int input,
                                     const struct kernel_op *op, int n_in, const kernel_ref *in,
                                     int n_attr, const int64_t *attr)
{
    if (kernel_needs(rule, input))
        rule->class_->accumulate(rule, input, op, n_in, in, n_attr, attr);
}

/* A box from which the operands of an elementwise op are drawn in gradient checks. */
struct kernel_domain {
    double a[2], b[2], c[2]; /* from, to, for each operand; equal ends follow the last domain */
    unsigned switches;       /* as in kernel_sample */
};

struct kernel_op {
    const char *name;
    const char *const *in_names; /* n_in names, for the header, messages and docs; see variadic */
    const struct kernel_attr_info *attrs;
    int n_in, n_out, n_attrs;
    int n_results; /* outputs that the public function gives, 0 means 1; the rest are hidden */
    const char *const *result_names; /* of results 1 to n_results - 1 */
    bool hidden;                     /* a building block of pullbacks, not in the public header */
    bool elementwise; /* broadcasts; out[i] depends on the operands' element i alone */
    bool accumulates; /* forward honours call->accumulate on output 0 */
    uint8_t batches;  /* operands of so many axes or more (0: none) may have further ones in front,
                       * which broadcast; its attributes do not depend on them */
    bool variadic;    /* takes n_in or more operands, all called in_names[0]; no list attribute */
    bool any_dtype;   /* moves elements: float operands may as well be i64 */
    bool draws;       /* at random, by a seed among its attributes */
    bool constant;    /* piecewise constant: no gradient flows, said in `derivative` */
    uint8_t saves_in; /* bit i: the pullback reads input i */
    uint8_t saves_out;
    /* What of saves_in the adjoint of input i depends on; all 0: each may on all of it. For it
     * nothing else may be touched, even to no effect, since the buffer may be gone; unless
     * touches_all says that the pullback computes all adjoints at once. */
    uint8_t reads_for[KERNEL_MAX_IN];
    bool touches_all;
    /* Which elements of output o can depend on which of input i (kernel_depends.h); NULL: those of
     * elementwise ops by element, else all on all. Bit i of depends_reads: it reads the elements of
     * input i, which no output depends on. */
    void (*depends)(const struct kernel_call *call, int o, int i, struct kernel_depends *d);
    uint8_t depends_reads;
    /* Elementwise ops only: its place in the table of loops (elementwise.h), and the domains of its
     * samples. */
    int loop;
    const struct kernel_domain *domains;
    const void *family; /* what ops that share their functions differ in, or NULL */

    /* Ranks, extents and dtypes of the outputs from those of the operands and attributes.
     * Returns 0, or what kernel_infer returns, with call->error. call->out is not set. */
    int (*shape)(const struct kernel_call *call, struct kernel_shape *out);
    /* Returns 0, or -1 with call->error (operand values that are refused). */
    int (*forward)(const struct kernel_call *call);
    void (*pullback)(struct kernel_rule *rule);
    /* Flops for each element of the largest operand or output, none where one is empty; an
     * elementary function by its usual number of multiplications and additions. With `cost` not
     * NULL that function is asked instead. */
    double flops_per_element;
    struct kernel_cost (*cost)(const struct kernel_call *call);
    size_t (*workspace)(const struct kernel_call *call); /* NULL: none */
    /* Fills the k-th sample, false when there is none; every op has a 0th. */
    bool (*sample)(int k, struct kernel_sample *sample);

    /* For people: the generated header and the table of ops. */
    const char *brief;      /* "Matrix product." */
    const char *shapes;     /* "a [m,k], b [k,n] -> [m,n]" */
    const char *formula;    /* "c_ij = sum_k a_ik b_kj" */
    const char *derivative; /* "a' += c' b^T, b' += a^T c'" */
    const char *edges;      /* values at 0, inf, NaN, ties; NULL: as IEEE 754 arithmetic has it */
    /* Bound on the error of a value by dtype, in units in the last place, 0: none is known; and
     * what multiplies it at some arguments, or NULL. */
    double ulps[2];
    const char *ulps_times;
    const char *source; /* publication of a formula that is not textbook, or NULL */
};

/* Outputs that the public function gives. */
static inline int kernel_results(const struct kernel_op *op)
{
    return op->n_results ? op->n_results : 1;
}

/* What operand i is called. */
static inline const char *kernel_in_name(const struct kernel_op *op, int i)
{
    return op->in_names[op->variadic ? 0 : i];
}

/* Bit i: the pullback reads input i where the inputs of `needs` want an adjoint. */
static inline unsigned kernel_reads(const struct kernel_op *op, uint64_t needs)
{
    unsigned reads = 0, any = 0;
    for (int i = 0; i < KERNEL_MAX_IN; i++) {
        any |= op->reads_for[i];
        if (needs >> i & 1)
            reads |= op->reads_for[i];
    }
    return any || !needs ? reads : op->saves_in;
}

/* The same of what the pullback touches, be it to no effect. */
static inline unsigned kernel_touches(const struct kernel_op *op, uint64_t needs)
{
    return op->touches_all && needs ? op->saves_in : kernel_reads(op, needs);
}

/* All ops: rows first, then the files, folder by folder in alphabetical order. *n receives their
 * number. */
const struct kernel_op *const *kernel_ops(int *n);

/* Fused derivatives of the rows ("tanh dx"), which pullbacks run in place and nobody else. */
const struct kernel_op *const *kernel_row_terms(int *n);

/* An op of either list by its name, and its place in the two lists; NULL: there is none. at: a
 * place to look at first. */
const struct kernel_op *kernel_op_find(const char *name, int at);
int kernel_op_place(const struct kernel_op *op);

/* What kernel_infer returns besides 0. */
enum { KERNEL_REFUSED = -1, KERNEL_REFUSED_DTYPE = -2, KERNEL_REFUSED_ATTRIBUTE = -3 };

/* Shapes of the outputs into out[op->n_out]. Returns 0, or why not, with the text in
 * call->error. Also refuses mixed float dtypes, more than KERNEL_MAX_RANK axes and sizes that
 * overflow. */
int kernel_infer(const struct kernel_call *call, struct kernel_shape *out);

/* What lies some bytes behind a buffer. That of an array without elements may be NULL, from which C
 * lets nobody count, not even 0 bytes. */
static inline void *kernel_behind(const void *buffer, int64_t bytes)
{
    return bytes != 0 ? (char *)(uintptr_t)buffer + bytes : (char *)(uintptr_t)buffer;
}

/* The workspace of a call that needs none. It is not NULL, so that kernels may divide it into parts
 * of 0 bytes. Constant, so that a write to it is a crash. */
extern const char kernel_no_workspace[1];
#define KERNEL_NO_WORKSPACE ((void *)(uintptr_t)kernel_no_workspace)

/* Bytes of workspace of a call whose outputs are set. */
size_t kernel_workspace(const struct kernel_call *call);

/* Runs the op. For an elementwise op with call->accumulate, out[0] may have fewer or shorter
 * axes than the operands broadcast to: the result is summed over them. Returns 0, or -1 with
 * call->error. Thread-safe: works on its arguments alone. */
static inline int kernel_run(const struct kernel_call *call)
{
    return call->op->forward(call);
}

/* Sum of flops and bytes moved of a call whose outputs are set. */
struct kernel_cost kernel_cost_of(const struct kernel_call *call);

/* Size in bytes of one element, and the dtype's name ("f32", "f64", "i64"). */
static inline size_t kernel_dtype_bytes(int dtype)
{
    return dtype == KERNEL_F32 ? 4 : 8;
}
const char *kernel_dtype_name(int dtype);

/* Writes "f64 [3,4]" into buf, cut to n bytes; returns buf. */
const char *kernel_describe(kernel_ref array, char *buf, size_t n);

/* Whether two arrays have the same axes and extents. */
static inline bool kernel_same_extents(kernel_ref a, kernel_ref b)
{
    if (a->rank != b->rank)
        return false;
    for (int axis = 0; axis < a->rank && a->shape != b->shape; axis++)
        if (a->shape[axis] != b->shape[axis])
            return false;
    return true;
}

/* Row-major strides of a shape; returns the number of elements, or -1 if it or any extent is
 * negative, or if its bytes overflow ptrdiff_t. */
int64_t kernel_strides(int rank, const int64_t *shape, size_t elem_bytes, int64_t *strides);

static inline double kernel_attr_real(int64_t word)
{
    union {
        int64_t i;
        double d;
    } u = {.i = word};
    return u.d;
}

static inline int64_t kernel_attr_word(double value)
{
    union {
        double d;
        int64_t i;
    } u = {.d = value};
    return u.i;
}

/* Lets OpenBLAS take the buffers that its threads keep for the life of the process: its first
 * product would hang if it could not have them then. 0, or -1 with the reason in error[n]: there is
 * no memory for them, and OpenBLAS has not been called. */
int kernel_prime(char *error, size_t n);

/* Threads that OpenBLAS and large loops use: set, or what OpenBLAS began with. Setting returns 0,
 * or -1 with the reason in error[size], everything as it was: there is no memory for what OpenBLAS
 * needs for them, or they cannot be made. 1 <= n <= KERNEL_MAX_THREADS. Nothing but sums within
 * products and decompositions depends on it. Any thread, but not at the same time. */
enum { KERNEL_MAX_THREADS = 64 };
int kernel_threads(void);
int kernel_set_threads(int n, char *error, size_t size);

/* Name of the instruction set that the loops use here: "portable", "avx2", "avx512". */
const char *kernel_isa_name(void);
/* Its place in that list, from 0. */
int kernel_isa_level(void);
/* Whether this build has loops for these sets; where it has not, the level is never theirs. */
#ifdef KERNEL_WITHOUT_AVX2
#define KERNEL_HAS_AVX2 0
#else
#define KERNEL_HAS_AVX2 1
#endif
#ifdef KERNEL_WITHOUT_AVX512
#define KERNEL_HAS_AVX512 0
#else
#define KERNEL_HAS_AVX512 1
#endif

#endif
