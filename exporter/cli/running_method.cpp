#include "taper/exporter/cli/running_method.h"

#include <utility>

#include "taper/exporter/inspect/method_outputs.h"
#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/io/backends.h"
#include "taper/exporter/io/element.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/io/tolerance.h"
#include "taper/exporter/partition/delegate.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper::cli {
namespace {

std::vector<std::byte> imported(const std::filesystem::path& path, const ImportChoice& choice) {
  if (is_exported_model(path)) return program_bytes(path, choice);
  refuse_weights(path);
  return {};
}

io::ArrayMap read_slots(const ImportChoice& choice) {
  return choice.slots.empty() ? io::ArrayMap() : io::read_safetensors(choice.slots).tensors;
}

/// The tensors stay where they are.
std::map<std::string, BorrowedTensor> borrowed(const io::ArrayMap& slots) {
  std::map<std::string, BorrowedTensor> tensors;
  for (const auto& [name, array] : slots) {
    array.settle_bools();
    const index_t size = static_cast<index_t>(array.size_bytes());
    tensors[name] = {array.dtype,
                     {array.sizes.begin(), array.sizes.end()},
                     {array.bytes.get(), size},
                     {array.bytes.get(), size + static_cast<index_t>(slack_bytes)}};
  }
  return tensors;
}

/// Loads the file, or the program in `bytes` if they are not empty. Keeps addresses in `slots`.
Module load(const std::filesystem::path& path, const std::vector<std::byte>& bytes,
            const io::ArrayMap& slots, const Threads* threads, const ImportChoice& import) {
  std::string message;
  ModuleOptions options;
  options.backends = io::backends();
  options.threads = threads;
  options.verify = import.verify;
  options.weights_folder =
      import.weights_folder.empty() ? path.parent_path().string() : import.weights_folder;
  options.borrowed_slots = borrowed(slots);
  options.loading = import.read ? Loading::read : Loading::map;
  if (import.pack) options.pack_weights = PackWeights::always;
  options.message = &message;
  Result<Module> module =
      bytes.empty()
          ? Module::load(path.string(), options)
          : Module::load(Span<const std::byte>(bytes.data(), static_cast<index_t>(bytes.size())),
                         options);
  // for a file, the message begins with its name
  if (!module.ok())
    throw ExportError((bytes.empty() ? "" : path.string() + ": ") + with_options(message));
  return std::move(module).value();
}

// "; n must lie in 1..64" for each symbol that the sizes of an input define.
std::string ranges_text(const inspect::MethodText& text, uint32_t input) {
  std::string ranges;
  for (uint32_t i = 0; i < internal::count_of(text.table().symbols()); ++i) {
    const format::Symbol& s = *text.table().symbols()->Get(i);
    if (s.source() == format::SymbolSource::input_extent && s.first() == input)
      ranges += "; " + text.symbol(i) + " must lie in " + std::to_string(s.minimum()) + ".." +
                std::to_string(s.maximum());
  }
  return ranges;
}

std::vector<Callable::Input> describe_inputs(const Program& program, index_t method) {
  const inspect::MethodText text(program, method);
  const format::Method& m = text.table();
  std::vector<Callable::Input> inputs;
  for (uint32_t i = 0; i < internal::count_of(m.inputs()); ++i) {
    const format::Input& in = *m.inputs()->Get(i);
    Callable::Input& input = inputs.emplace_back();
    input.name = in.name()->str();
    input.is_number = in.value() == internal::none;
    if (input.is_number) {
      input.text = input.name + ": " + inspect::type_text(in.type());
      continue;
    }
    input.text = input.name + ": " + text.type(in.value());
    input.ranges = ranges_text(text, i);
    const format::Value& value = *m.values()->Get(in.value());
    input.dtype = static_cast<DType>(value.dtype());
    const format::Shape& shape = *m.shapes()->Get(value.shape());
    for (uint32_t d = 0; d < shape.rank(); ++d) {
      const format::Expression& e = *m.expressions()->Get(m.dims()->Get(shape.dims_first() + d));
      input.sizes.push_back(e.operation() == format::Operation::literal ? e.literal() : any_extent);
    }
  }
  return inputs;
}

}  // namespace

std::string with_options(std::string message) {
  const std::pair<std::string, std::string> names[] = {{"(slots)", "(--slots FILE.safetensors)"},
                                                       {"(weights_folder)", "(--weights-folder)"}};
  for (const auto& [field, option] : names)
    if (const size_t at = message.find(field); at != message.npos)
      message.replace(at, field.size(), option);
  return message;
}

