/*
 * Datasets: where batches come from.
 */
#ifndef EDDY_DATA_H
#define EDDY_DATA_H

#include "ops/ops.h"

#pragma GCC visibility push(default)

/*
 * The tensor of an IDX file, plain or compressed by gzip; `path` or path + ".gz". uint8, int32,
 * float32 and float64 keep their dtype; int8 and int16 become int32. Fails for damaged, truncated
 * or oversized files.
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
    bool drop_remainder; /* leave out the last batch if it is smaller */
    uint64_t seed;       /* of the order; 0: drawn from ed_set_seed's state */
    bool pixels;         /* x is uint8, batches of it are float32: 0..255 becomes 0..1 */
} ed_dataset_options;

/*
 * Batches of x [n, ...] and y [n, ...]: row i of one goes with row i of the other. Fails if their
 * numbers of rows differ. Pixels are converted batch by batch; the dataset keeps bytes.
 */
#define ed_dataset_from_tensors(x, y, ...)                                                         \
    ed_dataset_from_tensors_with(x, y, &(ed_dataset_options){__VA_ARGS__})
ed_dataset *ed_dataset_from_tensors_with(ed_tensor *x, ed_tensor *y,
                                         const ed_dataset_options *options);

/*
 * MNIST from IDX files in a folder; split is "train" or "test". x float32 [n, 28, 28] in 0..1, y
 * int32 [n]. The files are train-images-idx3-ubyte, train-labels-idx1-ubyte,
 * t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz.
 */
typedef struct ed_dataset_mnist_options {
    const char *dir; /* the folder; required */
    int64_t batch;   /* these as in ed_dataset_options */
    bool shuffle, drop_remainder;
    uint64_t seed;
} ed_dataset_mnist_options;
#define ed_dataset_mnist(split, ...)                                                               \
    ed_dataset_mnist_with(split, &(ed_dataset_mnist_options){__VA_ARGS__})
ed_dataset *ed_dataset_mnist_with(const char *split, const ed_dataset_mnist_options *options);

/*
 * The next batch; x and y belong to the dataset and are valid until the next call. false at the end
 * of an epoch (the call after that begins the next one) and if an error is kept. x or y may be NULL
 * if it is not needed.
 */
bool ed_dataset_next(ed_dataset *dataset, ed_tensor **x, ed_tensor **y);

/* Starts the next epoch. */
bool ed_dataset_rewind(ed_dataset *dataset);

/* The same, except right after a checkpoint was restored: then the epoch continues from the
 * position in the checkpoint. For loops over all batches. */
bool ed_dataset_begin(ed_dataset *dataset);

/* The number of rows; 0 for NULL. */
int64_t ed_dataset_rows(const ed_dataset *dataset);

/* The number of batches in an epoch; 0 for NULL. */
int64_t ed_dataset_batches(const ed_dataset *dataset);

/* All of x, unshuffled, with the dtype that batches have. */
ed_tensor *ed_dataset_x(const ed_dataset *dataset);

/* All of y, unshuffled. */
ed_tensor *ed_dataset_y(const ed_dataset *dataset);

#pragma GCC visibility pop
#endif
