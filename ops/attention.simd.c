/* The loops of attention, see attention.h. */
#include "ops/attention.h"

#ifdef ISA

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/attention.typed.h"
#define TYPE f64
#include "ops/attention.typed.h"

const attention_loops ISA_NAME(attention_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {attention_exponentials_f32, attention_join_f32, attention_finish_f32,
                    attention_probabilities_f32, attention_gradient_f32, attention_add_f32},
    [ED_FLOAT64] = {attention_exponentials_f64, attention_join_f64, attention_finish_f64,
                    attention_probabilities_f64, attention_gradient_f64, attention_add_f64}};

#endif
