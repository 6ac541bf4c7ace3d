/* test_aside.c: files that appear whole or not at all. */
#include "read_aside.h"
#include "run_cases.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope aside XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static int count_files(void)
{
    int n = 0;
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

static void teardown(void)
{
    if (unlink(path) != 0)
        rmdir(path);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static char *make(const char *text)
{
    int fd;
    char *aside = read_aside_make(path, &fd);
    ck_assert_ptr_nonnull(aside);
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    ck_assert_int_eq(close(fd), 0);
    return aside;
}

static void check_text(const char *want)
{
    char text[16] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(text, 1, sizeof text - 1, file), strlen(want));
    ck_assert_str_eq(text, want);
    fclose(file);
}

TEST(a_file_has_its_name_once_it_is_whole_and_the_rights_of_any_new_file)
{
    struct stat status;
    mode_t mask = umask(027);
    char *aside = make("one");
    umask(mask);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(read_aside_settle(aside, path, 0), 0);
    check_text("one");
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    ck_assert_int_eq(read_aside_settle(make("two"), path, 0), 0);
    check_text("two");
    ck_assert_int_eq(count_files(), 1);
}

TEST(after_a_failure_nothing_is_left_and_what_was_there_stays)
{
    ck_assert_int_eq(read_aside_settle(make("one"), path, 0), 0);
    ck_assert_int_eq(read_aside_settle(make("two"), path, ENOSPC), ENOSPC);
    check_text("one");
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(read_aside_settle(NULL, path, EIO), EIO);
}

TEST(a_name_that_cannot_be_had_is_a_failure)
{
    int fd;
    char nowhere[160];
    ck_assert_int_eq(mkdir(path, 0777), 0);
    ck_assert_int_eq(read_aside_settle(make("one"), path, 0), EISDIR);
    ck_assert_int_eq(count_files(), 1);
    snprintf(nowhere, sizeof nowhere, "%s/no/where", folder);
    ck_assert_ptr_null(read_aside_make(nowhere, &fd));
    ck_assert_int_eq(errno, ENOENT);
}

TEST(a_pipe_stays_one_and_is_written_to)
{
    struct stat status;
    char text[16] = "";
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const int end = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(end, 0);
    ck_assert_int_eq(read_aside_settle(make("one"), path, 0), 0);
    ck_assert_int_eq(read_aside_settle(make("two"), path, ENOSPC), ENOSPC);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert(S_ISFIFO(status.st_mode));
    ck_assert_int_eq(read(end, text, sizeof text), 6);
    ck_assert_str_eq(text, "onetwo");
    ck_assert_int_eq(close(end), 0);
    ck_assert_int_eq(count_files(), 1);
}

RUN_TESTS(setup, teardown)
