/* test_symbols.c: addresses of small programs, compiled here in several ways, and the places
 * found for them.
 *
 * The programs print the return addresses that a wrapper like those of tapescope's headers sees; a
 * comment "@name" in the source marks the line where the call is written.
 */
#include "run_cases.h"
#include "symbols.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header_text[] =
    "typedef struct { double v; } ad_t;\n"
    "__attribute__((noinline, visibility(\"default\")))\n"
    "ad_t ad_seen(const char *name, unsigned line, ad_t a, ad_t b);\n"
    "static inline __attribute__((always_inline))\n"
    "ad_t ad_one(const char *name, unsigned line, ad_t a, ad_t b)\n"
    "{ ad_t r = ad_seen(name, line, a, b); __asm__ volatile(\"\"); return r; }\n"
    "static inline __attribute__((always_inline))\n"
    "ad_t ad_mul(const char *name, unsigned line, ad_t a, ad_t b)\n"
    "{ return ad_one(name, line, a, b); }\n";

static const char program_text[] =
    "#define _GNU_SOURCE\n"
    "#include <link.h>\n"
    "#include <stdio.h>\n"
    "#include <tapescope/ad.h>\n"
    "ad_t shared_function(ad_t x);\n"
    "ad_t ad_seen(const char *name, unsigned line, ad_t a, ad_t b)\n"
    "{\n"
    "    printf(\"site %s %p %u\\n\", name, __builtin_return_address(0), line);\n"
    "    return (ad_t){a.v * b.v};\n"
    "}\n"
    "__attribute__((noinline)) ad_t plain_call(ad_t x)\n"
    "{\n"
    "    ad_t y = ad_seen(\"plain\", 0, x, x); /* @plain */\n"
    "    y.v += 1;\n"
    "    return y;\n"
    "}\n"
    "__attribute__((noinline)) ad_t tail_call(ad_t x)\n"
    "{\n"
    "    return ad_mul(\"tail\", 0, x, x); /* @tail */\n"
    "}\n"
    "__attribute__((noinline)) ad_t nested_calls(ad_t x)\n"
    "{\n"
    "    return ad_mul(\"outer\", 23, /* @outer */\n"
    "                  ad_mul(\"left\", __LINE__, x, x), /* @left */\n"
    "                  ad_mul(\"right\", __LINE__, /* @right */\n"
    "                         x, x));\n"
    "}\n"
    "static inline __attribute__((always_inline)) ad_t inner_function(ad_t x)\n"
    "{\n"
    "    x = ad_mul(\"inlined\", 0, x, x); /* @inlined */\n"
    "    return x;\n"
    "}\n"
    "__attribute__((noinline)) ad_t calls_inner(ad_t x)\n"
    "{\n"
    "    x.v += 2;\n"
    "    return inner_function(x); /* @call of inner */\n"
    "}\n"
    "static int print_module(struct dl_phdr_info *info, size_t size, void *payload)\n"
    "{\n"
    "    (void)size;\n"
    "    for (int i = 0; i < info->dlpi_phnum; i++)\n"
    "        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X))\n"
    "            printf(\"module %lx %lx %lx %s\\n\", info->dlpi_addr,\n"
    "                   info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_addr +\n"
    "                   info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz,\n"
    "                   info->dlpi_name[0] ? info->dlpi_name : (char *)payload);\n"
    "    return 0;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    ad_t x = {argc};\n"
    "    dl_iterate_phdr(print_module, argv[0]);\n"
    "    x = plain_call(x), x = tail_call(x), x = nested_calls(x);\n"
    "    x = calls_inner(x), x = shared_function(x);\n"
    "    return x.v == 3.25;\n"
    "}\n";

static const char shared_text[] = "#include <tapescope/ad.h>\n"
                                  "ad_t shared_function(ad_t x)\n"
                                  "{\n"
                                  "    return ad_mul(\"shared\", 0, x, x); /* @shared */\n"
                                  "}\n";

static const struct {
    const char *name, *function, *file;
} sites[] = {
    {"plain", "plain_call", "program.c"},      {"tail", "tail_call", "program.c"},
    {"outer", "nested_calls", "program.c"},    {"left", "nested_calls", "program.c"},
    {"right", "nested_calls", "program.c"},    {"inlined", "inner_function", "program.c"},
    {"shared", "shared_function", "shared.c"},
};
enum { SITES = sizeof sites / sizeof *sites, MAX_MODULES = 32 };

