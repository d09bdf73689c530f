/*
 * The core: making and reading tensors, who owns what, errors, variables, lists, memory, threads.
 */
#include "eddy.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define REFUSED(call, words) assert_fails(call, ED_INVALID_ARGUMENT, words)

static int64_t live(void)
{
    return ed_memory_stats().live_tensors;
}

/* ---- Making and reading ---------------------------------------------------------------------- */

static void constants(void **state)
{
    (void)state;
    ED_SCOPE;
    float values[] = {1, 2, 3, 4, 5, 6};
    ed_tensor *x = ed_constant(values, ED_SHAPE(2, 3));
    values[0] = 9;
    assert_int_equal(ed_dtype_of(x), ED_FLOAT32);
    assert_int_equal(ed_rank(x), 2);
    assert_int_equal(ed_size(x), 6);
    assert_int_equal(ed_dim(x, -1), 3);
    assert_int_equal(ed_strides(x).values[0], 3);
    assert_true(ed_is_contiguous(x));
    assert_true(((const float *)ed_data(x))[0] == 1);
    assert_int_equal((uintptr_t)ed_data(x) % 64, 0);
    assert_int_equal(ed_dtype_of(ed_constant(((double[]){1}), ED_SHAPE(1))), ED_FLOAT64);
    assert_int_equal(ed_dtype_of(ed_constant(((int32_t[]){1}), ED_SHAPE(1))), ED_INT32);
    assert_int_equal(ed_dtype_of(ed_constant(((long long[]){1}), ED_SHAPE(1))), ED_INT64);
    assert_int_equal(ed_dtype_of(ed_constant(((const uint8_t[]){1}), ED_SHAPE(1))), ED_UINT8);
    assert_int_equal(ed_dtype_of(ed_constant(((bool[]){1}), ED_SHAPE(1))), ED_BOOL);
    assert_int_equal(((const uint8_t *)ed_data(ed_constant_of(ED_BOOL, "\7", ED_SHAPE(1))))[0], 1);
    assert_int_equal(ed_size(ed_constant(values, ED_SHAPE(0, 5))), 0);
    assert_non_null(ed_data(ed_constant(values, ED_SHAPE(0))));
    assert_int_equal(ed_size(ed_constant(values, ED_SHAPE())), 1);
    assert_true(ed_tensor_id(x) != ed_tensor_id(ed_constant(values, ED_SHAPE(2))));
    REFUSED(ed_constant(values, ED_SHAPE(-1)), "[-1]");
    REFUSED(ed_constant(values, (ed_ints){0}), "NULL");
    REFUSED(ed_constant((float *)NULL, ED_SHAPE(1)), "NULL");
    REFUSED(ed_constant(values, ED_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)), "rank must be 0 to 8, got 9");
    REFUSED(ed_constant(values, ((ed_ints){(int64_t[]){1}, INT64_MIN + 1})), "rank");
    REFUSED(ed_constant_of(ED_DTYPE_COUNT, values, ED_SHAPE(1)), "dtype");
    assert_null(ed_constant(values, ED_SHAPE(INT64_MAX, INT64_MAX)));
    failed_with(ED_OUT_OF_MEMORY, "more elements than memory can hold");
    assert_null(ed_constant(values, ED_SHAPE(INT64_MAX, INT64_MAX, 0))); /* in whichever order */
    failed_with(ED_OUT_OF_MEMORY, "more elements");
    assert_null(ed_constant(values, ED_SHAPE(0, INT64_MAX, INT64_MAX)));
    failed_with(ED_OUT_OF_MEMORY, "more elements");
    REFUSED(ed_dim(x, 2), "axis 2");
    REFUSED(ed_dim(NULL, 0), "NULL");
    assert_int_equal(ed_dtype_of(NULL), ED_DTYPE_NONE);
    assert_int_equal(
        ed_rank(NULL) + ed_size(NULL) + (int64_t)ed_tensor_id(NULL) + ed_shape(NULL).count, 0);
    assert_false(ed_failed());
}

static void dtypes(void **state)
{
    (void)state;
    static const char *const names[] = {"none",  "float32", "float64", "int32",    "int64",
                                        "uint8", "bool",    "float16", "bfloat16", "int8",
                                        "int16", "uint16",  "uint32",  "uint64"};
    static const size_t sizes[] = {0, 4, 8, 4, 8, 1, 1, 2, 2, 1, 2, 2, 4, 8};
    assert_int_equal(sizeof sizes / sizeof *sizes, ED_DTYPE_COUNT);
    for (int d = 0; d < ED_DTYPE_COUNT; d++) {
        assert_string_equal(ed_dtype_name((ed_dtype)d), names[d]);
        assert_int_equal(ed_dtype_size((ed_dtype)d), sizes[d]);
    }
    assert_string_equal(ed_dtype_name((ed_dtype)-5), "none");
    assert_int_equal(ed_dtype_size((ed_dtype)1000), 0);
    assert_true(ed_dtype_is_float(ED_BFLOAT16) && !ed_dtype_is_float(ED_BOOL) &&
                !ed_dtype_is_float((ed_dtype)99) && !ed_dtype_is_float(ED_UINT16));
}

/* Integers that are only stored: made from arrays and numbers of theirs, read, held by variables;
 * arithmetic names what it takes instead. */
