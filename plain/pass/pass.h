/* pass.h: what the files of the pass share.
 *
 * The pass goes over each function of a module once, after inlining and before the vectorisers.
 * What a floating value depends on is kept beside the value, at compile time:
 *
 *   an index   a 32-bit value of the program: where the value stands on the tape, 0: a constant
 *   a row      the indices that the value depends on, with a derivative by each
 *
 * Rows are made by the rules of instructions and functions (pass_rules.c), joined within a block,
 * and become records (pass_record.c) where a value leaves it. Indices go through memory by its
 * shadow (pass_memory.c) and through calls by arrays of the thread (pass_calls.c). What would lose
 * a gradient is refused with its line (pass_refuse.c).
 */
#ifndef PLAIN_PASS_H
#define PLAIN_PASS_H

#include "base_table.h"
#include "pass_registration.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>

#include <stdbool.h>
#include <stdint.h>

typedef LLVMValueRef value;
typedef LLVMTypeRef type;

/* A record of more operands would be of another shape (tape_statement_layout.h). */
enum { ROW_ROOM = 12, LEAVES_ROOM = 16 };
/* Pointers of a call that are looked at at once. */
enum { LOOKED_AT = 16 };
/* Where the thread's cursor has its fields (tape_statement_layout.h). */
enum { CURSOR_PARTIAL = 0, CURSOR_WORD = 16, CURSOR_RESULT = 32 };

struct entry {
    value partial; /* double; NULL: 1 */
    value index;   /* i32 */
    bool negative; /* times -1 */
};

struct row {
    unsigned n;
    struct entry entry[ROW_ROOM];
};

/* The floating parts of a value of struct, array or vector type, in the order of memory. */
struct leaf {
    type type;
    uint64_t offset;  /* bytes from the value's begin */
    unsigned path[4]; /* element numbers from outside inwards */
    unsigned depth;
};

struct leaves {
    unsigned n;
    struct leaf leaf[LEAVES_ROOM];
};

/* What lies in the two shadows of an integer that copies floating bits (pass_memory.c). */
struct pair {
    value shadow, checks;
};

/* A helper that is being made (pass_cold_begin). */
struct cold_helper {
    value function;
    LLVMBuilderRef before;
    LLVMBasicBlockRef entry, first, cold, end; /* first: see pass_cold_ask, or NULL */
};

/* What is known of a value of the program. */
struct known {
    value index;        /* i32, or NULL */
    struct row *row;    /* or NULL */
    value *part;        /* indices of its leaves, or NULL */
    struct pair copied; /* of an integer that is a copy, or NULLs */
    struct pair *word;  /* of a structure's integers (pass_words.c), or NULL */
    value shadow;       /* of a pointer: its shadow's address, or NULL */
    int8_t is_copy;     /* whether an integer is such a copy; -1: not asked yet */
};

struct pass {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMTargetDataRef layout;
    LLVMBuilderRef build;
    type i1, i8, i32, i64, real, pointer, nothing;
    value zero; /* i32 0, the index of a constant */
    value cursor, arguments, callee, results, returned;
    value tag_shadow, tag_tape, tag_thread; /* type-based aliasing: they touch nothing else */
    unsigned kind_tbaa, kind_byval, kind_prof;
    LLVMDIBuilderRef lines; /* NULL until needed, or without debug information */
    LLVMMetadataRef lines_file, lines_type;
    value push[ROW_ROOM + 1][3][2];
    value look[4], foreign[LOOKED_AT + 1], returning;
    value real_function;        /* the thread's, of pass_blas.c; NULL until needed */
    struct base_table direct;   /* functions that are called directly alone */
    struct base_table outlined; /* functions that clang has made of OpenMP's regions */
    unsigned n_sites;
    bool strict;
    bool has_floats; /* the module has any */
    unsigned n_refused;
    /* of the function that is gone over */
    struct loops *loops;     /* that are one record, or NULL */
    struct nests *nests;     /* likewise */
    struct regions *regions; /* likewise */
    value written;           /* the same as it was written, or NULL */
    bool derives;            /* rows are made for their derivatives, */
    bool too_long;           /* and one of them has no room */
    value function;
    value called_so;   /* i1: by one that is instrumented; NULL: it is, or it does not matter */
    value word_wanted; /* i1: the caller takes words; NULL: none are given */
    bool unoptimised;
    value variadic; /* what it keeps of its undeclared arguments, or NULL */
    struct known *known;
    size_t n_known, room_known;
    struct base_table places; /* in known[], by value */
};

