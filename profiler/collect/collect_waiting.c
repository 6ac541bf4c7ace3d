/* collect_waiting.c: what the system calls are for in which threads are found. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"

#include <sys/syscall.h>

/* Not every machine has every call. */
enum collect_waiting collect_waiting_of(uint32_t call)
{
    if (call == 0)
        return COLLECT_WAITING_NONE;
    switch ((long)call - 1) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_openat:
    case SYS_close:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_copy_file_range:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_io_getevents:
    case SYS_ioctl:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_open:
#endif
        return COLLECT_WAITING_INPUT_OUTPUT;
    case SYS_futex:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_semop:
    case SYS_semtimedop:
        return COLLECT_WAITING_LOCK;
    default:
        return COLLECT_WAITING_OTHER;
    }
}

bool collect_waiting_sleeps(uint32_t call)
{
    switch ((long)call - 1) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_wait4:
    case SYS_waitid:
#ifdef SYS_pause
    case SYS_pause:
#endif
        return call != 0;
    default:
        return false;
    }
}

bool collect_waiting_yields(uint32_t call)
{
    return call == SYS_sched_yield + 1;
}
