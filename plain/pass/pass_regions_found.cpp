// pass_regions_found.cpp: what LLVM's scalar evolution knows of nests of several loops, as formulas
// (pass_regions.h).
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include "pass_regions.h"
#include "pass_search.h"

using namespace llvm;

namespace
{
/* Places so far apart are rather not of one array. */
constexpr int64_t FAR_BYTES = 4096;

class RegionFinder
{
  public:
    RegionFinder(Loop &outer, LoopInfo &loops, DominatorTree &tree, ScalarEvolution &evolution,
                 pass_found_region &result)
        : outer(outer), loops(loops), tree(tree), evolution(evolution), r(result)
    {
    }

    bool find()
    {
        r.n_nodes = r.n_unknowns = r.n_cells = r.n_loops = r.n_blocks = 0;
        r.n_accesses = r.n_groups = r.n_results = 0;
        r.before = wrap(outer.getLoopPreheader());
        r.behind = wrap(outer.getExitBlock());
        if (!number_all() || !look_at_loops() || !look_at_blocks())
            return false;
        for (BasicBlock *block : order)
            for (Instruction &instruction : *block)
                if ((isa<LoadInst>(instruction) || isa<StoreInst>(instruction)) &&
                    !add(instruction))
                    return false;
        for (PHINode &phi : outer.getExitBlock()->phis()) {
            Value *value = phi.getIncomingValueForBlock(outer.getLoopLatch());
            if (!is_within(value) || !value->getType()->isFloatingPointTy())
                continue;
            if (!value->getType()->isDoubleTy() || r.n_results == REGION_RESULTS)
                return false;
            r.result[r.n_results++] = wrap(value);
        }
        return !failed;
    }

  private:
    Loop &outer;
    LoopInfo &loops;
    DominatorTree &tree;
    ScalarEvolution &evolution;
    pass_found_region &r;
    bool failed = false;
    SmallVector<BasicBlock *, 32> order;
    DenseMap<const BasicBlock *, unsigned> block_number;
    DenseMap<const Loop *, unsigned> loop_number;
    DenseMap<const SCEV *, unsigned> nodes;
    DenseMap<const PHINode *, unsigned> cells;
    SmallVector<const SCEV *, 16> origins;

    bool is_within(const Value *value) const
    {
        const auto *instruction = dyn_cast<Instruction>(value);
        return instruction && outer.contains(instruction->getParent());
    }

    bool number_all()
    {
        LoopBlocksRPO sorted(&outer);
        sorted.perform(&loops);
        for (BasicBlock *block : sorted) {
            if (order.size() == REGION_BLOCKS)
                return false;
            block_number[block] = order.size();
            order.push_back(block);
        }
        for (Loop *loop : outer.getLoopsInPreorder()) {
            if (r.n_loops == REGION_LOOPS || !loop->isLoopSimplifyForm() ||
                loop->getExitingBlock() != loop->getLoopLatch() || !loop->getExitBlock())
                return false;
            loop_number[loop] = r.n_loops++;
        }
        return true;
    }

    int number_of(const BasicBlock *block) const
    {
        auto at = block_number.find(block);
        return at == block_number.end() ? -1 : static_cast<int>(at->second);
    }

    bool look_at_loops()
    {
        for (Loop *loop : outer.getLoopsInPreorder()) {
            pass_region_loop &of = r.loop[loop_number[loop]];
            const SCEV *taken = evolution.getBackedgeTakenCount(loop);
            of.parent = loop == &outer ? -1 : static_cast<int>(loop_number[loop->getParentLoop()]);
            of.head = block_number[loop->getHeader()];
            of.latch = block_number[loop->getLoopLatch()];
            of.before = loop == &outer ? -1 : number_of(loop->getLoopPreheader());
            of.behind = loop == &outer ? -1 : number_of(loop->getExitBlock());
            of.is_innermost = loop->isInnermost();
            if (isa<SCEVCouldNotCompute>(taken))
                return false;
            of.taken = convert(taken, loop->getParentLoop());
            if (failed || r.node[of.taken].bits < 32)
                return false;
        }
        return true;
    }

