// The front door of the host side. A program that trains or exports a model includes this header.
//
//   Exporter exporter;
//   exporter.method("forward", [&](Tensor x) { return model(x); },
//                   {input("images", {batch, 1, 28, 28})});
//   exporter.method("train_step", train_step,
//                   {input("images", {64, 1, 28, 28}), input("labels", {64}, DType::i64)});
//   exporter.write("lenet.taper");
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "taper/exporter/data/data.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/emit/report.h"
#include "taper/exporter/export_options.h"
#include "taper/exporter/io/asset.h"
#include "taper/exporter/io/bundled_test.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/nn/nn.h"
#include "taper/exporter/optim/optim.h"
#include "taper/exporter/trace/trace.h"

namespace taper::emit {
struct EmitOptions;
struct Method;
}  // namespace taper::emit

namespace taper {

using data::Progress;
using eager::Tensor;
// A call such as relu(x) finds its function through its argument. A call without a tensor, or with
// a list in braces, does not: those functions are named here. (`std` is not, because it would hide
// the library's. Write eager::std(x).)
using eager::arange;
using eager::atleast_1d;
using eager::atleast_2d;
using eager::atleast_3d;
using eager::bartlett_window;
using eager::blackman_window;
using eager::block_diag;
using eager::broadcast_tensors;
using eager::cartesian_prod;
using eager::cat;
using eager::chain_matmul;
using eager::checkpoint;
using eager::column_stack;
using eager::cond;
using eager::CustomFunction;
using eager::default_generator;
using eager::DetectAnomaly;
using eager::dstack;
using eager::einsum;
using eager::empty;
using eager::empty_strided;
using eager::eye;
using eager::fft_fftfreq;
using eager::fft_rfftfreq;
using eager::full;
using eager::Generator;
using eager::grad;
using eager::gradcheck;
using eager::gradgradcheck;
using eager::hamming_window;
using eager::hann_window;
using eager::hstack;
using eager::kaiser_window;
using eager::linalg_multi_dot;
using eager::linspace;
using eager::load_npy;
using eager::load_safetensors;
using eager::logspace;
using eager::manual_seed;
using eager::map;
using eager::meshgrid;
using eager::no_grad;
using eager::normal;
using eager::one_hot;
using eager::ones;
using eager::pad_sequence;
using eager::rand;
using eager::randint;
using eager::randn;
using eager::randperm;
using eager::save_npy;
using eager::save_safetensors;
using eager::scalar_tensor;
using eager::scan;
using eager::Scanned;
using eager::set_threads;
using eager::stack;
using eager::tril_indices;
using eager::triu_indices;
using eager::vstack;
using eager::while_loop;
using eager::zeros;

/// Collects methods and writes them as one program. The methods share weights and other states.
class Exporter {
 public:
  Exporter();
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// Traces `function`. It takes one Tensor for each input (up to 8), or all inputs as one `const
  /// std::vector<Tensor>&`. It returns a Tensor, a tuple, a pair or a vector of Tensors. The file
  /// gets the values that weights have when `write` is called. Throws EagerError, see `trace`.
  template <class F>
  void method(const std::string& name, F&& function, const std::vector<InputSpec>& inputs,
              const std::vector<std::string>& outputs = {}, Location here = Location::current()) {
    add(name, erase(std::forward<F>(function), inputs.size()), inputs, outputs, here);
  }

  /// Stores a test in the file, for `taper check`: these inputs, and the results that eager gives
  /// for them, computed with the values that states have now: call `write` before they change.
  /// Throws ExportError if the inputs do not fit.
  void test(const std::string& method, const std::vector<Tensor>& inputs,
            const std::string& name = "");

  /// Stores something beside the model in the file: labels, a tokenizer. Applications read it with
  /// `find_asset` (runtime/extension/module/asset.h). Throws ExportError if the name is taken.
  void asset(io::Asset asset);

  /// The graph of a method, as it was traced.
  ir::Graph& graph(const std::string& name);

  /// Runs the passes, plans memory, writes the file (completely or not at all) and prints a report.
  /// Throws ExportError, which lists every operator without a kernel. An exporter writes once.
  emit::Report write(const std::filesystem::path& path, const ExportOptions& options = {});
  /// The same, to memory; prints nothing.
  std::vector<std::byte> write(const ExportOptions& options, emit::Report* report = nullptr);

 private:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  void add(const std::string& name, const Function& function, const std::vector<InputSpec>& inputs,
           const std::vector<std::string>& outputs, Location here);
  void run_passes(const ExportOptions& options, std::vector<std::string>& notes);
  emit::EmitOptions prepare(const ExportOptions& options, const std::string& name,
                            std::vector<emit::Method>& methods, std::vector<std::string>& notes);

  /// A generic lambda fits both forms; it counts as a function of single tensors.
  template <class F>
  static constexpr bool takes_list =
      std::conjunction_v<std::negation<std::is_invocable<F&, Tensor>>,
                         std::is_invocable<F&, const std::vector<Tensor>&>>;
  template <class F>
  static Function erase(F&& function, size_t count) {
    return [function = std::forward<F>(function), count](const std::vector<Tensor>& in) mutable {
      if constexpr (takes_list<F>)
        return static_cast<void>(count), results(function(in));
      else
        return call(function, in, count);
    };
  }
  /// Calls with as many arguments as there are inputs.
  template <size_t n = 0, class F>
  static std::vector<Tensor> call(F& function, const std::vector<Tensor>& in, size_t count) {
    if constexpr (n > 8) {
      throw ExportError(
          "export: a function of single tensors takes at most 8; let it take one "
          "const std::vector<Tensor>&");
    } else {
      if (n != count) return call<n + 1>(function, in, count);
      return call_with(function, in, std::make_index_sequence<n>());
    }
  }
  template <class F, size_t... i>
  static std::vector<Tensor> call_with(F& function, const std::vector<Tensor>& in,
                                       std::index_sequence<i...>) {
    if constexpr (std::is_invocable_v<F&, decltype((void)i, std::declval<Tensor>())...>)
      return results(function(Tensor(in[i])...));
    else
      throw ExportError("export: the function does not take " + std::to_string(sizeof...(i)) +
                        " tensors; give one input for each of its parameters");
  }
  static std::vector<Tensor> results(Tensor t) { return {std::move(t)}; }
  static std::vector<Tensor> results(std::vector<Tensor> list) { return list; }
  template <class... T>
  static std::vector<Tensor> results(std::tuple<T...> t) {
    return std::apply([](auto&... element) { return std::vector<Tensor>{element...}; }, t);
  }
  static std::vector<Tensor> results(std::pair<Tensor, Tensor> t) { return {t.first, t.second}; }

  std::vector<std::unique_ptr<ir::Graph>> graphs_;
  std::vector<io::BundledTest> tests_;
  std::vector<io::Asset> assets_;
  bool written_ = false;
};

}  // namespace taper
