/* What tests say of the kept error. */
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

#endif
