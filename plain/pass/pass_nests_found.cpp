// pass_nests_found.cpp: what LLVM's scalar evolution knows of nests of two loops: how often they
// run, and where they read and write in each round.
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#include "pass_nests.h"
#include "pass_search.h"

using namespace llvm;

namespace
{
/* first + i step. */
struct Line {
    const SCEV *first, *step;
};

struct Access {
    Instruction *instruction;
    const SCEV *base, *outer, *inner;
    bool runs_on, is_inner, is_guarded;
};

/* Of two numbers the one that stays, and the other. */
struct Chosen {
    const SCEV *stays, *other;
};

/* A greater one of two in a number of rounds becomes the one that stays: j = i; j < n has
 * max(n, i + 1) - i of them. That it is the greater is for the runtime to say. */
class Chooser : public SCEVRewriteVisitor<Chooser>
{
  public:
    Chooser(ScalarEvolution &evolution, Loop &outer, Chosen &chosen)
        : SCEVRewriteVisitor(evolution), evolution(evolution), outer(outer), chosen(chosen)
    {
    }

    const SCEV *visitSMaxExpr(const SCEVSMaxExpr *x)
    {
        return choose(x);
    }

    const SCEV *visitUMaxExpr(const SCEVUMaxExpr *x)
    {
        return choose(x);
    }

  private:
    ScalarEvolution &evolution;
    Loop &outer;
    Chosen &chosen;

    const SCEV *choose(const SCEVNAryExpr *x)
    {
        if (x->getNumOperands() != 2 ||
            (chosen.stays && chosen.stays != x->getOperand(0) && chosen.stays != x->getOperand(1)))
            return x;
        const bool first = evolution.isLoopInvariant(x->getOperand(0), &outer);
        chosen = {x->getOperand(first ? 0 : 1), x->getOperand(first ? 1 : 0)};
        return chosen.stays;
    }
};

class NestFinder
{
  public:
    NestFinder(Loop &outer, Loop &inner, ScalarEvolution &evolution)
        : outer(outer), inner(inner), evolution(evolution), before(*outer.getLoopPreheader()),
          body(*inner.getHeader()), i64(Type::getInt64Ty(body.getContext()))
    {
    }

    bool find(pass_found_nest &result)
    {
        result = {};
        if (!walk(result))
            return false;
        const SCEV *taken = evolution.getBackedgeTakenCount(&outer);
        const SCEV *taken_within = evolution.getBackedgeTakenCount(&inner);
        if (isa<SCEVCouldNotCompute>(taken) || isa<SCEVCouldNotCompute>(taken_within) ||
            !is_safe(taken))
            return false;
        if (const auto *wide = dyn_cast<SCEVZeroExtendExpr>(taken_within))
            taken_within = wide->getOperand();
        Chosen chosen = {};
        Chooser chooser(evolution, outer, chosen);
        if (!line_of(taken_within, trips) && (join || !line_of(chooser.visit(taken_within), trips)))
            return false;
        result.to_is_most = chosen.stays;
        if (chosen.stays && (!line_of(chosen.stays, to) || !line_of(chosen.other, from)))
            return false;
        trips.first = evolution.getAddExpr(trips.first, evolution.getOne(i64));
        if (join && !look_at_guard(result))
            return false;
        for (unsigned k = 0; k < blocks.size(); k++)
            for (Instruction &instruction : *blocks[k])
                if ((isa<LoadInst>(instruction) || isa<StoreInst>(instruction)) &&
                    !add(instruction, result.guarded[k]))
                    return false;
        for (PHINode &phi : body.phis())
            if (phi.getType()->isDoubleTy())
                add_earlier(phi);
        if (found.size() > NEST_ACCESSES)
            return false;
        expand(taken, result);
        return true;
    }

  private:
    Loop &outer, &inner;
    ScalarEvolution &evolution;
    BasicBlock &before, &body, *join = nullptr;
    Type *i64;
    SmallVector<BasicBlock *, NEST_BLOCKS> blocks;
    SmallVector<Access, 16> found;
    Line trips = {}, from = {}, to = {};

    bool is_safe(const SCEV *x)
    {
        SCEVExpander expander(evolution, body.getModule()->getDataLayout(), "");
        return expander.isSafeToExpandAt(x, before.getTerminator());
    }

