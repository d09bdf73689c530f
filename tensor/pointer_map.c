#include "tensor/pointer_map.h"

typedef struct pointer_slot {
    const void *pointer; /* NULL: empty */
    int number;
} pointer_slot;

/* The slot of the pointer, an empty one if it has none; the table is not full. */
static pointer_slot *find_slot(pointer_slot *slots, int capacity, const void *pointer)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)pointer * 0x9e3779b97f4a7c15;
    uint64_t at = mixed >> 32;
    for (;; at++) {
        pointer_slot *slot = slots + (at & ((uint64_t)capacity - 1));
        if (!slot->pointer || slot->pointer == pointer) return slot;
    }
}

int *pointer_map_find(const pointer_map *map, const void *pointer)
{
    if (!map->count) return NULL;
    pointer_slot *slot = find_slot(map->slots, map->capacity, pointer);
    return slot->pointer ? &slot->number : NULL;
}

static bool grow_map(pointer_map *map)
{
    const int more = map->capacity ? 2 * map->capacity : HARD(2, 32);
    pointer_slot *slots = memory_zalloc((size_t)more * sizeof *slots);
    if (!slots) return false;
    for (int i = 0; i < map->capacity; i++)
        if (map->slots[i].pointer) *find_slot(slots, more, map->slots[i].pointer) = map->slots[i];
    memory_free(map->slots);
    map->slots = slots;
    map->capacity = more;
    return true;
}

bool pointer_map_put(pointer_map *map, const void *pointer, int number)
{
    if (2 * (map->count + 1) > map->capacity && !grow_map(map)) return false;
    *find_slot(map->slots, map->capacity, pointer) = (pointer_slot){pointer, number};
    map->count++;
    return true;
}

void pointer_map_free(pointer_map *map)
{
    memory_free(map->slots);
}
