#include "taper/exporter/cli/running_method.h"

#include <utility>

#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/extension/module/message.h"

namespace taper::cli {
namespace {

std::vector<std::byte> imported(const std::filesystem::path& path, const ImportChoice& choice) {
  return is_exported_model(path) ? program_bytes(path, choice) : std::vector<std::byte>{};
}

/// Of the file if `bytes` are empty.
Module load(const std::filesystem::path& path, const std::vector<std::byte>& bytes,
            const Threads* threads) {
  std::string message;
  ModuleOptions options;
  options.threads = threads;
  options.message = &message;
  Result<Module> module =
      bytes.empty()
          ? Module::load(path.string(), options)
          : Module::load(Span<const std::byte>(bytes.data(), static_cast<index_t>(bytes.size())),
                         options);
  // of a file, the message names it
  if (!module.ok()) throw ExportError((bytes.empty() ? "" : path.string() + ": ") + message);
  return std::move(module).value();
}

}  // namespace

RunningMethod::RunningMethod(const std::filesystem::path& path, const std::string& name,
                             const Threads* threads, const ImportChoice& import)
    : RunningMethod(path, imported(path, import), name, threads) {}

RunningMethod::RunningMethod(const std::filesystem::path& path, std::vector<std::byte> program,
                             const std::string& name, const Threads* threads)
    : bytes_(std::move(program)),
      module_(load(path, bytes_, threads)),
      index_(inspect::find_method(module_.program(), name)) {
  Result<Method> method = module_.method(module_.program().method_name(index_));
  if (!method.ok()) throw ExportError(path.string() + ": " + module_.message());
  method_.emplace(std::move(method).value());
}

void RunningMethod::require(Error error) const {
  if (error != Error::ok) throw ExportError(describe(method_->last_error()));
}

void RunningMethod::execute() { require(method_->execute()); }

void RunningMethod::load_states(const std::filesystem::path& path) {
  Session& session = module_.session();
  for (const auto& [name, array] : io::read_safetensors(path).tensors) {
    const Result<index_t> index = session.find_state(name.c_str());
    if (!index.ok())
      throw ExportError(path.string() + ": the program has no state " + name +
                        "; `taper inspect` lists those it has");
    const StateView state = session.state(index.value());
    const std::vector<int64_t> sizes(state.sizes.begin(), state.sizes.end());
    if (array.dtype != state.dtype || array.sizes != sizes)
      throw ExportError(path.string() + ": " + name + " is " + array.describe() +
                        ", the state is " + io::Array::zeros(state.dtype, sizes).describe());
    array.settle_bools();
    require(session.write_state(index.value(),
                                {array.bytes.get(), static_cast<index_t>(array.size_bytes())}));
  }
}

io::Array RunningMethod::state(const std::string& path) {
  Session& session = module_.session();
  const Result<index_t> index = session.find_state(path.c_str());
  if (!index.ok())
    throw ExportError(
        "the program has no state " + path +
        "; `taper inspect` lists those it has, and buffers that share memory are one");
  const StateView state = session.state(index.value());
  io::Array array = io::Array::zeros(state.dtype, {state.sizes.begin(), state.sizes.end()});
  require(session.read_state(index.value(),
                             {array.bytes.get(), static_cast<index_t>(array.size_bytes())}));
  return array;
}

void RunningMethod::save_states(const std::filesystem::path& path) {
  Session& session = module_.session();
  io::SafeTensors content;
  for (index_t i = 0; i < session.state_count(); ++i) {
    const char* name = session.state(i).path;
    content.tensors[name] = state(name);
  }
  io::write_safetensors(path, content);
}

}  // namespace taper::cli
