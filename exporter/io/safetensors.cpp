#include "taper/exporter/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "taper/exporter/io/internal/safetensors_header.h"
#include "taper/exporter/io/safetensors_index.h"

namespace taper::io {
namespace {

constexpr uint64_t max_json = 100'000'000;  // the reference implementation's limit

/// Throws unless the ranges, sorted, cover [0, data_bytes) exactly.
void require_cover(std::vector<internal::HeaderEntry>& entries, uint64_t data_bytes,
                   const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const internal::HeaderEntry& e : entries) {
    if (e.begin != at)
      throw FileError(file + ": tensor '" + e.name + "' begins at byte " + std::to_string(e.begin) +
                      ", the one before it ends at " + std::to_string(at));
    at = e.end;
  }
  if (at != data_bytes)
    throw FileError(file + ": the tensors need " + std::to_string(at) + " bytes, the file holds " +
                    std::to_string(data_bytes));
}

}  // namespace

const Array& SafeTensors::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  constexpr int shown = 8;
  std::string message = "no tensor '" + name + "'; there are";
  auto near = tensors.lower_bound(name);
  for (int i = 0; i < shown / 2 && near != tensors.begin(); ++i) --near;
  for (int i = 0; i < shown && near != tensors.end(); ++i, ++near)
    message += (i ? ", " : " ") + near->first;
  throw FileError(message + (tensors.empty() ? " none" : tensors.size() > shown ? ", …" : ""));
}

SafeTensorsIndex index_safetensors(std::span<const std::byte> file, const std::string& name) {
  uint64_t length = 0;
  if (file.size() < 8) throw FileError(name + ": not a safetensors file: shorter than 8 bytes");
  std::memcpy(&length, file.data(), 8);
  if (length > max_json || length > file.size() - 8)
    throw FileError(name + ": not a safetensors file, or cut short: its header would have " +
                    std::to_string(length) + " bytes");
  const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  if (length == 0 || text[0] != '{')
    throw FileError(name + ": not a safetensors file: the header does not begin with '{'");
  internal::Header header = internal::parse_header({text, static_cast<size_t>(length)}, name);

  const std::span<const std::byte> data = file.subspan(8 + static_cast<size_t>(length));
  for (const internal::HeaderEntry& e : header.entries) {
    const int64_t numel = checked_numel(e.shape, size_bytes(e.dtype));
    if (numel < 0 || e.end < e.begin ||
        e.end - e.begin !=
            static_cast<uint64_t>(numel) * static_cast<uint64_t>(size_bytes(e.dtype)))
      throw FileError(name + ": tensor '" + e.name + "': data_offsets [" + std::to_string(e.begin) +
                      ", " + std::to_string(e.end) + "] do not fit its dtype and shape");
  }
  require_cover(header.entries, data.size(), name);

  SafeTensorsIndex index;
  index.metadata = std::move(header.metadata);
  for (internal::HeaderEntry& e : header.entries)
    index.tensors.emplace(std::move(e.name),
                          MappedTensor{e.dtype, std::move(e.shape),
                                       data.subspan(static_cast<size_t>(e.begin),
                                                    static_cast<size_t>(e.end - e.begin))});
  return index;
}

SafeTensors parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  SafeTensorsIndex index = index_safetensors(file, name);
  SafeTensors content;
  content.metadata = std::move(index.metadata);
  for (auto& [tensor, stored] : index.tensors) {
    Array array = Array::zeros(stored.dtype, std::move(stored.sizes));
    array.assign(stored.bytes);
    array.settle_bools();
    content.tensors.emplace(tensor, std::move(array));
  }
  return content;
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

Bytes format_safetensors(const SafeTensors& content) {
  if (content.tensors.count("__metadata__") != 0)
    throw FileError("safetensors: no tensor can be called '__metadata__'");
  std::vector<const ArrayMap::value_type*> order;
  for (const auto& entry : content.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_bytes(a->second.dtype) > size_bytes(b->second.dtype);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  size_t offset = 0;
  for (const auto* entry : order) {
    const size_t end = offset + entry->second.size_bytes();
    header[entry->first] = {{"dtype", internal::safetensors_name(entry->second.dtype)},
                            {"shape", entry->second.sizes},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error& error) {
    throw FileError(std::string("safetensors: a tensor's name or a metadata text is not UTF-8: ") +
                    error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');

  Bytes file(8 + text.size() + offset);
  const uint64_t length = text.size();
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, text.data(), text.size());
  std::byte* at = file.data() + 8 + text.size();
  for (const auto* entry : order) {
    const std::span<const std::byte> bytes = entry->second.raw();
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  }
  return file;
}

void write_safetensors(const std::filesystem::path& path, const SafeTensors& content) {
  write_file(path, format_safetensors(content));
}

}  // namespace taper::io
