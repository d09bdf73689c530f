/* The loops of recurrent layers, see recurrent.h. */
#include "ops/recurrent.h"

#ifdef ISA

#include "ops/kernels/lanes.h"

#define TYPE f32
#include "ops/recurrent.typed.h"
#define TYPE f64
#include "ops/recurrent.typed.h"

const recurrent_loops ISA_NAME(recurrent_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {recurrent_row_f32, recurrent_back_row_f32, recurrent_add_f32},
    [ED_FLOAT64] = {recurrent_row_f64, recurrent_back_row_f64, recurrent_add_f64}};

#endif
