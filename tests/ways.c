#include "tests/ways.h"
#include "tests/functions.h"
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- On a tape ------------------------------------------------------------------------------- */

/* A gradient of y's shape whose elements differ. */
static ed_tensor *seed_of(ed_tensor *y)
{
    ed_tensor *seed = tensor_new(y->dtype, y->rank, y->shape);
    for (int64_t i = 0; seed && i < seed->size; i++)
        dtype_store(seed->dtype, seed->data, i, 0.5 + 0.125 * (double)(i % 7));
    return scope_give(seed);
}

static void take_results(answer *a, const ed_list *y)
{
    a->n = y ? (int)y->size : 0;
    for (int k = 0; k < a->n && k < WAY_RESULTS; k++) a->y[k] = y->items[k];
}

/* The operands that gradients are asked for. */
static ed_list *sources_of(const trial *t)
{
    ed_tensor *x[ED_MAX_OPERANDS];
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) x[n++] = t->x[i];
    return ed_list_make(x, n);
}

/* The gradients of all results that `asked` has a seed for; without it, of all floats. */
static bool ask_tape(const trial *t, ed_tape *tape, const answer *asked, answer *got)
{
    ed_list *sources = sources_of(t);
    for (int k = 0; k < got->n && k < WAY_RESULTS; k++) {
        if (!ed_dtype_is_float(got->y[k]->dtype)) continue;
        got->seed[k] = asked ? asked->seed[k] : seed_of(got->y[k]);
        if (!got->seed[k]) continue;
        const ed_gradient_options options = {.output_gradients = ed_list_of_one(got->seed[k])};
        ed_list *dx = ed_gradient_list(tape, ed_list_of_one(got->y[k]), sources, &options);
        for (int i = 0, s = 0; dx && i < t->n; i++)
            if (check_differentiates(t, i)) got->dx[k][i] = dx->items[s++];
    }
    return !ed_failed();
}

static bool on_a_tape(const trial *t, ed_list *(*run)(const trial *t), const answer *asked,
                      answer *got)
{
    ed_tape *tape = ed_tape_begin(.persistent = true);
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) ed_watch(tape, t->x[i]);
    take_results(got, run(t));
    return ed_tape_stop(tape) && ask_tape(t, tape, asked, got);
}

static ed_list *dispatch(const trial *t)
{
    return ed_execute_list(t->op, t->x, t->n, t->attrs);
}

bool way_of_dispatch(const trial *t, const answer *asked, answer *got)
{
    on_a_tape(t, dispatch, asked, got);
    return true;
}

/* ---- By the public function ------------------------------------------------------------------ */

/* Ops whose function is not theirs alone: a text says which one is meant. */
static const struct {
    const char *op, *function, *chosen;
} named[] = {{"linear", "linear", ""}, {"linear_relu", "linear", "relu"}};

static const function *function_for(const ed_op *op, const char **chosen)
{
    for (int i = 0; i < COUNT(named); i++)
        if (!strcmp(op->name, named[i].op)) {
            *chosen = named[i].chosen;
            return function_of_op(named[i].function);
        }
    return function_of_op(op->name);
}

/* The arguments of a public function, made from a trial. */
typedef struct arguments {
    const function *of;
    const char *chosen; /* which op is meant, if the function has several */
    value values[MOST_ARGUMENTS];
    ed_tensor *others[MOST_ARGUMENTS]; /* results behind the first */
    int tensors, lists;                /* parameters that are operands */
    int n_tensors, n_lists, n_others;  /* given so far */
    unsigned given;                    /* attributes: bit i is the schema's i-th */
    max_align_t options[1024 / sizeof(max_align_t)];
} arguments;

/* An attribute as an argument. */
static value attribute_value(const ed_field *field, const void *attrs)
{
    value v = {0};
    const void *at = ED_FIELD_AT(field, attrs);
    switch (field->type) {
    case ED_FIELD_BOOL: v.integer = *(const bool *)at; break;
    case ED_FIELD_DTYPE: v.integer = *(const ed_dtype *)at; break;
    case ED_FIELD_FLOAT: v.number = *(const double *)at; break;
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: v.ints = *(const ed_ints *)at; break;
    case ED_FIELD_FLOATS: v.floats = *(const ed_floats *)at; break;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: v.integer = *(const int64_t *)at; break;
    default: v.pointer = *(void *const *)at;
    }
    return v;
}