static char folder[512];

/* What a run of the program said. */
struct run {
    struct symbols_module module[MAX_MODULES];
    char path[MAX_MODULES][1024];
    size_t n_modules;
    uint64_t pc[SITES];
    unsigned line[SITES];
};

static void write_file(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs a command in the test's folder. */
static void shell(const char *format, ...)
{
    char command[4096], line[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
    ck_assert_msg(system(line) == 0, "failed: %s", line); /* NOLINT(cert-env33-c) */
}

static void build(const char *compiler, const char *flags)
{
    shell("'%s' %s -Iinclude -fPIC -shared -o libshared.so shared.c", compiler, flags);
    shell("'%s' %s -Iinclude -rdynamic -o program program.c libshared.so -Wl,-rpath,\"$PWD\"",
          compiler, flags);
}

/* "module BIAS START END PATH", numbers in hexadecimal. */
static void add_module(struct run *run, const char *text)
{
    char *at;
    struct symbols_module *module = &run->module[run->n_modules];
    ck_assert_uint_lt(run->n_modules, MAX_MODULES);
    module->bias = strtoull(text, &at, 16);
    module->start = strtoull(at, &at, 16);
    module->end = strtoull(at, &at, 16);
    ck_assert_int_eq(*at, ' ');
    snprintf(run->path[run->n_modules], sizeof run->path[0], "%s", at + 1);
    module->path = run->path[run->n_modules++];
}

/* "site NAME PC LINE". */
static void add_site(struct run *run, const char *text)
{
    char *at;
    size_t n = strcspn(text, " ");
    for (int i = 0; i < SITES; i++) {
        if (strlen(sites[i].name) != n || strncmp(sites[i].name, text, n) != 0)
            continue;
        run->pc[i] = strtoull(text + n, &at, 16);
        run->line[i] = (unsigned)strtoul(at, NULL, 10);
    }
}

static void run_program(struct run *run)
{
    char command[1024], line[2048];
    *run = (struct run){0};
    snprintf(command, sizeof command, "'%s/program'", folder);
    FILE *output = popen(command, "r"); /* NOLINT(cert-env33-c) */
    ck_assert_ptr_nonnull(output);
    while (fgets(line, sizeof line, output)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "module ", 7) == 0)
            add_module(run, line + 7);
        else if (strncmp(line, "site ", 5) == 0)
            add_site(run, line + 5);
    }
    ck_assert_int_eq(pclose(output), 0);
    ck_assert_uint_ge(run->n_modules, 2);
}

static unsigned marked_line(const char *text, const char *name)
{
    char mark[64];
    snprintf(mark, sizeof mark, "@%s ", name);
    const char *end = strstr(text, mark);
    ck_assert_ptr_nonnull(end);
    unsigned line = 1;
    for (; text < end; text++)
        line += *text == '\n';
    return line;
}

static void count_warning(void *payload, const char *message)
{
    ck_assert_ptr_nonnull(strstr(message, folder));
    ++*(int *)payload;
}

static void check_all_sites(const struct run *run, const char *how)
{
    struct symbols *symbols = symbols_open(run->module, run->n_modules, NULL, NULL);
    ck_assert_ptr_nonnull(symbols);
    for (int i = 0; i < SITES; i++) {
        struct symbols_place place;
        char file[1024];
        bool shared = strcmp(sites[i].file, "shared.c") == 0;
        unsigned line = marked_line(shared ? shared_text : program_text, sites[i].name);
        snprintf(file, sizeof file, "%s/%s", folder, sites[i].file);
        ck_assert_msg(symbols_resolve(symbols, run->pc[i], run->line[i], &place) == 0,
                      "%s: %s has no line", how, sites[i].name);
        ck_assert_str_eq(place.file, file);
        ck_assert_msg(strcmp(place.function, sites[i].function) == 0 && place.line == line,
                      "%s: %s is %s:%u, not %s:%u", how, sites[i].name, place.function,
                      (unsigned)place.line, sites[i].function, line);
        ck_assert_uint_gt(place.function_line, 0);
        ck_assert_uint_lt(place.function_line, place.line);
    }
    ck_assert_uint_eq(symbols_units_walked(symbols), 2);
    symbols_close(symbols);
}

static void set_up(void)
{
    snprintf(folder, sizeof folder, "%s/symbols XXXXXX", TEST_BINARY_DIR);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    shell("mkdir -p include/tapescope");
    write_file("include/tapescope/ad.h", header_text);
    write_file("program.c", program_text);
    write_file("shared.c", shared_text);
}

