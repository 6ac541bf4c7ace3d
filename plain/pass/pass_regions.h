/* pass_regions.h: between pass_regions.c and what it asks LLVM of nests of several loops
 * (pass_regions_found.cpp). */
#ifndef PLAIN_PASS_REGIONS_H
#define PLAIN_PASS_REGIONS_H

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    REGION_NODES = 768,
    REGION_BLOCKS = 64,
    REGION_LOOPS = 16,
    REGION_ACCESSES = 96,
    REGION_GROUPS = 15,
    REGION_UNKNOWNS = 48,
    REGION_CELLS = 8,
    REGION_RESULTS = 4,
    REGION_FROM = 4,
    REGION_LEVELS = 2
};

/* An integer of the region, or a pointer, as a formula of what is known before it, of the rounds of
 * its loops, and of cells. */
enum pass_node_kind {
    NODE_CONSTANT, /* number */
    NODE_UNKNOWN,  /* known before: unknown[number] */
    NODE_CELL,     /* cell[number] */
    NODE_STEPS,    /* of[0] + (round of the loop `number`) of[1] */
    NODE_ADD,
    NODE_MUL,
    NODE_UDIV,
    NODE_SMAX,
    NODE_UMAX,
    NODE_SMIN,
    NODE_UMIN,
    NODE_ZEXT,
    NODE_SEXT,
    NODE_TRUNC,
    NODE_COMPARE, /* number: the predicate */
    NODE_CHOICE   /* of[0] ? of[1] : of[2] */
};

struct pass_node {
    enum pass_node_kind kind;
    unsigned bits, of[3];
    int64_t number;
};

/* A phi at a loop's head that is no formula of rounds. */
struct pass_cell {
    LLVMValueRef phi;
    unsigned loop, init, next; /* nodes */
};

struct pass_region_loop {
    int parent;           /* loop, or -1 */
    unsigned head, latch; /* blocks */
    int before, behind;   /* blocks; of the outermost loop -1: not of the region */
    unsigned taken;       /* node: rounds but the first */
    bool is_innermost;
};

struct pass_region_block {
    LLVMBasicBlockRef block;
    unsigned loop;
    bool is_head;
    bool is_known; /* whether it runs is known before */
    unsigned n_from;
    int from[REGION_FROM]; /* blocks that lead here; of a head: from before the loop, the latch */
    int condition;         /* node of its branch; -1: there is none, -2: it is not known before */
    unsigned yes;          /* the block that it goes to where that holds */
    int which;             /* node of which way has led here; -1: it has to be kept */
    unsigned from_yes;     /* the number in from[] if that holds; else it is the other */
};

/* A double that is read or written: at a group's origin and `offset`, a node, bytes. */
struct pass_region_access {
    LLVMValueRef instruction;
    unsigned group, offset;
    bool is_write, is_sure; /* sure: in each round of its loop */
    /* Of a write: loops that it moves with, from inside out, and by how many bytes: nodes. */
    unsigned n_levels, level[REGION_LEVELS], step[REGION_LEVELS];
};

struct pass_region_group {
    unsigned origin; /* node: a pointer that is known before */
    bool is_written;
};

struct pass_found_region {
    LLVMBasicBlockRef before, behind;
    unsigned n_nodes, n_unknowns, n_cells, n_loops, n_blocks, n_accesses, n_groups, n_results;
    struct pass_node node[REGION_NODES];
    LLVMValueRef unknown[REGION_UNKNOWNS];
    struct pass_cell cell[REGION_CELLS];
    struct pass_region_loop loop[REGION_LOOPS];    /* each behind the one it is in */
    struct pass_region_block block[REGION_BLOCKS]; /* each behind those that lead to it */
    struct pass_region_access access[REGION_ACCESSES];
    struct pass_region_group group[REGION_GROUPS];
    LLVMValueRef result[REGION_RESULTS]; /* doubles that are used behind */
};

/* Whether an instruction may be of a region. */
typedef bool pass_wants_instruction(LLVMValueRef v);

/* Looks at nests of several loops of a function, outermost ones first: the first `room` that fit.
 * Loops get blocks before and behind them. */
unsigned pass_find_regions(LLVMValueRef function, pass_wants_instruction *wants,
                           struct pass_found_region *result, unsigned room);

/* Slots on the stack become registers. */
void pass_slots_to_registers(LLVMValueRef function, LLVMValueRef *slot, unsigned n);

#ifdef __cplusplus
}
#endif

#endif
