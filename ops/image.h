/* Images [batch, height, width, channels] or [height, width, channels]. ops.h says what holds for
 * all. */
#ifndef EDDY_OPS_IMAGE_H
#define EDDY_OPS_IMAGE_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * Images in another size, [height, width], as tf.image.resize: pixels are squares, whose centers
 * count. Methods:
 *
 *     nearest                      the pixel below the center; keeps the dtype, every dtype
 *     bilinear, bicubic            between 2 and 4 pixels along each axis (Keys' cubic, a = -0.5)
 *     area                         the mean of what a pixel covers
 *     lanczos3, lanczos5           windowed sinc of radius 3 and 5
 *     gaussian, mitchellcubic      radius 1.5 and 2
 *
 * All but nearest take numbers and 16-bit floats and give float32, of float64 float64. Pixels
 * outside of the image do not count. With antialias the filters grow as the image shrinks; nearest
 * and area do not change by it.
 */
#define ED_RESIZE_OPTIONS(FIELD, T)                                                                \
    FIELD(T, CHOICE, method, "bilinear",                                                           \
          ED_ONE_OF("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",  \
                    "mitchellcubic"),                                                              \
          "how pixels are made")                                                                   \
    FIELD(T, BOOL, antialias, false, ED_ANY, "larger filters where the image shrinks")             \
    FIELD(T, BOOL, preserve_aspect_ratio, false, ED_ANY,                                           \
          "one of the two sizes becomes less where the ratio would change")
ED_OPTIONS(ed_resize_options, ED_RESIZE_OPTIONS);
ed_tensor *ed_resize_with(ed_tensor *x, ed_ints size, const ed_resize_options *options);

#pragma GCC visibility pop
#endif