static void tear_down(void)
{
    shell("rm -rf '%s'", folder);
}

static void check_compiler(const char *compiler)
{
    static const char *const flags[] = {"-g -O0", "-g -O2", "-g -O3 -gdwarf-4",
                                        "-g -O2 -no-pie -fno-pie -Wno-unused-command-line-argument",
                                        "-g -O2 -gsplit-dwarf"};
    if (!*compiler)
        return;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char how[1024];
        struct run run;
        /* Nested calls with gcc rely on __LINE__; so does every line that a program passes. */
        snprintf(how, sizeof how, "%s %s", compiler, flags[i]);
        build(compiler, flags[i]);
        run_program(&run);
        check_all_sites(&run, how);
    }
}

START_TEST(sites_have_the_line_and_function_where_the_call_is_written)
{
    check_compiler(TEST_C_COMPILER);
}
END_TEST

START_TEST(clang_sites_have_the_line_and_function_where_the_call_is_written)
{
    check_compiler(TEST_CLANG);
}
END_TEST

/* The address of "inlined" belongs to inner_function, at the line where calls_inner has it. */
static void check_chain(const char *compiler, const char *flags)
{
    struct run run;
    struct symbols_place place[4];
    if (!*compiler)
        return;
    build(compiler, flags);
    run_program(&run);
    struct symbols *symbols = symbols_open(run.module, run.n_modules, NULL, NULL);
    size_t n = symbols_chain(symbols, run.pc[5], run.line[5], place, 4);
    ck_assert_msg(n == 2, "%s %s: %zu functions", compiler, flags, n);
    ck_assert_str_eq(place[0].function, "inner_function");
    ck_assert_uint_eq(place[0].line, marked_line(program_text, "inlined"));
    ck_assert_str_eq(place[1].function, "calls_inner");
    ck_assert_ptr_eq(place[1].file, place[0].file);
    ck_assert_uint_eq(place[1].line, marked_line(program_text, "call of inner"));
    ck_assert_uint_eq(place[1].function_line, marked_line(program_text, "call of inner") - 3);
    ck_assert_uint_eq(symbols_chain(symbols, run.pc[5], run.line[5], place, 1), 1);
    ck_assert_uint_eq(symbols_chain(symbols, run.pc[0], run.line[0], place, 4), 1);
    ck_assert_str_eq(place[0].function, "plain_call");
    symbols_close(symbols);
}

START_TEST(an_inlined_function_is_followed_by_the_one_that_has_its_code)
{
    check_chain(TEST_C_COMPILER, "-g -O2");
    check_chain(TEST_C_COMPILER, "-g -O2 -gsplit-dwarf");
    check_chain(TEST_CLANG, "-g -O2");
}
END_TEST

/* Compilers give line 0 to what they have moved or joined, and leave the file of the line above. */
START_TEST(code_of_no_line_has_its_functions_line_and_file)
{
    char path[1024], file[1024];
    if (!*TEST_CLANG) /* gcc's assembler takes no line 0 */
        return;
    write_file("other.h", "int other(int x)\n{\n    return x + 1;\n}\n");
    write_file("lineless.c", "#include \"other.h\"\n\nint lineless(int x)\n{\n    x = other(x);\n"
                             "    __asm__ volatile(\"# here\");\n    return x;\n}\n");
    shell("'%s' -g -O0 -fPIC -S lineless.c", TEST_CLANG);
    shell("n=$(sed -n 's/.*\\.file[[:space:]]*\\([0-9]*\\) .*other.h\".*/\\1/p' lineless.s) && "
          "sed \"s/^[[:space:]]*# here$/ .loc $n 0\\n .globl of_no_line\\nof_no_line: nop/\" "
          "lineless.s >changed.s");
    shell("'%s' -shared -o liblineless.so changed.s 2>/dev/null", TEST_CLANG);
    snprintf(path, sizeof path, "%s/liblineless.so", folder);
    snprintf(file, sizeof file, "%s/lineless.c", folder);
    void *library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    const uint64_t pc = (uint64_t)(uintptr_t)dlsym(library, "of_no_line");
    Dl_info info;
    ck_assert_int_ne(dladdr(dlsym(library, "of_no_line"), &info), 0);
    const uint64_t base = (uint64_t)(uintptr_t)info.dli_fbase;
    const struct symbols_module module = {
        .path = path, .bias = base, .start = base, .end = base + (1 << 20)};
    struct symbols *symbols = symbols_open(&module, 1, NULL, NULL);
    struct symbols_place place;
    ck_assert_int_eq(symbols_resolve(symbols, pc + 1, 0, &place), 0);
    ck_assert_str_eq(place.function, "lineless");
    ck_assert_str_eq(place.file, file);
    ck_assert_uint_eq(place.line, 3);
    symbols_close(symbols);
    dlclose(library);
}
END_TEST

