// Makes a model from a file.
#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/pt2/archive.h"
#include "taper/exporter/importers/pt2/complex128.h"
#include "taper/exporter/importers/pt2/guards.h"
#include "taper/exporter/importers/pt2/inner_tensors.h"
#include "taper/exporter/importers/pt2/model_data.h"
#include "taper/exporter/importers/pt2/mutations.h"
#include "taper/exporter/importers/pt2/output_names.h"
#include "taper/exporter/importers/pt2/symbols.h"
#include "taper/exporter/importers/pt2/weights.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::pt2 {

using nn::Tensor;

namespace {

std::string constant_text(const ConstantValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "None";
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "True" : "False";
        else if constexpr (std::is_same_v<T, std::string>)
          return "\"" + v + "\"";
        else
          return std::to_string(v);
      },
      value);
}

Output::Kind kind_of(const Argument& argument) {
  if (std::holds_alternative<TensorName>(argument)) return Output::Kind::tensor;
  const bool none = std::holds_alternative<std::monostate>(argument) ||
                    std::holds_alternative<std::string>(argument);
  return none ? Output::Kind::none : Output::Kind::number;
}

/// `name`, or "name_2" if an output has this name already: a model may return one value twice.
std::string unused_name(const std::string& name, const std::vector<Output>& outputs) {
  std::string unused = name;
  for (int i = 2; std::ranges::find(outputs, unused, &Output::name) != outputs.end(); ++i)
    unused = name + "_" + std::to_string(i);
  return unused;
}

std::set<std::string> used_names(const Graph& graph) {
  std::set<std::string> used;
  const auto use = [&](const Argument& argument) {
    if (const auto* many = std::get_if<std::vector<TensorName>>(&argument))
      for (const TensorName& t : *many) used.insert(t.name);
    else
      used.insert(name_of(argument));
  };
  for (const Node& node : graph.nodes)
    for (const NamedArgument& input : node.inputs) use(input.value);
  for (const Argument& output : graph.outputs) use(output);
  return used;
}

void refuse(const std::string& name, const std::vector<Unsupported>& parts) {
  std::vector<std::string> lines;
  for (const Unsupported& part : parts) lines.push_back(to_string(part));
  throw ExportError(name + ": " + refusal(lines));
}

/// Throws unless a stored tensor has the sizes and the dtype that the graph records.
void check_stored(const std::string& name, const std::string& path, const io::StoredTensor& stored,
                  const TensorMeta& meta) {
  const auto refuse = [&](const std::string& what) {
    throw io::FileError(name + ": " + path + ": " + what);
  };
  if (meta.dtype.dtype() != stored.dtype)
    refuse("it is stored as " + std::string(taper::name_of(stored.dtype)) +
           ", but the graph says " + meta.dtype.name());
  bool fits = meta.sizes.size() == stored.sizes.size();
  for (size_t d = 0; fits && d < stored.sizes.size(); ++d)
    fits = meta.sizes[d] == SymInt(stored.sizes[d]);
  if (!fits) refuse("its stored sizes differ from those in the graph");
}

std::map<std::string, io::StoredTensor> stored_weights(
    const std::string& name, const ExportedProgram& program,
    const std::map<std::string, InnerTensor>& inner, const Archive::Payloads& payloads) {
  const std::set<std::string> used = used_names(program.graph);
  std::map<std::string, io::StoredTensor> stored;
  for (const InputSpec& spec : program.inputs) {
    if (!is_weight(spec) || !used.contains(name_of(spec.value))) continue;
    const bool constants_first = spec.kind == InputSpec::Kind::tensor_constant ||
                                 (spec.kind == InputSpec::Kind::buffer && !spec.persistent);
    const auto part = inner.find(spec.target);
    const io::StoredTensor tensor = part != inner.end()
                                        ? payloads.inner(part->second.path, part->second.attribute)
                                        : payloads.at(spec.target, constants_first);
    check_stored(name, spec.target, tensor, program.graph.tensor_values.at(name_of(spec.value)));
    stored[spec.target] = tensor;
  }
  return stored;
}

}  // namespace

std::vector<std::string> Model::models(const std::filesystem::path& path) {
  MappedFile file;
  std::string why;
  if (!file.open(path.string(), why)) throw io::FileError(why);
  return Archive({file.bytes().data(), static_cast<size_t>(file.bytes().size())}, path.string())
      .models();
}

Model Model::load(const std::filesystem::path& path, const LoadOptions& options) {
  auto file = std::make_shared<MappedFile>();
  std::string why;
  if (!file->open(path.string(), why, MappedFile::Access::private_copy)) throw io::FileError(why);
  auto* const begin = const_cast<std::byte*>(file->bytes().data());
  return parse({begin, static_cast<size_t>(file->bytes().size())}, file, path.string(), options);
}

