#include "taper/runtime/extension/module/packed_weights.h"

#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "taper/runtime/packing/packing.h"
#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

/// What packed weights follow from: the file, and the records that were taken.
using Key = std::tuple<MappedFile::Identity, std::vector<const Kernel*>>;

/// The packed weights of this process.
struct Shared {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const PackedWeights>> weights;
};

Shared& shared() {
  static Shared shared;
  return shared;
}

Key key_of(const MappedFile& file, const Program& program) {
  std::vector<const Kernel*> kernels;
  const index_t count = internal::count_of(program.table().kernels());
  for (index_t i = 0; i < count; ++i) kernels.push_back(&program.kernel(i));
  return {file.identity(), std::move(kernels)};
}

void give_back_originals(const MappedFile& file, const Program& program) {
  const internal::ProgramView view(program.table());
  for (index_t i = 0; i < view.constants.size(); ++i) {
    if (!program.is_packed(i)) continue;
    const format::Constant& c = view.constants[i];
    size_t bytes = 0;
    (void)internal::dense_bytes(internal::span_of(c.sizes()), static_cast<DType>(c.dtype()), bytes);
    file.give_back(
        {internal::dense_constant(program.file(), view, i), static_cast<index_t>(bytes)});
  }
}

// From the store, or packed now; nullptr: there is no memory for them.
std::shared_ptr<const PackedWeights> new_weights(const Program& program, Span<std::byte> workspace,
                                                 size_t bytes, const std::string& store) {
  auto weights = std::make_shared<PackedWeights>();
  const std::string path = store.empty() ? "" : path_in_store(store, program);
  if (!path.empty() && weights->open(path, program, workspace)) return weights;
  weights->region.emplace(bytes);
  if (!weights->region->is_there() || pack(program, workspace, *weights->region) != Error::ok)
    return nullptr;
  if (!path.empty()) weights->save(path);
  return weights;
}

}  // namespace

Error pack_weights(const MappedFile& file, KernelSet kernels, Span<std::byte> metadata,
                   LoadOptions options, const std::string& store, Program& program,
                   std::shared_ptr<const PackedWeights>& weights) {
  const Region workspace(packing_workspace(program));
  if (!workspace.is_there()) return Error::ok;
  const size_t bytes = find_packed(program, workspace);
  if (bytes == 0) return Error::ok;
  Shared& s = shared();
  const std::lock_guard<std::mutex> lock(s.mutex);  // who comes second waits for the packed weights
  for (auto i = s.weights.begin(); i != s.weights.end();)
    i = i->second.expired() ? s.weights.erase(i) : std::next(i);
  std::weak_ptr<const PackedWeights> own,
      &known = file.is_mapped() ? s.weights[key_of(file, program)] : own;
  std::shared_ptr<const PackedWeights> found = known.lock();
  if (found == nullptr) found = new_weights(program, workspace, bytes, store);
  if (found == nullptr) return Error::ok;
  options.packed = found->bytes();
  TAPER_LET(packed, Program::load(program.file(), kernels, metadata, options));
  program = packed;
  known = weights = found;
  give_back_originals(file, program);
  return Error::ok;
}

}  // namespace taper
