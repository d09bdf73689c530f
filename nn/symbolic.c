#include "nn/functional.h"
#include <string.h>

/* Symbols as inputs of models, and what layers make of them. */

/* ---- Inputs ---------------------------------------------------------------------------------- */

static bool check_input(ed_ints shape)
{
    if (!shape.values) return ed_fail(ED_INVALID_ARGUMENT, "input: shape is NULL");
    if (shape.count < 0 || shape.count >= ED_MAX_RANK)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "input: a shape without the batch has 0 to %d sizes, got %lld",
                       ED_MAX_RANK - 1, (long long)shape.count);
    for (int64_t i = 0; i < shape.count; i++)
        if (shape.values[i] < -1)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "input: size %lld of the shape is %lld; -1 is one that is open",
                           text_nth(i), (long long)shape.values[i]);
    return true;
}

ed_tensor *functional_input(ed_ints shape, ed_dtype dtype, const char *name)
{
    ED_SCOPE;
    symbol_node *node = scope_give(symbol_node_new(0, NULL, NULL, 1));
    if (!node || (name && !(node->name = text_copy(name)))) return NULL;
    symbol_form *form = node->forms;
    *form = (symbol_form){.dtype = dtype, .rank = (int)shape.count};
    for (int64_t i = 0; i < shape.count; i++) {
        const int64_t size = shape.values[i];
        form->shapes[0][i] = size != -1 ? size : i ? SYMBOL_SIZE : SYMBOL_BATCH;
        form->shapes[1][i] = size != -1 ? size : i ? SYMBOL_OTHER_SIZE : SYMBOL_OTHER_BATCH;
    }
    ed_tensor *input = scope_give(symbol_new(node, 0));
    return input ? ed_keep(input) : NULL;
}

ed_tensor *ed_input_with(ed_ints shape, const ed_input_options *options)
{
    if (!check_input(shape)) return NULL;
    if (!(options = CHECKED_OPTIONS("input", ED_INPUT_OPTIONS, options))) return NULL;
    if (options->name && (!*options->name || strchr(options->name, '/')))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "input: invalid name '%s': it must not be empty or contain '/'",
                       options->name);
    int64_t sizes[ED_MAX_RANK] = {options->batch_size ? options->batch_size : -1};
    memcpy(sizes + 1, shape.values, (size_t)shape.count * sizeof *sizes);
    return functional_input((ed_ints){sizes, shape.count + 1}, options->dtype, options->name);
}

bool ed_is_symbolic(const ed_tensor *tensor)
{
    return tensor && tensor_is_symbol(tensor);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* The mask that comes with a symbol: a new symbol for the scope; NULL if there is none. */
static ed_tensor *mask_of(const ed_tensor *t)
{
    if (!tensor_is_symbol(t)) return NULL;
    const symbol *s = (const symbol *)t;
    const int i = s->node->n_outputs + s->index;
    return s->index < s->node->n_outputs && s->node->forms[i].dtype
               ? scope_give(symbol_new(s->node, i))
               : NULL;
}

/* A call with symbols, and those with the examples, which are to be ended by layer_call_end. */
typedef struct layer_calls {
    ed_layer *layer;
    const ed_layer_call *call;
    ed_tensor **masks;
    ed_layer_call sub[2];
} layer_calls;

/* Calls the layer with example k, without .training: it draws nothing and keeps no statistics. */
static bool call_example(void *user, int k)
{
    layer_calls *l = user;
    const size_t n = (size_t)l->call->n_inputs;
    ed_tensor **examples = ed_scope_alloc(2 * n * sizeof *examples);
    if (!examples) return false;
    for (size_t i = 0; i < n; i++) {
        examples[i] = symbol_example(l->call->inputs[i], k);
        examples[n + i] = symbol_example(l->masks[i], k);
    }
    l->sub[k] = (ed_layer_call){.n_inputs = (int)n, .inputs = examples, .masks = examples + n};
    return layer_call(l->layer, &l->sub[k]);
}

static bool note_outputs(symbol_node *node, const ed_layer_call sub[2])
{
    if (sub[0].n_outputs != sub[1].n_outputs)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "forward: the number of outputs depends on a size that is open");
    const int n = sub[0].n_outputs;
    for (int i = 0; i < n; i++)
        if (!symbol_note(node, i, sub[0].outputs[i], sub[1].outputs[i]) ||
            !symbol_note(node, n + i, sub[0].output_masks[i], sub[1].output_masks[i]))
            return false;
    return true;
}

static bool return_symbols(ed_layer_call *call, symbol_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const int mask = node->n_outputs + i;
        if (!ed_layer_return(call, scope_give(symbol_new(node, i)))) return false;
        if (node->forms[mask].dtype &&
            !ed_layer_return_mask(call, i, scope_give(symbol_new(node, mask))))
            return false;
    }
    return true;
}

static bool call_examples(layer_calls *l, ed_layer_call *call)
{
    const size_t n = (size_t)call->n_inputs;
    if (!(l->masks = ed_scope_alloc(n * sizeof *l->masks))) return false;
    for (size_t i = 0; i < n; i++)
        l->masks[i] = call->masks[i] ? call->masks[i] : mask_of(call->inputs[i]);
    if (!symbol_try(call_example, l)) return false;
    symbol_node *node =
        scope_give(symbol_node_new(call->n_inputs, call->inputs, call->masks, l->sub[0].n_outputs));
    if (!node) return false;
    node->layer = ed_retain(l->layer);
    node->training = call->training;
    return note_outputs(node, l->sub) && return_symbols(call, node);
}

bool layer_call_symbols(ed_layer *layer, ed_layer_call *call)
{
    ED_SCOPE;
    layer_calls l = {.layer = layer, .call = call};
    const bool ok = call_examples(&l, call);
    for (int k = 0; k < 2; k++) layer_call_end(&l.sub[k]);
    for (int i = 0; ok && i < call->n_outputs; i++) {
        ed_keep(call->outputs[i]);
        if (call->output_masks[i]) ed_keep(call->output_masks[i]);
    }
    return ok;
}
