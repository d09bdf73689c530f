/*
 * Datasets: batches of examples for a training loop.
 *
 *     ed_dataset *train = ed_dataset_mnist("train", .dir = "mnist", .batch = 32, .shuffle = true);
 *     for (int epoch = 0; epoch < 5; epoch++)
 *         for (ed_dataset_begin(train); ed_dataset_next(train, &x, &y);) {
 *             ED_SCOPE;
 *             ... a step with x [32, 28, 28] and y [32] ...
 *         }
 */
#ifndef EDDY_DATA_H
#define EDDY_DATA_H

#include "ops/ops.h"
#include <math.h>

#pragma GCC visibility push(default)

/*
 * The tensor of an IDX file, plain or compressed by gzip; `path` or path + ".gz". uint8, int32,
 * float32 and float64 keep their dtype; int8 and int16 become int32. Fails for damaged, truncated
 * or oversized files.
 */
ed_tensor *ed_read_idx(const char *path);

/* Options of ed_read_csv: how the file is written, and which columns are read. */
#define ED_READ_CSV_FORMAT(FIELD, T)                                                               \
    FIELD(T, STRING, delimiter, ",", ED_ANY, "the character between fields")                       \
    FIELD(T, BOOL, header, true, ED_ANY,                                                           \
          "the first line has the names of the columns; without it they are 1, 2 and so on")       \
    FIELD(T, FLOAT, missing, NAN, ED_ANY,                                                          \
          "value of fields that are empty, NA, N/A, NaN, null or none")                            \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
#define ED_READ_CSV_OPTIONS(FIELD, T)                                                              \
    FIELD(T, STRING, columns, NULL, ED_ANY, "names, as \"age,income\"; default: all columns")      \
    ED_READ_CSV_FORMAT(FIELD, T)
ED_OPTIONS(ed_read_csv_options, ED_READ_CSV_OPTIONS);

/*
 * The numbers of a CSV file: [rows, columns], those of `columns` in that order. Columns that are
 * not read may have any text. Fails, with the number of the line, for what is not a number or no
 * value of the dtype, and for lines of another number of fields.
 */
