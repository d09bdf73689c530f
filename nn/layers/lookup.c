#include "nn/layers/categories.h"
#include "ops/fingerprint.h"
#include "ops/ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * integer_lookup: a table of integers, `keys` that ascend and a value for each. Without invert the
 * keys are the vocabulary and the values its numbers, with invert the numbers are the keys.
 */

enum { KEYS, VALUES, IDF_WEIGHTS, PARTS };

typedef struct table {
    ed_tensor *parts[PARTS]; /* of options; retained; NULL: they are weights */
    int64_t key[2];          /* the salt */
} table;

/* A token and what is known of it. */
typedef struct token {
    int64_t value, number, count, documents;
} token;

static bool weighted(const ed_layer_integer_lookup_options *o)
{
    return !strcmp(o->output_mode, "tf_idf");
}

static int n_parts(const ed_layer_integer_lookup_options *o)
{
    return weighted(o) ? PARTS : IDF_WEIGHTS;
}

/* The numbers of what is not in the vocabulary, and of its first token, begin here. */
static int64_t first_oov(const ed_layer_integer_lookup_options *o)
{
    return o->mask_token.values && !strcmp(o->output_mode, "int");
}

static int64_t first_token(const ed_layer_integer_lookup_options *o)
{
    return first_oov(o) + o->num_oov_indices;
}

static ed_tensor *table_part(const ed_layer *layer, int i)
{
    const table *t = ed_layer_state((ed_layer *)layer);
    return t->parts[i] ? t->parts[i] : layer->weights[i];
}

/* Whether the weights are there, or the options took their place. */
static bool has_parts(ed_layer *layer)
{
    const learned_name names[PARTS] = {
        {"keys", ED_INT64}, {"values", ED_INT64}, {"idf_weights", categories_dtype(layer)}};
    return ((const table *)ed_layer_state(layer))->parts[KEYS] ||
           learned_weights(layer, names, n_parts(layer_options(layer)), "vocabulary is");
}

static bool set_parts(ed_layer *layer, ed_tensor *const *parts)
{
    static const char *const names[PARTS] = {"keys", "values", "idf_weights"};
    return learned_set(layer, names, parts, n_parts(layer_options(layer)));
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const int64_t x = ((const token *)a)->value, y = ((const token *)b)->value;
    return (x > y) - (x < y);
}

/* Keys and values from tokens that have their numbers. */
static bool make_table(const ed_layer_integer_lookup_options *o, token *tokens, int64_t n,
                       ed_tensor **parts)
{
    int64_t *keys = ed_scope_alloc((size_t)n * sizeof *keys + 1),
            *values = ed_scope_alloc((size_t)n * sizeof *values + 1);
    if (!keys || !values) return false;
    if (!o->invert) qsort(tokens, (size_t)n, sizeof *tokens, by_value);
    for (int64_t i = 0; i < n; i++) {
        keys[i] = o->invert ? tokens[i].number : tokens[i].value;
        values[i] = o->invert ? tokens[i].value : tokens[i].number;
    }
    return (parts[KEYS] = ed_constant_of(ED_INT64, keys, ED_SHAPE(n))) &&
           (parts[VALUES] = ed_constant_of(ED_INT64, values, ED_SHAPE(n)));
}

/* The weights of all numbers: `front` times their mean, they, and zeros up to max_tokens, if so
 * wide results are wanted. */
static ed_tensor *make_weights(const ed_layer_integer_lookup_options *o, ed_dtype dtype,
                               int64_t front, const double *given, int64_t n)
{
    const int64_t width = o->pad_to_max_tokens ? o->max_tokens : front + n;
    double *all = ed_scope_alloc((size_t)width * sizeof *all + 1), sum = 0;
    if (!all) return NULL;
    for (int64_t i = 0; i < n; i++) sum += given[i];
    for (int64_t i = 0; i < width; i++)
        all[i] = i < front ? sum / (double)n : i < front + n ? given[i - front] : 0;
    ed_tensor *t = ed_constant_of(ED_FLOAT64, all, ED_SHAPE(width));
    return t ? ed_cast(t, dtype) : NULL;
}

/* ---- A vocabulary that is given -------------------------------------------------------------- */

/* How many special tokens a vocabulary begins with: all, as ed_layer_get_vocabulary gives them, or
 * none. */
static int64_t special_tokens(const ed_layer_integer_lookup_options *o)
{
    const int64_t first = first_token(o);
    if (o->vocabulary.count < first) return 0;
    for (int64_t i = 0; i < first; i++) {
        const int64_t special = i < first_oov(o) ? o->mask_token.values[0] : o->oov_token;
        if (o->vocabulary.values[i] != special) return 0;
    }
    return first;
}

