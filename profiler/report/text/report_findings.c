/* report_findings.c: see report_findings.h. */
#include "report_findings.h"

#include "analyze_shape.h"
#include "base_array.h"
#include "base_memory.h"
#include "base_strings.h"
#include "report_checkpoint.h"
#include "report_howto.h"
#include "report_text.h"
#include "report_units.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_ROOM = 1024, NAMES_ROOM = 256 };

#define SAMPLED "docs/how-to/profile.md#sampled-mode"
#define ROOFLINE "docs/how-to/profile.md#roofline"
#define FINDINGS "docs/how-to/read-a-report.md#findings"
#define RANKS "docs/how-to/profile.md#many-ranks"
#define STATEMENTS "docs/how-to/profile.md#what-is-exact-what-is-estimated"
#define SLOW "docs/tutorial/5-slow-pullback.md"
#define VAIN "docs/how-to/memory.md#a-peak-whose-holder-is-found"
#define SQUARE "docs/how-to/ci.md#a-tape-that-grows-as-the-square"
#define HOLDER "docs/how-to/memory.md#a-peak-whose-holder-is-found"
#define WEIGHED "docs/how-to/memory.md#a-checkpoint-is-weighed"
#define BUDGET "docs/how-to/checkpoint.md#loops-that-plan-themselves"

/* What a kind is called, where it is explained, which view of the page shows more, and how the page
 * marks it. */
static const struct {
    const char *title, *howto, *view, *tab, *sort;
} kinds[ANALYZE_FINDING_KINDS] = {
    [ANALYZE_FINDING_REST] = {"Most of the run is not AD", SAMPLED, "timeline", "", "plain"},
    [ANALYZE_FINDING_GRID] = {"A result much larger than its operands", FINDINGS, "source", "",
                              "warn"},
    [ANALYZE_FINDING_LINE] = {"One line has much of the time", ROOFLINE, "roofline", "", "bwd"},
    [ANALYZE_FINDING_PULLBACK] = {"A backward pass out of proportion", SLOW, "roofline", "",
                                  "warn"},
    [ANALYZE_FINDING_REWIND] = {"Each step leaves bytes on the tape", HOLDER, "timeline", "",
                                "warn"},
    [ANALYZE_FINDING_UNREAD] = {"Kept, and read by no pullback", HOLDER, "residuals", "", "warn"},
    [ANALYZE_FINDING_DEAD] = {"Saved in vain", VAIN, "residuals", "dead", "warn"},
    [ANALYZE_FINDING_CHECKPOINT] = {"Checkpoints would lower the peak", WEIGHED, "whatif", "",
                                    "good"},
    [ANALYZE_FINDING_FUNCTION] = {"Nothing stands out", NULL, "flame", "", "plain"},
};

static const char *kind_name(enum analyze_finding_kind kind)
{
#define X(NAME, name, ...) name,
    static const char *const names[] = {ANALYZE_FINDINGS(X)};
#undef X
    return names[kind];
}

/* What the words are made of. */
struct wording {
    const struct analyze_result *analysis;
    const struct report_style *style;
    const char *profile; /* as the user would name it */
};

static const char *word_time(char buf[REPORT_UNITS_ROOM], uint64_t ns, const struct wording *with)
{
    return report_units_time(buf, ns, with->style->utf8);
}

/* "train.c:12", and "train.c:12 (linear in dense)", to be freed. */
static char *word_place(const struct analyze_line *line, const struct wording *with)
{
    char place[PLACE_ROOM];
    report_text_place(place, sizeof place, with->analysis, line);
    return base_strdup(place);
}

static char *word_where(const struct analyze_line *line, const struct wording *with)
{
    char names[NAMES_ROOM], *place = word_place(line, with);
    report_text_names(names, sizeof names, &line->ops, ", ");
    char *where = base_asprintf("%s (%s%s%s)", place, names, line->function ? " in " : "",
                                line->function ? line->function : "");
    free(place);
    return where;
}

/* The command whose report is about one line alone; to be freed. */
static char *word_command(const char *command, const struct analyze_line *line,
                          const struct wording *with)
{
    if (!line->file)
        return base_asprintf("tapescope %s %s", command, with->profile);
    return base_asprintf("tapescope %s --focus '%s:%u$' %s", command, base_file_name(line->file),
                         (unsigned)line->line, with->profile);
}

