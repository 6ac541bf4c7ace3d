/* ad_file.h: named tensors in a file of NumPy's format .npz: numpy.load reads what is written here,
 * and numpy.savez and numpy.savez_compressed write what is read. Included by the user beside ad.h.
 *
 *     const char *const names[] = {"w", "b"};
 *     status = ad_save(tape, "model.npz", 2, names, (ad_tensor[]){w, b});
 *
 *     >>> numpy.load("model.npz")["w"]
 *
 *     ad_tensor x[2];
 *     status = ad_load(tape, "model.npz", 2, names, x);
 *
 * Names are UTF-8, not empty, of at most 65 531 bytes, each once a file. Elements are written as
 * float32, float64 and int64, row-major, not compressed, bit for bit; so NaN keeps its bits. Equal
 * arrays under equal names make equal files.
 *
 * A file that exists is replaced once the new one is whole and on the disk (fsync): it is written
 * beside it, as PATH.PID.NUMBER.tmp, and renamed. It keeps its permissions, and a symbolic link
 * stays one. After a failure the old file is as it was, and what was written beside it is gone. A
 * path that is no regular file (a pipe, /dev/stdout) is written to directly.
 *
 * Errors, kept in the tape: AD_ERROR_FILE (the system refuses, with its words, such as "No space
 * left on device"; no zip archive, cut off, damaged, a name that is not there or is there twice, a
 * dtype that cannot be read), with the path and the tensor's name; AD_ERROR_ARGUMENT (a null
 * pointer, a name that is none or comes twice), AD_ERROR_MEMORY. A call that finds the tape in
 * error returns that, and writes nothing. Without a tape the error is the thread's.
 *
 * Threads: as for the tape. Two threads or processes may save to one path: one of the two files is
 * there in the end, whole.
 */
#ifndef TAPESCOPE_AD_FILE_H
#define TAPESCOPE_AD_FILE_H

#include <tapescope/ad.h>
#include <tapescope/ad_functional.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Saves the values of x[n] under names[n]: live tensors of the tape, of any shape and dtype, views
 * too. n may be 0. Other errors: AD_ERROR_HANDLE, AD_ERROR_TAPE. */
AD_INLINE ad_status ad_save(ad_tape tape, const char *path, int n, const char *const *names,
                            const ad_tensor *x AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_save,
                  (ad_tape tape, const char *path, int n, const char *const *names,
                   const ad_tensor *x),
                  (tape, path, n, names, x))

/* Makes x[n] of the tensors of the file at path that have the names[n]; others in it are passed
 * over. Floats become leaves over copies that the tape owns, as by ad_leaf_copy, with their shapes:
 * of f64 for float64, f32 for float32 and float16, which is exact. Integers that fit into 64 bits
 * with a sign, and bools, become constants of i64. Arrays may be in Fortran's order, of either byte
 * order, compressed; they may have up to AD_MAX_RANK axes. Before it makes any the call has read
 * all, which takes as many bytes of memory besides, and has compared the file's checksums. All or
 * none: after an error x[n] are as results of an op that failed. Other errors: those of
 * ad_leaf_copy. */
AD_INLINE ad_status ad_load(ad_tape tape, const char *path, int n, const char *const *names,
                            ad_tensor *x AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_load,
                  (ad_tape tape, const char *path, int n, const char *const *names, ad_tensor *x),
                  (tape, path, n, names, x))

/* The same for the arrays of a struct (ad_visit): one visit, in which handles of leaves are neither
 * needed nor set. Other errors: of the visit. */
AD_INLINE ad_status ad_visit_save(ad_tape tape, const char *path, ad_visit_function *visit,
                                  void *model AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_visit_save,
                  (ad_tape tape, const char *path, ad_visit_function *visit, void *model),
                  (tape, path, visit, model))

/* Reads the arrays of a struct, of the shapes and dtypes that its visit says: AD_ERROR_SHAPE and
 * AD_ERROR_DTYPE where the file has others, but float32 goes into AD_F64, and float16 into both.
 * All or none: after an error each array is as it was. Arrays that a recording reads must not
 * change before its sweep (ad_leaf_changed). */
AD_INLINE ad_status ad_visit_load(ad_tape tape, const char *path, ad_visit_function *visit,
                                  void *model AD_LINE_PARAMETER_);
AD_SITED_MUST_USE(ad_status, ad_visit_load,
                  (ad_tape tape, const char *path, ad_visit_function *visit, void *model),
                  (tape, path, visit, model))

#if AD_LINE_MACROS
#define ad_save(...) ad_save_at(__VA_ARGS__, __LINE__)
#define ad_load(...) ad_load_at(__VA_ARGS__, __LINE__)
#define ad_visit_save(...) ad_visit_save_at(__VA_ARGS__, __LINE__)
#define ad_visit_load(...) ad_visit_load_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
