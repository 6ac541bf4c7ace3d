/* cmd_cc.c: `tapescope cc`: clang with the pass that records plain C.
 *
 * All arguments but its own options go to the compiler. What is added: the pass; the headers of
 * this installation; and where programs or libraries are linked, the runtime.
 */
#include "cli_cc.h"

#include "base_memory.h"
#include "cli_run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_cc_about[] =
    "Compiles as clang does, with the same arguments. What the program computes with floating "
    "numbers is recorded, so that <tapescope/ad_plain.h> gives its gradients. Where a gradient "
    "would be lost, it warns with the line.";
const char cli_cc_notes[] =
    "Give -g for source lines. --strict makes the warnings errors, at run time too. Works as CC= "
    "of make, CMake and configure. Needs clang-19.";

/* Listed, but all that stands behind the command's name is the compiler's. */
const struct cli_option cli_cc_options[CLI_CC_OPTIONS] = {
    {"strict", 0, CLI_FLAG, NULL, "what would lose a gradient is an error", 0, NULL, 0},
    {"in-place-of", 0, CLI_TEXT, "COMPILER",
     "comes first: for build systems that put a command before the compiler's", 0, NULL, 0},
};

const struct cli_command cli_cc = {
    .name = "cc",
    .summary = "compile plain C so that it has gradients",
    .operands = "CLANG-ARGUMENTS...",
    .about = cli_cc_about,
    .option = cli_cc_options,
    .n_options = CLI_CC_OPTIONS,
    .notes = cli_cc_notes,
    .run = cmd_cc,
};

/* Whether the compiler stops before it links. */
static bool cc_only_compiles(char **argv)
{
    static const char *const stops[] = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", NULL};
    bool inputs = false;
    for (; *argv; argv++) {
        for (const char *const *stop = stops; *stop; stop++)
            if (strcmp(*argv, *stop) == 0)
                return true;
        inputs |= (*argv)[0] != '-';
    }
    return !inputs;
}

int cli_cc_run(const struct cli_command *command, const char *compiler, int argc, char **argv)
{
    char modules[PATH_MAX];
    bool strict = false;
    if (argc < 2) {
        cli_message("%s: no input files; try 'tapescope %s --help'", command->name, command->name);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        cli_put_help(stdout, command, cli_width());
        return cli_finish();
    }
    if (!cli_modules_folder(modules, sizeof modules)) {
        cli_message("%s: cannot tell where Tapescope is installed: %s", command->name,
                    strerror(errno));
        return CLI_FAILED;
    }
    char *pass = base_asprintf("%s/tapescope_plain_pass.so", modules);
    if (access(pass, R_OK) != 0) {
        cli_message("%s: there is no %s: this Tapescope was built without LLVM 19 (Debian: "
                    "clang-19, llvm-19-dev)",
                    command->name, pass);
        return CLI_FAILED;
    }
    const bool launches = strcmp(argv[1], "--in-place-of") == 0;
    const int first = !launches ? 1 : argc < 3 ? argc : 3;
    const char **line = base_calloc((size_t)argc + 12, sizeof *line);
    size_t n = 0;
    line[n++] = compiler;
    for (int k = first; k < argc; k++) {
        /* A build that wants no warnings is told of lost gradients all the same. */
        if (strcmp(argv[k], "-w") == 0 || strcmp(argv[k], "-Wno-everything") == 0)
            setenv("TAPESCOPE_PLAIN_TOLD", "1", 1);
        if (strcmp(argv[k], "--strict") == 0)
            strict = true;
        else
            line[n++] = argv[k];
    }
    line[n++] = base_asprintf("-fpass-plugin=%s", pass);
    /* Beside the program's folder; what is not there does no harm. */
    line[n++] = base_asprintf("-I%.*s../include",
                              (int)(strlen(modules) - strlen(CLI_MODULES_FROM_BIN)), modules);
    line[n++] = "-Qunused-arguments";
    if (!cc_only_compiles(argv + first)) {
        line[n++] = base_asprintf("-L%s/..", modules);
        line[n++] = base_asprintf("-Wl,-rpath,%s/..", modules);
        line[n++] = "-ltapescope_plain";
        line[n++] = "-ltapescope";
        line[n++] = "-lm";
    }
    if (strict)
        setenv("TAPESCOPE_PLAIN_STRICT", "1", 1);
    fflush(NULL);
    execvp(compiler, (char **)(uintptr_t)line);
    cli_message("%s: cannot run %s: %s; Debian's package is clang-19", command->name, compiler,
                strerror(errno));
    return CLI_FAILED;
}

int cmd_cc(int argc, char **argv)
{
    return cli_cc_run(&cli_cc, "clang-19", argc, argv);
}
