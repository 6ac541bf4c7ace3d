// pass_loops_found.cpp: what LLVM's scalar evolution knows of loops: how often they run, and where
// they read and write. LLVM-C has no name for it.
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#include "pass_loops.h"
#include "pass_search.h"

using namespace llvm;

namespace
{
/* Reads so far apart that what lies between them is rather not the loop's. */
constexpr int64_t FAR = 8;

/* Where an access is in the first round, and how far the next is from it. */
struct Place {
    const SCEV *start, *step; /* step: 0 where it stays */
};

struct Found {
    Instruction *instruction;
    Place place;
    unsigned group;
    int64_t offset;
};

class Finder
{
  public:
    Finder(Loop &loop, ScalarEvolution &evolution)
        : loop(loop), evolution(evolution), body(*loop.getHeader()),
          before(*loop.getLoopPreheader())
    {
    }

    bool find(pass_found_loop &result)
    {
        const SCEV *taken = evolution.getBackedgeTakenCount(&loop);
        if (isa<SCEVCouldNotCompute>(taken) || !is_safe(taken))
            return false;
        for (Instruction &instruction : body)
            if ((isa<LoadInst>(instruction) || isa<StoreInst>(instruction)) && !add(instruction))
                return false;
        for (PHINode &phi : body.phis())
            if (phi.getType()->isDoubleTy())
                add_earlier(phi, 0);
        if (found.size() > PASS_ACCESSES)
            return false;
        result = {};
        result.before = wrap(&before);
        result.body = wrap(&body);
        result.behind = wrap(loop.getExitBlock());
        expand(taken, result);
        return true;
    }

  private:
    Loop &loop;
    ScalarEvolution &evolution;
    BasicBlock &body, &before;
    SmallVector<Found, 16> found;
    SmallVector<Place, 16> groups; /* of reads */

    bool is_safe(const SCEV *x)
    {
        SCEVExpander expander(evolution, body.getModule()->getDataLayout(), "");
        return expander.isSafeToExpandAt(x, before.getTerminator());
    }

    bool place_of(Value *pointer, Place &place)
    {
        const SCEV *at = evolution.getSCEV(pointer);
        if (evolution.isLoopInvariant(at, &loop)) {
            place = {at, evolution.getZero(Type::getInt64Ty(body.getContext()))};
            return is_safe(at);
        }
        const auto *steps = dyn_cast<SCEVAddRecExpr>(at);
        if (!steps || steps->getLoop() != &loop || !steps->isAffine())
            return false;
        place = {steps->getStart(), steps->getStepRecurrence(evolution)};
        return is_safe(place.start) && is_safe(place.step);
    }

    /* Reads of one array: those that are a few steps apart. */
    void group_of(Found &of)
    {
        for (unsigned k = 0; k < groups.size(); k++) {
            if (groups[k].step != of.place.step)
                continue;
            const auto *apart =
                dyn_cast<SCEVConstant>(evolution.getMinusSCEV(of.place.start, groups[k].start));
            const auto *step = dyn_cast<SCEVConstant>(of.place.step);
            if (!apart)
                continue;
            const int64_t bytes = apart->getAPInt().getSExtValue();
            const int64_t by = step ? step->getAPInt().getSExtValue() : 0;
            if (bytes != 0 && (by == 0 || bytes % by != 0 || std::abs(bytes / by) > FAR))
                continue;
            of.group = k;
            of.offset = bytes == 0 ? 0 : bytes / by;
            return;
        }
        of.group = groups.size();
        of.offset = 0;
        groups.push_back(of.place);
    }

    bool add(Instruction &instruction)
    {
        auto *load = dyn_cast<LoadInst>(&instruction);
        auto *store = load ? nullptr : cast<StoreInst>(&instruction);
        if (load ? !load->isSimple() : !store->isSimple())
            return false;
        Type *type = load ? load->getType() : store->getValueOperand()->getType();
        Found of = {&instruction, {}, 0, 0};
        if (!type->isDoubleTy() ||
            !place_of(load ? load->getPointerOperand() : store->getPointerOperand(), of.place))
            return false;
        if (load)
            group_of(of);
        else if (of.place.step->isZero())
            return false;
        found.push_back(of);
        return true;
    }

