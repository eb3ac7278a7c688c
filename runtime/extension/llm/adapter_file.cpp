#include "taper/runtime/extension/llm/adapter_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "taper/runtime/extension/module/asset.h"
#include "taper/runtime/extension/module/new_file.h"

namespace taper::llm {
namespace {

namespace fs = std::filesystem;

/// Bytes of a file, little-endian.
class Bytes {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void raw(const std::string& t) { bytes_ += t; }
  /// As GGUF has texts: the length in front.
  void text(const std::string& t) { number(uint64_t{t.size()}), raw(t); }
  void floats(const float* first, int64_t count) {
    bytes_.append(reinterpret_cast<const char*>(first), static_cast<size_t>(count) * sizeof(float));
  }
  void pad(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  const std::string& all() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string quoted(const std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string q = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      q += std::string("\\u00") + digits[c >> 4] + digits[c & 15];
      continue;
    }
    if (c == '"' || c == '\\') q += '\\';
    q += c;
  }
  return q + '"';
}

/// The same in every locale.
std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string last_part(const std::string& module) {
  const size_t dot = module.rfind('.');
  return dot == std::string::npos ? module : module.substr(dot + 1);
}

std::string write_file(const std::string& path, const std::string& bytes) {
  NewFile file(path);
  if (file.write(0, bytes.data(), bytes.size()) && file.finish()) return "";
  const std::string why = file.why();
  return why.empty() ? "it cannot be written" : why;
}

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf"; }

std::string wrong_kind(const std::string& path, bool of_gguf) {
  if (is_gguf(path) == of_gguf) return "";
  return of_gguf ? "a .gguf model needs an adapter in a .gguf file"
                 : "a Hugging Face folder needs an adapter in a folder of PEFT";
}

bool all_finite(const float* first, int64_t count) {
  return std::all_of(first, first + count, [](float x) { return std::isfinite(x); });
}

/// Why readers would refuse the adapter; "": they would not.
std::string fault_of(const AdapterFile& adapter) {
  if (adapter.matrices.empty()) return "the adapter has no matrices";
  if (!std::isfinite(adapter.alpha)) return "alpha is not finite";
  const int64_t rank = adapter.matrices.front().rank;
  for (const AdapterMatrix& m : adapter.matrices) {
    if (m.rank < 1) return m.name + " has the rank " + std::to_string(m.rank);
    if (m.rank != rank)
      return m.name + " has the rank " + std::to_string(m.rank) + ", and " +
             adapter.matrices.front().name + " the rank " + std::to_string(rank) +
             "; an adapter has one rank";
    if (!all_finite(m.down, m.rank * m.in) || !all_finite(m.up, m.out * m.rank))
      return m.name +
             " has elements that are not finite: the training diverged; train with a lower rate";
  }
  return "";
}

/// Begins to write the file and ends at once. "": that went well.
std::string why_not_begun(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) return "it is a folder";
  NewFile file(path);
  const char byte = 0;
  return file.write(0, &byte, 1) && file.flush() ? "" : file.why();
}

std::string weights_of(const std::string& folder) {
  return (fs::path(folder) / "adapter_model.safetensors").string();
}

/// What a program says about the adapter that it trains, without matrices. "": that went well.
std::string read_trained_adapter(const Program& program, AdapterFile& adapter) {
  const Result<Asset> asset = find_asset(program, trained_adapter_asset);
  if (!asset.ok()) return "the program trains no adapter";
  const std::string_view text(reinterpret_cast<const char*>(asset.value().bytes.data()),
                              static_cast<size_t>(asset.value().bytes.size()));
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, adapter.alpha);
  if (error != std::errc())
    return std::string(trained_adapter_asset) + " of the program is damaged";
  if (behind != end) adapter.architecture.assign(behind + 1, end);
  return "";
}

std::string config_of(const AdapterFile& adapter) {
  std::set<std::string> targets;
  for (const AdapterMatrix& m : adapter.matrices) targets.insert(last_part(m.name));
  std::string list;
  for (const std::string& target : targets) list += (list.empty() ? "" : ", ") + quoted(target);
  const int64_t rank = adapter.matrices.empty() ? 0 : adapter.matrices.front().rank;
  return "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n  \"r\": " +
         std::to_string(rank) + ",\n  \"lora_alpha\": " + number(adapter.alpha) +
         ",\n  \"lora_dropout\": 0.0,\n  \"bias\": \"none\",\n  \"inference_mode\": true,\n"
         "  \"target_modules\": [" +
         list + "]\n}\n";
}

std::string safetensors_of(const AdapterFile& adapter) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
  uint64_t offset = 0;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    const uint64_t end = offset + static_cast<uint64_t>(rows * columns) * sizeof(float);
    header += ", " + quoted("base_model.model." + name) + ": {\"dtype\": \"F32\", \"shape\": [" +
              std::to_string(rows) + ", " + std::to_string(columns) + "], \"data_offsets\": [" +
              std::to_string(offset) + ", " + std::to_string(end) + "]}";
    offset = end;
  };
  for (const AdapterMatrix& m : adapter.matrices) {
    add(m.name + ".lora_A.weight", m.rank, m.in);
    add(m.name + ".lora_B.weight", m.out, m.rank);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  Bytes out;
  out.number(uint64_t{header.size()});
  out.raw(header);
  for (const AdapterMatrix& m : adapter.matrices)
    out.floats(m.down, m.rank * m.in), out.floats(m.up, m.out * m.rank);
  return out.all();
}

