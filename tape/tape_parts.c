/* tape_parts.c: the table of what keeps state of its own on a tape. */
#include "tape_disk.h"
#include "tape_due.h"
#include "tape_listen.h"
#include "tape_program.h"
#include "tape_record_watch.h"
#include "tape_replay.h"
#include "tape_scalars.h"
#include "tape_spill.h"
#include "tape_user_gradient.h"

const struct tape_part *const tape_parts[] = {&tape_scalars_part,
                                              &tape_forks_part,
                                              &tape_program_part,
                                              &tape_user_gradients_part,
                                              &tape_listen_part,
                                              &tape_record_watch_part,
                                              &tape_replay_part,
                                              &tape_spills_part,
                                              &tape_disk_part,
                                              &tape_dues_part,
                                              NULL};
