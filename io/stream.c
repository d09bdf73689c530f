#include "io/archive.h"
#include "tensor/copy.h"

/* A strided tensor is packed strip by strip: `rows` steps of one axis with all axes after it;
 * the axis is the first whose steps fit into a strip. The axes before it are iterated over. */
enum { STRIP_BYTES = 1 << 20 };

typedef struct strips {
    const ed_tensor *t;
    int axis;
    int64_t inner; /* bytes of one step */
    int64_t rows;
    int64_t at[ED_MAX_RANK];
    char *block;
} strips;

/* Packs the strip at s->at and passes it on. */
static bool hand_strip(strips *s, io_sink *take, void *user)
{
    const ed_tensor *t = s->t;
    int rank = t->rank - s->axis;
    size_t element = dtype_size(t->dtype);
    int64_t shape[ED_MAX_RANK], strides[ED_MAX_RANK], offset = 0;
    for (int i = 0; i <= s->axis; i++) offset += s->at[i] * t->strides[i];
    for (int i = 0; i < rank; i++) shape[i] = t->shape[s->axis + i];
    int64_t left = shape[0] - s->at[s->axis];
    if (shape[0] > s->rows) shape[0] = s->rows;
    if (shape[0] > left) shape[0] = left;
    tensor_row_major(rank, shape, strides);
    copy_box(element, rank, shape, t->data + offset * (int64_t)element, t->strides + s->axis,
             s->block, strides);
    return take(user, s->block, (size_t)(shape[0] * s->inner));
}

/* Moves to the next strip; false after the last. */
static bool next_strip(strips *s)
{
    s->at[s->axis] += s->rows;
    for (int i = s->axis; s->at[i] >= s->t->shape[i]; i--) {
        if (i == 0) return false;
        s->at[i] = 0;
        s->at[i - 1]++;
    }
    return true;
}

bool io_stream_tensor(const ed_tensor *tensor, io_sink *take, void *user)
{
    const ed_tensor *t = tensor_elements(tensor);
    if (!t) return false;
    int64_t element = (int64_t)dtype_size(t->dtype);
    if (!t->size) return true;
    if (t->flags & TENSOR_CONTIGUOUS) return take(user, t->data, (size_t)(t->size * element));
    strips s = {.t = t, .inner = t->size * element};
    while ((s.inner /= t->shape[s.axis]) > STRIP_BYTES) s.axis++;
    s.rows = STRIP_BYTES / s.inner;
    if (s.rows > t->shape[s.axis]) s.rows = t->shape[s.axis];
    s.block = memory_alloc((size_t)(s.rows * s.inner));
    if (!s.block) return false;
    bool more = true, fine = true;
    while (more && fine) {
        fine = hand_strip(&s, take, user);
        more = next_strip(&s);
    }
    memory_free(s.block);
    return fine;
}
