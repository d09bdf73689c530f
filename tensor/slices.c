#include "tensor/slices.h"
#include <string.h>

static void slices_destroy(void *object)
{
    slices *s = object;
    ed_release(s->values);
    ed_release(s->indices);
    ed_release(s->dense);
    memory_count_tensor(-1);
    memory_free(s);
}

const object_class tensor_slices_class = {.name = "tensor", .destroy = slices_destroy};

slices *slices_new(ed_dtype dtype, int rank, const int64_t *shape,
                   ed_tensor *(*to_dense)(const slices *))
{
    slices *s = object_new(&tensor_slices_class, sizeof *s);
    if (!s) return NULL;
    s->base.id = tensor_new_id();
    s->base.size = 1;
    s->base.dtype = (uint8_t)dtype;
    s->base.rank = (uint8_t)rank;
    s->base.flags = TENSOR_SLICES;
    s->to_dense = to_dense;
    memory_count_tensor(1);
    for (int i = 0; i < rank; i++) {
        s->base.shape[i] = shape[i];
        if (__builtin_mul_overflow(s->base.size, shape[i], &s->base.size)) {
            ed_fail(ED_OUT_OF_MEMORY, "indexed_slices: the shape %s has too many elements",
                    text_of_ints(shape, rank).s);
            ed_release(s);
            return NULL;
        }
    }
    return s;
}

/* Threads that read it at once may each make the elements; the first one's stay. */
ed_tensor *slices_dense(const ed_tensor *t)
{
    slices *s = (slices *)t;
    ed_tensor *dense = __atomic_load_n(&s->dense, __ATOMIC_ACQUIRE);
    if (dense) return dense;
    ed_tensor *made = s->to_dense(s);
    if (!made) return NULL;
    if (__atomic_compare_exchange_n(&s->dense, &dense, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    ed_release(made);
    return dense;
}
