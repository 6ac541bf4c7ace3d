/* cli_paths.c: see cli_paths.h. */
#include "cli_paths.h"

#include "base_array.h"
#include "base_memory.h"
#include "cli.h"
#include "cli_args.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int paths_is_profile(const struct dirent *entry)
{
    static const char suffix[] = ".prof";
    const size_t n = strlen(entry->d_name), m = strlen(suffix);
    return entry->d_name[0] != '.' && n > m && strcmp(entry->d_name + n - m, suffix) == 0;
}

static void paths_put(struct cli_paths *paths, char *path)
{
    BASE_ARRAY_GROW(paths->path, paths->n, &paths->room);
    paths->path[paths->n++] = path;
}

int cli_paths_add(struct cli_paths *paths, const char *command, const char *operand)
{
    struct stat status;
    struct dirent **entry;
    if (stat(operand, &status) != 0 || !S_ISDIR(status.st_mode)) {
        paths_put(paths, base_strdup(operand)); /* what cannot be opened is said when it is */
        return CLI_OK;
    }
    const int n = scandir(operand, &entry, paths_is_profile, versionsort);
    if (n <= 0) {
        cli_message("%s: %s: %s", command, operand,
                    n < 0 ? strerror(errno) : "no profiles (*.prof) are in this folder");
        if (n == 0)
            free(entry);
        return CLI_BAD_PROFILE;
    }
    for (int i = 0; i < n; i++) {
        paths_put(paths, base_asprintf("%s/%s", operand, entry[i]->d_name));
        free(entry[i]);
    }
    free(entry);
    return CLI_OK;
}

void cli_paths_free(struct cli_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct cli_paths){.n = 0};
}
