#include "lua/promotion.h"
#include <math.h>

/* Whether a number among the attributes has a fraction. */
static bool has_fraction(const ed_op *op, const void *attrs)
{
    for (const ed_attr *a = op->attrs; attrs && a && a->name; a++) {
        if (a->type != ED_ATTR_FLOAT) continue;
        double value = *(const double *)((const char *)attrs + a->offset);
        if (value != floor(value)) return true;
    }
    return false;
}

ed_dtype promotion_dtype(const ed_op *op, ed_tensor *const *inputs, int n, int i)
{
    bool floats = false;
    for (int k = 0; k < n; k++) {
        if (!ops_operands_agree(op, i, k)) continue;
        const ed_tensor *t = inputs[k];
        bool is_float = ED_SET_FLOAT & 1u << t->dtype, weak = t->flags & TENSOR_WEAK;
        if (is_float && !weak) return t->dtype;
        floats |= is_float || !(weak || ops_operand(op, k)->dtypes & 1u << t->dtype);
    }
    return floats ? ED_FLOAT32 : ED_DTYPE_NONE;
}

bool promotion_cast(const ed_op *op, ed_tensor **inputs, int n, const void *attrs)
{
    const ed_dtype least = has_fraction(op, attrs) ? ED_FLOAT32 : ED_DTYPE_NONE;
    ed_dtype dtype = ED_DTYPE_NONE;
    for (int i = 0; i < n; i++) {
        if (!i || !ops_operands_agree(op, i - 1, i)) dtype = promotion_dtype(op, inputs, n, i);
        bool may = ops_operand(op, i)->dtypes & 1u << ED_FLOAT32 && promotion_is_integer(inputs[i]);
        ed_dtype wanted = dtype ? dtype : least;
        if (may && wanted && !(inputs[i] = ed_cast(inputs[i], wanted))) return false;
    }
    return true;
}

ed_tensor *promotion_floats(ed_tensor *t)
{
    return t && promotion_is_integer(t) ? ed_cast(t, ED_FLOAT32) : t;
}
