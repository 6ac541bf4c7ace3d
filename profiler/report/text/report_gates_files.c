/* report_gates_files.c: what became of gates, for continuous integration. See report_gates.h.
 *
 * Invariant: no name can end what it stands in: controls become question marks, all else is escaped
 * as the form wants it.
 */
#include "report_gates.h"

#include "base_json.h"
#include "base_memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Text within an attribute: XML 1.0 has no control characters, and bytes that are no UTF-8 are
 * none of its characters either. */
static void put_xml(FILE *out, const char *text)
{
    char *shown = base_json_shown(base_strdup(text));
    for (const char *at = shown; *at; at++) {
        if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '&')
            fputs("&amp;", out);
        else if (*at == '"')
            fputs("&quot;", out);
        else
            putc(*at, out);
    }
    free(shown);
}

void report_gates_put_junit(const struct report_gates *gates, FILE *out)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\">\n"
            "<testsuite name=\"tapescope check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"0\">\n",
            gates->n, report_gates_failed(gates), gates->n, report_gates_failed(gates));
    for (size_t i = 0; i < gates->n; i++) {
        const struct report_gate *gate = &gates->gate[i];
        fputs("<testcase classname=\"", out);
        put_xml(out, gate->name);
        fputs("\" name=\"", out);
        put_xml(out, gate->subject);
        if (gate->failed) {
            fputs("\"><failure message=\"", out);
            put_xml(out, gate->text);
            fputs("\"/></testcase>\n", out);
        } else {
            fputs("\"/>\n", out);
        }
    }
    fputs("</testsuite>\n</testsuites>\n", out);
}

/* ---- SARIF: Static Analysis Results Interchange Format 2.1.0, OASIS Standard, 2020 ---- */

/* The file's name below the folder; NULL: it is elsewhere. */
static const char *gates_below(const char *folder, const char *file)
{
    const size_t n = strlen(folder);
    if (*file != '/')
        return file;
    return n > 0 && strncmp(file, folder, n) == 0 && file[n] == '/' ? file + n + 1 : NULL;
}

/* RFC 3986: all but unreserved characters and slashes in percent. A file elsewhere has a scheme. */
static void sarif_put_uri(struct base_json *json, const struct report_gates_names *names,
                          const char *file)
{
    enum { ROOM = 4096 };
    char uri[ROOM + 4];
    const char *below = gates_below(names->folder, file), *at = below ? below : file;
    size_t n = (size_t)snprintf(uri, sizeof uri, "%s", below ? "" : "file://");
    for (; *at && n < ROOM; at++) {
        if (isalnum((unsigned char)*at) || strchr("-._~/", *at))
            uri[n++] = *at;
        else
            n += (size_t)snprintf(uri + n, 4, "%%%02X", (unsigned)(unsigned char)*at);
    }
    uri[n] = '\0';
    base_json_object(json, "artifactLocation");
    base_json_text(json, "uri", uri);
    if (below)
        base_json_text(json, "uriBaseId", "%SRCROOT%");
    base_json_end(json);
}

/* The place of the gate's name among those of the gates before it, each once. */
static size_t sarif_rule(const struct report_gates *gates, size_t gate, bool *is_new)
{
    size_t n = 0;
    *is_new = true;
    for (size_t i = 0; i < gate; i++) {
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first &= strcmp(gates->gate[k].name, gates->gate[i].name) != 0;
        if (strcmp(gates->gate[i].name, gates->gate[gate].name) == 0) {
            *is_new = false;
            return n;
        }
        n += first;
    }
    return n;
}

static void sarif_put_message(struct base_json *json, const char *name, const char *text)
{
    base_json_object(json, name);
    base_json_name(json, "text", text);
    base_json_end(json);
}

