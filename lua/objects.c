#include "lua/objects.h"
#include "tensor/core.h"
#include <stdio.h>

void objects_methods(lua_State *L, handle_kind kind, const luaL_Reg *methods,
                     const luaL_Reg *metamethods, lua_CFunction index)
{
    char name[32];
    snprintf(name, sizeof name, "eddy.%s", handle_kind_name(kind));
    luaL_getmetatable(L, name);
    if (metamethods) luaL_setfuncs(L, metamethods, 0);
    lua_getfield(L, -1, "__index");
    luaL_setfuncs(L, methods, 0);
    if (index) {
        lua_pushcclosure(L, index, 1);
        lua_setfield(L, -2, "__index");
    } else
        lua_pop(L, 1);
    lua_pop(L, 1);
}

void objects_push_tensor_methods(lua_State *L)
{
    luaL_getmetatable(L, "eddy.tensor");
    lua_getfield(L, -1, "__index");
    lua_getupvalue(L, -1, 1);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

bool objects_method(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING) return false;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

int objects_no_field(lua_State *L)
{
    const char *key = luaL_tolstring(L, 2, NULL);
    luaL_getmetafield(L, 1, "__name");
    return luaL_error(L, "a %s has no field or method '%s'", lua_tostring(L, -1), key);
}

bool objects_push_text(lua_State *L, const char *s)
{
    if (s) return handle_push_text(L, s);
    lua_pushnil(L);
    return true;
}

ed_list *objects_variables(lua_State *L, int at)
{
    ed_layer *layer = handle_at(L, at, HANDLE_LAYER);
    return layer ? ed_trainable(layer) : convert_list(L, at);
}

int objects_finish_list(lua_State *L, binding *b, handle *h, void *list)
{
    if (binding_finish(L, b, h, list)) convert_push_list(L, h->object);
    return 1;
}
