#include "taper/exporter/passes/average_windows.h"

#include <algorithm>

#include "taper/exporter/ir/call.h"

namespace taper::passes {

namespace {
std::vector<Dim> both_dims(const std::vector<Dim>& list) {
  return list.size() == 1 ? std::vector<Dim>{list[0], list[0]} : list;
}
}  // namespace

std::optional<AverageWindows> average_windows(const ir::Node& node, const ir::Type& input,
                                              std::string& why) {
  const auto refuse = [&](const char* reason) { return why = reason, std::nullopt; };
  const bool is_line = input.rank == 3;
  if (input.rank != 4 && !is_line) return refuse("it is no average over images or lines");
  const auto spatial = [&](const std::vector<Dim>& list, int64_t of_row) {
    return is_line ? std::vector<Dim>{of_row, list[0]} : both_dims(list);
  };
  AverageWindows w{
      {is_line ? Dim(1) : input.sizes[2], input.sizes[input.rank - 1]}, {1, 1}, {0, 0}};
  if (node.op == &ops::avg_pool2d) {
    const ir::Call<ops::avg_pool2d> call(node);
    if (is_line) return refuse("it is an average over an image without a batch");
    w.kernel = both_dims(call.get<"kernel_size">());
    w.stride = call.get<"stride">().empty() ? w.kernel : both_dims(call.get<"stride">());
    w.padding = both_dims(call.get<"padding">()), w.ceil_mode = call.get<"ceil_mode">();
    w.counts_padding = call.get<"count_include_pad">();
    if (const Dim* divisor = call.get<"divisor_override">(); divisor != nullptr)
      w.divisor = *divisor;
  } else if (node.op == &ops::avg_pool1d) {
    const ir::Call<ops::avg_pool1d> call(node);
    w.kernel = spatial(call.get<"kernel_size">(), 1);
    w.stride = call.get<"stride">().empty() ? w.kernel : spatial(call.get<"stride">(), 1);
    w.padding = spatial(call.get<"padding">(), 0), w.ceil_mode = call.get<"ceil_mode">();
    w.counts_padding = call.get<"count_include_pad">();
  } else if (node.op == &ops::mean_dim) {
    const ir::Call<ops::mean_dim> call(node);
    const std::vector<Dim>* dims = call.get<"dim">();
    std::vector<int64_t> over;
    for (const Dim& d : dims == nullptr ? std::vector<Dim>() : *dims)
      over.push_back(d.value() < 0 ? d.value() + input.rank : d.value());
    std::ranges::sort(over);
    w.of_rows = is_line && over == std::vector<int64_t>{1};
    if (w.of_rows) w.kernel[1] = input.sizes[1];
    if (!w.of_rows && over != (is_line ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 3}))
      return refuse("it is no average over height and width, or over positions");
    w.keeps = call.get<"keepdim">();
  } else {
    const std::vector<Dim>& size =
        node.op == &ops::adaptive_avg_pool1d
            ? ir::Call<ops::adaptive_avg_pool1d>(node).get<"output_size">()
            : ir::Call<ops::_adaptive_avg_pool2d>(node).get<"output_size">();
    if (!std::ranges::all_of(size, [](const Dim& d) { return same(d, 1); }))
      return refuse("its windows have several sizes");
  }
  if (!w.kernel[0].is_constant() || !w.kernel[1].is_constant())
    return refuse("the size of its windows is no number");
  return w;
}

}  // namespace taper::passes
