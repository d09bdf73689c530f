/*
 * Numbers by pointers: what a walk over layers or symbols remembers of those that it met. The mark
 * is not in the object, so walks of several threads don't meet.
 */
#ifndef EDDY_TENSOR_POINTER_MAP_H
#define EDDY_TENSOR_POINTER_MAP_H

#include "tensor/core.h"

/* Zero is an empty map. pointer_map_free frees what it has. */
typedef struct pointer_map {
    struct pointer_slot *slots; /* open addressing */
    int count, capacity;        /* capacity: of slots, a power of two, twice the count or more */
} pointer_map;

/* Where the number of the pointer is; NULL if it has none. Valid until the next put. */
int *pointer_map_find(const pointer_map *map, const void *pointer);

/* Gives a pointer that has none its number; false without memory. */
bool pointer_map_put(pointer_map *map, const void *pointer, int number);

void pointer_map_free(pointer_map *map);

#endif
