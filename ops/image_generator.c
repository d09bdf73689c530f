/* Random changes of images by a generator, which draws the seed of the stateless ones. */
#include "ops/execute.h"
#include "ops/ops.h"

/* NULL, with an error that begins with `who`, without x or memory. */
static ed_tensor *drawn_seed(const char *who, const ed_tensor *x,
                             const ed_generator_options *options)
{
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "%s: x is NULL", who);
    options = OPTIONS_OR_DEFAULTS(ED_GENERATOR_OPTIONS, options);
    return ed_random_uniform(ED_INTS(2), .dtype = ED_INT32, .low = 0, .high = INT32_MAX,
                             .generator = options->generator);
}

ed_tensor *ed_random_flip_left_right_with(ed_tensor *x, const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_flip_left_right", x, options);
    return seed ? ed_keep(ed_stateless_random_flip_left_right(x, seed)) : NULL;
}

ed_tensor *ed_random_flip_up_down_with(ed_tensor *x, const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_flip_up_down", x, options);
    return seed ? ed_keep(ed_stateless_random_flip_up_down(x, seed)) : NULL;
}

ed_tensor *ed_random_crop_with(ed_tensor *x, ed_ints size, const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_crop", x, options);
    return seed ? ed_keep(ed_stateless_random_crop(x, seed, size)) : NULL;
}

ed_tensor *ed_random_brightness_with(ed_tensor *x, double max_delta,
                                     const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_brightness", x, options);
    return seed ? ed_keep(ed_stateless_random_brightness(x, seed, max_delta)) : NULL;
}

ed_tensor *ed_random_contrast_with(ed_tensor *x, double lower, double upper,
                                   const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_contrast", x, options);
    return seed ? ed_keep(ed_stateless_random_contrast(x, seed, lower, upper)) : NULL;
}

ed_tensor *ed_random_hue_with(ed_tensor *x, double max_delta, const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_hue", x, options);
    return seed ? ed_keep(ed_stateless_random_hue(x, seed, max_delta)) : NULL;
}

ed_tensor *ed_random_saturation_with(ed_tensor *x, double lower, double upper,
                                     const ed_generator_options *options)
{
    ED_SCOPE;
    ed_tensor *seed = drawn_seed("random_saturation", x, options);
    return seed ? ed_keep(ed_stateless_random_saturation(x, seed, lower, upper)) : NULL;
}
