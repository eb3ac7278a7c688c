"""Records fourier.pt2: what models use Fourier transforms for. A mixer of positions and channels, logarithms of the power in bands of a
spectrogram, a filter of frequencies, and a signal from a spectrogram.

    python fourier.py        # needs torch 2.15 and safetensors
"""
import torch

from recording import record


class Fourier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.bands = torch.nn.Parameter(torch.rand(3, 9))
        self.filter = torch.nn.Parameter(torch.randn(4, 2))

    def spectrogram(self, x):
        return torch.stft(x, 16, 4, window=self.window, return_complex=True)

    def forward(self, tokens, signal):
        mixed = torch.fft.fft(torch.fft.fft(tokens, dim=-1), dim=-2).real + torch.fft.fftn(tokens, dim=(1, 2)).real
        filtered = torch.fft.irfft2(torch.fft.rfft2(tokens, dim=(1, 2)) * torch.view_as_complex(self.filter), s=tokens.shape[1:3],
                                    dim=(1, 2))
        spectra = self.spectrogram(signal)
        power = torch.log(self.bands @ spectra.abs() ** 2 + 1e-3)
        quiet = torch.istft(spectra * torch.sigmoid(spectra.abs()), 16, 4, window=self.window)
        return mixed, filtered, power, quiet


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Fourier().eval()
    calls = [(torch.randn(2, length, 6), torch.randn(2, 48)) for length in (5, 8)]
    # the signal has a fixed length, because torch.export fixes those of torch.istft
    shapes = ({1: torch.export.Dim("length", min=2, max=9)}, None)
    record("fourier", torch.export.export(model, calls[0], dynamic_shapes=shapes), calls)
