#include "nn/layer_core.h"

typedef struct lambda {
    ed_tensor *(*function)(ed_tensor *x, void *user);
    void *user;
} lambda;

static bool lambda_forward(ed_layer *layer, ed_layer_call *call)
{
    const lambda *l = ed_layer_state(layer);
    return ed_layer_return(call, l->function(call->inputs[0], l->user));
}

static const ed_layer_class lambda_class = {
    .kind = {.name = "lambda"}, .state_size = sizeof(lambda), .forward = lambda_forward};

ed_layer *ed_layer_lambda(const char *name, ed_tensor *(*function)(ed_tensor *x, void *user),
                          void *user)
{
    if (!function) return ed_fail(ED_INVALID_ARGUMENT, "layer_lambda: function is NULL");
    ed_layer *layer = ed_layer_new(&lambda_class, name);
    if (layer) *(lambda *)ed_layer_state(layer) = (lambda){function, user};
    return layer;
}
