/// The runtime's front door: load a program, make a session, run its methods.
///
///   alignas(64) static std::byte metadata[6 * 1024], memory[24 * 1024];
///   TAPER_LET(program, taper::Program::load(file, kernels, metadata));
///   TAPER_LET(session, taper::Session::create(program, memory));
///   TAPER_LET(method, taper::Method::create(session, "forward"));
///   TAPER_TRY(method.set_input(0, image, {1, 1, 28, 28}));
///   TAPER_TRY(method.execute());
///   use(method.output(0));
///
/// No heap, no exceptions, no files, no globals: all memory is the caller's. Applications with a
/// heap use taper/runtime/extension/module/module.h instead.
#pragma once
#include "taper/runtime/method/method.h"
#include "taper/runtime/method/session.h"
#include "taper/runtime/program/program.h"
