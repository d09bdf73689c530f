/*
 * Lookups in tables of embeddings. Rows are gathered, so that the gradient of a table is indexed
 * slices (ops/slices.h), and combined by an op of their own.
 */
#include "ops/index.h"
#include "ops/sparse.h"
#include "ops/sparses.h"
#include <math.h>
#include <string.h>

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows of a table, ids.shape + shape[1:], none with a norm above max_norm unless that is 0. */
static ed_tensor *clipped(ed_tensor *rows, int ids_rank, double max_norm)
{
    if (!rows || max_norm <= 0) return rows;
    int64_t axes[ED_MAX_RANK];
    const int rank = ed_rank(rows);
    for (int d = ids_rank; d < rank; d++) axes[d - ids_rank] = d;
    ed_tensor *square =
        ed_reduce_sum_square(rows, .axis = {axes, rank - ids_rank}, .keepdims = true);
    ed_tensor *norm = ed_sqrt(ed_maximum(square, max_norm * max_norm));
    return ed_mul(rows, ed_div(max_norm, norm));
}

/* Which of the tables, whose rows follow one another, has each id; its number there. */
typedef struct shards {
    ed_tensor *ids[2]; /* table, number: int64 [n] */
    int64_t rows;      /* of all tables */
} shards;

static bool find_shards(const char *who, const ed_list *params, const ed_tensor *ids, shards *s)
{
    for (int k = 0; k < 2; k++)
        if (!(s->ids[k] = sparse_integers(ids->size, 0))) return false;
    s->rows = 0;
    for (int64_t p = 0; p < params->size; p++) s->rows += params->items[p]->shape[0];
    const int64_t *at = (const int64_t *)ids->data;
    for (int64_t i = 0; i < ids->size; i++) {
        int64_t rest = at[i], p = 0;
        if (rest < 0 || rest >= s->rows)
            return ed_fail(ED_OUT_OF_RANGE,
                           "%s: id %lld at position %s is out of bounds: it must be in 0..%lld",
                           who, (long long)rest, text_of_element(ids, i).s, (long long)s->rows - 1),
                   false;
        while (rest >= params->items[p]->shape[0]) rest -= params->items[p++]->shape[0];
        sparse_data(s->ids[0])[i] = p;
        sparse_data(s->ids[1])[i] = rest;
    }
    return true;
}

static bool check_params(const char *who, const ed_list *params)
{
    if (!params->size)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: params is an empty list", who), false;
    for (int64_t i = 0; i < params->size; i++) {
        const ed_tensor *x = params->items[i], *first = params->items[0];
        if (!x || !x->rank || x->rank != first->rank ||
            memcmp(x->shape + 1, first->shape + 1, (size_t)(x->rank - 1) * sizeof *x->shape) != 0)
            return ed_fail(
                       ED_INVALID_ARGUMENT,
                       "%s: params must be tables [rows, ...] whose rows have one shape, got %s "
                       "at position %lld",
                       who, x ? text_of_tensor(x).s : "NULL", text_nth(i)),
                   false;
    }
    return true;
}

/* Rows of several tables: those of each, then all in the order of the ids. */
static ed_tensor *rows_of_many(const char *who, ed_list *params, ed_tensor *ids)
{
    const ed_tensor *read = tensor_read(ids);
    ed_tensor *all = read ? ed_contiguous(ed_cast(ids, ED_INT64)) : NULL;
    shards s;
    if (!all || !find_shards(who, params, tensor_read(all), &s)) return NULL;
    ed_list *numbers = ed_dynamic_partition(s.ids[1], s.ids[0], params->size);
    ed_list *places = ed_dynamic_partition(ed_range(0, (double)ed_size(all), .dtype = ED_INT64),
                                           s.ids[0], params->size);
    ed_tensor **rows = ed_scope_alloc((size_t)params->size * sizeof *rows);
    ed_tensor **at = ed_scope_alloc((size_t)params->size * sizeof *at);
    if (!numbers || !places || !rows || !at) return NULL;
    for (int64_t p = 0; p < params->size; p++) {
        rows[p] = ed_gather(params->items[p], ed_list_get(numbers, p));
        at[p] = ed_list_get(places, p);
    }
    ed_tensor *order = ed_invert_permutation(ed_concat(ed_list_make(at, params->size)));
    ed_tensor *found = ed_gather(ed_concat(ed_list_make(rows, params->size)), order);
    int64_t shape[2 * ED_MAX_RANK];
    const int rank = read->rank, rest = params->items[0]->rank - 1;
    if (!found) return NULL;
    memcpy(shape, read->shape, (size_t)rank * sizeof *shape);
    memcpy(shape + rank, params->items[0]->shape + 1, (size_t)rest * sizeof *shape);
    return ed_reshape(found, (ed_ints){shape, rank + rest});
}

