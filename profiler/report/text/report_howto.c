/* report_howto.c: see report_howto.h. */
#include "report_howto.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_program.h"
#include "report_text.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Where pages lie below the docs, the likeliest first. */
static const char *const sorts[] = {"how-to", "tutorial", "reference", "explanation"};
enum { SORTS = sizeof sorts / sizeof *sorts, DOING = 2 /* of them say what to do */ };

/* Where the docs lie, seen from the program: as it is installed; as it was built, below the source.
 */
static const char *const folders[] = {REPORT_DOCS_FROM_BIN, "../../../docs"};
enum { FOLDERS = sizeof folders / sizeof *folders };

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
    char program[PATH_MAX], path[2 * PATH_MAX];
    FILE *file = NULL;
    if (base_program_folder(program, sizeof program) == 0)
        return NULL;
    for (size_t i = 0; !file && i < SORTS; i++) {
        snprintf(path, sizeof path, "%s%s/%s/%.*s.md", program, folder, sorts[i], (int)n, page);
        file = fopen(path, "re");
    }
    return file;
}

/* The link of a heading, as GitHub makes links. */
static void heading_link(char buf[REPORT_HOWTO_ROOM], const char *line)
{
    size_t n = 0;
    line += strspn(line, "#");
    line += strspn(line, " ");
    for (; *line && *line != '\n' && n + 1 < REPORT_HOWTO_ROOM; line++) {
        const unsigned char c = (unsigned char)*line;
        if (c == ' ' || c == '-' || c == '_' || isalnum(c) || c >= 0x80)
            buf[n++] = (char)(c == ' ' ? '-' : tolower(c));
    }
    buf[n] = '\0';
}

static bool heading_is(const char *line, const char *link)
{
    char own[REPORT_HOWTO_ROOM];
    heading_link(own, line);
    return strcmp(own, link) == 0;
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
    char name[REPORT_HOWTO_ROOM];
    report_howto_topic(name, topic);
    const char *link = strchr(name, '#');
    const size_t n = link ? (size_t)(link - name) : strlen(name);
    FILE *file = NULL;
    for (size_t i = 0; n > 0 && !file && i < FOLDERS; i++)
        file = howto_open(folders[i], name, n);
    if (!file)
        return NULL;
    char *text = howto_section(file, link ? link + 1 : NULL);
    fclose(file);
    return text;
}

/* A section that has the word. */
struct howto_found {
    char topic[2 * REPORT_HOWTO_ROOM];
    bool named;     /* its heading has it */
    unsigned lines; /* that have it */
    size_t sort;    /* in which folder it is */
    size_t place;   /* in the order of the pages */
};

struct howto_search {
    const char *word; /* without a plural's s */
    size_t n_word;
    struct howto_found *found;
    size_t n, room;
    char *term; /* the glossary's row; NULL: none */
};

/* Whether the line has the word, or its plural, as a word. */
static bool howto_has(const struct howto_search *search, const char *line)
{
    for (const char *at = line; *at; at++) {
        if ((at > line && isalnum((unsigned char)at[-1])) ||
            strncasecmp(at, search->word, search->n_word) != 0)
            continue;
        const char *end = at + search->n_word;
        end += tolower((unsigned char)*end) == 's';
        if (!isalnum((unsigned char)*end))
            return true;
    }
    return false;
}

/* "| [frame](link) | a part of `values` ... |": "frame: a part of values ...", to be freed. */
static char *howto_plain_term(const char *row)
{
    size_t n = 0, cells = 0;
    char *plain = base_calloc(strlen(row) + 2, 1);
    for (const char *at = row; *at && *at != '\n' && cells < 3; at++) {
        if (*at == '|') {
            if (++cells == 2) {
                while (n > 0 && plain[n - 1] == ' ')
                    n--;
                plain[n++] = ':';
            }
        } else if (at[0] == ']' && at[1] == '(') {
            at += strcspn(at, ")");
            if (*at == '\0')
                break;
        } else if (!strchr("[`*", *at) && (n > 0 || *at != ' ')) {
            plain[n++] = *at;
        }
    }
    while (n > 0 && plain[n - 1] == ' ')
        plain[--n] = '\0';
    return plain;
}

