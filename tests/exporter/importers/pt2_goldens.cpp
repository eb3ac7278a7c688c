// pt2_goldens [--exported] [--known FILE] FOLDER [NAME…]: programs that PyTorch exported, against
// what they gave there. Every NAME.pt2 with its NAME.io.safetensors is imported and run in eager;
// with --exported also written as a program and run by the runtime.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/archive.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/tolerance.h"
#include "taper/runtime/extension/module/module.h"

namespace taper {
namespace {

using eager::Tensor;

/// What a program needs beside its file, and how near it must come.
struct Setting {
  std::string name;
  const char* reason;
  pt2::LoadOptions options = {};
  double tolerance = 0;     ///< absolute, of floating results; 0: the usual one
  bool only_types = false;  ///< results are random
};
pt2::LoadOptions::DimOption bounded(int64_t low, int64_t high) {
  return {pt2::LoadOptions::Bounds{low, high}, ""};
}
const std::vector<Setting>& settings() {
  static const std::vector<Setting> list{
      {"arch_two_models", "holds two models", {.model = "encoder"}},
      {"feat_dim_auto",
       "its symbols have no upper bound",
       {.dims = {{"s20", bounded(1, 64)}, {"s52", bounded(1, 64)}, {"s77", bounded(1, 64)}}}},
      {"feat_sym_ite", "its symbol has no upper bound", {.dims = {{"s77", bounded(1, 64)}}}},
      {"feat_repeat_interleave",
       "its counts have no upper bound",
       {.dims = {{"u0", bounded(0, 64)}, {"u1", bounded(0, 64)}}}},
      {"q_resnet20_pt2e_int8", "one quantization step of the logits", {}, 0.25},
      {"q_transformer_pt2e_dynamic", "one quantization step", {}, 0.05},
      {"feat_dropout_train", "draws random numbers", {}, 0, true},
      {"feat_dropout_train_core", "draws random numbers", {}, 0, true},
      {"feat_random", "draws random numbers", {}, 0, true},
  };
  return list;
}
Setting setting_of(const std::string& name) {
  for (const Setting& s : settings())
    if (name == s.name) return s;
  return {name, ""};
}

/// f32: 1e-4 of the output's largest magnitude; half precision: a few roundings; integers exactly.
double tolerance(DType d) {
  return d == DType::f16 || d == DType::bf16 ? 3e-2 : is_floating(d) || is_complex(d) ? 1e-4 : 0;
}

/// The setting for one call, with the difference that `taper check` allows results that cancel.
Setting setting_for(const io::RecordedCall& call, Setting of_file) {
  of_file.tolerance = std::max(of_file.tolerance,
                               io::allowed_difference(tolerance(DType::f32), io::scale_of(call)));
  return of_file;
}

std::string compare(const std::string& what, const io::Array& got, const io::Array& want,
                    const Setting& setting) {
  const io::Difference d = io::difference(got, want);
  if (!d.other.empty()) return what + ": " + d.other;
  if (setting.only_types || d.relative <= tolerance(want.dtype) ||
      ((is_floating(want.dtype) || is_complex(want.dtype)) && d.absolute <= setting.tolerance))
    return "";
  return what + ": element " + std::to_string(d.element) + " is " + d.got + ", not " + d.want;
}
std::string compare(const std::string& what, const Tensor& got, const io::Array& want,
                    const Setting& setting) {
  return got.defined() ? compare(what, eager::array_of(got), want, setting) : what + ": no result";
}

/// Outputs of training graphs are recorded with the buffers that they change in front.
int leading_buffers(const pt2::Model& model, const io::RecordedCall& call) {
  int recorded = 0;
  for (const auto& [i, output] : call.outputs) recorded = std::max(recorded, i + 1);
  return std::max(0, recorded - static_cast<int>(model.outputs().size()));
}

std::string run_eager(pt2::Model& model, const std::vector<io::RecordedCall>& calls,
                      const Setting& of_file) {
  const eager::NoGrad guard;
  for (const io::RecordedCall& call : calls) {
    const Setting setting = setting_for(call, of_file);
    std::vector<Tensor> inputs;
    std::map<int, Tensor> by_index;
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      if (model.inputs()[i].kind == pt2::Input::Kind::constant) continue;
      const auto at = call.inputs.find(static_cast<int>(i));
      if (at == call.inputs.end()) return "input " + std::to_string(i) + " was not recorded";
      inputs.push_back(by_index[static_cast<int>(i)] = eager::tensor_of(at->second));
    }
    const std::vector<Tensor> outputs = model.forward(inputs);
    const int leading = leading_buffers(model, call);
    for (const auto& [recorded, want] : call.outputs) {
      const int i = recorded - leading;
      if (i < 0) continue;
      if (i >= static_cast<int>(outputs.size())) return "too few outputs";
      if (auto d = compare("output " + std::to_string(i), outputs[static_cast<size_t>(i)], want,
                           setting);
          !d.empty())
        return d;
    }
    for (const auto& [i, want] : call.mutated)
      if (auto d =
              compare("input " + std::to_string(i) + " afterwards", by_index[i], want, setting);
          !d.empty())
        return d;
    for (const auto& [path, want] : call.buffers) {
      bool found = false;
      for (const auto& [name, buffer] : model.state_dict()) {
        if (name != path) continue;
        found = true;
        if (auto d = compare("buffer " + path, buffer, want, setting); !d.empty()) return d;
      }
      if (!found) return "no buffer " + path;
    }
  }
  return "";
}

io::Array array_of(const OwnedTensor& t) {
  io::Array a = io::Array::zeros(t.dtype, {t.sizes.begin(), t.sizes.end()});
  a.assign(t.bytes);
  return a;
}

/// Written as a program and run by the runtime, calls one after the other with its states.
std::string run_exported(pt2::Model& model, const std::vector<io::RecordedCall>& calls,
                         const Setting& of_file) {
  Exporter exporter;
  std::vector<std::byte> bytes;
  {
    const eager::NoGrad guard;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
    bytes = exporter.write(ExportOptions{.exact = true});
  }
  std::string why;
  ModuleOptions options;
  options.message = &why;
  Result<Module> module = Module::load(
      Span<const std::byte>(bytes.data(), static_cast<index_t>(bytes.size())), options);
  if (!module) return "load: " + why;
  for (const io::RecordedCall& call : calls) {
    const Setting setting = setting_for(call, of_file);
    std::vector<Tensor> inputs;
    std::vector<Input> refs;
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      if (model.inputs()[i].kind == pt2::Input::Kind::constant) continue;
      inputs.push_back(eager::tensor_of(call.inputs.at(static_cast<int>(i))));
    }
    for (const Tensor& t : inputs) refs.emplace_back(t.ref());
    Result<std::vector<OwnedTensor>> outputs = module->execute("forward", refs);
    if (!outputs) return "execute: " + module->message();
    size_t next = 0;
    const int leading = leading_buffers(model, call);
    for (const auto& [i, want] : call.outputs) {
      if (i < leading) continue;
      if (next >= outputs->size()) return "too few outputs";
      if (auto d =
              compare("output " + std::to_string(i), array_of((*outputs)[next++]), want, setting);
          !d.empty())
        return d;
    }
    for (const auto& [i, want] : call.mutated) {
      if (next >= outputs->size()) {  // not written: NaN is recorded as a change
        if (auto d = compare("input " + std::to_string(i), call.inputs.at(i), want, setting);
            !d.empty())
          return d;
        continue;
      }
      if (auto d = compare("input " + std::to_string(i) + " afterwards",
                           array_of((*outputs)[next++]), want, setting);
          !d.empty())
        return d;
    }
    for (const auto& [path, want] : call.buffers) {
      Result<OwnedTensor> state = module->state(path);
      if (!state) return "no state " + path;
      if (auto d = compare("state " + path, array_of(*state), want, setting); !d.empty()) return d;
    }
  }
  return "";
}