static bool check_tokens(const ed_layer *layer, const token *ascending, int64_t n)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = ascending[i].value;
        if (i && value == ascending[i - 1].value)
            return layer_fail(layer, ED_INVALID_ARGUMENT, "vocabulary: %lld comes twice",
                              (long long)value);
        if ((o->mask_token.values && value == o->mask_token.values[0]) ||
            (o->invert && value == o->oov_token))
            return layer_fail(layer, ED_INVALID_ARGUMENT,
                              "vocabulary: the %s %lld must not be in it, but for all mask and "
                              "oov tokens at its beginning",
                              o->invert && value == o->oov_token ? "oov_token" : "mask_token",
                              (long long)value);
    }
    if (o->max_tokens && first_token(o) + n > o->max_tokens)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "vocabulary: with mask and oov tokens there are %lld, more than "
                          "max_tokens = %lld",
                          (long long)(first_token(o) + n), (long long)o->max_tokens);
    return true;
}

static bool take_vocabulary(ed_layer *layer)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    table *t = ed_layer_state(layer);
    ed_tensor *parts[PARTS] = {NULL};
    const int64_t special = special_tokens(o), n = o->vocabulary.count - special;
    token *tokens = ed_scope_alloc((size_t)n * 2 * sizeof *tokens + 1), *sorted = tokens + n;
    if (!tokens) return false;
    for (int64_t i = 0; i < n; i++)
        tokens[i] = (token){o->vocabulary.values[special + i], first_token(o) + i, 0, 0};
    memcpy(sorted, tokens, (size_t)n * sizeof *tokens);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    if (!check_tokens(layer, sorted, n) || !make_table(o, tokens, n, parts)) return false;
    if (weighted(o)) {
        const ed_floats given = o->idf_weights;
        parts[IDF_WEIGHTS] = make_weights(o, categories_dtype(layer), first_token(o) - special,
                                          given.values, given.count);
        if (!parts[IDF_WEIGHTS]) return false;
    }
    for (int i = 0; i < n_parts(o); i++) t->parts[i] = ed_retain(parts[i]);
    return true;
}

static bool integer_lookup_init(ed_layer *layer)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    const bool given = o->vocabulary.values, farmhash = !strcmp(o->oov_method, "farmhash");
    const char *wrong = NULL;
    if (o->max_tokens == 1) wrong = "max_tokens must be greater than 1";
    if (o->pad_to_max_tokens && !o->max_tokens) wrong = "pad_to_max_tokens needs max_tokens";
    if (o->max_tokens && o->max_tokens <= first_token(o))
        wrong = "max_tokens must be greater than the number of mask and oov tokens";
    if (o->invert && strcmp(o->output_mode, "int") != 0) wrong = "invert needs output_mode \"int\"";
    if (o->salt.values && !farmhash) wrong = "salt needs oov_method \"farmhash\"";
    if (given && !o->vocabulary.count) wrong = "vocabulary must not be empty";
    if (o->idf_weights.values && !weighted(o)) wrong = "idf_weights need output_mode \"tf_idf\"";
    if (weighted(o) && given != (o->idf_weights.values != NULL))
        wrong = "vocabulary and idf_weights are given together";
    if (weighted(o) && given && o->vocabulary.count != o->idf_weights.count)
        wrong = "idf_weights must be as many as the vocabulary has integers";
    if (wrong) return layer_fail(layer, ED_INVALID_ARGUMENT, "%s", wrong);
    if (!categories_one(layer, "mask_token", o->mask_token)) return false;
    if (!categories_salt(layer, o->salt, ((table *)ed_layer_state(layer))->key)) return false;
    return !given || take_vocabulary(layer);
}

static void integer_lookup_destroy(ed_layer *layer)
{
    table *t = ed_layer_state(layer);
    for (int i = 0; i < PARTS; i++) ed_release(t->parts[i]);
}

/* ---- A vocabulary of data -------------------------------------------------------------------- */

/* The more frequent first, then the greater. */
static int by_frequency(const void *a, const void *b)
{
    const token *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->value < y->value ? 1 : -1;
}

/* In how many of the rows each token is; `places` are the tokens of the elements. */
static bool count_documents(token *tokens, int64_t n, const int64_t *places, int64_t rows,
                            int64_t width)
{
    int64_t *last = ed_scope_alloc((size_t)n * sizeof *last + 1);
    if (!last) return false;
    for (int64_t i = 0; i < n; i++) last[i] = -1;
    for (int64_t i = 0; i < rows * width; i++) {
        if (last[places[i]] == i / width) continue;
        last[places[i]] = i / width;
        tokens[places[i]].documents++;
    }
    return true;
}