/* The first attribute of the type that no argument before has. */
static bool take_attribute(const trial *t, const char *type, arguments *a, value *v)
{
    for (int i = 0; t->op->attrs && t->op->attrs[i].name; i++) {
        const ed_field *field = &t->op->attrs[i];
        const char *own = field_type(field);
        if (a->given >> i & 1 || !own || strcmp(own, type) != 0) continue;
        a->given |= 1u << i;
        *v = attribute_value(field, t->attrs);
        return true;
    }
    return false;
}

/* The attributes of the same names in a structure of options. */
static bool take_options(const trial *t, const structure *s, arguments *a, value *v)
{
    if (!s->fields || s->size > sizeof a->options) return false;
    memcpy(a->options, s->defaults, s->size);
    for (const ed_field *f = s->fields; f->name; f++)
        for (int i = 0; t->op->attrs && t->op->attrs[i].name; i++) {
            const ed_field *own = &t->op->attrs[i];
            if (strcmp(own->name, f->name) != 0 || own->type != f->type) continue;
            a->given |= 1u << i;
            memcpy((char *)a->options + f->offset, ED_FIELD_AT(own, t->attrs), field_size(f));
        }
    v->pointer = a->options;
    return true;
}

/* Lists have the last operands, as many each. */
static ed_list *take_list(const trial *t, arguments *a)
{
    const int each = (t->n - a->tensors) / a->lists;
    return ed_list_make(t->x + a->tensors + each * a->n_lists++, each);
}

static bool take_argument(const trial *t, const char *type, arguments *a, value *v)
{
    const structure *options = structure_of(type);
    if (options) return take_options(t, options, a, v);
    if (is_tensor_type(type)) {
        v->pointer = a->n_tensors < t->n ? t->x[a->n_tensors] : NULL;
        a->n_tensors++;
    } else if (!strcmp(type, "ed_tensor **")) {
        v->pointer = &a->others[a->n_others++];
    } else if (!strcmp(type, "ed_list *")) {
        v->pointer = take_list(t, a);
    } else if (a->chosen && !strcmp(type, "const char *")) {
        v->pointer = (void *)a->chosen;
    } else {
        return take_attribute(t, type, a, v);
    }
    return true;
}

bool way_gives(const trial *t, const ed_field *field)
{
    static const max_align_t zeros[64];
    const char *usual = t->op->defaults ? t->op->defaults : (const char *)zeros;
    return memcmp(usual + field->offset, ED_FIELD_AT(field, t->attrs), field_size(field)) != 0;
}

/* false if the function can't say what the sample wants. */
static bool take_arguments(const trial *t, arguments *a)
{
    for (int i = 0; a->of->types[i]; i++) {
        a->tensors += is_tensor_type(a->of->types[i]);
        a->lists += !strcmp(a->of->types[i], "ed_list *");
    }
    if (a->lists ? t->n < a->tensors : t->n > a->tensors) return false;
    for (int i = 0; a->of->types[i]; i++)
        if (!take_argument(t, a->of->types[i], a, &a->values[i])) return false;
    for (int i = 0; t->op->attrs && t->op->attrs[i].name; i++)
        if (!(a->given >> i & 1) && way_gives(t, &t->op->attrs[i])) return false;
    return true;
}

/* Those of the call at work. */
static arguments given;

static ed_list *call_function(const trial *t)
{
    (void)t;
    outcome got = {.said = UNSAID};
    given.of->call(given.values, &got);
    ed_object *object = got.object;
    if (!object || object->class == &tensor_list_class) return got.object;
    int n = 0;
    while (n < given.n_others && given.others[n]) n++;
    return ed_list_concat(ed_list_of_one(got.object), ed_list_make(given.others, n));
}

bool way_of_function(const trial *t, const answer *asked, answer *got)
{
    given = (arguments){0};
    given.of = function_for(t->op, &given.chosen);
    return given.of && take_arguments(t, &given) && (on_a_tape(t, call_function, asked, got), true);
}