    /* Of two ways that come together at a block: the branch that parts them, and the number of the
     * way that its condition leads to. */
    BranchInst *parted(BasicBlock *join, ArrayRef<BasicBlock *> from, unsigned &yes)
    {
        BasicBlock *top = tree.getNode(join)->getIDom()->getBlock();
        auto *branch = dyn_cast<BranchInst>(top->getTerminator());
        if (from.size() != 2 || !branch || !branch->isConditional() ||
            branch->getSuccessor(0) == branch->getSuccessor(1) || !outer.contains(top) ||
            loops.getLoopFor(top) != loops.getLoopFor(join))
            return nullptr;
        int side[2] = {-1, -1};
        for (unsigned k = 0; k < 2; k++)
            for (unsigned s = 0; s < 2; s++) {
                BasicBlock *to = branch->getSuccessor(s);
                if (from[k] == top ? to == join
                                   : to != join && to->getSinglePredecessor() == top &&
                                         tree.dominates(to, from[k]))
                    side[k] = static_cast<int>(s);
            }
        if (side[0] < 0 || side[1] < 0 || side[0] == side[1])
            return nullptr;
        yes = side[0] == 0 ? 0 : 1;
        return branch;
    }

    /* The node of a condition, or -2. */
    int condition_of(Value *condition, const Loop *scope)
    {
        const unsigned had = r.n_nodes, had_cells = r.n_cells;
        const bool before = failed;
        unsigned node = 0;
        if (!is_within(condition)) {
            node = convert(evolution.getSCEV(condition), scope);
        } else if (auto *compare = dyn_cast<ICmpInst>(condition)) {
            const unsigned a =
                convert(evolution.getSCEVAtScope(compare->getOperand(0), scope), scope);
            const unsigned b =
                convert(evolution.getSCEVAtScope(compare->getOperand(1), scope), scope);
            node = make(NODE_COMPARE, 1, a, b, 0, compare->getPredicate());
        } else {
            return -2;
        }
        if (failed && !before) {
            failed = r.n_cells > had_cells; /* one of them has no formula */
            forget(had);
            return -2;
        }
        return static_cast<int>(node);
    }

    /* What could not be made is not known by its number. */
    void forget(unsigned had)
    {
        SmallVector<const SCEV *, 16> gone;
        for (auto &at : nodes)
            if (at.second >= had)
                gone.push_back(at.first);
        for (const SCEV *s : gone)
            nodes.erase(s);
    }

    /* Whether it is known before if a block runs. Those that lead to it are looked at already. */
    bool is_known(BasicBlock &block, const Loop &loop, ArrayRef<BasicBlock *> from)
    {
        if (&block == outer.getHeader())
            return true;
        if (&block == loop.getHeader())
            return r.block[block_number[loop.getLoopPreheader()]].is_known;
        if (tree.dominates(&block, loop.getLoopLatch()))
            return r.block[block_number[loop.getHeader()]].is_known;
        return all_of(from, [&](BasicBlock *other) {
            const pass_region_block &at = r.block[block_number[other]];
            return at.is_known && at.condition > -2;
        });
    }

    bool look_at_blocks()
    {
        for (BasicBlock *block : order) {
            pass_region_block &of = r.block[r.n_blocks++];
            const Loop *loop = loops.getLoopFor(block);
            auto *branch = dyn_cast<BranchInst>(block->getTerminator());
            SmallVector<BasicBlock *, 4> from(predecessors(block));
            of = {};
            of.block = wrap(block);
            of.loop = loop_number[loop];
            of.is_head = loop->getHeader() == block;
            of.condition = of.which = -1;
            of.is_known = is_known(*block, *loop, from);
            if (!branch || from.size() > REGION_FROM)
                return false;
            if (branch->isConditional() && loop->getLoopLatch() != block) {
                if (branch->getSuccessor(0) == branch->getSuccessor(1))
                    return false;
                of.condition = condition_of(branch->getCondition(), loop);
                of.yes = block_number[branch->getSuccessor(0)];
            }
            if (of.is_head) {
                of.n_from = 2;
                of.from[0] = number_of(loop->getLoopPreheader());
                of.from[1] = number_of(loop->getLoopLatch());
                continue;
            }
            for (BasicBlock *other : from)
                of.from[of.n_from++] = number_of(other);
            if (of.n_from > 1)
                if (BranchInst *parts = parted(block, from, of.from_yes)) {
                    const int node = condition_of(parts->getCondition(), loop);
                    of.which = node < 0 ? -1 : node;
                }
        }
        return !failed;
    }