std::filesystem::path recorded_beside(const std::filesystem::path& program,
                                      const std::string& name) {
  const auto exists = [&](const std::string& stem) {
    return std::filesystem::exists(program.parent_path() / (stem + ".io.safetensors"));
  };
  for (const std::string& stem :
       {name, name.substr(0, name.rfind("_core")), name.substr(0, name.rfind("_extra"))})
    if (exists(stem)) return program.parent_path() / (stem + ".io.safetensors");
  return {};
}

int run(const std::filesystem::path& folder, const std::set<std::string>& names, bool exported,
        const std::string& known_file) {
  std::map<std::string, std::string> known;
  if (!known_file.empty()) {
    std::ifstream in(known_file);
    for (std::string line; std::getline(in, line);)
      if (const size_t at = line.find(' '); !line.empty() && line[0] != '#')
        known[line.substr(0, at)] = at == line.npos ? "" : line.substr(at + 1);
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pt2") files.push_back(entry.path());
  std::ranges::sort(files);
  int passed = 0, wrong = 0;
  for (const auto& path : files) {
    const std::string name = path.stem().string();
    if (!names.empty() && !names.contains(name)) continue;
    std::string failure;
    try {
      const auto recorded = recorded_beside(path, name);
      const Setting setting = setting_of(name);
      pt2::Model model = pt2::Model::load(path, setting.options);
      if (recorded.empty())
        failure = "nothing was recorded";
      else
        failure = (exported ? run_exported : run_eager)(
            model, io::read_recorded_calls(recorded, setting.options.model), setting);
    } catch (const std::exception& e) {
      failure = e.what();
    }
    const bool listed = known.contains(name);
    if (failure.empty()) ++passed;
    if (failure.empty() == listed) ++wrong;
    if (!failure.empty() && !listed) std::cout << name << ": " << failure << '\n';
    if (failure.empty() && listed) std::cout << name << " passes, and is listed\n";
  }
  std::cout << passed << " programs gave what was recorded, " << known.size()
            << " are listed as exceptions\n";
  if (passed == 0) std::cout << "no such programs\n";
  return wrong == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace taper

int main(int argc, char** argv) {
  CLI::App app("Programs of PyTorch against what they gave there");
  std::string folder, known;
  std::vector<std::string> names;
  bool exported = false;
  app.add_option("folder", folder)->required();
  app.add_option("names", names);
  app.add_option("--known", known);
  app.add_flag("--exported", exported);
  CLI11_PARSE(app, argc, argv);
  return taper::run(folder, {names.begin(), names.end()}, exported, known);
}
