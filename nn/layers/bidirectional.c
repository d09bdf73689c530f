#include "nn/layers/cells.h"
#include "track/graph.h"
#include <string.h>

/* ---- bidirectional --------------------------------------------------------------------------- */

typedef struct both {
    ed_layer *forward, *backward; /* the children */
} both;

static recurrent *recurrent_of(ed_layer *layer)
{
    return layer && layer->class->destroy == recurrent_layer_destroy ? ed_layer_state(layer) : NULL;
}

static void *made_again(ed_layer *layer, const char *name, bool turned);

/* Layers in the options, which have a parent, are made anew. */
static bool remake_layers(const ed_field *fields, void *options)
{
    for (const ed_field *f = fields; f->name; f++) {
        void *at = ED_FIELD_AT(f, options);
        if (f->type == ED_FIELD_LAYER) {
            void **one = at;
            if (*one && !(*one = made_again(*one, ed_layer_name(*one), false))) return false;
        } else if (f->type == ED_FIELD_LAYERS) {
            ed_objects *list = at;
            void **all = ed_scope_alloc((size_t)list->count * sizeof *all + 1);
            for (int64_t i = 0; all && i < list->count; i++)
                if (!(all[i] = made_again(list->values[i], NULL, false))) return false;
            if (!all) return false;
            list->values = all;
        }
    }
    return true;
}

/* A new layer with the same options but the name; backwards if `turned`. */
static void *made_again(ed_layer *layer, const char *name, bool turned)
{
    const ed_kind *kind = &layer->class->kind;
    if (!kind->fields)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "a layer of this kind can't be made a second time: give bidirectional "
                          "a layer for each direction (backward_layer)");
    void *options = ed_scope_alloc(kind->options_size);
    if (!options) return NULL;
    memcpy(options, ed_options_of(layer), kind->options_size);
    const ed_field *named = schema_find(kind->fields, "name");
    if (name && named) *(const char **)ED_FIELD_AT(named, options) = name;
    if (turned) {
        bool *backwards = ED_FIELD_AT(schema_find(kind->fields, "go_backwards"), options);
        *backwards = !*backwards;
    }
    return remake_layers(kind->fields, options) ? ed_make(kind, options) : NULL;
}

static bool check_pair(const ed_layer *layer, const recurrent *f, const recurrent *b)
{
    const char *differs = f->return_sequences != b->return_sequences ? "return_sequences"
                          : f->return_state != b->return_state       ? "return_state"
                          : f->stateful != b->stateful               ? "stateful"
                                                                     : NULL;
    if (differs)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "layer and backward_layer must have the same %s", differs);
    if (f->go_backwards == b->go_backwards)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "backward_layer must have go_backwards = %s, unlike layer",
                          f->go_backwards ? "false" : "true");
    return true;
}

static bool bidirectional_init(ed_layer *layer)
{
    const ed_layer_bidirectional_options *o = layer_options(layer);
    both *b = ed_layer_state(layer);
    if (!recurrent_of(o->layer))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "layer must be a recurrent layer (simple_rnn, lstm, gru, rnn, "
                          "conv_lstm), got %s",
                          o->layer ? o->layer->class->kind.name : "NULL");
    if (o->backward_layer && !recurrent_of(o->backward_layer))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "backward_layer must be a recurrent layer, got %s",
                          o->backward_layer->class->kind.name);
    b->forward = o->backward_layer ? o->layer : made_again(o->layer, "forward_layer", false);
    b->backward = o->backward_layer ? o->backward_layer
                  : b->forward      ? made_again(o->layer, "backward_layer", true)
                                    : NULL;
    if (!b->forward || !b->backward) return false;
    recurrent *f = recurrent_of(b->forward), *r = recurrent_of(b->backward);
    if (!check_pair(layer, f, r)) return false;
    f->zero_output_for_mask = r->zero_output_for_mask = f->return_sequences;
    return ed_layer_add_child(layer, b->forward) && ed_layer_add_child(layer, b->backward);
}

/* Keras' names of the children. */
static void bidirectional_track(ed_layer *layer, ed_tracker *t)
{
    static const char *const names[] = {"forward_layer", "backward_layer"};
    for (int i = 0; i < layer->n_children; i++)
        if (strcmp(layer->children[i]->name, names[i]) != 0)
            graph_name(t, t->self, GRAPH_ALIAS, names[i], graph_object(t, layer->children[i]));
}

/* Calls one of the two with its half of the states. */
static bool call_half(ed_layer *child, const ed_layer_call *whole, bool second, ed_layer_call *call)
{
    const int n = (whole->n_inputs - 1) / 2;
    ed_tensor **inputs = ed_scope_alloc(2 * (size_t)(1 + n) * sizeof *inputs);
    if (!inputs) return false;
    ed_tensor **masks = inputs + 1 + n;
    memset(masks, 0, (size_t)(1 + n) * sizeof *masks);
    inputs[0] = whole->inputs[0];
    masks[0] = whole->masks[0];
    memcpy(inputs + 1, whole->inputs + 1 + (second ? n : 0), (size_t)n * sizeof *inputs);
    *call = (ed_layer_call){
        .n_inputs = 1 + n, .inputs = inputs, .masks = masks, .training = whole->training};
    return layer_call(child, call);
}

