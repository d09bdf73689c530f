/* Words of many counters at once, for each instruction set (philox.simd.c). */
#ifndef EDDY_OPS_KERNELS_PHILOX_WORDS_H
#define EDDY_OPS_KERNELS_PHILOX_WORDS_H

#include "ops/kernels/isa.h"
#include "ops/kernels/philox.h"

/* The words of the counters p, p + stride, p + 2 stride, ...: 4 for each of so many blocks. */
ISA_DECLARE(void, philox_words, const philox *p, uint64_t stride, int64_t blocks, uint32_t *out);

/* The words of the counters p + steps[0], p + steps[1], ... (ascending); out has room for whole
 * vectors, which are filled. */
ISA_DECLARE(void, philox_words_at, const philox *p, int64_t n, const uint64_t *steps,
            uint32_t *out);

#endif
