#include "nn/regularizers/regularizer.h"

MADE_PLAIN(regularizer)

ed_tensor *ed_regularize(ed_regularizer *regularizer, ed_tensor *x)
{
    if (NULL_GIVEN("regularize", regularizer, x)) return NULL;
    if (!ed_dtype_is_float(x->dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "regularize: x must be float32 or float64, got %s",
                       text_of_tensor(x).s);
    ED_SCOPE;
    const regularizer_class *class = (const regularizer_class *)regularizer->made.kind;
    return ed_keep(class->function(regularizer->made.options, x));
}