static ed_tensor *look_up(const char *who, ed_list *params, ed_tensor *ids, double max_norm)
{
    if (!ids || !check_params(who, params)) return NULL;
    if (!(ED_SET_INDEX & 1u << ids->dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "%s: ids must be int32 or int64, got %s", who,
                       text_of_tensor(ids).s);
    ed_tensor *rows =
        params->size == 1 ? ed_gather(params->items[0], ids) : rows_of_many(who, params, ids);
    return clipped(rows, ed_rank(ids), max_norm);
}

ed_tensor *ed_embedding_lookup_list(ed_list *params, ed_tensor *ids,
                                    const ed_embedding_lookup_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("embedding_lookup", params, ids) ||
        !(options = CHECKED_OPTIONS("embedding_lookup", ED_EMBEDDING_LOOKUP_OPTIONS, options)))
        return NULL;
    return ed_keep(look_up("embedding_lookup", params, ids, options->max_norm));
}

ed_tensor *ed_embedding_lookup_tensor(ed_tensor *params, ed_tensor *ids,
                                      const ed_embedding_lookup_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("embedding_lookup", params, ids)) return NULL;
    ed_list *one = ed_list_of(params);
    return one ? ed_keep(ed_embedding_lookup_list(one, ids, options)) : NULL;
}

/* ---- Combining ------------------------------------------------------------------------------- */

#define COMBINE_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_rows, -1, ED_AT_LEAST(0), "of the result")                                   \
    FIELD(T, CHOICE, combiner, "mean", ED_ONE_OF("sum", "mean", "sqrtn"), "of the rows of an id")
ED_OPTIONS(combine_attrs, COMBINE_ATTRS);

/* [n] as [n, 1, ...], to broadcast against x. */
static ed_tensor *upright(ed_tensor *x, ed_tensor *like)
{
    int64_t shape[ED_MAX_RANK];
    for (int d = 0; d < ed_rank(like); d++) shape[d] = d ? 1 : ed_size(x);
    return ed_reshape(x, (ed_ints){shape, ed_rank(like)});
}

static bool combine_compose(ed_call *call)
{
    const combine_attrs *o = call->attrs;
    ed_tensor *x = call->inputs[0], *ids = call->inputs[1], *w = call->inputs[2];
    const int64_t n = ed_rank(x) ? ed_shape(x).values[0] : -1;
    if (ed_rank(ids) != 1 || ed_rank(w) != 1 || ed_size(ids) != n || ed_size(w) != n)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must be [n, ...], ids and weights [n], got %s, %s and %s",
                            text_of_tensor(tensor_value(x)).s, text_of_tensor(tensor_value(ids)).s,
                            text_of_tensor(tensor_value(w)).s);
    ed_tensor *sum = ed_unsorted_segment_sum(ed_mul(x, upright(w, x)), ids, o->num_rows);
    if (sum && strcmp(o->combiner, "mean") == 0) {
        ed_tensor *total = ed_unsorted_segment_sum(w, ids, o->num_rows);
        sum = ed_div_no_nan(sum, upright(total, sum));
    } else if (sum && strcmp(o->combiner, "sqrtn") == 0) {
        ed_tensor *total = ed_unsorted_segment_sum(ed_square(w), ids, o->num_rows);
        sum = ed_div_no_nan(sum, upright(ed_sqrt(total), sum));
    }
    return ed_call_result(call, 0, sum);
}

static bool combine_reference(const ed_call *call)
{
    const combine_attrs *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const double *at = (const double *)call->inputs[1]->data;
    const double *w = (const double *)call->inputs[2]->data;
    const int64_t n = x->shape[0], width = index_product(x->shape, 1, x->rank);
    for (int64_t i = 0; i < y->size; i++) {
        double sum = 0, weight = 0, square = 0;
        for (int64_t k = 0; k < n; k++) {
            if (at[k] != (double)(i / width)) continue;
            sum += w[k] * ((const double *)x->data)[k * width + i % width];
            weight += w[k];
            square += w[k] * w[k];
        }
        const double under = *o->combiner == 'm'     ? weight
                             : o->combiner[1] == 'q' ? sqrt(square)
                                                     : 1;
        ((double *)y->data)[i] = under == 0 ? 0 : sum / under;
    }
    return true;
}

