/*
 * Resampling of images: the sums of a row's neighbours and of rows, and how an image goes through
 * both. What is resampled first is the axis that leaves less to do for the other one: rows are
 * resampled across before they are combined where the image grows downwards (each is kept for as
 * long as it is needed), and after where it shrinks. Large bilinear images of many channels do both
 * at once: stores past the caches leave time to sum again, and none to store what is kept.
 */
#include "ops/kernels/isa.h"
#include "ops/resize.h"

#ifdef ISA

#include "ops/kernels/lanes.h"
#include "tensor/tensor.h"
#include "tensor/typed.h"
#include <string.h>

/* The sums that need no conversion. */
#define resize_down_f32 resize_down_f32_f32
#define resize_add_f32  resize_add_f32_f32
#define resize_down_f64 resize_down_f64_f64
#define resize_add_f64  resize_add_f64_f64

#define TYPE f32
#define FROM f32
#include "ops/resize_down.typed.h"
#define TYPE f32
#include "ops/resize.typed.h"
#define TYPE f32
#define FROM u8
#include "ops/resize_down.typed.h"
#define TYPE f64
#define FROM f64
#include "ops/resize_down.typed.h"
#define TYPE f64
#include "ops/resize.typed.h"

const resize_loops ISA_NAME(resize_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {resize_across_f32, resize_down_f32_f32, resize_past_f32, resize_both_f32},
    [ED_FLOAT64] = {resize_across_f64, resize_down_f64_f64, resize_past_f64, resize_both_f64},
    [ED_UINT8] = {.down = resize_down_u8_f32}};

#else

#include "ops/execute.h"
#include "ops/resize_call.h"
#include "tensor/copy.h"
#include "tensor/threads.h"

ISA_DECLARE_TABLE(resize_loops, resize_table, []);

static const resize_loops *resize_loops_for(ed_dtype dtype)
{
    static const resize_loops *const tables[ISA_COUNT] = ISA_TABLE(resize_table);
    return &tables[isa_level][dtype];
}

/* An image's way through a kernel. */
typedef struct resizing {
    const resize_axis *y, *x;
    const resize_loops *read, *loops; /* of the image's elements, of the result's */
    const char *from;
    char *to, *scratch;
    int64_t channels, element_from, element_to;
    int64_t kept; /* bytes of scratch of one worker */
    bool across_first;
    bool past;    /* across first: the result goes past the caches */
    bool at_once; /* past: both axes at once */
} resizing;

/* Bytes of a row as it is kept between the two axes, with room for vectors. */
static int64_t kept_row(const resizing *p)
{
    return (p->across_first ? p->x->out : p->x->in) * p->channels * p->element_to + 64;
}

/* What a worker keeps: rows, their numbers, and pointers to the rows of a sum. */
typedef struct kept_rows {
    int64_t *number;
    const void **rows;
    char *data;
} kept_rows;

static kept_rows kept_of(const resizing *p, int worker)
{
    char *at = p->scratch + worker * p->kept;
    const int64_t most = p->y->most;
    return (kept_rows){(int64_t *)at, (const void **)(at + most * 8), at + most * 16};
}

/* A row of an image in the result's dtype; `to` has room for it. */
static const char *read_row(const resizing *p, const char *row, char *to)
{
    static const float one = 1;
    const void *rows[] = {row};
    if (p->read == p->loops) return row;
    p->read->down(rows, &one, 1, p->x->in * p->channels, to);
    return to;
}

/* Finds the rows of the image that row `o` of the result is a sum of; their weights. */
static void find_rows(const resizing *p, kept_rows *k, const char *image, int64_t o)
{
    const int64_t row = p->x->in * p->channels * p->element_from;
    for (int64_t i = 0; i < p->y->count[o]; i++) k->rows[i] = image + (p->y->first[o] + i) * row;
}

static const void *weights_of(const resizing *p, int64_t o)
{
    return (const char *)p->y->weights + o * p->y->most * p->element_to;
}