/* ---- pass_values.c ---- */
struct known *pass_known(struct pass *p, value v);
void pass_known_clear(struct pass *p);
/* float, double or long double. */
bool pass_is_real(type t);
/* The leaves of a type that is not a real itself. False: it has too many floating parts. */
bool pass_leaves(const struct pass *p, type t, struct leaves *leaves);
/* The indices of a value's leaves, zeros where nothing is known. */
value *pass_parts(struct pass *p, value v, unsigned n);
value *pass_parts_set(struct pass *p, value v, unsigned n);
value pass_as_real(struct pass *p, value v); /* as a double */
value pass_part_value(struct pass *p, value v, const struct leaf *leaf);
/* With or without a way out for exceptions. */
bool pass_is_call(value v);
/* Positions the builder behind an instruction, of a call where it has returned; or before it if it
 * ends its block. */
void pass_build_after(struct pass *p, value instruction);
value pass_number32(struct pass *p, uint32_t n);
value pass_number64(struct pass *p, uint64_t n);
value pass_real_number(struct pass *p, double x);
value pass_byte_offset(struct pass *p, value pointer, uint64_t bytes);
value pass_choose(struct pass *p, value condition, value yes, value no);
value pass_load(struct pass *p, type t, value pointer, unsigned alignment, value tag);
value pass_store(struct pass *p, value v, value pointer, unsigned alignment, value tag);
value pass_call_runtime(struct pass *p, const char *name, type result, unsigned n, value *argument);
/* A variable of each thread, of the runtime's. */
value pass_of_thread(struct pass *p, type t, const char *name);
void pass_function_is(struct pass *p, value function, const char *const *attribute);
bool pass_is_one_of(const char *const *names, const char *name);
const char *pass_name_of(value v);

/* ---- pass_record.c ---- */
value pass_record_row(struct pass *p, const struct row *row, value of);
value pass_index_of(struct pass *p, value v);
/* The same, without a record: a value that has none yet is only compared behind its block. */
value pass_index_recorded(struct pass *p, value v);
void pass_row_of(struct pass *p, value v, struct row *row);
/* row += partial * (the row of v), or minus that; partial NULL: 1. */
void pass_row_add(struct pass *p, struct row *row, value v, value partial, bool negative);
bool pass_is_active(struct pass *p, value v);
LLVMMetadataRef pass_lines_of_header(struct pass *p, value function, const char *name);
value pass_call_inlined(struct pass *p, value function, unsigned n, value *argument, value of);
/* A helper that calls something where a condition holds, which is rare. Between begin and branch
 * the condition is made, between branch and end the call. `of`: the types of its n parameters. */
struct cold_helper pass_cold_begin(struct pass *p, const char *name, type result, unsigned n,
                                   type *of);
/* Before the branch, and before its condition is made: where this does not hold, it does not
 * either. */
void pass_cold_ask(struct pass *p, struct cold_helper *helper, value may);
void pass_cold_branch(struct pass *p, const struct cold_helper *helper, value condition);
/* Returns the helper. It gives `said` behind the call, else `otherwise`; NULL: it gives nothing. */
value pass_cold_end(struct pass *p, const struct cold_helper *helper, value said, value otherwise);
void pass_call_apart(struct pass *p, value call);
value pass_call_kept(struct pass *p, const char *name, type result, unsigned n, value *argument);
value pass_cursor_field(struct pass *p, unsigned bytes);
/* i8: whether any double was ever a variable. */
value pass_has_variables(struct pass *p);