    /* ---- formulas ---- */

    unsigned make(pass_node_kind kind, unsigned bits, unsigned a, unsigned b = 0, unsigned c = 0,
                  int64_t number = 0)
    {
        if (r.n_nodes == REGION_NODES || bits > 64)
            failed = true;
        if (failed)
            return 0;
        r.node[r.n_nodes] = {kind, bits, {a, b, c}, number};
        return r.n_nodes++;
    }

    unsigned bits_of(const SCEV *x) const
    {
        return evolution.getTypeSizeInBits(x->getType());
    }

    unsigned chain(pass_node_kind kind, const SCEVNAryExpr *x, const Loop *scope)
    {
        unsigned node = convert(x->getOperand(0), scope);
        for (unsigned k = 1; k < x->getNumOperands() && !failed; k++)
            node = make(kind, bits_of(x), node, convert(x->getOperand(k), scope));
        return node;
    }

    unsigned convert(const SCEV *x, const Loop *scope)
    {
        if (failed)
            return 0;
        auto at = nodes.find(x);
        if (at != nodes.end())
            return at->second;
        const unsigned node = convert_new(x, scope);
        if (!failed)
            nodes[x] = node;
        return node;
    }

    unsigned convert_new(const SCEV *x, const Loop *scope)
    {
        const unsigned bits = bits_of(x);
        switch (x->getSCEVType()) {
        case scConstant:
            if (bits <= 64)
                return make(NODE_CONSTANT, bits, 0, 0, 0,
                            cast<SCEVConstant>(x)->getAPInt().getSExtValue());
            break;
        case scAddExpr:
            return chain(NODE_ADD, cast<SCEVNAryExpr>(x), scope);
        case scMulExpr:
            return chain(NODE_MUL, cast<SCEVNAryExpr>(x), scope);
        case scSMaxExpr:
            return chain(NODE_SMAX, cast<SCEVNAryExpr>(x), scope);
        case scUMaxExpr:
            return chain(NODE_UMAX, cast<SCEVNAryExpr>(x), scope);
        case scSMinExpr:
            return chain(NODE_SMIN, cast<SCEVNAryExpr>(x), scope);
        case scUMinExpr:
            return chain(NODE_UMIN, cast<SCEVNAryExpr>(x), scope);
        case scUDivExpr: {
            const auto *quotient = cast<SCEVUDivExpr>(x);
            const auto *by = dyn_cast<SCEVConstant>(quotient->getRHS());
            if (!by || by->isZero())
                break;
            return make(NODE_UDIV, bits, convert(quotient->getLHS(), scope), convert(by, scope));
        }
        case scZeroExtend:
            return make(NODE_ZEXT, bits, convert(cast<SCEVCastExpr>(x)->getOperand(), scope));
        case scSignExtend:
            return make(NODE_SEXT, bits, convert(cast<SCEVCastExpr>(x)->getOperand(), scope));
        case scTruncate:
            return make(NODE_TRUNC, bits, convert(cast<SCEVCastExpr>(x)->getOperand(), scope));
        case scPtrToInt:
            return convert(cast<SCEVCastExpr>(x)->getOperand(), scope);
        case scAddRecExpr: {
            const auto *steps = cast<SCEVAddRecExpr>(x);
            auto number = loop_number.find(steps->getLoop());
            if (number == loop_number.end() || !steps->isAffine() ||
                !(scope && steps->getLoop()->contains(scope)))
                break;
            const unsigned start = convert(steps->getStart(), scope);
            const unsigned step = convert(steps->getStepRecurrence(evolution), scope);
            return make(NODE_STEPS, bits, start, step, 0, number->second);
        }
        case scUnknown:
            return convert_unknown(cast<SCEVUnknown>(x)->getValue(), bits);
        default:
            break;
        }
        failed = true;
        return 0;
    }

