/*
 * Where op seeds come from: after a global seed was set, TensorFlow draws the seed of each random
 * op from Python's random.Random(global seed).randint(0, 2**31 - 1). Python's generator is the
 * Mersenne twister MT19937.
 */
#ifndef EDDY_OPS_KERNELS_SEEDS_H
#define EDDY_OPS_KERNELS_SEEDS_H

#include "ops/kernels/philox.h"

typedef struct twister {
    uint32_t state[624];
    int used; /* words of state already given out; 624: all */
} twister;

/* random.Random(seed). */
void twister_seed(twister *t, int64_t seed);

/* getrandbits(32), and randint(0, 2**31 - 1). */
uint32_t twister_word(twister *t);
int32_t twister_op_seed(twister *t);

/*
 * The generator of a random op from the global seed and the op's seed, either of which may be unset
 * (NULL). With only a global seed the caller passes twister_op_seed's next value as the op's seed;
 * with none of both there is nothing to say here: the caller takes seeds from the system.
 */
philox philox_from_op_seeds(const int64_t *global, const int64_t *op);

#endif
