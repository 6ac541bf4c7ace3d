/* pass_search.h: what the searches for loops, nests and regions share (pass_search.cpp): how loops
 * are brought into form and asked, and a second way through those that were found. */
#ifndef PLAIN_PASS_SEARCH_H
#define PLAIN_PASS_SEARCH_H

#include <llvm-c/Core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop as a whole: blocks in their order, the first of which is its head; the one that leads
 * there, the one behind it, and the number of the latch. */
struct pass_found_way {
    LLVMBasicBlockRef before, behind;
    const LLVMBasicBlockRef *block;
    unsigned n_blocks, latch;
};

/* Adds its blocks once more: from `enter`, and to `end`. of[n]: values of the loop, which become
 * those of the new blocks; others, and NULLs, stay. */
void pass_clone_way(const struct pass_found_way *way, LLVMBasicBlockRef enter,
                    LLVMBasicBlockRef end, LLVMBasicBlockRef *fast, LLVMValueRef *of, unsigned n);

#ifdef __cplusplus
}

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>

/* The loops of a function that are wanted, outermost ones first, and what LLVM knows of them. */
class LoopSearch
{
  public:
    LoopSearch(LLVMValueRef of, llvm::function_ref<bool(llvm::Loop &)> wants);

    /* Asks `find` of one after the other, as long as there is room: how many were found. Each is in
     * LLVM's simple form by then, with phis behind it for what is used there. fits: whether it is
     * still what was wanted. */
    unsigned each(unsigned room, llvm::function_ref<bool(llvm::Loop &)> fits,
                  llvm::function_ref<bool(llvm::Loop &, llvm::ScalarEvolution &)> find);

    llvm::Function &function;
    llvm::DominatorTree tree;
    llvm::LoopInfo loops;
    llvm::SmallVector<llvm::Loop *, 16> candidates;
    llvm::AssumptionCache assumptions;
};

/* What LLVM knows of the C library. */
class LibraryKnown
{
    llvm::TargetLibraryInfoImpl all; /* first: info points to it */

  public:
    explicit LibraryKnown(llvm::Function &function);
    llvm::TargetLibraryInfo info;
};
#endif

#endif
