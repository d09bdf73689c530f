#include "lua/promotion.h"
#include <math.h>

int promotion_operands(const ed_op *op)
{
    int n = 0;
    while (n < ED_MAX_OPERANDS && op->operands[n].name) n++;
    return n;
}

const ed_operand *promotion_operand(const ed_op *op, int i)
{
    int last = 0;
    while (last + 1 < ED_MAX_OPERANDS && op->operands[last + 1].name) last++;
    return &op->operands[i < last ? i : last];
}

bool promotion_agree(const ed_op *op, int i, int k)
{
    const char type = promotion_operand(op, i)->type;
    return i == k || (type && type == promotion_operand(op, k)->type);
}

/* Whether a number among the attributes has a fraction. */
static bool has_fraction(const ed_op *op, const void *attrs)
{
    for (const ed_field *a = op->attrs; attrs && a && a->name; a++) {
        if (a->type != ED_FIELD_FLOAT) continue;
        double value = *(const double *)((const char *)attrs + a->offset);
        if (value != floor(value)) return true;
    }
    return false;
}

ed_dtype promotion_dtype(const ed_op *op, ed_tensor *const *inputs, int n, int i)
{
    bool floats = op->flags & ED_OP_PREFERS_FLOATS;
    for (int k = 0; k < n; k++) {
        if (!promotion_agree(op, i, k)) continue;
        const ed_tensor *t = inputs[k];
        bool is_float = ED_SET_FLOAT & 1u << ed_dtype_of(t), weak = ed_is_weak(t);
        if (is_float && !weak) return ed_dtype_of(t);
        floats |= is_float || !(weak || promotion_operand(op, k)->dtypes & 1u << ed_dtype_of(t));
    }
    return floats ? ED_FLOAT32 : ED_DTYPE_NONE;
}

bool promotion_cast(const ed_op *op, ed_tensor **inputs, int n, const void *attrs)
{
    const bool keeps = op->flags & ED_OP_KEEPS_INTEGERS;
    const ed_dtype least = !keeps && has_fraction(op, attrs) ? ED_FLOAT32 : ED_DTYPE_NONE;
    ed_dtype dtype = ED_DTYPE_NONE;
    for (int i = 0; i < n; i++) {
        if (!i || !promotion_agree(op, i - 1, i)) dtype = promotion_dtype(op, inputs, n, i);
        bool may =
            promotion_operand(op, i)->dtypes & 1u << ED_FLOAT32 && promotion_is_integer(inputs[i]);
        ed_dtype wanted = dtype ? dtype : least;
        if (may && wanted && !(inputs[i] = ed_cast(inputs[i], wanted))) return false;
    }
    return true;
}

ed_tensor *promotion_floats(ed_tensor *t)
{
    return t && promotion_is_integer(t) ? ed_cast(t, ED_FLOAT32) : t;
}
