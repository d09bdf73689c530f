/*
 * Datasets in memory: tensors whose rows belong together, divided into batches.
 *
 * Without shuffle a batch is a view. With shuffle its rows are gathered into a new tensor; the
 * order of an epoch depends on (seed, number of the epoch) only. Images may be stored as uint8 and
 * converted to float32 0..1 batch by batch, which takes a quarter of the memory and of its
 * bandwidth.
 *
 *     position    -1                     the next ed_dataset_next begins an epoch
 *                 0, batch, 2 batch ...  the first row of the next batch
 */
#include "data/dataset.h"
#include "ops/generator.h"
#include "track/graph.h"
#include "tensor/schema_core.h"
#include "tensor/threads.h"
#include <stdio.h>
#include <string.h>

struct ed_dataset {
    ed_object object;
    ed_list *data[2]; /* x, y: contiguous */
    bool pixels;      /* x is uint8, its batches are float32 in 0..1 */
    int64_t rows, batch, position;
    uint64_t seed, epoch;
    bool drop_remainder;
    int64_t *order; /* NULL: not shuffled */
    bool stale;     /* the order must be computed anew before the next batch */
    bool restored;  /* the position is a checkpoint's, and no batch was taken since */
    ed_list *lent[2];
};

static void dataset_destroy(void *object)
{
    ed_dataset *set = object;
    ed_release(set->lent[0]);
    ed_release(set->lent[1]);
    ed_release(set->data[0]);
    ed_release(set->data[1]);
    memory_free(set->order);
    memory_free(set);
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/* The state that the next batches depend on, besides the rows themselves. */
enum { POSITION, EPOCH, SEED, ROWS, SHUFFLED, STATE_WORDS };

static void get_state(const void *self, void *elements)
{
    const ed_dataset *set = self;
    int64_t words[STATE_WORDS] = {
        [POSITION] = set->position, [EPOCH] = (int64_t)set->epoch,   [SEED] = (int64_t)set->seed,
        [ROWS] = set->rows,         [SHUFFLED] = set->order != NULL,
    };
    memcpy(elements, words, sizeof words);
}

static const char *refuses_state(const void *self, const void *elements)
{
    const ed_dataset *set = self;
    const int64_t *words = elements;
    if (words[ROWS] != set->rows) return "it belongs to a dataset with a different number of rows";
    if (words[SHUFFLED] != (set->order != NULL))
        return set->order ? "it belongs to a dataset that is not shuffled, this one is"
                          : "it belongs to a shuffled dataset, this one is not";
    if (words[POSITION] < -1 || words[POSITION] > set->rows) return "its position is out of bounds";
    return NULL;
}

static void set_state(void *self, const void *elements)
{
    ed_dataset *set = self;
    const int64_t *words = elements;
    set->position = words[POSITION];
    set->epoch = (uint64_t)words[EPOCH];
    set->seed = (uint64_t)words[SEED];
    set->stale = set->restored = true;
}

static void dataset_track(void *set, ed_tracker *t)
{
    static const ed_state state = {ED_INT64, STATE_WORDS, get_state, refuses_state, set_state};
    ed_track_state(t, "iterator", set, &state);
}

static const object_class dataset_class = {
    .name = "dataset", .destroy = dataset_destroy, .track = dataset_track};

/* ---- Creation -------------------------------------------------------------------------------- */

static bool check_pixels(const ed_list *x, const ed_dataset_options *options)
{
    const ed_tensor *t = x->items[0];
    if (!options->pixels || (x->size == 1 && t->dtype == ED_UINT8)) return true;
    return x->size > 1
               ? ed_fail(ED_INVALID_ARGUMENT, "dataset_from_lists: pixels need one x, got %lld",
                         (long long)x->size)
               : ed_fail(ED_INVALID_ARGUMENT,
                         "dataset_from_tensors: with pixels, x must be uint8, got %s",
                         text_of_tensor(t).s);
}

/* Whether the tensors have as many rows as the first of x. */
static bool check_rows(const ed_list *x, const ed_list *list, const char *what)
{
    const ed_tensor *first = x->items[0];
    for (int64_t i = 0; i < list->size; i++) {
        const ed_tensor *t = list->items[i];
        if (!t || !first)
            return ed_fail(ED_INVALID_ARGUMENT, "dataset_from_lists: %s %lld is NULL", what,
                           text_nth(i));
        if (t->rank && first->rank && t->shape[0] == first->shape[0]) continue;
        const bool one = list->size == 1 && x->size == 1 && list != x;
        return one ? ed_fail(ED_INVALID_ARGUMENT,
                             "dataset_from_tensors: x and y must have the same number of rows: x "
                             "is %s, y is %s",
                             text_of_tensor(first).s, text_of_tensor(t).s)
                   : ed_fail(ED_INVALID_ARGUMENT,
                             "dataset_from_lists: all tensors must have the same number of rows: "
                             "the first x is %s, %s %lld is %s",
                             text_of_tensor(first).s, what, text_nth(i), text_of_tensor(t).s);
    }
    return true;
}

/* The tensors, contiguous, in a new list; the caller owns the reference. */
static ed_list *contiguous_list(const ed_list *list)
{
    ed_list *copy = list_new(list->size);
    for (int64_t i = 0; copy && i < list->size; i++) {
        const ed_tensor *t = tensor_elements(list->items[i]);
        if (t && (copy->items[i] = tensor_contiguous((ed_tensor *)t))) continue;
        ed_release(copy);
        copy = NULL;
    }
    return copy;
}

ed_dataset *ed_dataset_from_lists_with(ed_list *x, ed_list *y, const ed_dataset_options *options)
{
    if (!(options = CHECKED_OPTIONS("dataset_from_lists", ED_DATASET_OPTIONS, options)))
        return NULL;
    if (!x || !y || !x->size || !y->size)
        return ed_fail(ED_INVALID_ARGUMENT, "dataset_from_lists: %s is %s",
                       x && x->size ? "y" : "x", x && (!x->size || y) ? "empty" : "NULL");
    if (!check_rows(x, x, "x") || !check_rows(x, y, "y") || !check_pixels(x, options)) return NULL;
    ed_dataset *set = object_new(&dataset_class, sizeof *set);
    if (!set) return NULL;
    set->data[0] = contiguous_list(x);
    set->data[1] = set->data[0] ? contiguous_list(y) : NULL;
    set->pixels = options->pixels;
    set->rows = ((const ed_tensor *)x->items[0])->shape[0];
    set->batch = options->batch;
    set->position = -1;
    set->drop_remainder = options->drop_remainder;
    if (options->shuffle) {
        set->order = memory_alloc((size_t)set->rows * sizeof *set->order);
        set->seed = options->seed ? (uint64_t)options->seed : random_seed();
    }
    if (!set->data[1] || (options->shuffle && !set->order)) {
        ed_release(set);
        return NULL;
    }
    return scope_give(set);
}

ed_dataset *ed_dataset_from_tensors_with(ed_tensor *x, ed_tensor *y,
                                         const ed_dataset_options *options)
{
    if (!(options = CHECKED_OPTIONS("dataset_from_tensors", ED_DATASET_OPTIONS, options)))
        return NULL;
    if (!x || !y)
        return ed_fail(ED_INVALID_ARGUMENT, "dataset_from_tensors: %s is NULL", x ? "y" : "x");
    ED_SCOPE;
    ed_list *xs = ed_list_of(x), *ys = ed_list_of(y);
    ed_dataset *set = xs && ys ? ed_dataset_from_lists_with(xs, ys, options) : NULL;
    return set ? ed_keep(set) : NULL;
}

ed_dataset *dataset_apart(const ed_dataset *set)
{
    ed_dataset *apart = object_new(&dataset_class, sizeof *apart);
    if (!apart) return NULL;
    *apart = *set;
    apart->object = (ed_object){.refs = 1, .class = &dataset_class};
    apart->position = -1;
    apart->stale = apart->restored = false;
    for (int i = 0; i < 2; i++) {
        ed_retain(apart->data[i]);
        apart->lent[i] = NULL;
    }
    if (set->order) apart->order = memory_alloc((size_t)set->rows * sizeof *apart->order);
    if (!set->order || apart->order) return scope_give(apart);
    ed_release(apart);
    return NULL;
}

/* ---- Batches --------------------------------------------------------------------------------- */

enum { ROW_WORK = HARD(0, 256 << 10) }; /* bytes; for more, another thread helps */

/* Rows of `size` elements to copy, in that order (NULL: in the present one). */
typedef struct batch_rows {
    char *to;
    const char *from;
    int64_t size, element;
    const int64_t *order;
} batch_rows;

static void copy_rows(int64_t first, int64_t last, int worker, void *user)
{
    const batch_rows *r = user;
    int64_t bytes = r->size * r->element;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        memcpy(r->to + i * bytes, r->from + r->order[i] * bytes, (size_t)bytes);
}

static void to_numbers(float *restrict to, const uint8_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i] / 255;
}

