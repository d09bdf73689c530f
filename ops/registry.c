#include "ops/execute.h"
#include <pthread.h>
#include <string.h>

/*
 * The table of ops: the linker gathers the built-in definitions in a section; users' ones are added
 * behind. Kept in the order of their names. Looked up when a binding is made, not on the hot path,
 * so a lock and a binary search do.
 */

extern const ed_op *const __start_ed_ops[] __attribute__((visibility("hidden")));
extern const ed_op *const __stop_ed_ops[] __attribute__((visibility("hidden")));

static struct {
    pthread_mutex_t lock; /* recursive: an error handler may look ops up */
    const ed_op **ops;
    int count, capacity;
} table;

/* Where the name is, or would be. */
static int position(const char *name)
{
    int low = 0, high = table.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(table.ops[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(const ed_op *op)
{
    if (table.count == table.capacity) {
        int capacity = table.capacity ? 2 * table.capacity : HARD(1, 256);
        void *ops = memory_grow(table.ops, (size_t)table.count * sizeof *table.ops,
                                (size_t)capacity * sizeof *table.ops);
        if (!ops) return false;
        table.ops = ops;
        table.capacity = capacity;
    }
    int at = position(op->name);
    if (at < table.count && !strcmp(table.ops[at]->name, op->name)) {
        ed_fail(ED_INVALID_ARGUMENT, "op_register: an op named %s already exists", op->name);
        return false;
    }
    memmove(table.ops + at + 1, table.ops + at, (size_t)(table.count - at) * sizeof *table.ops);
    table.ops[at] = op;
    table.count++;
    return true;
}

/* With the lock held; fails only without memory, and goes on where it stopped at the next call. */
static bool have_builtins(void)
{
    static const ed_op *const *next;
    if (!next) next = __start_ed_ops;
    for (; next < __stop_ed_ops; next++)
        if (!insert(*next)) return false;
    return true;
}

/* Operands that are written come first. */
static bool in_order(const ed_op *op)
{
    for (int i = 1; i < ops_operands(op); i++)
        if (op->operands[i].writes && !op->operands[i - 1].writes) return false;
    return true;
}

static bool complete(const ed_op *op)
{
    const char *lacks = !op->name || !*op->name             ? "a name"
                        : !op->doc                          ? "a line of documentation"
                        : !op->infer                        ? "infer"
                        : !op->gradient == !op->no_gradient ? "either gradient or no_gradient"
                        : op->attrs && !op->attrs_size      ? "attrs_size"
                        : !in_order(op)                     ? "an order with what it writes first"
                        : !op->defaults && op->attrs_size > OPS_ZERO_ATTRS ? "defaults"
                                                                           : NULL;
    if (!lacks) return true;
    ed_fail(ED_INVALID_ARGUMENT, "op_register: the op %s lacks %s", op->name ? op->name : "?",
            lacks);
    return false;
}

bool ed_op_register(const ed_op *op)
{
    if (!op) return ed_fail(ED_INVALID_ARGUMENT, "op_register: op is NULL"), false;
    if (!complete(op)) return false;
    pthread_mutex_lock(&table.lock);
    bool ok = have_builtins() && insert(op);
    pthread_mutex_unlock(&table.lock);
    return ok;
}

const ed_op *ed_op_find(const char *name)
{
    if (!name) return ed_fail(ED_INVALID_ARGUMENT, "op_find: name is NULL");
    pthread_mutex_lock(&table.lock);
    const ed_op *op = NULL;
    if (have_builtins()) {
        int at = position(name);
        if (at < table.count && !strcmp(table.ops[at]->name, name)) op = table.ops[at];
    }
    pthread_mutex_unlock(&table.lock);
    return op ? op : ed_fail(ED_NOT_FOUND, "op_find: there is no op named %s", name);
}

int ed_op_count(void)
{
    pthread_mutex_lock(&table.lock);
    int count = have_builtins() ? table.count : 0;
    pthread_mutex_unlock(&table.lock);
    return count;
}

const ed_op *ed_op_at(int i)
{
    pthread_mutex_lock(&table.lock);
    const ed_op *op = have_builtins() && i >= 0 && i < table.count ? table.ops[i] : NULL;
    pthread_mutex_unlock(&table.lock);
    return op;
}

static void lock_table(void)
{
    pthread_mutex_lock(&table.lock);
}

static void unlock_table(void)
{
    pthread_mutex_unlock(&table.lock);
}

/* POSIX has no initializer of a recursive mutex. A child of fork makes a new one: it finds the
 * table whole, but its thread is not the one that locked it. */
static void make_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&table.lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

__attribute__((constructor(103))) static void begin(void)
{
    make_lock();
    pthread_atfork(lock_table, unlock_table, make_lock);
}

__attribute__((destructor(103))) static void end(void)
{
    memory_free(table.ops);
    table.ops = NULL;
    table.count = table.capacity = 0;
}
