/* tape_preaccumulate.h: sections of statements that are replaced by their local Jacobian.
 *
 * Sections nest. The outputs of a section are named at its end; its other results are no values of
 * the tape afterwards, whether it was replaced or not, since all of them have the section's tag.
 *
 * Invariant: what lies behind a section's begin are records of statements alone, or else the
 * section is left as it is.
 */
#ifndef TAPE_PREACCUMULATE_H
#define TAPE_PREACCUMULATE_H

#include "tape_statement.h"

/* A section of statements that is to be preaccumulated: where the tape was at its begin. */
struct tape_section {
    struct tape_statement_mark from; /* the tag in rest.result is that of what lies outside */
    char *record_top;
    uint32_t last_record, n_records, n_values, n_marks, frame, n_tags;
    uint32_t number; /* from 1, in order of their begin, over resets as well */
};

/* A buffer that lasts as long as the end of a section takes. */
struct tape_scratch {
    void *p;
    uint64_t bytes;
};

enum { TAPE_SCRATCHES = 8 };

/* What the tape has of sections. */
struct tape_sections {
    struct tape_section *open; /* the innermost last */
    uint32_t n, size;
    uint32_t number; /* of the newest, ever */
    uint32_t row;    /* that scratch is charged to */
    struct tape_scratch scratch[TAPE_SCRATCHES];
};

/* What became of a section. */
struct tape_section_report {
    uint64_t statements[2], bytes[2]; /* before, after */
    uint64_t jacobian_bytes;          /* that its Jacobian takes or would take; 0: not known */
    uint32_t inputs;
    const char *kept; /* why it was left as it is; NULL: it was replaced */
};

/* The tape is recorded on by its thread. */
enum tape_status tape_section_begin(struct tape *t, struct tape_site site);

/* The end of the innermost section, which there is: memory for its m outputs, or NULL; then
 * output[m], indices on the tape: where the section is replaced, those of its results become the
 * new ones (NULL: it is left as it is); then the memory is given back. Nothing else may be called
 * between these. */
uint32_t *tape_section_outputs(struct tape *t, int64_t m, struct tape_site site);
void tape_section_end(struct tape *t, int64_t m, uint32_t *output, struct tape_site site,
                      struct tape_section_report *report);
void tape_section_outputs_free(struct tape *t);
/* The same without a Jacobian: the statements stay. */
void tape_section_leave(struct tape *t);

/* "WHAT: not while a section is recorded …". */
enum tape_status tape_section_refuse(struct tape *t, const char *what, struct tape_site site);

/* Drops the sections begun after that of this number; and all of them, with their memory. */
void tape_sections_drop(struct tape *t, uint32_t number);
void tape_sections_end(struct tape *t);

#endif
