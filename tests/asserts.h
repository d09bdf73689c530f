/* What tests say of the kept error, of memory, and of tensors that are to be the same. */
#ifndef EDDY_TESTS_ASSERTS_H
#define EDDY_TESTS_ASSERTS_H

#include "tensor/tensor.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* An error is kept that contains the text; it is cleared. */
#define assert_error(text)                                                                         \
    do {                                                                                           \
        assert_true(ed_failed());                                                                  \
        if (!strstr(ed_error(), text)) fail_msg("error is '%s'", ed_error());                      \
        ed_clear_error();                                                                          \
    } while (0)

/* No error is kept. */
#define assert_fine()                                                                              \
    do {                                                                                           \
        if (ed_failed()) fail_msg("%s", ed_error());                                               \
    } while (0)

/* An error of that kind is kept whose sentence has the words in it; it is cleared. */
#define failed_with(kind, words) failed_at(__FILE__, __LINE__, kind, words)

static inline void failed_at(const char *file, int line, ed_error_code kind, const char *words)
{
    if (!ed_failed() || ed_error_kind() != kind || !strstr(ed_error(), words)) {
        print_error("ERROR: said '%s' (%d), expected '%s' (%d)\n", ed_error(), ed_error_kind(),
                    words, kind);
        _fail(file, line);
    }
    ed_clear_error();
}

/* The call gives nothing and keeps this error. */
#define assert_fails(call, kind, words)                                                            \
    do {                                                                                           \
        assert_fine();                                                                             \
        assert_false(call);                                                                        \
        failed_with(kind, words);                                                                  \
    } while (0)

/* After a test: it left no error, and nobody holds anything. */
static inline int check_end(void **state)
{
    (void)state;
    static int64_t before; /* left by tests that failed */
    const bool failed = ed_failed();
    const int64_t tensors = ed_memory_stats().live_tensors - before;
    before += tensors;
    if (failed) print_error("left behind: %s\n", ed_error());
    if (tensors) print_error("left behind: %lld tensors\n", (long long)tensors);
    ed_clear_error(); /* the next one begins without */
    return failed || tensors;
}

/* Makes the attempt while allocation `n` is refused, with `all` each one after it too: if any was,
 * it fails for want of memory and leaves no tensor. Returns whether it succeeded. */
static inline bool succeeds_without(int64_t n, bool all, bool (*attempt)(void))
{
    ed_memory_fail_at(n, all);
    const bool good = attempt(), happened = ed_memory_has_failed();
    ed_memory_fail_at(-1, false);
    assert_true(good == !happened);
    if (good) return true;
    assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
    ed_clear_error();
    assert_int_equal(ed_memory_stats().live_tensors, 0);
    return false;
}

/* Makes the attempt, which itself has allocation `n` refused, for n = 0, 1, ... until it succeeds;
 * returns how often it did not. All memory comes back. */
static inline int64_t disturbances(bool (*attempt)(int64_t n))
{
    attempt(-1); /* what is made once */
    const ed_memory before = ed_memory_stats();
    int64_t n = 0;
    while (!attempt(n)) n++;
    const ed_memory after = ed_memory_stats();
    assert_int_equal(before.live_tensors, after.live_tensors);
    assert_int_equal(before.live_bytes, after.live_bytes);
    return n;
}

/* Dtype, shape and every bit. */
static inline void assert_same_tensor(const ed_tensor *a, const ed_tensor *b)
{
    if (!a || !b) fail_msg("%s", ed_error());
    assert_int_equal(ed_dtype_of(a), ed_dtype_of(b));
    assert_int_equal(ed_rank(a), ed_rank(b));
    for (int i = 0; i < ed_rank(a); i++) assert_int_equal(ed_dim(a, i), ed_dim(b, i));
    const size_t size = (size_t)ed_size(a) * (size_t)ed_dtype_size(ed_dtype_of(a));
    if (size) assert_memory_equal(ed_data(a), ed_data(b), size);
}

#endif
