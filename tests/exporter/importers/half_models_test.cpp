// Programs in f16 and bf16 against the f32 results of PyTorch.
#include <gmock/gmock.h>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/element.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper {
namespace {

/// As `taper export --dtype` does it, with all passes.
std::vector<std::byte> exported(const std::filesystem::path& file, std::optional<DType> dtype) {
  pt2::Model model = pt2::Model::load(file);
  const eager::NoGrad guard;
  Exporter exporter;
  exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  return exporter.write(ExportOptions{.exact = false, .dtype = dtype});
}

class Running {
 public:
  explicit Running(const std::vector<std::byte>& program) {
    std::string why;
    ModuleOptions options;
    options.message = &why;
    Result<Module> loaded = Module::load(
        Span<const std::byte>(program.data(), static_cast<index_t>(program.size())), options);
    if (!loaded.ok()) throw std::runtime_error(why);
    module_.emplace(std::move(loaded.value()));
  }
  std::vector<io::Array> run(const io::RecordedCall& call) {
    std::vector<Tensor> inputs;
    for (const auto& [i, array] : call.inputs) inputs.push_back(eager::tensor_of(array));
    std::vector<Input> refs;
    for (const Tensor& t : inputs) refs.emplace_back(t.ref());
    Result<std::vector<OwnedTensor>> outputs = module_->execute("forward", refs);
    if (!outputs.ok()) throw std::runtime_error(module_->message());
    std::vector<io::Array> arrays;
    for (const OwnedTensor& t : *outputs) {
      arrays.push_back(io::Array::zeros(t.dtype, {t.sizes.begin(), t.sizes.end()}));
      arrays.back().assign(t.bytes);
    }
    return arrays;
  }

 private:
  std::optional<Module> module_;
};

/// The best class of each row.
std::vector<int64_t> best(const io::Array& scores) {
  const int64_t classes = scores.sizes.back(), rows = scores.numel() / classes;
  std::vector<int64_t> found;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t top = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (io::element(scores, r * classes + c) > io::element(scores, r * classes + top)) top = c;
    found.push_back(top);
  }
  return found;
}

struct Case {
  const char* name;
  bool classifies = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class half_model : public testing::TestWithParam<std::tuple<Case, DType>> {};

TEST_P(half_model, gives_what_pytorch_recorded_and_is_half_as_large) {
  const auto& [model, dtype] = GetParam();
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/" + std::string(model.name) + ".pt2");
  const std::vector<std::byte> whole = exported(file, std::nullopt), half = exported(file, dtype);
  EXPECT_LT(static_cast<double>(half.size()), 0.6 * static_cast<double>(whole.size()));

  std::string recorded = model.name;
  if (const size_t core = recorded.find("_core"); core != recorded.npos) recorded.resize(core);
  Running running(half);
  const double tolerance = dtype == DType::f16 ? 1e-2 : 5e-2;
  for (const io::RecordedCall& call :
       io::read_recorded_calls(file.parent_path() / (recorded + ".io.safetensors"))) {
    const std::vector<io::Array> outputs = running.run(call);
    for (const auto& [i, want] : call.outputs) {
      const io::Array& got = outputs.at(static_cast<size_t>(i));
      const io::Difference d = io::difference(got, want);
      EXPECT_EQ(d.other, "");
      EXPECT_LE(d.relative, tolerance) << "output " << i << ", element " << d.element;
      if (model.classifies) {
        EXPECT_EQ(best(got), best(want));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    recorded, half_model,
    testing::Combine(testing::Values(Case{"squeezenet1_1", true}, Case{"resnet20", true},
                                     Case{"lenet", true}, Case{"cifar_net", true},
                                     Case{"silero_vad_16k"}, Case{"superres"}, Case{"stories260k"},
                                     Case{"stories260k_core"}, Case{"stories260k_static_cache"}),
                     testing::Values(DType::f16, DType::bf16)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + "_" + name_of(std::get<1>(info.param));
    });

}  // namespace
}  // namespace taper
