/*
 * Reading indices: their range and order in one pass, by all threads, before anything is touched at
 * them; the range of some, on the way; and as int64.
 */
#include "ops/index.h"
#include "ops/kernels/isa.h"
#include "tensor/threads.h"
#include "tensor/typed.h"

#ifdef ISA
/* ======== Loops =============================================================================== */

#define TYPE i32
#include "ops/index_read.typed.h"
#define TYPE i64
#include "ops/index_read.typed.h"

void ISA_NAME(index_widen)(const int32_t *restrict v, int64_t n, int64_t *restrict wide);
void ISA_NAME(index_widen)(const int32_t *restrict v, int64_t n, int64_t *restrict wide)
{
    for (int64_t i = 0; i < n; i++) wide[i] = v[i];
}

bool ISA_NAME(index_inside)(const int64_t *some, int64_t n, int64_t bound);
bool ISA_NAME(index_inside)(const int64_t *some, int64_t n, int64_t bound)
{
    uint64_t signs = 0;
    for (int64_t i = 0; i < n; i++)
        signs |= (uint64_t)some[i] | ((uint64_t)bound - 1 - (uint64_t)some[i]);
    return (int64_t)signs >= 0;
}

#else
/* ======== All indices ========================================================================= */

ISA_DECLARE(index_order, index_order_i32, const int32_t *v, int64_t first, int64_t last);
ISA_DECLARE(index_order, index_order_i64, const int64_t *v, int64_t first, int64_t last);
ISA_DECLARE(bool, index_inside, const int64_t *some, int64_t n, int64_t bound);
ISA_DECLARE(int64_t, index_largest_i32, const int32_t *v, int64_t n);
ISA_DECLARE(int64_t, index_largest_i64, const int64_t *v, int64_t n);
ISA_DECLARE(void, index_widen, const int32_t *v, int64_t n, int64_t *wide);

typedef struct ordering {
    const ed_tensor *indices;
    index_order of[THREADS_MOST]; /* what each thread has seen */
} ordering;

static void order_range(int64_t first, int64_t last, int worker, void *user)
{
    ordering *o = user;
    index_order *all = &o->of[worker];
    const void *v = o->indices->data;
    const index_order one = o->indices->dtype == ED_INT64
                                ? ISA_CALL(index_order_i64)(v, first, last)
                                : ISA_CALL(index_order_i32)(v, first, last);
    if (one.largest > all->largest) all->largest = one.largest;
    if (one.least < all->least) all->least = one.least;
    all->sorted &= one.sorted;
}

index_order index_order_of(const ed_tensor *indices)
{
    ordering o = {.indices = indices};
    const int count = threads_count();
    for (int i = 0; i < count; i++) o.of[i] = (index_order){-1, 0, true};
    const bool outer = threads_may_stop(false); /* what nobody looked at would be in bounds */
    threads_run_among(count, indices->size, OPS_PARALLEL_WORK, order_range, &o);
    threads_may_stop(outer);
    index_order all = o.of[0];
    for (int i = 1; i < count; i++) {
        if (o.of[i].largest > all.largest) all.largest = o.of[i].largest;
        if (o.of[i].least < all.least) all.least = o.of[i].least;
        all.sorted &= o.of[i].sorted;
    }
    return all;
}

int64_t index_largest(const ed_tensor *indices, int64_t begin, int64_t n)
{
    return indices->dtype == ED_INT64
               ? ISA_CALL(index_largest_i64)((const int64_t *)indices->data + begin, n)
               : ISA_CALL(index_largest_i32)((const int32_t *)indices->data + begin, n);
}

int64_t index_at(const ed_tensor *indices, int64_t i)
{
    return indices->dtype == ED_INT64 ? ((const int64_t *)indices->data)[i]
                                      : ((const int32_t *)indices->data)[i];
}

/* ---- As int64 -------------------------------------------------------------------------------- */

typedef struct widening {
    const int32_t *from;
    int64_t *to;
} widening;

static void widen_range(int64_t first, int64_t last, int worker, void *user)
{
    const widening *w = user;
    (void)worker;
    ISA_CALL(index_widen)(w->from + first, last - first, w->to + first);
}

const int64_t *index_some(const ed_tensor *indices, int64_t begin, int64_t n, int64_t *room)
{
    if (indices->dtype == ED_INT64) return (const int64_t *)indices->data + begin;
    ISA_CALL(index_widen)((const int32_t *)indices->data + begin, n, room);
    return room;
}

const int64_t *index_wide(const ed_tensor *indices)
{
    if (indices->dtype == ED_INT64) return (const int64_t *)indices->data;
    int64_t *wide = memory_alloc((size_t)indices->size * sizeof *wide);
    if (!wide) return NULL;
    const bool outer = threads_may_stop(false); /* what nobody wrote would be no index */
    threads_run(indices->size, OPS_PARALLEL_WORK, widen_range,
                &(widening){(const int32_t *)indices->data, wide});
    threads_may_stop(outer);
    return wide;
}

void index_drop(const ed_tensor *indices, const int64_t *all)
{
    if (all != (const int64_t *)indices->data) memory_free((void *)(uintptr_t)all);
}

/* ---- Checked --------------------------------------------------------------------------------- */

bool index_inside(const int64_t *some, int64_t n, int64_t bound)
{
    return ISA_CALL(index_inside)(some, n, bound);
}

bool index_refuse(const ed_call *call, int64_t index, int64_t at, int64_t bound)
{
    return ed_call_fail(call, ED_OUT_OF_RANGE,
                        "index %lld at position %lld is out of bounds: it must be in 0..%lld",
                        (long long)index, text_nth(at), (long long)bound - 1);
}

bool index_check(const ed_call *call, const ed_tensor *indices, int64_t bound)
{
    const index_order order = index_order_of(indices);
    if (order.least >= 0 && order.largest < bound) return true;
    int64_t i = 0;
    while (index_at(indices, i) >= 0 && index_at(indices, i) < bound) i++;
    return index_refuse(call, index_at(indices, i), i, bound);
}

const int64_t *index_read(const ed_call *call, const ed_tensor *indices, int64_t bound)
{
    return index_check(call, indices, bound) ? index_wide(indices) : NULL;
}
#endif