    unsigned convert_unknown(Value *value, unsigned bits)
    {
        if (!is_within(value)) {
            if (r.n_unknowns == REGION_UNKNOWNS || isa<UndefValue>(value) ||
                !(value->getType()->isIntegerTy() || value->getType()->isPointerTy())) {
                failed = true;
                return 0;
            }
            r.unknown[r.n_unknowns] = wrap(value);
            return make(NODE_UNKNOWN, bits, 0, 0, 0, r.n_unknowns++);
        }
        auto *phi = dyn_cast<PHINode>(value);
        if (!phi) {
            failed = true;
            return 0;
        }
        Loop *loop = loops.getLoopFor(phi->getParent());
        if (loop->getHeader() == phi->getParent())
            return convert_cell(*phi, *loop, bits);
        if (phi->getNumIncomingValues() == 1)
            return convert(evolution.getSCEVAtScope(phi->getIncomingValue(0), loop), loop);
        SmallVector<BasicBlock *, 4> from(phi->blocks());
        unsigned yes = 0;
        BranchInst *parts = parted(phi->getParent(), from, yes);
        const int condition = parts ? condition_of(parts->getCondition(), loop) : -2;
        if (condition < 0) {
            failed = true;
            return 0;
        }
        const unsigned a =
            convert(evolution.getSCEVAtScope(phi->getIncomingValue(yes), loop), loop);
        const unsigned b =
            convert(evolution.getSCEVAtScope(phi->getIncomingValue(1 - yes), loop), loop);
        return make(NODE_CHOICE, bits, condition, a, b);
    }

    unsigned convert_cell(PHINode &phi, Loop &loop, unsigned bits)
    {
        auto at = cells.find(&phi);
        unsigned number = r.n_cells;
        if (at != cells.end()) {
            number = at->second;
        } else {
            if (r.n_cells == REGION_CELLS || bits != 64) {
                failed = true;
                return 0;
            }
            r.n_cells++;
            cells[&phi] = number;
            r.cell[number].phi = wrap(&phi);
            r.cell[number].loop = loop_number[&loop];
            r.cell[number].init = convert(
                evolution.getSCEVAtScope(phi.getIncomingValueForBlock(loop.getLoopPreheader()),
                                         loop.getParentLoop()),
                loop.getParentLoop());
            Value *next = phi.getIncomingValueForBlock(loop.getLoopLatch());
            r.cell[number].next = convert(evolution.getSCEVAtScope(next, &loop), &loop);
        }
        return make(NODE_CELL, bits, 0, 0, 0, number);
    }

    /* ---- places ---- */

    /* Where something is in the first rounds of all loops, as known before: NULL if it is not. */
    const SCEV *origin_of(const SCEV *x, unsigned depth = 0)
    {
        if (depth > 16)
            return nullptr;
        if (const auto *steps = dyn_cast<SCEVAddRecExpr>(x))
            if (loop_number.count(steps->getLoop()))
                return origin_of(steps->getStart(), depth + 1);
        if (evolution.isLoopInvariant(x, &outer))
            return x;
        if (const auto *unknown = dyn_cast<SCEVUnknown>(x)) {
            auto *phi = dyn_cast<PHINode>(unknown->getValue());
            Loop *loop = phi ? loops.getLoopFor(phi->getParent()) : nullptr;
            if (!phi || loop->getHeader() != phi->getParent())
                return nullptr;
            return origin_of(
                evolution.getSCEV(phi->getIncomingValueForBlock(loop->getLoopPreheader())),
                depth + 1);
        }
        if (const auto *sum = dyn_cast<SCEVAddExpr>(x)) {
            SmallVector<const SCEV *, 4> of;
            for (const SCEV *part : sum->operands()) {
                const SCEV *origin = origin_of(part, depth + 1);
                if (!origin)
                    return nullptr;
                of.push_back(origin);
            }
            return evolution.getAddExpr(of);
        }
        if (const auto *product = dyn_cast<SCEVMulExpr>(x)) {
            SmallVector<const SCEV *, 4> of;
            for (const SCEV *part : product->operands()) {
                const SCEV *origin = origin_of(part, depth + 1);
                if (!origin)
                    return nullptr;
                of.push_back(origin);
            }
            return evolution.getMulExpr(of);
        }
        if (const auto *wider = dyn_cast<SCEVZeroExtendExpr>(x)) {
            const SCEV *of = origin_of(wider->getOperand(), depth + 1);
            return of ? evolution.getZeroExtendExpr(of, x->getType()) : nullptr;
        }
        if (const auto *wider = dyn_cast<SCEVSignExtendExpr>(x)) {
            const SCEV *of = origin_of(wider->getOperand(), depth + 1);
            return of ? evolution.getSignExtendExpr(of, x->getType()) : nullptr;
        }
        return nullptr;
    }

