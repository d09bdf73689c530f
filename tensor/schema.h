/*
 * One definition for everything that has options.
 *
 * The options of whatever is called or made (an op, a layer, an optimizer, an initializer, ...) are
 * listed once, in a public header, one line for each:
 *
 *     #define ED_OPTIMIZER_SGD_OPTIONS(FIELD, T)                                            \
 *         FIELD(T, FLOAT, learning_rate, 0.01, ED_AT_LEAST(0), "size of a step")            \
 *         FIELD(T, BOOL, nesterov, false, ED_ANY, "look ahead by the momentum")
 *
 * type, name, default, limits, one line of documentation; T is the structure. From that list
 * follow the C structure with its defaults (ED_OPTIONS), the macro that takes options by name
 * (ED_WITH_OPTIONS) and the schema (ED_FIELDS), and from the schema the checks, copies, JSON, and
 * what other languages need: arguments, help, completion, the reference.
 *
 * A structure of options is complete or it is refused: the macros set a mark in it that
 * `(ed_optimizer_sgd_options){.nesterov = true}` lacks, whose learning rate would be 0.
 * ED_NEW_OPTIONS makes a complete one by hand.
 */
#ifndef EDDY_SCHEMA_H
#define EDDY_SCHEMA_H

#include "tensor/types.h"

#pragma GCC visibility push(default)

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The types of fields; behind each its C type. */
typedef enum ed_field_type {
    ED_FIELD_BOOL,       /* bool */
    ED_FIELD_INT,        /* int64_t */
    ED_FIELD_FLOAT,      /* double */
    ED_FIELD_DTYPE,      /* ed_dtype; ED_DTYPE_NONE: not given */
    ED_FIELD_INTS,       /* ed_ints; values NULL: not given */
    ED_FIELD_FLOATS,     /* ed_floats; values NULL: not given */
    ED_FIELD_STRING,     /* const char *; NULL: not given */
    ED_FIELD_CHOICE,     /* const char *: one of the limits' words */
    ED_FIELD_AXIS,       /* int64_t, negative from the end; other languages may count from 1 */
    ED_FIELD_AXES,       /* ed_ints of such */
    ED_FIELD_ACTIVATION, /* const char *: the name of an activation, see ed_activate */
    ED_FIELD_DRAW,       /* ed_draw: where random numbers come from */
    ED_FIELD_OBJECT,     /* any object of Eddy's; the types behind it are objects of one family */
    ED_FIELD_GENERATOR,
    ED_FIELD_INITIALIZER,
    ED_FIELD_REGULARIZER,
    ED_FIELD_CONSTRAINT,
    ED_FIELD_SCHEDULE,
    ED_FIELD_LOSS,
    ED_FIELD_OPTIMIZER,
    ED_FIELD_LAYER,
    ED_FIELD_LAYERS,  /* ed_objects: a counted array of layers */
    ED_FIELD_OBJECTS, /* ed_objects: of any objects of Eddy's */
} ed_field_type;

/*
 * Where a call's random numbers come from. Once infer has succeeded, the dispatcher takes the state
 * from the generator, which moves on by as many elements as the first output has; kernel, listeners
 * and gradient find attributes in which the state is filled in and `drawn` is true. A call made
 * with those draws nothing and gives the same numbers again; made with `drawn` false, it gives new
 * ones.
 */
typedef struct ed_draw {
    struct ed_generator *generator; /* NULL: the process's source */
    bool drawn;                     /* the state is given */
    uint64_t state[3];              /* counter low, counter high, key: where the stream begins */
} ed_draw;

/* A counted array of objects. Read during the call only. */
typedef struct ed_objects {
    void *const *values; /* the objects */
    int64_t count;       /* how many there are */
} ed_objects;

/* What a value must be. Numbers (of lists: each): low and high, in or out. */
typedef struct ed_limits {
    bool bounded;               /* whether low and high count */
    bool above_low, below_high; /* low < x rather than low <= x; likewise high */
    double low, high;           /* the bounds */
    const char *const *words;   /* of a choice; ended by NULL */
    const char *otherwise; /* of an object: what NULL stands for, a kind of the family by name */
    bool some;             /* of a list of objects: entries may be NULL */
    bool required;         /* no default makes sense; of numbers the bounds tell */
} ed_limits;

/* Limits of a field: none; that it must be given, which help says; of a list, that entries may be
 * NULL; numbers that are finite, from `least` on, above `below`, from `least` to `most`, from
 * `least` to below `above`, from above `above` to below `below`; one of the words; what NULL stands
 * for. */
#define ED_ANY                                                                                     \
    {                                                                                              \
        .bounded = false                                                                           \
    }
#define ED_REQUIRED                                                                                \
    {                                                                                              \
        .required = true                                                                           \
    }