/* What GitHub shows of a rule; of names that are not here, the name. */
static void sarif_put_rule(struct base_json *json, const char *name)
{
    static const char *const texts[][2] = {
        {"max-peak", "The tape has more bytes at its peak than its limit."},
        {"max-total-tape", "More bytes are put on the tape than the limit."},
        {"max-tape", "A line puts more bytes on the tape than its limit."},
        {"max-ratio", "The backward pass takes longer, in forward times, than the limit."},
        {"max-growth", "Tape bytes grow faster with the problem than the limit."},
        {"expect-ratio", "A backward pass takes longer than AD_EXPECT_RATIO states."},
        {"expect-tape-bytes", "More bytes are put on the tape than AD_EXPECT_TAPE_BYTES states."},
        {"expectations", "The program states no expectation."},
        {"base", "The profiles cannot be compared."},
        {"base-tape", "More bytes are put on the tape than in the base."},
        {"base-peak", "The tape has more bytes at its peak than in the base."},
        {"base-time", "More time is taken than in the base."},
    };
    const char *text = name;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i][0], name) == 0)
            text = texts[i][1];
    base_json_object(json, NULL);
    base_json_text(json, "id", name);
    sarif_put_message(json, "shortDescription", text);
    sarif_put_message(json, "fullDescription", text);
    sarif_put_message(json, "help", "tapescope check --help says what each limit is.");
    base_json_end(json);
}

static void sarif_put_result(struct base_json *json, const struct report_gates *gates, size_t i,
                             const struct report_gates_names *names)
{
    char text[4096];
    bool is_new;
    const struct report_gate *gate = &gates->gate[i];
    snprintf(text, sizeof text, "%s: %s", gate->subject, gate->text);
    base_json_object(json, NULL);
    base_json_text(json, "ruleId", gate->name);
    base_json_u64(json, "ruleIndex", sarif_rule(gates, i, &is_new));
    base_json_text(json, "level", "error");
    sarif_put_message(json, "message", text);
    base_json_array(json, "locations");
    base_json_object(json, NULL);
    base_json_object(json, "physicalLocation");
    sarif_put_uri(json, names, gate->file ? gate->file : names->whole);
    if (gate->line > 0) {
        base_json_object(json, "region");
        base_json_u64(json, "startLine", gate->line);
        base_json_end(json);
    }
    base_json_end(json);
    base_json_end(json);
    base_json_end(json);
    base_json_end(json);
}

void report_gates_put_sarif(const struct report_gates *gates,
                            const struct report_gates_names *names, FILE *out)
{
    struct base_json json;
    bool is_new;
    base_json_begin(&json, out);
    base_json_text(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    base_json_text(&json, "version", "2.1.0");
    base_json_array(&json, "runs");
    base_json_object(&json, NULL);
    base_json_object(&json, "tool");
    base_json_object(&json, "driver");
    base_json_text(&json, "name", "tapescope");
    base_json_text(&json, "version", names->version);
    base_json_array(&json, "rules");
    for (size_t i = 0; i < gates->n; i++) {
        sarif_rule(gates, i, &is_new);
        if (is_new)
            sarif_put_rule(&json, gates->gate[i].name);
    }
    base_json_end(&json);
    base_json_end(&json);
    base_json_end(&json);
    base_json_array(&json, "results");
    for (size_t i = 0; i < gates->n; i++)
        if (gates->gate[i].failed)
            sarif_put_result(&json, gates, i, names);
    base_json_finish(&json);
}

/* ---- GitHub: "Workflow commands for GitHub Actions" ---- */

/* Text of a command, or of a property of it, whose end are commas and colons. */
static void github_put(FILE *out, const char *text, bool is_property)
{
    char *shown = base_json_shown(base_strdup(text));
    for (const char *at = shown; *at; at++)
        if (*at == '%' || (is_property && (*at == ':' || *at == ',')))
            fprintf(out, "%%%02X", (unsigned)*at);
        else
            putc(*at, out);
    free(shown);
}

void report_gates_put_github(const struct report_gates *gates,
                             const struct report_gates_names *names, FILE *out)
{
    for (size_t i = 0; i < gates->n; i++) {
        const struct report_gate *gate = &gates->gate[i];
        const char *below = gate->file ? gates_below(names->folder, gate->file) : NULL;
        if (!gate->failed)
            continue;
        fputs("::error ", out);
        if (gate->file) {
            fputs("file=", out);
            github_put(out, below ? below : gate->file, true);
            fprintf(out, ",line=%u,", (unsigned)gate->line);
        }
        fputs("title=tapescope check ", out);
        github_put(out, gate->name, true);
        fputs("::", out);
        github_put(out, gate->subject, false);
        fputs(": ", out);
        github_put(out, gate->text, false);
        putc('\n', out);
    }
}
