/*
 * Tensors, variables and lists, and the rules that hold everywhere.
 *
 * Ownership. Every object has a reference count. What a function creates belongs to the innermost
 * open scope of its thread and is released when that scope closes; ed_keep moves it to the
 * enclosing scope; containers hold their own references. Intermediate results need not be freed.
 *
 * Errors. The first error of a thread is kept until ed_clear_error; the failing call returns NULL
 * (or false, or 0), and a call that is given NULL returns NULL and does nothing. So calls may be
 * chained, and ed_failed checked once at the end. To see errors that a program does not look at,
 * run it with EDDY_ERRORS=print in the environment.
 *
 * Values. A tensor never changes: it is a view (dtype, shape, strides) of a shared buffer. A
 * variable is a tensor whose value can be replaced; it can be used wherever a tensor can, and then
 * means its present value.
 *
 * Threads. Tensors may be shared between threads freely. Scopes, errors and tapes belong to their
 * thread. A variable may be read from many threads, but not while one of them assigns it.
 */
#ifndef EDDY_TENSOR_H
#define EDDY_TENSOR_H

#include "tensor/schema.h"
#include <stdio.h>

#pragma GCC visibility push(default)

/* A tensor: dtype, shape and strides of elements in a buffer that others may share. */
typedef struct ed_tensor ed_tensor;

/* A list of tensors. */
typedef struct ed_list ed_list;

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The kinds of errors. */
typedef enum ed_error_code {
    ED_OK,
    ED_INVALID_ARGUMENT,    /* wrong shape, dtype, rank, axis, option, NULL */
    ED_OUT_OF_RANGE,        /* an index or label outside its bounds */
    ED_OUT_OF_MEMORY,       /* an allocation failed or would be larger than any machine's memory */
    ED_NOT_FOUND,           /* a file, op or name that does not exist */
    ED_FAILED_PRECONDITION, /* right call, wrong moment: a consumed tape, an unbuilt layer */
    ED_UNIMPLEMENTED,       /* not differentiable; not for this dtype */
    ED_DATA_LOSS,           /* a damaged or truncated file */
    ED_IO,                  /* the operating system refused */
    ED_CANCELLED            /* ed_interrupt */
} ed_error_code;

/* Whether an error is kept in this thread. */
bool ed_failed(void);

/* The kept error as one sentence behind the file and line of the call, "" if none: "train.c:12:
 * add: the shapes ...". Valid until the next error of this thread, which may quote it. Of more than
 * a thousand bytes the middle is left out. */
const char *ed_error(void);

/* The kept error's kind, ED_OK if none. */
ed_error_code ed_error_kind(void);

/* The place of the call that failed, NULL if it is not known. Valid as ed_error is. */
const ed_place *ed_error_place(void);

/* Discards the kept error. */
void ed_clear_error(void);

/* Keeps an error of the caller's own, printf-like, unless one is kept already; returns NULL. For
 * ops, layers and callbacks: one that keeps an error has failed, whatever it returns. */