/* ---- pass_memory.c ---- */
value pass_shadow_of(struct pass *p, value pointer);
/* What lies in a double's shadow. */
value pass_word_of(struct pass *p, value index, value v);
value pass_index_load(struct pass *p, value shadow, value loaded);
void pass_index_store(struct pass *p, value index, value stored, value shadow);
void pass_shadow_copy(struct pass *p, value to, value from, value bytes);
void pass_shadow_clear(struct pass *p, value to, value bytes);
bool pass_is_copy(struct pass *p, value v);
struct pair pass_copied_of(struct pass *p, value v);
struct pair pass_copied_load(struct pass *p, value shadow, type of);
void pass_copied_store(struct pass *p, struct pair copied, value shadow);
struct pair pass_copied_element(struct pass *p, struct pair copied, value element, unsigned k);
void pass_bits_check(struct pass *p, value loaded);
/* Of an integer in a register, where its bits are used; so: i1, where this holds, used or not. */
void pass_bits_check_word(struct pass *p, value v, struct pair pair, value so);
/* Which halves of a word are computed with: bits [low, high) of it are what v has. */
enum { LOWER_HALF = 1, UPPER_HALF = 2, BOTH_HALVES = 3 };
unsigned pass_halves_used(struct pass *p, value v, uint64_t low, uint64_t high, unsigned depth);
/* Of one whose halves go apart: a double's are a number each. */
void pass_halves_check(struct pass *p, value v, struct pair pair);
/* Of one whose half is computed with. */
void pass_half_check(struct pass *p, value v, struct pair pair, bool upper_half);
/* Whether what is loaded or stored as an integer may be a floating value. */
bool pass_may_be_bits(const struct pass *p, value access);
struct pair pass_copied_from(struct pass *p, value index, value v);
value pass_copied_as(struct pass *p, struct pair copied, value v);

/* ---- pass_words.c ---- */
bool pass_is_word_type(type t);
bool pass_is_word_parameter(const struct pass *p, value v);
/* Whether an integer goes into a call as one that holds more than a number; comes from one so. */
bool pass_takes_word(const struct pass *p, value call, value v);
bool pass_result_is_word(const struct pass *p, value v);
bool pass_returns_word(const struct pass *p, type t);
bool pass_wants_words(struct pass *p, value call);
bool pass_has_words(struct pass *p, value call);
void pass_words_load(struct pass *p, value v);
void pass_words_store(struct pass *p, value v);
void pass_words_choose(struct pass *p, value v);
void pass_words_phi_make(struct pass *p, value v);
void pass_words_phi_fill(struct pass *p, value v, value from, LLVMBasicBlockRef block);
void pass_words_extract(struct pass *p, value v);
void pass_words_take(struct pass *p);
void pass_words_return(struct pass *p, value instruction);
void pass_words_put(struct pass *p, value call);
void pass_words_look(struct pass *p, value call, value foreign);
void pass_words_given(struct pass *p, value call);
/* Whether an instruction only moves bytes, by shifts and masks. */
bool pass_is_move(value v);
void pass_move_visit(struct pass *p, value v);

/* ---- pass_rules.c ---- */
bool pass_has_rule(value instruction);
/* Whether its result is one of its operands, so that no statement is made of it. */
bool pass_only_chooses(value instruction);
void pass_apply_rule(struct pass *p, value instruction);

/* What a value depends on, as a row that is not recorded: p->derives. */
void pass_derive_row(struct pass *p, value v);

/* ---- pass_loops.c ---- */
/* Loops of a function that are one record where they can be: each has a second way through it. */
void pass_loops_prepare(struct pass *p);
void pass_loops_end(struct pass *p);
/* Whether a block is that way, which is left as it is. */
bool pass_is_fast_loop(const struct pass *p, LLVMBasicBlockRef block);
/* Whether an instruction is of its calls; what they need is put there. */
bool pass_loop_visit(struct pass *p, value v);

/* ---- pass_written.c ---- */
/* The same function once more, which is not recorded, where that can be; called before it is gone
 * over, and behind. */
