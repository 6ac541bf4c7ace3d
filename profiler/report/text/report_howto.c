/* report_howto.c: see report_howto.h. */
#include "report_howto.h"

#include "base_memory.h"
#include "base_program.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report_howto_topic(char buf[REPORT_HOWTO_ROOM], const char *howto)
{
    const char *heading = strchr(howto, '#'), *page = howto;
    const char *end = heading ? heading : howto + strlen(howto);
    for (const char *at = howto; at < end; at++)
        page = *at == '/' ? at + 1 : page;
    const char *suffix = strstr(page, ".md");
    if (suffix && suffix < end)
        end = suffix;
    snprintf(buf, REPORT_HOWTO_ROOM, "%.*s%s", (int)(end - page), page, heading ? heading : "");
}

/* The page below the folder that lies there, seen from the program's. */
static FILE *howto_open(const char *folder, const char *page, size_t n)
{
    static const char *const sort[] = {"how-to", "tutorial", "reference", "explanation"};
    char program[PATH_MAX], path[2 * PATH_MAX];
    FILE *file = NULL;
    if (base_program_folder(program, sizeof program) == 0)
        return NULL;
    for (size_t i = 0; !file && i < sizeof sort / sizeof *sort; i++) {
        snprintf(path, sizeof path, "%s%s/%s/%.*s.md", program, folder, sort[i], (int)n, page);
        file = fopen(path, "re");
    }
    return file;
}

/* Whether the line is a heading whose link is this one, as GitHub makes links. */
static bool heading_is(const char *line, const char *link)
{
    line += strspn(line, "#");
    line += strspn(line, " ");
    for (; *line && *line != '\n'; line++) {
        const unsigned char c = (unsigned char)*line;
        if (c != ' ' && c != '-' && c != '_' && !isalnum(c) && c < 0x80)
            continue;
        if (*link != (c == ' ' ? '-' : (char)tolower(c)))
            return false;
        link++;
    }
    return *link == '\0';
}

/* What follows a heading, up to the next one of its level or above; without a link: all. */
static char *howto_section(FILE *file, const char *link)
{
    char *line = NULL, *text = NULL;
    size_t room = 0, n, level = 0;
    bool code = false, inside = !link, found = inside;
    FILE *out = base_memstream_open(&text, &n);
    while (getline(&line, &room, file) > 0) {
        const size_t marks = code ? 0 : strspn(line, "#");
        code ^= strncmp(line, "```", 3) == 0;
        if (link && marks > 0 && inside && marks <= level)
            inside = false;
        if (link && marks > 0 && !found && heading_is(line, link)) {
            level = marks;
            found = inside = true;
        }
        if (inside)
            fputs(line, out);
    }
    free(line);
    base_memstream_close(out, &text);
    if (found)
        return text;
    free(text);
    return NULL;
}

char *report_howto_text(const char *topic)
{
    /* Where it is installed; and where it was built, below the source. */
    static const char *const folder[] = {REPORT_DOCS_FROM_BIN, "../../../docs"};
    char name[REPORT_HOWTO_ROOM];
    report_howto_topic(name, topic);
    const char *link = strchr(name, '#');
    const size_t n = link ? (size_t)(link - name) : strlen(name);
    FILE *file = NULL;
    for (size_t i = 0; n > 0 && !file && i < sizeof folder / sizeof *folder; i++)
        file = howto_open(folder[i], name, n);
    if (!file)
        return NULL;
    char *text = howto_section(file, link ? link + 1 : NULL);
    fclose(file);
    return text;
}
