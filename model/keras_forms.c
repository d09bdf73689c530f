#include "model/keras_parts.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* Ops that Keras has in another form: with arguments of its own, in other words, with a result of
 * another dtype. */

static const void *attr(const symbol_node *node, const char *name)
{
    return ED_FIELD_AT(schema_find(node->op->attrs, name), node->attrs);
}

static bool no_place(writer *w, const symbol_node *node, const char *what)
{
    return ed_fail(ED_UNIMPLEMENTED,
                   "%s: the model %s calls %s with %s, which has no place in "
                   "Keras' files",
                   w->who, w->model->name, node->op->name, what);
}

static bool put_nothing(writer *w, const symbol_node *node)
{
    (void)w;
    (void)node;
    return true;
}

static void put_integers(writer *w, const char *key, const int64_t *values, int64_t n)
{
    io_put_format(w->b, ", \"%s\": [", key);
    for (int64_t i = 0; i < n; i++)
        io_put_format(w->b, i ? ", %lld" : "%lld", (long long)values[i]);
    keras_put(w, "]");
}

/* An integer under the key of a node; false, with an error, if there is none. */
static bool take_integer(reader *r, const json_node *config, const char *key, int64_t *value)
{
    const json_node *node = json_member(config, key);
    if (!node || node->type != JSON_NUMBER || !node->whole)
        return keras_refuse(r, key, "expected an integer");
    *value = node->integer;
    return true;
}

/* The same where null is allowed: *given is whether there is a number. */
static bool take_axis(reader *r, const json_node *config, int64_t *axis, bool *given)
{
    const json_node *node = json_member(config, "axis");
    *given = node && node->type != JSON_NULL;
    return !*given || take_integer(r, config, "axis", axis);
}

/* The integers of a list; *n at most `most`. false, with an error, if it is none. */
static bool take_integers(reader *r, const json_node *list, const char *key, int64_t *values,
                          int64_t most, int64_t *n)
{
    *n = 0;
    if (!list || list->type != JSON_ARRAY || list->count > most)
        return keras_refuse(r, key, "expected a list of integers");
    for (const json_node *e = list->first; e; e = e->next) {
        if (e->type != JSON_NUMBER || !e->whole) return keras_refuse(r, key, "expected integers");
        values[(*n)++] = e->integer;
    }
    return true;
}

static const json_node *argument(const json_node *call, int i)
{
    const json_node *args = json_member(call, "args");
    const json_node *node = args ? args->first : NULL;
    while (node && i--) node = node->next;
    return node;
}

/* ---- x[1, :, ..., None] ---------------------------------------------------------------------- */

static void put_bound(writer *w, const char *key, ed_ints all, int64_t axis, int64_t whole)
{
    const int64_t value = axis < all.count ? all.values[axis] : whole;
    io_put_format(w->b, "\"%s\": ", key);
    if (value == whole)
        keras_put(w, "null");
    else
        io_put_format(w->b, "%lld", (long long)value);
}

static void put_range(writer *w, const ed_slice_options *o, int64_t axis)
{
    keras_put(w, "{\"class_name\": \"__slice__\", \"config\": {");
    put_bound(w, "start", o->begin, axis, ED_END);
    keras_put(w, ", ");
    put_bound(w, "stop", o->end, axis, ED_END);
    keras_put(w, ", ");
    put_bound(w, "step", o->step, axis, 1);
    keras_put(w, "}}");
}

/* The ranges of ed_slice, with an index of 0 for the axes. */
static void put_subscripts(writer *w, const ed_slice_options *o, ed_ints indices, int rank)
{
    keras_put(w, ", [");
    for (int axis = 0; axis < rank; axis++) {
        bool index = false;
        for (int64_t i = 0; i < indices.count; i++)
            if (tensor_axis(indices.values[i], rank) == axis) index = true;
        if (axis) keras_put(w, ", ");
        if (index)
            keras_put(w, "0");
        else
            put_range(w, o, axis);
    }
    keras_put(w, "]");
}

