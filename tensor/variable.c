#include "tensor/schema_core.h"
#include <string.h>

/*
 * A variable holds a tensor of its own header: what is read from it is that tensor, so a tape that
 * saved it, or a view of it, counts as another holder, and writing then goes to a fresh buffer. The
 * header gets a new id with every assignment: an id stands for one value.
 */

static void variable_destroy(void *object)
{
    variable *v = object;
    ed_release(v->value);
    ed_release(v->regularizer);
    ed_release(v->constraint);
    memory_free(v->name);
    memory_free(v->field);
    memory_count_tensor(-1);
    memory_free(v);
}

const object_class tensor_variable_class = {.name = "variable", .destroy = variable_destroy};

ed_tensor *tensor_snapshot(const ed_tensor *value)
{
    if (!(value->flags & TENSOR_CONTIGUOUS) || value->buffer->deleter) {
        ed_tensor *copy = tensor_new(value->dtype, value->rank, value->shape);
        if (copy) tensor_pack(value, copy->data);
        return copy;
    }
    return tensor_view(value, value->rank, value->shape, value->strides, 0);
}

ed_tensor *ed_variable_with(ed_tensor *initial, const ed_variable_options *options)
{
    if (NULL_GIVEN("variable", initial)) return NULL;
    if (!(options = CHECKED_OPTIONS("variable", ED_VARIABLE_OPTIONS, options))) return NULL;
    if (!(initial = (ed_tensor *)tensor_elements(initial))) return NULL;
    ed_tensor *value = initial->flags & TENSOR_WEAK
                           ? number_as(initial, number_default_dtype(initial))
                           : tensor_snapshot(initial);
    char *name = text_copy(options->name ? options->name : "Variable");
    variable *v = value && name ? object_new(&tensor_variable_class, sizeof *v) : NULL;
    if (!v) {
        ed_release(value);
        memory_free(name);
        return NULL;
    }
    v->base.id = tensor_new_id();
    v->base.size = value->size;
    v->base.dtype = value->dtype;
    v->base.rank = value->rank;
    v->base.flags = TENSOR_VARIABLE;
    memcpy(v->base.shape, value->shape, sizeof value->shape);
    v->value = value;
    v->name = name;
    v->trainable = options->trainable;
    memory_count_tensor(1);
    return scope_give(v);
}

bool ed_is_variable(const ed_tensor *tensor)
{
    return tensor && tensor_is_variable(tensor);
}

const char *ed_variable_name(const ed_tensor *v)
{
    return ed_is_variable(v) ? ((const variable *)v)->name : NULL;
}

bool ed_variable_is_trainable(const ed_tensor *v)
{
    return ed_is_variable(v) && ((const variable *)v)->trainable;
}

bool ed_variable_set_trainable(ed_tensor *v, bool trainable)
{
    if (!ed_is_variable(v))
        return ed_fail(ED_INVALID_ARGUMENT, "variable_set_trainable: %s is not a variable",
                       v ? text_of_tensor(v).s : "NULL");
    ((variable *)v)->trainable = trainable;
    return true;
}

void variable_replace(ed_tensor *v, ed_tensor *value)
{
    ed_release(((variable *)v)->value);
    ((variable *)v)->value = value;
}

ed_tensor *variable_write(ed_tensor *t)
{
    variable *v = (variable *)t;
    if (tensor_is_sole(v->value)) {
        v->value->id = tensor_new_id();
        return v->value;
    }
    ed_tensor *fresh = tensor_new(v->base.dtype, v->base.rank, v->base.shape);
    if (!fresh) return NULL;
    tensor_pack(v->value, fresh->data);
    ed_release(v->value);
    return v->value = fresh;
}