static void stored_integers(void **state)
{
    (void)state;
    ED_SCOPE;
    uint64_t large[] = {UINT64_MAX, INT64_MAX, 7}, back[3] = {0};
    ed_tensor *x = ed_constant(large, ED_SHAPE(3));
    assert_int_equal(ed_dtype_of(x), ED_UINT64);
    assert_int_equal(ed_dtype_of(ed_constant(((unsigned long long[]){1}), ED_SHAPE(1))), ED_UINT64);
    assert_int_equal(ed_dtype_of(ed_constant(((const uint32_t[]){1}), ED_SHAPE(1))), ED_UINT32);
    assert_int_equal(ed_dtype_of(ed_constant(((uint16_t[]){1}), ED_SHAPE(1))), ED_UINT16);
    assert_int_equal(ed_dtype_of(ed_constant(((int16_t[]){1}), ED_SHAPE(1))), ED_INT16);
    assert_int_equal(ed_dtype_of(ed_constant(((int8_t[]){1}), ED_SHAPE(1))), ED_INT8);
    assert_true(ed_copy_to(ed_reverse(x, ED_AXES(0)), back, 3));
    assert_true(back[0] == 7 && back[1] == INT64_MAX && back[2] == UINT64_MAX);
    assert_int_equal(ed_item_int64(ed_index(x, 1)), INT64_MAX);
    assert_int_equal(ed_item_int64(ed_index(x, 0)), 0);
    failed_with(ED_OUT_OF_RANGE, "1.84467e+19 is not an int64");

    assert_int_equal(ed_item_int64(ed_scalar(INT64_MAX, .dtype = ED_UINT64)), INT64_MAX);
    assert_true(ed_item(ed_scalar(0x1.8p63, .dtype = ED_UINT64)) == 0x1.8p63);
    assert_true(ed_item(ed_scalar(-128, .dtype = ED_INT8)) == -128);
    REFUSED(ed_scalar(-1, .dtype = ED_UINT64), "-1 cannot be represented as uint64");
    REFUSED(ed_scalar(0x1p64, .dtype = ED_UINT64), "cannot be");
    REFUSED(ed_scalar(128, .dtype = ED_INT8), "128 cannot be represented as int8");
    REFUSED(ed_scalar(-32769, .dtype = ED_INT16), "cannot be");
    REFUSED(ed_scalar(65536, .dtype = ED_UINT16), "cannot be");
    REFUSED(ed_scalar(INT64_C(1) << 32, .dtype = ED_UINT32), "cannot be");

    ed_tensor *v = ed_variable(x);
    assert_ptr_equal(ed_assign(v, ed_ones(ED_SHAPE(3), .dtype = ED_UINT64)), v);
    assert_true(((const uint64_t *)ed_data(v))[2] == 1 && ((const uint64_t *)ed_data(x))[2] == 7);
    REFUSED(ed_assign(v, ed_ones(ED_SHAPE(3), .dtype = ED_INT64)),
            "variable is uint64[3], value is int64[3]");
    REFUSED(ed_assign_add(v, 1), "assign_add: variable is uint64[3]; it takes float32");
    REFUSED(ed_add(x, x), "add: a is uint64[3]; it takes float32, float64, int32, int64, uint8 "
                          "(ed_cast converts)");
}

/* Every 16-bit float goes to float32 and back; what lies between two goes to the nearer, ties to
 * the even one. */