RunningMethod::RunningMethod(const std::filesystem::path& path, const std::string& name,
                             const Threads* threads, const ImportChoice& import)
    : RunningMethod(path, imported(path, import), name, threads, import) {}

RunningMethod::RunningMethod(const std::filesystem::path& path, std::vector<std::byte> program,
                             const std::string& name, const Threads* threads,
                             const ImportChoice& import)
    : bytes_(std::move(program)),
      slots_(read_slots(import)),
      module_(load(path, bytes_, slots_, threads, import)),
      index_(inspect::find_method(module_.program(), name)) {
  Result<Method> method = module_.method(module_.program().method_name(index_));
  if (!method.ok()) throw ExportError(path.string() + ": " + module_.message());
  method_.emplace(std::move(method).value());
  inputs_ = describe_inputs(module_.program(), index_);
}

void RunningMethod::require(Error error) const {
  if (error != Error::ok) throw ExportError(describe(method_->last_error()));
}

void RunningMethod::execute() { require(method_->execute()); }

void RunningMethod::set_input(index_t i, const io::Array& array) {
  if (inputs_.at(static_cast<size_t>(i)).is_number) {
    if (array.numel() != 1 || !is_integral(array.dtype)) throw mismatch(i, array);
    return set_number(i, static_cast<int64_t>(io::element(array, 0)));
  }
  if (array.sizes.size() > max_rank || method_->input(i).dtype != array.dtype)
    throw mismatch(i, array);
  array.settle_bools();
  const std::vector<index_t> sizes(array.sizes.begin(), array.sizes.end());
  const Shape shape = Shape::dense(sizes);
  if (method_->set_input(i, TensorRef{array.bytes.get(), &shape, array.dtype}) != Error::ok)
    throw mismatch(i, array);
}

void RunningMethod::set_number(index_t i, int64_t number) {
  require(method_->set_number(i, number));
}
void RunningMethod::set_number(index_t i, double number) {
  require(method_->set_number(i, number));
}

std::vector<Callable::Output> RunningMethod::call() {
  execute();
  std::vector<Output> outputs;
  for (io::Array& array : inspect::read_outputs(*method_))
    outputs.push_back(
        {method_->output_name(static_cast<index_t>(outputs.size())), std::move(array)});
  return outputs;
}

void RunningMethod::load_states(const std::filesystem::path& path) {
  Session& session = module_.session();
  for (const auto& [name, array] : io::read_safetensors(path).tensors) {
    const Result<index_t> index = session.find_state(name.c_str());
    if (!index.ok())
      throw ExportError(path.string() + ": the program has no state " + name +
                        "; `taper inspect` lists its states");
    const StateView state = session.state(index.value());
    require_state(path, name, array, state.dtype, {state.sizes.begin(), state.sizes.end()});
    array.settle_bools();
    require(session.write_state(index.value(),
                                {array.bytes.get(), static_cast<index_t>(array.size_bytes())}));
  }
}

/// Constants that are halves do not count: a program that only stores them may compute in f32.
/// Where f32 constants lie in halves, they were rounded.
double RunningMethod::tolerance() const {
  const inspect::MethodText text(program(), index_);
  io::Tolerance tolerance;
  const auto* blobs = program().data().table->delegates();
  for (uint32_t i = 0; i < internal::count_of(blobs); ++i)
    for (const partition::Delegate* delegate : partition::delegates())
      if (delegate->name() == blobs->Get(i)->backend()->str()) tolerance.add(delegate->rounds_to());
  for (uint32_t i = 0; i < internal::count_of(text.table().values()); ++i) {
    const format::Value& value = *text.table().values()->Get(i);
    if (value.storage() != format::Storage::constant) {
      tolerance.add(static_cast<DType>(value.dtype()));
      continue;
    }
    for (const format::Encoding& e :
         program().data().view.constant(value.storage_index()).encodings)
      if (const auto layout = static_cast<Layout>(e.layout()); is_in_halves(layout))
        tolerance.add(is_in_f16(layout) ? DType::f16 : DType::bf16);
  }
  return tolerance.value();
}

bool RunningMethod::has_state(const std::string& path) {
  return module_.session().find_state(path.c_str()).ok();
}

io::Array RunningMethod::state(const std::string& path) {
  Session& session = module_.session();
  const Result<index_t> index = session.find_state(path.c_str());
  if (!index.ok())
    throw ExportError(
        "the program has no state " + path +
        "; `taper inspect` lists its states (buffers that share memory are one state)");
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
