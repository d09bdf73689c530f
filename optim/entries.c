#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>

/*
 * An optimizer's entries: one for each variable, in the order of their first steps, with its slots.
 * The index finds a variable's entry: an open-addressing hash table of 2 * capacity cells, each
 * with an entry's number + 1, 0 if it is empty. Entries are removed in the reverse order of their
 * addition, so emptying a cell never breaks the search for another variable.
 */

static int64_t *cell_of(const ed_optimizer *o, const ed_tensor *v)
{
    const uint64_t mask = 2 * (uint64_t)o->capacity - 1;
    uint64_t at = (v->id * 0x9e3779b97f4a7c15 >> 32) & mask;
    while (o->index[at] && o->entries[o->index[at] - 1].variable != v) at = (at + 1) & mask;
    return &o->index[at];
}

optim_entry *optim_find(const ed_optimizer *o, const ed_tensor *v, int64_t *hint)
{
    if (!o->n_entries) return NULL;
    int64_t i = *hint < o->n_entries ? *hint : 0;
    if (o->entries[i].variable != v) i = *cell_of(o, v) - 1;
    if (i < 0) return NULL;
    *hint = i + 1;
    return &o->entries[i];
}

void optim_drop_entries(ed_optimizer *o, int64_t left)
{
    while (o->n_entries > left) {
        optim_entry *e = &o->entries[o->n_entries - 1];
        *cell_of(o, e->variable) = 0;
        o->n_entries--;
        ed_release(e->variable);
        for (int s = 0; s < OPTIM_SLOTS; s++) ed_release(e->slots[s]);
    }
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static ed_tensor *zeros_like(const ed_tensor *v)
{
    ed_tensor *zeros = tensor_new(v->dtype, v->rank, v->shape);
    if (zeros) memset(zeros->data, 0, (size_t)zeros->size * dtype_size(zeros->dtype));
    return zeros;
}

/* Zeros, or the checkpoint's value that waits for the slot. */
static ed_tensor *make_slot(const ed_optimizer *o, const ed_tensor *v, int slot)
{
    char name[512];
    const char *of = ed_variable_name(v);
    snprintf(name, sizeof name, "%.400s_%s", of, o->class->slots[slot]);
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    ed_tensor *initial;
    int node;
    if (!optim_waiting(o, slot, v, &initial, &node)) return NULL;
    if (!initial && !(initial = zeros_like(v))) return NULL;
    ed_tensor *made = ed_variable(initial, .name = name, .trainable = false);
    ed_release(initial);
    if (made && node >= 0 && !o->wait.source->made(o->wait.source, node, made)) return NULL;
    return ed_retain(made);
}

static bool grow(ed_optimizer *o)
{
    int64_t capacity = o->capacity ? 2 * o->capacity : HARD(1, 8);
    int64_t *index = memory_zalloc(2 * (size_t)capacity * sizeof *index);
    optim_entry *entries = !index ? NULL
                                  : memory_grow(o->entries, (size_t)o->capacity * sizeof *entries,
                                                (size_t)capacity * sizeof *entries);
    if (!entries) {
        memory_free(index);
        return false;
    }
    memory_free(o->index);
    o->index = index;
    o->entries = entries;
    o->capacity = capacity;
    for (int64_t i = 0; i < o->n_entries; i++) *cell_of(o, entries[i].variable) = i + 1;
    return true;
}

optim_entry *optim_add(ed_optimizer *o, ed_tensor *v)
{
    if (o->n_entries == o->capacity && !grow(o)) return NULL;
    *cell_of(o, v) = o->n_entries + 1;
    optim_entry *e = &o->entries[o->n_entries++];
    *e = (optim_entry){.variable = ed_retain(v)};
    for (int s = 0; s < OPTIM_SLOTS; s++)
        if (o->slots & 1u << s && !(e->slots[s] = make_slot(o, v, s))) return NULL;
    return e;
}

/* ---- The list of slots ----------------------------------------------------------------------- */

static int64_t copy_slots(const ed_optimizer *o, int from, int to, ed_list *list, int64_t at)
{
    for (int64_t i = 0; i < o->n_entries; i++)
        for (int s = from; s < to; s++)
            if (o->slots & 1u << s) list->items[at++] = ed_retain(o->entries[i].slots[s]);
    return at;
}

ed_list *ed_optimizer_variables(const ed_optimizer *optimizer)
{
    if (!optimizer) return ed_fail(ED_INVALID_ARGUMENT, "optimizer_variables: optimizer is NULL");
    ed_list *list = list_new(optimizer->n_entries * __builtin_popcount(optimizer->slots));
    if (!list) return NULL;
    int64_t at = copy_slots(optimizer, 0, optimizer->class->together, list, 0);
    for (int s = optimizer->class->together; s < OPTIM_SLOTS; s++)
        at = copy_slots(optimizer, s, s + 1, list, at);
    return scope_give(list);
}
