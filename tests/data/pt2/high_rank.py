"""Records high_rank.pt2, high_rank_sizes.pt2 and high_rank_masks.pt2: values of nine to twelve dimensions between two reshapes.

    python high_rank.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class HighRank(torch.nn.Module):
    """x (2, 3, 4, 4, 8)."""

    def forward(self, x):
        # patches of a video as Qwen2-VL orders them: ten dimensions
        video = x.reshape(1, 2, 1, 3, 2, 2, 1, 2, 2, 8)[..., :4]
        patches = video.permute(0, 1, 4, 7, 5, 8, 3, 2, 6, 9).reshape(2 * 2 * 2 * 2 * 2, -1)
        # all dimensions turned around, twelve of them
        many = x.reshape(2, 3, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1)
        turned = many.permute(11, 8, 10, 7, 6, 9, 5, 4, 3, 2, 1, 0).reshape(64, -1)
        nine = x.view(2, 3, 2, 2, 2, 2, 2, 2, 2)
        # between the dimensions: select, slice, flip, sums, softmax, pieces
        picked = nine.select(3, 1).flatten(2)
        cut = nine[:, 1:, :, :, :, 1:].transpose(0, 8).contiguous().view(-1, 4)
        flipped = nine.flip(1, 6, 8).reshape(6, -1)
        summed = nine.sum((2, 5, 7)).mean(1)
        weights = nine.softmax(1).reshape(6, -1)
        first, second = nine.unbind(4)
        pieces = torch.cat([nine, nine * 2], 5).reshape(3, -1) + torch.stack([first, second], 4).sum()
        # element by element, with operands that repeat
        rows = torch.arange(3.0).reshape(3, 1, 1, 1, 1, 1, 1, 1)
        mixed = torch.where(nine > 0, nine * rows + 1, nine.movedim(2, 7).sigmoid()).reshape(6, -1)
        wide = x[:, :, 0, 0].reshape(2, 3, 1, 1, 1, 2, 2, 2).unsqueeze(3).expand(2, 3, 2, 1, 2, 1, 2, 2, 2).reshape(2, -1)
        return patches, turned, picked, cut, flipped, summed, weights, pieces, mixed, wide, nine.squeeze().unfold(3, 2, 1).reshape(-1)


class HighRankSizes(torch.nn.Module):
    """Windows of a volume (batch, 4, 6, 4, 8), whose batch is not known, and heads behind them: nine dimensions."""

    def forward(self, x):
        batch = x.shape[0]
        windows = x.view(batch, 2, 2, 3, 2, 2, 2, 2, 4).permute(0, 1, 3, 5, 7, 2, 4, 6, 8)
        tokens = windows.reshape(batch * 24, 8, 4)
        scaled = (windows * windows.amax(8, keepdim=True)).contiguous().view(-1, 32)
        back = (tokens * 2).view(batch, 2, 3, 2, 2, 2, 2, 2, 4).permute(0, 1, 5, 2, 6, 3, 7, 4, 8).reshape(x.shape)
        return tokens, scaled, back


class HighRankMasks(torch.nn.Module):
    """Masks, tensors that are filled, and statistics. x (batch, 3, 4, 4, 8), whose batch is not known."""

    def forward(self, x):
        batch = x.shape[0]
        nine = x.view(batch, 3, 2, 2, 2, 2, 2, 2, 2)
        inside = (nine > 0) & (nine < 1) | torch.logical_and(nine < -1, ~nine.isnan())
        either = inside ^ (nine > 2)
        filled = torch.zeros(batch, 3, 2, 2, 2, 2, 2, 2, 2) + nine.new_full((batch, 3, 2, 1, 2, 1, 2, 2, 2), 0.5)
        masked = torch.where(inside, torch.ones_like(nine), torch.full((batch, 1, 2, 2, 2, 2, 2, 2, 2), -1.0))
        spread = nine.var(3) + nine.std((3,), correction=0) + nine.prod(3)
        length = torch.linalg.vector_norm(nine, dim=(2, 4)).flatten(1)
        whole = nine.to(torch.int32).double().reshape(batch, -1)
        ranked = nine.sort(1, descending=True)[0].flatten(1) + nine.topk(3, dim=1)[0].flatten(1)
        return either.reshape(batch, -1), (filled * masked).clip(-0.4, 2).reshape(batch, -1), whole, spread, length, ranked


if __name__ == "__main__":
    torch.manual_seed(0)
    calls = [(torch.randn(2, 3, 4, 4, 8),) for _ in range(2)]
    program = torch.export.export(HighRank(), calls[0])
    record("high_rank", program, calls, HighRank())
    record("high_rank_decomposed", program.run_decompositions(), calls[:1], HighRank())
    batch = ({0: torch.export.Dim("batch", min=1, max=8)},)
    calls = [(torch.randn(n, 4, 6, 4, 8),) for n in (2, 1, 3)]
    record("high_rank_sizes", torch.export.export(HighRankSizes(), calls[0], dynamic_shapes=batch), calls, HighRankSizes())
    calls = [(torch.randn(n, 3, 4, 4, 8),) for n in (2, 1, 3)]
    record("high_rank_masks", torch.export.export(HighRankMasks(), calls[0], dynamic_shapes=batch), calls, HighRankMasks())