void pass_written_prepare(struct pass *p);
void pass_written_end(struct pass *p);

/* ---- pass_nests.c ---- */
/* The same of nests of two loops; pass_loops.c calls them. */
void pass_nests_prepare(struct pass *p);
void pass_nests_end(struct pass *p);
bool pass_is_fast_nest(const struct pass *p, LLVMBasicBlockRef block);
bool pass_nest_visit(struct pass *p, value v);

/* ---- pass_regions.c ---- */
/* The same of nests of several loops. */
void pass_regions_prepare(struct pass *p);
void pass_regions_end(struct pass *p);
bool pass_is_fast_region(const struct pass *p, LLVMBasicBlockRef block);
bool pass_region_visit(struct pass *p, value v);

/* ---- pass_calls.c ---- */
/* Finds the functions that nobody outside the module calls, and none by their address, before
 * functions are gone over: what that adds uses addresses as well. */
void pass_find_direct(struct pass *p);
bool pass_is_passive_callee(value instruction);
void pass_take_arguments(struct pass *p);
void pass_call(struct pass *p, value call);
void pass_return(struct pass *p, value instruction);
/* A return of a function that is not recorded: its results are constants. */
void pass_return_constants(struct pass *p, value instruction);
void pass_calls_rename(struct pass *p);
/* What is called by this name becomes the runtime's ad_plain_call_NAME. */
void pass_call_renamed(struct pass *p, const char *name);
void pass_calls_strip(struct pass *p);

/* ---- pass_blas.c ---- */
bool pass_blas_is_passive(const char *name);
/* Uses of the address of a function of BLAS that has a rule become those of one that calls it. */
void pass_blas_point(struct pass *p);
/* The runtime's function that is called instead, or NULL. */
value pass_blas_wrapper(struct pass *p, value callee);
/* i32 before a call of BLAS that has no rule: whether active values go in. NULL: it is none. */
value pass_blas_look(struct pass *p, value call);
/* Behind it: says so. */
void pass_blas_say(struct pass *p, value call, value found, value active);

/* ---- pass_skip.c ---- */
bool pass_is_skipped(value function);

/* ---- pass_variadic.c ---- */
/* The words of a call's undeclared floating arguments, where its function takes any. False: it
 * takes none. */
bool pass_variadic_put(struct pass *p, value call);
void pass_variadic_take(struct pass *p);
/* Behind va_start of this list. */
void pass_variadic_begin(struct pass *p, value list);

/* ---- pass_cxx.c ---- */
bool pass_is_cxx_call(const char *name);
/* std::ostream << and std::istream >> of a floating number. */
bool pass_writes_to_stream(const char *name);
bool pass_reads_from_stream(const char *name);

/* ---- pass_threads.c ---- */
void pass_threads_prepare(struct pass *p);
/* Behind a call of it the thread may record on another tape. */
bool pass_switches_tape(const char *name);
/* Of OpenMP's or POSIX' libraries, which take no values. */
bool pass_is_thread_call(const char *name);
bool pass_is_refused_thread_call(const char *name);
/* A function that takes integers with their shadow, and a call that gives them. */
bool pass_is_outlined(const struct pass *p, value function);
bool pass_gives_words(const struct pass *p, value call);

/* ---- pass_across.c ---- */
/* A value that is used behind a call that may drop what was recorded goes through memory. */
void pass_values_across_calls(struct pass *p);

/* ---- pass_refuse.c ---- */
/* A floating type that the pass does not follow. */
bool pass_is_other_real(type t);
/* A gradient would be lost here: a warning with the line, an error if strict. */
void pass_refuse(struct pass *p, value instruction, const char *why);
/* Says so of a floating value whose bits, an integer, are computed with. */
void pass_refuse_bits(struct pass *p, value cast);
/* Whether an integer is used as more than a condition or a copy. */
bool pass_bits_are_used(struct pass *p, value v);
/* Whether bits that become a floating value may be those of one: they are no number that is made
 * of random bits and a constant exponent. */
bool pass_may_be_real_bits(value v, unsigned depth);

#endif
