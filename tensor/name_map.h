/*
 * Numbers by names, as of the layers that a file's calls name. The names are the caller's, who
 * keeps them while the map is used.
 */
#ifndef EDDY_TENSOR_NAME_MAP_H
#define EDDY_TENSOR_NAME_MAP_H

#include "tensor/core.h"

/* Zero is an empty map. name_map_free frees what it has. */
typedef struct name_map {
    struct name_slot *slots; /* open addressing */
    int count, capacity;     /* capacity: of slots, a power of two, twice the count or more */
} name_map;

/* Where the number of the name is; NULL if it has none. Valid until the next put. */
int *name_map_find(const name_map *map, const char *name);

/* Gives a name its number, unless it has one, which it keeps; false without memory. */
bool name_map_put(name_map *map, const char *name, int number);

void name_map_free(name_map *map);

#endif
