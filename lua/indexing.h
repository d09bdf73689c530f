/*
 * Indexing of tensors. Indices count from 1, as in Lua, and from -1 at the end; a range includes
 * both its ends, as in string.sub:
 *
 *     x[2]                the second row           x[-1]           the last
 *     x[{2, 3}]           row 2, column 3          x[{{1, 2}}]     rows 1 and 2
 *     x[{{}, 3}]          column 3                 x[{{-1, 1, -1}}]  rows backward
 *     x["1:2, 3"]         the same as a string: first:last:step
 *     x["..., 1"]         all axes, and the first element along the last
 *     x[mask]             the elements, or rows, where a bool tensor is true
 *
 * Numbers inside tensors (labels, indices of gather, results of argmax) are data and begin at 0.
 */
#ifndef EDDY_LUA_INDEXING_H
#define EDDY_LUA_INDEXING_H

#include "lua/handle.h"

/* The part of t that the index at `key` of the stack selects: a view, or a copy for masks.
 * Inside a scope; NULL with an error. */
ed_tensor *indexing_read(lua_State *L, ed_tensor *t, int key);

/* Writes the value, which has the variable's dtype and is broadcast, to the part. Inside a
 * scope; false with an error, and nothing is written. */
bool indexing_write(lua_State *L, ed_tensor *v, int key, ed_tensor *value);

/* Whether a string can only be an index, not a name. */
bool indexing_is_string(const char *s, size_t size);

/* Puts slice into the table at the top of the stack. */
void indexing_open(lua_State *L);

#endif
