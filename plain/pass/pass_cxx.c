/* pass_cxx.c: what C++ calls of its own libraries.
 *
 * Exceptions need nothing else: an invoke is a call whose results are taken where it returns
 * (plain_invokes_prepare gives that way a block of its own). Where one is caught no index is taken
 * from the thread's arrays, and each call fills them anew. What an exception carries lies in
 * memory, with its shadow.
 */
#include "pass.h"

#include <string.h>

/* They pass no floating values on, and call nothing that records: exceptions, memory, strings of
 * characters, output. */
bool pass_is_cxx_call(const char *name)
{
    static const char *const begin[] = {"__cxa_",
                                        "_Unwind_",
                                        "_Znwm", /* new */
                                        "_Znam",
                                        "_ZdlPv", /* delete */
                                        "_ZdaPv",
                                        "_ZSt17__throw_",
                                        "_ZSt19__throw_",
                                        "_ZSt20__throw_",
                                        "_ZSt24__throw_",
                                        "_ZSt28__throw_",
                                        "_ZSt9terminatev",
                                        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcE",
                                        "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcE",
                                        "_ZNSo", /* std::ostream */
                                        "_ZStlsISt11char_traitsIcE",
                                        "_ZSt16__ostream_insertIcSt11char_traitsIcE",
                                        NULL};
    for (const char *const *b = begin; *b; b++)
        if (strncmp(name, *b, strlen(*b)) == 0)
            return true;
    return false;
}

/* One of the functions, of float, double or long double. */
static bool is_of_number(const char *name, const char *const *begin)
{
    for (; *begin; begin++) {
        const size_t n = strlen(*begin);
        if (strncmp(name, *begin, n) == 0 && name[n] && strchr("fde", name[n]))
            return true;
    }
    return false;
}

bool pass_writes_to_stream(const char *name)
{
    static const char *const begin[] = {"_ZNSolsE", "_ZNSo9_M_insertI", NULL};
    return is_of_number(name, begin);
}

bool pass_reads_from_stream(const char *name)
{
    static const char *const begin[] = {"_ZNSirsER", "_ZNSi10_M_extractI", NULL};
    return is_of_number(name, begin);
}
