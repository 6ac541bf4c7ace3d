/* ad_npz.h: arrays to and from a file, for the calls of ad_file.h, which find them. */
#ifndef AD_NPZ_H
#define AD_NPZ_H

#include "ad_internal.h"
#include "ad_npy.h"

/* A call that saves or loads. */
struct ad_npz {
    struct tape *t;
    const char *what; /* "save" */
    const char *path;
    struct tape_site site;
    struct ad_scratch scratch; /* of the tape's memory; the caller frees it */
};

struct ad_npz_array {
    const char *name;
    struct ad_npy_array array;
    bool given; /* reading: the array must have this dtype and this shape */
};

/* Begins a call; false: no tape, one in error, or no path, and *status says so. */
bool ad_npz_begin(struct ad_npz *f, ad_tape tape, ad_status *status);
/* The names are names, each once; a status of the tape's error. */
ad_status ad_npz_check_names(struct ad_npz *f, int n, const struct ad_npz_array *a);
/* Writes all arrays. */
ad_status ad_npz_write(struct ad_npz *f, int n, const struct ad_npz_array *a);
/* Reads them into scratch memory, whole and compared with their checksums. */
ad_status ad_npz_read(struct ad_npz *f, int n, struct ad_npz_array *a);

#endif
