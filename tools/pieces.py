"""Writes ops/kernels/pieces.h: fits the tables with mpmath and numpy, and says on stderr how well.

    python3 tools/pieces.py > ops/kernels/pieces.h && make format
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 40

HEAD = """\
/*
 * Functions of a = |x| for float32, in pieces: polynomials around centres, which a vector looks up,
 * 32 of degree 6 (AVX-512) or 8 of degree 7 to 11 (AVX2). tools/pieces.py writes this file.
 *
 * A table's first line is the centres, the next ones the coefficients from the constant on. A
 * centre is a number for which the function is all but exactly a float: so the constant has no
 * error, and the others count little. It is near the middle of its piece; where a function falls
 * much within one of 8 pieces, near its end, so that all terms have one sign. The coefficients are
 * least-squares fits to the relative error (to the error around a slope's zero), each rounded
 * before the next is fitted; the error is below 2/5 of an ULP. tanh and erf are a itself and the
 * polynomial in their first piece, whose constant is 0.
 *
 * NAME_IN_1 a + NAME_START, shifted right by NAME_SHIFT, has the number of the piece in its lowest
 * bits: a START of 1.5 2^23 rounds to integers, one of 2 gives the exponent and a bit of the
 * mantissa. NAME_END is where the last piece ends, a bit less. sigmoid has no 8 pieces: they would
 * lose an ULP and a half.
 */
#ifndef EDDY_OPS_KERNELS_PIECES_H
#define EDDY_OPS_KERNELS_PIECES_H

#include "ops/kernels/vector_base.h"

/* A vector of a row must not lie across two lines of the cache. */
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


def fit(x, y, weight, degree):
    """The coefficients from the first power on, each rounded before the next is fitted."""
    coefficients, scale = [], np.max(np.abs(x))
    for k in range(1, degree + 1):
        powers = np.stack([(x / scale) ** j for j in range(k, degree + 1)], 1) * weight[:, None]
        c = single(np.linalg.lstsq(powers, y * weight, rcond=None)[0][0] / scale**k)
        coefficients.append(c)
        y = y - c * x**k
    return coefficients, np.max(np.abs(y * weight))


def equal_pieces(end, pieces):
    """Where the pieces begin, and the last one ends; what in_1 a + start is rounded to, is the
    index."""
    in_1 = (pieces - 0.5) / end
    return [0] + [(p + 0.5) / in_1 for p in range(pieces)], in_1, 1.5 * 2**23, 0


def growing_pieces(end):
    """The same for 8 pieces, two for each power of 2 that 2 + in_1 a passes; its exponent and the
    first bit of its mantissa are the index."""
    in_1 = 30 / end
    return [(2 ** (p // 2) * (2 + p % 2) - 2) / in_1 for p in range(9)], in_1, 2, 22


def table(name, f, end, pieces=32, degree=6, odd=False, falls=0, grow=False, least=lambda a: 0):
    """odd: f is a itself near 0. falls: the part of a piece behind its centre, but for the first
    piece's. Values smaller than least(a) have an absolute error."""
    bounds, in_1, start, shift = growing_pieces(end) if grow else equal_pieces(end, pieces)
    columns, worst, rounded = [], 0, 0
    for p in range(pieces):
        low, high = bounds[p], bounds[p + 1]
        width, middle = high - low, (low + high) / 2 if p else 0
        if falls and p:
            loss, at = centre(f, high - falls * width, width / 20)
        else:
            loss, at = centre(f, middle, width / (5 if p else 4))
        constant = single(f(mp.mpf(at)))
        x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(160) + 0.5) / 160)
        exact = [f(mp.mpf(float(v))) for v in x]
        itself = odd and p == 0
        rest = [float(y - mp.mpf(float(v) if itself else constant)) for v, y in zip(x, exact)]
        weight = 1 / np.array([max(abs(float(y)), least(v)) for v, y in zip(x, exact)])
        c, error = fit(x - at, np.array(rest), weight, degree)
        columns.append([at, constant] + c)
        worst, rounded = max(worst, error), max(rounded, loss)
    print(f"{name}: 2^{np.log2(worst):.1f}, constants {rounded:.3f} ULP", file=sys.stderr)
    print(f"\n#define {name.upper()}_IN_1 {written(single(in_1))}")
    print(f"#define {name.upper()}_START {written(start)}")
    print(f"#define {name.upper()}_SHIFT {shift}")
    print(f"#define {name.upper()}_END {written(single(end * (1 - 1e-6)))}")
    print(f"static const float {name}[{degree + 2}][{pieces}] PIECES_ALIGNED = {{")
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


def gelu_tail(a):
    return a * mp.erfc(a / mp.sqrt(2)) / 2


def gelu_slope(a):
    return mp.erfc(a / mp.sqrt(2)) / 2 - a * mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi)


def silu_slope(a):
    e = mp.exp(-a)
    return e * (1 + e - a) / (1 + e) ** 2


def slope_least(a):
    return 0.01 if a < 2 else 0


def tables_of_32():
    table("tanh_pieces", mp.tanh, 9.2, odd=True)
    table("erf_pieces", mp.erf, 4, odd=True)
    print("\n/* 1 / (1 + e^a), ln(1 + e^-a) */", end="")
    table("sigmoid_pieces", sigmoid, 20)
    table("softplus_pieces", softplus, 20)
    print("\n/* a Q(a) for Q(a) = erfc(a / sqrt 2) / 2; gelu's slope, ", end="")
    print("Q(a) - a e^(-a^2/2) / sqrt(2 pi) */", end="")
    table("gelu_tail_pieces", gelu_tail, 5.41)
    table("gelu_slope_pieces", gelu_slope, 5.41, least=lambda a: 0.01)
    print("\n/* silu's slope at -a, e (1 + e - a) / (1 + e)^2 for e = e^-a */", end="")
    table("silu_slope_pieces", silu_slope, 20, least=slope_least)


def tables_of_8():
    table("tanh_pieces", mp.tanh, 9.2, 8, 7, odd=True, grow=True)
    table("erf_pieces", mp.erf, 4, 8, 7, odd=True)
    table("softplus_pieces", softplus, 17, 8, 9, falls=0.2)
    table("gelu_tail_pieces", gelu_tail, 5.41, 8, 9, falls=0.15)
    table("gelu_slope_pieces", gelu_slope, 5.41, 8, 9, falls=0.15, least=lambda a: 0.01)
    table("silu_slope_pieces", silu_slope, 20, 8, 11, falls=0.15, least=slope_least)


if __name__ == "__main__":
    print(HEAD, end="")
    print("\n#if defined(VECTOR_AVX512)")
    tables_of_32()
    print("\n#elif defined(VECTOR_AVX2)")
    print("\n/* The same functions. */", end="")
    tables_of_8()
    print("\n#endif\n\n#endif")