/* The same for uint8 rows that become float32 in 0..1. */
static void copy_pixels(int64_t first, int64_t last, int worker, void *user)
{
    const batch_rows *r = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        to_numbers((float *)r->to + i * r->size,
                   (const uint8_t *)r->from + (r->order ? r->order[i] : i) * r->size, r->size);
}

/* Rows first ... first + count of x or y in the epoch's order; the caller owns the reference. */
static ed_tensor *rows_of(const ed_dataset *set, const ed_tensor *t, bool pixels,
                          const int64_t *order, int64_t first, int64_t count)
{
    int64_t shape[ED_MAX_RANK], size = set->rows ? t->size / set->rows : 0;
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = count;
    if (!order && !pixels) return tensor_view(t, t->rank, shape, t->strides, first * size);

    ed_tensor *batch = tensor_new(pixels ? ED_FLOAT32 : t->dtype, t->rank, shape);
    if (!batch || !batch->size) return batch; /* rows without elements may be very many */
    if (order) order += first;
    int64_t element = (int64_t)dtype_size(t->dtype), start = order ? 0 : first * size * element;
    threads_run(count, 1 + ROW_WORK / (size * element + 1), pixels ? copy_pixels : copy_rows,
                &(batch_rows){batch->data, t->data + start, size, element, order});
    return batch;
}

