/* Layers written in Lua: what their parts share. */
#ifndef EDDY_LUA_OWN_H
#define EDDY_LUA_OWN_H

#include "lua/call.h"
#include "lua/objects.h"
#include "nn/layer.h"

/* Of each layer: who it is in Lua (own_self.c). */
typedef struct own_state {
    call_hold *self;
} own_state;

/* ---- own_self.c: the userdata and the fields ------------------------------------------------- */

/* Lets the handle at the top of the stack be a layer's only one, with fields, which are the table
 * at `fields`; the layer is put into it later. */
void own_self_begin(lua_State *L, int fields);

/* The layer's handle, with the layer in it, lies at the top of the stack. */
void own_self_known(lua_State *L, ed_layer *layer);

/* Pushes the layer's handle. */
void own_self_push(lua_State *L, ed_layer *layer);

/* Pushes its fields. */
void own_self_push_fields(lua_State *L, ed_layer *layer);

void own_self_open(lua_State *L);

/* ---- own_parts.c: what of the fields belongs to the layer ------------------------------------ */

/* Makes the child, whose handle lies at `at`, one of the layer's: false with an error. */
bool own_parts_add(lua_State *L, ed_layer *layer, ed_layer *child, int at);

/* Takes in the value at the top of the stack, which goes into the field: a layer, a variable, a
 * table of them. Raises. */
void own_parts_take(lua_State *L, ed_layer *layer, const char *name);

/* The same with the layers and variables in tables that are fields: they may have been put there
 * since. */
void own_parts_gather(lua_State *L, ed_layer *layer);

/* Raises if the field holds a part, and not the value at the top of the stack. */
void own_parts_check(lua_State *L, ed_layer *layer, const char *name);

#endif
