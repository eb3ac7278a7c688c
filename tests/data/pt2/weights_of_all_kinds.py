"""Records weights_of_all_kinds.pt2: an embedding that is also the last product, and convolutions of both directions.

    python weights_of_all_kinds.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class WeightsOfAllKinds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 16)
        self.narrow = torch.nn.Conv1d(16, 24, 3, padding=1)
        self.wide = torch.nn.ConvTranspose1d(24, 16, 3, padding=1)

    def forward(self, words):
        x = self.words(words).transpose(1, 2)
        x = self.wide(torch.relu(self.narrow(x))).transpose(1, 2)
        return torch.nn.functional.linear(x, self.words.weight)


if __name__ == "__main__":
    torch.manual_seed(0)
    model, call = WeightsOfAllKinds().eval(), (torch.tensor([[3, 17, 39, 0, 8]]),)
    with torch.no_grad():
        record("weights_of_all_kinds", torch.export.export(model, call), [call])