static void word_rest(struct report_finding *to, const struct analyze_finding *from,
                      const struct wording *with)
{
    const struct read_profile *profile = with->analysis->profile;
    char part[REPORT_UNITS_ROOM], of[REPORT_UNITS_ROOM];
    to->text = base_asprintf("%s of the run (%s of %s) are neither ops nor sweeps, but other "
                             "code or waiting. A cheaper gradient makes none of that shorter.",
                             to->strong, word_time(part, from->part, with),
                             word_time(of, from->whole, with));
    to->advice = base_strdup("See what the whole program does:");
    char *arguments = base_strdup("");
    for (size_t i = 0; i < profile->n_arguments; i++) {
        char *longer = base_asprintf("%s %s", arguments, profile->argument[i]);
        free(arguments);
        arguments = longer;
    }
    to->call = base_asprintf("tapescope record --time sampled --%s", arguments);
    free(arguments);
}

/* Of "[256,1]": "256, 1". */
static const char *word_extents(char buf[2 * ANALYZE_SHAPE_ROOM], const char *shape)
{
    char *to = buf;
    for (const char *p = shape + 1; *p && *p != ']'; p++) {
        *to++ = *p;
        if (*p == ',')
            *to++ = ' ';
    }
    *to = '\0';
    return buf;
}

static void word_grid(struct report_finding *to, const struct analyze_finding *from,
                      const struct wording *with)
{
    struct analyze_grid grid;
    char part[REPORT_UNITS_ROOM], times[REPORT_UNITS_ROOM];
    char *where = word_where(&from->line, with);
    if (analyze_shape_grid(&grid, from->line.shape)) {
        to->text = base_asprintf(
            "%s makes %s of %s and %s, %s times as many elements as either: it takes each element "
            "of the one with each of the other. That is %s of %s (%s).",
            where, grid.result, grid.more, grid.fewer,
            report_units_count(times, (uint64_t)(grid.times + 0.5)), to->strong,
            from->of_bytes ? "all that went on the tape" : "AD's time",
            from->of_bytes ? report_units_bytes(part, from->part)
                           : word_time(part, from->part, with));
        to->advice = base_asprintf("Is it meant? If not, give the operand %s the other's shape:",
                                   grid.fewer);
        char extents[2 * ANALYZE_SHAPE_ROOM];
        to->call = base_asprintf("x = ad_reshape(x, (int64_t[]){%s}, %u); /* x: that of %s */",
                                 word_extents(extents, grid.more), grid.dimensions, grid.fewer);
    }
    free(where);
}

/* What to do about a line that has much time: by what its time is. */
static void advise_line(struct report_finding *to, const struct analyze_finding *from,
                        const struct wording *with)
{
    const struct analyze_cost *cost = &from->line.cost;
    const struct read_profile *profile = with->analysis->profile;
    const char *op = from->line.ops.name[0], *loop = strstr(op, "checkpoint_loop");
    const bool message = strncmp(op, "mpi_", strlen("mpi_")) == 0; /* of ad_mpi.h */
    if (loop && 2 * cost->recompute_ns > from->part) {
        to->advice = base_strdup("Most of that is computed again: with a greater budget the loop "
                                 "computes less again, for more bytes on the tape:");
        to->call = base_asprintf("ad_%s(..., &(ad_checkpoint_budget){.bytes = N});", op);
        to->howto = BUDGET;
        to->view = "source";
    } else if (message && profile->ranks > 1 && !profile->ranked) {
        to->advice = base_strdup("How much of that is waiting for other ranks, and for which:");
        to->call = base_asprintf("tapescope ranks %s", with->profile);
        to->howto = RANKS;
        to->view = "timeline";
    } else if (!message && cost->forward_flops + cost->forward_moved > 0) {
        to->advice = base_strdup("Whether arithmetic or memory limits it, and how near it comes "
                                 "to what this program reaches:");
        to->call = word_command("top --roofline", &from->line, with);
    } else {
        to->advice = base_strdup("Beside its source:");
        to->call = base_asprintf("tapescope annotate %s %s",
                                 from->line.file ? base_file_name(from->line.file) : "FILE",
                                 with->profile);
        to->howto = STATEMENTS;
        to->view = "source";
    }
}