static bool put_ranges(writer *w, const symbol_node *node)
{
    put_subscripts(w, node->attrs, (ed_ints){NULL, 0}, node->inputs[0]->rank);
    return true;
}

/* An index is a slice without its axis. Of an axis whose size is open Keras does not see that its
 * slice has the size 1, and would not squeeze it. */
static bool squeezes_slice(const symbol_node *node)
{
    const ed_tensor *x = node->inputs[0];
    const symbol_node *from = tensor_is_symbol(x) ? ((const symbol *)x)->node : NULL;
    return from && from->op && !strcmp(from->op->name, "slice") &&
           ((const ed_ints *)attr(node, "axis"))->count;
}

static bool put_indices(writer *w, const symbol_node *node)
{
    const ed_slice_options whole = {.mark_ = 0};
    put_subscripts(w, &whole, *(const ed_ints *)attr(node, "axis"), node->inputs[0]->rank);
    return true;
}

/* A bound of a range: null is as far as there is. */
static bool take_bound(reader *r, const json_node *config, const char *key, int64_t *value)
{
    const json_node *node = json_member(config, key);
    return !node || node->type == JSON_NULL || take_integer(r, config, key, value);
}

static bool take_subscript(reader *r, const json_node *node, ed_subscript *to)
{
    const json_node *config = json_member(node, "config");
    const char *name = json_text_of(node, "class_name");
    if (node->type == JSON_NUMBER && node->whole) {
        *to = (ed_subscript)ED_INDEX(node->integer);
    } else if (node->type == JSON_NULL) {
        *to = (ed_subscript)ED_NEW_AXIS;
    } else if (name && !strcmp(name, "__ellipsis__")) {
        *to = (ed_subscript)ED_ELLIPSIS;
    } else if (name && !strcmp(name, "__slice__")) {
        *to = (ed_subscript)ED_ALL;
        return take_bound(r, config, "start", &to->begin) &&
               take_bound(r, config, "stop", &to->end) && take_bound(r, config, "step", &to->step);
    } else {
        return keras_lacks(r, "inbound_nodes", "expected indices, slices, ... or None");
    }
    return true;
}

static ed_list *get_item(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    enum { MOST = 2 * ED_MAX_RANK + 1 };
    (void)config;
    ed_subscript all[MOST];
    int64_t n = 0;
    const json_node *key = argument(call, 1);
    if (!key || (key->type == JSON_ARRAY && key->count > MOST))
        return keras_refuse(r, "inbound_nodes", "expected subscripts"), NULL;
    if (key->type != JSON_ARRAY && !take_subscript(r, key, &all[n++])) return NULL;
    for (const json_node *e = key->type == JSON_ARRAY ? key->first : NULL; e; e = e->next)
        if (!take_subscript(r, e, &all[n++])) return NULL;
    return ed_list_of(ed_strided_slice_of(x, all, n));
}

const keras_op_form keras_index = {squeezes_slice, put_nothing, put_indices, get_item, 2};
const keras_op_form keras_get_item = {NULL, put_nothing, put_ranges, get_item, 2};

/* ---- split_sizes: Keras has the positions between the parts ---------------------------------- */

enum { MOST_PARTS = 4096 };

/* A part of size -1 has what is left. Positions behind it need the size of the axis, which must not
 * be open then. */
static bool put_positions(writer *w, const symbol_node *node)
{
    const ed_ints sizes = *(const ed_ints *)attr(node, "sizes");
    const int64_t axis = *(const int64_t *)attr(node, "axis");
    const ed_tensor *x = node->inputs[0];
    const int64_t whole = tensor_open_shape(x)[tensor_axis(axis, x->rank)];
    int64_t positions[MOST_PARTS], at = 0, rest = whole;
    if (sizes.count > MOST_PARTS) return no_place(w, node, "so many parts");
    for (int64_t i = 0; i < sizes.count; i++) rest -= sizes.values[i] > 0 ? sizes.values[i] : 0;
    for (int64_t i = 0; i + 1 < sizes.count; i++) {
        if (sizes.values[i] < 0 && whole < 0)
            return no_place(w, node, "a part of an open size before others");
        positions[i] = at += sizes.values[i] < 0 ? rest : sizes.values[i];
    }
    put_integers(w, "indices_or_sections", positions, sizes.count - 1);
    io_put_format(w->b, ", \"axis\": %lld", (long long)axis);
    return true;
}

