#include "model/keras_parts.h"
#include "ops/execute.h"
#include <math.h>
#include <string.h>

/*
 * Ops that are called outside of layers: in Keras' files each is an object with its attributes as
 * its configuration, and with tensors and numbers as the arguments of its only call.
 */

#define NUMPY "keras.src.ops.numpy"
#define NN    "keras.src.ops.nn"
#define MATH  "keras.src.ops.math"

/* Attributes that have the same name in both. */
#define AXIS                                                                                       \
    {                                                                                              \
        {                                                                                          \
            "axis", "axis", KERAS_SAME                                                             \
        }                                                                                          \
    }
#define REDUCES                                                                                    \
    {                                                                                              \
        {"axis", "axis", KERAS_SAME},                                                              \
        {                                                                                          \
            "keepdims", "keepdims", KERAS_SAME                                                     \
        }                                                                                          \
    }

/* The first row of an op is what is written; an attribute without a key has its default. */
static const keras_op table[] = {
    {"abs", "Absolute", NUMPY},
    {"add", "Add", NUMPY},
    {"argmax", "Argmax", NUMPY, .attrs = AXIS, .form = &keras_argmax},
    {"argmin", "Argmin", NUMPY, .attrs = AXIS, .form = &keras_argmin},
    {"cast", "Cast", "keras.src.ops.core", .attrs = {{"dtype", "dtype", KERAS_SAME}}},
    {"celu", "Celu", NN, .key = "alpha", .value = "1"},
    {"ceil", "Ceil", NUMPY},
    {"clip", "Clip", NUMPY, .attrs = {{"low", "x_min", KERAS_SAME}, {"high", "x_max", KERAS_SAME}}},
    {"concat", "Concatenate", NUMPY, .list = true, .attrs = AXIS},
    {"cos", "Cos", NUMPY},
    {"cosh", "Cosh", NUMPY},
    {"div", "TrueDivide", NUMPY},
    {"div", "Divide", NUMPY},
    {"einsum", "Einsum", NUMPY, .attrs = {{"equation", "subscripts", KERAS_SAME}}},
    {"elu", "Elu", NN, .key = "alpha", .value = "1"},
    {"equal", "Equal", NUMPY},
    {"erf", "Erf", MATH},
    {"exp", "Exp", NUMPY},
    {"expand_dims", "ExpandDims", NUMPY, .attrs = AXIS},
    {"expm1", "Expm1", NUMPY},
    {"floor", "Floor", NUMPY},
    {"gelu", "Gelu", NN, .key = "approximate", .value = "false"},
    {"gelu_tanh", "Gelu", NN, .key = "approximate", .value = "true"},
    {"greater", "Greater", NUMPY},
    {"greater_equal", "GreaterEqual", NUMPY},
    {"hard_sigmoid", "HardSigmoid", NN},
    {"hard_silu", "HardSilu", NN},
    {"hard_tanh", "HardTanh", NN},
    {"leaky_relu", "LeakyRelu", NN, .attrs = {{"alpha", "negative_slope", KERAS_SAME}}},
    {"less", "Less", NUMPY},
    {"less_equal", "LessEqual", NUMPY},
    {"log", "Log", NUMPY},
    {"log1p", "Log1p", NUMPY},
    {"log_sigmoid", "LogSigmoid", NN},
    {"log_softmax", "LogSoftmax", NN, .attrs = AXIS},
    {"matmul", "Matmul", NUMPY},
    {"maximum", "Maximum", NUMPY},
    {"minimum", "Minimum", NUMPY},
    {"mul", "Multiply", NUMPY},
    {"neg", "Negative", NUMPY},
    {"not_equal", "NotEqual", NUMPY},
    {"one_hot", "OneHot", NN,
     .attrs = {{"depth", "num_classes", KERAS_SAME}, {"dtype", "dtype", KERAS_SAME}}, .key = "axis",
     .value = "-1"},
    {"pad", "Pad", NUMPY, .form = &keras_pad},
    {"pow", "Power", NUMPY},
    {"reciprocal", "Reciprocal", NUMPY},
    {"reduce_all", "All", NUMPY, .attrs = REDUCES},
    {"reduce_any", "Any", NUMPY, .attrs = REDUCES},
    {"reduce_logsumexp", "Logsumexp", MATH, .attrs = REDUCES},
    {"reduce_max", "Max", NUMPY, .attrs = REDUCES},
    {"reduce_mean", "Mean", NUMPY, .attrs = REDUCES},
    {"reduce_min", "Min", NUMPY, .attrs = REDUCES},
    {"reduce_prod", "Prod", NUMPY, .attrs = REDUCES},
    {"reduce_std", "Std", NUMPY, .attrs = REDUCES},
    {"reduce_sum", "Sum", NUMPY, .attrs = REDUCES},
    {"reduce_variance", "Var", NUMPY, .attrs = REDUCES},
    {"relu", "Relu", NN},
    {"relu6", "Relu6", NN},
    {"repeat", "Repeat", NUMPY, .form = &keras_repeat},
    {"reshape", "Reshape", NUMPY, .attrs = {{"shape", "newshape", KERAS_LIST}}},
    {"reverse", "Flip", NUMPY, .attrs = {{"axes", "axis", KERAS_SAME}}},
    {"rsqrt", "Rsqrt", NN},
    {"selu", "Selu", NN},
    {"sigmoid", "Sigmoid", NN},
    {"sign", "Sign", NUMPY},
    {"silu", "Silu", NN},
    {"sin", "Sin", NUMPY},
    {"sinh", "Sinh", NUMPY},
    {"slice", "GetItem", NUMPY, .form = &keras_get_item},
    {"softmax", "Softmax", NN, .attrs = AXIS},
    {"softplus", "Softplus", NN},
    {"softsign", "Softsign", NN},
    {"split", "Split", NUMPY,
     .attrs = {{"count", "indices_or_sections", KERAS_SAME}, {"axis", "axis", KERAS_SAME}},
     .form = &keras_split},
    {"split_sizes", "Split", NUMPY, .form = &keras_split_sizes},
    {"sqrt", "Sqrt", NUMPY},
    {"square", "Square", NUMPY},
    {"squeeze", "GetItem", NUMPY, .form = &keras_index},
    {"squeeze", "Squeeze", NUMPY, .attrs = AXIS},
    {"stack", "Stack", NUMPY, .list = true, .attrs = AXIS},
    {"sub", "Subtract", NUMPY},
    {"tan", "Tan", NUMPY},
    {"tanh", "Tanh", NUMPY},
    {"tile", "Tile", NUMPY, .attrs = {{"multiples", "repeats", KERAS_LIST}}},
    {"transpose", "Transpose", NUMPY, .attrs = {{"perm", "axes", KERAS_LIST}}},
    {"where", "Where", NUMPY},
};