    /* Whether this is the value that stands at a place when the loop begins. */
    bool is_there(Value *value, const SCEV *place)
    {
        auto *load = dyn_cast<LoadInst>(value);
        if (!load || !load->isSimple() || load->getParent() != &before ||
            evolution.getSCEV(load->getPointerOperand()) != place)
            return false;
        for (Instruction *next = load->getNextNode(); next; next = next->getNextNode())
            if (next->mayWriteToMemory())
                return false;
        return true;
    }

    /* A phi that is what a load of the round before has read is a read itself, one step earlier. */
    const Found *add_earlier(PHINode &phi, unsigned depth)
    {
        for (const Found &f : found)
            if (f.instruction == &phi)
                return &f;
        Value *next = phi.getIncomingValueForBlock(&body);
        const Found *of = nullptr;
        if (auto *other = dyn_cast<PHINode>(next);
            other && other->getParent() == &body && depth < 4)
            of = other == &phi ? nullptr : add_earlier(*other, depth + 1);
        else if (isa<LoadInst>(next))
            for (const Found &f : found)
                if (f.instruction == next)
                    of = &f;
        if (!of || of->place.step->isZero())
            return nullptr;
        Found earlier = {&phi, of->place, of->group, of->offset - 1};
        earlier.place.start = evolution.getMinusSCEV(of->place.start, of->place.step);
        if (std::abs(earlier.offset) > FAR ||
            !is_there(phi.getIncomingValueForBlock(&before), earlier.place.start))
            return nullptr;
        found.push_back(earlier);
        return &found.back();
    }

    void expand(const SCEV *taken, pass_found_loop &result)
    {
        SCEVExpander expander(evolution, body.getModule()->getDataLayout(), "loop");
        Instruction *at = before.getTerminator();
        Type *i64 = Type::getInt64Ty(body.getContext()),
             *p = PointerType::get(body.getContext(), 0);
        const SCEV *wide = evolution.getTruncateOrZeroExtend(taken, i64);
        result.trips = wrap(
            expander.expandCodeFor(evolution.getAddExpr(wide, evolution.getOne(i64)), i64, at));
        result.n_groups = groups.size();
        for (unsigned k = 0; k < groups.size(); k++) {
            result.group[k].base = wrap(expander.expandCodeFor(groups[k].start, p, at));
            result.group[k].step = wrap(expander.expandCodeFor(
                evolution.getTruncateOrSignExtend(groups[k].step, i64), i64, at));
            result.group[k].stays = groups[k].step->isZero();
        }
        for (const Found &f : found) {
            if (!isa<StoreInst>(f.instruction)) {
                result.read[result.n_reads++] = {wrap(f.instruction), f.group, f.offset};
                continue;
            }
            pass_found_write &write = result.write[result.n_writes++];
            write.instruction = wrap(f.instruction);
            write.base = wrap(expander.expandCodeFor(f.place.start, p, at));
            write.step = wrap(expander.expandCodeFor(
                evolution.getTruncateOrSignExtend(f.place.step, i64), i64, at));
        }
    }
};
} // namespace

unsigned pass_find_loops(LLVMValueRef function, pass_wants_loop *wants, void *payload,
                         struct pass_found_loop *result, unsigned room)
{
    LoopSearch search(function, [&](Loop &loop) {
        return loop.isInnermost() && loop.getNumBlocks() == 1 &&
               wants(wrap(loop.getHeader()), payload);
    });
    return search.each(
        room, [](Loop &loop) { return loop.getNumBlocks() == 1; },
        [&](Loop &loop, ScalarEvolution &evolution) {
            if (!Finder(loop, evolution).find(*result))
                return false;
            result++;
            return true;
        });
}
