/* cli_filter.c: see cli_filter.h. */
#include "cli_filter.h"

#include "analyze_tree.h"
#include "base_memory.h"
#include "base_strings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool filter_matches(const regex_t *expression, const struct analyze_line *line)
{
    char place[4096];
    snprintf(place, sizeof place, "%s:%u", line->file ? line->file : "", (unsigned)line->line);
    if (line->file && regexec(expression, place, 0, NULL, 0) == 0)
        return true;
    if (line->function && regexec(expression, line->function, 0, NULL, 0) == 0)
        return true;
    for (unsigned i = 0; i < line->ops.n; i++)
        if (regexec(expression, line->ops.name[i], 0, NULL, 0) == 0)
            return true;
    return false;
}

bool cli_filter_focus(void *payload, const struct analyze_line *line)
{
    const struct cli_filter *filter = payload;
    return filter_matches(&filter->focus, line);
}

bool cli_filter_ignore(void *payload, const struct analyze_line *line)
{
    const struct cli_filter *filter = payload;
    return filter_matches(&filter->ignore, line);
}

/* Compiles an extended regular expression; CLI_OK, or says what is wrong with it. */
static int filter_compile(regex_t *expression, const char *name, const char *text)
{
    char why[256];
    int error = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
    if (error == 0)
        return CLI_OK;
    regerror(error, expression, why, sizeof why);
    if (error == REG_ESPACE)
        base_no_memory();
    cli_message("--%s: '%s' is no regular expression: %s", name, text, why);
    return CLI_USAGE;
}

int cli_filter_open(struct cli_filter *filter, const struct cli_args *args)
{
    int status = CLI_OK;
    *filter = (struct cli_filter){.has_focus = false};
    if (args->focus) {
        status = filter_compile(&filter->focus, "focus", args->focus);
        filter->has_focus = status == CLI_OK;
    }
    if (status == CLI_OK && args->ignore) {
        status = filter_compile(&filter->ignore, "ignore", args->ignore);
        filter->has_ignore = status == CLI_OK;
    }
    if (status != CLI_OK)
        cli_filter_close(filter);
    return status;
}

static bool filter_finds_line(const regex_t *expression, const struct analyze_result *analysis)
{
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (filter_matches(expression, &analysis->line[i]))
            return true;
    return false;
}

static bool filter_finds_caller(const regex_t *expression, const struct analyze_tree *tree)
{
    for (size_t i = 1; i < tree->n_nodes; i++)
        if (filter_matches(expression, &tree->node[i].line))
            return true;
    return false;
}

/* The function, op or file that was probably meant; to be freed. NULL: none is near. */
static char *filter_nearest(const char *text, const struct analyze_tree *tree)
{
    const char **name = base_calloc(3 * tree->n_nodes + 1, sizeof *name);
    int n = 0;
    for (size_t i = 1; i < tree->n_nodes && n < INT_MAX - 3; i++) {
        const struct analyze_line *line = &tree->node[i].line;
        if (line->function)
            name[n++] = line->function;
        if (line->file)
            name[n++] = base_file_name(line->file);
        if (line->ops.n > 0)
            name[n++] = line->ops.name[0];
    }
    text += *text == '^';
    char *word = base_strndup(text, strcspn(text, ":$"));
    const char *nearest = cli_nearest(word, name, n);
    char *found = nearest ? base_strdup(nearest) : NULL;
    free(word);
    free(name);
    return found;
}

static uint64_t filter_weight(const struct analyze_line *line)
{
    return read_add(line->cost.forward_ns, line->cost.backward_ns);
}

static int filter_compare_weights(const void *x, const void *y)
{
    const struct analyze_line *a = *(const struct analyze_line *const *)x,
                              *b = *(const struct analyze_line *const *)y;
    const uint64_t of_a = filter_weight(a), of_b = filter_weight(b);
    return of_a != of_b ? (of_a > of_b ? -1 : 1) : a < b ? -1 : a > b;
}

/* "f, g, h": the functions of the costliest lines; to be freed. */
static char *filter_functions(const struct analyze_result *analysis)
{
    enum { MOST = 4 };
    const struct analyze_line **line = base_calloc(analysis->n_lines + 1, sizeof *line);
    const char *name[MOST];
    char *text = base_strdup("");
    size_t n = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        line[i] = &analysis->line[i];
    qsort(line, analysis->n_lines, sizeof *line, filter_compare_weights);
    for (size_t i = 0; i < analysis->n_lines && n < MOST; i++)
        if (line[i]->function)
            n = cli_name_add(name, n, line[i]->function);
    for (size_t i = 0; i < n; i++) {
        char *longer = base_asprintf("%s%s%s", text, i > 0 ? ", " : "", name[i]);
        free(text);
        text = longer;
    }
    free(line);
    return text;
}

/* What to say of an expression that matches nothing; to be freed, or NULL. */
static char *filter_unmatched(const regex_t *expression, const char *name, const char *text,
                              bool callers, const struct analyze_result *analysis)
{
    const char *path = analysis->profile->path;
    char *said = NULL;
    if (filter_finds_line(expression, analysis))
        return NULL;
    struct analyze_tree *tree =
        analyze_tree_make(analysis, &(struct analyze_tree_options){.system = true});
    char *const nearest = filter_nearest(text, tree), *const functions = filter_functions(analysis);
    if (filter_finds_caller(expression, tree)) {
        if (!callers)
            said = base_asprintf("--%s: '%s' matches callers in %s, but no line with costs of its "
                                 "own: tapescope tree --%s '%s' shows what they call",
                                 name, text, path, name, text);
    } else if (nearest) {
        said = base_asprintf("--%s: '%s' matches no file:line, function or op of %s; did you mean "
                             "'%s'?",
                             name, text, path, nearest);
    } else {
        said = base_asprintf("--%s: '%s' matches no file:line, function or op of %s%s%s", name,
                             text, path, *functions ? "; its functions: " : "", functions);
    }
    analyze_tree_free(tree);
    free(nearest);
    free(functions);
    return said;
}

void cli_filter_check(struct cli_filter *filter, const struct cli_args *args,
                      const struct analyze_result *analysis)
{
    if (filter->has_focus)
        filter->unmatched =
            filter_unmatched(&filter->focus, "focus", args->focus, args->callers, analysis);
    if (filter->has_ignore && !filter->unmatched)
        filter->unmatched =
            filter_unmatched(&filter->ignore, "ignore", args->ignore, args->callers, analysis);
}

void cli_filter_close(struct cli_filter *filter)
{
    free(filter->unmatched);
    filter->unmatched = NULL;
    if (filter->has_focus)
        regfree(&filter->focus);
    if (filter->has_ignore)
        regfree(&filter->ignore);
    filter->has_focus = filter->has_ignore = false;
}
