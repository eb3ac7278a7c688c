"""Whole detectors for zoo.py: those of torchvision with their resize of the image, and others with their filters of boxes.

torch.export sees torchvision's code as exportable_detectors.py makes it. Recorded results are those of the code as it is.
"""

import functools
import re

import torch
import torchvision
from torch import nn

import zoo_models
import zoo_parts
from exportable_detectors import exportable

# Thresholds are near the scores that random weights give, so that there are detections.
WITH_PROPOSALS = dict(min_size=96, max_size=128, rpn_pre_nms_top_n_test=200, rpn_post_nms_top_n_test=50)
# So few candidates that torchvision filters the boxes of all classes at once: its other way sorts equal scores anyhow.
FEW_CANDIDATES = dict(topk_candidates=100)
WITH_ANCHORS = FEW_CANDIDATES | dict(min_size=96, max_size=128, score_thresh=0.009)
SINGLE_SHOT = FEW_CANDIDATES | dict(detections_per_img=30)
DETECTORS = {
    "fasterrcnn_resnet50_fpn": WITH_PROPOSALS,
    "fasterrcnn_resnet50_fpn_v2": WITH_PROPOSALS,
    "fasterrcnn_mobilenet_v3_large_fpn": WITH_PROPOSALS,
    "fasterrcnn_mobilenet_v3_large_320_fpn": WITH_PROPOSALS,
    "maskrcnn_resnet50_fpn": WITH_PROPOSALS,
    "maskrcnn_resnet50_fpn_v2": WITH_PROPOSALS,
    "keypointrcnn_resnet50_fpn": WITH_PROPOSALS | dict(num_classes=2),
    "retinanet_resnet50_fpn": WITH_ANCHORS | dict(detections_per_img=30),
    "fcos_resnet50_fpn": WITH_ANCHORS,
    "ssd300_vgg16": SINGLE_SHOT,
    "ssdlite320_mobilenet_v3_large": SINGLE_SHOT,
}
RESIZED = (96, 115)  # of images of 80 x 96, with min_size 96


class Detector(nn.Module):
    """A detector that takes one image and gives a dictionary of tensors."""

    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def forward(self, image):
        if not torch.compiler.is_exporting():
            return self.detector([image])[0]
        with exportable(RESIZED):
            return self.detector([image])[0]


def spread_scores(detector):
    """Random weights give all proposals nearly the same score, and rounding would decide their order."""
    for name, parameter in detector.named_parameters():
        if re.search(r"(cls_score|cls_logits)\.weight", name):
            parameter.data.mul_(8)
    return detector


def is_far_apart(results):
    """Whether rounding decides about no two neighbours among the scores."""
    (scores,) = (r for r in results if r.is_floating_point() and r.dim() == 1)
    return len(scores) > 1 and bool((scores[:-1] - scores[1:]).min() > 1e-5)


def with_different_scores(detector):
    """Random weights give the boxes of a single-shot detector nearly the same score: that of all images, or one.

    So its norms learn from an image, where they see more than one element, and the logits of SSD300 become smaller.
    """
    norms = [m for m in detector.modules() if isinstance(m, nn.BatchNorm2d)]

    def prepare(norm, inputs):
        norm.momentum = None  # the statistics are those of this image
        norm.train(inputs[0].numel() > inputs[0].shape[1])

    detector.eval()
    hooks = [norm.register_forward_pre_hook(prepare) for norm in norms]
    with torch.no_grad():
        detector([torch.rand(3, 80, 96)])
    for hook in hooks:
        hook.remove()
    for norm in norms:
        norm.momentum = 0.03
    if not norms:
        for layer in detector.head.classification_head.module_list:
            layer.weight.data.mul_(0.3)
    return detector


class Cells(nn.Module):
    """In the way of YOLO: three boxes for each cell of a feature map. Those with a high score are filtered by nms."""

    CLASSES, ANCHORS, STRIDE = 4, ((8.0, 12.0), (16.0, 16.0), (30.0, 20.0)), 8

    def __init__(self):
        super().__init__()
        layer = lambda i, o: [nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.SiLU()]
        self.net = nn.Sequential(*layer(3, 16), *layer(16, 24), *layer(24, 32), nn.Conv2d(32, 3 * (5 + self.CLASSES), 1))
        self.net[-1].weight.data.mul_(8)  # spreads scores, as `spread_scores` does
        self.register_buffer("anchors", torch.tensor(self.ANCHORS)[:, None, None])

    def found(self, image):
        raw = self.net(image[None])[0]
        height, width = raw.shape[1:]
        raw = raw.reshape(3, 5 + self.CLASSES, height, width).permute(0, 2, 3, 1)
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centers = (raw[..., :2].sigmoid() * 2 - 0.5 + torch.stack([x, y], 2)) * self.STRIDE
        extents = (raw[..., 2:4].sigmoid() * 2) ** 2 * self.anchors
        boxes = torchvision.ops.box_convert(torch.cat([centers, extents], 3).reshape(-1, 4), "cxcywh", "xyxy")
        scores, labels = (raw[..., 4:5].sigmoid() * raw[..., 5:].sigmoid()).reshape(-1, self.CLASSES).max(1)
        good = scores > 0.3
        boxes, scores, labels = boxes[good], scores[good], labels[good]
        keep = torchvision.ops.batched_nms(boxes, scores, labels, 0.5)[:20]
        return boxes[keep], scores[keep], labels[keep]

    def forward(self, image):
        if not torch.compiler.is_exporting():
            return self.found(image)
        with exportable(image.shape[-2:]):
            return self.found(image)


class PostProcessed(nn.Module):
    """A model of transformers, and the boxes of each image whose score is high enough."""

    def __init__(self, model, processor, threshold, size):
        super().__init__()
        self.model, self.processor, self.threshold, self.size = model, processor, threshold, size

    def forward(self, pixel_values):
        outputs = self.model(pixel_values=pixel_values)
        sizes = [(self.size, self.size)] * pixel_values.shape[0]
        return zoo_parts.tensors_of(self.processor.post_process_object_detection(outputs, self.threshold, sizes))


def post_processed(name, threshold):
    from transformers import RTDetrImageProcessor

    example = next(m for m in zoo_models.transformers_models() if m.name == name).make()
    model = PostProcessed(example.module.model, RTDetrImageProcessor(), threshold, example.inputs[0].shape[-1])
    return zoo_parts.Example(model, example.inputs)


def whole_detectors():
    from torchvision import models

    def make(name, options):
        options = dict(weights=None, weights_backbone=None, num_classes=5) | options
        prepared = with_different_scores if name.startswith("ssd") else spread_scores
        is_clear = is_far_apart if name.startswith(("ssd", "retinanet")) else lambda results: True
        return lambda: zoo_parts.Example(
            Detector(prepared(models.get_model(name, **options))), [torch.rand(3, 80, 96)], is_clear=is_clear
        )

    for name, options in DETECTORS.items():
        yield zoo_parts.Model(f"{name} whole", "torchvision, with the filter of boxes", "detector", make(name, options))
    yield zoo_parts.Model("YOLO-like whole", "in zoo_detectors.py", "detector", lambda: zoo_parts.Example(Cells(), [torch.rand(3, 64, 64)]))
    for name, threshold in (("RTDetrV2ForObjectDetection", 0.51), ("DFineForObjectDetection", 0.145)):
        make_one = functools.partial(post_processed, name, threshold)
        yield zoo_parts.Model(f"{name} whole", "transformers, with the filter of boxes", "detector", make_one)