static void halves(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = half_to_float((uint16_t)h), b = bfloat16_to_float((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(half_to_float(half_from_float(f))));
        else
            assert_int_equal(half_from_float(f), h);
        if (isnan(b))
            assert_true(isnan(bfloat16_to_float(bfloat16_from_float(b))));
        else
            assert_int_equal(bfloat16_from_float(b), h);
        if (h >= 0x7bff || isnan(f)) continue;
        float next = half_to_float((uint16_t)(h + 1)), middle = (f + next) / 2;
        assert_int_equal(half_from_float(middle), h & 1 ? h + 1 : h);
        assert_int_equal(half_from_float(nextafterf(middle, 0)), h);
        assert_int_equal(half_from_float(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(half_from_float(65519.996f), 0x7bff);
    assert_int_equal(half_from_float(65520), 0x7c00);
    assert_int_equal(half_from_float(0x1p-26f), 0);
    assert_int_equal(half_from_float(-0.0f), 0x8000);
    assert_int_equal(bfloat16_from_float(3.4e38f), 0x7f80);
}

static int deleted;
static void *deleted_data, *deleted_user;

static void count_deletion(void *data, void *user)
{
    deleted++;
    deleted_data = data;
    deleted_user = user;
}

static void wrapped(void **state)
{
    (void)state;
    float memory[6] = {1, 2, 3, 4, 5, 6};
    int user;
    deleted = 0;
    {
        ED_SCOPE;
        ed_tensor *view;
        {
            ED_SCOPE;
            ed_tensor *x = ed_wrap(ED_FLOAT32, memory, ED_SHAPE(2, 3), count_deletion, &user);
            assert_ptr_equal(ed_data(x), memory);
            view = ed_keep(ed_transpose(x));
        }
        assert_int_equal(deleted, 0);
        assert_true(ed_item(ed_index(ed_index(view, 2), 1)) == 6);
    }
    assert_int_equal(deleted, 1);
    assert_ptr_equal(deleted_data, memory);
    assert_ptr_equal(deleted_user, &user);
    {
        ED_SCOPE;
        REFUSED(ed_wrap(ED_FLOAT32, (char *)memory + 1, ED_SHAPE(1), count_deletion, NULL),
                "aligned");
        REFUSED(ed_wrap(ED_FLOAT32, memory, ED_SHAPE(-1), count_deletion, NULL), "negative");
        REFUSED(ed_wrap(ED_FLOAT32, NULL, ED_SHAPE(1), count_deletion, NULL), "NULL");
        REFUSED(ed_wrap(ED_DTYPE_NONE, memory, ED_SHAPE(1), count_deletion, NULL), "dtype");
        ed_scalar(1);
        for (int n = 0;; n++) {
            ED_SCOPE;
            ed_memory_fail_at(n, false);
            ed_tensor *x = ed_wrap(ED_FLOAT32, memory, ED_SHAPE(1), count_deletion, NULL);
            bool failed = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_int_equal(deleted, 1);
            if (!failed) break;
            assert_null(x);
            failed_with(ED_OUT_OF_MEMORY, "memory");
        }
    }
    assert_int_equal(deleted, 2);
}

/* A variable never writes into memory that is the caller's, with a deleter or without one. */
static void wrapped_variable(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        float memory[2] = {1, 2};
        ED_SCOPE;
        ed_tensor *v;
        {
            ED_SCOPE;
            v = ed_keep(ed_variable(
                ed_wrap(ED_FLOAT32, memory, ED_SHAPE(2), with ? count_deletion : NULL, NULL)));
        }
        ((float *)variable_write(v)->data)[0] = 7;
        assert_true(memory[0] == 1);
        memory[1] = 9;
        assert_true(((const float *)ed_data(v))[0] == 7 && ((const float *)ed_data(v))[1] == 2);
    }
}

static void scalars(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_int_equal(ed_dtype_of(ed_scalar(2.5)), ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_scalar(2.5f)), ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_scalar(3)), ED_INT32);
    assert_int_equal(ed_dtype_of(ed_scalar(true)), ED_INT32);
    assert_int_equal(ed_dtype_of(ed_scalar(INT64_C(1) << 40)), ED_INT64);
    assert_int_equal(ed_dtype_of(ed_scalar(3, .dtype = ED_FLOAT64)), ED_FLOAT64);
    assert_int_equal(ed_item_int64(ed_scalar(INT64_MAX)), INT64_MAX);
    assert_int_equal(ed_item_int64(ed_scalar(INT64_MIN)), INT64_MIN);
    assert_true(ed_item(ed_scalar(0.1, .dtype = ED_FLOAT64)) == 0.1);
    assert_true(ed_item(ed_scalar(-2, .dtype = ED_BFLOAT16)) == -2);
    assert_true(ed_item(ed_scalar(1, .dtype = ED_BOOL)) == 1);
    assert_true(isnan(ed_item(ed_scalar(NAN))));
    REFUSED(ed_scalar(300, .dtype = ED_UINT8), "300 cannot be represented as uint8");
    REFUSED(ed_scalar(0.5, .dtype = ED_INT32), "0.5 cannot be");
    REFUSED(ed_scalar(2, .dtype = ED_BOOL), "2 cannot be");
    REFUSED(ed_scalar(NAN, .dtype = ED_INT64), "nan cannot be");
    REFUSED(ed_scalar(1e300, .dtype = ED_INT64), "cannot be");
    REFUSED(ed_scalar(1, .dtype = (ed_dtype)99), "dtype is 99, which is not a dtype");
    REFUSED(ed_scalar(ed_zeros(ED_SHAPE(1))), "must be a plain number");
    REFUSED(ed_scalar((ed_tensor *)NULL), "NULL");
}

static void weak_numbers(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_dtype some[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_INT64, ED_UINT8};
    for (int i = 0; i < 5; i++) {
        ed_tensor *x = ed_full(ED_SHAPE(2), 3, .dtype = some[i]);
        assert_int_equal(ed_dtype_of(ed_add(x, 1)), some[i]);
        assert_int_equal(ed_dtype_of(ed_sub(1, x)), some[i]);
    }
    ed_tensor *floats = ed_ones(ED_SHAPE(2)), *ints = ed_ones(ED_SHAPE(2), .dtype = ED_INT32);
    assert_int_equal(ed_dtype_of(ed_mul(floats, 2.5)), ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_add(1, 2)), ED_INT32);
    assert_int_equal(ed_dtype_of(ed_add(1, 2.5)), ED_FLOAT32);
    assert_int_equal(ed_dtype_of(ed_add(1, INT64_C(1) << 40)), ED_INT64);
    assert_true(ed_item(ed_index(ed_add(ed_full(ED_SHAPE(1), 0, .dtype = ED_FLOAT64), 0.1), 0)) ==
                0.1);
    REFUSED(ed_add(ints, 2.5), "2.5 cannot be represented as int32");
    REFUSED(ed_add(ints, INT64_C(1) << 40), "cannot be");
    REFUSED(ed_add(floats, ints), "dtypes differ: a is float32[2], b is int32[2]");
}

