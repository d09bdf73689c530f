#include "tests/functions.h"
#include <stdio.h>
#include <string.h>

static void *nothing_or(outcome *o, void *object)
{
    o->said = object ? SUCCEEDED : FAILED;
    return o->object = object;
}

#define POINTER(o, call)  nothing_or(o, (void *)(call))
#define TRUTH(o, call)    ((o)->said = (call) ? SUCCEEDED : FAILED)
#define NOTHING(o, call)  ((call), (o)->said = UNSAID)
#define ANYTHING(o, call) ((void)(call), (o)->said = UNSAID)
#include "tests/functions_table.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

const function *function_at(int i)
{
    return i < COUNT(functions) ? &functions[i] : NULL;
}

const char *function_short_name(const char *name)
{
    static const char with[] = "_with";
    static char plain[128];
    snprintf(plain, sizeof plain, "%s", strncmp(name, "ed_", 3) ? name : name + 3);
    const size_t length = strlen(plain), end = strlen(with);
    if (length > end && !strcmp(plain + length - end, with)) plain[length - end] = 0;
    return plain;
}

const function *function_of_op(const char *name)
{
    for (int i = 0; i < COUNT(functions); i++)
        if (!strcmp(function_short_name(functions[i].name), name)) return &functions[i];
    return NULL;
}

const structure *structure_of(const char *type)
{
    for (int i = 0; i < COUNT(structures); i++) {
        const size_t n = strlen(structures[i].name);
        if (!strncmp(type, "const ", 6) && !strncmp(type + 6, structures[i].name, n) &&
            !strcmp(type + 6 + n, " *"))
            return &structures[i];
    }
    return NULL;
}

const char *field_type(const ed_field *field)
{
    static const char *const types[] = {
        [ED_FIELD_BOOL] = "bool",
        [ED_FIELD_INT] = "int64_t",
        [ED_FIELD_FLOAT] = "double",
        [ED_FIELD_DTYPE] = "ed_dtype",
        [ED_FIELD_INTS] = "ed_ints",
        [ED_FIELD_STRING] = "const char *",
        [ED_FIELD_CHOICE] = "const char *",
        [ED_FIELD_AXIS] = "int64_t",
        [ED_FIELD_AXES] = "ed_ints",
        [ED_FIELD_ACTIVATION] = "const char *",
        [ED_FIELD_OBJECT] = "void *",
        [ED_FIELD_GENERATOR] = "ed_generator *",
        [ED_FIELD_INITIALIZER] = "ed_initializer *",
        [ED_FIELD_REGULARIZER] = "ed_regularizer *",
        [ED_FIELD_CONSTRAINT] = "ed_constraint *",
        [ED_FIELD_SCHEDULE] = "ed_schedule *",
        [ED_FIELD_LOSS] = "ed_loss *",
        [ED_FIELD_LAYER] = "ed_layer *",
        [ED_FIELD_FLOATS] = "ed_floats",
        [ED_FIELD_LAYERS] = "ed_objects",
        [ED_FIELD_OBJECTS] = "ed_objects",
        [ED_FIELD_DRAW] = NULL,
    };
    return types[field->type];
}

size_t field_size(const ed_field *field)
{
    switch (field->type) {
    case ED_FIELD_BOOL: return sizeof(bool);
    case ED_FIELD_DTYPE: return sizeof(ed_dtype);
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: return sizeof(ed_ints);
    case ED_FIELD_FLOATS: return sizeof(ed_floats);
    case ED_FIELD_LAYERS:
    case ED_FIELD_OBJECTS: return sizeof(ed_objects);
    default: return sizeof(int64_t);
    }
}

bool is_tensor_type(const char *type)
{
    return !strcmp(type, "ed_tensor *") || !strcmp(type, "ed_tensor_like *");
}
