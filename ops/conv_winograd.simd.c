/* The loops of Winograd's convolution, see conv_winograd.h. */
#include "ops/conv_winograd.h"

#ifdef ISA

#include "ops/kernels/isa.h"
#include "ops/kernels/vector_base.h"

/* The i-th tile along an axis, where it begins and how many of its 2 d cells' tiles come before. */
typedef struct coordinate {
    int64_t i, begin, phase;
} coordinate;

VECTOR_INLINE coordinate coordinate_of(int64_t i, int64_t dilation)
{
    const int64_t phase = i % dilation;
    return (coordinate){i, (i - phase) * WINOGRAD_TILE + phase, phase};
}

VECTOR_INLINE void coordinate_next(coordinate *x, int64_t dilation)
{
    x->i++, x->begin++;
    if (++x->phase == dilation) x->phase = 0, x->begin += dilation;
}

/* A tile's image, row and column. */
typedef struct place {
    int64_t image;
    coordinate row, column;
} place;

VECTOR_INLINE place place_of(const winograd_block *b)
{
    const int64_t row = b->first / b->tiles[1];
    return (place){row / b->tiles[0], coordinate_of(row % b->tiles[0], b->dilation[0]),
                   coordinate_of(b->first % b->tiles[1], b->dilation[1])};
}

VECTOR_INLINE void place_next(place *p, const winograd_block *b)
{
    coordinate_next(&p->column, b->dilation[1]);
    if (p->column.i < b->tiles[1]) return;
    p->column = (coordinate){0};
    coordinate_next(&p->row, b->dilation[0]);
    if (p->row.i < b->tiles[0]) return;
    p->row = (coordinate){0}, p->image++;
}

/* The n x n cells of a tile; those that are not in the image are `outside`. */
VECTOR_INLINE void cells_of(const winograd_images *x, const winograd_block *b, const place *p,
                            const int n, char *cells[])
{
    const int64_t top = p->row.begin - x->before[0], down = b->dilation[0];
    const int64_t left = p->column.begin - x->before[1], right = b->dilation[1];
    char *image = x->data + p->image * x->layout.image;
    UNROLL for (int i = 0; i < n; i++)
    {
        const int64_t row = top + i * down;
        const bool inside = row >= 0 && row < x->cells[0];
        UNROLL for (int j = 0; j < n; j++)
        {
            const int64_t column = left + j * right;
            cells[i * n + j] = inside && column >= 0 && column < x->cells[1]
                                   ? image + row * x->layout.row + column * x->layout.cell
                                   : x->outside;
        }
    }
}

static void mark(const winograd_end *end, const winograd_block *b, const place *p)
{
    const int64_t dilation = b->dilation[0], rows = conv_ceil(b->tiles[0], dilation);
    __atomic_store_n(end->marks + p->image * rows + p->row.i / dilation, 1, __ATOMIC_RELAXED);
}

#define TYPE f32
#include "ops/conv_winograd.typed.h"
#define TYPE f64
#include "ops/conv_winograd.typed.h"

const winograd_loops ISA_NAME(winograd_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {taps_f32, patches_f32, results_f32, cells_f32, kernel_f32},
    [ED_FLOAT64] = {taps_f64, patches_f64, results_f64, cells_f64, kernel_f64}};

#endif