#define ED_SOME                                                                                    \
    {                                                                                              \
        .some = true                                                                               \
    }
#define ED_FINITE                                                                                  \
    {                                                                                              \
        .bounded = true, .low = -__builtin_inf(), .above_low = true, .high = __builtin_inf(),      \
        .below_high = true                                                                         \
    }
#define ED_AT_LEAST(least)                                                                         \
    {                                                                                              \
        .bounded = true, .low = least, .high = __builtin_inf(), .below_high = true                 \
    }
#define ED_ABOVE(below)                                                                            \
    {                                                                                              \
        .bounded = true, .low = below, .above_low = true, .high = __builtin_inf(),                 \
        .below_high = true                                                                         \
    }
#define ED_BETWEEN(least, most)                                                                    \
    {                                                                                              \
        .bounded = true, .low = least, .high = most                                                \
    }
#define ED_FROM(least, above)                                                                      \
    {                                                                                              \
        .bounded = true, .low = least, .high = above, .below_high = true                           \
    }
#define ED_WITHIN(above, below)                                                                    \
    {                                                                                              \
        .bounded = true, .low = above, .above_low = true, .high = below, .below_high = true        \
    }
#define ED_ONE_OF(...)                                                                             \
    {                                                                                              \
        .words = (const char *const[])                                                             \
        {                                                                                          \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }
#define ED_OTHERWISE(kind)                                                                         \
    {                                                                                              \
        .otherwise = kind                                                                          \
    }

/* An option: one line of a list, as the schema has it. */
typedef struct ed_field {
    const char *name;   /* as in the structure */
    ed_field_type type; /* of the value */
    size_t offset;      /* in the structure, in bytes */
    const char *doc;    /* what it means, in a few words */
    ed_limits limits;   /* what it may be */
} ed_field;

/* Where the field lies in a structure of options. */
#define ED_FIELD_AT(field, options) ((void *)((char *)(options) + (field)->offset))

/* The default of a list: not given. */
#ifdef __cplusplus
#define ED_NO_LIST                                                                                 \
    {                                                                                              \
    }
#else
#define ED_NO_LIST                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }
#endif

/* ---- Structures of options ------------------------------------------------------------------- */

/* Complete structures begin with this number. */
#define ED_OPTIONS_MARK 0x6564796f

/* The C type of each type of field. */
#define ED_C_BOOL        bool
#define ED_C_INT         int64_t
#define ED_C_FLOAT       double
#define ED_C_DTYPE       ed_dtype
#define ED_C_INTS        ed_ints
#define ED_C_FLOATS      ed_floats
#define ED_C_STRING      const char *
#define ED_C_CHOICE      const char *
#define ED_C_AXIS        int64_t
#define ED_C_AXES        ed_ints
#define ED_C_ACTIVATION  const char *
#define ED_C_DRAW        ed_draw
#define ED_C_OBJECT      void *
#define ED_C_GENERATOR   struct ed_generator *
#define ED_C_INITIALIZER struct ed_initializer *
#define ED_C_REGULARIZER struct ed_regularizer *
#define ED_C_CONSTRAINT  struct ed_constraint *
#define ED_C_SCHEDULE    struct ed_schedule *
#define ED_C_LOSS        struct ed_loss *
#define ED_C_OPTIMIZER   struct ed_optimizer *
#define ED_C_LAYER       struct ed_layer *
#define ED_C_LAYERS      ed_objects
#define ED_C_OBJECTS     ed_objects

/* Behind the last option: a value without a name would land here, which is a compile error. */
struct ed_options_have_names;

/* ED_OPTIONS(ed_x_options, ED_X_OPTIONS): the structure. In C++ its members begin with their
 * defaults; in C the macros below begin it. */
#ifdef __cplusplus
#define ED_MEMBER_(T, type, name, initial, ...) ED_C_##type name = initial;
#define ED_OPTIONS(T, LIST)                                                                        \
    struct T {                                                                                     \
        uint32_t mark_ = ED_OPTIONS_MARK;                                                          \
        LIST(ED_MEMBER_, T)                                                                        \
        struct ed_options_have_names *end_ = nullptr;                                              \
    }
#else
#define ED_MEMBER_(T, type, name, ...) ED_C_##type name;
#define ED_OPTIONS(T, LIST)                                                                        \
    typedef struct T {                                                                             \
        uint32_t mark_;                                                                            \
        LIST(ED_MEMBER_, T)                                                                        \
        struct ed_options_have_names *end_;                                                        \
    } T
#endif

#define ED_DEFAULT_(T, type, name, initial, ...) .name = initial,

/* The initializer of a complete structure: ED_COMPLETE(ED_X_OPTIONS, T, .rate = 2). */
#define ED_COMPLETE(LIST, T, ...)                                                                  \
    {                                                                                              \
        .mark_ = ED_OPTIONS_MARK, LIST(ED_DEFAULT_, T) __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__)  \
    }