#define COMBINE(...) ED_ATTRS(COMBINE_ATTRS, combine_attrs, __VA_ARGS__)
#define COMBINED(name)                                                                             \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(0, 3, 5), ED_SAMPLE_IN(0.5, 2, 5)},     \
        .attrs = COMBINE(.num_rows = 6, .combiner = name)                                          \
    }

ED_OP(embedding_combine) = {
    .name = "embedding_combine",
    .doc = "rows with the same id combined by their weights",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"ids", ED_SET_INDEX}, {"weights", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_INTERNAL,
    ED_OP_ATTRS(COMBINE_ATTRS, combine_attrs),
    .compose = combine_compose,
    .reference = combine_reference,
    .samples = ED_SAMPLES(COMBINED("sum"), COMBINED("mean"), COMBINED("sqrtn"),
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4), ED_SAMPLE_IN(0, 2, 4),
                                      ED_SAMPLE_IN(0.5, 2, 4)},
                           .attrs = COMBINE(.num_rows = 3)}),
};

/* ---- Lookups of sparse ids ------------------------------------------------------------------- */

ED_SCHEMA(lookup, ED_EMBEDDING_LOOKUP_SPARSE_OPTIONS, ed_embedding_lookup_sparse_options);
ED_SCHEMA(safe_lookup, ED_SAFE_EMBEDDING_LOOKUP_SPARSE_OPTIONS,
          ed_safe_embedding_lookup_sparse_options);

/* The first indices of all entries, int64 [n]. */
static ed_tensor *row_of_entries(const ed_sparse_tensor *x)
{
    ed_tensor *rows = sparse_integers(x->indices->shape[0], 0);
    for (int64_t i = 0; rows && i < rows->size; i++)
        sparse_data(rows)[i] = sparse_at(x->indices, i, 0);
    return rows;
}

static ed_tensor *combined(const char *who, ed_list *params, const ed_sparse_tensor *ids,
                           const ed_sparse_tensor *weights,
                           const ed_embedding_lookup_sparse_options *options)
{
    if (ids->rank < 2)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: ids must have rank >= 2, got a dense shape %s",
                       who, text_of_ints(ids->shape, ids->rank).s);
    if (weights && !sparse_check_alike(who, ids, weights)) return NULL;
    ed_tensor *x = look_up(who, params, ids->values, options->max_norm);
    ed_tensor *rows = x ? row_of_entries(ids) : NULL;
    if (!rows) return NULL;
    ed_tensor *w =
        weights ? weights->values : ed_ones(ED_SHAPE(rows->size), .dtype = ed_dtype_of(x));
    return CALL_OP(embedding_combine,
                   COMBINE(.num_rows = ids->shape[0], .combiner = options->combiner), x, rows, w);
}

ed_tensor *ed_embedding_lookup_sparse_list(ed_list *params, ed_sparse_tensor *ids,
                                           ed_sparse_tensor *weights,
                                           const ed_embedding_lookup_sparse_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("embedding_lookup_sparse", params, ids) ||
        !(options =
              schema_options("embedding_lookup_sparse", lookup_fields, &lookup_defaults, options)))
        return NULL;
    return ed_keep(combined("embedding_lookup_sparse", params, ids, weights, options));
}

ed_tensor *ed_embedding_lookup_sparse_tensor(ed_tensor *params, ed_sparse_tensor *ids,
                                             ed_sparse_tensor *weights,
                                             const ed_embedding_lookup_sparse_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("embedding_lookup_sparse", params, ids)) return NULL;
    ed_list *one = ed_list_of(params);
    return one ? ed_keep(ed_embedding_lookup_sparse_list(one, ids, weights, options)) : NULL;
}

/* ---- Lookups of ids with gaps ---------------------------------------------------------------- */

/* ids or weights as a sparse matrix: what lies before the last axis becomes one. */
static ed_sparse_tensor *flat(ed_sparse_tensor *x)
{
    if (!x || x->rank <= 2) return x;
    const int64_t columns = x->shape[x->rank - 1];
    return ed_sparse_reshape(x, ED_SHAPE(index_product(x->shape, 0, x->rank - 1), columns));
}

