/* The types that every header needs: dtypes, lists of integers, named options. */
#ifndef EDDY_TYPES_H
#define EDDY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* ---- Where a call stands --------------------------------------------------------------------- */

/*
 * A place in the program. In C, calls of Eddy's functions note theirs, so that an error knows it
 * (ed_error_place): eddy.h ends with a macro for each function (places.h), of which it stands in
 * ED_AT. A program that defines EDDY_NO_PLACES before it includes eddy.h has none of this, nor have
 * (ed_add)(a, b), callbacks' calls out of other languages, and the few functions that keep the
 * address of an argument. What an argument points to lives as long as the call.
 */
typedef struct ed_place {
    const char *file;     /* the source's name */
    const char *function; /* NULL: not known */
    int line;             /* counted from 1 */
} ed_place;

/* The place of the call that this thread is in; NULL: not known. Languages that know theirs set it
 * around a call, and set it back. */
extern __thread const ed_place *ed_here __attribute__((tls_model("initial-exec")));

/* The call, with ed_here set to where it stands for as long as it lasts. */
#if defined(EDDY_NO_PLACES) || defined(__cplusplus)
#define ED_AT(call) call
#else
#define ED_AT(call)                                                                                \
    __extension__({                                                                                \
        static const ed_place place_ = {__FILE__, __func__, __LINE__};                             \
        __attribute__((cleanup(ed_leave_place_), unused)) const ed_place *outer_ = ed_here;        \
        ed_here = &place_;                                                                         \
        call;                                                                                      \
    })
static inline void ed_leave_place_(const ed_place *const *outer)
{
    ed_here = *outer;
}
#endif

/* ---- Dtypes ---------------------------------------------------------------------------------- */

/*
 * Element types. Arithmetic is done in float32, float64, int32, int64 and (where named) uint8; the
 * others are for storage: cast, shape and index ops take them, variables hold them, arithmetic does
 * not accept them. Dtypes are not mixed silently: two tensors of one call must have the same dtype
 * (ed_cast converts); plain numbers take the dtype of the tensor they are combined with.
 */
typedef enum ed_dtype {
    ED_DTYPE_NONE, /* "not given" in options */
    ED_FLOAT32,
    ED_FLOAT64,
    ED_INT32,
    ED_INT64,
    ED_UINT8,
    ED_BOOL, /* one byte, 0 or 1 */
    ED_FLOAT16,
    ED_BFLOAT16,
    ED_INT8,
    ED_INT16,
    ED_UINT16,
    ED_UINT32,
    ED_UINT64,
    ED_DTYPE_COUNT
} ed_dtype;

/* The largest rank of a tensor. */
#define ED_MAX_RANK 8

/* "float32" and so on; "none" for anything that is no dtype. */
const char *ed_dtype_name(ed_dtype dtype);

/* Bytes of one element; 0 for anything that is no dtype. */
size_t ed_dtype_size(ed_dtype dtype);

/* Whether gradients flow through values of this dtype: float32, float64, float16, bfloat16. */
bool ed_dtype_is_float(ed_dtype dtype);

/*
 * Element i of an array of the dtype as a number (64-bit integers beyond 2^53 rounded) / from one.
 * Storing fails for what the dtype does not hold: integers hold whole numbers within their range,
 * bool 0 and 1, floats any number.
 */
double ed_dtype_load(ed_dtype dtype, const void *array, int64_t i);
bool ed_dtype_store(ed_dtype dtype, void *array, int64_t i, double number);
bool ed_dtype_holds(ed_dtype dtype, double number);

/* ---- Lists of numbers: shapes, axes, permutations -------------------------------------------- */

/* A counted array of integers; values == NULL means "not given". Read during the call only, never
 * kept. */
typedef struct ed_ints {
    const int64_t *values; /* the integers */
    int64_t count;         /* how many there are */
} ed_ints;

/* ED_INTS(2, 3), and the same under the names that say what is meant: ED_SHAPE(2, 3), ED_AXES(-1);
 * ED_SHAPE() is rank 0. */
#define ED_INTS(...)                                                                               \
    ((ed_ints){(const int64_t[]){0, __VA_ARGS__} + 1,                                              \
               sizeof((const int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1})
#define ED_SHAPE(...) ED_INTS(__VA_ARGS__)
#define ED_AXES(...)  ED_INTS(__VA_ARGS__)

/* A counted array of numbers; values == NULL means "not given". Read during the call only, never
 * kept. */
typedef struct ed_floats {
    const double *values; /* the numbers */
    int64_t count;        /* how many there are */
} ed_floats;

/* ED_FLOATS(0.1, 0.01) */
#define ED_FLOATS(...)                                                                             \
    ((ed_floats){(const double[]){0, __VA_ARGS__} + 1,                                             \
                 sizeof((const double[]){0, __VA_ARGS__}) / sizeof(double) - 1})

/* A counted array of strings; values == NULL means "not given". */
typedef struct ed_strings {
    const char *const *values; /* the strings */
    int64_t count;             /* how many there are */
} ed_strings;

/* ED_STRINGS("model*", "step") */
#define ED_STRINGS(...)                                                                            \
    ((ed_strings){(const char *const[]){NULL, __VA_ARGS__} + 1,                                    \
                  sizeof((const char *const[]){NULL, __VA_ARGS__}) / sizeof(char *) - 1})

/*
 * Nothing. A macro whose last argument may be left out, f(x, ...), writes ED_OPTIONAL_(0,
 * ##__VA_ARGS__) beside its __VA_ARGS__: where `, ##__VA_ARGS__` stands in a macro, clang's
 * -pedantic allows a call without that argument.
 */
#define ED_OPTIONAL_(...)

/* The address of plain options: those that a call gives, 0 for the others. */
#define ED_GIVEN_(type, ...) __extension__(&(type){__VA_ARGS__})

/*
 * Named options behind a macro: ED_WITH(call, options_type, defaults and the user's options...)
 * declares `ed_options_` from the defaults and the user's words, which override them, and is the
 * value of `call`.
 */
#ifdef __clang__
#define ED_QUIET_ _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"")
#else
#define ED_QUIET_ _Pragma("GCC diagnostic ignored \"-Woverride-init\"")
#endif
#define ED_WITH(call, type, ...)                                                                   \
    __extension__({                                                                                \
        _Pragma("GCC diagnostic push") ED_QUIET_ _Pragma("GCC diagnostic ignored \"-Wshadow\"")    \
            const type ed_options_ = {__VA_ARGS__};                                                \
        __auto_type ed_result_ = call;                                                             \
        _Pragma("GCC diagnostic pop") ed_result_;                                                  \
    })

#pragma GCC visibility pop
#endif