static void put_in_order(ed_dataset *set)
{
    set->stale = false;
    if (!set->order) return;
    const philox p = philox_from_stateless((int64_t)set->seed, (int64_t)set->epoch);
    philox_shuffle(&p, set->rows, set->order);
}

static void take_back(ed_dataset *set)
{
    for (int i = 0; i < 2; i++) {
        ed_release(set->lent[i]);
        set->lent[i] = NULL;
    }
}

/* The next rows of x (which 0) or y (1), in set->lent. */
static bool lend(ed_dataset *set, int which, int64_t count)
{
    const ed_list *data = set->data[which];
    ed_list *rows = set->lent[which] = list_new(data->size);
    for (int64_t i = 0; rows && i < data->size; i++)
        if (!(rows->items[i] = rows_of(set, data->items[i], set->pixels && !which, set->order,
                                       set->position, count)))
            return false;
    return rows;
}

/* Lends the next batch of what is wanted; false at the end and with an error. */
static bool next_batch(ed_dataset *set, bool x, bool y)
{
    if (ed_failed()) return false;
    take_back(set);
    set->restored = false;
    if (set->position < 0) {
        set->position = 0;
        set->stale = true;
    }
    if (set->stale) put_in_order(set);

    int64_t left = set->rows - set->position, count = left < set->batch ? left : set->batch;
    if (count == 0 || (set->drop_remainder && count < set->batch)) {
        ed_dataset_rewind(set);
        return false;
    }
    if ((x && !lend(set, 0, count)) || (y && !lend(set, 1, count))) {
        take_back(set);
        return false;
    }
    set->position += count;
    return true;
}

/* Whether there is one x and one y. */
static bool is_single(const char *who, const ed_dataset *set)
{
    return (set->data[0]->size == 1 && set->data[1]->size == 1) ||
           ed_fail(ED_INVALID_ARGUMENT,
                   "%s: the dataset has %lld tensors x and %lld y; ed_dataset_next_lists returns "
                   "their batches",
                   who, (long long)set->data[0]->size, (long long)set->data[1]->size);
}

