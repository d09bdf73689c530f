#include "tensor/name_map.h"
#include <string.h>

typedef struct name_slot {
    const char *name; /* NULL: empty */
    uint64_t hash;
    int number;
} name_slot;

static uint64_t hash_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (const char *c = name; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3;
    return h ^ h >> 32;
}

/* The slot of the name, an empty one if it has none; the table is not full. */
static name_slot *slot_for(name_slot *slots, int capacity, const char *name, uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        name_slot *slot = slots + (at & ((uint64_t)capacity - 1));
        if (!slot->name || (slot->hash == hash && !strcmp(slot->name, name))) return slot;
    }
}

int *name_map_find(const name_map *map, const char *name)
{
    if (!map->count) return NULL;
    name_slot *slot = slot_for(map->slots, map->capacity, name, hash_of(name));
    return slot->name ? &slot->number : NULL;
}

static bool grow_map(name_map *map)
{
    const int more = map->capacity ? 2 * map->capacity : HARD(2, 32);
    name_slot *slots = memory_zalloc((size_t)more * sizeof *slots);
    if (!slots) return false;
    for (int i = 0; i < map->capacity; i++) {
        const name_slot *old = map->slots + i;
        if (old->name) *slot_for(slots, more, old->name, old->hash) = *old;
    }
    memory_free(map->slots);
    map->slots = slots;
    map->capacity = more;
    return true;
}

bool name_map_put(name_map *map, const char *name, int number)
{
    const uint64_t hash = hash_of(name);
    if (2 * (map->count + 1) > map->capacity && !grow_map(map)) return false;
    name_slot *slot = slot_for(map->slots, map->capacity, name, hash);
    if (slot->name) return true;
    *slot = (name_slot){name, hash, number};
    map->count++;
    return true;
}

void name_map_free(name_map *map)
{
    memory_free(map->slots);
}