static void reading(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((int32_t[]){1, 2, 3, 4, 5, 6}), ED_SHAPE(2, 3)),
              *y = ed_transpose(x);
    int32_t values[6] = {0};
    assert_true(ed_copy_to(y, values, 6));
    assert_memory_equal(values, ((int32_t[]){1, 4, 2, 5, 3, 6}), sizeof values);
    assert_memory_equal(ed_data(y), values, sizeof values);
    assert_false(ed_is_contiguous(y));
    REFUSED(ed_copy_to(y, values, 5), "count must be 6 for int32[3, 2], got 5");
    REFUSED(ed_copy_to(y, (float[]){0}, 6), "array must have elements of int32, got float32");
    REFUSED(ed_copy_to(NULL, values, 6), "NULL");
    REFUSED(ed_copy_to(y, (int32_t *)NULL, 6), "NULL");
    REFUSED(ed_data(NULL), "NULL");
    assert_true(isnan(ed_item(x)));
    failed_with(ED_INVALID_ARGUMENT, "tensor must have one element, got int32[2, 3]");
    assert_true(isnan(ed_item(NULL)));
    ed_clear_error();
    REFUSED(ed_item_int64(x), "must have one element, got int32[2, 3]");
    assert_true(isnan(ed_item_at(x, 1)));
    failed_with(ED_INVALID_ARGUMENT, "item_at: int32[2, 3] needs 2 indices, got 1");
    assert_true(isnan(ed_item_at(x, 1, 3)));
    failed_with(ED_OUT_OF_RANGE, "item_at: index 3 is out of bounds for axis 1 of int32[2, 3]");
    assert_true(isnan(ed_item_at(x, -3, 0)));
    failed_with(ED_OUT_OF_RANGE, "index -3 is out of bounds for axis 0");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            assert_true(ed_item_at(x, i, j) == i * 3 + j + 1);
            assert_true(ed_item_at(y, j - 3, i - 2) == i * 3 + j + 1);
        }
    assert_true(ed_item_at(ed_scalar(7.0)) == 7);
    assert_true(ed_item(ed_zeros(ED_SHAPE(1, 1, 1))) == 0);
    assert_int_equal(ed_item_int64(ed_scalar(1e30)), 0);
    failed_with(ED_OUT_OF_RANGE, "1e+30");
    assert_int_equal(ed_item_int64(ed_scalar(NAN)), 0);
    ed_clear_error();
    ed_tensor *empty = ed_transpose(ed_zeros(ED_SHAPE(0, 3)));
    assert_non_null(ed_data(empty));
    assert_true(ed_is_contiguous(empty));
    assert_true(ed_copy_to(empty, (float[]){0}, 0));
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static ed_tensor *kept(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_scalar(1), *y = ed_scalar(2);
    ed_scalar(3);
    ed_keep(y);
    ed_keep(y); /* a second time changes nothing */
    return ed_keep(x);
}

static void scopes(void **state)
{
    (void)state;
    ED_SCOPE;
    int64_t before = live();
    {
        ED_SCOPE;
        ed_tensor *x = kept();
        assert_int_equal(live(), before + 2);
        assert_true(ed_item(x) == 1);
        {
            ED_SCOPE;
            assert_ptr_equal(ed_keep(x), x); /* belongs elsewhere already */
        }
        assert_true(ed_item(x) == 1);
        for (int i = 0; i < 1000; i++) ed_scalar(i);
        for (int i = 0; i < 100; i++) ed_scope_open(); /* closed by the one around them */
        ed_scalar(1);
    }
    assert_int_equal(live(), before);
    ed_scope outer = ed_scope_open(), inner = ed_scope_open();
    ed_scalar(1);
    ed_scope_close(&outer);
    assert_int_equal(live(), before);
    ed_scope_close(&inner); /* too late, and without effect */
    ed_scope_close(&outer);
    ed_scope_close(NULL);
    assert_null(ed_keep(NULL));
}

/* Every third of many objects is kept, from the oldest, from the newest, or crosswise. */
static void keeping_many(void **state)
{
    (void)state;
    enum { MANY = 30000 };
    static ed_tensor *made[MANY];
    for (int order = 0; order < 3; order++) {
        ED_SCOPE;
        int64_t before = live();
        {
            ED_SCOPE;
            for (int i = 0; i < MANY; i++) made[i] = ed_scalar(i);
            for (int i = 0; i < MANY; i += 3) {
                int k = order == 0 ? i : order == 1 ? MANY - 3 - i : (int)(i * 7LL % MANY);
                assert_ptr_equal(ed_keep(made[k]), made[k]);
            }
        }
        assert_int_equal(live(), before + MANY / 3);
        for (int i = 0; i < MANY; i += 3) assert_true(ed_item(made[i]) == i);
    }
}

static void *give_too(void *x)
{
    for (int i = 0; i < 100; i++) ed_keep(ed_list_make((ed_tensor *[]){x}, 1));
    for (int i = 0; i < 100; i++) {
        ED_SCOPE;
        scope_give(ed_retain(x));
    }
    return NULL;
}

/* An object that is on several stacks, or several times on one, is kept by the scope that is
 * asked. */
