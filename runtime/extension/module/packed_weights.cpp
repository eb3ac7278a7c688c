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

/// What packed weights follow from: the files, and the records that were taken.
using Key = std::tuple<std::vector<MappedFile::Identity>, std::vector<const Kernel*>>;

/// The packed weights of this process.
struct Shared {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const PackedWeights>> weights;
};

Shared& shared() {
  static Shared shared;
  return shared;
}

Key key_of(const Origin& origin, const Program& program) {
  std::vector<MappedFile::Identity> files{origin.file.identity()};
  for (const MappedFile& other : origin.outside.files) files.push_back(other.identity());
  std::vector<const Kernel*> kernels;
  const index_t count = internal::count_of(program.table().kernels());
  for (index_t i = 0; i < count; ++i) kernels.push_back(&program.kernel(i));
  return {std::move(files), std::move(kernels)};
}

/// The dense elements of each constant.
std::vector<Span<const std::byte>> elements_of(const Program& program) {
  const internal::ProgramData& p = program.data();
  std::vector<Span<const std::byte>> elements;
  for (index_t i = 0; i < p.view.constants.size(); ++i)
    elements.emplace_back(static_cast<const std::byte*>(p.constants[i].data),
                          static_cast<index_t>(p.view.constant(static_cast<uint64_t>(i)).bytes));
  return elements;
}

/// Weights in blocks are those of language models, which read all of them for each token.
Region::Use use_of(const Program& program) {
  const internal::ProgramData& p = program.data();
  size_t in_blocks = 0, all = 0;
  for (index_t i = 0; i < p.view.constants.size(); ++i) {
    all += p.constants[i].bytes;
    if (is_in_blocks(p.constants[i].layout)) in_blocks += p.constants[i].bytes;
  }
  return in_blocks > all / 2 ? Region::Use::often : Region::Use::now;
}

void give_back(const Origin& origin, Span<const std::byte> elements) {
  if (origin.file.holds(elements)) origin.file.give_back(elements);
  for (const MappedFile& other : origin.outside.files)
    if (other.holds(elements)) other.give_back(elements);
}

// From the store, or packed now; nullptr: there is no memory for them.
std::shared_ptr<const PackedWeights> new_weights(const Origin& origin, const Program& program,
                                                 Span<std::byte> workspace, size_t bytes) {
  auto weights = std::make_shared<PackedWeights>();
  const std::string path = origin.store.empty() ? "" : path_in_store(origin.store, program);
  if (!path.empty() && weights->open(path, program, workspace, origin.threads)) return weights;
  PackOptions options;
  options.threads = origin.threads;
  options.done = [](void* user, Span<const std::byte> dense) {
    give_back(*static_cast<const Origin*>(user), dense);
  };
  options.user = const_cast<Origin*>(&origin);
  if (!path.empty() && weights->create(path, program, workspace, bytes, options)) return weights;
  weights->region.emplace(bytes, use_of(program));
  if (!weights->region->is_there() ||
      pack(program, workspace, *weights->region, options) != Error::ok)
    return nullptr;
  return weights;
}

}  // namespace

Error pack_weights(const Origin& origin, Program& program,
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
      &known = origin.file.is_mapped() ? s.weights[key_of(origin, program)] : own;
  std::shared_ptr<const PackedWeights> found = known.lock();
  if (found == nullptr) found = new_weights(origin, program, workspace, bytes);
  if (found == nullptr) return Error::ok;
  const std::vector<Span<const std::byte>> originals = elements_of(program);
  LoadOptions options = origin.options;
  options.packed = found->bytes();
  const Span<const std::byte> file = program.file();
  (void)program.close();
  TAPER_LET(packed, Program::load(file, origin.kernels, origin.metadata, options));
  program = packed;
  known = weights = found;
  // All of them once more: a page that two weights share, and pages that the system read ahead.
  for (index_t i = 0; i < static_cast<index_t>(originals.size()); ++i)
    if (const Span<const std::byte> original = originals[static_cast<size_t>(i)];
        program.data().constants[i].data != original.data())
      give_back(origin, original);
  return Error::ok;
}

}  // namespace taper
