"""Records detector.pt2: a small Faster R-CNN of torchvision with its filters of boxes. Its calls find the most boxes that it returns,
a few, and none.

    python detector.py        # needs torch 2.15, torchvision 0.29 and safetensors
"""
import collections
import pathlib
import sys

import torch
import torchvision
from safetensors.torch import save_file
from torch import nn
from torchvision.models import detection

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from exportable_detectors import exportable  # noqa: E402

SIZE, CHANNELS = 32, 8


class Pyramid(nn.Module):
    """Two feature maps, of a quarter and of an eighth of the image's size."""

    out_channels = CHANNELS

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS, 3, 4, 1)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)

    def forward(self, x):
        first = self.first(x).relu()
        return collections.OrderedDict([("0", first), ("1", self.second(first).relu())])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.detector = detection.FasterRCNN(
            Pyramid(), None, min_size=SIZE, max_size=SIZE,
            rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((6,), (12,)), ((0.5, 1.0, 2.0),) * 2),
            rpn_pre_nms_top_n_test=40, rpn_post_nms_top_n_test=12,
            box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0", "1"], 3, 2),
            box_head=detection.faster_rcnn.TwoMLPHead(CHANNELS * 9, 16),
            box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 3), box_score_thresh=0.5, box_detections_per_img=6,
        )  # fmt: skip

    def forward(self, image):
        if not torch.compiler.is_exporting():
            return self.detector([image])[0]
        with exportable(image.shape[-2:]):
            return self.detector([image])[0]


def main():
    torch.manual_seed(1)
    model = Detector().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.1 if "bbox" in name else 0.7)
        images = {}
        for _ in range(200):  # images with these numbers of boxes
            image = torch.rand(3, 20, 24) ** (10 * torch.rand(3, 1, 1))
            images.setdefault({0: "none", 6: "most"}.get(len(model(image)["boxes"]), "some"), image)
        calls = [images["some"], images["none"], images["most"]]
        program = torch.export.export(model, (calls[0],), strict=False)
        for node in program.graph.nodes:  # paths of the machine, and names of modules
            for key in ("stack_trace", "nn_module_stack", "torch_fn"):
                node.meta.pop(key, None)
        torch.export.save(program, "detector.pt2")
        recorded = {}
        for k, image in enumerate(calls):
            recorded[f"set{k}.input.0"] = image
            recorded |= {f"set{k}.output.{i}": t.contiguous() for i, t in enumerate(model(image).values())}
        save_file(recorded, "detector.io.safetensors")


if __name__ == "__main__":
    main()
