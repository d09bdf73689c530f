/*
 * Moving elements: from any layout into any other, and one value into many places.
 *
 * Large moves are cut among threads and written past the caches; every element is moved bit by bit,
 * so neither changes a result.
 */
#ifndef EDDY_TENSOR_COPY_H
#define EDDY_TENSOR_COPY_H

#include "tensor/hard.h"
#include "tensor/tensor.h"

/* A box is what an op moves at a time: a tensor's dimensions may each be split in two (tile). */
enum { COPY_MAX_RANK = 2 * ED_MAX_RANK, COPY_LINE = 64 };

/* A result of so many bytes goes past the caches: little of it would stay there. */
enum { COPY_FAR_BYTES = HARD(1, 16 << 20) };

/*
 * Copies a box of elements of 1, 2, 4 or 8 bytes. Strides are in elements and may be 0 (of `from`
 * only) or negative; the two places must not overlap.
 */
void copy_box(size_t element, int rank, const int64_t *shape, const void *from,
              const int64_t *from_strides, void *to, const int64_t *to_strides);

/* Adjoining bytes. */
void copy_bytes(void *to, const void *from, size_t bytes);

/* n adjoining elements, each a copy of *value. */
void copy_fill(size_t element, const void *value, void *to, int64_t n);

/* The same two for little work in an inner loop: no threads, nothing merged. */
void copy_row(size_t element, int64_t n, const void *from, int64_t from_stride, void *to,
              int64_t to_stride);
void copy_fill_row(size_t element, const void *value, void *to, int64_t n);

/* Adjoining bytes; whole lines of COPY_LINE bytes are written past the caches. */
void copy_stream(void *to, const void *from, size_t bytes);

/* After lines of COPY_LINE bytes were written past the caches, before other threads read them. */
void copy_stream_end(void);

#endif
