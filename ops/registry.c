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
    pthread_mutex_t
        lock; /* not held when an error is kept: its handler may look ops up, or leave */
    const ed_op **ops;
    int count, capacity;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool ops_is_built_in(const ed_op *op)
{
    for (const ed_op *const *at = __start_ed_ops; at < __stop_ed_ops; at++)
        if (*at == op) return true;
    return false;
}

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

/* With the lock held and room for it; false if the name is taken. */
static bool insert(const ed_op *op)
{
    int at = position(op->name);
    if (at < table.count && !strcmp(table.ops[at]->name, op->name)) return false;
    memmove(table.ops + at + 1, table.ops + at, (size_t)(table.count - at) * sizeof *table.ops);
    table.ops[at] = op;
    table.count++;
    return true;
}

/* Room for `wanted` ops; not with the lock held. */
static bool grow(int wanted)
{
    const int capacity = wanted + HARD(0, wanted / 2 + 16);
    const ed_op **ops = memory_alloc((size_t)capacity * sizeof *ops), **old = ops;
    if (!ops) return false;
    pthread_mutex_lock(&table.lock);
    if (table.capacity < capacity) {
        if (table.count) memcpy(ops, table.ops, (size_t)table.count * sizeof *ops);
        old = table.ops;
        table.ops = ops;
        table.capacity = capacity;
    }
    pthread_mutex_unlock(&table.lock);
    memory_free(old);
    return true;
}

/* Locks the table, which has the built-in ops then and room for `more`; false, unlocked, without
 * memory. */
static bool lock_with_room(int more)
{
    const int built_in = (int)(__stop_ed_ops - __start_ed_ops);
    for (;;) {
        pthread_mutex_lock(&table.lock);
        const int wanted = (table.count ? table.count : built_in) + more;
        if (wanted <= table.capacity) break;
        pthread_mutex_unlock(&table.lock);
        if (!grow(wanted)) return false;
    }
    if (!table.count)
        for (int i = 0; i < built_in; i++) insert(__start_ed_ops[i]);
    return true;
}

/* Operands that are written come first, optional ones last. */
static bool in_order(const ed_op *op)
{
    for (int i = 1; i < ops_operands(op); i++)
        if ((op->operands[i].writes && !op->operands[i - 1].writes) ||
            (op->operands[i - 1].optional && !op->operands[i].optional))
            return false;
    return true;
}

static bool complete(const ed_op *op)
{
    const char *lacks = !op->name || !*op->name      ? "a name"
                        : !op->doc                   ? "a line of documentation"
                        : !op->infer == !op->compose ? "either infer or compose"
                        : (op->compose ? op->gradient != NULL : !op->gradient == !op->no_gradient)
                            ? "either gradient or no_gradient"
                        : op->attrs && !op->attrs_size ? "attrs_size"
                        : !in_order(op)
                            ? "an order with what it writes first and optional operands last"
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
    if (!lock_with_room(1)) return false;
    const bool ok = insert(op);
    pthread_mutex_unlock(&table.lock);
    if (!ok) ed_fail(ED_INVALID_ARGUMENT, "op_register: an op named %s already exists", op->name);
    return ok;
}

const ed_op *ed_op_find(const char *name)
{
    if (!name) return ed_fail(ED_INVALID_ARGUMENT, "op_find: name is NULL");
    if (!lock_with_room(0)) return NULL;
    const int at = position(name);
    const ed_op *op = at < table.count && !strcmp(table.ops[at]->name, name) ? table.ops[at] : NULL;
    pthread_mutex_unlock(&table.lock);
    return op ? op : ed_fail(ED_NOT_FOUND, "op_find: there is no op named %s", name);
}

int ed_op_count(void)
{
    if (!lock_with_room(0)) return 0;
    const int count = table.count;
    pthread_mutex_unlock(&table.lock);
    return count;
}

const ed_op *ed_op_at(int i)
{
    if (!lock_with_room(0)) return NULL;
    const ed_op *op = i >= 0 && i < table.count ? table.ops[i] : NULL;
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

__attribute__((constructor(103))) static void watch_forks(void)
{
    pthread_atfork(lock_table, unlock_table, unlock_table);
}

__attribute__((destructor(103))) static void end(void)
{
    memory_free(table.ops);
    table.ops = NULL;
    table.count = table.capacity = 0;
}
