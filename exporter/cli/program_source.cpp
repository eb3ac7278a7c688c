#include "taper/exporter/cli/program_source.h"

#include <algorithm>
#include <limits>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/import_model.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/backends.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::cli {
namespace {

/// Names the --dim options that the model does not know: a wrong name may be the reason for a
/// missing bound.
std::string unknown_dims_of(const pt2::Model& model) {
  if (model.unknown_dims().empty()) return "";
  std::vector<std::string> known;
  for (const pt2::Dimension& d : model.dimensions()) known.push_back(d.to_string());
  return "; it has no size " + io::joined(model.unknown_dims()) + ", but " + io::joined(known);
}

/// Throws if a size has no upper bound, because its memory cannot be planned.
void require_bounds(const pt2::Model& model, const std::filesystem::path& path) {
  for (const pt2::Input& input : model.inputs())
    for (const Dim size : input.sizes)
      if (const Symbol* s = size.as_symbol();
          s != nullptr && s->maximum == std::numeric_limits<int64_t>::max())
        throw ExportError(path.string() + ": input " + input.name + " is " +
                          eager::to_string(input.sizes) + ", and " + s->name +
                          " has no upper bound, so memory cannot be planned; give a bound: --dim " +
                          s->name + "=" + std::to_string(s->minimum) +
                          "..256, or export the model with Dim(…, max=…)" + unknown_dims_of(model));
}

/// Stores the inputs that the model was exported with as a test. Returns the reason if they cannot
/// be used.
std::string add_test(Exporter& exporter, const std::string& method, const pt2::Model& model) {
  try {
    if (const auto inputs = model.example_inputs())
      exporter.test(method, *inputs, "example inputs");
    return "";
  } catch (const ExportError& e) {
    const std::string why = e.what(), begin = method + ": ";
    return "no test of " + (why.starts_with(begin) ? why : begin + why);
  }
}

/// Adds the --dim options that the model does not know to `unknown`. Returns notes for people.
std::vector<std::string> add_model(Exporter& exporter, const std::string& method,
                                   const std::filesystem::path& path, const ImportChoice& choice,
                                   UnknownDims& unknown, const ExportOptions& options = {}) {
  const auto begin = [&](const std::string& what) {
    if (options.stage) options.stage(what + " " + path.stem().string());
  };
  begin("importing");
  pt2::Model model = import_to_trace(path, choice);
  unknown.add(model);
  if (model.is_supported()) require_bounds(model, path);
  const eager::NoGrad guard;
  begin("tracing");
  exporter.method(method, model.function(), model.input_specs(), model.output_names(), Location{});
  std::vector<std::string> notes;
  for (const std::string& note : model.notes()) notes.push_back(path.string() + ": " + note);
  for (const std::string& guard : model.unread_guards())
    notes.push_back(
        path.string() + " assumes " + guard +
        ", which the program does not check: if it does not hold, results may be wrong");
  if (!choice.tests) return notes;
  begin("running");
  notes.push_back(add_test(exporter, method, model));
  return notes;
}

/// Calls `add` for a model. Errors then begin with the model's name.
template <class Add>
auto of_model(const std::filesystem::path& path, const Add& add) {
  try {
    return add();
  } catch (const ExportError& e) {
    const std::string message = e.what();
    if (message.starts_with(path.string())) throw;
    throw ExportError(path.string() + ": " + message);
  }
}

/// Notes about states that several models of one file share and change. The reader may not want
/// that: two unrelated models may have caches of the same name. Slots do not change, so they are
/// left out.
std::vector<std::string> notes_of_shared_states(Exporter& exporter,
                                                const std::vector<std::string>& methods,
                                                const std::vector<std::string>& slots) {
  std::map<std::string, std::vector<std::string>> users;  // the models that use each state
  for (const std::string& method : methods)
    for (const ir::State& state : exporter.graph(method).states())
      if (std::ranges::count(slots, state.path) == 0) users[state.path].push_back(method);
  std::vector<std::string> notes;
  for (const auto& [path, names] : users)
    if (names.size() > 1)
      notes.push_back("methods " + io::joined(names) + " share the state " + path +
                      "; export the models to separate files if each needs its own state");
  return notes;
}

/// Zeros for the slots of a program.
std::map<std::string, OwnedTensor> zeros_for(const std::vector<std::string>& slots,
                                             Exporter& exporter,
                                             const std::vector<std::string>& methods) {
  std::map<std::string, OwnedTensor> zeros;
  for (const std::string& slot : slots)
    for (const std::string& method : methods) {
      const ir::State* state = exporter.graph(method).find_state(slot);
      if (state == nullptr) continue;
      OwnedTensor& t = zeros[slot];
      t = {state->value->type.dtype, {}, {}};
      int64_t bytes = size_bytes(t.dtype);
      for (int d = 0; d < state->value->type.rank; ++d) {
        t.sizes.push_back(static_cast<index_t>(state->value->type.sizes[d].value()));
        bytes *= t.sizes.back();
      }
      t.bytes.resize(static_cast<size_t>(bytes));
    }
  return zeros;
}

/// Whether the memory of a method has a size that can be counted, on whatever machine.
bool has_a_size(const Program& program, const std::string& method) {
  const Result<size_t> tables = program.method_metadata_bytes(method.c_str());
  if (!tables.ok()) return false;
  std::vector<std::byte> workspace(tables.value());
  return program.requirements(method.c_str(), workspace).ok();
}

/// Loads the new program and prepares its methods, as a device does. So a program that nobody can
/// run is reported here. Too little memory on this machine is not an error of the program: then
/// returns a note. Throws ExportError, and removes a plain file before.
std::string require_prepared(const std::filesystem::path& program,
                             const std::vector<std::string>& methods,
                             const std::map<std::string, OwnedTensor>& slots,
                             const emit::Report& report) {
  std::error_code none;
  const auto kind = std::filesystem::symlink_status(program, none).type();
  // it was written to a device or a pipe
  if (!std::filesystem::is_regular_file(program, none)) return "";
  std::string message;
  ModuleOptions options;
  options.backends = io::backends();
  options.message = &message;
  options.slots = slots;
  options.verify = true;  // detects damage by a failing disk or memory
  Result<Module> module = Module::load(program.string(), options);
  Error error = module.error();
  for (size_t i = 0; module.ok() && error == Error::ok && i < methods.size(); ++i) {
    error = module.value().method(methods[i]).error();
    const std::string begin = methods[i] + ": ", why = module.value().message();
    if (error == Error::out_of_memory && has_a_size(module.value().program(), methods[i]))
      return "this machine has too little memory to run it: " + why;
    message = why.starts_with(begin) ? why : begin + why;
  }
  if (error == Error::ok) return "";
  if (!module.ok() && error == Error::out_of_memory)
    return "this machine has too little memory to run it: " + message;
  if (kind == std::filesystem::file_type::regular) std::filesystem::remove(program, none);
  if (!module.ok()) throw ExportError("the new program cannot be loaded: " + message);
  const auto is_free = [](const emit::MethodReport::Range& s) { return s.minimum < s.maximum; };
  const bool has_symbols = std::ranges::any_of(report.methods, [&](const emit::MethodReport& m) {
    return std::ranges::any_of(m.symbols, is_free);
  });
  throw ExportError(
      "the new program cannot be prepared: " + message +
      (has_symbols ? "; narrower bounds of its symbols may help: --dim NAME=LOW..HIGH" : ""));
}

}  // namespace