void *ed_fail(ed_error_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Messages of this thread count axes, operands and elements from `base` on, 0 (the default) or 1,
 * as the program's language does; returns what held before.
 */
int ed_set_index_base(int base);

/* A handler of errors: the kind, the message and what was given to ed_set_error_handler. */
typedef void (*ed_error_handler)(ed_error_code code, const char *message, void *user);

/*
 * Called in the failing thread at the moment an error is kept (for all threads; NULL: none, the
 * default). For what fails in the handler itself it is not called again. It may discard the error
 * (ed_clear_error): the call fails all the same. It may leave by longjmp:
 * the thread then works on as if the failed call had returned, and memory and files that the call
 * held itself stay so until the process ends. Scopes that were opened since setjmp are closed with
 * the next scope outside. For an error within a function that the library calls, see
 * ed_scope_close.
 *
 * The environment variable EDDY_ERRORS has another: EDDY_ERRORS=print writes each error that is
 * kept to standard error, =backtrace the calls that led to it too, =abort ends the program there,
 * which a debugger shows.
 */
void ed_set_error_handler(ed_error_handler handler, void *user);

/*
 * The handler is called, once per thread, when its root scope holds more than a hundred thousand
 * objects: most likely a missing ED_SCOPE. NULL (the default): no handler.
 */
void ed_set_warning_handler(void (*handler)(const char *message, void *user), void *user);

/* ---- Scopes and references ------------------------------------------------------------------- */

/* A scope that is open; see ED_SCOPE below. */
typedef struct ed_scope {
    uint32_t depth; /* counted from 1; 0: it was closed */
} ed_scope;

/* Opens a scope. ED_SCOPE opens and closes one. */
ed_scope ed_scope_open(void);

/*
 * Closes a scope and the scopes that are still open inside it. A function that the library calls
 * (of ed_recompute, an op, a layer, a listener, a deleter and the like) can close only scopes that
 * it opens itself: for another one it is an error, and the scope stays open. Such a function
 * returns: leaving it by longjmp or by a C++ exception crashes nothing, but a tape whose gradient
 * was being computed can't be used again, and variables may have the values that the function was
 * to see.
 */
void ed_scope_close(ed_scope *scope);

/* A declaration: what is created after it is released at the end of its block, however the block is
 * left. */
#define ED_SCOPE                                                                                   \
    ed_scope ED_PASTE_(ed_scope_, __LINE__) __attribute__((cleanup(ed_scope_close), unused)) =     \
        ed_scope_open()
#define ED_PASTE_(a, b)  ED_PASTE2_(a, b)
#define ED_PASTE2_(a, b) a##b

/*
 * Moves an object (tensor, list, tape, layer, ...) of the innermost scope to the enclosing scope
 * and returns it; an object that belongs elsewhere lives longer anyway and is returned unchanged.
 */
void *ed_keep(void *object);

/* Holds an object until the innermost scope closes, even if it is released elsewhere meanwhile;
 * returns it, or NULL on failure. */
void *ed_scope_hold(void *object);

/* Uninitialised memory that is freed when the innermost scope closes. NULL on failure. */
void *ed_scope_alloc(size_t bytes);

/* Takes a reference that no scope releases, for the fields of a program's own structures; returns
 * the object. NULL is allowed. */
void *ed_retain(void *object);

/* Gives back a reference of ed_retain. NULL is allowed. */
void ed_release(void *object);

/* ---- Threads --------------------------------------------------------------------------------- */

/*
 * The number of threads that large ops use, including the calling one: initially EDDY_NUM_THREADS,
 * else OMP_NUM_THREADS, else the number of cores this process may use. Results do not depend on it,
 * whatever rounding (fesetround) or flushing to zero the calling thread has set: all threads that
 * work on its op follow it. Ops run with floating-point traps (feenableexcept) switched off.
 *
 * A thread of yours that calls the library needs 32 KiB of stack, beside the thread-local variables
 * of all libraries, which lie there too.
 */
int ed_num_threads(void);

/* Sets it; false unless count is 1 to 64. */
bool ed_set_num_threads(int count);

/*
 * For a handler of Ctrl-C or a watchdog; async-signal-safe. From ed_interrupt to
 * ed_clear_interrupt every op of every thread fails with ED_CANCELLED; a large one that runs ends
 * early. An op that fails this way changes nothing: variables and optimizers are as after the last
 * call that succeeded, so a program can save them and exit. Generators and datasets may have
 * advanced.
 */
void ed_interrupt(void);

/* Ends the interrupt: ops run again. */
void ed_clear_interrupt(void);

/* Whether ed_interrupt was called and not cleared. */
bool ed_interrupted(void);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* What ed_memory_stats says. */
typedef struct ed_memory {
    int64_t live_tensors; /* tensors and variables that are referenced */
    int64_t live_bytes;   /* bytes held by all objects, the library's own bookkeeping included */
    int64_t peak_bytes;   /* largest live_bytes since the start or ed_memory_reset_peak, exact to 64
                             KiB a thread */
    int64_t cached_bytes; /* freed and kept for reuse */
} ed_memory;

/* The figures of the whole process. */
ed_memory ed_memory_stats(void);

/* live_bytes alone, at the cost of one read; what other threads made lately may be missing, at most
 * 64 KiB a thread. */
int64_t ed_memory_live(void);

/*
 * Memory for structures that a program or a binding keeps beside Eddy's objects, all zero, counted
 * in live_bytes; NULL on failure. Any thread may free it; NULL is allowed.
 */
void *ed_memory_alloc(size_t bytes);
void ed_memory_free(void *memory);

/* Resets the peak to the present live bytes. */
void ed_memory_reset_peak(void);

/* Gives all cached memory of this thread and of the process back to the system; returns the number
 * of bytes. */
int64_t ed_memory_trim(void);

/* Bounds the cached bytes of the process (default 1 GiB), the small blocks that threads keep apart:
 * beyond it, what has been cached for longest goes back to the system. So does what would make live
 * and cached bytes exceed twice the most that were live lately (32 MiB are kept in any case). */
void ed_memory_set_cache_limit(int64_t bytes);

/*
 * For tests: allocation number n from now (0: the next) fails; with repeat every one after it fails
 * too. A negative n switches it off. Counts the allocations of all threads.
 */
void ed_memory_fail_at(int64_t n, bool repeat);

/* Whether the failure that ed_memory_fail_at asked for has happened. */
bool ed_memory_has_failed(void);

/* ---- Tensors --------------------------------------------------------------------------------- */

/*
 * A tensor of the given shape with a copy of the array's elements in row-major order; the dtype is
 * that of the pointer: float, double, bool, int8_t ... uint64_t. The array must hold as many
 * elements as the shape says; where the compiler knows its size, that is checked. 16-bit floats
 * have no C type: ed_constant_of takes their bits.
 *
 *     ed_constant(ED_VALUES(float, 1, 2, 3, 4), ED_SHAPE(2, 2))
 */
#define ed_constant(array, shape)                                                                  \
    ed_constant_within(ED_DTYPE_OF_(array), array, ED_BYTES_OF_(array), shape)
ed_tensor *ed_constant_of(ed_dtype dtype, const void *data, ed_ints shape);

/* The same from at most so many bytes (SIZE_MAX: unknown); fails if the shape takes more. */
ed_tensor *ed_constant_within(ed_dtype dtype, const void *data, size_t bytes, ed_ints shape);

/* An array on the spot; its elements may be written where a macro's argument can't hold commas. */
#define ED_VALUES(type, ...) ((type[]){__VA_ARGS__})

/* C's own types, whichever of them int64_t is. (clang-format takes the types for labels.) */
/* clang-format off */
#define ED_DTYPE_OF_(array)                                                                        \
    _Generic((array)[0],                                                                           \
        float: ED_FLOAT32, double: ED_FLOAT64, bool: ED_BOOL,                                      \
        signed char: ED_INT8, unsigned char: ED_UINT8, short: ED_INT16, unsigned short: ED_UINT16, \
        int: ED_INT32, unsigned: ED_UINT32, long long: ED_INT64, unsigned long long: ED_UINT64,    \
        long: sizeof(long) == 4 ? ED_INT32 : ED_INT64,                                             \
        unsigned long: sizeof(long) == 4 ? ED_UINT32 : ED_UINT64)
/* clang-format on */

/* The size of an array; of what a pointer points to, if the compiler knows it, else SIZE_MAX. */
#define ED_BYTES_OF_(array)                                                                        \
    (__builtin_types_compatible_p(__typeof__(array), __typeof__(&(array)[0]))                      \
         ? __builtin_object_size(array, 0)                                                         \
         : sizeof(__typeof__(array)))

/*
 * A tensor on the caller's own memory, row-major, without a copy. The memory must not change while
 * a tensor uses it. When the last view of it goes, deleter(data, user) is called, in the thread
 * that released it; on failure it is not called. deleter may be NULL. Fails if data is not aligned
 * to its elements, and if a bool is another byte than 0 and 1.
 */
ed_tensor *ed_wrap(ed_dtype dtype, void *data, ed_ints shape,
                   void (*deleter)(void *data, void *user), void *user);

/*
 * A tensor of uninitialised elements, which the caller writes through *data, in row-major order,
 * before anything else uses the tensor: so nothing is copied that comes from another language.
 */
ed_tensor *ed_empty(ed_dtype dtype, ed_ints shape, void **data);

/*
 * A 0-d tensor: ed_scalar(2.5) is float32, ed_scalar(3) is int32, ed_scalar(true) too; ed_scalar(3,
 * .dtype = ED_FLOAT64) says otherwise. Fails if the dtype can't hold the number (300 as uint8, 0.5
 * as int32).
 */
#define ED_SCALAR_OPTIONS(FIELD, T)                                                                \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY, "default: float32, int32 or int64")
ED_OPTIONS(ed_scalar_options, ED_SCALAR_OPTIONS);
#define ed_scalar(number, ...)                                                                     \
    ED_WITH_OPTIONS(ed_scalar_with(ED_TENSOR(number), &ed_options_), ED_SCALAR_OPTIONS,            \
                    ed_scalar_options, ##__VA_ARGS__)
ed_tensor *ed_scalar_with(ed_tensor *number, const ed_scalar_options *options);

/* The type of parameters that take a number through their function's macro. */
typedef ed_tensor ed_tensor_like;

/*
 * Operands: whatever stands where ops take a tensor. A tensor is itself; a plain number is a weak
 * 0-d tensor, which takes the dtype of the tensors that it meets (float32 or int32 if it meets
 * none; int64 if it is too large for that). Other objects, and other pointers, are not compiled.
 */
/* clang-format off */
#define ED_TENSOR(operand)                                                                         \
    _Generic((operand),                                                                            \
        ed_tensor *: ed_as_tensor, const ed_tensor *: ed_as_tensor, void *: ed_as_tensor,          \
        float: ed_number, double: ed_number, long double: ed_number,                               \
        bool: ed_integer, char: ed_integer, signed char: ed_integer, unsigned char: ed_integer,    \
        short: ed_integer, unsigned short: ed_integer, int: ed_integer, unsigned: ed_integer,      \
        long: ed_integer, unsigned long: ed_integer,                                               \
        long long: ed_integer, unsigned long long: ed_integer)(operand)
/* clang-format on */
ed_tensor *ed_as_tensor(const void *tensor);
ed_tensor *ed_number(double number);
ed_tensor *ed_integer(int64_t number);

/* Whether it is a plain number, whose dtype is only what it becomes where it meets no tensor. */
bool ed_is_weak(const ed_tensor *tensor);

/* The dtype; ED_DTYPE_NONE for NULL. */
ed_dtype ed_dtype_of(const ed_tensor *tensor);

/* The rank: the number of dimensions; 0 for NULL. */
int ed_rank(const ed_tensor *tensor);

/* The number of elements; 0 for NULL; -1 for a symbolic tensor (nn/graph.h) with a size that is
 * open. */
int64_t ed_size(const ed_tensor *tensor);

/* The shape; valid as long as the tensor. Of a symbolic tensor an open size is -1. */
ed_ints ed_shape(const ed_tensor *tensor);

/* The size along an axis, -1 being the last; 0, with an error, if the axis is out of bounds. */
int64_t ed_dim(const ed_tensor *tensor, int axis);

/* The strides in elements, one for each dimension; valid as long as the tensor. */
ed_ints ed_strides(const ed_tensor *tensor);

/* Whether the elements are in row-major order without gaps. */
bool ed_is_contiguous(const ed_tensor *tensor);

/*
 * The element of a tensor of one element as a double; integers beyond 2^53 are rounded. NaN, with
 * an error, for other sizes.
 */
double ed_item(const ed_tensor *tensor);

/* The same as an int64, fractions dropped. 0, with an error, for other sizes and for values outside
 * the range of int64. */
int64_t ed_item_int64(const ed_tensor *tensor);

/* The element with an index along each axis, negative from the end, as a double: ed_item_at(x, 2,
 * -1) of a matrix. NaN, with an error, for another number of indices and for one out of bounds. */
#define ed_item_at(tensor, ...) ED_AT(ed_item_at_of(tensor, ED_INTS(__VA_ARGS__)))
double ed_item_at_of(const ed_tensor *tensor, ed_ints indices);

/*
 * Copies all elements in row-major order into an array of `count` elements, whose pointer's type
 * must be the tensor's dtype and whose count its size. false on failure. The plain function takes
 * the dtype.
 */
#define ed_copy_to(tensor, array, count) ed_copy_to_of(tensor, ED_DTYPE_OF_(array), array, count)
bool ed_copy_to_of(const ed_tensor *tensor, ed_dtype dtype, void *array, int64_t count);

/*
 * The elements in row-major order, read only: of the tensor itself if it is contiguous, else of a
 * copy that belongs to the scope. For a variable: of its present value. NULL on failure; never NULL
 * otherwise, not even for an empty tensor.
 */
const void *ed_data(const ed_tensor *tensor);

/* A number that is unique among all tensors that the process ever had; 0 for NULL. */
uint64_t ed_tensor_id(const ed_tensor *tensor);

/* ---- Comparing ------------------------------------------------------------------------------- */

/* What ed_all_close found. */
typedef struct ed_close_report {
    int64_t size;        /* the number of elements compared */
    int64_t different;   /* of them beyond the tolerance */
    int64_t worst;       /* the one farthest beyond it, as an index into all in row-major order;
                             -1: none */
    double a, b;         /* its two values */
    double max_absolute; /* the largest |a - b| of all finite elements */
    double max_relative; /* the largest |a - b| / |b| */
    char text[420];      /* that as a sentence for a test's message; "" if they are close */
} ed_close_report;

/*
 * Whether two tensors have the same shape and |a - b| <= atol + rtol |b| for all elements: for
 * tests. NaN equals NaN, an infinity itself; dtypes may differ. Different shapes or elements are no
 * error, the report says which; report may be NULL. false, with an error, for NULL and for a
 * tolerance that is negative or NaN.
 */
bool ed_all_close(const ed_tensor *a, const ed_tensor *b, double rtol, double atol,
                  ed_close_report *report);

/* ---- Printing -------------------------------------------------------------------------------- */

/* How tensors are printed, in NumPy's sense. */
#define ED_PRINT_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, INT, threshold, 1000, ED_AT_LEAST(0),                                                 \
          "of more elements only the first and last of each axis are shown")                       \
    FIELD(T, INT, edge_items, 3, ED_AT_LEAST(1), "number of first and of last ones")               \
    FIELD(T, INT, precision, 8, ED_BETWEEN(0, 100),                                                \
          "maximum number of digits after the point; a scalar has all it needs")                   \
    FIELD(T, INT, width, 75, ED_AT_LEAST(10), "columns of a line")
ED_OPTIONS(ed_print_options, ED_PRINT_OPTIONS);

/*
 * The tensor as NumPy prints it, with dtype and shape below: ed_to_string(x, .precision = 3). The
 * string belongs to the scope.
 */
const char *ed_to_string_with(const ed_tensor *tensor, const ed_print_options *options);
#define ed_to_string(tensor, ...)                                                                  \
    ED_WITH_OPTIONS(ed_to_string_with(tensor, &ed_options_), ED_PRINT_OPTIONS, ed_print_options,   \
                    ##__VA_ARGS__)

/* Writes that and a newline to a file; NULL behind a failed call as NULL and the kept error.
 * false on failure. */
bool ed_print_with(FILE *file, const ed_tensor *tensor, const ed_print_options *options);
#define ed_print(file, tensor, ...)                                                                \
    ED_WITH_OPTIONS(ed_print_with(file, tensor, &ed_options_), ED_PRINT_OPTIONS, ed_print_options, \
                    ##__VA_ARGS__)

/* ---- Variables ------------------------------------------------------------------------------- */

/* Options of ed_variable. */
#define ED_VARIABLE_OPTIONS(FIELD, T)                                                              \
    FIELD(T, STRING, name, NULL, ED_ANY, "copied; default: \"Variable\"")                          \
    FIELD(T, BOOL, trainable, true, ED_ANY,                                                        \
          "tapes watch it by themselves, and it is in lists of trainable variables")
ED_OPTIONS(ed_variable_options, ED_VARIABLE_OPTIONS);

/*
 * A variable with the initial value, dtype and shape of `initial`:
 * ed_variable(ed_zeros(ED_SHAPE(3)), .name = "bias"). Later changes copy only if the old value is
 * still referenced elsewhere.
 */
ed_tensor *ed_variable_with(ed_tensor *initial, const ed_variable_options *options);
#define ed_variable(initial, ...)                                                                  \
    ED_WITH_OPTIONS(ed_variable_with(ED_TENSOR(initial), &ed_options_), ED_VARIABLE_OPTIONS,       \
                    ed_variable_options, ##__VA_ARGS__)

/* Whether the tensor is a variable. */
bool ed_is_variable(const ed_tensor *tensor);

/* The variable's name; NULL for other tensors. */
const char *ed_variable_name(const ed_tensor *variable);

/* Whether it is a trainable variable. */
bool ed_variable_is_trainable(const ed_tensor *variable);

/* Makes the variable trainable or not; false, with an error, for other tensors. */
bool ed_variable_set_trainable(ed_tensor *variable, bool trainable);

/* ops/ops.h has ed_value, which reads a variable as a tensor, and the ops that change one:
 * ed_assign and others. */

/* ---- Lists ----------------------------------------------------------------------------------- */

/*
 * A list of tensors and variables: ed_list_of(a, b, c). Fails if one of them is NULL. A list never
 * changes, so it can be shared.
 */
#define ed_list_of(...)                                                                            \
    ed_list_make((ed_tensor *const[]){__VA_ARGS__},                                                \
                 sizeof((ed_tensor *const[]){__VA_ARGS__}) / sizeof(ed_tensor *))
ed_list *ed_list_make(ed_tensor *const *tensors, int64_t count);

/* The same, but entries may be NULL: gradients that are not connected. */
ed_list *ed_list_make_optional(ed_tensor *const *tensors, int64_t count);

/* The number of entries; 0 for NULL. */
int64_t ed_list_size(const ed_list *list);

/* Entry i, -1 being the last: NULL if that entry is NULL, or, with an error, if i is out of bounds.
 * It lives as long as the list. */
ed_tensor *ed_list_get(const ed_list *list, int64_t i);

/* A new list: the entries of both, in order. */
ed_list *ed_list_concat(const ed_list *a, const ed_list *b);

#pragma GCC visibility pop
#endif