/* Leaves out the entries that do not count, in both. */
static bool prune(const char *who, ed_sparse_tensor **ids, ed_sparse_tensor **weights,
                  bool by_weight)
{
    const ed_tensor *all = *ids ? tensor_read((*ids)->values) : NULL;
    const int64_t n = all ? all->size : 0;
    const void *id = all ? ed_data(all) : NULL, *w = NULL;
    bool *kept = ed_scope_alloc((size_t)n + 1);
    if (!id || !kept) return false;
    if (*weights &&
        (!sparse_check_alike(who, *ids, *weights) || !(w = ed_data((*weights)->values))))
        return false;
    for (int64_t i = 0; i < n; i++)
        kept[i] = dtype_load(all->dtype, id, i) >= 0 &&
                  (!w || !by_weight || dtype_load((*weights)->values->dtype, w, i) > 0);
    *ids = sparse_chosen(who, *ids, kept);
    if (*weights) *weights = sparse_chosen(who, *weights, kept);
    return *ids && (!w || *weights);
}

/* y, where rows of ids that are empty get the row of the default id. */
static ed_tensor *with_default(const char *who, ed_list *params, const ed_sparse_tensor *ids,
                               ed_tensor *y, int64_t default_id, double max_norm)
{
    ed_tensor *row = look_up(who, params, ed_scalar(default_id, .dtype = ED_INT64), max_norm);
    ed_tensor *rows = row && y ? row_of_entries(ids) : NULL;
    ed_tensor *full = scope_give(tensor_new(ED_BOOL, 1, ids->shape));
    if (!rows || !full) return NULL;
    memset(full->data, 0, (size_t)full->size);
    for (int64_t i = 0; i < rows->size; i++) ((bool *)full->data)[sparse_data(rows)[i]] = true;
    return ed_where(upright(full, y), y, row);
}

/* [rows, ...] as the shape of ids but for its last axis says. */
static ed_tensor *unflat(ed_tensor *y, const ed_sparse_tensor *ids)
{
    if (!y || ids->rank == 2) return y;
    int64_t shape[2 * ED_MAX_RANK];
    const int rest = ed_rank(y) - 1;
    memcpy(shape, ids->shape, (size_t)(ids->rank - 1) * sizeof *shape);
    memcpy(shape + ids->rank - 1, ed_shape(y).values + 1, (size_t)rest * sizeof *shape);
    return ed_reshape(y, (ed_ints){shape, ids->rank - 1 + rest});
}

ed_tensor *
ed_safe_embedding_lookup_sparse_list(ed_list *params, ed_sparse_tensor *ids,
                                     ed_sparse_tensor *weights,
                                     const ed_safe_embedding_lookup_sparse_options *options)
{
    static const char who[] = "safe_embedding_lookup_sparse";
    ED_SCOPE;
    if (NULL_GIVEN(who, params, ids) ||
        !(options = schema_options(who, safe_lookup_fields, &safe_lookup_defaults, options)))
        return NULL;
    if (!(ED_SET_INDEX & 1u << ids->values->dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "%s: ids must be int32 or int64, got %s", who,
                       text_of_tensor(ids->values).s);
    ed_sparse_tensor *matrix = flat(ids), *heavy = flat(weights);
    const bool by_weight = strcmp(options->combiner, "sum") != 0;
    if (!matrix || (weights && !heavy) || !prune(who, &matrix, &heavy, by_weight)) return NULL;
    const ed_embedding_lookup_sparse_options o =
        ED_COMPLETE(ED_EMBEDDING_LOOKUP_SPARSE_OPTIONS, , .combiner = options->combiner,
                    .max_norm = options->max_norm);
    ed_tensor *y = combined(who, params, matrix, heavy, &o);
    if (options->default_id >= 0)
        y = with_default(who, params, matrix, y, options->default_id, options->max_norm);
    return ed_keep(unflat(y, ids));
}

ed_tensor *
ed_safe_embedding_lookup_sparse_tensor(ed_tensor *params, ed_sparse_tensor *ids,
                                       ed_sparse_tensor *weights,
                                       const ed_safe_embedding_lookup_sparse_options *options)
{
    ED_SCOPE;
    if (NULL_GIVEN("safe_embedding_lookup_sparse", params, ids)) return NULL;
    ed_list *one = ed_list_of(params);
    return one ? ed_keep(ed_safe_embedding_lookup_sparse_list(one, ids, weights, options)) : NULL;
}
