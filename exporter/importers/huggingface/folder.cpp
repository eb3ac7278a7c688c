#include "taper/exporter/importers/huggingface/folder.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "taper/exporter/io/file.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::huggingface {
namespace {

constexpr int deepest_json = 64;
constexpr uintmax_t largest_json = 256 << 20;

/// A shard's name must be a file of this folder: the index is not trusted.
void require_plain_name(const std::string& shard, const std::filesystem::path& index) {
  if (shard.empty() || std::filesystem::path(shard).filename() != shard || shard == "..")
    throw io::FileError(index.string() + ": the shard \"" + shard + "\" is no name of a file");
}

/// What Python writes for numbers that JSON lacks.
std::string_view odd_number_at(std::string_view json) {
  for (const std::string_view name : {"Infinity", "NaN"})
    if (json.starts_with(name)) return name;
  return {};
}

/// With such numbers as texts.
std::string with_quoted_numbers(std::string_view json) {
  std::string out;
  bool in_text = false;
  while (!json.empty()) {
    size_t count = odd_number_at(json).size();
    if (count > 0 && !in_text) {
      out.append("\"").append(json.substr(0, count)).append("\"");
    } else {
      count = in_text && json[0] == '\\' ? 2 : 1;
      if (json[0] == '"') in_text = !in_text;
      out += json.substr(0, count);
    }
    json.remove_prefix(std::min(count, json.size()));
  }
  return out;
}

}  // namespace

nlohmann::json read_json_object(const std::filesystem::path& file) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(file, failed);
  if (!failed && size > largest_json)
    throw io::FileError(file.string() + ": too large for a configuration");
  const io::Bytes bytes = io::read_file(file);
  const std::string text =
      with_quoted_numbers({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto refuse_deep = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > deepest_json) throw io::FileError(file.string() + ": it is nested too deeply");
    return true;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text, refuse_deep);
    if (!json.is_object()) throw io::FileError(file.string() + ": it is no JSON object");
    return json;
  } catch (const nlohmann::json::exception& e) {
    throw io::FileError(file.string() + ": " + e.what());
  }
}

bool is_model_folder(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path / "config.json", none);
}

std::string model_type(const std::filesystem::path& path) {
  if (!is_model_folder(path)) return "";
  const nlohmann::json config = read_json_object(path / "config.json");
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : "";
}

Folder::Folder(const std::filesystem::path& path, const std::string& config) : path_(path) {
  config_ = read_json_object(path / config);
  generation_config_ = nlohmann::json::object();
  std::error_code none;
  if (std::filesystem::exists(path / "generation_config.json", none))
    generation_config_ = read_json_object(path / "generation_config.json");
  const std::filesystem::path index = path / "model.safetensors.index.json";
  if (std::filesystem::exists(path / "model.safetensors", none))
    map(path / "model.safetensors");
  else if (std::filesystem::exists(index, none))
    map_shards(read_json_object(index));
  else
    throw io::FileError(path.string() +
                        ": there is neither model.safetensors nor model.safetensors.index.json");
}

void Folder::map_shards(const nlohmann::json& index) {
  const std::filesystem::path file = path_ / "model.safetensors.index.json";
  const auto weights = index.find("weight_map");
  if (weights == index.end() || !weights->is_object())
    throw io::FileError(file.string() + ": it has no object \"weight_map\"");
  std::set<std::string> shards;
  for (const auto& [name, shard] : weights->items()) {
    if (!shard.is_string()) throw io::FileError(file.string() + ": " + name + " has no shard");
    require_plain_name(shard.get<std::string>(), file);
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) map(path_ / shard);
  for (const auto& [name, shard] : weights->items())
    if (const auto at = shard_of_.find(name); at == shard_of_.end() || at->second != shard)
      throw io::FileError(file.string() + ": " + name + " is not in " + shard.get<std::string>());
}

void Folder::map(const std::filesystem::path& file) {
  auto mapped = std::make_shared<MappedFile>();
  std::string why;
  if (!mapped->open(file.string(), why)) throw io::FileError(file.string() + ": " + why);
  files_.push_back({file.filename().string(), mapped});
  const Span<const std::byte> bytes = mapped->bytes();
  io::SafeTensorsIndex index =
      io::index_safetensors({bytes.data(), static_cast<size_t>(bytes.size())}, file.string());
  for (auto& [name, tensor] : index.tensors) {
    const auto [at, is_new] =
        tensors_.emplace(name, Tensor{std::move(tensor), mapped, mapped->readable().end()});
    if (!is_new) throw io::FileError(file.string() + ": " + name + " is in another shard, too");
    shard_of_[name] = file.filename().string();
  }
}

}  // namespace taper::huggingface
