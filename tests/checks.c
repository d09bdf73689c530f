#include "tests/checks.h"
#include <string.h>

/* Under sanitizers too, memory that can't be had is an error and not the end of a test. */
#ifdef EDDY_SANITIZED
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=300";
}
#endif

static const struct {
    const char *name;
    void (*run)(findings *f);
} checks[] = {
    {"definition", check_definition}, {"forward", check_forward}, {"dtypes", check_dtypes},
    {"layouts", check_layouts},       {"shapes", check_shapes},   {"extremes", check_extremes},
    {"gradient", check_gradient},     {"misuse", check_misuse},   {"attributes", check_attributes},
    {"hostile", check_hostile},       {"hollow", check_hollow},   {"batch", check_batch},
    {"memory", check_memory},         {"checks", check_checks},
};

/* A check leaves no error and nothing alive, and says so itself if something did. */
static void run(findings *f, int i)
{
    ed_memory before = ed_memory_stats();
    f->check = checks[i].name;
    f->sample = -1;
    {
        ED_SCOPE;
        checks[i].run(f);
    }
    f->sample = -1;
    EXPECT(f, !ed_failed(), "an error stays: %s", ed_error());
    ed_clear_error();
    ed_memory after = ed_memory_stats();
    EXPECT(f, after.live_tensors == before.live_tensors, "%lld tensors stay",
           (long long)(after.live_tensors - before.live_tensors));
    EXPECT(f, after.live_bytes == before.live_bytes, "%lld bytes stay",
           (long long)(after.live_bytes - before.live_bytes));
}

/* The stacks of scopes and objects grow once for all, so that what grows later is a leak. */
static void warm_up(void)
{
    ED_SCOPE;
    for (int i = 0; i < 40000; i++) (void)ed_scalar(1.0);
    ed_scope scopes[30];
    for (int i = 0; i < 30; i++) scopes[i] = ed_scope_open();
    for (int i = 30; i > 0; i--) ed_scope_close(&scopes[i - 1]);
}

bool check_op(const ed_op *op, findings *f)
{
    static bool warm;
    if (!warm) warm_up();
    warm = true;
    *f = (findings){.op = op, .sample = -1};
    int n = sizeof checks / sizeof *checks;
    if (!op->samples || !op->reference) n = 1; /* nothing more can be told */
    if (check_is_closed(op)) {
        run(f, 0);
        run(f, 8);
        n = 0;
    }
    for (int i = 0; i < n; i++) run(f, i);
    return f->failures == 0;
}
