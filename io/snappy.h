/* Snappy's raw format, decompression only: blocks of older TensorFlow indices are compressed by
 * it. The package would add the C++ runtime to every program; this takes sixty lines. */
#ifndef EDDY_IO_SNAPPY_H
#define EDDY_IO_SNAPPY_H

#include "io/bytes.h"

/* The unpacked size that the packed bytes claim; false if they can't unpack to so many: a valid
 * claim is proportional to packed.size. */
bool snappy_size(io_span packed, size_t *size);

/* Unpacks exactly `size` bytes, the result of snappy_size; false for damaged data. */
bool snappy_unpack(io_span packed, uint8_t *to, size_t size);

#endif