std::string gguf_of(const AdapterFile& adapter) {
  constexpr uint32_t version = 3, text_type = 8, f32_type = 6, f32_elements = 0;
  constexpr size_t alignment = 32;
  const std::pair<const char*, std::string> texts[] = {
      {"general.architecture", adapter.architecture},
      {"general.type", "adapter"},
      {"adapter.type", "lora"}};
  Bytes out;
  out.raw("GGUF"), out.number(version);
  out.number(uint64_t{2 * adapter.matrices.size()}), out.number(uint64_t{4});
  for (const auto& [key, value] : texts) out.text(key), out.number(text_type), out.text(value);
  out.text("adapter.lora.alpha"), out.number(f32_type);
  out.number(static_cast<float>(adapter.alpha));
  uint64_t offset = 0;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    out.text(name), out.number(uint32_t{2});
    out.number(static_cast<uint64_t>(columns)), out.number(static_cast<uint64_t>(rows));
    out.number(f32_elements), out.number(offset);
    offset += (static_cast<uint64_t>(rows * columns) * sizeof(float) + alignment - 1) / alignment *
              alignment;
  };
  for (const AdapterMatrix& m : adapter.matrices) {
    add(m.name + ".weight.lora_a", m.rank, m.in);
    add(m.name + ".weight.lora_b", m.out, m.rank);
  }
  out.pad(alignment);
  for (const AdapterMatrix& m : adapter.matrices) {
    out.floats(m.down, m.rank * m.in), out.pad(alignment);
    out.floats(m.up, m.out * m.rank), out.pad(alignment);
  }
  return out.all();
}

}  // namespace

std::string write_adapter(const std::string& path, const AdapterFile& given) {
  if (const std::string why = wrong_kind(path, !given.architecture.empty()); !why.empty())
    return why;
  if (const std::string why = fault_of(given); !why.empty()) return why;
  AdapterFile adapter = given;  // the same adapter gives the same bytes
  std::sort(adapter.matrices.begin(), adapter.matrices.end(),
            [](const AdapterMatrix& a, const AdapterMatrix& b) { return a.name < b.name; });
  if (is_gguf(path)) return write_file(path, gguf_of(adapter));
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return "the folder cannot be made: " + error.message();
  const std::string why = write_file(weights_of(path), safetensors_of(adapter));
  if (!why.empty()) return why;
  return write_file((fs::path(path) / "adapter_config.json").string(), config_of(adapter));
}

std::string why_adapter_not_writable(const std::string& path, bool of_gguf) {
  if (const std::string why = wrong_kind(path, of_gguf); !why.empty()) return why;
  if (of_gguf) return why_not_begun(path);
  std::error_code error, none;
  const bool is_new = fs::create_directories(path, error);
  if (error) return "the folder cannot be made: " + error.message();
  const std::string why = why_not_begun(weights_of(path));
  if (is_new) fs::remove(path, none);
  return why;
}

std::string why_adapter_not_writable(const std::string& path, const Module& module) {
  AdapterFile file;
  const std::string why = read_trained_adapter(module.program(), file);
  return why.empty() ? why_adapter_not_writable(path, !file.architecture.empty()) : why;
}

std::string trained_adapter_text(const AdapterFile& adapter) {
  return number(adapter.alpha) + " " + adapter.architecture;
}

std::string write_trained_adapter(const std::string& path, Module& module) {
  AdapterFile file;
  if (const std::string why = read_trained_adapter(module.program(), file); !why.empty())
    return why;
  const std::string down_end = ".lora_A.weight", up_end = ".lora_B.weight";
  std::deque<OwnedTensor> values;  // their places do not change
  for (const std::string& name : module.state_names()) {
    const size_t size = name.size() - down_end.size();
    if (name.size() <= down_end.size() || name.substr(size) != down_end ||
        name.rfind("optimizer.", 0) == 0)
      continue;
    const std::string matrix = name.substr(0, size);
    Result<OwnedTensor> down = module.state(name), up = module.state(matrix + up_end);
    if (!down.ok() || !up.ok() || down->sizes.size() != 2 || up->sizes.size() != 2 ||
        down->dtype != DType::f32 || up->dtype != DType::f32)
      return "the program lacks one of the two matrices beside " + matrix;
    if (down->sizes[0] != up->sizes[1])
      return "beside " + matrix + " lora_A has the rank " + std::to_string(down->sizes[0]) +
             ", and lora_B the rank " + std::to_string(up->sizes[1]);
    values.push_back(std::move(*down)), values.push_back(std::move(*up));
    const OwnedTensor &a = values[values.size() - 2], &b = values.back();
    file.matrices.push_back(
        {matrix, a.sizes[0], a.sizes[1], b.sizes[0], a.data<float>(), b.data<float>()});
  }
  return file.matrices.empty() ? "the program trains no adapter" : write_adapter(path, file);
}

}  // namespace taper::llm
