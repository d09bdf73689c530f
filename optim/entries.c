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

/* The first value of a slot. */
static ed_tensor *first_value(const ed_optimizer *o, const ed_tensor *v, int slot)
{
    if (slot == OPTIM_AVERAGE) return tensor_snapshot(tensor_value(v));
    if (slot < OPTIM_OWN && o->class->initial) return o->class->initial(o, slot, v);
    return optim_full(v, 0);
}

ed_tensor *optim_full(const ed_tensor *v, double value)
{
    ed_tensor *t = tensor_new(v->dtype, v->rank, v->shape);
    if (t && value == 0) memset(t->data, 0, (size_t)t->size * dtype_size(t->dtype));
    for (int64_t i = 0; t && value != 0 && i < t->size; i++)
        dtype_store(t->dtype, t->data, i, value);
    return t;
}

/* The variable of a slot, of the first value or the checkpoint's that waits for it. */
static bool make_slot(const ed_optimizer *o, optim_entry *e, int slot)
{
    char name[512];
    snprintf(name, sizeof name, "%.400s_%s", ed_variable_name(e->variable),
             optim_slot_name(o, slot));
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    ed_tensor *initial = first_value(o, e->variable, slot), *waiting;
    int node;
    if (!initial) return false;
    if (!optim_waiting(o, slot, e->variable, initial, &waiting, &node))
        return ed_release(initial), false;
    ed_tensor *made = ed_variable(waiting ? waiting : initial, .name = name, .trainable = false);
    ed_release(initial);
    ed_release(waiting);
    if (made && node >= 0 && !o->wait.source->made(o->wait.source, node, made)) return false;
    e->slots[slot] = ed_retain(made);
    return made;
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

static bool has_slot(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    if (!(o->slots & 1u << slot)) return false;
    return slot >= OPTIM_OWN || !o->class->has || o->class->has(o, slot, v);
}

optim_entry *optim_add(ed_optimizer *o, ed_tensor *v)
{
    if (o->n_entries == o->capacity && !grow(o)) return NULL;
    *cell_of(o, v) = o->n_entries + 1;
    optim_entry *e = &o->entries[o->n_entries++];
    *e = (optim_entry){.variable = ed_retain(v)};
    optim_take_settings(o, e);
    for (int s = 0; s < OPTIM_SLOTS; s++)
        if (has_slot(o, s, v) && !make_slot(o, e, s)) return NULL;
    return e;
}

/* ---- The list of slots ----------------------------------------------------------------------- */

static int64_t copy_slots(const ed_optimizer *o, int from, int to, ed_list *list, int64_t at)
{
    for (int64_t i = 0; i < o->n_entries; i++)
        for (int s = from; s < to; s++)
            if (o->entries[i].slots[s]) list->items[at++] = ed_retain(o->entries[i].slots[s]);
    return at;
}

ed_list *ed_optimizer_variables(const ed_optimizer *optimizer)
{
    if (!optimizer) return ed_fail(ED_INVALID_ARGUMENT, "optimizer_variables: optimizer is NULL");
    int64_t count = 0;
    for (int64_t i = 0; i < optimizer->n_entries; i++)
        for (int s = 0; s < OPTIM_SLOTS; s++) count += optimizer->entries[i].slots[s] != NULL;
    ed_list *list = list_new(count);
    if (!list) return NULL;
    const int together = optimizer->class->together;
    int64_t at = copy_slots(optimizer, OPTIM_AVERAGE, OPTIM_AVERAGE + 1, list, 0);
    at = copy_slots(optimizer, OPTIM_SUM, OPTIM_SUM + 1, list, at);
    at = copy_slots(optimizer, 0, together, list, at);
    for (int s = together; s < OPTIM_OWN; s++) at = copy_slots(optimizer, s, s + 1, list, at);
    return scope_give(list);
}
