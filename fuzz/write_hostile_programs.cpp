// write_hostile_programs CORPUS FOLDER: changes the programs of a corpus as the fuzzer does, and
// writes one for each error that comes after the tables were accepted: in the sizes, in `prepare`,
// in a kernel. Those in fuzz/corpus/program/hostile are of this. Fails if there are too few.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/program/format.h"
#include "taper/runtime/runtime.h"

using namespace taper;

namespace {

uint32_t random_state = 1;
uint32_t next_random() {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

// Bytes at a multiple of 64.
class File {
 public:
  explicit File(const std::vector<char>& bytes)
      : lines_(bytes.size() / sizeof(Line) + 1), size_(bytes.size()) {
    std::memcpy(lines_.data(), bytes.data(), bytes.size());
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  size_t size() const { return size_; }
  operator Span<const std::byte>() { return {data(), static_cast<index_t>(size_)}; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  size_t size_;
};

FileHeader header_of(File& file) {
  FileHeader h;
  std::memcpy(&h, file.data(), sizeof h);
  return h;
}

// One word of the tables becomes a small number or an extreme.
void change(File& file) {
  FileHeader h = header_of(file);
  const uint32_t extremes[] = {0x7fffffff, 0xffffffff, 0xfffffffe, 0x10000, 0};
  const uint32_t random = next_random();
  const uint32_t word = random % 3 == 0 ? extremes[next_random() % 5] : next_random() % 40;
  std::memcpy(file.data() + h.metadata_offset + next_random() % (h.metadata_bytes / 4) * 4, &word,
              4);
  h.metadata_checksum =
      checksum({file.data() + h.metadata_offset, static_cast<index_t>(h.metadata_bytes)});
  std::memcpy(file.data(), &h, sizeof h);
}

// The message of the first step behind `load` that fails; "": it does not load, or all is well.
std::string reached(File& file) {
  static std::vector<uint64_t> metadata(1 << 15), session_memory(1 << 15), memory(1 << 17);
  const auto bytes = [](std::vector<uint64_t>& v) {
    return Span<std::byte>(reinterpret_cast<std::byte*>(v.data()),
                           static_cast<index_t>(v.size() * sizeof v[0]));
  };
  ErrorInfo info;
  const auto message = [&info] { return std::string(info.message ? info.message : ""); };
  Result<Program> program = Program::load(file, portable::all, bytes(metadata));
  if (!program.ok()) return "";
  SessionOptions options;
  options.info = &info;
  Result<Session> session = Session::create(program.value(), bytes(session_memory), options);
  if (!session.ok()) return message();
  for (index_t i = 0; i < program.value().method_count(); ++i) {
    std::fill(memory.begin(), memory.end(), 0);
    Result<Method> method = Method::create(session.value(), program.value().method_name(i),
                                           MethodMemory(bytes(memory)), &info);
    if (!method.ok()) return message();
    Limits limits;
    limits.steps = 200;
    if (method.value().execute(limits) == Error::ok) continue;
    info = method.value().last_error();
    return message();
  }
  return "";
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::filesystem::path folder = arguments[2];
  std::filesystem::create_directories(folder);
  std::vector<std::pair<uintmax_t, std::filesystem::path>> programs;  // small ones first
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1]))
    if (entry.is_regular_file() && entry.file_size() < 6500)
      programs.emplace_back(entry.file_size(), entry.path());
  std::sort(programs.begin(), programs.end());

  std::map<std::string, int> written;
  for (const auto& [size, path] : programs) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> good(std::istreambuf_iterator<char>(in), {});
    for (int round = 0; round < 2000; ++round) {
      File file(good);
      change(file);
      const std::string message = reached(file);
      if (message.empty() || ++written[message] > 1) continue;
      char number[8];
      std::snprintf(number, sizeof number, "%02d_", static_cast<int>(written.size()));
      const std::string name = number + path.stem().string() + ".taper";
      std::ofstream(folder / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()),
                 static_cast<std::streamsize>(file.size()));
      std::printf("%s: %s\n", name.c_str(), message.c_str());
    }
  }
  return written.size() >= 30 ? 0 : 1;
}