    bool group_of(const SCEV *place, unsigned &group)
    {
        const SCEV *origin = origin_of(place);
        if (!origin)
            return false;
        for (unsigned k = 0; k < origins.size(); k++) {
            const auto *apart = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(origin, origins[k]));
            if (!apart || apart->getAPInt().getSignificantBits() > 32)
                continue;
            const int64_t bytes = apart->getAPInt().getSExtValue();
            if (bytes % 8 == 0 && std::abs(bytes) < FAR_BYTES) {
                group = k;
                return true;
            }
        }
        if (r.n_groups == REGION_GROUPS)
            return false;
        group = r.n_groups++;
        origins.push_back(origin);
        r.group[group].origin = convert(origin, outer.getParentLoop());
        r.group[group].is_written = false;
        return !failed;
    }

    /* Which loops a write moves with: 8 bytes with the innermost of them. */
    bool levels_of(const SCEV *offset, pass_region_access &of, const Loop *scope)
    {
        while (const auto *steps = dyn_cast<SCEVAddRecExpr>(offset)) {
            auto number = loop_number.find(steps->getLoop());
            if (number == loop_number.end())
                break;
            if (of.n_levels == REGION_LEVELS || !steps->isAffine())
                return false;
            const SCEV *step = steps->getStepRecurrence(evolution);
            const auto *constant = dyn_cast<SCEVConstant>(step);
            if (of.n_levels == 0 &&
                (!constant || std::abs(constant->getAPInt().getSExtValue()) != 8))
                return false;
            of.level[of.n_levels] = number->second;
            of.step[of.n_levels++] = convert(step, scope);
            offset = steps->getStart();
        }
        return evolution.isLoopInvariant(offset, &outer);
    }

    bool add(Instruction &instruction)
    {
        auto *load = dyn_cast<LoadInst>(&instruction);
        auto *store = load ? nullptr : cast<StoreInst>(&instruction);
        if ((load ? !load->isSimple() : !store->isSimple()) || r.n_accesses == REGION_ACCESSES)
            return false;
        Type *type = load ? load->getType() : store->getValueOperand()->getType();
        Loop *scope = loops.getLoopFor(instruction.getParent());
        Value *pointer = load ? load->getPointerOperand() : store->getPointerOperand();
        const SCEV *place = evolution.getSCEVAtScope(pointer, scope);
        pass_region_access &of = r.access[r.n_accesses++];
        of = {};
        of.instruction = wrap(&instruction);
        of.is_write = store != nullptr;
        of.is_sure = tree.dominates(instruction.getParent(), scope->getLoopLatch());
        if (!type->isDoubleTy() || !group_of(place, of.group))
            return false;
        const SCEV *offset = evolution.getMinusSCEV(place, origins[of.group]);
        r.group[of.group].is_written |= of.is_write;
        if (of.is_write)
            return !isa<SCEVCouldNotCompute>(offset) && levels_of(offset, of, scope) &&
                   (of.offset = convert(offset, scope), !failed);
        if (!isa<SCEVCouldNotCompute>(offset)) {
            of.offset = convert(offset, scope);
        } else { /* behind a pointer that is a cell */
            const unsigned origin = convert(origins[of.group], outer.getParentLoop());
            const unsigned less = make(NODE_CONSTANT, 64, 0, 0, 0, -1);
            of.offset = make(NODE_ADD, 64, convert(place, scope), make(NODE_MUL, 64, origin, less));
        }
        return !failed;
    }
};