    static BasicBlock *only_successor(BasicBlock *block)
    {
        auto *branch = dyn_cast<BranchInst>(block->getTerminator());
        return branch && branch->isUnconditional() ? branch->getSuccessor(0) : nullptr;
    }

    /* The blocks from here to the inner loop, or false. */
    bool lead_in(BasicBlock *block, SmallVectorImpl<BasicBlock *> &way)
    {
        for (; block && block != &body; block = only_successor(block)) {
            if (!block->getSinglePredecessor() || way.size() == NEST_BLOCKS)
                return false;
            way.push_back(block);
        }
        return block == &body;
    }

    /* head, what leads to the inner loop, it, and what follows up to the latch. */
    bool walk(pass_found_nest &result)
    {
        BasicBlock *head = outer.getHeader(), *latch = outer.getLoopLatch();
        auto *branch = dyn_cast<BranchInst>(head->getTerminator());
        SmallVector<BasicBlock *, NEST_BLOCKS> way;
        if (!branch || head == latch || outer.getExitingBlock() != latch ||
            inner.getExitingBlock() != &body || !outer.getExitBlock() || !inner.getExitBlock())
            return false;
        bool leads = false;
        for (unsigned k = 0; k < branch->getNumSuccessors() && !leads; k++) {
            way.clear();
            leads = branch->getSuccessor(k) != &body && branch->isConditional()
                        ? lead_in(branch->getSuccessor(k), way) && !way.empty()
                        : branch->isUnconditional() && lead_in(branch->getSuccessor(k), way);
            if (leads && branch->isConditional())
                join = branch->getSuccessor(1 - k);
        }
        if (!leads)
            return false;
        blocks.push_back(head);
        blocks.append(way.begin(), way.end());
        result.body = blocks.size();
        blocks.push_back(&body);
        bool joined = !join;
        for (BasicBlock *at = inner.getExitBlock(); at; at = only_successor(at)) {
            if (!outer.contains(at) || blocks.size() == NEST_BLOCKS)
                return false;
            joined |= at == join;
            if (!at->hasNPredecessors(at == join ? 2 : 1))
                return false;
            blocks.push_back(at);
            if (at == latch)
                break;
        }
        if (!joined || blocks.back() != latch || blocks.size() != outer.getNumBlocks())
            return false;
        bool guarded = false;
        for (unsigned k = 0; k < blocks.size(); k++) {
            guarded &= blocks[k] != join;
            result.guarded[k] = guarded;
            guarded |= k == 0 && join;
        }
        return true;
    }

    /* An integer as i64, first + i step; that it does not wrap is not known. */
    bool line_of(const SCEV *x, Line &line)
    {
        const SCEV *step = evolution.getZero(x->getType());
        const auto *steps = dyn_cast<SCEVAddRecExpr>(x);
        if (!evolution.isLoopInvariant(x, &outer)) {
            if (!steps || steps->getLoop() != &outer || !steps->isAffine())
                return false;
            x = steps->getStart();
            step = steps->getStepRecurrence(evolution);
        }
        if (x->getType()->getIntegerBitWidth() < 32 || !is_safe(x) || !is_safe(step))
            return false;
        line = {evolution.getTruncateOrSignExtend(x, i64),
                evolution.getTruncateOrSignExtend(step, i64)};
        return true;
    }

    bool look_at_guard(pass_found_nest &result)
    {
        auto *branch = cast<BranchInst>(blocks[0]->getTerminator());
        auto *condition = dyn_cast<ICmpInst>(branch->getCondition());
        if (!condition || !condition->getOperand(0)->getType()->isIntegerTy())
            return false;
        CmpInst::Predicate way = branch->getSuccessor(0) == join ? condition->getInversePredicate()
                                                                 : condition->getPredicate();
        const SCEV *a = evolution.getSCEV(condition->getOperand(0)),
                   *b = evolution.getSCEV(condition->getOperand(1));
        if (way == CmpInst::ICMP_SGT || way == CmpInst::ICMP_UGT || way == CmpInst::ICMP_SGE ||
            way == CmpInst::ICMP_UGE) {
            std::swap(a, b);
            way = CmpInst::getSwappedPredicate(way);
        }
        result.to_is_within = way == CmpInst::ICMP_SLE || way == CmpInst::ICMP_ULE;
        if (!result.to_is_within && way != CmpInst::ICMP_SLT && way != CmpInst::ICMP_ULT &&
            way != CmpInst::ICMP_NE)
            return false;
        return line_of(a, from) && line_of(b, to);
    }

