/* program_support.c: see program_support.h. */
#include "program_support.h"
#include "check_quietly.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char program_folder[PATH_MAX];
char program_output[1 << 16];

void program_setup(void)
{
    snprintf(program_folder, sizeof program_folder, "%s/a program.XXXXXX", TEST_BINARY_DIR);
    ck_assert_ptr_nonnull(mkdtemp(program_folder));
    /* Modules are beside the library; a program linked statically is told where. */
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    setenv("TAPESCOPE_CLOCK", "step:1000", 1);
    setenv("LC_ALL", "C", 1);
    unsetenv("TAPESCOPE_PROFILE");
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void program_teardown(void)
{
    nftw(program_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *join(const char *folder, const char *name)
{
    static char buffer[16][2 * PATH_MAX];
    static unsigned next;
    char *path = buffer[next++ % 16];
    snprintf(path, sizeof buffer[0], "%s/%s", folder, name);
    return path;
}

const char *program_path(const char *name)
{
    return join(program_folder, name);
}

const char *program_source(const char *name)
{
    return join(TEST_SOURCE_DIR "/programs", name);
}

void program_add(struct program_command *command, const char *argument)
{
    ck_assert_int_lt(command->n, PROGRAM_ARGS - 1);
    command->argv[command->n++] = argument;
    command->argv[command->n] = NULL;
}

void program_add_all(struct program_command *command, ...)
{
    va_list list;
    va_start(list, command);
    for (const char *argument; (argument = va_arg(list, const char *)) != NULL;)
        program_add(command, argument);
    va_end(list);
}

void program_add_includes(struct program_command *command)
{
    static char folder[8][PATH_MAX];
    const char *from = TAPESCOPE_INCLUDE_DIRS;
    for (int i = 0; *from && i < 8; i++) {
        size_t n = strcspn(from, ":");
        snprintf(folder[i], sizeof folder[i], "-I%.*s", (int)n, from);
        program_add(command, folder[i]);
        from += n + (from[n] == ':');
    }
    static char flag[4][PATH_MAX];
    from = TEST_SANITIZE_FLAGS;
    for (int i = 0; *from && i < 4; i++) {
        size_t n = strcspn(from, " ");
        snprintf(flag[i], sizeof flag[i], "%.*s", (int)n, from);
        program_add(command, flag[i]);
        from += n + (from[n] == ' ');
    }
}

void program_add_shared(struct program_command *command)
{
    program_add_all(command, "-L" TAPESCOPE_LIB_DIR, "-Wl,-rpath," TAPESCOPE_LIB_DIR, "-ltapescope",
                    NULL);
}

void program_add_static(struct program_command *command)
{
    program_add_all(command, TAPESCOPE_LIB_DIR "/libtapescope.a", "-lopenblas", "-lmvec", "-lm",
                    "-ldl", "-lpthread", NULL);
}

static void run_child(const struct program_command *command, const char *output)
{
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    union {
        const char *const *from;
        char *const *to;
    } argv = {.from = command->argv};
    execvp(argv.to[0], argv.to);
    _exit(127);
}

int program_run(const struct program_command *command)
{
    const char *output = program_path("output");
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        run_child(command, output);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    char *text = program_text(output);
    snprintf(program_output, sizeof program_output, "%s", text);
    free(text);
    return status;
}

void program_must(const struct program_command *command)
{
    int status = program_run(command);
    if (status == 0)
        return;
    char line[8192] = "";
    for (int i = 0; i < command->n; i++) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s ", command->argv[i]);
    }
    ck_abort_msg("status %#x of %s\n%s", (unsigned)status, line, program_output);
}

static void program_compile(const char *name, const char *source)
{
    struct program_command command = {0};
    program_add_all(&command, TEST_C_COMPILER, "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra",
                    "-Werror", "-o", program_path(name), source, NULL);
    program_add_includes(&command);
    program_add_shared(&command);
    program_add(&command, "-lpthread");
    program_must(&command);
}

/* Whether there is such a file, and it is newer than the other. */
static bool is_newer(const char *path, const char *than)
{
    struct stat one, other;
    if (stat(path, &one) != 0 || stat(than, &other) != 0)
        return false;
    return one.st_mtim.tv_sec != other.st_mtim.tv_sec ? one.st_mtim.tv_sec > other.st_mtim.tv_sec
                                                      : one.st_mtim.tv_nsec > other.st_mtim.tv_nsec;
}

/* What was compiled is kept for other tests, which may run at the same time: what has the name is
 * whole. The library is newer than its headers. */
void program_build(const char *name)
{
    char source[64], kept[PATH_MAX];
    snprintf(source, sizeof source, "%s.c", name);
    snprintf(kept, sizeof kept, "%s/program %s", TEST_BINARY_DIR, name);
    if (!is_newer(kept, program_source(source)) ||
        !is_newer(kept, TAPESCOPE_LIB_DIR "/libtapescope.so")) {
        program_compile(name, program_source(source));
        ck_assert_int_eq(rename(program_path(name), kept), 0);
    }
    (void)unlink(program_path(name)); /* the test may have asked for it before */
    ck_assert_int_eq(link(kept, program_path(name)), 0);
}

bool program_exists(const char *name)
{
    const char *from = getenv("PATH");
    char path[PATH_MAX];
    if (!*name)
        return false;
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    while (from && *from) {
        size_t n = strcspn(from, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, from, name);
        if (access(path, X_OK) == 0)
            return true;
        from += n + (from[n] == ':');
    }
    return false;
}

int program_record(const char *profile, const char *program, const char *argument)
{
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "record", "-o", profile, "--", program, argument,
                    NULL);
    return program_run(&command);
}

char *program_text(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    char *text = NULL;
    size_t n = 0;
    if (getdelim(&text, &n, '\0', file) < 0)
        text[0] = '\0';
    fclose(file);
    return text;
}

unsigned program_line(const char *text, const char *label)
{
    char mark[128];
    size_t n = (size_t)snprintf(mark, sizeof mark, "// @%s\n", label);
    unsigned line = 1;
    for (; *text; text++) {
        if (strncmp(text, mark, n) == 0)
            return line;
        line += *text == '\n';
    }
    ck_abort_msg("no line is marked @%s", label);
    return 0;
}

static void warn(void *payload, const char *message)
{
    (void)payload;
    ck_abort_msg("%s", message);
}

struct program_profile program_open(const char *path)
{
    char error[4096];
    struct program_profile opened = {.profile = read_profile(path, error, sizeof error)};
    ck_assert_msg(opened.profile != NULL, "%s", error);
    opened.analysis = analyze_profile(opened.profile, warn, NULL);
    ck_assert_ptr_nonnull(opened.analysis);
    return opened;
}

void program_close(struct program_profile *opened)
{
    analyze_free(opened->analysis);
    read_profile_free(opened->profile);
}

static bool is_file(const struct analyze_line *line, const char *file)
{
    const char *last = line->file ? strrchr(line->file, '/') : NULL;
    return line->file && strcmp(last ? last + 1 : line->file, file) == 0;
}

const struct analyze_line *program_find(const struct analyze_result *analysis, const char *file,
                                        unsigned line, const char *op)
{
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        bool here = line ? !at->own && is_file(at, file) && at->line == line : at->own;
        if (here && at->ops.n == 1 && strcmp(at->ops.name[0], op) == 0)
            return at;
    }
    return NULL;
}

void program_check_sums(const struct analyze_result *analysis)
{
    const struct analyze_cost *sum = &analysis->sum;
    const struct analyze_totals *total = &analysis->total;
    ck_assert_uint_eq(analyze_cost_tape_bytes(sum), total->handed_out_bytes);
    ck_assert_uint_eq(sum->live_bytes, total->live_bytes);
    ck_assert_uint_eq(sum->peak_bytes, total->peak_bytes);
    ck_assert_uint_eq(sum->forward_ticks, total->forward_ticks);
    ck_assert_uint_eq(sum->backward_ticks, total->backward_ticks);
    ck_assert_uint_eq(sum->forward_ns, total->forward_ns);
    ck_assert_uint_eq(sum->backward_ns, total->backward_ns);
}
