// A golden case once more, exported: its call, with gradients of first order, is traced, written as
// a program and run by the runtime. Results must equal eager's bit for bit,
// with one thread and with eager's, and PyTorch's within the case's tolerance.
#pragma once
#include "run_case.h"

namespace taper::golden {

/// `like_pytorch` false: PyTorch's results are not asked for, only eager's.
Verdict run_exported(const CaseFile& file, const Json& golden, const Target& target,
                     bool like_pytorch = true);

}  // namespace taper::golden
