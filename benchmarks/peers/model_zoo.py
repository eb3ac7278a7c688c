"""The models of models.py: random weights of a fixed seed, batch 1, f32, in eval mode.

`build(name)` gives a model and its example inputs. Models of torchvision are built without their trained weights. Batch norms get the
statistics of random images, so that values stay near 1 in every layer.
"""
import torch
from torch import nn
from torch.nn import functional as F


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (f(x).view(b, t, self.heads, w // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(b, t, w)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """BERT (Devlin et al. 2018) for one whole sentence: no mask, and every token of type 0."""

    def __init__(self, layers, width, heads, vocabulary=30522, positions=512):
        super().__init__()
        self.words, self.positions, self.types = (nn.Embedding(n, width) for n in (vocabulary, positions, 2))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.positions.weight[:ids.shape[1]] + self.types.weight[0])
        for layer in self.layers:
            x = layer(x)
        return x


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


def conv_norm(inputs, outputs, kernel, stride=1, padding=0, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups), nn.BatchNorm2d(outputs), nn.ReLU())


class DsCnn(nn.Module):
    """Keyword spotting of MLPerf Tiny: 49 frames of 10 cepstral coefficients, 12 words."""

    def __init__(self):
        super().__init__()
        self.first = conv_norm(1, 64, (10, 4), stride=2)
        self.rest = nn.Sequential(*[
            layer for _ in range(4) for layer in (conv_norm(64, 64, 3, padding=1, groups=64), conv_norm(64, 64, 1))])
        self.last = nn.Linear(64, 12)

    def forward(self, x):
        x = self.rest(self.first(F.pad(x, (1, 1, 4, 5))))
        return F.softmax(self.last(F.avg_pool2d(x, (25, 5)).flatten(1)), 1)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.stride, self.pad = stride, (outputs - inputs) // 2

    def forward(self, x):
        shortcut = x
        if self.pad:
            shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet20(nn.Module):
    """He et al. 2015, for CIFAR-10, with shortcuts without weights."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        widths = [16] * 4 + [32] * 3 + [64] * 3
        self.blocks = nn.Sequential(*[ResidualBlock(a, b, 1 + (a != b)) for a, b in zip(widths, widths[1:])])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        return self.linear(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class Products(nn.Sequential):
    """134 MB of weights, which hardly any cache holds. Their sums stay near 1."""

    def __init__(self):
        super().__init__(*[nn.Linear(2048, 2048, bias=False) for _ in range(8)])
        for layer in self:
            nn.init.normal_(layer.weight, std=2048 ** -0.5)


class Attention(nn.Module):
    """Eight heads of 64 features see the same number of queries, keys and values."""

    def forward(self, x):
        return F.scaled_dot_product_attention(*x.unbind())


def vision(name):
    import torchvision
    return getattr(torchvision.models, name)(weights=None)


def image(*sizes):
    return lambda batch: torch.randn(batch, *sizes)


def tokens(batch):
    return torch.randint(30522, (batch, 128))


PHOTO = image(3, 224, 224)
MODELS = {name: (lambda name=name: vision(name), PHOTO) for name in (
    "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "efficientnet_b0", "resnet18", "resnet50", "convnext_tiny", "swin_t",
    "vit_b_16")}
MODELS |= {
    "bert_base": (lambda: Encoder(12, 768, 12), tokens),
    "minilm": (lambda: Encoder(6, 384, 12), tokens),
    "lenet": (LeNet, image(1, 28, 28)),
    "ds_cnn": (DsCnn, image(1, 49, 10)),
    "resnet20": (ResNet20, image(3, 32, 32)),
}
MODELS |= {f"products_{rows}": (Products, lambda batch, rows=rows: torch.randn(rows, 2048)) for rows in (1, 2, 4, 8, 16, 64)}
MODELS |= {f"attention_{positions}": (Attention, lambda batch, positions=positions: torch.randn(3, 1, 8, positions, 64))
           for positions in (128, 512, 2048, 8192)}


def set_statistics(model, batch):
    """Gives every batch norm the mean and the variance of its input for this batch."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.train()
        m.momentum = 1.0
    if norms:
        model(batch)
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    model.eval()


def fill_zero_weights(model):
    """vit_b_16 begins with a head of zeros, whose result would be zero whatever the layers before it compute."""
    for m in model.modules():
        if isinstance(m, nn.Linear) and not m.weight.any():
            nn.init.normal_(m.weight, std=0.02)


def build(name):
    torch.manual_seed(0)
    make, example = MODELS[name]
    model = make().eval()
    with torch.no_grad():
        fill_zero_weights(model)
        set_statistics(model, example(8))
    return model, (example(1),)