static ed_tensor *merged(const char *mode, ed_tensor *a, ed_tensor *b)
{
    if (!strcmp(mode, "concat")) return ed_concat(ed_list_of(a, b), .axis = -1);
    if (!strcmp(mode, "sum")) return ed_add(a, b);
    if (!strcmp(mode, "mul")) return ed_mul(a, b);
    return ed_mul(ed_add(a, b), 0.5);
}

static bool return_states(ed_layer_call *call, const ed_layer_call *half)
{
    bool ok = true;
    for (int i = 1; ok && i < half->n_outputs; i++) ok = ed_layer_return(call, half->outputs[i]);
    return ok;
}

static bool merge_halves(ed_layer *layer, ed_layer_call *call, const ed_layer_call *f,
                         const ed_layer_call *b)
{
    const ed_layer_bidirectional_options *o = layer_options(layer);
    const bool sequences = recurrent_of(((both *)ed_layer_state(layer))->forward)->return_sequences;
    ed_tensor *y = f->outputs[0], *turned = b->outputs[0], *mask = call->masks[0];
    const bool apart = !strcmp(o->merge_mode, "none");
    if (sequences && !(turned = ed_reverse(turned, ED_INTS(1)))) return false;
    if (apart ? !ed_layer_return(call, y) || !ed_layer_return(call, turned)
              : !ed_layer_return(call, merged(o->merge_mode, y, turned)))
        return false;
    if (sequences && mask && !ed_layer_return_mask(call, 0, mask)) return false;
    if (sequences && mask && apart && !ed_layer_return_mask(call, 1, mask)) return false;
    return return_states(call, f) && return_states(call, b);
}

static bool bidirectional_forward(ed_layer *layer, ed_layer_call *call)
{
    const both *pair = ed_layer_state(layer);
    if ((call->n_inputs - 1) % 2)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "got %d initial states; expected as many forwards as backwards",
                          call->n_inputs - 1);
    ed_layer_call f = {0}, b = {0};
    const bool ok = call_half(pair->forward, call, false, &f) &&
                    call_half(pair->backward, call, true, &b) && merge_halves(layer, call, &f, &b);
    layer_call_end(&f);
    layer_call_end(&b);
    return ok;
}

LAYER(bidirectional, BIDIRECTIONAL, 1, "a recurrent layer forwards and one backwards",
      .state_size = sizeof(both), .max_inputs = -1, .init = bidirectional_init,
      .forward = bidirectional_forward, .track = bidirectional_track)

/* ---- time_distributed ------------------------------------------------------------------------ */

static bool time_distributed_init(ed_layer *layer)
{
    const ed_layer_time_distributed_options *o = layer_options(layer);
    if (!o->layer) return layer_fail(layer, ED_INVALID_ARGUMENT, "layer is NULL; it is required");
    return ed_layer_add_child(layer, o->layer);
}

static bool check_steps(const ed_layer *layer, const ed_tensor *x, const ed_tensor *mask)
{
    if (x->rank < 2 || x->shape[1] == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input must be [batch, time, ...] with at least one step, got %s",
                          text_of_tensor(x).s);
    if (mask && (mask->rank < 2 || mask->shape[0] != x->shape[0] || mask->shape[1] != x->shape[1]))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the mask must be [%lld, %lld], got %s",
                          (long long)x->shape[0], (long long)x->shape[1], text_of_tensor(mask).s);
    return true;
}

static ed_tensor *one_step(ed_layer *child, ed_tensor *x, ed_tensor *mask, bool training)
{
    ed_layer_call call = {.n_inputs = 1, .inputs = &x, .masks = &mask, .training = training};
    ed_tensor *y = NULL;
    if (layer_call(child, &call)) {
        if (call.n_outputs == 1)
            y = call.outputs[0];
        else
            layer_fail(child, ED_INVALID_ARGUMENT, "the layer has %d outputs, expected 1",
                       call.n_outputs);
    }
    layer_call_end(&call);
    return y;
}

static bool time_distributed_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0], *mask = call->masks[0];
    if (!check_steps(layer, x, mask)) return false;
    const int64_t time = x->shape[1];
    ed_list *steps = ed_unstack(x, .axis = 1), *masks = mask ? ed_unstack(mask, .axis = 1) : NULL;
    ed_tensor **all = ed_scope_alloc((size_t)time * sizeof *all);
    if (!steps || !all || (mask && !masks)) return false;
    for (int64_t t = 0; t < time; t++)
        if (!(all[t] = one_step(layer->children[0], steps->items[t], masks ? masks->items[t] : NULL,
                                call->training)))
            return false;
    return ed_layer_return(call, ed_stack(ed_list_make(all, time), .axis = 1));
}

LAYER(time_distributed, TIME_DISTRIBUTED, 1, "calls a layer for each step",
      .init = time_distributed_init, .forward = time_distributed_forward,
      .track = layer_track_inner, .passes_masks = true)