static void word_line(struct report_finding *to, const struct analyze_finding *from,
                      const struct wording *with)
{
    const struct analyze_cost *cost = &from->line.cost;
    const struct report_style words = {.utf8 = with->style->utf8};
    char time[REPORT_TEXT_TIME_ROOM], number[REPORT_UNITS_ROOM], *text = NULL;
    size_t n;
    FILE *out = base_memstream_open(&text, &n);
    char *where = word_where(&from->line, with);
    fprintf(out, "%s takes %s of AD's time (%s): forward %s", where, to->strong,
            word_time(number, from->part, with),
            report_text_phase(time, cost, REPORT_FORWARD, &words));
    fprintf(out, ", backward %s", report_text_phase(time, cost, REPORT_BACKWARD, &words));
    if (cost->recompute_ns > 0)
        fprintf(out, ", computed again %s",
                report_text_phase(time, cost, REPORT_RECOMPUTE, &words));
    if (cost->calls > 0)
        fprintf(out, ", in %s call%s", report_units_count(number, cost->calls),
                cost->calls == 1 ? "" : "s");
    putc('.', out);
    if (from->expected > 0 && cost->forward_ns > 0 && cost->backward_ns > 0)
        fprintf(out, " Backward is %s times forward; its flops and bytes predict %.1f.",
                report_units_ratio(number, cost->backward_ns, cost->forward_ns), from->expected);
    base_memstream_close(out, &text);
    to->text = text;
    advise_line(to, from, with);
    free(where);
}

static void word_pullback(struct report_finding *to, const struct analyze_finding *from,
                          const struct wording *with)
{
    const struct analyze_cost *cost = &from->line.cost;
    const uint64_t steady = analyze_cost_steady_ns(cost);
    char ratio[REPORT_UNITS_ROOM], backward[REPORT_UNITS_ROOM], beyond[REPORT_UNITS_ROOM];
    char *where = word_where(&from->line, with);
    to->text = base_asprintf(
        "%s: the pullback takes %s times as long as the op (%s); flops and bytes predict %.1f "
        "times. What is beyond that is %s, %s of AD's time.",
        where, report_units_ratio(ratio, steady, cost->forward_ns),
        word_time(backward, steady, with), from->expected, word_time(beyond, from->part, with),
        to->strong);
    to->advice =
        base_strdup("Of small matrices, run with OPENBLAS_NUM_THREADS=1. A pullback of your "
                    "own should compute and move no more than it counts. Its rates:");
    to->call = word_command("top --roofline", &from->line, with);
    free(where);
}

static const char *word_largest(uint64_t part, uint64_t whole)
{
    return part > whole / 2 ? "most" : "the largest share";
}

static void word_rewind(struct report_finding *to, const struct analyze_finding *from,
                        const struct wording *with)
{
    char each[REPORT_UNITS_ROOM], rise[REPORT_UNITS_ROOM], peak[REPORT_UNITS_ROOM],
        share[REPORT_UNITS_ROOM];
    char *where = from->line.ops.n > 0 ? word_where(&from->line, with) : NULL;
    char *holder = where ? base_asprintf(" Of the peak %s holds %s (%s).", where,
                                         word_largest(from->held, from->whole),
                                         report_units_share(share, from->held, from->whole))
                         : base_strdup("");
    /* An estimate: sweeps are found by moments of the tape, of which a profile has so many. */
    to->text = base_asprintf(
        "~%s of the peak (~%s of %s) is what earlier steps left: every sweep leaves "
        "~%s more on the tape.%s",
        to->strong, report_units_bytes(rise, from->part), report_units_bytes(peak, from->whole),
        report_units_bytes(each, from->each), holder);
    to->advice = base_strdup("Mark the tape before the first step, and rewind after each:");
    to->call = base_strdup("ad_mark start = ad_tape_mark(tape); ... "
                           "ad_tape_rewind(tape, start);");
    free(holder);
    free(where);
}

