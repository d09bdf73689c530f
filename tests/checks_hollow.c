#include "tests/checks.h"
#include "ops/symbol.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/*
 * In the description of a model operands have no elements: a call gives outputs of the same dtypes
 * and shapes without reading one, or says that it can't. The operands here point to memory that
 * nobody may read.
 */

static sigjmp_buf reading;

static void on_read(int signal)
{
    siglongjmp(reading, signal);
}

/* A tensor of x's shape whose elements can't be read. */
static ed_tensor *without_elements(ed_tensor *x, char *nowhere)
{
    const int64_t strides[ED_MAX_RANK] = {0};
    ed_tensor *hollow = scope_give(tensor_view(x, x->rank, x->shape, strides, 0));
    if (!hollow) return NULL;
    hollow->data = nowhere;
    hollow->flags |= TENSOR_HOLLOW;
    return hollow;
}

static void compare(findings *f, const ed_list *expected, const ed_list *y)
{
    if (!EXPECT(f, y->size == expected->size, "%lld outputs without elements, expected %lld",
                (long long)y->size, (long long)expected->size))
        return;
    for (int64_t i = 0; i < y->size; i++) {
        const ed_tensor *a = y->items[i], *b = expected->items[i];
        EXPECT(f, a->dtype == b->dtype && tensor_same_shape(a, b),
               "output %lld without elements is %s, expected %s", (long long)i, text_of_tensor(a).s,
               text_of_tensor(b).s);
        EXPECT(f, a->flags & TENSOR_HOLLOW || f->op->compose, "output %lld has elements",
               (long long)i);
    }
}

/* Operand `at` has no elements. */
static void check_operand_at(findings *f, const trial *t, int at, char *nowhere)
{
    ED_SCOPE;
    trial hollow = *t;
    if (!t->x[at] || t->op->operands[0].writes) return;
    if (!(hollow.x[at] = without_elements(t->x[at], nowhere))) return;
    const ed_list *expected = trial_run(t);
    ed_clear_error();
    if (!expected) return;
    const symbol_trace outer = symbol_trace_begin();
    if (!sigsetjmp(reading, 1)) {
        const ed_list *y = trial_run(&hollow);
        if (y) compare(f, expected, y);
        EXPECT(f, y || check_operand(t->op, at)->early, "operand %s without elements: %s",
               check_operand(t->op, at)->name, ed_error());
    } else {
        found(f, "operand %s, which has no elements, is read", check_operand(t->op, at)->name);
    }
    symbol_trace_end(outer);
    ed_clear_error();
}

void check_hollow(findings *f)
{
    const size_t page = 1 << 16;
    char *nowhere = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!EXPECT(f, nowhere != MAP_FAILED, "no page")) return;
    struct sigaction before, action = {.sa_handler = on_read};
    sigaction(SIGSEGV, &action, &before);
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT32); s++) {
        ED_SCOPE;
        for (int i = 0; trial_fill(&t) && i < t.n; i++) check_operand_at(f, &t, i, nowhere);
        ed_clear_error();
    }
    sigaction(SIGSEGV, &before, NULL);
    munmap(nowhere, page);
}
