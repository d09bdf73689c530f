/* Tests that can't be made here say why; tools/run_tests.sh counts them by these words. */
#ifndef EDDY_TESTS_SKIP_H
#define EDDY_TESTS_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Ends the test, which counts as skipped for this reason. */
#define skip_since(reason)                                                                         \
    do {                                                                                           \
        print_message("skipped: %s\n", reason);                                                    \
        skip();                                                                                    \
    } while (0)

#endif