START_TEST(without_debug_information_a_site_has_symbol_and_offset)
{
    struct run run;
    struct symbols_place place;
    build(TEST_C_COMPILER, "-O0");
    run_program(&run);
    struct symbols *symbols = symbols_open(run.module, run.n_modules, NULL, NULL);
    ck_assert_int_eq(symbols_resolve(symbols, run.pc[1], 0, &place), 1);
    ck_assert_ptr_null(place.file);
    ck_assert_str_eq(place.function, "tail_call");
    ck_assert_uint_gt(place.offset, 0);
    ck_assert_uint_lt(place.offset, 4096);
    ck_assert_int_eq(symbols_resolve(symbols, run.pc[1], 19, &place), 1);
    ck_assert_uint_eq(place.line, 19);
    symbols_close(symbols);
}
END_TEST

START_TEST(a_separate_debug_file_is_found_by_its_link)
{
    struct run run;
    build(TEST_C_COMPILER, "-g -O2");
    shell("for f in program libshared.so; do objcopy --only-keep-debug $f $f.debug && "
          "strip $f && objcopy --add-gnu-debuglink=$f.debug $f || exit 1; done");
    run_program(&run);
    check_all_sites(&run, "debuglink");
    shell("rm program.debug");
    struct symbols *symbols = symbols_open(run.module, run.n_modules, NULL, NULL);
    struct symbols_place place;
    ck_assert_int_eq(symbols_resolve(symbols, run.pc[1], 0, &place), 1);
    ck_assert_ptr_nonnull(place.module);
    symbols_close(symbols);
}
END_TEST

/* What the first has walked the second need not; the first may go before. */
START_TEST(symbols_beside_others_share_their_files)
{
    struct run run;
    struct symbols_place place, again;
    char function[64], gone[sizeof folder + 8];
    build(TEST_C_COMPILER, "-g -O2");
    run_program(&run);
    struct symbols *first = symbols_open(run.module, run.n_modules, NULL, NULL);
    ck_assert_int_eq(symbols_resolve(first, run.pc[1], run.line[1], &place), 0);
    const uint64_t walked = symbols_units_walked(first);
    ck_assert_uint_gt(walked, 0);
    struct symbols *second = symbols_open_beside(run.module, run.n_modules, NULL, NULL, first);
    struct symbols *alone = symbols_open(run.module, run.n_modules, NULL, NULL);
    ck_assert_uint_eq(symbols_units_walked(second), walked);
    ck_assert_uint_eq(symbols_units_walked(alone), 0);
    snprintf(function, sizeof function, "%s", place.function);
    symbols_close(first);
    ck_assert_int_eq(symbols_resolve(second, run.pc[1], run.line[1], &again), 0);
    ck_assert_uint_eq(symbols_units_walked(second), walked);
    ck_assert_str_eq(again.function, function);
    symbols_close(second);
    symbols_close(alone);
    /* One that cannot be used is warned of by each. */
    int warnings = 0;
    snprintf(gone, sizeof gone, "%s/gone", folder);
    for (size_t i = 0; i < run.n_modules; i++)
        run.module[i].path = gone;
    first = symbols_open(run.module, 1, count_warning, &warnings);
    second = symbols_open_beside(run.module, 1, count_warning, &warnings, first);
    for (int i = 0; i < 4; i++)
        (void)symbols_resolve(i % 2 ? first : second, run.module[0].start + 9, 0, &place);
    ck_assert_int_eq(warnings, 2);
    symbols_close(second);
    symbols_close(first);
}
END_TEST

