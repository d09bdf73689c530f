/* Handwritten digits for programs that have no MNIST at hand, and a way to
 * look at such pictures. */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <eddy.h>

/*
 * Pictures uint8 [count, 28, 28], 0 paper and 255 ink, of random digits; *labels becomes int32
 * [count]. The same count and seed draw the same pictures on every machine.
 */
ed_tensor *draw_digits(int64_t count, uint64_t seed, ed_tensor **labels);

/* The same as float32 [count, 28 * 28] in 0..1, for networks that learn from the pictures alone. */
ed_tensor *draw_images(int64_t count, uint64_t seed);

/*
 * Prints `count` pictures of 28 x 28 numbers in 0..1 side by side, three to a row, each with its
 * caption below.
 */
void show_digits(FILE *file, const float *pictures, int count, const char *const *captions);

#endif