static ed_list *split(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    (void)call;
    static const char key[] = "indices_or_sections";
    const json_node *parts = json_member(config, key);
    int64_t sizes[MOST_PARTS], n, before = 0, axis = 0, count = 0;
    bool given;
    if (!take_axis(r, config, &axis, &given)) return NULL;
    if (parts && parts->type != JSON_ARRAY)
        return take_integer(r, config, key, &count) ? ed_split(x, count, .axis = axis) : NULL;
    if (!take_integers(r, parts, key, sizes, MOST_PARTS - 1, &n)) return NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = sizes[i];
        if (at < before) return keras_lacks(r, key, "expected growing positions"), NULL;
        sizes[i] = at - before;
        before = at;
    }
    sizes[n] = -1;
    return ed_split_sizes(x, ((ed_ints){sizes, n + 1}), .axis = axis);
}

#define SPLIT_KEYS                                                                                 \
    {                                                                                              \
        "indices_or_sections", "axis"                                                              \
    }
const keras_op_form keras_split = {.call = split, .keys = SPLIT_KEYS};
const keras_op_form keras_split_sizes = {
    .put_config = put_positions, .call = split, .keys = SPLIT_KEYS};

/* ---- pad ------------------------------------------------------------------------------------- */

static bool put_padding(writer *w, const symbol_node *node)
{
    const ed_pad_options *o = node->attrs;
    keras_put(w, ", \"pad_width\": [");
    for (int64_t i = 0; i < node->inputs[0]->rank; i++)
        io_put_format(w->b, i ? ", [%lld, %lld]" : "[%lld, %lld]",
                      (long long)(i < o->before.count ? o->before.values[i] : 0),
                      (long long)(i < o->after.count ? o->after.values[i] : 0));
    keras_put(w, "], \"mode\": \"");
    for (const char *c = o->mode; *c; c++) io_put_u8(w->b, (uint8_t)tolower((unsigned char)*c));
    keras_put(w, "\"");
    return true;
}

static bool put_padded_value(writer *w, const symbol_node *node)
{
    const ed_pad_options *o = node->attrs;
    if (strcmp(o->mode, "CONSTANT") != 0) return true;
    if (!isfinite(o->value)) return no_place(w, node, "a value that is not finite");
    keras_put(w, ", ");
    io_put_json_number(w->b, o->value);
    return true;
}

static const char *pad_mode(const char *name)
{
    const ed_field *field = schema_find(ed_op_find("pad")->attrs, "mode");
    for (const char *const *word = field->limits.words; name && *word; word++)
        if (!strcasecmp(*word, name)) return *word;
    return NULL;
}

static ed_list *pad(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    const json_node *widths = json_member(config, "pad_width");
    const json_node *value = argument(call, 1);
    if (!value) value = json_member(json_member(call, "kwargs"), "constant_values");
    if (value && value->type != JSON_NULL && value->type != JSON_NUMBER)
        return keras_lacks(r, "constant_values", "expected a number"), NULL;
    const char *mode = pad_mode(json_text_of(config, "mode"));
    if (!mode) return keras_lacks(r, "mode", "Eddy's pad has no such mode"), NULL;
    int64_t sides[2 * ED_MAX_RANK], n, pair[2];
    const json_node *width = widths && widths->type == JSON_ARRAY ? widths->first : NULL;
    const bool one = width && !width->next;
    if (width && !one && widths->count != x->rank)
        return keras_refuse(r, "pad_width", "expected a pair for each axis"), NULL;
    for (int i = 0; i < x->rank; i++) {
        if (!take_integers(r, width, "pad_width", pair, 2, &n)) return NULL;
        if (n != 2) return keras_refuse(r, "pad_width", "expected pairs of integers"), NULL;
        sides[i] = pair[0];
        sides[ED_MAX_RANK + i] = pair[1];
        if (!one) width = width->next;
    }
    return ed_list_of(ed_pad(x, .before = {sides, x->rank}, .after = {sides + ED_MAX_RANK, x->rank},
                             .mode = mode, .value = value ? value->number : 0));
}

