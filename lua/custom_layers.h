/* Layers in Lua: their userdata, and what layers written in Lua share. */
#ifndef EDDY_LUA_CUSTOM_LAYERS_H
#define EDDY_LUA_CUSTOM_LAYERS_H

#include "lua/call.h"
#include "lua/objects.h"

/* For each layer written in Lua: the access to its Lua state, and its description. */
typedef struct custom_state {
    call_hold *hold;
    struct custom_kind *kind;
} custom_state;

/* custom_layers.c: whether the layer's kind was described in Lua. */
bool custom_layers_made(const ed_layer *layer);

/* ---- layer_identity.c: the userdata of a layer, and its fields ------------------------------- */

/* Pushes the layer's handle; creates it if there is none. */
void identity_push(lua_State *L, ed_layer *layer);

/* Makes the handle at an index of the stack the layer's. */
void identity_set(lua_State *L, const ed_layer *layer, int at);

/* Pushes the table of the fields of the handle at an index of the stack; creates it if there is
 * none. */
void identity_push_fields(lua_State *L, int at);

/* The handle of the parent, at `parent`, gets a reference to that of the child, at `at`. Call it
 * before C's parent gets the child. */
void identity_attach(lua_State *L, int parent, const ed_layer *layer, int at);

/* Adds the child, whose handle is at `at`, to the layer, as that field, if it is not NULL: false
 * with an error. */
bool identity_add_child(lua_State *L, ed_layer *layer, ed_layer *child, const char *field, int at);

/*
 * Layers with fields, which are called with symbolic tensors and then held by the description of a
 * model only: identity_hold holds the layer's handle, if it or a layer below it is written in Lua,
 * until a model takes it over by identity_take: the handle of the model, at an index of the stack,
 * gets references to those of its children. identity_share gives references to those with fields to
 * the handle at an index of the stack, of whatever kind.
 */
void identity_hold(lua_State *L, ed_layer *layer);
void identity_take(lua_State *L, int model);
void identity_share(lua_State *L, int at, ed_layer *model);

void identity_open(lua_State *L);

/* ---- layer_fields.c: which values of fields belong to the layer ------------------------------ */

/* Adds the value at the top of the stack, which is assigned to the field, to the layer: a layer,
 * a variable, a table of them. Raises. */
void fields_take(lua_State *L, ed_layer *layer, const char *name);

/* The same for the layers and variables in tables that are fields: the program may have changed
 * these tables. */
void fields_collect(lua_State *L, ed_layer *layer);

/* Raises if the field holds a child or weight other than the value at the top of the stack. */
void fields_check(lua_State *L, ed_layer *layer, const char *name);

/* ---- layer_values.c: methods of all layers --------------------------------------------------- */

int layer_build(lua_State *L);
int layer_set_weights(lua_State *L);
int layer_count_params(lua_State *L);
int layer_set_trainable(lua_State *L);
int layer_reset_states(lua_State *L);
int layer_adapt(lua_State *L);
int layer_get_vocabulary(lua_State *L);
int layer_is_trainable(lua_State *L);
int layer_add_loss(lua_State *L);

/* ---- graph.c: what models of symbolic tensors were made of ----------------------------------- */

int layer_inputs(lua_State *L);
int layer_outputs(lua_State *L);
int layer_values(lua_State *L);

/* ---- model.c: their training ----------------------------------------------------------------- */

int layer_compile(lua_State *L);
int layer_fit(lua_State *L);
int layer_save(lua_State *L);
int layer_evaluate(lua_State *L);
int layer_predict(lua_State *L);

#endif
