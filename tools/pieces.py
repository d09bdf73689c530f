"""Writes ops/kernels/pieces.h: fits the tables with mpmath and numpy, and says on stderr how well.

    python3 tools/pieces.py > ops/kernels/pieces.h && make format
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 40
PIECES, DEGREE = 32, 6

HEAD = """\
/*
 * Functions of a = |x| for float32, in pieces: polynomials of degree 6 around 32 centres, equally
 * far apart, that a vector looks up in registers. Each costs half the operations of a power of e.
 * tools/pieces.py writes this file.
 *
 * A table's first line is the centres, the next ones the coefficients from the constant on. A
 * centre is a number near the middle of its piece for which the function is all but exactly a
 * float: so the constant has no error, and the others count little. The coefficients are
 * least-squares fits to the relative error (to the error around a slope's zero), each rounded
 * before the next is fitted; the error is below 1/3 of an ULP. tanh and erf are a itself and the
 * polynomial in their first piece, whose constant no one reads.
 *
 * NAME_IN_1 says how many pieces there are in 1, NAME_END where the last one ends, a bit less.
 */
#ifndef EDDY_OPS_KERNELS_PIECES_H
#define EDDY_OPS_KERNELS_PIECES_H

enum { PIECES = 32, PIECES_DEGREE = 6 };

/* Half a row of a table is one vector, and must not lie across two lines of the cache. */
#define PIECES_ALIGNED __attribute__((aligned(64)))
"""


def single(y):
    return float(np.float32(float(y)))


def written(y):
    """A float as C has it, without the zeros that mean nothing."""
    mantissa, exponent = float(y).hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{'0x0' if y == 0 else mantissa}p{int(exponent)}f"


def rounding(y):
    """What rounding y to a float loses, in ULP."""
    return abs(float(y - mp.mpf(single(y)))) / float(np.spacing(np.float32(abs(float(y)))))


def centre(f, at, reach):
    """What is lost there, and the float of few digits near `at` for which f is all but a float."""
    best = (np.inf, at)
    for digits in range(10, 17):
        step = 2.0 ** (np.floor(np.log2(max(at, reach))) - digits)
        middle = round(at / step)
        for k in range(int(reach / step) + 1):
            for c in ((middle + k) * step, (middle - k) * step):
                if c >= 0:
                    best = min(best, (rounding(f(mp.mpf(c))), c))
                if best[0] < 1 / 100:
                    return best
    return best


def fit(x, y, weight):
    """The coefficients from the first power on, each rounded before the next is fitted."""
    coefficients, scale = [], np.max(np.abs(x))
    for k in range(1, DEGREE + 1):
        powers = np.stack([(x / scale) ** j for j in range(k, DEGREE + 1)], 1) * weight[:, None]
        c = single(np.linalg.lstsq(powers, y * weight, rcond=None)[0][0] / scale**k)
        coefficients.append(c)
        y = y - c * x**k
    return coefficients, np.max(np.abs(y * weight))


def table(name, f, end, odd=False, least=lambda a: 0):
    """odd: f is a itself near 0. Values smaller than least(a) have an absolute error."""
    width = end / (PIECES - 0.5)
    columns, worst, rounded = [], 0, 0
    for p in range(PIECES):
        itself = odd and p == 0
        loss, at = (0, 0.0) if itself else centre(f, p * width, width / (5 if p else 8))
        constant = single(f(mp.mpf(at)))
        low, high = max(0, (p - 0.5) * width), (p + 0.5) * width
        x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(160) + 0.5) / 160)
        exact = [f(mp.mpf(float(v))) for v in x]
        rest = [float(y - mp.mpf(float(v) if itself else constant)) for v, y in zip(x, exact)]
        weight = 1 / np.array([max(abs(float(y)), least(v)) for v, y in zip(x, exact)])
        c, error = fit(x - at, np.array(rest), weight)
        columns.append([at, constant] + c)
        worst, rounded = max(worst, error), max(rounded, loss)
    print(f"{name}: 2^{np.log2(worst):.1f}, constants {rounded:.3f} ULP", file=sys.stderr)
    print(f"\n#define {name.upper()}_IN_1 {written(single(1 / width))}")
    print(f"#define {name.upper()}_END {written(single(end * (1 - 1e-6)))}")
    print(f"static const float {name}[PIECES_DEGREE + 2][PIECES] PIECES_ALIGNED = {{")
    for row in zip(*columns):
        line = "    {"
        for v in row:
            word = written(v) + ", "
            if len(line) + len(word) > 100:
                print(line.rstrip())
                line = "     "
            line += word
        print(line[:-2] + "},")
    print("};")


def sigmoid(a):
    return 1 / (1 + mp.exp(a))


def softplus(a):
    return mp.log1p(mp.exp(-a))


def gelu(a):
    return mp.erfc(a / mp.sqrt(2)) / 2


def gelu_slope(a):
    return gelu(a) - a * mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi)


def silu_slope(a):
    e = mp.exp(-a)
    return e * (1 + e - a) / (1 + e) ** 2


if __name__ == "__main__":
    print(HEAD, end="")
    table("tanh_pieces", mp.tanh, 9.2, odd=True)
    table("erf_pieces", mp.erf, 4, odd=True)
    print("\n/* 1 / (1 + e^a), ln(1 + e^-a) */", end="")
    table("sigmoid_pieces", sigmoid, 20)
    table("softplus_pieces", softplus, 20)
    print("\n/* Q(a) = erfc(a / sqrt 2) / 2 and gelu's slope, Q(a) - a e^(-a^2/2) / sqrt(2 pi) */", end="")
    table("gelu_pieces", gelu, 5.41)
    table("gelu_slope_pieces", gelu_slope, 5.41, least=lambda a: 0.01)
    print("\n/* silu's slope at -a, e (1 + e - a) / (1 + e)^2 for e = e^-a */", end="")
    table("silu_slope_pieces", silu_slope, 20, least=lambda a: 0.01 if a < 2 else 0)
    print("\n#endif")
