// XNNPACK's pool is the caller's: threads.cpp has the functions of pthreadpool that it calls.
#pragma once
#include <pthreadpool.h>

#include "taper/runtime/platform/threads.h"

/// What pthreadpool leaves open.
struct pthreadpool {
  const taper::Threads* threads;
};
