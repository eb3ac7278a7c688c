#!/usr/bin/env python3
"""Writes fft_cases.jsonl: PyTorch's results and gradients of Fourier transforms, in the notation of seeds.h.

    fft_cases.py > fft_cases.jsonl    (wants torch)
"""
import sys

sys.dont_write_bytecode = True
import torch

import complex_cases
from complex_cases import x, z


def case(*call, **named):
    complex_cases.case(*call, rtol=1e-5, **named)


def of_one_dimension():
    for name in ("fft", "ifft", "hfft", "irfft"):
        for k, n in enumerate((1, 2, 3, 5, 8, 17, 37)):
            if n > 1 or name in ("fft", "ifft"):
                case(f"fft_{name}/length{n}", f"fft_{name}", z(n) if k % 2 else z(2, n))
        case(f"fft_{name}/longer", f"fft_{name}", z(2, 3), 5, 1)
        case(f"fft_{name}/shorter", f"fft_{name}", z(2, 6), 3)
        case(f"fft_{name}/first", f"fft_{name}", z(4, 3), None, 0, "ortho")
        case(f"fft_{name}/forward", f"fft_{name}", z(4, 3), 4, -2, "forward")
        case(f"fft_{name}/real", f"fft_{name}", x(3, 4))
        case(f"fft_{name}/integers", f"fft_{name}", torch.tensor([3, -1, 2, 5]))
    for name in ("rfft", "ihfft"):
        for n in (1, 2, 3, 5, 8, 17, 37, 74):
            case(f"fft_{name}/length{n}", f"fft_{name}", x(n) if n % 2 else x(2, n))
        case(f"fft_{name}/longer", f"fft_{name}", x(2, 3), 5, 1)
        case(f"fft_{name}/shorter", f"fft_{name}", x(2, 6), 3)
        case(f"fft_{name}/first", f"fft_{name}", x(4, 3), None, 0, "ortho")
        case(f"fft_{name}/forward", f"fft_{name}", x(4, 3), 4, -2, "forward")
        case(f"fft_{name}/bool", f"fft_{name}", torch.tensor([True, False, True]))


def of_several_dimensions():
    for name in ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft"):
        number = x if name in ("rfft", "ihfft") else z
        for rank in ("2", "n"):
            op = f"fft_{name}{rank}"
            case(f"{op}/plain", op, number(3, 4))
            case(f"{op}/batch", op, number(2, 3, 5))
            case(f"{op}/sizes", op, number(3, 4), [4, 3])
            case(f"{op}/sizes_of_some", op, number(2, 3, 4), [2, -1], [0, 2], "ortho")
            case(f"{op}/dims", op, number(3, 2, 4), None, [2, 0], "forward")
            if number is z:
                case(f"{op}/real", op, x(3, 4), None, [0, 1])
        case(f"fft_{name}n/one", f"fft_{name}n", number(2, 5), [4])
        case(f"fft_{name}n/three", f"fft_{name}n", number(2, 3, 4))
    case("fft_fftn/none", "fft_fftn", z(2, 3), None, [])
    for name in ("fft_fftshift", "fft_ifftshift"):
        case(f"{name}/plain", name, x(5))
        case(f"{name}/complex", name, z(4, 3))
        case(f"{name}/dims", name, x(3, 4), [1])


def of_kernels():
    for mode in (0, 1, 2):
        for forward in (True, False):
            case(f"_fft_c2c/{mode}{forward}", "_fft_c2c", z(3, 6), [1], mode, forward)
        case(f"_fft_c2c/both{mode}", "_fft_c2c", z(3, 2, 5), [2, 0], mode, True)
        for onesided in (True, False):
            case(f"_fft_r2c/{mode}{onesided}", "_fft_r2c", x(3, 6), [1], mode, onesided)
            case(f"_fft_r2c/both{mode}{onesided}", "_fft_r2c", x(4, 5), [0, 1], mode, onesided)
        for n in (6, 7):
            case(f"_fft_c2r/{mode}{n}", "_fft_c2r", z(3, 4), [1], mode, n)
            case(f"_fft_c2r/both{mode}{n}", "_fft_c2r", z(4, 3), [1, 0], mode, n)


def of_frames():
    window = torch.hann_window(8)
    for signal, name in ((x(20), "one"), (x(2, 24), "batch")):
        case(f"stft/{name}", "stft", signal, 8, 3, None, window, False, True, True)
        case(f"stft/{name}_pairs", "stft", signal, 8, None, 6, window[:6].clone(), True, False, False)
        case(f"stft.center/{name}", "stft.center", signal, 8, 3, 8, window, return_complex=True)
        case(f"stft.center/{name}_padded", "stft.center", signal, 9, None, None, None, True, "constant", return_complex=True)
        case(f"stft.center/{name}_aligned", "stft.center", signal, 8, 2, 5, None, center=False, return_complex=True, align_to_window=True)
    case("stft/complex", "stft", z(16), 8, None, None, window)
    case("stft/complex_window", "stft", x(16), 8, None, None, torch.complex(window, window))
    spectra = torch.stft(x(2, 24), 8, 2, window=window, return_complex=True).detach()
    whole = torch.stft(x(24), 8, 2, window=window, return_complex=True, onesided=False).detach()
    case("istft/plain", "istft", spectra, 8, 2, 8, window)
    case("istft/normalized", "istft", spectra[0].clone(), 8, 2, 8, window, True, True)
    case("istft/short", "istft", spectra, 8, 2, None, window, length=15)
    case("istft/long", "istft", spectra, 8, 2, None, window, length=30)
    case("istft/ones", "istft", spectra, 8, 2, None, None, False)
    case("istft/whole", "istft", whole, 8, 2, None, window, onesided=False)
    case("istft/complex", "istft", whole, 8, 2, None, window, return_complex=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(5)
    of_one_dimension()
    of_several_dimensions()
    of_kernels()
    of_frames()
