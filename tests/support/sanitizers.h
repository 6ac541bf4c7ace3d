/* sanitizers.h: which sanitizer a test is built with, whichever the compiler. */
#ifndef SANITIZERS_H
#define SANITIZERS_H

#ifdef __has_feature /* clang */
#define SANITIZERS_FEATURE(name) __has_feature(name)
#else
#define SANITIZERS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_FEATURE(address_sanitizer)
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZERS_FEATURE(thread_sanitizer)
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif

/* Of a loop over cases, one of which in `step` runs under a sanitizer. All of them run in the other
 * builds, which see wrong numbers as well. */
static inline unsigned sanitizers_step(unsigned step)
{
    return SANITIZED_ADDRESS || SANITIZED_THREAD ? step : 1;
}

#endif
