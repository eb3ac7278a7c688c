// taper::grouped_block_linear is block_linear for each group: with its rows of input, and its
// matrix of the weight.
#pragma once
#include "taper/kernels/portable/grouped_mm.h"
#include "taper/kernels/quantized/block_linear.h"
#include "taper/kernels/quantized/panels.h"

namespace taper::quantized {

using GroupEnds = AnyView<const portable::GroupEnd>;

/// The arguments of block_linear for one group. input (m, k), weight (groups, n, k), out (m, n).
class GroupViews {
 public:
  GroupViews(View<const float> input, View<const float> weight, View<float> out)
      : bytes_of_weight_(bytes_of(weight)),
        first_{*input.ref, *weight.ref, *out.ref},
        shapes_{input.shape(), input.shape(), out.shape()},
        refs_{*input.ref, *weight.ref, *out.ref} {
    for (int i = 0; i < 2; ++i) shapes_[1].sizes[i] = weight.size(i + 1);
    shapes_[1].make_dense();
    for (int i = 0; i < 3; ++i) refs_[i].shape = &shapes_[i];
  }
  GroupViews(const GroupViews&) = delete;

  /// Rows [row, row + count) of input and out, and matrix `group` of the weight.
  void choose(index_t group, index_t row, index_t count) {
    shapes_[0].sizes[0] = shapes_[2].sizes[0] = count;
    advance(0, row * shapes_[0].sizes[1] * index_t{sizeof(float)});
    advance(1, group * bytes_of_weight_);
    advance(2, row * shapes_[2].sizes[1] * index_t{sizeof(float)});
  }
  View<const float> input() const { return {&refs_[0]}; }
  View<const float> weight() const { return {&refs_[1]}; }
  View<float> out() const { return {&refs_[2]}; }

 private:
  static index_t bytes_of(View<const float> weight) {
    const index_t rows = weight.size(1), depth = weight.size(2);
    if (is_in_block_panels(weight.layout()))  // of whole panels: see bytes_of_panels
      return rows / panel_width * panel_bytes(weight.layout(), depth);
    if (weight.layout() == Layout::dense) return rows * depth * index_t{sizeof(float)};
    const BlockSize block = block_of(weight.layout());
    return rows * (depth / block.elements) * block.bytes;
  }
  void advance(int i, index_t bytes) {
    refs_[i].data = bytes == 0 ? first_[i].data : static_cast<std::byte*>(first_[i].data) + bytes;
  }

  index_t bytes_of_weight_;
  TensorRef first_[3];
  Shape shapes_[3];
  TensorRef refs_[3];
};

/// The `prepare` of block_linear, for a group that has all rows.
template <class Plan, Error (*prepare)(Context&, Plan&, View<const float>, View<const float>,
                                       Maybe<View<const float>>, View<float>)>
Error prepare_groups(Context& context, Plan& plan, View<const float> input,
                     View<const float> weight, GroupEnds, View<float> out) {
  if (is_in_block_panels(weight.layout()) && weight.size(1) % panel_width != 0)
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("{} rows of a group are not whole panels"), weight.size(1));
  GroupViews views(input, weight, out);
  views.choose(0, 0, input.size(0));
  return prepare(context, plan, views.input(), views.weight(), {}, views.out());
}

/// The `run` of block_linear for each group. Rows behind the last one become zero.
template <class Plan, Error (*run)(Context&, const Plan&, View<const float>, View<const float>,
                                   Maybe<View<const float>>, View<float>)>
Error run_groups(Context& context, const Plan& plan, View<const float> input,
                 View<const float> weight, GroupEnds offs, View<float> out) {
  const index_t rows = input.size(0), columns = out.size(1);
  TAPER_TRY(portable::check_group_ends(context, offs, rows));
  GroupViews views(input, weight, out);
  index_t begin = 0;
  for (index_t g = 0; g < offs.size(0); ++g) {
    const auto end = static_cast<index_t>(portable::group_end(offs, g));
    if (end > begin) {
      views.choose(g, begin, end - begin);
      TAPER_TRY(run(context, plan, views.input(), views.weight(), {}, views.out()));
    }
    begin = end;
  }
  if (begin < rows && columns > 0)
    std::memset(out.data() + begin * columns, 0,
                static_cast<size_t>((rows - begin) * columns) * sizeof(float));
  return Error::ok;
}

}  // namespace taper::quantized
