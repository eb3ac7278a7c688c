"""Records joint exports, which hold a loss and the gradients of parameters and inputs, and what autograd gives for them.

    python joint_training.py        # needs torch 2.15 and safetensors
"""
import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim, export, save
from torch.export.experimental import _export_forward_backward
from torch.export.graph_signature import OutputKind
from torch.nn import functional as F


class LeNet(nn.Module):
    """Convolutions, a batch norm that writes its statistics, both kinds of pools, and the loss of a classifier."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm, self.conv2 = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3)
        self.fc1, self.fc2 = nn.Linear(24, 8), nn.Linear(8, 5)

    def forward(self, images, labels):
        x = F.max_pool2d(torch.relu(self.norm(self.conv1(images))), 2)
        x = F.avg_pool2d(torch.relu(self.conv2(x)), 2)
        return F.cross_entropy(self.fc2(torch.relu(self.fc1(x.flatten(1)))), labels)


class Perceptron(nn.Module):
    """A second result beside the loss, which must have no gradient."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))

    def forward(self, x, target):
        y = self.net(x)
        return F.mse_loss(y, target), y.detach()


class Attention(nn.Module):  # PyTorch gives wrong gradients for it
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x).sum()


def joint(model, call, shapes=None):
    program = _export_forward_backward(export(model, call, dynamic_shapes=shapes))
    for output in program.graph_signature.output_specs:
        # PyTorch 2.15 names the input as before the joint export, and then cannot save the file
        if output.kind == OutputKind.GRADIENT_TO_USER_INPUT:
            output.target = program.graph_signature.user_inputs[0]
    for node in program.graph.nodes:
        for key in ("stack_trace", "from_node"):  # paths of the machine
            node.meta.pop(key, None)
    return program


def record(name, model, calls):
    batch = {0: Dim("batch", min=2, max=8)}
    save(joint(model, calls[0], (batch, batch)), f"{name}.pt2")
    start = {k: v.clone() for k, v in model.state_dict().items()}
    recorded = {}
    for k, call in enumerate(calls):
        model.load_state_dict(start)
        results = model(*call)
        results = results if isinstance(results, tuple) else (results,)
        inputs = [t for t in call if t.requires_grad]
        gradients = torch.autograd.grad(results[0], [*model.parameters(), *inputs])
        recorded |= {f"set{k}.input.{i}": t.detach() for i, t in enumerate(call)}
        recorded |= {f"set{k}.output.{i}": t.detach().contiguous().clone() for i, t in enumerate((*results, *gradients))}
    save_file(recorded, f"{name}.io.safetensors")


if __name__ == "__main__":
    torch.manual_seed(0)
    record("joint_lenet", LeNet(), [(torch.randn(n, 1, 14, 14), torch.randint(0, 5, (n,))) for n in (3, 8, 2)])
    record("joint_perceptron", Perceptron(), [(torch.randn(n, 6), torch.randn(n, 3)) for n in (5, 8)])
    record("joint_input", Perceptron(), [(torch.randn(n, 6).requires_grad_(), torch.randn(n, 3)) for n in (5, 8)])
    x = torch.randn(1, 2, 3, 4).requires_grad_()
    scaled = nn.Sequential(nn.Linear(4, 4), Attention())
    save(joint(scaled, (x.detach(),)), "../pt2_refused/joint_attention.pt2")
