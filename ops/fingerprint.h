/*
 * TensorFlow's hashes of integers, the same bits: of an integer's decimal text FarmHash's
 * Fingerprint64, or SipHash-2-4 with a key. Internal ops for the layers that hash.
 */
#ifndef EDDY_OPS_FINGERPRINT_H
#define EDDY_OPS_FINGERPRINT_H

#include "ops/execute.h"

/* hash(text of x) mod num_buckets, int64 of x's shape; x int32 or int64; key: two integers, or no
 * list for Fingerprint64. */
ed_tensor *fingerprint_buckets(ed_tensor *x, int64_t num_buckets, ed_ints key);

/* The hash of the integers that lie at one place of n int64 tensors of one shape, mod num_buckets,
 * int64, as tf.sparse.cross_hashed. */
ed_tensor *fingerprint_cross(ed_tensor *const *inputs, int n, int64_t num_buckets);

#endif