bool ed_dataset_next(ed_dataset *set, ed_tensor **x, ed_tensor **y)
{
    if (x) *x = NULL;
    if (y) *y = NULL;
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_next: dataset is NULL");
    if (ed_failed() || !is_single("dataset_next", set) || !next_batch(set, x, y)) return false;
    if (x) *x = set->lent[0]->items[0];
    if (y) *y = set->lent[1]->items[0];
    return true;
}

bool ed_dataset_next_lists(ed_dataset *set, ed_list **x, ed_list **y)
{
    if (x) *x = NULL;
    if (y) *y = NULL;
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_next_lists: dataset is NULL");
    if (!next_batch(set, x, y)) return false;
    if (x) *x = set->lent[0];
    if (y) *y = set->lent[1];
    return true;
}

bool ed_dataset_rewind(ed_dataset *set)
{
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_rewind: dataset is NULL");
    if (set->position >= 0) set->epoch++;
    set->position = -1;
    set->restored = false;
    return true;
}

bool ed_dataset_begin(ed_dataset *set)
{
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_begin: dataset is NULL");
    return set->restored || ed_dataset_rewind(set);
}

int64_t ed_dataset_rows(const ed_dataset *set)
{
    return set ? set->rows : 0;
}

int64_t ed_dataset_batches(const ed_dataset *set)
{
    if (!set) return 0;
    return set->rows / set->batch + (!set->drop_remainder && set->rows % set->batch);
}

ed_tensor *ed_dataset_x(const ed_dataset *set)
{
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_x: dataset is NULL");
    if (!is_single("dataset_x", set)) return NULL;
    return scope_give(rows_of(set, set->data[0]->items[0], set->pixels, NULL, 0, set->rows));
}

ed_tensor *ed_dataset_y(const ed_dataset *set)
{
    if (!set) return ed_fail(ED_INVALID_ARGUMENT, "dataset_y: dataset is NULL");
    if (!is_single("dataset_y", set)) return NULL;
    return scope_give(rows_of(set, set->data[1]->items[0], false, NULL, 0, set->rows));
}

/* ---- MNIST ----------------------------------------------------------------------------------- */

static ed_tensor *read_part(const char *dir, const char *split, const char *what)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s-%s-ubyte", dir, split, what) >= (int)sizeof path)
        return ed_fail(ED_INVALID_ARGUMENT, "dataset_mnist: dir is too long");
    return ed_read_idx(path);
}

static ed_tensor *labels_of(const ed_tensor *bytes)
{
    ed_tensor *labels = tensor_new(ED_INT32, 1, bytes->shape);
    if (!labels) return NULL;
    for (int64_t i = 0; i < bytes->size; i++)
        ((int32_t *)labels->data)[i] = ((const uint8_t *)bytes->data)[i];
    return scope_give(labels);
}

ed_dataset *ed_dataset_mnist_with(const char *split, const ed_dataset_mnist_options *options)
{
    options = CHECKED_OPTIONS("dataset_mnist", ED_DATASET_MNIST_OPTIONS, options);
    if (!options) return NULL;
    if (!split || !options->dir)
        return ed_fail(ED_INVALID_ARGUMENT, "dataset_mnist: %s is NULL", split ? "dir" : "split");
    bool train = !strcmp(split, "train");
    if (!train && strcmp(split, "test"))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "dataset_mnist: split must be \"train\" or \"test\", got \"%s\"", split);

    ED_SCOPE;
    const char *name = train ? "train" : "t10k";
    ed_tensor *x = read_part(options->dir, name, "images-idx3");
    ed_tensor *y = x ? read_part(options->dir, name, "labels-idx1") : NULL;
    if (!x || !y) return NULL;
    if (x->dtype != ED_UINT8 || x->rank != 3 || y->dtype != ED_UINT8 || y->rank != 1)
        return ed_fail(ED_DATA_LOSS,
                       "dataset_mnist: %s/%s-*: images must be uint8 [n, height, width] and labels "
                       "uint8 [n], got %s and %s",
                       options->dir, name, text_of_tensor(x).s, text_of_tensor(y).s);
    if (!(y = labels_of(y))) return NULL;
    return ed_keep(ed_dataset_from_tensors_with(
        x, y, ED_OPTIONS_FROM(ED_DATASET_BATCHES, options, ed_dataset_options, .pixels = true)));
}
