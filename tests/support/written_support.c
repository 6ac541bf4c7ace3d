/* written_support.c: see written_support.h. */
#include "written_support.h"
#include "check_quietly.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The compiler's flags for a file, whose warnings are errors. */
static void compiler_begin(struct program_command *command, const char *compiler)
{
    *command = (struct program_command){0};
    program_add_all(command, compiler, "-std=c99", "-O0", "-Wall", "-Wextra", "-pedantic",
                    "-Werror", NULL);
    program_add_includes(command);
}

/* The other compiler has looked at the file as well. The module's library is the one that the test
 * is linked with, which it exports (ENABLE_EXPORTS). */
void *written_module(const char *name)
{
    struct program_command command;
    char source[PATH_MAX + WRITTEN_NAME], output[PATH_MAX + WRITTEN_NAME];
    snprintf(source, sizeof source, "%s/%s.c", program_folder, name);
    snprintf(output, sizeof output, "%s/%s.so", program_folder, name);
    compiler_begin(&command, TEST_C_COMPILER);
    program_add_all(&command, "-shared", "-fPIC", "-o", output, source, NULL);
    program_must(&command);
    if (*TEST_CLANG) {
        compiler_begin(&command, TEST_CLANG);
        /* What links a sanitizer has no use here. */
        program_add_all(&command, "-Wno-unused-command-line-argument", "-fsyntax-only", source,
                        NULL);
        program_must(&command);
    }
    void *module = dlopen(output, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(module != NULL, "%s", dlerror());
    return module;
}

FILE *written_open(const char *name)
{
    char path[PATH_MAX + WRITTEN_NAME];
    snprintf(path, sizeof path, "%s/%s.c", program_folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    return file;
}

struct written written_of(void *module, const char *name)
{
    struct written f;
    char other[WRITTEN_NAME + 16];
    *(void **)(void *)&f.values = dlsym(module, name);
    snprintf(other, sizeof other, "%s_adjoint", name);
    *(void **)(void *)&f.adjoint = dlsym(module, other);
    snprintf(other, sizeof other, "%s_room", name);
    const long *room = dlsym(module, other);
    ck_assert_msg(f.values && f.adjoint && room, "%s", name);
    f.work = malloc((size_t)*room * sizeof *f.work);
    memset(f.work, 0xff, /* NaN */ (size_t)*room * sizeof *f.work);
    return f;
}

void written_close(FILE *file, const char *name)
{
    fprintf(file, "const long %s_room = %s_work;\n", name, name);
    ck_assert_int_eq(fclose(file), 0);
}