Model Model::parse(std::span<std::byte> file, std::shared_ptr<const void> owner,
                   const std::string& name, const LoadOptions& options) {
  const Archive archive(file, name);
  const std::string& model = archive.choose(options.model);
  auto data = std::make_shared<Data>();
  data->name = name;
  data->program = parse_program(archive.program_json(model), name);
  const std::map<std::string, InnerTensor> inner = take_out_inner_tensors(data->program);
  data->example_inputs = archive.example_inputs(model);
  data->file = owner;
  const ExportedProgram& program = data->program;
  data->unsupported = find_unsupported(program.graph);
  if (!data->unsupported.empty() && !options.refuses_in_trace) refuse(name, data->unsupported);
  data->tensors =
      make_tensors(stored_weights(name, program, inner, archive.payloads(model)), file, owner);

  DimChoices choices = choose_dims(program, options.dims);
  Symbols symbols(program, choices);
  data->written = written_inputs(program);
  data->assumptions = {symbols.elements(), choices.promises};
  data->unknown_dims = choices.unknown, data->notes = choices.notes;
  if (const int nodes = count_complex128(program.graph); nodes > 0)
    data->notes.push_back("complex128 is computed as complex64, two f32, in " +
                          std::to_string(nodes) + (nodes == 1 ? " call" : " calls"));
  data->inputs.reserve(program.inputs.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& spec = program.inputs[i];
    const std::string value = name_of(spec.value);
    GraphValue& bound = data->bound.emplace_back();
    if (is_weight(spec)) {
      const auto found = data->tensors.find(spec.target);
      if (found == data->tensors.end()) continue;  // no node uses it
      bound = found->second;
      if (spec.kind == InputSpec::Kind::parameter) {
        nn::Parameter& parameter = data->parameters.emplace_back();
        static_cast<Tensor&>(parameter) = found->second;
        data->parameter_paths.push_back(spec.target);
      } else if (std::ranges::find(data->buffer_paths, spec.target) == data->buffer_paths.end()) {
        data->buffers.push_back(found->second);
        data->buffer_paths.push_back(spec.target);
      }
      continue;
    }
    if (spec.kind == InputSpec::Kind::custom_obj || spec.kind == InputSpec::Kind::token) {
      if (spec.kind == InputSpec::Kind::custom_obj && used_names(program.graph).contains(value))
        throw ExportError(name + ": the graph uses the script object " + spec.target +
                          ", which is not supported");
      bound = Tensor::empty({0}, DType::f32);  // the value of a token does not matter
      continue;
    }
    Input& input = data->inputs.emplace_back();
    input.name = spec.kind == InputSpec::Kind::constant_input ? spec.target : value;
    if (spec.kind == InputSpec::Kind::constant_input) {
      input.kind = Input::Kind::constant;
      input.value = constant_text(spec.constant);
    } else if (std::holds_alternative<TensorName>(spec.value)) {
      const TensorMeta& meta = program.graph.tensor_values.at(value);
      if (!meta.dtype.dtype())
        throw ExportError(name + ": input " + value + " is of dtype " + meta.dtype.name() +
                          ", which Taper does not have");
      input.dtype = *meta.dtype.dtype();
      if (meta.sizes.size() > static_cast<size_t>(max_rank))
        throw ExportError(name + ": input " + value + " has " + std::to_string(meta.sizes.size()) +
                          " dimensions; at most " + std::to_string(max_rank) + " are possible");
      for (const SymInt& size : meta.sizes) input.sizes.push_back(symbols.size(size));
    } else {
      input.kind = Input::Kind::number;
      const auto number = program.graph.numbers.find(value);
      const auto* text = number == program.graph.numbers.end()
                             ? nullptr
                             : std::get_if<std::string>(&number->second);
      if (text == nullptr)
        throw ExportError(name + ": input " + value + " is neither a tensor nor an integer");
      input.number = symbols.expression(*text);
    }
  }
  symbols.solve(data->inputs);
  data->symbols.insert(symbols.by_name().begin(), symbols.by_name().end());
  Guards guards =
      parse_guards(program.guards,
                   [&](const std::string& name, std::optional<int64_t> dim) -> std::optional<Dim> {
                     const auto input = std::ranges::find(data->inputs, name, &Input::name);
                     if (input == data->inputs.end()) return std::nullopt;
                     if (!dim && input->kind == Input::Kind::number) return input->number;
                     if (!dim || *dim >= static_cast<int64_t>(input->sizes.size()))
                       return std::nullopt;
                     return input->sizes[static_cast<size_t>(*dim)];
                   });
  data->guards = std::move(guards.checks), data->unread_guards = std::move(guards.unread);
  const std::vector<std::string> keys = pt2::output_names(program);
  const auto is_returned = [](const OutputSpec& spec) {
    return spec.kind == OutputSpec::Kind::user_output || spec.kind == OutputSpec::Kind::loss_output;
  };
  const bool named = static_cast<std::ptrdiff_t>(keys.size()) ==
                     std::ranges::count_if(program.outputs, is_returned);
  size_t returned = 0;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const OutputSpec& spec = program.outputs[i];
    const bool given = spec.kind == OutputSpec::Kind::user_output ||
                       spec.kind == OutputSpec::Kind::loss_output ||
                       spec.kind == OutputSpec::Kind::gradient_to_parameter ||
                       spec.kind == OutputSpec::Kind::gradient_to_user_input;
    if (!given) continue;
    std::string output = name_of(spec.value);
    if (spec.kind == OutputSpec::Kind::gradient_to_parameter ||
        spec.kind == OutputSpec::Kind::gradient_to_user_input)
      output = spec.target + ".grad";
    if (spec.kind == OutputSpec::Kind::loss_output) output = "loss";
    if (const size_t leaf = is_returned(spec) ? returned++ : keys.size();
        named && leaf < keys.size() && !keys[leaf].empty())
      output = keys[leaf];
    if (output.empty()) output = "output" + std::to_string(data->outputs.size());
    data->outputs.push_back(
        {unused_name(output, data->outputs), kind_of(program.graph.outputs[i])});
  }
  return Model(data);
}

}  // namespace taper::pt2
