"""Writes ops/sobol_numbers.h: python3 tools/sobol.py NUMBERS.npz > ops/sobol_numbers.h

NUMBERS.npz has the direction numbers of Joe and Kuo, new-joe-kuo-6, as SciPy keeps them: `poly`, the
primitive polynomials with their first and last coefficient, and `vinit`, the initial numbers m.
"""
import sys
import numpy as np

MOST_DEGREE = 14  # of the polynomials that the table has
arrays = np.load(sys.argv[1])
bits, count, degrees = [], 0, []
for poly, numbers in zip(arrays["poly"].tolist(), arrays["vinit"].tolist()):
    degree = poly.bit_length() - 1
    if degree > MOST_DEGREE:
        break
    degrees.append(degree)
    if degree == 0:
        continue
    bits += [poly >> k & 1 for k in range(1, degree)]
    for i, m in enumerate(numbers[:degree]):
        assert m & 1 and m < 2 << i
        bits += [m >> k & 1 for k in range(1, i + 1)]
assert degrees == sorted(degrees)
words = [sum(bit << k for k, bit in enumerate(bits[i:i + 64])) for i in range(0, len(bits), 64)]
counts = [degrees.count(d) for d in range(1, MOST_DEGREE + 1)]

print(f"""/*
 * Made by tools/sobol.py: the primitive polynomials of degrees 1 to {MOST_DEGREE} with the first direction
 * numbers of Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections",
 * 2008, packed. A polynomial of degree d takes d - 1 bits, for its coefficients but the first and
 * the last, which are 1, and then m_1, ..., m_d, which are odd, i - 1 bits for m_i; low bits first.
 */
#ifndef EDDY_OPS_SOBOL_NUMBERS_H
#define EDDY_OPS_SOBOL_NUMBERS_H

#include <stdint.h>

/* clang-format off */

/* Dimensions of the table, and how many polynomials there are of each degree from 1 on. */
enum {{ SOBOL_DIMENSIONS = {len(degrees)}, SOBOL_DEGREES = {MOST_DEGREE} }};
static const int sobol_counts[] = {{{", ".join(map(str, counts))}}};

static const uint64_t sobol_bits[] = {{""")
for i in range(0, len(words), 4):
    print("   ", " ".join(f"{w:#x}," for w in words[i:i + 4]))
print("};\n\n/* clang-format on */\n\n#endif")