static void keeping_shared(void **state)
{
    (void)state;
    ED_SCOPE;
    int64_t before = live();
    ed_tensor *x;
    {
        ED_SCOPE;
        x = ed_scalar(5);
        for (int i = 0; i < 10; i++) ed_scalar(i);
        {
            ED_SCOPE;
            scope_give(ed_retain(x)); /* on the stack twice, and then once, where it was first */
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, give_too, x), 0);
        pthread_join(thread, NULL);
        for (int i = 0; i < 10; i++) ed_scalar(i);
        assert_ptr_equal(ed_keep(x), x);
    }
    assert_int_equal(live(), before + 1);
    assert_true(ed_item(x) == 5);
    {
        ED_SCOPE;
        scope_give(ed_retain(x));
        ed_scalar(6);
        assert_ptr_equal(ed_keep(x), x);
        assert_ptr_equal(ed_keep(x), x);
    }
    assert_int_equal(live(), before + 1);
    assert_true(ed_item(x) == 5);
}

static void references(void **state)
{
    (void)state;
    ed_tensor *x;
    int64_t before = live();
    {
        ED_SCOPE;
        x = ed_retain(ed_zeros(ED_SHAPE(3)));
    }
    assert_int_equal(live(), before + 1);
    assert_int_equal(ed_size(x), 3);
    ed_release(x);
    ed_release(NULL);
    assert_null(ed_retain(NULL));
    assert_int_equal(live(), before);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static int handled;
static char handled_message[200];

static void handle(ed_error_code code, const char *message, void *user)
{
    assert_ptr_equal(user, &handled);
    assert_int_equal(code, ED_NOT_FOUND);
    snprintf(handled_message, sizeof handled_message, "%s", message);
    handled++;
}

static void errors(void **state)
{
    (void)state;
    assert_false(ed_failed());
    assert_string_equal(ed_error(), "");
    ed_set_error_handler(handle, &handled);
    assert_null(ed_fail(ED_NOT_FOUND, "no %s number %d", "thing", 3));
    assert_null(ed_fail(ED_IO, "another"));
    ed_set_error_handler(NULL, NULL);
    assert_int_equal(handled, 1);
    assert_string_equal(handled_message, "no thing number 3");
    assert_string_equal(ed_error(), "no thing number 3");
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    {
        ED_SCOPE; /* what has nothing to do with the failure goes on working */
        assert_true(ed_item(ed_add(1, 2)) == 3);
    }
    assert_null(ed_add(ed_exp(NULL), 1)); /* and what has, returns NULL */
    assert_string_equal(ed_error(), "no thing number 3");
    ed_clear_error();
    assert_int_equal(ed_error_kind(), ED_OK);
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    ed_fail(ED_IO, "%s", long_text);
    assert_true(strlen(ed_error()) > 500);
    ed_clear_error();
}

/* What the library's own folders do with the kept error beyond keeping one. */
static void errors_moved(void **state)
{
    (void)state;
    error_saved saved;
    int a = 0, *none = NULL;
    assert_false(NULL_GIVEN("f", &a));
    assert_false(ed_failed());
    assert_true(NULL_GIVEN("f", &a, none, NULL));
    assert_string_equal(ed_error(), "f: none is NULL");

    error_append(" (in %s)", "g");
    error_save(&saved);
    assert_false(ed_failed());
    error_append(" nothing"); /* is kept, so nothing is there to append to */
    assert_string_equal(ed_error(), "");
    ed_fail(ED_IO, "later");
    error_restore(&saved, false); /* the earlier one wins */
    assert_string_equal(ed_error(), "f: none is NULL (in g)");
    failed_with(ED_INVALID_ARGUMENT, "f: none is NULL (in g)");

    for (int drop = 0; drop < 2; drop++) {
        error_save(&saved); /* none */
        ed_fail(ED_IO, "later");
        error_restore(&saved, drop);
        assert_int_equal(ed_error_kind(), drop ? ED_OK : ED_IO);
        ed_clear_error();
    }

    ed_fail(ED_IO, "begins");
    for (int i = 0; i < 300; i++) error_append("0123456789");
    assert_true(strlen(ed_error()) > 500 && strlen(ed_error()) < ERROR_MESSAGE_SIZE);
    ed_clear_error();
}

/* ---- Variables and lists --------------------------------------------------------------------- */

static void variables(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *start = ed_constant(((float[]){1, 2}), ED_SHAPE(2));
    ed_tensor *v = ed_variable(start, .name = "bias"),
              *plain = ed_variable(ed_transpose(ed_ones(ED_SHAPE(2, 3))));
    assert_true(ed_is_variable(v) && !ed_is_variable(start) && !ed_is_variable(NULL));
    assert_string_equal(ed_variable_name(v), "bias");
    assert_string_equal(ed_variable_name(plain), "Variable");
    assert_null(ed_variable_name(start));
    assert_true(ed_is_contiguous(plain));
    assert_true(ed_variable_is_trainable(v) && !ed_variable_is_trainable(start));
    assert_false(ed_variable_is_trainable(ed_variable(1, .trainable = false)));
    assert_true(ed_variable_set_trainable(v, false) && !ed_variable_is_trainable(v));
    REFUSED(ed_variable_set_trainable(start, true), "is not a variable");
    assert_int_equal(ed_dtype_of(ed_variable(2)), ED_INT32);

    ed_tensor *old = ed_value(v), *sum = ed_add(v, v);
    assert_ptr_equal(ed_assign(v, ed_mul(v, 10.0)), v);
    assert_true(((const float *)ed_data(v))[1] == 20 && ((const float *)ed_data(old))[1] == 2);
    assert_true(((const float *)ed_data(sum))[1] == 4);
    assert_ptr_equal(ed_value(start), start);
    assert_true(ed_item(ed_assign(ed_variable(1.5), 2)) == 2);
    assert_ptr_equal(ed_assign(v, v), v);

    REFUSED(ed_assign(v, ed_ones(ED_SHAPE(3))),
            "the variable bias is float32[2], the value is float32[3]");
    REFUSED(ed_assign(v, ed_ones(ED_SHAPE(2), .dtype = ED_INT32)), "value is int32[2]");
    REFUSED(ed_assign(start, start), "assign: variable must be a variable, got float32[2]");
    REFUSED(ed_assign(NULL, start), "NULL");
    REFUSED(ed_assign(v, (ed_tensor *)NULL), "NULL");
    REFUSED(ed_variable((ed_tensor *)NULL), "NULL");
    REFUSED(ed_value(NULL), "NULL");
}

/* Writing in place happens where nobody else looks, and only there. */
static void copy_on_write(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(4)));
    const void *first = variable_write(v)->data; /* zeros are the scope's still: a copy */
    assert_ptr_equal(variable_write(v)->data, first);
    uint64_t id = ed_tensor_id(tensor_read(v));
    variable_write(v);
    assert_true(ed_tensor_id(tensor_read(v)) != id);
    {
        ED_SCOPE;
        ed_tensor *view = ed_slice(v, .begin = ED_INTS(2));
        float *fresh = (float *)variable_write(v)->data;
        assert_ptr_not_equal(fresh, first);
        fresh[2] = 5;
        assert_true(ed_item(ed_index(view, 0)) == 0);
        assert_true(ed_item(ed_index(v, 2)) == 5);
        first = fresh;
    }
    assert_ptr_equal(variable_write(v)->data, first);
    {
        ED_SCOPE;
        ed_value(v);
        assert_ptr_not_equal(variable_write(v)->data, first);
    }
    ed_tensor *same = ed_zeros(ED_SHAPE(4)), *a = ed_variable(same), *b = ed_variable(same);
    ((float *)variable_write(a)->data)[0] = 1;
    assert_true(ed_item(ed_index(b, 0)) == 0 && ed_item(ed_index(same, 0)) == 0);
    ed_assign(a, b);
    ((float *)variable_write(a)->data)[0] = 3;
    assert_true(ed_item(ed_index(b, 0)) == 0);
}

