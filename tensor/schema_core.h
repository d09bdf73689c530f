/* What the folders above do with schemas beyond the public header. */
#ifndef EDDY_TENSOR_SCHEMA_CORE_H
#define EDDY_TENSOR_SCHEMA_CORE_H

#include "tensor/core.h"
#include "tensor/schema.h"

/* Objects that ed_make makes begin with this; their class says so. */
typedef struct made_object {
    ed_object object;
    const ed_kind *kind;
    void *options; /* a copy that stands by itself */
} made_object;

/*
 * A new object of `bytes` bytes, all zero behind the made_object, of a class with `is_made`, that
 * holds a copy of the options; owned by nobody yet. NULL on failure.
 */
void *made_new(const object_class *class, size_t bytes, const ed_kind *kind, const void *options);

/*
 * A family whose objects are their options and nothing else: MADE_PLAIN(schedule) defines struct
 * ed_schedule and schedule_make, the kind.make of all its kinds.
 */
#define MADE_PLAIN(family)                                                                         \
    struct ed_##family {                                                                           \
        made_object made;                                                                          \
    };                                                                                             \
    static const object_class family##_object = {                                                  \
        .name = #family, .destroy = made_destroy, .is_made = true};                                \
    void *family##_make(const ed_kind *kind, const void *options)                                  \
    {                                                                                              \
        return scope_give(made_new(&family##_object, sizeof(ed_##family), kind, options));         \
    }
void made_destroy(void *object);

/*
 * A kind of such a family, which is one function, as in optim/constraints.c: its definition from
 * the list of options, and then the function's body. It gets `options`, a symbol_options, and the
 * parameters that stand last; the first `needed` options are required. The family has a structure
 * <family>_class of the kind and the function.
 */
#define FUNCTION_KIND(family, symbol, LIST, needed, text, result, ...)                             \
    typedef ed_##family##_##symbol##_options symbol##_options;                                     \
    static result symbol##_function(const void *options, __VA_ARGS__);                             \
    ED_SCHEMA(symbol, LIST, symbol##_options);                                                     \
    static const family##_class symbol##_class = {                                                 \
        .kind = SCHEMA_KIND(family, symbol, text, needed, family##_make),                          \
        .function = symbol##_function};                                                            \
    SCHEMA_KIND_END(family, symbol)                                                                \
    static result symbol##_function(const void *options, __VA_ARGS__)

/* For the class's destroy: gives up the options, not the object. */
void made_end(void *object);

/*
 * A copy of a structure of options that stands by itself, in a piece of memory of so many bytes:
 * lists and strings lie behind the structure, objects are retained until schema_release.
 */
size_t schema_bytes(const ed_field *fields, size_t size, const void *options);
void *schema_put(const ed_field *fields, size_t size, const void *options, void *room);
void schema_release(const ed_field *fields, const void *copy);

/* The same in memory of its own; NULL without it. schema_free gives all back. */
void *schema_copy(const ed_field *fields, size_t size, const void *options);
void schema_free(const ed_field *fields, void *copy);

/*
 * What a function is to go by: `options`, or the defaults of their list if it is NULL; NULL, with
 * an error that begins with `who`, if they are incomplete or beyond their limits.
 */
#define CHECKED_OPTIONS(who, LIST, options)                                                        \
    ({                                                                                             \
        static const ed_field fields_[] = ED_FIELDS(LIST, __typeof__(*(options)));                 \
        static const __typeof__(*(options)) defaults_ = ED_COMPLETE(LIST, );                       \
        (__typeof__(options))schema_options(who, fields_, &defaults_, options);                    \
    })
const void *schema_options(const char *who, const ed_field *fields, const void *defaults,
                           const void *options);

/* `options`, or the defaults of their list if it is NULL, unchecked. */
#define OPTIONS_OR_DEFAULTS(LIST, options)                                                         \
    ((options) ? (options) : &(const __typeof__(*(options)))ED_COMPLETE(LIST, ))

/* Whether the options begin with the mark of a complete structure; else false, with an error that
 * begins with `who`. */
bool schema_complete(const char *who, const void *options);

/* Whether every field is within its limits; else false, with an error that begins with `who`. */
bool schema_check(const char *who, const ed_field *fields, const void *options);

/* The same for one field. */
bool schema_check_field(const char *who, const ed_field *field, const void *options);

/* The field of that name, NULL if there is none. */
const ed_field *schema_find(const ed_field *fields, const char *name);

/* The kind whose name or short name that is, in any case; NULL, without an error, if there is
 * none. */
const ed_kind *kind_by_word(const char *family, const char *word);

/* Whether the kind is the library's own, and not one of a program. */
bool kind_is_builtin(const ed_kind *kind);

/* The family of the objects that a field of the type takes: "layer"; NULL for types that take no
 * objects, "object" for those that take any. */
const char *schema_family(ed_field_type type);

/*
 * What the definitions of all kinds have in common (INITIALIZER, LAYER, METRIC, OPTIMIZER): first
 * ED_SCHEMA, then a structure symbol_class whose `kind` is SCHEMA_KIND, last SCHEMA_KIND_END.
 */

/* The initializer of an ed_kind of the family; the first `needed` options are required. */
#define SCHEMA_KIND(family_, symbol, text, needed, function)                                       \
    {                                                                                              \
        .family = #family_, .name = #symbol, .doc = text, .fields = symbol##_fields,               \
        .options_size = sizeof symbol##_defaults, .defaults = &symbol##_defaults,                  \
        .required = needed, .make = function                                                       \
    }

/* Puts the kind into the table, which the linker gathers, and defines ed_<family>_<symbol>_with. */
#define SCHEMA_KIND_END(family, symbol)                                                            \
    static const ed_kind *kind_entry_##symbol                                                      \
        __attribute__((used, section("ed_kinds"), aligned(sizeof(void *)))) =                      \
            &symbol##_class.kind;                                                                  \
    ed_##family *ed_##family##_##symbol##_with(const ed_##family##_##symbol##_options *options)    \
    {                                                                                              \
        return ed_make(&symbol##_class.kind, options);                                             \
    }

#endif
