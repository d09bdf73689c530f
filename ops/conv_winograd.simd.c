/* The loops of Winograd's convolution, see conv_winograd.h. */
#include "ops/conv_winograd.h"

#ifdef ISA

#include "ops/kernels/isa.h"
#include "ops/kernels/vector_base.h"

/* A tile's image, row and column. */
typedef struct place {
    int64_t image, row, column;
} place;

VECTOR_INLINE place place_of(const winograd_block *b)
{
    const int64_t row = b->first / b->tiles[1];
    return (place){row / b->tiles[0], row % b->tiles[0], b->first % b->tiles[1]};
}

VECTOR_INLINE void place_next(place *p, const winograd_block *b)
{
    if (++p->column < b->tiles[1]) return;
    p->column = 0;
    if (++p->row < b->tiles[0]) return;
    p->row = 0, p->image++;
}

/* The n x n cells of a tile; those that are not in the image are `outside`. */
VECTOR_INLINE void cells_of(const winograd_images *x, const place *p, const int n, char *cells[])
{
    const int64_t top = p->row * WINOGRAD_TILE - x->before[0];
    const int64_t left = p->column * WINOGRAD_TILE - x->before[1];
    char *image = x->data + p->image * x->layout.image;
    UNROLL for (int i = 0; i < n; i++)
    {
        const bool inside = top + i >= 0 && top + i < x->cells[0];
        UNROLL for (int j = 0; j < n; j++) cells[i * n + j] =
            inside && left + j >= 0 && left + j < x->cells[1]
                ? image + (top + i) * x->layout.row + (left + j) * x->layout.cell
                : x->outside;
    }
}

#define TYPE f32
#include "ops/conv_winograd.typed.h"
#define TYPE f64
#include "ops/conv_winograd.typed.h"

const winograd_loops ISA_NAME(winograd_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {taps_f32, patches_f32, results_f32, cells_f32, kernel_f32},
    [ED_FLOAT64] = {taps_f64, patches_f64, results_f64, cells_f64, kernel_f64}};

#endif
