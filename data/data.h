/*
 * Where batches come from.
 */
#ifndef EDDY_DATA_H
#define EDDY_DATA_H

#include "ops/ops.h"

#pragma GCC visibility push(default)

/*
 * A tensor from a file in IDX form, plain or gzip; `path` or path + ".gz". uint8, int32, float32,
 * float64 files; int8 and int16 become int32. Fails for damaged, truncated or oversized files and
 * names them.
 */
ed_tensor *ed_read_idx(const char *path);

/*
 * Writes an image as a PNG file: [height, width] or [height, width, channels] of 1 channel (grey),
 * 2 (grey, alpha), 3 (RGB) or 4 (RGBA), uint8, or floats from 0 to 1. The file appears whole or not
 * at all. false on failure.
 */
bool ed_write_png(const char *path, ed_tensor *image);

typedef struct ed_dataset ed_dataset;

typedef struct ed_dataset_options {
    int64_t batch;       /* default 32 */
    bool shuffle;        /* in a new order every epoch */
    bool drop_remainder; /* leave out a last batch that is smaller */
    uint64_t seed;       /* of the order; 0: from ed_set_seed's source */
    bool pixels;         /* x is uint8 and goes out as float32, 0..255 becoming 0..1 */
} ed_dataset_options;

/*
 * Batches of x [n, ...] and y [n, ...], rows in step. Fails if their first extents differ. Pixels
 * are converted batch by batch: the set keeps bytes.
 */
#define ed_dataset_from_tensors(x, y, ...)                                                         \
    ed_dataset_from_tensors_with(x, y, &(ed_dataset_options){__VA_ARGS__})
ed_dataset *ed_dataset_from_tensors_with(ed_tensor *x, ed_tensor *y,
                                         const ed_dataset_options *options);

/*
 * MNIST from IDX files in dir: split "train" or "test". x float32 [n, 28, 28] in 0..1, y int32 [n].
 * Files: train-images-idx3-ubyte, train-labels-idx1-ubyte,
 * t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, plain or .gz.
 */
typedef struct ed_dataset_mnist_options {
    const char *dir;
    int64_t batch;
    bool shuffle, drop_remainder;
    uint64_t seed;
} ed_dataset_mnist_options;
#define ed_dataset_mnist(split, ...)                                                               \
    ed_dataset_mnist_with(split, &(ed_dataset_mnist_options){__VA_ARGS__})
ed_dataset *ed_dataset_mnist_with(const char *split, const ed_dataset_mnist_options *options);

/*
 * The next batch, lent until the next call; false at the end of an epoch (the call after that
 * begins the next one) and once an error is kept. Either of x, y may be NULL if it is not wanted.
 */
bool ed_dataset_next(ed_dataset *dataset, ed_tensor **x, ed_tensor **y);

/* Begins the next epoch now / as a loop over all batches does: unless the set stands where a
 * checkpoint that was just restored says. */
bool ed_dataset_rewind(ed_dataset *dataset);
bool ed_dataset_begin(ed_dataset *dataset);

/* Rows; batches of an epoch; the whole tensors, in order and as batches have them. */
int64_t ed_dataset_rows(const ed_dataset *dataset);
int64_t ed_dataset_batches(const ed_dataset *dataset);
ed_tensor *ed_dataset_x(const ed_dataset *dataset);
ed_tensor *ed_dataset_y(const ed_dataset *dataset);

#pragma GCC visibility pop
#endif