/* Whether the first cell of a row of a table is the word. */
static bool howto_is_term(const struct howto_search *search, const char *row)
{
    char *plain = howto_plain_term(row), *end = strchr(plain, ':');
    bool is = false;
    if (row[0] == '|' && end) {
        *end = '\0';
        is = howto_has(search, plain) && (size_t)(end - plain) <= search->n_word + 1;
    }
    free(plain);
    return is;
}

static void howto_search_page(struct howto_search *search, FILE *page, const char *name,
                              size_t sort)
{
    struct howto_found here = {.sort = sort};
    char *line = NULL;
    size_t room = 0;
    bool code = false;
    const bool glossary = strcmp(name, "glossary") == 0;
    for (bool more = true; more;) {
        more = getline(&line, &room, page) > 0;
        const size_t marks = code || !more ? 0 : strspn(line, "#");
        if ((marks > 0 || !more) && here.lines > 0 && *here.topic) {
            BASE_ARRAY_GROW(search->found, search->n, &search->room);
            here.place = search->n;
            search->found[search->n++] = here;
        }
        if (!more)
            break;
        code ^= strncmp(line, "```", 3) == 0;
        if (marks > 0) {
            char link[REPORT_HOWTO_ROOM];
            heading_link(link, line);
            here = (struct howto_found){.named = howto_has(search, line), .sort = sort};
            snprintf(here.topic, sizeof here.topic, "%s%s%s", name, marks > 1 ? "#" : "",
                     marks > 1 ? link : "");
        }
        here.lines += howto_has(search, line);
        if (glossary && !search->term && howto_is_term(search, line))
            search->term = howto_plain_term(line);
    }
    free(line);
}

static int howto_is_page(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name), suffix = strlen(".md");
    /* The page of the commands is their --help. */
    return n > suffix && n < REPORT_HOWTO_ROOM && strcmp(entry->d_name, "commands.md") != 0 &&
           strcmp(entry->d_name + n - suffix, ".md") == 0;
}

/* All pages below one folder; false: there are none. */
static bool howto_search_folder(struct howto_search *search, const char *folder)
{
    char program[PATH_MAX];
    bool any = false;
    if (base_program_folder(program, sizeof program) == 0)
        return false;
    for (size_t i = 0; i < SORTS; i++) {
        struct dirent **entry = NULL;
        char *path = base_asprintf("%s%s/%s", program, folder, sorts[i]);
        const int n = scandir(path, &entry, howto_is_page, alphasort);
        for (int j = 0; j < n; j++) {
            char *file = base_asprintf("%s/%s", path, entry[j]->d_name);
            FILE *page = fopen(file, "re");
            entry[j]->d_name[strlen(entry[j]->d_name) - strlen(".md")] = '\0';
            if (page) {
                any = true;
                howto_search_page(search, page, entry[j]->d_name, i);
                fclose(page);
            }
            free(file);
            free(entry[j]);
        }
        free(entry);
        free(path);
    }
    return any;
}

static int howto_compare_found(const void *x, const void *y)
{
    const struct howto_found *a = x, *b = y;
    if (a->named != b->named)
        return a->named ? -1 : 1;
    const bool a_does = a->sort < DOING, b_does = b->sort < DOING;
    if (!a->named && a_does != b_does)
        return a_does ? -1 : 1;
    if (!a->named && a->lines != b->lines)
        return a->lines > b->lines ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

bool report_howto_find(const char *word, FILE *out, unsigned width)
{
    enum { MOST = 10 };
    struct howto_search search = {.word = word, .n_word = strlen(word)};
    search.n_word -= search.n_word > 3 && tolower((unsigned char)word[search.n_word - 1]) == 's';
    for (size_t i = 0; search.n_word > 0 && i < FOLDERS; i++)
        if (howto_search_folder(&search, folders[i]))
            break;
    if (search.n > 0)
        qsort(search.found, search.n, sizeof *search.found, howto_compare_found);
    if (search.term)
        report_text_paragraph(out, width, "%s.", search.term);
    if (search.term)
        putc('\n', out);
    if (search.n > 0)
        report_text_paragraph(out, width, "Sections of the docs that have '%s':", word);
    for (size_t i = 0; i < search.n && i < MOST; i++)
        fprintf(out, "    tapescope help %s\n", search.found[i].topic);
    if (search.n > MOST)
        fprintf(out, "    and %zu more\n", search.n - MOST);
    free(search.found);
    free(search.term);
    return search.n > 0;
}