static void lists(void **state)
{
    (void)state;
    ED_SCOPE;
    int64_t before = live();
    ed_list *list;
    {
        ED_SCOPE;
        ed_tensor *a = ed_scalar(1), *b = ed_scalar(2);
        list = ed_list_of(a, b, a);
        assert_int_equal(ed_list_size(list), 3);
        assert_ptr_equal(ed_list_get(list, -1), a);
        assert_ptr_equal(ed_list_get(list, 1), b);
        list = ed_list_concat(list, ed_list_of(b));
        ed_keep(list);
    }
    assert_int_equal(live(), before + 2);
    assert_int_equal(ed_list_size(list), 4);
    assert_true(ed_item(ed_list_get(list, 3)) == 2);
    assert_int_equal(ed_list_size(ed_list_make(NULL, 0)), 0);
    assert_null(ed_list_get(list, 4));
    failed_with(ED_OUT_OF_RANGE, "index 4 is out of bounds for a list of 4");
    assert_null(ed_list_get(list, -5));
    failed_with(ED_OUT_OF_RANGE, "-5");
    REFUSED(ed_list_of(ed_scalar(1), NULL), "entry 1 is NULL");
    REFUSED(ed_list_make(NULL, 3), "NULL");
    REFUSED(ed_list_make((ed_tensor *[]){NULL}, -1), "-1");
    REFUSED(ed_list_get(NULL, 0), "NULL");
    REFUSED(ed_list_concat(list, NULL), "NULL");
    assert_int_equal(ed_list_size(NULL), 0);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void statistics(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_scalar(1);
    ed_memory_trim();
    ed_memory before = ed_memory_stats();
    assert_int_equal(before.cached_bytes, 0);
    {
        ED_SCOPE;
        ed_zeros(ED_SHAPE(1 << 20));
        ed_memory now = ed_memory_stats();
        assert_int_equal(now.live_tensors, before.live_tensors + 1);
        assert_true(now.live_bytes >= before.live_bytes + (4 << 20));
        assert_true(now.live_bytes < before.live_bytes + (6 << 20));
        assert_true(now.peak_bytes >= now.live_bytes);
    }
    ed_memory after = ed_memory_stats();
    assert_int_equal(after.live_tensors, before.live_tensors);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_true(after.peak_bytes >= before.live_bytes + (4 << 20));
    ed_memory_reset_peak();
    assert_true(ed_memory_stats().peak_bytes < before.live_bytes + (1 << 20));
#ifndef EDDY_SANITIZED
    assert_true(after.cached_bytes >= 4 << 20);
    assert_int_equal(ed_memory_trim(), after.cached_bytes);
    assert_int_equal(ed_memory_stats().cached_bytes, 0);
    ed_memory_set_cache_limit(1 << 20);
    {
        ED_SCOPE;
        ed_zeros(ED_SHAPE(1 << 20));
    }
    assert_true(ed_memory_stats().cached_bytes <= 1 << 20);
    ed_memory_set_cache_limit(1 << 30);
    const void *first = NULL;
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        const void *data = ed_data(ed_zeros(ED_SHAPE(100, 1000)));
        if (i) assert_ptr_equal(data, first); /* what is freed is used again */
        first = data;
    }
#endif
}

