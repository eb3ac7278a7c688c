#pragma once
#include <memory>

#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/outside_constants.h"
#include "taper/runtime/extension/module/pack_store.h"
#include "taper/runtime/runtime.h"

namespace taper {

/// The file and the options that a program was loaded with.
struct Origin {
  const MappedFile& file;
  const OutsideConstants& outside;
  KernelSet kernels;
  Span<std::byte> metadata;
  LoadOptions options;
  std::string store;  ///< the folder of the pack store; empty: none
  const Threads* threads = nullptr;
};

/// Loads `program` once more, with its weights packed. The pages of a mapped file are given back as
/// soon as the weights in them are packed. Programs of one file with the same kernels share
/// the packed weights as long as one of them keeps `weights`. If nothing is worth packing, or there
/// is no memory for it, `program` stays as it was and `weights` stays empty. Errors: those of
/// `Program::load`.
Error pack_weights(const Origin& origin, Program& program,
                   std::shared_ptr<const PackedWeights>& weights);

}  // namespace taper
