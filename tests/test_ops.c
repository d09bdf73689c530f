/*
 * Every op of the table is checked from its definition: see tests/checks.h. Arguments are parts of
 * names: test_ops conv pool checks the ops whose names contain "conv" or "pool"; or a part of the
 * table: test_ops 2/3 checks the second of three.
 */
#include "tests/checks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <cmocka.h>

static struct {
    int64_t ops, samples, checks, failures;
} total;

static void check(void **state)
{
    const ed_op *op = *state;
    static ed_scope scope; /* still open where the op before has crashed */
    findings f;
    ed_scope_close(&scope);
    scope = ed_scope_open();
    bool ok = check_op(op, &f);
    ed_scope_close(&scope);
    total.ops++;
    total.checks += f.checks;
    total.failures += f.failures;
    for (const ed_sample *s = op->samples; s && !s->last; s++) total.samples++;
    if (ok) return;
    printf("%s", f.text); /* cmocka would cut it */
    fail_msg("%d of %lld checks", f.failures, (long long)f.checks);
}

/* No attribute, however wild, may take the machine's memory. Sanitizers have their own bound. */
static void bound_memory(void)
{
#ifndef EDDY_SANITIZED
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)8 << 30, (rlim_t)8 << 30});
#endif
}

/* Op i of the table, by the program's arguments. */
static bool chosen(int i, int argc, char **argv)
{
    int part, parts;
    if (argc == 2 && sscanf(argv[1], "%d/%d", &part, &parts) == 2 && parts > 0)
        return i % parts == part - 1;
    for (int k = 1; k < argc; k++)
        if (strstr(ed_op_at(i)->name, argv[k])) return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    static struct CMUnitTest tests[MOST];
    size_t n = 0;
    bound_memory();
    for (int i = 0; i < ed_op_count() && n < MOST; i++) {
        const ed_op *op = ed_op_at(i);
        if (!chosen(i, argc, argv)) continue;
        tests[n++] = (struct CMUnitTest){op->name, check, NULL, NULL, (void *)op};
    }
    clock_t begin = clock();
    int failed = _cmocka_run_group_tests("ops", tests, n, NULL, NULL);
    printf("test_ops: %lld ops, %lld samples, %lld checks, %lld failures, %.1f s\n",
           (long long)total.ops, (long long)total.samples, (long long)total.checks,
           (long long)total.failures, (double)(clock() - begin) / CLOCKS_PER_SEC);
    return failed || !n;
}
