/*
 * Snappy's raw format, reading only: the blocks of older TensorFlow indices are packed by it. Our
 * own code because the package would bring the C++ runtime into every program, for sixty lines.
 */
#ifndef EDDY_IO_SNAPPY_H
#define EDDY_IO_SNAPPY_H

#include "io/bytes.h"

/* The size that the packed bytes claim for themselves unpacked; false if they can't become so
 * many: a claim that holds is in proportion to packed.size. */
bool snappy_size(io_span packed, size_t *size);

/* Unpacks exactly `size` bytes, which snappy_size gave; false for damaged data. */
bool snappy_unpack(io_span packed, uint8_t *to, size_t size);

#endif
