/* tests_main.c: the main of a program that has all tests of a folder: PROGRAM TEST runs one, as
 * CTest does; without a name it says which there are.
 *
 * test_rows.h is made by the build. The main of each test has the name of its file.
 */
#include "test_rows.h"

#include <stdio.h>
#include <string.h>

#define DECLARE(name) int name(void);
TEST_ROWS(DECLARE)

static const struct test {
    const char *name;
    int (*run)(void);
} tests[] = {
#define ROW(name) {#name, name},
    TEST_ROWS(ROW)};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc == 2 && strcmp(argv[1], tests[i].name) == 0)
            return tests[i].run();
        if (argc != 2)
            puts(tests[i].name);
    }
    if (argc == 2)
        fprintf(stderr, "%s: there is no test %s here\n", argv[0], argv[1]);
    return 2;
}
