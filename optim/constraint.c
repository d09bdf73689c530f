#include "optim/constraint.h"

MADE_PLAIN(constraint)

ed_tensor *ed_constrain(ed_constraint *constraint, ed_tensor *w)
{
    if (NULL_GIVEN("constrain", constraint, w)) return NULL;
    if (!ed_dtype_is_float(w->dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "constrain: w must be float32 or float64, got %s",
                       text_of_tensor(w).s);
    ED_SCOPE;
    const constraint_class *class = (const constraint_class *)constraint->made.kind;
    return ed_keep(class->function(constraint->made.options, w));
}

bool ed_variable_set_constraint(ed_tensor *v, ed_constraint *constraint)
{
    if (!v) return ed_fail(ED_INVALID_ARGUMENT, "variable_set_constraint: variable is NULL");
    if (!ed_is_variable(v))
        return ed_fail(ED_INVALID_ARGUMENT, "variable_set_constraint: got a tensor, no variable");
    void *before = ((variable *)v)->constraint;
    ((variable *)v)->constraint = ed_retain(constraint);
    ed_release(before);
    return true;
}

ed_constraint *ed_variable_constraint(const ed_tensor *v)
{
    return v && ed_is_variable(v) ? ((const variable *)v)->constraint : NULL;
}