void add_import_options(Command& command, ImportChoice& choice) {
  command.option("--model NAME", choice.model, "The model to use, if a .pt2 holds several");
  command
      .option("--dim NAME=LOW..HIGH", choice.dims,
              "Gives a size of a .pt2 narrower bounds. Repeat the option for several sizes.\n"
              "  x.0=1..64           dimension 0 of input x\n"
              "  x.0=batch:1..64     the same, and its name\n"
              "  x.0=1               the same, fixed\n"
              "  u0=1..64            a size that depends on data\n"
              "  \"u0*x.0=1..16\"     an expression")
      .one_value();
}

emit::Report export_models(const std::vector<std::filesystem::path>& paths,
                           const std::filesystem::path& output, const ImportChoice& choice,
                           const ExportOptions& options) {
  Exporter exporter;
  std::vector<std::string> notes, methods;
  UnknownDims unknown;
  for (const std::filesystem::path& path : paths) {
    const std::string& method =
        methods.emplace_back(paths.size() == 1 ? "forward" : path.stem().string());
    const std::vector<std::string> of_this =
        of_model(path, [&] { return add_model(exporter, method, path, choice, unknown, options); });
    notes.insert(notes.end(), of_this.begin(), of_this.end());
  }
  unknown.require_none();
  emit::Report report = exporter.write(output, options);
  notes.push_back(
      require_prepared(output, methods, zeros_for(options.slots, exporter, methods), report));
  for (std::string& note : notes_of_shared_states(exporter, methods, options.slots))
    notes.push_back(std::move(note));
  std::erase(notes, "");
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  return report;
}

std::vector<std::byte> program_bytes(const std::filesystem::path& path,
                                     const ImportChoice& choice) {
  if (!is_exported_model(path)) {
    refuse_dims(path, choice);
    return io::read_file(path);
  }
  emit::Report report;
  return program_bytes(path, choice, ExportOptions{.exact = true, .name = path.stem().string()},
                       report);
}

std::vector<std::byte> program_bytes(const std::filesystem::path& model, const ImportChoice& choice,
                                     const ExportOptions& options, emit::Report& report) {
  Exporter exporter;
  UnknownDims unknown;
  of_model(model, [&] { return add_model(exporter, "forward", model, choice, unknown); });
  unknown.require_none();
  return exporter.write(options, &report);
}

std::optional<CallPositions> call_positions(const std::filesystem::path& path,
                                            const ImportChoice& choice) {
  if (!is_exported_model(path)) return std::nullopt;
  const pt2::Model model = import_model(path, choice);
  CallPositions positions;
  for (size_t i = 0; i < model.inputs().size(); ++i)
    if (model.inputs()[i].kind != pt2::Input::Kind::constant)
      positions.inputs.push_back(static_cast<int>(i));
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const bool is_absent = model.outputs()[i].kind == pt2::Output::Kind::none;
    (is_absent ? positions.absent : positions.outputs).push_back(static_cast<int>(i));
  }
  return positions;
}

EagerModel load_model(const std::filesystem::path& path, const ImportChoice& choice) {
  pt2::Model model = import_model(path, choice);
  const auto run = [model](const std::vector<io::Array>& inputs) mutable {
    return compare::run_model(model, inputs);
  };
  const auto example_inputs = [model] {
    std::vector<io::Array> arrays;
    if (const auto inputs = model.example_inputs())
      for (const eager::Tensor& tensor : *inputs) arrays.push_back(eager::array_of(tensor));
    return arrays;
  };
  return {run, example_inputs};
}

}  // namespace taper::cli
