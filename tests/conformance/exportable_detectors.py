"""torchvision's detectors in a form that torch.export accepts, with the same results.

torchvision's filters of boxes look at the number of boxes in Python, which only a run knows. While `exportable` is active, six
functions are replaced by tensor code without such decisions:

    class Detector(torch.nn.Module):
        def forward(self, image):
            with exportable(image.shape[-2:]):
                return self.detector([image])[0]
"""

import contextlib
import unittest.mock

import torch
import torch.nn.functional as F
import torchvision
from torchvision.models.detection import _utils as det_utils
from torchvision.models.detection import roi_heads, transform
from torchvision.ops import boxes as box_ops
from torchvision.ops import poolers


def batched_nms(boxes, scores, idxs, iou_threshold):
    """Boxes of different classes are moved apart, so that they do not overlap; right without boxes, too.

    torchvision does so for at most 1000 boxes, and filters more of them class by class.
    """
    highest = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max()
    offsets = idxs.to(boxes) * (highest + 1)
    return torch.ops.torchvision.nms(boxes + offsets[:, None], scores, iou_threshold)


def decode(self, rel_codes, boxes):
    """Boxes (n, classes, 4) from codes (n, classes * 4); with n = 0, too."""
    return self.decode_single(rel_codes, torch.cat(boxes)).unflatten(1, (-1, 4))


def multiscale_roi_align(x_filtered, boxes, output_size, sampling_ratio, scales, mapper):
    """Each box is pooled from one level. `len` of the boxes becomes their shape."""
    rois = poolers._convert_to_roi_format(boxes)
    if len(x_filtered) == 1:
        return torchvision.ops.roi_align(x_filtered[0], rois, output_size, scales[0], sampling_ratio)
    levels = mapper(boxes)
    result = x_filtered[0].new_zeros((rois.shape[0], x_filtered[0].shape[1], *output_size))
    for level, (feature, scale) in enumerate(zip(x_filtered, scales)):
        at = torch.where(levels == level)[0]
        pooled = torchvision.ops.roi_align(feature, rois[at], output_size, scale, sampling_ratio)
        result = result.index_put((at,), pooled)
    return result


def paste_masks_in_image(masks, boxes, img_shape, padding=1):
    """All masks at once: every pixel of the image samples the mask, as a resize to the size of the box does."""
    masks, scale = roi_heads.expand_masks(masks, padding)
    x0, y0, x1, y1 = roi_heads.expand_boxes(boxes, scale).to(torch.int64).unbind(1)

    def along(first, last, size):
        """Where the pixels lie in the mask, from -1 to 1, and whether they belong to the box."""
        pixels = torch.arange(size, device=boxes.device)[None] - first[:, None]
        extent = (last - first + 1).clamp(min=1)[:, None]
        return (2 * pixels + 1) / extent - 1, (pixels >= 0) & (pixels < extent)

    y, in_rows = along(y0, y1, img_shape[0])
    x, in_columns = along(x0, x1, img_shape[1])
    grid = torch.stack([x[:, None].expand(-1, y.shape[1], -1), y[:, :, None].expand(-1, -1, x.shape[1])], 3)
    pasted = F.grid_sample(masks, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return pasted * (in_rows[:, :, None] & in_columns[:, None])[:, None]


def cubic_weights(size, most):
    """The matrices (n, most, 56) of a bicubic resize from 56 elements to size[i]; rows behind size[i] have no meaning."""
    source = 56
    x = (torch.arange(most)[None] + 0.5) * (source / size[:, None]) - 0.5
    first = x.floor()
    t = x - first
    inner = lambda d: ((1.25 * d - 2.25) * d) * d + 1
    outer = lambda d: ((-0.75 * d + 3.75) * d - 6) * d + 3
    matrix = 0
    for k, weight in enumerate((outer(t + 1), inner(t), inner(1 - t), outer(2 - t))):
        at = (first + (k - 1)).clamp(0, source - 1)
        matrix = matrix + weight[:, :, None] * (at[:, :, None] == torch.arange(source))
    return matrix


def heatmaps_to_keypoints(size):
    """For images of this size: each heatmap is resized to its box, at most to the image, and its largest element is a point."""

    def convert(maps, rois):
        widths = (rois[:, 2] - rois[:, 0]).clamp(min=1)
        heights = (rois[:, 3] - rois[:, 1]).clamp(min=1)
        columns, rows = widths.ceil(), heights.ceil()
        resized = cubic_weights(rows, size[0])[:, None] @ maps @ cubic_weights(columns, size[1])[:, None].mT
        outside = (torch.arange(size[0])[None] >= rows[:, None])[:, :, None] | (torch.arange(size[1])[None] >= columns[:, None])[:, None]
        scores, at = resized.masked_fill(outside[:, None], -torch.inf).flatten(2).max(2)
        x = (at % size[1] + 0.5) * (widths / columns)[:, None] + rois[:, :1]
        y = (at // size[1] + 0.5) * (heights / rows)[:, None] + rois[:, 1:2]
        return torch.stack([x, y, torch.ones_like(x)], 2), scores

    return convert


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """The operator that torch.export decomposes batch norms into; the composite one asks whether there are boxes."""
    assert not training
    return torch.ops.aten._native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps)[0]


def count_of_boxes(dets, scores, iou_threshold):
    """What torch.export knows of nms: any number of boxes may remain. torchvision says two or more."""
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(min=0), dtype=torch.int64)


torch.library.register_fake("torchvision::nms", count_of_boxes, allow_override=True)


@contextlib.contextmanager
def exportable(size):
    """`size`: height and width of the image that the detector sees after its own resize; only keypoints need it."""
    with contextlib.ExitStack() as stack:
        for module, name, function in (
            (box_ops, "batched_nms", batched_nms),
            (torchvision.ops, "batched_nms", batched_nms),
            (F, "batch_norm", batch_norm),
            (det_utils.BoxCoder, "decode", decode),
            (poolers, "_multiscale_roi_align", multiscale_roi_align),
            (transform, "paste_masks_in_image", paste_masks_in_image),
            (roi_heads, "heatmaps_to_keypoints", heatmaps_to_keypoints(size)),
        ):
            stack.enter_context(unittest.mock.patch.object(module, name, function))
        yield
