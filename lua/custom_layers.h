/* Layers in Lua: who they are, and what those that are written in Lua share. */
#ifndef EDDY_LUA_CUSTOM_LAYERS_H
#define EDDY_LUA_CUSTOM_LAYERS_H

#include "lua/call.h"
#include "lua/objects.h"

/* Of each layer written in Lua: the way into its Lua state, and its description. */
typedef struct custom_state {
    call_hold *hold;
    struct custom_kind *kind;
} custom_state;

/* own_layers.c: whether the layer was made by a kind of Lua's. */
bool custom_layers_made(const ed_layer *layer);

/* ---- layer_identity.c: the userdata of a layer, and its fields ------------------------------- */

/* Pushes the layer's handle, made if there is none. */
void identity_push(lua_State *L, ed_layer *layer);

/* The handle at a place of the stack is the layer's. */
void identity_set(lua_State *L, const ed_layer *layer, int at);

/* Pushes the table of the fields of the handle at a place of the stack, made if there is none. */
void identity_push_fields(lua_State *L, int at);

/* The handle of the layer's parent, at `parent`, has the layer's, at `at`. For when C's parent is
 * about to have the layer. */
void identity_attach(lua_State *L, int parent, const ed_layer *layer, int at);

/* Adds the child, whose handle lies at `at`, to the layer: false with an error. */
bool identity_add_child(lua_State *L, ed_layer *layer, ed_layer *child, int at);

void identity_open(lua_State *L);

/* ---- layer_fields.c: what of the fields belongs to the layer --------------------------------- */

/* Takes in the value at the top of the stack, which goes into the field: a layer, a variable, a
 * table of them. Raises. */
void fields_take(lua_State *L, ed_layer *layer, const char *name);

/* The same with the layers and variables in tables that are fields: they may have been put there
 * since. */
void fields_collect(lua_State *L, ed_layer *layer);

/* Raises if the field holds a part, and not the value at the top of the stack. */
void fields_check(lua_State *L, ed_layer *layer, const char *name);

#endif