ed_tensor *ed_read_csv_with(const char *path, const ed_read_csv_options *options);
#define ed_read_csv(path, ...)                                                                     \
    ED_WITH_OPTIONS(ed_read_csv_with(path, &ed_options_), ED_READ_CSV_OPTIONS,                     \
                    ed_read_csv_options, ##__VA_ARGS__)

/* The names of the columns that ed_read_csv reads with these options, and then NULL. The scope owns
 * them. */
const char *const *ed_read_csv_names_with(const char *path, const ed_read_csv_options *options);
#define ed_read_csv_names(path, ...)                                                               \
    ED_WITH_OPTIONS(ed_read_csv_names_with(path, &ed_options_), ED_READ_CSV_OPTIONS,               \
                    ed_read_csv_options, ##__VA_ARGS__)

/* The fields of the columns that ed_read_csv reads with these options, as strings, row by row;
 * .missing and .dtype do not count. The scope owns them; values is NULL on failure. */
ed_strings ed_read_csv_words_with(const char *path, const ed_read_csv_options *options);
#define ed_read_csv_words(path, ...)                                                               \
    ED_WITH_OPTIONS(ed_read_csv_words_with(path, &ed_options_), ED_READ_CSV_OPTIONS,               \
                    ed_read_csv_options, ##__VA_ARGS__)

/*
 * Words are strings outside of tensors and integers in them: their places in a vocabulary.
 *
 *     ed_strings jobs = ed_read_csv_words("people.csv", .columns = "job");
 *     ed_strings known = ed_vocabulary(jobs);
 *     ed_tensor *x = ed_string_lookup(jobs, known);
 *     ed_layer *embedding = ed_layer_embedding(known.count + 1, 8);
 */

/* Options of ed_vocabulary. */
#define ED_VOCABULARY_OPTIONS(FIELD, T)                                                            \
    FIELD(T, INT, max_tokens, 0, ED_AT_LEAST(0), "the most frequent ones only; 0: all")
ED_OPTIONS(ed_vocabulary_options, ED_VOCABULARY_OPTIONS);

/* The different ones among words, the most frequent first, in the order of Keras'
 * StringLookup.adapt: of those that are equally frequent, the last of the alphabet is first. The
 * array belongs to the scope, its strings are those of `words`. */
ed_strings ed_vocabulary_with(ed_strings words, const ed_vocabulary_options *options);
#define ed_vocabulary(words, ...)                                                                  \
    ED_WITH_OPTIONS(ed_vocabulary_with(words, &ed_options_), ED_VOCABULARY_OPTIONS,                \
                    ed_vocabulary_options, ##__VA_ARGS__)

/* Options of ed_string_lookup. */
#define ED_STRING_LOOKUP_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INT, num_oov_indices, 1, ED_BETWEEN(0, 1),                                            \
          "1: unknown words are 0, and the vocabulary begins at 1; 0: they are errors")
ED_OPTIONS(ed_string_lookup_options, ED_STRING_LOOKUP_OPTIONS);

/* The place of each word in the vocabulary, as Keras' StringLookup: int64 [words.count]. Fails for
 * a vocabulary that has a word twice, and without an index for unknown words for those. */
ed_tensor *ed_string_lookup_with(ed_strings words, ed_strings vocabulary,
                                 const ed_string_lookup_options *options);
#define ed_string_lookup(words, vocabulary, ...)                                                   \
    ED_WITH_OPTIONS(ed_string_lookup_with(words, vocabulary, &ed_options_),                        \
                    ED_STRING_LOOKUP_OPTIONS, ed_string_lookup_options, ##__VA_ARGS__)

/* The words of a text as Keras' TextVectorization finds them: between blanks, ASCII's letters in
 * lower case, without ASCII's punctuation. The scope owns them; values is NULL on failure. */
ed_strings ed_split_words(const char *text);

/*
 * Writes an image as a PNG file: [height, width] or [height, width, channels] of 1 channel (grey),
 * 2 (grey, alpha), 3 (RGB) or 4 (RGBA), uint8, or floats from 0 to 1. The file appears whole or not
 * at all. false on failure.
 */
bool ed_write_png(const char *path, ed_tensor *image);

/* Examples in memory, and the position of a loop over their batches. */
typedef struct ed_dataset ed_dataset;

/* The options of all datasets. */
#define ED_DATASET_BATCHES(FIELD, T)                                                               \
    FIELD(T, INT, batch, 32, ED_AT_LEAST(1), "rows of a batch")                                    \
    FIELD(T, BOOL, shuffle, false, ED_ANY,                                                         \
          "a new random order in each epoch; default: the order of the rows")                      \
    FIELD(T, BOOL, drop_remainder, false, ED_ANY, "leave out the last batch if it is smaller")     \
    FIELD(T, INT, seed, 0, ED_ANY, "seed of the order; 0: drawn from the state of ed_set_seed")
#define ED_DATASET_OPTIONS(FIELD, T)                                                               \
    ED_DATASET_BATCHES(FIELD, T)                                                                   \
    FIELD(T, BOOL, pixels, false, ED_ANY, "x must be uint8; batches have float32, x / 255")
ED_OPTIONS(ed_dataset_options, ED_DATASET_OPTIONS);

/*
 * A dataset of x [n, ...] and y [n, ...], of any dtypes: row i of x belongs to row i of y. Batches
 * are [batch, ...]; the last one may have fewer rows. Without shuffle they are views of x and y,
 * else copies. With pixels, x is converted batch by batch. The dataset holds references to x and y.
 * Fails if x and y have different numbers of rows.
 */
ed_dataset *ed_dataset_from_tensors_with(ed_tensor *x, ed_tensor *y,
                                         const ed_dataset_options *options);
#define ed_dataset_from_tensors(x, y, ...)                                                         \
    ED_WITH_OPTIONS(ed_dataset_from_tensors_with(x, y, &ed_options_), ED_DATASET_OPTIONS,          \
                    ed_dataset_options, ##__VA_ARGS__)

/* The same of several inputs and outputs: each list has one tensor or more, all of the same number
 * of rows. ed_dataset_next_lists returns their batches; pixels need a single x. */
ed_dataset *ed_dataset_from_lists_with(ed_list *x, ed_list *y, const ed_dataset_options *options);
#define ed_dataset_from_lists(x, y, ...)                                                           \
    ED_WITH_OPTIONS(ed_dataset_from_lists_with(x, y, &ed_options_), ED_DATASET_OPTIONS,            \
                    ed_dataset_options, ##__VA_ARGS__)

/* Options of ed_dataset_mnist. */
#define ED_DATASET_MNIST_OPTIONS(FIELD, T)                                                         \
    FIELD(T, STRING, dir, NULL, ED_ANY, "the folder; required") ED_DATASET_BATCHES(FIELD, T)
ED_OPTIONS(ed_dataset_mnist_options, ED_DATASET_MNIST_OPTIONS);

/*
 * MNIST from its IDX files in a folder; split is "train" (60000 rows) or "test" (10000). x is
 * float32 [n, 28, 28] in 0..1, y int32 [n] in 0..9. The files are train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz. Fails
 * as ed_read_idx does.
 */
ed_dataset *ed_dataset_mnist_with(const char *split, const ed_dataset_mnist_options *options);
#define ed_dataset_mnist(split, ...)                                                               \
    ED_WITH_OPTIONS(ed_dataset_mnist_with(split, &ed_options_), ED_DATASET_MNIST_OPTIONS,          \
                    ed_dataset_mnist_options, ##__VA_ARGS__)

/*
 * Sets *x and *y to the next batch and returns true. They belong to the dataset and are valid until
 * the next call; ed_retain keeps them longer. Returns false at the end of an epoch (the call after
 * that begins the next one), on failure, and if an error is kept already. x or y may be NULL if it
 * is not needed. Fails for a dataset of several x or y.
 */
bool ed_dataset_next(ed_dataset *dataset, ed_tensor **x, ed_tensor **y);

/* The same of all x and all y, as lists, for any dataset. */
bool ed_dataset_next_lists(ed_dataset *dataset, ed_list **x, ed_list **y);

/* Begins the next epoch: the next batch is its first. */
bool ed_dataset_rewind(ed_dataset *dataset);

/* The same, for loops over the batches of an epoch. Right after a checkpoint was restored it
 * does nothing: the epoch continues from the position in the checkpoint. */
bool ed_dataset_begin(ed_dataset *dataset);

/* The number of rows; 0 for NULL. */
int64_t ed_dataset_rows(const ed_dataset *dataset);

/* The number of batches in an epoch, the last smaller one included unless drop_remainder; 0 for
 * NULL. */
int64_t ed_dataset_batches(const ed_dataset *dataset);

/* All rows of x in their order, with the dtype of batches (float32 for pixels): a view, or a new
 * tensor for pixels. Of a dataset of several x or y this fails. */
ed_tensor *ed_dataset_x(const ed_dataset *dataset);

/* All rows of y in their order: a view. */
ed_tensor *ed_dataset_y(const ed_dataset *dataset);

#pragma GCC visibility pop
#endif