static void word_frame(struct report_finding *to, const struct analyze_finding *from)
{
    const struct analyze_proposal *p = from->proposal;
    char less[REPORT_UNITS_ROOM], was[REPORT_UNITS_ROOM], now[REPORT_UNITS_ROOM];
    char *what = report_proposal_text(p), *end = report_frame_text(p);
    to->text =
        base_asprintf("%s of the peak (%s) are values that no pullback reads, and that "
                      "nothing uses after %s: in a frame the peak falls from %s to %s.",
                      to->strong, report_units_bytes(less, from->part), what,
                      report_units_bytes(was, from->whole), report_units_bytes(now, p->peak_bytes));
    to->advice = base_strdup("Give them back by a frame around it; out[]: what is used later:");
    to->call = base_asprintf("ad_frame frame = ad_frame_begin(tape); ... %s", end);
    free(what);
    free(end);
}

static void word_unread(struct report_finding *to, const struct analyze_finding *from,
                        const struct wording *with)
{
    if (from->proposal) {
        word_frame(to, from);
        return;
    }
    char held[REPORT_UNITS_ROOM], peak[REPORT_UNITS_ROOM], names[NAMES_ROOM];
    char *where = word_where(&from->line, with), *place = word_place(&from->line, with);
    report_text_names(names, sizeof names, &from->line.ops, ", ");
    to->text = base_asprintf("%s of the peak (%s of %s) are results of %s that no pullback reads.",
                             to->strong, report_units_bytes(held, from->part),
                             report_units_bytes(peak, from->whole), where);
    to->advice = base_strdup("Give each back after its last use, or those of a step at once by a "
                             "frame (ad_frame_begin, ad_frame_end):");
    to->call = base_asprintf("ad_release(y); /* y: the result of %s at %s */", names, place);
    free(place);
    free(where);
}

static void word_dead(struct report_finding *to, const struct analyze_finding *from,
                      const struct wording *with)
{
    char dead[REPORT_UNITS_ROOM], all[REPORT_UNITS_ROOM];
    char share[REPORT_UNITS_ROOM], *where = word_where(&from->line, with);
    to->text =
        base_asprintf("%s of all that went on the tape (%s of %s) was saved for pullbacks "
                      "and given back before one read it, %s of it (%s) of %s.",
                      to->strong, report_units_bytes(dead, from->part),
                      report_units_bytes(all, from->whole), word_largest(from->held, from->part),
                      report_units_share(share, from->held, from->part), where);
    to->advice = base_strdup("Where no sweep follows, record nothing:");
    to->call = base_strdup("ad_tape_no_grad_begin(tape); ... ad_tape_no_grad_end(tape);");
    free(where);
}

static void word_checkpoint(struct report_finding *to, const struct analyze_finding *from,
                            const struct wording *with)
{
    const struct analyze_proposal *p = from->proposal;
    char was[REPORT_UNITS_ROOM], now[REPORT_UNITS_ROOM], cost[REPORT_UNITS_ROOM];
    const bool section = p->deed == ANALYZE_PREACCUMULATE;
    char *what = report_proposal_text(p);
    to->text =
        base_asprintf("%s%s as %s: the peak falls by %s, from %s to %s, for %s%s more.", what,
                      p->times <= 1 ? ""
                      : p->each > 1 ? " at a time,"
                                    : ",",
                      section ? "a preaccumulated section" : "a checkpoint", to->strong,
                      report_units_bytes(was, from->whole), report_units_bytes(now, p->peak_bytes),
                      p->cost_is_estimate ? "~" : "", word_time(cost, p->cost_ns, with));
    to->advice = base_asprintf(section ? "Enclose it:" : "Make it a function of its own:");
    if (section)
        to->call = base_asprintf("ad_preaccumulate_begin(tape); ... ad_preaccumulate_end(tape, "
                                 "%llu, out, NULL);",
                                 (unsigned long long)p->outputs);
    else
        to->call = base_asprintf("%s(tape, %s_again, &payload, %llu, in, %llu, out);",
                                 report_proposal_call(p), p->callee ? p->callee : "part",
                                 (unsigned long long)p->inputs, (unsigned long long)p->outputs);
    free(what);
}

