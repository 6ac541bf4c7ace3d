/* sites_main.c: runs what sites.c holds, linked in or loaded from the shared object
 * SITES_OBJECT. */
#include <stdio.h>
#include <string.h>

#ifdef SITES_OBJECT
#include <dlfcn.h>

static int call(const char *name)
{
    void *object = dlopen(SITES_OBJECT, RTLD_NOW);
    void *symbol = object ? dlsym(object, name) : NULL;
    int (*function)(void);
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    memcpy(&function, &symbol, sizeof function);
    return function();
}
#else
#ifdef __cplusplus
extern "C" {
#endif
int sites_run(void);
int sites_error(void);
#ifdef __cplusplus
}
#endif

static int call(const char *name)
{
    return strcmp(name, "sites_run") == 0 ? sites_run() : sites_error();
}
#endif

int main(int argc, char **argv)
{
    return call(argc > 1 ? argv[1] : "sites_run");
}