#ifndef EDDY_SANITIZED
/* Frees a tensor of so many MiB; the address of its elements. */
static const void *freed(double megabytes)
{
    ED_SCOPE;
    return ed_data(ed_zeros(ED_SHAPE((int64_t)(megabytes * (1 << 18)))));
}

/* A full cache gives up what has been in it for longest, so that new sizes are cached too. */
static void full_cache(void **state)
{
    (void)state;
    ed_memory_trim();
    ed_memory_set_cache_limit(64 << 20);
    for (int i = 0; i < 40; i++) freed(1 + 0.2 * i);
    const int64_t full = ed_memory_stats().cached_bytes;
    assert_true(full > 32 << 20 && full <= 65 << 20);
    const void *first = freed(20);
    for (int i = 0; i < 10; i++) assert_ptr_equal(freed(20), first);
    assert_true(ed_memory_stats().cached_bytes <= 65 << 20); /* the thread has a few, too */
    freed(100);                                              /* more than the limit */
    assert_ptr_equal(freed(20), first);
    ed_memory_set_cache_limit(1 << 30);
}

/* What nobody wants any more goes back while others come and go. */
static void old_blocks(void **state)
{
    (void)state;
    ed_memory_trim();
    {
        ED_SCOPE;
        for (int i = 0; i < 8; i++) ed_zeros(ED_SHAPE(16 << 18));
    }
    assert_true(ed_memory_stats().cached_bytes >= 128 << 20);
    const void *small = freed(4);
    for (int i = 0; i < 4000; i++) freed(4);
    assert_ptr_equal(freed(4), small);
    assert_true(ed_memory_stats().cached_bytes < 16 << 20);
}

/* Few tensors at a time, of sizes at random: no more is held than twice what was live. */
static void random_sizes(void **state)
{
    (void)state;
    ed_memory_trim();
    ed_memory_reset_peak();
    ed_tensor *alive[4] = {0};
    for (uint32_t i = 0, random = 1; i < 1000; i++) {
        random = random * 1664525 + 1013904223;
        ed_tensor **one = &alive[random >> 30];
        ed_release(*one);
        ED_SCOPE;
        *one = ed_retain(ed_zeros(ED_SHAPE(1 + (random >> 8) % (8 << 18))));
        if (i < 700) continue; /* what lived before is remembered for a while */
        const ed_memory memory = ed_memory_stats();
        assert_true(memory.live_bytes + memory.cached_bytes <= 2 * memory.peak_bytes + (1 << 20));
    }
    for (int i = 0; i < 4; i++) ed_release(alive[i]);
    ed_memory_trim();
}

/* A block of a class above serves a request whose own class is empty; one of twice the size does
 * not. */
static void near_sizes(void **state)
{
    (void)state;
    ed_memory_trim();
    const void *data = freed(9);
    assert_ptr_equal(freed(7.5), data);
    const int64_t cached = ed_memory_stats().cached_bytes;
    freed(4);
    assert_true(ed_memory_stats().cached_bytes > cached);
    assert_ptr_equal(freed(9), data);
}

/* Bytes of the process that are in memory, as the system counts. */
static int64_t resident(void)
{
    long all, now;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &now), 2);
    fclose(file);
    return (int64_t)now * sysconf(_SC_PAGESIZE);
}

/* Tensors whose memory is cut from the same spans, all but every eighth released. */
static void neighbours(void **state)
{
    (void)state;
    ed_tensor *x[64];
    ed_memory_trim();
    const int64_t before = resident();
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 64; i++) {
            ED_SCOPE;
            if (!again || i % 8) x[i] = ed_retain(ed_full(ED_SHAPE(300000), i));
        }
        ed_memory_trim();
        assert_true(resident() >= before + (64 << 20));
        for (int i = 0; i < 64; i++)
            if (i % 8) ed_release(x[i]);
        ed_memory_trim();
        assert_true(resident() < before + (24 << 20)); /* of 77 MB */
        for (int i = 0; i < 64; i += 8)
            for (int k = 0; k < 300000; k += 1000) assert_true(((float *)ed_data(x[i]))[k] == i);
    }
    for (int i = 0; i < 64; i += 8) ed_release(x[i]);
    ed_memory_trim();
    assert_true(resident() < before + (8 << 20));
}
#endif

