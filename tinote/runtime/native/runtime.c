// The runtime as one translation unit: what is not exported is internal, and what is called often is inlined.

#if !defined(__APPLE__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "runtime.h"

#ifdef _WIN32
#include "platform_windows.c"
#else
#include "platform_posix.c"
#endif

#include "launch.c"

#include "pool.c"

#include "parallel.c"

#include "arena.c"

#include "compiler_rt.c"

#include "replay.c"

#include "batch.c"