    /* What a phi, or a chain of them, is where the inner loop has run. */
    Value *behind_inner(Value *value, const PHINode *head)
    {
        for (auto *phi = dyn_cast<PHINode>(value); phi && !inner.contains(phi->getParent()) &&
                                                   outer.contains(phi->getParent()) && phi != head;
             phi = dyn_cast<PHINode>(value)) {
            if (phi->getNumIncomingValues() == 2) {
                const int around = phi->getBasicBlockIndex(blocks[0]);
                if (around < 0 || phi->getIncomingValue(around) != head)
                    return nullptr;
                value = phi->getIncomingValue(1 - around);
            } else if (phi->getNumIncomingValues() == 1) {
                value = phi->getIncomingValue(0);
            } else {
                return nullptr;
            }
        }
        return value;
    }

    /* Whether a pointer goes one step further in each round of the inner loop, and on from there:
     * *p++. */
    bool runs_on(PHINode &phi, const SCEV *step)
    {
        Value *last = behind_inner(phi.getIncomingValueForBlock(blocks.back()), &phi);
        const auto *steps = last ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(last)) : nullptr;
        return steps && steps->getLoop() == &inner && steps->isAffine() &&
               steps->getStepRecurrence(evolution) == step &&
               steps->getStart() == evolution.getAddExpr(evolution.getSCEV(&phi), step) &&
               isa<Instruction>(last) && cast<Instruction>(last)->getParent() == &body;
    }

    bool place_of(const SCEV *at, Access &of)
    {
        const SCEV *zero = evolution.getZero(i64);
        of.outer = of.inner = zero;
        const auto *steps = dyn_cast<SCEVAddRecExpr>(at);
        if (steps && steps->getLoop() == &inner) {
            of.inner = steps->getStepRecurrence(evolution);
            if (!steps->isAffine() || !evolution.isLoopInvariant(of.inner, &outer) ||
                !is_safe(of.inner))
                return false;
            at = steps->getStart();
            steps = dyn_cast<SCEVAddRecExpr>(at);
        }
        of.base = at;
        if (evolution.isLoopInvariant(at, &outer))
            return is_safe(at);
        if (steps && steps->getLoop() == &outer && steps->isAffine()) {
            of.base = steps->getStart();
            of.outer = steps->getStepRecurrence(evolution);
            return is_safe(of.base) && is_safe(of.outer);
        }
        for (PHINode &phi : blocks[0]->phis()) {
            if (!phi.getType()->isPointerTy() || of.inner->isZero())
                continue;
            const SCEV *apart = evolution.getMinusSCEV(at, evolution.getSCEV(&phi));
            const SCEV *first = evolution.getSCEV(phi.getIncomingValueForBlock(&before));
            if (!isa<SCEVConstant>(apart) || !runs_on(phi, of.inner) || !is_safe(first))
                continue;
            of.base = evolution.getAddExpr(first, apart);
            of.runs_on = true;
            return true;
        }
        return false;
    }

    bool add(Instruction &instruction, bool guarded)
    {
        auto *load = dyn_cast<LoadInst>(&instruction);
        auto *store = load ? nullptr : cast<StoreInst>(&instruction);
        if (load ? !load->isSimple() : !store->isSimple())
            return false;
        Type *type = load ? load->getType() : store->getValueOperand()->getType();
        Value *pointer = load ? load->getPointerOperand() : store->getPointerOperand();
        Access of = {};
        of.instruction = &instruction;
        of.is_inner = instruction.getParent() == &body;
        of.is_guarded = guarded;
        if (!type->isDoubleTy() || !place_of(evolution.getSCEV(pointer), of))
            return false;
        if (store && of.is_inner && of.inner->isZero() && is_sum(store->getValueOperand())) {
            of.is_inner = false;
            of.is_guarded = join != nullptr;
        }
        found.push_back(of);
        return true;
    }

    /* What goes from round to round of the inner loop: written to one place, only the last counts.
     */
    bool is_sum(Value *value)
    {
        for (PHINode &phi : body.phis())
            if (phi.getIncomingValueForBlock(&body) == value)
                return true;
        return false;
    }

