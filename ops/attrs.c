#include "ops/execute.h"

/* Copies of attributes that stand by themselves, for those who keep calls. */

void *ed_attrs_copy(const ed_op *op, const void *attrs)
{
    if (!op || (op->attrs_size && !attrs))
        return ed_fail(ED_INVALID_ARGUMENT, "attrs_copy: %s is NULL", op ? "attrs" : "op");
    return schema_copy(op->attrs, op->attrs_size, op->attrs_size ? attrs : &op);
}

void ed_attrs_free(const ed_op *op, void *copy)
{
    if (op) schema_free(op->attrs, copy);
}
