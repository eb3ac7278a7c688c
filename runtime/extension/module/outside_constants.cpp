#include "taper/runtime/extension/module/outside_constants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/place_in_file.h"
#include "taper/runtime/extension/module/sha256.h"
#include "taper/runtime/extension/module/slack.h"
#include "taper/runtime/extension/module/verify.h"
#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

using internal::ConstantView;
using Hash = std::array<std::byte, 32>;
using format::ConstantSource;

Hash hash_of(const ConstantView& c) {
  Hash hash;
  std::memcpy(hash.data(), c.key.data(), hash.size());
  return hash;
}

std::string name_of(const ConstantView& c, index_t i) {
  return "constant " + (c.path != nullptr ? std::string(c.path) : std::to_string(i));
}

std::string type_text(DType dtype, Span<const int64_t> sizes) {
  std::string text = std::string(taper::name_of(dtype)) + "[";
  for (index_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

bool open_file(MappedFile& file, const std::string& path, const ModuleOptions& options,
               std::string& why) {
  const auto access = options.loading == Loading::read ? MappedFile::Access::in_memory
                                                       : MappedFile::Access::read_only;
  if (file.open(path, why, access)) return true;
  std::error_code none;
  if (std::filesystem::status(path, none).type() == std::filesystem::file_type::not_found)
    why += "; put the file there, or name its folder (weights_folder)";
  return false;
}

/// A file of another kind, in which programs say where their constants lie.
struct OtherFile {
  const MappedFile* file = nullptr;
  uint64_t fingerprint = 0;

  bool open(MappedFile& opened, const std::string& path, const ModuleOptions& options,
            std::string& why) {
    if (!open_file(opened, path, options, why)) return false;
    file = &opened, fingerprint = taper::fingerprint(opened);
    return true;
  }
};

/// Where the constants of a weights file lie, which is a program without methods.
class WeightsFile {
 public:
  bool open(MappedFile& file, const std::string& path, const ModuleOptions& options,
            std::string& why) {
    if (!open_file(file, path, options, why)) return false;
    const Result<size_t> size = Program::metadata_bytes(file.bytes());
    const Region metadata(size.ok() ? size.value() : 64);
    ErrorInfo info;
    LoadOptions load;
    load.info = &info;
    if (!metadata.is_there()) return why = joined({path, ": out of memory"}), false;
    const Result<Program> program = Program::load(file.bytes(), {}, metadata, load);
    if (program.error() == Error::missing_kernel ||
        (program.ok() && program.value().method_count() > 0))
      return why = joined({path, ": this is a program with methods, and no weights file"}), false;
    if (!program.ok())
      return why = joined({path, ": ", describe(info),
                           "; the file is damaged or no weights file: copy it again from where it "
                           "was made"}),
             false;
    if (options.verify && verify(program.value(), why) != Error::ok)
      return why = joined({path, ": ", why}), false;
    const internal::ProgramView& view = program.value().data().view;
    for (index_t i = 0; i < view.constants.size(); ++i) {
      const ConstantView c = view.constant(static_cast<uint64_t>(i));
      const internal::PlacedConstant stored = internal::stored_constant(file.bytes(), view, c);
      if (stored.data != nullptr && has_exact_size(stored.layout) && !c.key.empty())
        pieces_[{hash_of(c), c.dtype}] = stored;
    }
    return true;
  }
  /// nullptr: it is not there.
  const internal::PlacedConstant* find(const ConstantView& c) const {
    const auto at = pieces_.find({hash_of(c), c.dtype});
    return at == pieces_.end() ? nullptr : &at->second;
  }

 private:
  /// The same bytes may be halves, and f32 in halves.
  std::map<std::pair<Hash, DType>, internal::PlacedConstant> pieces_;
};

class Finder {
 public:
  Finder(OutsideConstants& found, const std::string& folder, const ModuleOptions& options,
         std::string& why)
      : found_(found), folder_(folder), options_(options), why_(why) {}

  bool find_external(const ConstantView& c, index_t i, const format::Constant& table) {
    const auto* hint = table.external_file();
    // the file lies in the folder, whatever a program says
    const std::string name =
        hint == nullptr ? "" : std::filesystem::path(hint->str()).filename().string();
    if (name.empty())
      return fail({name_of(c, i), " lies in another file, but the program names none"});
    const std::string path = (std::filesystem::path(folder_) / name).string();
    if (const auto place = PlaceInFile::from(c.key)) return find_place(c, i, path, *place);
    const auto [at, is_new] = weights_.try_emplace(name);
    std::string why;
    if (is_new && !at->second.open(found_.files.emplace_back(), path, options_, why))
      return fail({name_of(c, i), " lies in another file: ", why});
    const internal::PlacedConstant* stored = at->second.find(c);
    if (stored == nullptr)
      return fail(
          {name_of(c, i), " is not in ", path, ": the file is of another model or another export"});
    const size_t bytes = stored_bytes(c.bytes, stored->layout);
    if (stored->bytes != bytes)
      return fail({name_of(c, i), " has ", std::to_string(bytes), " bytes, in ", path, " ",
                   std::to_string(stored->bytes)});
    const auto* elements = static_cast<const std::byte*>(stored->data);
    if (options_.verify && sha256({elements, static_cast<index_t>(bytes)}) != hash_of(c))
      return fail({name_of(c, i), " has another content in ", path,
                   ": the file is damaged; copy it again from where it was made"});
    found_.given.emplace_back(
        c.key, Span<const std::byte>(elements, static_cast<index_t>(bytes + slack_bytes)),
        stored->layout);
    return true;
  }

  bool find_place(const ConstantView& c, index_t i, const std::string& path,
                  const PlaceInFile& place) {
    const auto [at, is_new] = other_files_.try_emplace(path);
    OtherFile& other = at->second;
    std::string why;
    if (is_new && !other.open(found_.files.emplace_back(), path, options_, why))
      return fail({name_of(c, i), " lies in another file: ", why});
    if (other.fingerprint != place.file)
      return fail({name_of(c, i), " lies in ", path,
                   ", which is another file than the program was made of; make the program again"});
    const Span<const std::byte> file = other.file->bytes();
    const bool may_have_layout =
        place.layout == Layout::dense ||
        (has_exact_size(place.layout) && c.dtype == DType::f32 && c.space == 0);
    const uint64_t size = static_cast<uint64_t>(file.size()),
                   bytes = stored_bytes(c.bytes, place.layout);
    if (!may_have_layout || bytes == 0 || place.offset > size || bytes > size - place.offset)
      return fail({name_of(c, i), " does not lie in ", path, " where the program says"});
    const auto elements = with_slack(
        file.part(static_cast<index_t>(place.offset), static_cast<index_t>(bytes)),
        other.file->readable(), static_cast<size_t>(size_bytes(c.dtype)), found_.regions);
    if (!elements)
      return fail(
          {name_of(c, i), " needs ", std::to_string(bytes + slack_bytes), " bytes of memory"});
    found_.given.emplace_back(c.key, *elements, place.layout);
    return true;
  }

  bool find_slot(const ConstantView& c, index_t i) {
    const char* slot = reinterpret_cast<const char*>(c.key.data());
    const auto owned = options_.slots.find(slot);
    const auto borrowed = options_.borrowed_slots.find(slot);
    if (borrowed != options_.borrowed_slots.end()) return give(c, slot, borrowed->second);
    if (owned == options_.slots.end())
      return fail({name_of(c, i), " is the slot ", slot, ", of type ", type_text(c.dtype, c.sizes),
                   ": give it (slots)"});
    const OwnedTensor& t = owned->second;
    return give(c, slot, {t.dtype, t.sizes, Span<const std::byte>(t.bytes), {}});
  }

  bool give(const ConstantView& c, const char* slot, const BorrowedTensor& t) {
    const std::vector<int64_t> sizes(t.sizes.begin(), t.sizes.end());
    if (t.dtype != c.dtype ||
        !std::equal(sizes.begin(), sizes.end(), c.sizes.begin(), c.sizes.end()) ||
        static_cast<size_t>(t.bytes.size()) != c.bytes)
      return fail({"slot ", slot, " takes ", type_text(c.dtype, c.sizes), ", not ",
                   type_text(t.dtype, Span<const int64_t>(sizes))});
    const auto bytes =
        with_slack(t.bytes, t.readable, static_cast<size_t>(size_bytes(c.dtype)), found_.regions);
    if (!bytes)
      return fail(
          {"slot ", slot, " needs ", std::to_string(c.bytes + slack_bytes), " bytes of memory"});
    found_.given.emplace_back(slot, *bytes);
    return true;
  }

  bool fail(std::initializer_list<std::string_view> why) { return why_ = joined(why), false; }

 private:
  OutsideConstants& found_;
  const std::string& folder_;
  const ModuleOptions& options_;
  std::string& why_;
  std::map<std::string, WeightsFile> weights_;
  std::map<std::string, OtherFile> other_files_;
};

}  // namespace

bool OutsideConstants::find(const Program& program, const std::string& folder,
                            const ModuleOptions& options, std::string& why) {
  const internal::ProgramView& view = program.data().view;
  Finder finder(*this, folder, options, why);
  std::map<std::string, bool> is_used;
  for (const auto& [name, value] : options.slots) is_used[name] = false;
  for (const auto& [name, value] : options.borrowed_slots)
    if (!is_used.emplace(name, false).second)
      return finder.fail({"slot ", name, " is given twice (slots, borrowed_slots)"});
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const ConstantView c = view.constant(static_cast<uint64_t>(i));
    if (c.source == ConstantSource::external && !finder.find_external(c, i, view.constants[i]))
      return false;
    if (c.source != ConstantSource::slot) continue;
    bool& known = is_used[reinterpret_cast<const char*>(c.key.data())];
    if (!known && !finder.find_slot(c, i)) return false;
    known = true;
  }
  for (const auto& [name, used] : is_used)
    if (!used) return finder.fail({"the program has no slot ", name});
  return true;
}

}  // namespace taper