const keras_op_form keras_pad = {NULL, put_padding,           put_padded_value, pad,
                                 2,    {"pad_width", "mode"}, "constant_values"};

/* ---- repeat ---------------------------------------------------------------------------------- */

/* Keras' repeats are part of the configuration, not a tensor. */
static bool put_repeats(writer *w, const symbol_node *node)
{
    const ed_ints axis = ((const ed_repeat_options *)node->attrs)->axis;
    ed_tensor *repeats = node->inputs[1];
    if (tensor_is_symbol(repeats)) return no_place(w, node, "repeats of the model");
    if (!(repeats = ed_contiguous(ed_cast(repeats, ED_INT64)))) return false;
    if (repeats->size == 1)
        io_put_format(w->b, ", \"repeats\": %lld", (long long)*(const int64_t *)repeats->data);
    else
        put_integers(w, "repeats", (const int64_t *)repeats->data, repeats->size);
    if (axis.values)
        io_put_format(w->b, ", \"axis\": %lld", (long long)axis.values[0]);
    else
        keras_put(w, ", \"axis\": null");
    return true;
}

static ed_list *repeat(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    (void)call;
    const json_node *node = json_member(config, "repeats");
    const int64_t most = node ? node->count : 0;
    int64_t *values = ed_scope_alloc((size_t)(most + 1) * sizeof *values), n = 0, axis = 0;
    bool given;
    if (!values || !take_axis(r, config, &axis, &given)) return NULL;
    const bool list = node && node->type == JSON_ARRAY;
    if (list ? !take_integers(r, node, "repeats", values, most, &n)
             : !take_integer(r, config, "repeats", values))
        return NULL;
    ed_tensor *repeats =
        ed_constant_of(ED_INT64, values, list ? ED_SHAPE(n) : (ed_ints){values, 0});
    return ed_list_of(given ? ed_repeat(x, repeats, .axis = ED_AXES(axis)) : ed_repeat(x, repeats));
}

const keras_op_form keras_repeat = {NULL, put_repeats, put_nothing, repeat, 1, {"repeats", "axis"}};

/* ---- argmax, argmin -------------------------------------------------------------------------- */

/* Keras' indices are int32, of all elements where there is no axis. */
static ed_list *best(reader *r, const json_node *config, ed_tensor *x,
                     ed_tensor *(*of)(ed_tensor *, const ed_argmax_options *))
{
    ed_argmax_options o = ED_COMPLETE(ED_ARGMAX_OPTIONS, ed_argmax_options);
    const json_node *keeps = json_member(config, "keepdims");
    bool given;
    if (!take_axis(r, config, &o.axis, &given)) return NULL;
    if (keeps && keeps->type != JSON_BOOL)
        return keras_refuse(r, "keepdims", "expected true or false"), NULL;
    const bool keepdims = keeps && keeps->number != 0;
    if (keepdims && !given) return keras_lacks(r, "keepdims", "expected an axis"), NULL;
    if (!given) x = ed_reshape(x, ED_SHAPE(-1));
    ed_tensor *y = of(x, &o);
    return ed_list_of(ed_cast(keepdims ? ed_expand_dims(y, o.axis) : y, ED_INT32));
}

static ed_list *argmax(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    (void)call;
    return best(r, config, x, ed_argmax_with);
}

static ed_list *argmin(reader *r, const json_node *config, const json_node *call, ed_tensor *x)
{
    (void)call;
    return best(r, config, x, ed_argmin_with);
}

const keras_op_form keras_argmax = {.call = argmax, .keys = {"axis", "keepdims"}};
const keras_op_form keras_argmin = {.call = argmin, .keys = {"axis", "keepdims"}};