static struct report_finding *findings_add(struct report_findings *findings)
{
    BASE_ARRAY_GROW(findings->finding, findings->n, &findings->room);
    struct report_finding *finding = &findings->finding[findings->n++];
    *finding = (struct report_finding){.view = "summary", .tab = "", .sort = "plain"};
    return finding;
}

static struct report_finding *add_kind(struct report_findings *findings,
                                       const struct analyze_finding *from,
                                       const struct wording *with)
{
    char share[REPORT_UNITS_ROOM];
    struct report_finding *to = findings_add(findings);
    to->kind = kind_name(from->kind);
    to->title = kinds[from->kind].title;
    to->howto = kinds[from->kind].howto;
    to->view = kinds[from->kind].view;
    to->tab = kinds[from->kind].tab;
    to->sort = kinds[from->kind].sort;
    to->strong = base_strdup(report_units_share(share, from->part, from->whole));
    to->line = from->line;
    if (from->line.ops.n > 0)
        to->where = word_place(&from->line, with);
    return to;
}

/* Why nothing was recorded, to be freed; NULL: something was. */
static char *word_unrecorded(const struct analyze_result *analysis)
{
    const struct read_profile *profile = analysis->profile;
    const struct analyze_cost *sum = &analysis->sum;
    const unsigned long long tapes = analysis->total.tapes, first = profile->first_step,
                             last = profile->last_step, ended = profile->seen_steps;
    if (sum->calls > 0 || analysis->total.records > 0 || analyze_cost_time(sum) > 0 ||
        sum->other_ns > 0)
        return NULL;
    if (profile->has_steps && ended <= first)
        return base_asprintf("--steps %llu:%llu was asked for, and the program ended %llu step%s",
                             first, last, ended, ended == 1 ? "" : "s");
    if (profile->is_sampled)
        return base_strdup("the program ended before a sample was taken. --freq asks for more, "
                           "--time exact counts every op");
    if (tapes == 0)
        return base_strdup("the program made no tape while it was profiled (ad_tape_create)");
    return base_asprintf("the program made %llu tape%s, and no op ran on %s while it was profiled",
                         tapes, tapes == 1 ? "" : "s", tapes == 1 ? "it" : "them");
}

/* Of a profile of which nothing is worth a finding: the functions that have most, in one. */
static void add_functions(struct report_findings *findings, const struct wording *with)
{
    const struct analyze_findings *found = &findings->found;
    struct report_finding *to = findings_add(findings);
    char *text = base_strdup(""), share[REPORT_UNITS_ROOM];
    to->kind = kind_name(ANALYZE_FINDING_FUNCTION);
    to->title = kinds[ANALYZE_FINDING_FUNCTION].title;
    to->view = kinds[ANALYZE_FINDING_FUNCTION].view;
    for (size_t i = 0; i < found->n; i++) {
        const struct analyze_finding *from = &found->finding[i];
        const char *name = from->line.function ? from->line.function : "?";
        char *longer =
            base_asprintf("%s%s%s %s%s", text, i > 0 ? ", " : "AD's time by function: ", name,
                          from->line.cost.cpu_samples > 0 ? "~" : "",
                          report_units_share(share, from->part, from->whole));
        free(text);
        text = longer;
    }
    if (found->n > 0) {
        to->advice = base_strdup("All of them:");
        to->call = base_asprintf("tapescope top --by function %s", with->profile);
    }
    char *why = word_unrecorded(with->analysis);
    to->text = base_asprintf("%s%s.", why ? "Nothing was recorded: " : text,
                             why            ? why
                             : found->n > 0 ? ""
                                            : "There is nothing to say of its times or bytes");
    free(why);
    free(text);
}