/* Row `o` of an image, across first: the resampled rows stay for those that come next. */
static void row_from_kept(const resizing *p, kept_rows *k, const char *image, int64_t o, char *to)
{
    const int64_t most = p->y->most, n = p->y->count[o], first = p->y->first[o];
    const int64_t row = p->x->in * p->channels * p->element_from, bytes = kept_row(p);
    for (int64_t i = 0; i < n; i++) {
        const int64_t slot = (first + i) % most;
        char *kept = k->data + slot * bytes;
        if (k->number[slot] != first + i)
            p->loops->across(p->x, p->channels,
                             read_row(p, image + (first + i) * row, k->data + most * bytes), kept);
        k->number[slot] = first + i;
        k->rows[i] = kept;
    }
    (p->past ? p->loops->past : p->loops->down)(k->rows, weights_of(p, o), n,
                                                p->x->out * p->channels, to);
}

static void row_by_one(const resizing *p, kept_rows *k, const char *image, int64_t o, char *to)
{
    find_rows(p, k, image, o);
    p->read->down(k->rows, weights_of(p, o), p->y->count[o], p->x->in * p->channels, k->data);
    p->loops->across(p->x, p->channels, k->data, to);
}

static void row_at_once(const resizing *p, kept_rows *k, const char *image, int64_t o, char *to)
{
    find_rows(p, k, image, o);
    p->loops->both(p->x, p->channels, k->rows, weights_of(p, o), p->y->count[o], to);
}

static void resize_rows(int64_t begin, int64_t end, int worker, void *user)
{
    const resizing *p = user;
    const int64_t image = p->y->in * p->x->in * p->channels * p->element_from,
                  row = p->x->out * p->channels * p->element_to;
    kept_rows k = kept_of(p, worker);
    void (*const make)(const resizing *, kept_rows *, const char *, int64_t, char *) =
        p->at_once        ? row_at_once
        : p->across_first ? row_from_kept
                          : row_by_one;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / p->y->out, o = i % p->y->out;
        if (i == begin || o == 0)
            for (int64_t s = 0; s < p->y->most; s++) k.number[s] = -1;
        make(p, &k, p->from + n * image, o, p->to + i * row);
    }
    if (p->past) copy_stream_end();
}

bool resize_run(const ed_tensor *from, const ed_tensor *to, const resize_axis *y,
                const resize_axis *x)
{
    resizing p = {.y = y,
                  .x = x,
                  .read = resize_loops_for(from->dtype),
                  .loops = resize_loops_for(to->dtype),
                  .from = from->data,
                  .to = to->data,
                  .channels = to->shape[3],
                  .element_from = (int64_t)dtype_size(from->dtype),
                  .element_to = (int64_t)dtype_size(to->dtype),
                  .across_first = y->out >= y->in};
    const int workers = threads_count();
    const int64_t row_to = x->out * p.channels * p.element_to;
    p.past = p.across_first && row_to % 64 == 0 && (uintptr_t)to->data % 64 == 0 &&
             to->size * p.element_to >= COPY_FAR_BYTES;
    p.at_once = p.past && p.read == p.loops && x->largest <= 2 && y->largest <= 2 &&
                p.channels * p.element_to % 64 == 0;
    size_t bytes;
    p.kept = y->most * 16;
    if (!p.at_once) p.kept += (p.across_first ? y->most : 1) * kept_row(&p);
    if (p.read != p.loops) p.kept += x->in * p.channels * p.element_to;
    p.kept = (p.kept + 63) / 64 * 64;
    if (!memory_mul((size_t)p.kept, (size_t)workers, &bytes)) bytes = SIZE_MAX / 2;
    if (!(p.scratch = memory_alloc(bytes))) return false;
    /* Pieces are large enough that the rows at their borders, which two threads make, are few. */
    const int64_t rows = to->shape[0] * y->out, row = x->out * p.channels;
    int64_t grain = 1 + 32768 / row;
    if (grain < 16) grain = 16;
    threads_run_among(workers, rows, to->size > OPS_PARALLEL_WORK ? grain : rows, resize_rows, &p);
    memory_free(p.scratch);
    return true;
}

#endif
