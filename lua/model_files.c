#include "lua/arguments.h"
#include "lua/custom_layers.h"
#include "lua/maker.h"
#include "lua/objects.h"

/*
 * Models as files of Keras.
 *
 *     model:save("digits.keras")            ed.save_model(model, "digits.keras")
 *     local model = ed.load_model("digits.keras", {compile = false})
 */

typedef struct load_arguments {
    const char *path;
    ed_load_options options;
} load_arguments;

static const maker_field load_fields[] = {
    {"path", ED_FIELD_STRING, .offset = offsetof(load_arguments, path)},
    ED_LOAD_OPTIONS(MAKER_OPTION, load_arguments){0}};
static const load_arguments load_defaults = {.options =
                                                 ED_COMPLETE(ED_LOAD_OPTIONS, ed_load_options)};

static void *make_loaded(const void *arguments)
{
    const load_arguments *a = arguments;
    return ed_model_load_with(a->path, &a->options);
}

static const maker makers[] = {
    {"load_model", HANDLE_LAYER, 1, 1, load_fields, sizeof(load_arguments), &load_defaults,
     make_loaded},
    {0},
};

/* save(path): the model. */
int layer_save(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const char *path = maker_check_text(L, 2);
    binding b = binding_open(L);
    const bool fine = ed_model_save(layer, path);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

void model_files_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"save_model", layer_save}, {NULL, NULL}};
    maker_open(L, makers);
    arguments_set(L, NULL, functions);
}
