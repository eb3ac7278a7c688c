#include "taper/exporter/importers/pt2/archive.h"

#include <algorithm>
#include <cstring>

#include "taper/exporter/io/torch_checkpoint.h"

namespace taper::pt2 {
namespace {

constexpr const char* legacy_program = "serialized_exported_program.json";
constexpr const char* default_model = "model";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r'; }
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Archive::Archive(std::span<const std::byte> file, std::string name)
    : zip_(file, name), name_(std::move(name)) {
  if (zip_.records().empty()) fail("an empty archive; expected a file of torch.export.save");
  if (zip_.has(legacy_program)) {
    generation_ = Generation::legacy;
    models_ = {default_model};
    return;
  }
  find_root();
  if (!zip_.has(root_ + "archive_format") ||
      trimmed(zip_.read_text(root_ + "archive_format")) != "pt2")
    refuse_other_kinds();
  if (zip_.has(root_ + "archive_version")) {
    const std::string version(trimmed(zip_.read_text(root_ + "archive_version")));
    if (version != "0")
      fail("archive version " + version + " is newer than 0, the only one that is supported");
  }
  if (zip_.has(root_ + "byteorder") && trimmed(zip_.read_text(root_ + "byteorder")) != "little")
    fail("written on a big-endian machine, which is not supported");
  find_models();
}

void Archive::fail(const std::string& what) const { throw io::FileError(name_ + ": " + what); }

// Every record lies in one folder, which may have any name.
void Archive::find_root() {
  const std::string& first = zip_.records().begin()->first;
  const size_t slash = first.find('/');
  root_ = slash == first.npos ? "" : first.substr(0, slash + 1);
  for (const auto& [path, record] : zip_.records())
    if (!path.starts_with(root_))
      fail("its records lie under two folders, " + root_ + " and that of " + path +
           "; expected a file of torch.export.save");
}

void Archive::refuse_other_kinds() const {
  if (zip_.has(root_ + "data.pkl")) {
    if (zip_.has(root_ + "constants.pkl"))
      fail(
          "a TorchScript archive, not an exported program; export the model with "
          "torch.export.export and save it with torch.export.save");
    fail(
        "a checkpoint (weights only), not an exported program; export the model with "
        "torch.export.export and save it with torch.export.save");
  }
  std::string names;
  size_t shown = 0;
  for (const auto& [path, record] : zip_.records())
    if (shown++ < 3) names += (names.empty() ? "" : ", ") + path;
  fail("not an exported program: it has no record archive_format that says pt2; it holds " + names);
}

void Archive::find_models() {
  const std::string folder = root_ + "models/";
  for (const auto& [path, record] : zip_.records())
    if (path.starts_with(folder) && path.ends_with(".json"))
      models_.push_back(path.substr(folder.size(), path.size() - folder.size() - 5));
  if (models_.empty()) {
    const bool compiled = std::ranges::any_of(zip_.records(), [&](const auto& record) {
      return record.first.starts_with(root_ + "data/aotinductor/");
    });
    fail(compiled ? "it holds only AOTInductor machine code; save the ExportedProgram with "
                    "torch.export.save"
                  : "it has no program (models/*.json)");
  }
  generation_ = zip_.has(root_ + "data/weights/" + models_[0] + ".pt") ? Generation::pickled
                                                                       : Generation::raw;
}

const std::string& Archive::choose(const std::string& model) const {
  const std::string wanted = model.empty() ? default_model : model;
  const auto found = std::ranges::find(models_, wanted);
  if (found != models_.end()) return *found;
  if (model.empty() && models_.size() == 1) return models_[0];
  std::string names;
  for (const std::string& m : models_) names += (names.empty() ? "" : ", ") + m;
  fail((model.empty() ? "it holds several models" : "it has no model \"" + model + "\"") +
       "; choose one of " + names);
}

std::string_view Archive::program_json(const std::string& model) const {
  return zip_.read_text(generation_ == Generation::legacy ? legacy_program
                                                          : root_ + "models/" + model + ".json");
}

std::span<const std::byte> Archive::example_inputs(const std::string& model) const {
  const std::string record = generation_ == Generation::legacy
                                 ? "serialized_example_inputs.pt"
                                 : root_ + "data/sample_inputs/" + model + ".pt";
  return zip_.has(record) ? zip_.read(record) : std::span<const std::byte>{};
}

Archive::Payloads::Part Archive::part(const std::string& model, const std::string& kind) const {
  Payloads::Part part;
  if (generation_ == Generation::raw) {
    part.folder = root_ + "data/" + kind + "/";
    const std::string config = part.folder + model + "_" + kind + "_config.json";
    part.raw = parse_payloads(zip_.read_text(config), name_ + ", " + config);
    return part;
  }
  const std::string record = generation_ == Generation::pickled
                                 ? root_ + "data/" + kind + "/" + model + ".pt"
                             : kind == "weights" ? "serialized_state_dict.pt"
                                                 : "serialized_constants.pt";
  if (zip_.has(record)) {
    const std::span<const std::byte> bytes = zip_.read(record);
    if (!bytes.empty()) part.checkpoint = io::parse_torch_checkpoint(bytes, name_ + ", " + record);
  }
  return part;
}

std::span<const std::byte> Archive::in_complex64(std::span<const std::byte> complex128) const {
  std::vector<std::byte>& narrow = narrowed_[complex128.data()];
  const size_t parts = complex128.size() / sizeof(double);
  narrow.resize(parts * sizeof(float));
  for (size_t i = 0; i < parts; ++i) {
    double value;
    std::memcpy(&value, complex128.data() + i * sizeof value, sizeof value);
    const auto rounded = static_cast<float>(value);
    std::memcpy(narrow.data() + i * sizeof rounded, &rounded, sizeof rounded);
  }
  return narrow;
}

Archive::Payloads Archive::payloads(const std::string& model) const {
  Payloads payloads;
  payloads.archive_ = this;
  payloads.weights_ = part(model, "weights");
  payloads.constants_ = part(model, "constants");
  return payloads;
}

std::optional<io::StoredTensor> Archive::Payloads::find(const Part& part,
                                                        const std::string& path) const {
  if (const auto found = part.checkpoint.find(path); found != part.checkpoint.end())
    return found->second;
  const auto found = part.raw.find(path);
  if (found == part.raw.end()) return std::nullopt;
  const PayloadMeta& payload = found->second;
  const auto refuse = [&](const std::string& what) { archive_->fail(path + what); };
  if (payload.use_pickle)
    refuse(
        " is a tensor subclass that the graph uses as a whole; export with plain tensors (for "
        "torchao: call unwrap_tensor_subclass(model) before torch.export)");
  if (!payload.tensor_meta) refuse(" is not a tensor");
  const TensorMeta& meta = *payload.tensor_meta;
  if (!meta.dtype.dtype())
    refuse(" is of dtype " + meta.dtype.name() + ", which Taper does not have");
  io::StoredTensor stored;
  stored.dtype = *meta.dtype.dtype();
  const auto number = [&](const SymInt& n) {
    if (const auto* integer = std::get_if<int64_t>(&n)) return *integer;
    refuse(" has a symbolic size");
    return int64_t{0};
  };
  for (const SymInt& n : meta.sizes) stored.sizes.push_back(number(n));
  for (const SymInt& n : meta.strides) stored.strides.push_back(number(n));
  stored.offset = number(meta.storage_offset);
  if (payload.path_name.find('/') != std::string::npos)
    refuse(": its record's name \"" + payload.path_name + "\" leads outside the archive");
  stored.storage = archive_->zip_.read(part.folder + payload.path_name);
  if (meta.dtype.is_complex128()) stored.storage = archive_->in_complex64(stored.storage);
  if (const int64_t numel = io::checked_numel(stored.sizes, 1); stored.storage.empty() && numel > 0)
    refuse(" has no data: the program was exported with fake weights; export the real model");
  if (const std::string wrong = stored.check(); !wrong.empty())
    refuse(" does not fit its record " + payload.path_name + ": " + wrong);
  return stored;
}

io::StoredTensor Archive::Payloads::inner(const std::string& path,
                                          const std::string& attribute) const {
  for (const Part* part : {&weights_, &constants_}) {
    const auto found = part->raw.find(path);
    if (found == part->raw.end()) continue;
    const PayloadMeta& payload = found->second;
    if (!payload.use_pickle || payload.path_name.find('/') != std::string::npos) break;
    const auto parts = io::parse_torch_subclass(
        archive_->zip_.read(part->folder + payload.path_name), archive_->name_ + ", " + path);
    if (const auto at = parts.find(attribute); at != parts.end()) return at->second;
    break;
  }
  archive_->fail("it has no tensor \"" + attribute + "\" inside of " + path +
                 "; unwrap_tensor_subclass(model) of torchao before torch.export gives plain "
                 "tensors");
}

io::StoredTensor Archive::Payloads::at(const std::string& path, bool constants_first) const {
  if (auto found = find(constants_first ? constants_ : weights_, path)) return *found;
  if (auto found = find(constants_first ? weights_ : constants_, path)) return *found;
  archive_->fail("it has no data for " + path);
}

}  // namespace taper::pt2