/* ---- Constants ------------------------------------------------------------------------------- */

/* One element, as Python writes it. */
static void put_element(writer *w, const ed_tensor *t, int64_t i)
{
    if (!ed_dtype_is_float(t->dtype) && t->dtype != ED_BOOL)
        return io_put_format(w->b, "%lld", (long long)((const int64_t *)t->data)[i]);
    const double value = dtype_load(t->dtype, t->data, i);
    if (t->dtype == ED_BOOL)
        keras_put(w, value ? "true" : "false");
    else if (isfinite(value))
        io_put_json_number(w->b, value);
    else
        keras_put(w, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

/* Elements from *i on in lists of lists. */
static void put_elements(writer *w, const ed_tensor *t, int axis, int64_t *i)
{
    if (axis == t->rank) return put_element(w, t, (*i)++);
    keras_put(w, "[");
    for (int64_t k = 0; k < t->shape[axis]; k++) {
        if (k) keras_put(w, ", ");
        put_elements(w, t, axis + 1, i);
    }
    keras_put(w, "]");
}

bool keras_put_constant(writer *w, ed_tensor *t)
{
    const bool integer = !ed_dtype_is_float(t->dtype) && t->dtype != ED_BOOL;
    const ed_tensor *plain = ed_contiguous(integer ? ed_cast(t, ED_INT64) : t);
    int64_t i = 0;
    if (!plain) return false;
    keras_put(w, "{\"class_name\": \"__tensor__\", \"config\": {\"value\": ");
    put_elements(w, plain, 0, &i);
    io_put_format(w->b, ", \"dtype\": \"%s\"}}", ed_dtype_name(t->dtype));
    return true;
}

bool keras_is_constant(const json_node *node)
{
    const char *name = json_text_of(node, "class_name");
    return name && (!strcmp(name, "__tensor__") || !strcmp(name, "__numpy__"));
}

/* Whether the node is lists of lists of numbers of that shape. */
static bool lists_have_shape(const json_node *node, const int64_t *shape, int64_t rank,
                             bool integer)
{
    if (!rank)
        return node->type == JSON_BOOL || (node->type == JSON_NUMBER && node->whole >= integer);
    if (node->type != JSON_ARRAY || node->count != *shape) return false;
    for (const json_node *e = node->first; e; e = e->next)
        if (!lists_have_shape(e, shape + 1, rank - 1, integer)) return false;
    return true;
}

/* The numbers of lists of lists, from element *i of the tensor on. */
static void take_elements(const json_node *node, ed_tensor *to, int64_t *i)
{
    for (const json_node *e = node->first; e; e = e->next) take_elements(e, to, i);
    if (node->type == JSON_ARRAY) return;
    if (to->dtype == ED_INT64)
        ((int64_t *)to->data)[(*i)++] = node->whole ? node->integer : (int64_t)node->number;
    else
        ((double *)to->data)[(*i)++] = node->number;
}

ed_tensor *keras_read_constant(reader *r, const json_node *node)
{
    const json_node *config = json_member(node, "config"), *value = json_member(config, "value");
    const json_node *name = json_member(config, "dtype"), *first = value;
    ed_dtype dtype;
    int64_t shape[ED_MAX_RANK], i = 0;
    int rank = 0;
    for (; first && first->type == JSON_ARRAY && rank < ED_MAX_RANK; first = first->first)
        shape[rank++] = first->count;
    if (!value || !name || !keras_read_dtype(name, &dtype) || dtype == ED_DTYPE_NONE)
        return keras_refuse(r, "inbound_nodes", "expected the value and dtype of a tensor"), NULL;
    const bool integer = !ed_dtype_is_float(dtype);
    if (!lists_have_shape(value, shape, rank, integer))
        return keras_refuse(r, "inbound_nodes", "the value of a tensor has no shape"), NULL;
    ed_tensor *t = scope_give(tensor_new(integer ? ED_INT64 : ED_FLOAT64, rank, shape));
    if (!t) return NULL;
    take_elements(value, t, &i);
    return ed_cast(t, dtype);
}