START_TEST(a_program_that_was_built_again_is_not_used_and_warned_of_once)
{
    static const uint8_t other_id[20] = {1, 2, 3};
    struct run run;
    struct symbols_place place;
    int warnings = 0;
    build(TEST_C_COMPILER, "-g -O2");
    run_program(&run);
    for (size_t i = 0; i < run.n_modules; i++) {
        run.module[i].build_id = other_id;
        run.module[i].build_id_bytes = sizeof other_id;
    }
    struct symbols *symbols = symbols_open(run.module, run.n_modules, count_warning, &warnings);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(symbols_resolve(symbols, run.pc[1], 0, &place), 1);
        ck_assert_ptr_null(place.function);
        ck_assert_ptr_nonnull(place.module);
    }
    ck_assert_int_eq(warnings, 1);
    symbols_close(symbols);
}
END_TEST

START_TEST(ten_thousand_addresses_walk_each_unit_once)
{
    enum { ADDRESSES = 10000 };
    struct run run;
    struct symbols_place place;
    build(TEST_C_COMPILER, "-g -O2");
    run_program(&run);
    struct symbols *symbols = symbols_open(run.module, run.n_modules, NULL, NULL);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        const struct symbols_module *module = &run.module[i % run.n_modules];
        /* Only the program and its library: what the system has in debug information may vary. */
        if (!strstr(module->path, folder))
            continue;
        symbols_resolve(symbols, module->start + i % (module->end - module->start), 0, &place);
    }
    ck_assert_uint_eq(symbols_units_walked(symbols), 2);
    symbols_close(symbols);
}
END_TEST

/* The module for messages. */

typedef int describe_fn(uintptr_t pc, uint32_t line, char *buf, unsigned n);
static describe_fn *describe;
enum { THREADS = 4 };

__attribute__((noinline)) static uintptr_t here(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

__attribute__((noinline)) static unsigned address_in_test(uintptr_t *pc)
{
    *pc = here(); /* this line */
    __asm__ volatile("");
    return __LINE__ - 2;
}

static void *describe_often(void *payload)
{
    char expected[128], text[128];
    uintptr_t pc;
    unsigned line = address_in_test(&pc);
    snprintf(expected, sizeof expected, "test_symbols.c:%u in address_in_test", line);
    for (int i = 0; i < 100; i++)
        if (describe(pc, 0, text, sizeof text) != 0 || strcmp(text, expected) != 0)
            return payload;
    return NULL;
}

START_TEST(the_symbol_module_describes_an_address_of_this_process_from_any_thread)
{
    char text[128];
    uintptr_t pc;
    void *module = dlopen(TAPESCOPE_LIB_DIR "/tapescope/tapescope-symbols.so", RTLD_NOW);
    ck_assert_msg(module != NULL, "%s", dlerror());
    *(void **)&describe = dlsym(module, "tapescope_symbol_describe");
    ck_assert(describe != NULL);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, describe_often, module), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    address_in_test(&pc);
    ck_assert_int_eq(describe(pc, 4711, text, sizeof text), 0);
    ck_assert_str_eq(text, "test_symbols.c:4711 in address_in_test");
    ck_assert_int_eq(describe(pc, 0, text, 5), 0);
    ck_assert_str_eq(text, "test");
    ck_assert_int_eq(describe(0, 0, text, sizeof text), -1);
    ck_assert_int_eq(describe(16, 0, text, sizeof text), -1);
    dlclose(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("symbols");
    TCase *programs = tcase_create("programs");
    tcase_set_timeout(programs, 120);
    tcase_add_checked_fixture(programs, set_up, tear_down);
    tcase_add_test(programs, sites_have_the_line_and_function_where_the_call_is_written);
    tcase_add_test(programs, clang_sites_have_the_line_and_function_where_the_call_is_written);
    tcase_add_test(programs, an_inlined_function_is_followed_by_the_one_that_has_its_code);
    tcase_add_test(programs, code_of_no_line_has_its_functions_line_and_file);
    tcase_add_test(programs, without_debug_information_a_site_has_symbol_and_offset);
    tcase_add_test(programs, a_separate_debug_file_is_found_by_its_link);
    tcase_add_test(programs, symbols_beside_others_share_their_files);
    tcase_add_test(programs, a_program_that_was_built_again_is_not_used_and_warned_of_once);
    tcase_add_test(programs, ten_thousand_addresses_walk_each_unit_once);
    suite_add_tcase(suite, programs);
    TCase *module = tcase_create("module");
    tcase_set_timeout(module, 60);
    tcase_add_test(module, the_symbol_module_describes_an_address_of_this_process_from_any_thread);
    suite_add_tcase(suite, module);
    return run_suite(suite);
}