bool is_errno(const Value *pointer)
{
    const auto *call = dyn_cast<CallBase>(getUnderlyingObject(pointer));
    const Function *function = call ? call->getCalledFunction() : nullptr;
    return function && function->getName() == "__errno_location";
}

/* A number of rounds, or an array, that is read again in each round, as a function of <math.h> may
 * have changed it: those set errno alone. So it is read before, unless what is stored may be it. */
void read_before(Loop &loop, DominatorTree &tree, AAResults &aliases)
{
    SmallVector<StoreInst *, 16> stores;
    SmallVector<LoadInst *, 8> loads;
    for (BasicBlock *block : loop.blocks())
        for (Instruction &instruction : *block)
            if (auto *store = dyn_cast<StoreInst>(&instruction))
                stores.push_back(store);
    for (BasicBlock *block : loop.blocks())
        for (Instruction &instruction : *block) {
            auto *load = dyn_cast<LoadInst>(&instruction);
            if (!load || !load->isSimple() || load->getType()->isFloatingPointTy() ||
                is_errno(load->getPointerOperand()) || !tree.dominates(block, loop.getLoopLatch()))
                continue;
            bool is_apart = true;
            for (StoreInst *store : stores)
                is_apart = is_apart &&
                           aliases.isNoAlias(MemoryLocation::get(load), MemoryLocation::get(store));
            if (is_apart)
                loads.push_back(load);
        }
    for (bool more = true; more;) {
        more = false;
        for (LoadInst *load : loads)
            if (loop.contains(load) && loop.isLoopInvariant(load->getPointerOperand())) {
                load->moveBefore(loop.getLoopPreheader()->getTerminator());
                more = true;
            }
    }
}

void read_before(LoopSearch &search)
{
    if (search.candidates.empty())
        return;
    LibraryKnown library(search.function);
    TypeBasedAAResult by_type;
    AAResults aliases(library.info);
    aliases.addAAResult(by_type);
    for (Loop *loop : search.candidates) {
        simplifyLoop(loop, &search.tree, &search.loops, nullptr, &search.assumptions, nullptr,
                     false);
        if (loop->getLoopPreheader() && loop->getExitingBlock() == loop->getLoopLatch())
            read_before(*loop, search.tree, aliases);
    }
}

bool is_of_interest(Loop &loop)
{
    unsigned inner = 0, depth = 0;
    for (Loop *sub : loop.getLoopsInPreorder()) {
        inner += sub->isInnermost();
        depth = std::max(depth, sub->getLoopDepth() - loop.getLoopDepth());
    }
    return inner > 1 || depth > 1;
}
} // namespace

unsigned pass_find_regions(LLVMValueRef function, pass_wants_instruction *wants,
                           struct pass_found_region *result, unsigned room)
{
    LoopSearch search(function, [&](Loop &loop) {
        return is_of_interest(loop) && loop.getNumBlocks() <= REGION_BLOCKS &&
               all_of(loop.blocks(), [&](BasicBlock *block) {
                   return all_of(*block, [&](Instruction &v) { return wants(wrap(&v)); });
               });
    });
    read_before(search);
    SmallVector<Loop *, 8> taken;
    return search.each(
        room,
        [&](Loop &loop) {
            return none_of(taken, [&](Loop *other) { return other->contains(&loop); });
        },
        [&](Loop &loop, ScalarEvolution &evolution) {
            if (!RegionFinder(loop, search.loops, search.tree, evolution, result[taken.size()])
                     .find())
                return false;
            taken.push_back(&loop);
            return true;
        });
}

void pass_slots_to_registers(LLVMValueRef of, LLVMValueRef *slot, unsigned n)
{
    DominatorTree tree(*cast<Function>(unwrap(of)));
    SmallVector<AllocaInst *, 64> slots;
    for (unsigned k = 0; k < n; k++)
        slots.push_back(cast<AllocaInst>(unwrap(slot[k])));
    PromoteMemToReg(slots, tree);
}
