/* common_options.c: options are rows; a program chooses among them by their letters. */
#include "common_options.h"

#include "common_rounds.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64 };

static const struct {
    struct option option;
    const char *usage;
} all[] = {
    {{"case", required_argument, NULL, 'c'}, "--case NAME"},
    {{"dtype", required_argument, NULL, 'd'}, "--dtype f32|f64"},
    {{"threads", required_argument, NULL, 't'}, "--threads N"},
    {{"peer", required_argument, NULL, 'p'}, "--peer NAME"},
    {{"metric", required_argument, NULL, 'm'}, "--metric NAME"},
    {{"data", required_argument, NULL, 'i'}, "--data FOLDER"},
    {{"no-huge-pages", no_argument, NULL, 'h'}, "--no-huge-pages"},
    {{"rounds", required_argument, NULL, 'r'}, "--rounds N"},
    {{"seconds", required_argument, NULL, 's'}, "--seconds S"},
    {{"quick", no_argument, NULL, 'q'}, "--quick"},
};
enum { OPTIONS = sizeof all / sizeof *all };

bool options_want(const char *option, const char *name)
{
    return !option || strcmp(option, name) == 0;
}

static bool take(const struct options_program *program, int letter, struct options *options)
{
    char *end = "";
    switch (letter) {
    case 'c':
        options->case_name = optarg;
        break;
    case 'd':
        options->dtype = optarg;
        break;
    case 'p':
        options->peer = optarg;
        break;
    case 'm':
        options->metric = optarg;
        break;
    case 'i':
        options->data = optarg;
        break;
    case 'h':
        options->no_huge_pages = true;
        break;
    case 't':
        options->threads = (int)strtol(optarg, &end, 10);
        break;
    case 'r':
        options->rounds = (int)strtol(optarg, &end, 10);
        break;
    case 's':
        options->seconds = strtod(optarg, &end);
        break;
    case 'q':
        options->quick = true;
        if (program->quick_seconds > 0)
            options->rounds = 3, options->seconds = program->quick_seconds;
        break;
    default:
        return false;
    }
    return *end == '\0';
}

static bool known_case(const struct options_program *program, const char *name)
{
    for (size_t k = 0; program->case_name(k); ++k)
        if (options_want(name, program->case_name(k)))
            return true;
    fprintf(stderr, "%s: there is no case %s\n", program->name, name);
    return false;
}

static bool valid(const struct options *o, int least_threads)
{
    return o->threads >= least_threads && o->threads <= MAX_THREADS && o->rounds >= 1 &&
           o->rounds <= ROUNDS_MAX && o->seconds > 0.0 && o->seconds <= 3600.0 &&
           (!o->dtype || strcmp(o->dtype, "f32") == 0 || strcmp(o->dtype, "f64") == 0);
}

static void print_usage(const struct options_program *program)
{
    fprintf(stderr, "usage: %s", program->name);
    for (int k = 0; k < OPTIONS; ++k)
        if (strchr(program->known, all[k].option.val))
            fprintf(stderr, " [%s]", all[k].usage);
    fprintf(stderr, "\ncases:");
    for (size_t k = 0; program->case_name(k); ++k)
        fprintf(stderr, " %s", program->case_name(k));
    fprintf(stderr, program->more ? "\n%s\n" : "\n", program->more);
}

struct options options_read(int argc, char **argv, const struct options_program *program)
{
    struct option known[OPTIONS + 1] = {0};
    struct options options = program->defaults;
    int n = 0, letter;
    bool fine = true;
    for (int k = 0; k < OPTIONS; ++k)
        if (strchr(program->known, all[k].option.val))
            known[n++] = all[k].option;
    while (fine && (letter = getopt_long(argc, argv, "", known, NULL)) != -1)
        fine = take(program, letter, &options);
    if (!fine || optind != argc || !valid(&options, program->defaults.threads) ||
        !known_case(program, options.case_name)) {
        print_usage(program);
        exit(2);
    }
    return options;
}
