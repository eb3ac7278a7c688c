#include "taper/exporter/inspect/program_file.h"

#include <utility>

#include "taper/exporter/io/backends.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/outside_constants.h"
#include "taper/runtime/extension/module/verify.h"
#include "taper/runtime/program/tables.h"

namespace taper::inspect {

index_t find_method(const Program& program, const std::string& name) {
  const index_t count = program.method_count();
  if (name.empty() && count == 1) return 0;
  std::vector<std::string> names;
  for (index_t i = 0; i < count; ++i) {
    if (program.method_name(i) == (name.empty() ? "forward" : name)) return i;
    names.push_back(program.method_name(i));
  }
  const std::string what =
      name.empty() ? "choose a method with --method" : "there is no method " + name;
  throw ExportError(what + "; the program has " + (names.empty() ? "none" : io::joined(names)));
}

ProgramFile::ProgramFile(std::filesystem::path path, KernelSet kernels, CpuFeatures cpu)
    : ProgramFile(path, io::read_file(path), kernels, cpu) {}

ProgramFile::ProgramFile(std::filesystem::path path, std::vector<std::byte> bytes,
                         KernelSet kernels, CpuFeatures cpu)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  ErrorInfo info;
  LoadOptions options;
  options.cpu = cpu;
  options.info = &info;
  options.backends = io::backends();
  // First asks for the size of the tables. If this fails, `load` finds the same fault and explains
  // it.
  Result<size_t> metadata_bytes = Program::metadata_bytes(bytes_);
  if (metadata_bytes.ok()) metadata_.resize(metadata_bytes.value());
  Result<Program> loaded = Program::load(bytes_, kernels, metadata_, options);
  if (!loaded.ok()) {
    std::string text = path_.string() + ": " + describe(info);
    if (loaded.error() == Error::missing_kernel) text += "; this build of taper has no such kernel";
    if (loaded.error() == Error::invalid_program) text += "; export it again";
    throw ExportError(text);
  }
  std::string damage;
  if (verify(loaded.value(), damage) != Error::ok) {
    static_cast<void>(loaded.value().close());
    throw ExportError(path_.string() + ": " + damage);
  }
  program_.emplace(std::move(loaded).value());
}

// Backends unload their parts. No session was opened, and no device has work.
ProgramFile::~ProgramFile() { static_cast<void>(program_->close()); }

std::string ProgramFile::verify_outside(const std::string& folder) const {
  ModuleOptions options;
  options.verify = true;
  const internal::ProgramView& view = program_->data().view;
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const internal::ConstantView c = view.constant(static_cast<uint64_t>(i));
    // an application gives these; there is nothing to verify
    if (c.source == format::ConstantSource::slot)
      options.slots[reinterpret_cast<const char*>(c.key.data())] = {
          c.dtype, {c.sizes.begin(), c.sizes.end()}, std::vector<std::byte>(c.bytes)};
  }
  std::string why;
  const std::string beside = path_.parent_path().string();
  if (OutsideConstants().find(*program_, folder.empty() ? beside : folder, options, why)) return "";
  return why;
}

MethodRequirements ProgramFile::requirements(index_t method) const {
  const char* name = program_->method_name(method);
  ErrorInfo info;
  Result<size_t> workspace_bytes = program_->method_metadata_bytes(name, &info);
  if (!workspace_bytes.ok()) throw ExportError(path_.string() + ": " + describe(info));
  std::vector<std::byte> workspace(workspace_bytes.value());
  Result<MethodRequirements> needed = program_->requirements(name, workspace, &info);
  if (!needed.ok()) throw ExportError(path_.string() + ": " + describe(info));
  return needed.value();
}

}  // namespace taper::inspect
