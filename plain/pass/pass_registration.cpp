// pass_registration.cpp: where the pass stands in clang's pipeline, and what LLVM-C has no
// name for.
// All the work is done in C.
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include "pass_registration.h"

using namespace llvm;

LLVMDIBuilderRef pass_lines_of_first_unit(LLVMModuleRef module)
{
    Module *m = unwrap(module);
    return wrap(new DIBuilder(*m, true, *m->debug_compile_units_begin()));
}

void pass_report(LLVMValueRef at, const char *text, bool is_error)
{
    const auto *instruction = cast<Instruction>(unwrap(at));
    const Function &function = *instruction->getFunction();
    const DebugLoc &place = instruction->getDebugLoc();
    if (getenv("TAPESCOPE_PLAIN_TOLD") && !is_error) { // clang would not say it
        const DISubprogram *lines = function.getSubprogram();
        const DIScope *scope = place ? cast<DIScope>(place.getScope()) : lines;
        if (scope) {
            SmallString<256> path(scope->getFilename());
            sys::fs::make_absolute(scope->getDirectory(), path);
            errs() << path << ':' << (place ? place.getLine() : lines->getLine()) << ':'
                   << (place ? place.getCol() : 0) << ": ";
        }
        errs() << "warning: " << text << ": the gradient is lost here, in function '"
               << function.getName() << "'\n";
        return;
    }
    DiagnosticInfoUnsupported said(function, Twine(text) + ": the gradient is lost here", place,
                                   is_error ? DS_Error : DS_Warning);
    function.getContext().diagnose(said);
}

bool pass_is_library_function(const char *name)
{
    static const TargetLibraryInfoImpl known(Triple("x86_64-unknown-linux-gnu"));
    LibFunc function;
    return known.getLibFunc(name, function);
}

void pass_to_memory(LLVMValueRef instruction)
{
    DemoteRegToStack(*cast<Instruction>(unwrap(instruction)));
}

static bool calls_c_library(const InvokeInst *call)
{
    const Function *function = call->getCalledFunction();
    if (!function || !function->isDeclaration())
        return false;
    const StringRef name = function->getName();
    if (function->isIntrinsic() || call->doesNotThrow())
        return true;
    return !name.starts_with("_Z") && name != "qsort" && name != "bsearch" &&
           pass_is_library_function(name.str().c_str());
}

void pass_invokes_prepare(LLVMModuleRef module)
{
    SmallVector<InvokeInst *, 64> found;
    for (Function &function : *unwrap(module))
        for (BasicBlock &block : function)
            if (auto *call = dyn_cast<InvokeInst>(block.getTerminator()))
                found.push_back(call);
    for (InvokeInst *call : found) {
        if (calls_c_library(call)) {
            changeToCall(call);
            continue;
        }
        BasicBlock *from = call->getParent(), *to = call->getNormalDest();
        auto *between = BasicBlock::Create(from->getContext(), "", from->getParent(), to);
        /* The block owns the branch. NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks) */
        BranchInst::Create(to, between)->setDebugLoc(call->getDebugLoc());
        call->setNormalDest(between);
        /* NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks) */
        to->replacePhiUsesWith(from, between);
    }
}

void pass_phi_to_memory(LLVMValueRef phi)
{
    DemotePHIToStack(cast<PHINode>(unwrap(phi)));
}

LLVMValueRef pass_function_again(LLVMValueRef of)
{
    auto *function = cast<Function>(unwrap(of));
    ValueToValueMapTy map;
    Function *again = CloneFunction(function, map);
    again->setLinkage(GlobalValue::InternalLinkage);
    again->setVisibility(GlobalValue::DefaultVisibility);
    again->setComdat(nullptr);
    again->setName(function->getName() + ".written");
    return wrap(again);
}

void pass_return_what_gives(LLVMBasicBlockRef end, LLVMValueRef other)
{
    BasicBlock *block = unwrap(end);
    auto *to = cast<Function>(unwrap(other));
    SmallVector<Value *, 16> arguments;
    SmallVector<AttributeSet, 16> of;
    for (Argument &argument : block->getParent()->args()) {
        arguments.push_back(&argument);
        of.push_back(to->getAttributes().getParamAttrs(argument.getArgNo()));
    }
    IRBuilder<> build(block);
    if (const DISubprogram *lines = block->getParent()->getSubprogram())
        build.SetCurrentDebugLocation(DILocation::get(block->getContext(), lines->getLine(), 0,
                                                      block->getParent()->getSubprogram()));
    CallInst *call = build.CreateCall(to, arguments);
    call->setCallingConv(to->getCallingConv());
    call->setAttributes(AttributeList::get(block->getContext(), AttributeSet(),
                                           to->getAttributes().getRetAttrs(), of));
    call->setTailCall();
    if (call->getType()->isVoidTy())
        build.CreateRetVoid();
    else
        build.CreateRet(call);
}

void pass_never_reached(LLVMBasicBlockRef block)
{
    changeToUnreachable(&*unwrap(block)->getFirstNonPHIOrDbgOrLifetime());
}

void pass_run_at_start(LLVMValueRef function)
{
    auto *f = cast<Function>(unwrap(function));
    appendToGlobalCtors(*f->getParent(), f, 102);
}

namespace
{
// By itself the pass manager leaves out functions that are not to be optimised (-O0).
void scalarize(Module &module, ModuleAnalysisManager &analyses)
{
    auto &of = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (Function &function : module)
        if (!function.isDeclaration()) {
            auto kept = ScalarizerPass().run(function, of);
            of.invalidate(function, kept);
        }
}

struct PlainPass : PassInfoMixin<PlainPass> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
    {
        pass_order_release(wrap(&module));
        scalarize(module, analyses);
        pass_options options = {getenv("TAPESCOPE_PLAIN_STRICT") != nullptr};
        pass_instrument(wrap(&module), &options);
        std::string errors;
        raw_string_ostream stream(errors);
        if (verifyModule(module, &stream))
            report_fatal_error(Twine("tapescope cc: the pass made a module that is not valid: ") +
                               errors);
        auto preserved = PreservedAnalyses::none();
        // Not among those that none() drops: without it loads after calls were taken from before.
        preserved.abandon<GlobalsAA>();
        return preserved;
    }
    static bool isRequired()
    {
        return true;
    }
};

struct PlainEarlyPass : PassInfoMixin<PlainEarlyPass> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
    {
        pass_keep_apart(wrap(&module));
        pass_order_hold(wrap(&module));
        return PreservedAnalyses::none();
    }
    static bool isRequired()
    {
        return true;
    }
};

void add_to(ModulePassManager &passes, OptimizationLevel)
{
    FunctionPassManager after;
    passes.addPass(PlainPass());
    passes.addPass(AlwaysInlinerPass(true));
    after.addPass(InstCombinePass());
    after.addPass(EarlyCSEPass());
    after.addPass(SimplifyCFGPass());
    passes.addPass(createModuleToFunctionPassAdaptor(std::move(after)));
}
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "tapescope-plain", "0", [](PassBuilder &builder) {
                builder.registerPipelineStartEPCallback(
                    [](ModulePassManager &passes, OptimizationLevel) {
                        passes.addPass(PlainEarlyPass());
                    });
                builder.registerOptimizerEarlyEPCallback(add_to);
            }};
}
