// pass_search.cpp: what the searches for loops, nests and regions share.
#include "pass_search.h"

#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

using namespace llvm;

LibraryKnown::LibraryKnown(Function &function)
    : all(Triple(function.getParent()->getTargetTriple())), info(all, &function)
{
}

LoopSearch::LoopSearch(LLVMValueRef of, function_ref<bool(Loop &)> wants)
    : function(*cast<Function>(unwrap(of))), tree(function), loops(tree), assumptions(function)
{
    for (Loop *loop : loops.getLoopsInPreorder())
        if (wants(*loop))
            candidates.push_back(loop);
}

unsigned LoopSearch::each(unsigned room, function_ref<bool(Loop &)> fits,
                          function_ref<bool(Loop &, ScalarEvolution &)> find)
{
    if (candidates.empty())
        return 0;
    LibraryKnown library(function);
    ScalarEvolution evolution(function, library.info, assumptions, tree, loops);
    unsigned n = 0;
    for (Loop *loop : candidates) {
        if (n == room)
            break;
        simplifyLoop(loop, &tree, &loops, &evolution, &assumptions, nullptr, false);
        if (!loop->getLoopPreheader() || !loop->getExitBlock() || !fits(*loop))
            continue;
        formLCSSARecursively(*loop, tree, &loops, &evolution);
        n += find(*loop, evolution);
    }
    return n;
}

void pass_clone_way(const struct pass_found_way *way, LLVMBasicBlockRef enter,
                    LLVMBasicBlockRef end, LLVMBasicBlockRef *fast, LLVMValueRef *of, unsigned n)
{
    ValueToValueMapTy map;
    SmallVector<BasicBlock *, 32> made;
    for (unsigned k = 0; k < way->n_blocks; k++) {
        BasicBlock *block = unwrap(way->block[k]);
        made.push_back(CloneBasicBlock(block, map, ".fast", block->getParent()));
        map[block] = made.back();
        made.back()->moveBefore(unwrap(way->block[0]));
        fast[k] = wrap(made.back());
    }
    remapInstructionsInBlocks(made, map);
    for (PHINode &phi : made[0]->phis())
        phi.replaceIncomingBlockWith(unwrap(way->before), unwrap(enter));
    BasicBlock *latch = unwrap(way->block[way->latch]);
    made[way->latch]->getTerminator()->replaceSuccessorWith(unwrap(way->behind), unwrap(end));
    for (PHINode &phi : unwrap(way->behind)->phis()) {
        Value *value = phi.getIncomingValueForBlock(latch);
        auto at = map.find(value);
        phi.addIncoming(at == map.end() ? value : static_cast<Value *>(at->second), unwrap(end));
    }
    for (unsigned k = 0; k < n; k++) {
        if (!of[k])
            continue;
        auto at = map.find(unwrap(of[k]));
        if (at != map.end())
            of[k] = wrap(static_cast<Value *>(at->second));
    }
}