static void add_growth(struct report_findings *findings, const struct report_growth *growth,
                       const struct report_sizes *sizes, const struct wording *with)
{
    enum { LEAST_PERCENT = 5 };
    const struct report_growth_row *steep = NULL;
    char largest[REPORT_UNITS_ROOM];
    for (size_t i = 0; i < growth->n; i++) {
        const struct report_growth_row *row = &growth->row[i];
        if (!row->row->any->own && analyze_fit_is_above(&row->bytes, 1.1) &&
            100 * row->largest_bytes >= LEAST_PERCENT * growth->total.largest_bytes &&
            (!steep || row->largest_bytes > steep->largest_bytes))
            steep = row;
    }
    if (!steep)
        return;
    struct report_finding *to = findings_add(findings);
    char *where = word_where(steep->row->any, with);
    to->kind = "growth";
    to->title = "Growing faster than the problem";
    to->view = "growth";
    to->sort = "warn";
    to->line = *steep->row->any;
    to->where = word_place(&to->line, with);
    to->strong = base_asprintf("n^%.2f", steep->bytes.exponent);
    to->text = base_asprintf("%s: its tape bytes grow as %s (95 %%: %.2f to %.2f) with n, %s; %s "
                             "at the largest.",
                             where, to->strong, steep->bytes.low, steep->bytes.high, sizes->name,
                             report_units_bytes(largest, read_whole(steep->largest_bytes)));
    to->advice = base_strdup("Keep it out of a loop over the problem, or checkpoint that loop. A "
                             "limit for it in a test:");
    to->call = base_asprintf("tapescope check --max-growth 1.1 PROFILE...");
    to->howto = SQUARE;
    free(where);
}

void report_findings_make(struct report_findings *findings, const struct analyze_result *analysis,
                          const struct report_known *known, const struct report_style *style)
{
    static void (*const word[ANALYZE_FINDING_KINDS])(
        struct report_finding *, const struct analyze_finding *,
        const struct wording *) = {word_rest,   word_grid,   word_line, word_pullback,
                                   word_rewind, word_unread, word_dead, word_checkpoint};
    const struct wording with = {analysis, style, analysis->profile->path};
    *findings = (struct report_findings){.n = 0};
    analyze_findings_make(&findings->found, analysis, known->proposals);
    const struct analyze_findings *found = &findings->found;
    for (size_t i = 0; i < found->n && word[found->finding[i].kind]; i++)
        word[found->finding[i].kind](add_kind(findings, &found->finding[i], &with),
                                     &found->finding[i], &with);
    if (known->growth)
        add_growth(findings, known->growth, known->sizes, &with);
    if (findings->n == 0)
        add_functions(findings, &with);
}

void report_findings_free(struct report_findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        struct report_finding *finding = &findings->finding[i];
        char *const texts[] = {finding->text, finding->where, finding->strong, finding->advice,
                               finding->call};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
    }
    free(findings->finding);
    analyze_findings_free(&findings->found);
    *findings = (struct report_findings){.n = 0};
}

/* A copy for a terminal, to be freed: names of the program may hold what would move its cursor. */
static char *findings_shown(const char *text)
{
    return base_json_shown(base_strdup(text ? text : ""));
}

void report_findings_print(const struct report_findings *findings, const struct report_style *style)
{
    for (size_t i = 0; i < findings->n; i++) {
        const struct report_finding *finding = &findings->finding[i];
        char *text = findings_shown(finding->text), *advice = findings_shown(finding->advice),
             *call = findings_shown(finding->call);
        putc('\n', style->out);
        report_text_paragraph(style->out, style->width, "%s. %s%s%s", finding->title, text,
                              *advice ? " " : "", advice);
        if (*call)
            fprintf(style->out, "    %s\n", call);
        free(text);
        free(advice);
        free(call);
        char topic[REPORT_HOWTO_ROOM];
        if (finding->howto) {
            report_howto_topic(topic, finding->howto);
            fprintf(style->out, "    tapescope help %s\n", topic);
        }
    }
}

void report_findings_json(struct base_json *json, const struct report_findings *findings)
{
    base_json_array(json, "findings");
    for (size_t i = 0; i < findings->n; i++) {
        const struct report_finding *finding = &findings->finding[i];
        base_json_object(json, NULL);
        base_json_text(json, "kind", finding->kind);
        base_json_text(json, "title", finding->title);
        base_json_text(json, "text", finding->text);
        base_json_text(json, "advice", finding->advice);
        base_json_text(json, "call", finding->call);
        base_json_text(json, "howto", finding->howto);
        base_json_text(json, "weighs", finding->strong);
        base_json_text(json, "where", finding->where);
        base_json_text(json, "view", finding->view);
        base_json_text(json, "tab", finding->tab);
        base_json_text(json, "sort", finding->sort);
        base_json_end(json);
    }
    base_json_end(json);
}
