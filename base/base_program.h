/* base_program.h: the program that runs, and what is installed beside it. */
#ifndef BASE_BASE_PROGRAM_H
#define BASE_BASE_PROGRAM_H

#include <stddef.h>

/* The folder of the program, with a slash at its end; its length, or 0: it is not known (errno says
 * why), or too long. */
size_t base_program_folder(char *path, size_t room);

#endif
