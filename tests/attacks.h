/* Around attacks on the library: every one ends in an error or a right result, and leaves no tensor
 * and no byte behind. */
#ifndef EDDY_TESTS_ATTACKS_H
#define EDDY_TESTS_ATTACKS_H

#include "eddy.h"
#include "tests/asserts.h"

static ed_memory before;

/* The thread's own stacks grow once; afterwards every byte must come back. */
static void warm_up(void)
{
    ED_SCOPE;
    for (int i = 0; i < 5000; i++) ed_number(i);
    for (int i = 0; i < 100; i++) ed_scope_open();
    ed_op_count();
}

static int begin(void **state)
{
    (void)state;
    warm_up();
    ed_clear_error();
    before = ed_memory_stats();
    return 0;
}

static int end(void **state)
{
    (void)state;
    ed_memory_fail_at(-1, false);
    ed_clear_error();
    ed_memory now = ed_memory_stats();
    if (now.live_tensors == before.live_tensors && now.live_bytes == before.live_bytes) return 0;
    print_error("left behind: %lld tensors, %lld bytes\n",
                (long long)(now.live_tensors - before.live_tensors),
                (long long)(now.live_bytes - before.live_bytes));
    return -1;
}

/* The call gave nothing and kept an error of one of the kinds. */
static inline void refused(const char *call, bool nothing, ed_error_code kind,
                           ed_error_code or_kind)
{
    if (!nothing) fail_msg("%s returned something", call);
    if (!ed_failed()) fail_msg("%s kept no error", call);
    if (ed_error_kind() != kind && ed_error_kind() != or_kind) fail_msg("%s: %s", call, ed_error());
    ed_clear_error();
}

#define REFUSED(call)       refused(#call, !(call), ED_INVALID_ARGUMENT, ED_OUT_OF_RANGE)
#define TOO_LARGE(call)     refused(#call, !(call), ED_OUT_OF_MEMORY, ED_INVALID_ARGUMENT)
#define OUT_OF_MEMORY(call) refused(#call, !(call), ED_OUT_OF_MEMORY, ED_OUT_OF_MEMORY)
#define FINE(call)                                                                                 \
    do {                                                                                           \
        if (!(call) || ed_failed()) fail_msg("%s: %s", #call, ed_error());                         \
    } while (0)

/* A function for gradients: the sum of the squares. */
static inline ed_tensor *returns_square(ed_list *inputs, void *user)
{
    (void)user;
    return ed_reduce_sum(ed_square(ed_list_get(inputs, 0)));
}

#define ATTACK(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