/* The tokens of data, but for special ones; NULL on failure. */
static token *count_tokens(ed_layer *layer, ed_tensor *data, int64_t *count)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    ed_tensor *places, *counts, *x = ed_reshape(ed_cast(data, ED_INT64), ED_SHAPE(-1));
    ed_tensor *values = x ? ed_unique(x, &places, &counts) : NULL;
    if (!values) return NULL;
    const int64_t n = values->size, rows = data->rank ? data->shape[0] : 1;
    token *tokens = ed_scope_alloc((size_t)n * sizeof *tokens + 1);
    if (!tokens) return NULL;
    for (int64_t i = 0; i < n; i++)
        tokens[i] = (token){.value = ((const int64_t *)ed_data(values))[i],
                            .count = ((const int64_t *)ed_data(counts))[i]};
    if (!count_documents(tokens, n, ed_data(places), rows, rows ? x->size / rows : 0)) return NULL;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool masks = o->mask_token.values && tokens[i].value == o->mask_token.values[0];
        if (!masks && tokens[i].value != o->oov_token) tokens[(*count)++] = tokens[i];
    }
    qsort(tokens, (size_t)*count, sizeof *tokens, by_frequency);
    return tokens;
}

static bool integer_lookup_adapt(ed_layer *layer, ed_tensor *data)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    const ed_dtype dtype = categories_dtype(layer);
    ed_tensor *parts[PARTS] = {NULL};
    int64_t n;
    if (o->vocabulary.values)
        return layer_fail(layer, ED_FAILED_PRECONDITION,
                          "the vocabulary was given; a layer without it can be adapted");
    if (data->size == 0 || data->dtype == ED_BOOL)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the data must be integers, got %s",
                          text_of_tensor(data).s);
    token *tokens = count_tokens(layer, data, &n);
    if (!tokens) return false;
    if (o->max_tokens && n > o->max_tokens - first_token(o)) n = o->max_tokens - first_token(o);
    double *weights = ed_scope_alloc((size_t)n * sizeof *weights + 1);
    if (!weights) return false;
    const double documents = data->rank ? (double)data->shape[0] : 1;
    for (int64_t i = 0; i < n; i++) {
        tokens[i].number = first_token(o) + i;
        weights[i] = log(1 + documents / (1 + (double)tokens[i].documents));
    }
    if (weighted(o) && !(parts[IDF_WEIGHTS] = make_weights(o, dtype, first_token(o), weights, n)))
        return false;
    return make_table(o, tokens, n, parts) && set_parts(layer, parts);
}

ed_tensor *ed_layer_get_vocabulary(ed_layer *layer)
{
    if (NULL_GIVEN("layer_get_vocabulary", layer)) return NULL;
    if (layer->class->adapt != integer_lookup_adapt)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "a layer of this kind has no vocabulary");
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    ED_SCOPE;
    if (!has_parts(layer)) return NULL;
    const ed_tensor *tokens = tensor_read(table_part(layer, o->invert ? VALUES : KEYS)),
                    *numbers = tensor_read(table_part(layer, o->invert ? KEYS : VALUES));
    const int64_t n = tokens->size, size = first_token(o) + n;
    int64_t *all = ed_scope_alloc((size_t)size * sizeof *all + 1);
    if (!all) return NULL;
    for (int64_t i = 0; i < first_token(o); i++)
        all[i] = i < first_oov(o) ? o->mask_token.values[0] : o->oov_token;
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = ((const int64_t *)numbers->data)[i];
        if (number >= first_token(o) && number < size)
            all[number] = ((const int64_t *)tokens->data)[i];
    }
    return ed_keep(ed_constant_of(ED_INT64, all, ED_SHAPE(size)));
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool integer_lookup_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    return has_parts(layer);
}

/* The values of x in the table, `otherwise` where it is no key; *found: where it is one. */
static ed_tensor *looked_up(const ed_layer *layer, ed_tensor *x, ed_tensor *otherwise,
                            ed_tensor **found)
{
    ed_tensor *keys = table_part(layer, KEYS);
    if (ed_size(keys) == 0) {
        *found = ed_not_equal(x, x);
        return otherwise;
    }
    ed_tensor *at = ed_searchsorted(keys, x);
    if (!at || !(at = ed_minimum(at, ed_size(keys) - 1))) return NULL;
    *found = ed_equal(ed_gather(keys, at), x);
    return *found ? ed_where(*found, ed_gather(table_part(layer, VALUES), at), otherwise) : NULL;
}

