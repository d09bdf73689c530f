/* With every allocation refused in turn. */
#ifndef EDDY_TESTS_SURVIVES_H
#define EDDY_TESTS_SURVIVES_H

#include "tensor/tensor.h"
#include "tests/asserts.h"

/* `run` gives an error whenever an allocation is refused, and leaves nothing; of `name`. */
static void survives_refusals(const char *name, bool (*run)(const void *), const void *with)
{
    run(with); /* what is made once a process */
    ed_clear_error();
    for (int64_t n = 0;; n++) {
        const int64_t tensors = ed_memory_stats().live_tensors;
        ed_memory_fail_at(n, false);
        const bool ok = run(with) && !ed_failed(); /* a NULL option means the default */
        const bool failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        const char *wrong = !ok && !ed_failed() ? "nothing, without an error"
                            : !ok && !failed    ? "fails without need"
                            : n == 100000       ? "never ends"
                                                : NULL;
        if (wrong) fail_msg("%s, allocation %lld: %s: %s", name, (long long)n, wrong, ed_error());
        ed_clear_error();
        if (ed_memory_stats().live_tensors != tensors)
            fail_msg("%s, allocation %lld: leaves tensors", name, (long long)n);
        if (!failed) return;
    }
}

#endif
