#include "nn/layer_core.h"
#include <stdio.h>
#include <string.h>

/*
 * The index of a layer's children by name: an open-addressing hash table of 2 * child_capacity
 * slots. Children are removed in the reverse order of their addition, so emptying a slot never
 * breaks the search for another name.
 *
 * A slot also has the number with which the search for a free name begins: for "dense", each of
 * dense_1 ... dense_<next - 1> is taken. So n layers of one kind get their names in n steps.
 */

static uint64_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (const char *c = name; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3;
    return h ^ h >> 32;
}

/* The slot of the name in a table for `capacity` children; an empty one if no child has it. */
static layer_slot *slot_in(layer_slot *slots, int64_t capacity, const char *name)
{
    const uint64_t mask = 2 * (uint64_t)capacity - 1;
    uint64_t at = hash(name) & mask;
    while (slots[at].child && strcmp(slots[at].child->name, name) != 0) at = (at + 1) & mask;
    return &slots[at];
}

static layer_slot *slot_of(const ed_layer *layer, const char *name)
{
    return slot_in(layer->slots, layer->child_capacity, name);
}

ed_layer *layer_child_named(const ed_layer *layer, const char *name)
{
    return layer->child_capacity ? slot_of(layer, name)->child : NULL;
}

void layer_index_child(ed_layer *layer, ed_layer *child)
{
    *slot_of(layer, child->name) = (layer_slot){.child = child, .next = 1};
}

/* Numbers become free again with the child, so all searches begin at 1 again. */
void layer_unindex_child(ed_layer *layer, const ed_layer *child)
{
    slot_of(layer, child->name)->child = NULL;
    layer->numbers_freed = true;
}

void layer_clear_index(ed_layer *layer)
{
    if (layer->slots)
        memset(layer->slots, 0, 2 * (size_t)layer->child_capacity * sizeof *layer->slots);
}

bool layer_grow_index(ed_layer *layer, int64_t capacity)
{
    layer_slot *slots = memory_zalloc(2 * (size_t)capacity * sizeof *slots);
    if (!slots) return false;
    for (int64_t i = 0; i < layer->n_children; i++) {
        const char *name = layer->children[i]->name;
        *slot_in(slots, capacity, name) = *slot_of(layer, name);
    }
    memory_free(layer->slots);
    layer->slots = slots;
    layer->child_capacity = capacity;
    return true;
}

static void restart_numbers(ed_layer *layer)
{
    for (int64_t i = 0; layer->numbers_freed && i < 2 * layer->child_capacity; i++)
        layer->slots[i].next = 1;
    layer->numbers_freed = false;
}

char *layer_free_name(ed_layer *layer, const char *kind)
{
    const size_t room = strlen(kind) + 24;
    char *name = memory_alloc(room);
    if (!name) return NULL;
    memcpy(name, kind, strlen(kind) + 1);
    restart_numbers(layer);
    layer_slot *first = layer->child_capacity ? slot_of(layer, kind) : NULL;
    if (!first || !first->child) return name;
    do snprintf(name, room, "%s_%lld", kind, (long long)first->next++);
    while (slot_of(layer, name)->child);
    first->next--;
    return name;
}
