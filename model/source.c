#include "model/model_core.h"
#include "data/dataset.h"
#include "ops/generator.h"
#include "ops/random_attrs.h"
#include <string.h>

/* Rows of tensors are taken by a slice, or, in a random order, by a gather; a dataset does that
 * itself. */

static bool is_tensor(const object_class *class)
{
    return !strcmp(class->name, "tensor") || class == &tensor_variable_class;
}

bool source_tensor(const char *who, const char *what, void *data, ed_tensor **to)
{
    *to = data;
    if (!data || is_tensor(((const ed_object *)data)->class)) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be a tensor, got a %s", who, what,
                   ((const ed_object *)data)->class->name);
}

/* A list of x itself, or of its entries; NULL, with an error that begins with `who`. */
static ed_list *as_list(const char *who, const char *what, void *data)
{
    const object_class *class = ((const ed_object *)data)->class;
    if (class == &tensor_list_class) return data;
    if (is_tensor(class)) return ed_list_of_one(data);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: %s must be a tensor, a list of tensors or a dataset, got a %s", who, what,
                   class->name);
}

/* Whether all have that number of rows; *rows -1: not known yet. */
static bool same_rows(const char *who, const char *what, const ed_list *list, int64_t *rows)
{
    if (!list->size) return ed_fail(ED_INVALID_ARGUMENT, "%s: %s is an empty list", who, what);
    for (int64_t i = 0; i < list->size; i++) {
        const ed_tensor *t = list->items[i];
        if (!t || !t->rank)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: %s %lld must be a tensor of rows, got %s", who,
                           what, text_nth(i), t ? "a scalar" : "NULL");
        if (!tensor_elements(t)) return false;
        if (*rows < 0) *rows = t->shape[0];
        if (t->shape[0] != *rows)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: %s %lld has %lld rows, x has %lld", who, what,
                           text_nth(i), (long long)t->shape[0], (long long)*rows);
    }
    return true;
}

bool source_is_dataset(const void *data)
{
    return !strcmp(((const ed_object *)data)->class->name, "dataset");
}

static bool take_tensors(source *s, const char *who, void *x, void *y, void *sample_weight)
{
    int64_t rows = -1;
    if (!(s->x = as_list(who, "x", x)) || !same_rows(who, "x", s->x, &rows)) return false;
    if (y && (!(s->y = as_list(who, "y", y)) || !same_rows(who, "y", s->y, &rows))) return false;
    if (!source_tensor(who, "sample_weight", sample_weight, &s->sample_weight)) return false;
    if (s->sample_weight && (s->sample_weight->rank < 1 || s->sample_weight->shape[0] != rows))
        return ed_fail(ED_INVALID_ARGUMENT, "%s: sample_weight must be [%lld], got %s", who,
                       (long long)rows, text_of_tensor(s->sample_weight).s);
    s->rows = rows;
    return true;
}

bool source_begin(source *s, const char *who, void *x, void *y, void *sample_weight,
                  int64_t batch_size, int64_t steps)
{
    *s = (source){.batch = batch_size ? batch_size : 32};
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "%s: x is NULL", who);
    if (source_is_dataset(x)) {
        if (y || sample_weight)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: a dataset has its own y; %s must be NULL", who,
                           y ? "y" : "sample_weight");
        if (batch_size)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "%s: a dataset has its own batches; batch_size must be left out", who);
        s->dataset = s->given = x;
        s->steps = ed_dataset_batches(x);
    } else {
        if (!take_tensors(s, who, x, y, sample_weight)) return false;
        s->steps = s->rows / s->batch + (s->rows % s->batch > 0);
    }
    if (steps && steps < s->steps) s->steps = steps;
    if (!s->steps) return ed_fail(ED_INVALID_ARGUMENT, "%s: there are no rows", who);
    return true;
}

bool source_apart(source *s)
{
    return !s->given || (s->dataset = dataset_apart(s->given));
}

void source_end(source *s)
{
    ed_release(s->order);
    s->order = NULL;
}

static bool take_order(source *s)
{
    ED_SCOPE;
    s->order = ed_retain(ed_call_op(
        &ed_op_random_permutation, NULL, 0,
        ED_ATTRS(PERMUTATION_ATTRS, permutation_attrs, .count = s->rows, .draw = s->draw)));
    return s->order != NULL;
}

bool source_epoch(source *s)
{
    if (s->dataset)
        return s->resumed ? ed_dataset_rewind(s->dataset) : ed_dataset_begin(s->dataset);
    source_end(s);
    if (!s->shuffle) return true;
    s->draw.drawn = false;
    random_draw(&s->draw, s->rows);
    return take_order(s);
}

bool source_finish(const source *s)
{
    return !s->dataset || ed_dataset_rewind(s->dataset);
}

bool source_resume(source *s)
{
    if (s->dataset) return ed_dataset_begin(s->dataset);
    source_end(s);
    if (!s->shuffle) return true;
    s->draw.drawn = true;
    return take_order(s);
}

static ed_tensor *narrow(ed_tensor *x, int64_t first, int64_t n)
{
    return ed_slice(x, .begin = ED_INTS(first), .end = ED_INTS(first + n));
}

/* Rows first..first + n - 1 of the epoch's order. */
static ed_tensor *take_rows(const source *s, ed_tensor *x, int64_t first, int64_t n)
{
    if (s->order) return ed_gather(x, narrow(s->order, first, n), .axis = 0);
    return narrow(x, s->first + first, n);
}

static ed_list *take_all(const source *s, const ed_list *list, int64_t first, int64_t n)
{
    ed_list *taken = list ? scope_give(list_new(list->size)) : NULL;
    for (int64_t i = 0; taken && i < list->size; i++)
        if (!(taken->items[i] = ed_retain(take_rows(s, list->items[i], first, n)))) return NULL;
    return taken;
}

static bool dataset_batch(const source *s, batch *b)
{
    ed_list *x, *y;
    if (!ed_dataset_next_lists(s->dataset, &x, &y)) return !ed_failed();
    b->x = ed_list_make(x->items, x->size);
    b->y = ed_list_make(y->items, y->size);
    b->rows = ((const ed_tensor *)x->items[0])->shape[0];
    return b->x && b->y;
}

bool source_batch(const source *s, int64_t step, batch *b)
{
    *b = (batch){.x = NULL};
    if (s->dataset) return dataset_batch(s, b);
    const int64_t first = step * s->batch, left = s->rows - first;
    b->rows = left < s->batch ? left : s->batch;
    b->x = take_all(s, s->x, first, b->rows);
    b->y = take_all(s, s->y, first, b->rows);
    if (s->sample_weight) b->sample_weight = take_rows(s, s->sample_weight, first, b->rows);
    return b->x && (!s->y || b->y) && (!s->sample_weight || b->sample_weight);
}
