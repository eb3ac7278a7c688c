"""Whole detectors of torchvision for zoo.py: with their resize of the image and their filters of boxes.

torch.export sees them as exportable_detectors.py makes them. Recorded results are those of torchvision's own code.
"""

import re

import torch
from torch import nn

import zoo_models
from exportable_detectors import exportable

# Thresholds are near the scores that random weights give, so that there are detections.
WITH_ANCHORS = dict(min_size=96, max_size=128, score_thresh=0.009)
WITH_PROPOSALS = dict(min_size=96, max_size=128)
# So few candidates that torchvision filters the boxes of all classes at once: its other way sorts equal scores anyhow.
SINGLE_SHOT = dict(topk_candidates=100)
DETECTORS = {
    "fasterrcnn_resnet50_fpn": WITH_PROPOSALS,
    "fasterrcnn_resnet50_fpn_v2": WITH_PROPOSALS,
    "fasterrcnn_mobilenet_v3_large_fpn": WITH_PROPOSALS,
    "fasterrcnn_mobilenet_v3_large_320_fpn": WITH_PROPOSALS,
    "maskrcnn_resnet50_fpn": WITH_PROPOSALS,
    "maskrcnn_resnet50_fpn_v2": WITH_PROPOSALS,
    "keypointrcnn_resnet50_fpn": WITH_PROPOSALS | dict(num_classes=2),
    "retinanet_resnet50_fpn": WITH_ANCHORS,
    "retinanet_resnet50_fpn_v2": WITH_ANCHORS,
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
    """Random weights give all boxes nearly the same score, and rounding would decide their order."""
    for name, parameter in detector.named_parameters():
        if re.search(r"(cls_score|cls_logits|classification_head\S*)\.weight", name):
            parameter.data.mul_(8)
    return detector


def whole_detectors():
    from torchvision import models

    def make(name, options):
        options = dict(weights=None, weights_backbone=None, num_classes=5) | options
        return lambda: zoo_models.Example(Detector(spread_scores(models.get_model(name, **options))), [torch.rand(3, 80, 96)])

    for name, options in DETECTORS.items():
        yield zoo_models.Model(f"{name} whole", "torchvision, with the filter of boxes", "detector", make(name, options))