enum { ROWS = sizeof table / sizeof *table };

const keras_op *keras_op_of(const symbol_node *node)
{
    if (!ops_is_built_in(node->op)) return NULL;
    for (const keras_op *row = table; row < table + ROWS; row++)
        if (!strcmp(row->op, node->op->name) &&
            (!row->form || !row->form->fits || row->form->fits(node)))
            return row;
    return NULL;
}

const keras_op *keras_op_named(const char *class_name, const json_node *config)
{
    for (const keras_op *row = table; row < table + ROWS; row++)
        if (!strcmp(row->class_name, class_name) && ed_op_find(row->op) &&
            (!row->key || keras_node_is(json_member(config, row->key), row->value)))
            return row;
    return NULL;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const keras_attr *attr_of(const keras_op *op, const ed_field *field)
{
    for (int i = 0; i < KERAS_ATTRS && op->attrs[i].field; i++)
        if (!strcmp(op->attrs[i].field, field->name)) return op->attrs + i;
    return NULL;
}

bool keras_put_attrs(writer *w, const keras_op *to, const ed_op *op, const void *attrs)
{
    if (to->key) io_put_format(w->b, ", \"%s\": %s", to->key, to->value);
    for (const ed_field *f = op->attrs; attrs && f && f->name; f++) {
        const keras_attr *attr = attr_of(to, f);
        const void *at = ED_FIELD_AT(f, attrs), *usual = ED_FIELD_AT(f, op->defaults);
        const bool endless = f->type == ED_FIELD_FLOAT && !isfinite(*(const double *)at);
        if (attr && !endless)
            keras_put_setting(w, attr->key, attr->form, f, at);
        else if (attr || !keras_same_setting(f, at, usual))
            return ed_fail(ED_UNIMPLEMENTED,
                           "%s: the model %s calls %s with %s, which has no place in Keras' files",
                           w->who, w->model->name, op->name, f->name);
    }
    return true;
}

static const ed_field *field_of(const keras_op *from, const ed_op *op, const char *key)
{
    for (const ed_field *f = op->attrs; f && f->name; f++) {
        const keras_attr *attr = attr_of(from, f);
        if (attr && !strcmp(attr->key, key)) return f;
    }
    return NULL;
}

bool keras_read_attrs(reader *r, const keras_op *from, const ed_op *op, const json_node *config,
                      void *attrs)
{
    if (op->attrs_size) memcpy(attrs, op->defaults, op->attrs_size);
    if (config && config->first && config->type != JSON_OBJECT)
        return keras_lacks(r, "config", "expected an object");
    for (const json_node *n = config ? config->first : NULL; n; n = n->next) {
        const ed_field *field = field_of(from, op, n->key);
        if (from->key && !strcmp(n->key, from->key)) continue;
        if (!keras_read_setting(r, field, op->name, n, field ? ED_FIELD_AT(field, attrs) : NULL))
            return false;
    }
    return true;
}