    /* A phi that is what a load of the round before has read is a read itself, one step earlier. */
    void add_earlier(PHINode &phi)
    {
        auto *next = dyn_cast<LoadInst>(phi.getIncomingValueForBlock(&body));
        BasicBlock *lead = blocks[llvm::find(blocks, &body) - blocks.begin() - 1];
        auto *there = dyn_cast<LoadInst>(phi.getIncomingValueForBlock(lead));
        if (!next || !there || next->getParent() != &body)
            return;
        for (const Access &f : found) {
            if (f.instruction != next || f.inner->isZero() || f.runs_on)
                continue;
            Access earlier = f, first = {};
            earlier.instruction = &phi;
            earlier.base = evolution.getMinusSCEV(f.base, f.inner);
            if (outer.contains(there->getParent()) &&
                place_of(evolution.getSCEV(there->getPointerOperand()), first) &&
                first.inner->isZero() && !first.runs_on && first.base == earlier.base &&
                first.outer == earlier.outer)
                found.push_back(earlier);
            return;
        }
    }

    struct pass_found_line expand(SCEVExpander &expander, const Line &line)
    {
        Instruction *at = before.getTerminator();
        if (!line.first)
            return {};
        return {wrap(expander.expandCodeFor(line.first, i64, at)),
                wrap(expander.expandCodeFor(line.step, i64, at))};
    }

    void expand(const SCEV *taken, pass_found_nest &result)
    {
        SCEVExpander expander(evolution, body.getModule()->getDataLayout(), "nest");
        Instruction *at = before.getTerminator();
        Type *pointer = PointerType::get(body.getContext(), 0);
        const SCEV *wide = evolution.getTruncateOrZeroExtend(taken, i64);
        result.before = wrap(&before);
        result.behind = wrap(outer.getExitBlock());
        result.join = wrap(join);
        result.n_blocks = blocks.size();
        for (unsigned k = 0; k < blocks.size(); k++)
            result.block[k] = wrap(blocks[k]);
        result.trips = wrap(
            expander.expandCodeFor(evolution.getAddExpr(wide, evolution.getOne(i64)), i64, at));
        result.inner_trips = expand(expander, trips);
        result.from = expand(expander, from);
        result.to = expand(expander, to);
        for (const Access &f : found) {
            pass_found_access &a = result.access[result.n_accesses];
            a.instruction = wrap(f.instruction);
            a.base = wrap(expander.expandCodeFor(f.base, pointer, at));
            a.outer = wrap(
                expander.expandCodeFor(evolution.getTruncateOrSignExtend(f.outer, i64), i64, at));
            a.inner = wrap(
                expander.expandCodeFor(evolution.getTruncateOrSignExtend(f.inner, i64), i64, at));
            a.runs_on = f.runs_on;
            a.is_write = isa<StoreInst>(f.instruction);
            a.is_inner = f.is_inner;
            a.is_guarded = f.is_guarded;
            a.same = result.n_accesses;
            for (unsigned k = result.n_accesses; k-- > 0;) {
                const Access &o = found[k];
                if (!result.access[k].is_write && o.base == f.base && o.outer == f.outer &&
                    o.inner == f.inner && o.runs_on == f.runs_on && o.is_guarded == f.is_guarded &&
                    o.is_inner == f.is_inner)
                    a.same = k;
            }
            result.n_accesses++;
        }
    }
};
} // namespace

unsigned pass_find_nests(LLVMValueRef function, pass_wants_block *wants, void *payload,
                         struct pass_found_nest *result, unsigned room)
{
    const auto has_form = [](Loop &loop) {
        return loop.getSubLoops().size() == 1 && loop.getSubLoops()[0]->isInnermost() &&
               loop.getSubLoops()[0]->getNumBlocks() == 1;
    };
    LoopSearch search(function, [&](Loop &loop) {
        return has_form(loop) && loop.getNumBlocks() <= NEST_BLOCKS &&
               all_of(loop.blocks(),
                      [&](BasicBlock *block) { return wants(wrap(block), payload); });
    });
    return search.each(room, has_form, [&](Loop &loop, ScalarEvolution &evolution) {
        if (!NestFinder(loop, *loop.getSubLoops()[0], evolution).find(*result))
            return false;
        result++;
        return true;
    });
}