/* The numbers of integers that are not in the vocabulary. */
static ed_tensor *oov_numbers(const ed_layer *layer, ed_tensor *x)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    const table *t = ed_layer_state((ed_layer *)layer);
    ed_tensor *y;
    if (o->num_oov_indices <= 1)
        y = ed_zeros_like(x);
    else if (!strcmp(o->oov_method, "floormod"))
        y = ed_floor_mod(x, o->num_oov_indices);
    else
        y = fingerprint_buckets(x, o->num_oov_indices,
                                (ed_ints){o->salt.values ? t->key : NULL, 2});
    return y ? ed_add(y, first_oov(o)) : NULL;
}

/* Without numbers for them, integers that are not in the vocabulary are an error. */
static bool all_found(const ed_layer *layer, const ed_tensor *x, ed_tensor *found)
{
    if (found->flags & TENSOR_HOLLOW) return true;
    const bool *is = ed_data(found);
    const ed_tensor *values = is ? ed_contiguous((ed_tensor *)x) : NULL;
    if (!values) return false;
    for (int64_t i = 0; i < found->size; i++)
        if (!is[i])
            return layer_fail(layer, ED_OUT_OF_RANGE,
                              "%lld is not in the vocabulary; num_oov_indices = 1 gives such "
                              "integers a number",
                              (long long)((const int64_t *)values->data)[i]);
    return true;
}

static ed_tensor *numbers_of(const ed_layer *layer, ed_tensor *x)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    ed_tensor *found, *y = looked_up(layer, x, oov_numbers(layer, x), &found);
    ed_tensor *is_mask = NULL;
    if (!y || !found) return NULL;
    if (o->mask_token.values) {
        if (!(is_mask = ed_equal(x, o->mask_token.values[0]))) return NULL;
        y = ed_where(is_mask, strcmp(o->output_mode, "int") ? -1 : 0, y);
        if (!(found = ed_logical_or(found, is_mask))) return NULL;
    }
    return o->num_oov_indices || all_found(layer, x, found) ? y : NULL;
}

static ed_tensor *integers_of(const ed_layer *layer, ed_tensor *x)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    ed_tensor *found, *y = looked_up(layer, x, ed_add(ed_zeros_like(x), o->oov_token), &found);
    if (!y || !o->mask_token.values) return y;
    return ed_where(ed_equal(x, 0), o->mask_token.values[0], y);
}

static bool integer_lookup_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_integer_lookup_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (x->dtype == ED_BOOL)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must be integers, got %s",
                          text_of_tensor(x).s);
    if (!(x = ed_cast(ed_stop_gradient(x), ED_INT64))) return false;
    ed_tensor *y = o->invert ? integers_of(layer, x) : numbers_of(layer, x);
    if (!y || !strcmp(o->output_mode, "int")) return ed_layer_return(call, y);
    const int64_t depth =
        o->pad_to_max_tokens ? o->max_tokens : first_token(o) + ed_size(table_part(layer, KEYS));
    y = categories_encoded(weighted(o) ? "count" : o->output_mode, y, depth, NULL,
                           categories_dtype(layer));
    if (y && weighted(o)) y = ed_mul(y, ed_cast(table_part(layer, IDF_WEIGHTS), y->dtype));
    return ed_layer_return(call, y);
}

ed_tensor *lookup_idf_weights(const ed_layer *layer)
{
    if (layer->class->adapt != integer_lookup_adapt) return NULL;
    return ((const table *)ed_layer_state((ed_layer *)layer))->parts[IDF_WEIGHTS];
}

static const double sample_weights[] = {1, 2, 0.5};

LAYER(integer_lookup, INTEGER_LOOKUP, 0, "integers as their numbers in a vocabulary",
      .state_size = sizeof(table), .init = integer_lookup_init, .build = integer_lookup_build,
      .forward = integer_lookup_forward, .destroy = integer_lookup_destroy,
      .adapt = integer_lookup_adapt,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(integer_lookup, INTEGER_LOOKUP, .vocabulary = ED_SAMPLE_INTS(3, 1, 7),
                              .mask_token = ED_SAMPLE_INTS(0), .num_oov_indices = 2,
                              .output_mode = "one_hot", .dtype = ED_FLOAT64),
           .inputs = {{2, {2, 3}, .below = 9}},
           .n_inputs = 1},
          {.options = OPTIONS(integer_lookup, INTEGER_LOOKUP, .vocabulary = ED_SAMPLE_INTS(3, 1, 7),
                              .idf_weights = {sample_weights, 3}, .output_mode = "tf_idf",
                              .dtype = ED_FLOAT64),
           .inputs = {{2, {2, 3}, .below = 9}},
           .n_inputs = 1}))
