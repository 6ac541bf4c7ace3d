/* cmd_cxx.c: `tapescope c++`: as cmd_cc.c, by clang++. */
#include "cli_cc.h"

const struct cli_command cli_cxx = {
    .name = "c++",
    .summary = "the same for C++",
    .operands = "CLANG-ARGUMENTS...",
    .about = cli_cc_about,
    .option = cli_cc_options,
    .n_options = CLI_CC_OPTIONS,
    .notes = cli_cc_notes,
    .run = cmd_cxx,
};

int cmd_cxx(int argc, char **argv)
{
    return cli_cc_run(&cli_cxx, "clang++-19", argc, argv);
}