/* A complete structure of defaults, for functions that take a pointer:
 * ed_optimizer_sgd_options o = ED_NEW_OPTIONS(ED_OPTIMIZER_SGD_OPTIONS, ed_optimizer_sgd_options);
 * o.momentum = 0.9; */
#define ED_NEW_OPTIONS(LIST, T) ((T)ED_COMPLETE(LIST, T))

/* What a function named f(a, .option = value) is a macro for: call, whose options are the address
 * of ed_options_. */
#define ED_WITH_OPTIONS(call, LIST, T, ...)                                                        \
    ED_WITH(call, T, .mark_ = ED_OPTIONS_MARK,                                                     \
            LIST(ED_DEFAULT_, T) __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

/*
 * Declares a kind of the library: the structure of its options and the function that makes an
 * object of them. The options behind the list are arguments by position.
 *
 *     ED_KIND(layer, dense, ED_LAYER_DENSE_OPTIONS, units);
 *
 * declares ed_layer_dense_options and ed_layer_dense_with, which takes a complete structure or NULL
 * for the defaults. The macro ed_layer_dense(10, .use_bias = false), and eddy::layers::dense of
 * C++, are made from the same line.
 */
#define ED_KIND(family, kind, LIST, ...)                                                           \
    ED_OPTIONS(ed_##family##_##kind##_options, LIST);                                              \
    ed_##family *ed_##family##_##kind##_with(const ed_##family##_##kind##_options *options)

/*
 * The address of a complete structure T with the options of a list, copied from the structure that
 * `from` points to, and more: for attributes that consist of options and arguments. It is complete
 * if `from` is.
 */
#define ED_OPTIONS_FROM(LIST, from, T, ...)                                                        \
    (&(const T){.mark_ = (from)->mark_, LIST(ED_COPY_, from) __VA_ARGS__})
#define ED_COPY_(from, type, name, ...) .name = (from)->name,

/* The schema, an array that ends by a field without a name. */
#define ED_FIELD_(T, type, name, initial, limits, doc)                                             \
    {#name, ED_FIELD_##type, offsetof(T, name), doc, limits},
#define ED_FIELDS(LIST, T)                                                                         \
    {                                                                                              \
        LIST(ED_FIELD_, T)                                                                         \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }

/* Both for the definition of a kind: the arrays symbol_fields and symbol_defaults. */
#define ED_SCHEMA(symbol, LIST, T)                                                                 \
    static const ed_field symbol##_fields[] = ED_FIELDS(LIST, T);                                  \
    static const T symbol##_defaults = ED_COMPLETE(LIST, T)

/* ---- Kinds of objects ------------------------------------------------------------------------ */

/*
 * A kind of object that is made from options: the layer "dense", the optimizer "adam". Kinds of the
 * library and of programs (ed_kind_register) are alike.
 */
typedef struct ed_kind {
    const char *family;     /* "layer", "optimizer", "initializer", "loss", ... */
    const char *name;       /* of the kind: "dense" */
    const char *doc;        /* one line */
    const ed_field *fields; /* NULL: none */
    size_t options_size;    /* bytes of the structure of options */
    const void *defaults;   /* a complete structure of options */
    int required;           /* the first so many options have no default: they are arguments */
    const char *short_name; /* by which ed_kind_find knows it too, as "mse"; NULL: none */

    /* A new object, in the scope; the options are complete and within their limits. NULL, with an
     * error, on failure. */
    void *(*make)(const struct ed_kind *kind, const void *options);

    /* May be NULL. Brings a plain copy of an object's options to what they are now, for objects
     * that change after they were made. */
    void (*present)(const void *object, void *options);
} ed_kind;

/*
 * Makes an object of the kind; options NULL: the defaults. Fails for options that are not complete
 * or beyond their limits; the message names the field.
 */
void *ed_make(const ed_kind *kind, const void *options);

/* Adds a kind, which must stay where it is; fails on an incomplete one or a name that its family
 * has already. */
bool ed_kind_register(const ed_kind *kind);

/* The kind of that family and name, or short name, in any case; NULL, with an error that says which
 * names are near, if there is none. */
const ed_kind *ed_kind_find(const char *family, const char *name);

/* The number of kinds. */
int ed_kind_count(void);

/* Kind i: the library's by family and name, then programs' own; NULL if i is out of bounds. */
const ed_kind *ed_kind_at(int i);

/* The kind of an object and the options it was made with; NULL if it was not made by a kind. Valid
 * as long as the object. */
const ed_kind *ed_kind_of(const void *object);
const void *ed_options_of(const void *object);

#pragma GCC visibility pop
#endif
