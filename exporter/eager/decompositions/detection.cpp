// torchvision's operators for detectors, in parts.
#include "taper/exporter/eager/ops/detection.h"

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {

// The kernel says of each box, from the best to the worst, whether it remains.
TAPER_DECOMPOSITION(torchvision_nms) {
  const Tensor boxes = a.tensor<"dets">(), scores = a.tensor<"scores">();
  if (boxes.rank() != 2 || proves_different(boxes.size(1), Dim(4)) || scores.rank() != 1 ||
      proves_different(boxes.size(0), scores.size(0)))
    throw EagerError("nms: needs boxes (n, 4) and scores (n), got " + to_string(boxes.sizes()) +
                     " and " + to_string(scores.sizes()));
  if (boxes.dtype() != scores.dtype() || !is_floating(boxes.dtype()))
    throw EagerError(std::string("nms: needs boxes and scores of one floating dtype, got ") +
                     taper::name_of(boxes.dtype()) + " and " + taper::name_of(scores.dtype()));
  NoGrad guard;
  const Tensor order = argsort(scores, 0, /*descending=*/true);
  const Tensor keep = call<ops::taper_nms_keep>(boxes, order, a.real<"iou_threshold">());
  return {masked_select(order, keep)};
}

namespace {

/// Throws if arguments of deform_conv2d do not fit each other. The patches check the rest.
void check_deformable(const Arguments<ops::torchvision_deform_conv2d>& a) {
  const Tensor input = a.tensor<"input">(), weight = a.tensor<"weight">(),
               offset = a.tensor<"offset">(), bias = a.tensor<"bias">();
  const auto refuse = [](const std::string& text) { throw EagerError("deform_conv2d: " + text); };
  if (input.rank() != 4 || weight.rank() != 4 || offset.rank() != 4)
    refuse("input, weight and offset need 4 dimensions, got " + to_string(input.sizes()) + ", " +
           to_string(weight.sizes()) + " and " + to_string(offset.sizes()));
  const Dim groups = a.dim<"groups">(), offset_groups = a.dim<"offset_groups">();
  if (!proves_at_least(groups, Dim(1)) || !proves_at_least(offset_groups, Dim(1)))
    refuse("groups and offset_groups must be 1 or more, got " + groups.to_string() + " and " +
           offset_groups.to_string());
  if (proves_different(input.size(1), weight.size(1) * groups) ||
      proves_different(weight.size(0) % groups, Dim(0)))
    refuse("weight " + to_string(weight.sizes()) + " does not take the channels of input " +
           to_string(input.sizes()) + " in " + groups.to_string() + " groups");
  if (bias.rank() != 1 || proves_different(bias.size(0), weight.size(0)))
    refuse("bias " + to_string(bias.sizes()) + " must have " + weight.size(0).to_string() +
           " elements");
  if (proves_different(offset.size(1), offset_groups * 2 * weight.size(2) * weight.size(3)))
    refuse("offset " + to_string(offset.sizes()) + " needs two channels for each of the " +
           to_string({weight.size(2), weight.size(3)}) + " taps of " + offset_groups.to_string() +
           " groups");
}

}  // namespace

// A product of the weights and the patches that the offsets choose, one for each group.
TAPER_DECOMPOSITION_ROUNDED_ONCE(torchvision_deform_conv2d) {
  check_deformable(a);
  const Tensor input = a.tensor<"input">(), weight = a.tensor<"weight">(),
               offset = a.tensor<"offset">();
  const Dim groups = a.dim<"groups">(), out = weight.size(0);
  const auto mask = a.boolean<"use_mask">() ? std::optional(a.tensor<"mask">()) : std::nullopt;
  const Tensor columns = call<ops::taper_deformable_columns>(
      input, offset, mask, Dims{weight.size(2), weight.size(3)},
      Dims{a.dim<"stride_h">(), a.dim<"stride_w">()}, Dims{a.dim<"pad_h">(), a.dim<"pad_w">()},
      Dims{a.dim<"dilation_h">(), a.dim<"dilation_w">()});
  const Dim rows = weight.size(1) * weight.size(2) * weight.size(3);
  Tensor product;
  if (proves_equal(groups, Dim(1)))
    product = matmul(reshape(weight, {out, rows}), columns);
  else
    product = matmul(reshape(weight, {Dim(1), groups, out / groups, rows}),
                     reshape(columns, {input.size(0), groups, rows, columns.size(2)}));
  const Dims sizes = {input.size(0), out, offset.size(2), offset.size(3)};
  return {add(reshape(product, sizes), reshape(a.tensor<"bias">(), {out, Dim(1), Dim(1)}))};
}

}  // namespace taper::eager::decompositions
