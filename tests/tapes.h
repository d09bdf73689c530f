/*
 * What the tests of tapes and of functions of tensors share. Every test runs in a scope of its own
 * and must leave no error, no tensor and no byte behind.
 */
#ifndef EDDY_TESTS_TAPES_H
#define EDDY_TESTS_TAPES_H

#include "autodiff/autodiff.h"
#include "ops/execute.h"
#include "tests/asserts.h"
#include <math.h>
#include <stdlib.h>

#define COUNT(...) (sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define V(...)     ed_constant(((double[]){__VA_ARGS__}), ED_SHAPE(COUNT(__VA_ARGS__)))
#define S(number)  ed_scalar(number, .dtype = ED_FLOAT64)

static inline void near(const char *file, int line, const ed_tensor *t, const double *expected,
                        size_t n)
{
    if (!t) {
        print_error("NULL instead of a tensor: %s\n", ed_error());
        _fail(file, line);
        return;
    }
    const double *values = ed_as_doubles(t);
    if (ed_size(t) != (int64_t)n) print_error("%s", text_of_tensor(t).s), _fail(file, line);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(values[i] - expected[i]) <= 1e-12 + 1e-6 * fabs(expected[i])) &&
            !(isnan(values[i]) && isnan(expected[i]))) {
            print_error("element %zu is %.17g, expected %.17g\n", i, values[i], expected[i]);
            _fail(file, line);
        }
}

/* The tensor's elements are these. */
#define assert_values(tensor, ...)                                                                 \
    near(__FILE__, __LINE__, tensor, (double[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

static inline void same(const char *file, int line, const ed_tensor *a, const ed_tensor *b)
{
    if (!a || !b)
        print_error("NULL: %s\n", ed_error()), _fail(file, line);
    else
        near(file, line, a, ed_as_doubles(b), (size_t)ed_size(b));
}
#define assert_same(a, b) same(__FILE__, __LINE__, a, b)

/* Both are tensors of one shape whose elements differ by no more, relative or absolute. */
#define assert_close_to(a, b, tolerance)                                                           \
    do {                                                                                           \
        ed_close_report report_ = {0};                                                             \
        if (!ed_all_close(a, b, tolerance, tolerance, &report_))                                   \
            fail_msg("%s%s", report_.text, ed_error());                                            \
    } while (0)

/* The call gives nothing, which is no error. */
#define assert_unconnected(call)                                                                   \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_string_equal(ed_error(), "");                                                       \
    } while (0)

static inline void run(void **state)
{
    ed_scope_close(&(ed_scope){1}); /* what a test left that failed */
    ed_clear_error();
    int64_t tensors = ed_memory_stats().live_tensors, bytes = ed_memory_stats().live_bytes;
    {
        ED_SCOPE;
        (*(void (*const *)(void)) * state)();
    }
    assert_string_equal(ed_error(), "");
    assert_int_equal(ed_memory_stats().live_tensors, tensors);
    assert_int_equal(ed_memory_stats().live_bytes, bytes);
    assert_null(thread_self()->listeners);
}

/* The thread's own tables grow once; here, so that no test is taken for the leak. */
static inline bool grow_tables(void)
{
    ED_SCOPE;
    for (int i = 0; i < 100; i++) ed_scope_open();
    for (int i = 0; i < 300000; i++) ed_number(1);
    return !ed_failed();
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, run, NULL, NULL, &(void (*)(void))                                                  \
        {                                                                                          \
            name                                                                                   \
        }                                                                                          \
    }

#endif