static void failing(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_scalar(1);
    ed_memory before = ed_memory_stats();
    ed_memory_fail_at(2, true);
    assert_non_null(
        ed_scalar_with(ed_integer(1), NULL) ? NULL : "a number takes two, the scalar the next");
    assert_true(ed_memory_has_failed());
    assert_null(ed_zeros(ED_SHAPE(1)));
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
    ed_memory_fail_at(-1, false);
    assert_false(ed_memory_has_failed());
    assert_non_null(ed_zeros(ED_SHAPE(1)));
    assert_true(ed_memory_stats().live_tensors > before.live_tensors);
    for (int n = 0;; n++) {
        int64_t bytes = ed_memory_stats().live_bytes;
        bool failed;
        {
            ED_SCOPE;
            ed_memory_fail_at(n, false);
            ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(3, 2)), .name = "kernel");
            ed_assign(v, ed_add(ed_contiguous(ed_transpose(ed_ones(ED_SHAPE(2, 3)))), v));
            ed_list_of(v, v);
            failed = ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_int_equal(failed, ed_failed());
            ed_clear_error();
        }
        assert_int_equal(ed_memory_stats().live_bytes, bytes);
        if (!failed) break;
        assert_true(n < 100);
    }
}

static int warnings;

static void warn(const char *message, void *user)
{
    (void)user;
    assert_non_null(strstr(message, "root scope"));
    warnings++;
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *fill_root(void *user)
{
    for (int i = 0; i < 300000; i++) ed_integer(i);
    return user;
}

static void forgotten_scope(void **state)
{
    (void)state;
    int64_t before = live();
    pthread_t thread;
    ed_set_warning_handler(warn, NULL);
    assert_int_equal(pthread_create(&thread, NULL, fill_root, NULL), 0);
    pthread_join(thread, NULL);
    ed_set_warning_handler(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_int_equal(live(), before);
}

typedef struct work {
    ed_tensor *shared, *result;
    const char *complaint;
} work;

static void *use_shared(void *user)
{
    work *w = user;
    ed_fail(ED_IO, "of this thread");
    ed_clear_error();
    for (int i = 0; i < 2000; i++) {
        ED_SCOPE;
        ed_tensor *y = ed_add(ed_transpose(w->shared), 1.0);
        if (!y || ((const float *)ed_data(y))[0] != 1)
            w->complaint = ed_failed() ? "failed" : "wrong";
        ed_release(ed_retain(w->shared));
    }
    w->result = ed_retain(ed_full(ED_SHAPE(1000), 3)); /* outlives its thread */
    ed_fail(ED_IO, "left behind");
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    int64_t before = live();
    int64_t bytes = ed_memory_stats().live_bytes;
    {
        ED_SCOPE;
        ed_tensor *shared = ed_zeros(ED_SHAPE(5, 7));
        pthread_t thread[4];
        work works[4];
        for (int i = 0; i < 4; i++) {
            works[i] = (work){.shared = shared};
            assert_int_equal(pthread_create(&thread[i], NULL, use_shared, &works[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
            assert_null(works[i].complaint);
            assert_true(((const float *)ed_data(works[i].result))[999] == 3);
            ed_release(works[i].result);
        }
        assert_false(ed_failed());
    }
    assert_int_equal(live(), before);
    assert_int_equal(ed_memory_stats().live_bytes, bytes);
}

/* {2, 255} as bools: neither true == true nor not true would hold. */
static void wrapped_bools_are_0_or_1(void **state)
{
    (void)state;
    static uint8_t bytes[1000], none;
    ED_SCOPE;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 3 == 0;
    ed_tensor *t = ed_wrap(ED_BOOL, bytes, ED_SHAPE(sizeof bytes), NULL, NULL);
    assert_non_null(t);
    assert_non_null(ed_wrap(ED_BOOL, &none, ED_SHAPE(0), NULL, NULL));
    bytes[701] = 2;
    REFUSED(ed_wrap(ED_BOOL, bytes, ED_SHAPE(sizeof bytes), NULL, NULL),
            "element 701 is the byte 2");
    bytes[701] = 255;
    REFUSED(ed_wrap(ED_BOOL, bytes, ED_SHAPE(10, 100), NULL, NULL), "the byte 255");
    assert_non_null(ed_constant_of(ED_BOOL, bytes, ED_SHAPE(10, 100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants),
        cmocka_unit_test(dtypes),
        cmocka_unit_test(stored_integers),
        cmocka_unit_test(halves),
        cmocka_unit_test(wrapped),
        cmocka_unit_test(wrapped_variable),
        cmocka_unit_test(scalars),
        cmocka_unit_test(weak_numbers),
        cmocka_unit_test(reading),
        cmocka_unit_test(scopes),
        cmocka_unit_test(keeping_many),
        cmocka_unit_test(keeping_shared),
        cmocka_unit_test(references),
        cmocka_unit_test(errors),
        cmocka_unit_test(errors_moved),
        cmocka_unit_test(variables),
        cmocka_unit_test(copy_on_write),
        cmocka_unit_test(lists),
#ifndef EDDY_SANITIZED
        cmocka_unit_test(full_cache),
        cmocka_unit_test(old_blocks),
        cmocka_unit_test(random_sizes),
        cmocka_unit_test(near_sizes),
        cmocka_unit_test(neighbours),
#endif
        cmocka_unit_test(statistics),
        cmocka_unit_test(failing),
        cmocka_unit_test(forgotten_scope),
        cmocka_unit_test(threads),
        cmocka_unit_test(wrapped_bools_are_0_or_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
