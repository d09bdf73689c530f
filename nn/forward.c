#include "nn/functional.h"
#include "ops/ops.h"
#include <string.h>

/* ---- Forward --------------------------------------------------------------------------------- */

/*
 * All that a failed build added is removed, so the next forward builds from the start. A build that
 * continues after an error and returns true has failed too.
 */
static bool build(ed_layer *layer, const ed_layer_call *call)
{
    int64_t n_children = layer->n_children, n_weights = layer->n_weights;
    const error_before before = error_begin();
    bool ok = layer_rename_weights(layer) &&
              (!layer->class->build || SCOPE_GUARDED(layer->class->build(layer, call)));
    if (ok && !error_since(before)) return layer->built = true;
    layer_unmade(layer, n_children, n_weights);
    layer_truncate(layer, n_children, n_weights);
    if (error_is_missing(before))
        layer_fail(layer, ED_FAILED_PRECONDITION, "build failed without an error");
    return false;
}

static void note_input(ed_layer *layer, const ed_tensor *x)
{
    layer->input_dtype = x->dtype;
    layer->input_rank = x->rank;
    memcpy(layer->input_shape, x->shape, sizeof x->shape);
}

static void note_output(ed_layer *layer, const ed_tensor *y)
{
    layer->output_dtype = y->dtype;
    layer->output_rank = y->rank;
    memcpy(layer->output_shape, y->shape, sizeof y->shape);
}

/* In the second of two examples of what a layer may get, sizes differ that are open. */
static void note_open(int rank, int64_t *shape, const ed_tensor *t)
{
    for (int d = 0; d < rank && d < t->rank; d++)
        if (shape[d] != t->shape[d]) shape[d] = -1;
}

/*
 * Appends the layer's path to an error of an op inside. Only the innermost layer does: messages
 * that already have a path stay unchanged.
 */
static void blame(const ed_layer *layer, error_before before)
{
    if (error_is_missing(before))
        layer_fail(layer, ED_FAILED_PRECONDITION, "forward failed without an error");
    if (!error_since(before)) return;
    const char *message = error_sentence();
    char *path = layer_path(layer, NULL);
    if (path && strncmp(message, path, strlen(path)) != 0 && !strstr(message, " (in the layer "))
        error_append(" (in the layer %s)", path);
    memory_free(path);
}

static bool check_inputs(const ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_class *class = layer->class;
    const int least = class->min_inputs ? class->min_inputs : 1;
    const int most = class->max_inputs ? class->max_inputs : least;
    if (call->n_inputs < least || (most > 0 && call->n_inputs > most))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "got %d inputs, expected %s%d",
                          call->n_inputs, most < 0 ? "at least " : "",
                          call->n_inputs < least ? least : most);
    for (int i = 0; i < call->n_inputs; i++)
        if (!call->inputs[i])
            return layer_fail(layer, ED_INVALID_ARGUMENT, "input %lld is NULL", text_nth(i));
    return true;
}

static bool make_room(ed_layer_call *call)
{
    if (!call->outputs) {
        call->outputs = call->some_;
        call->output_masks = call->some_ + 1;
        call->capacity_ = 1;
    }
    if (call->n_outputs < call->capacity_) return true;
    const size_t n = (size_t)call->n_outputs, capacity = 4 * n;
    ed_tensor **grown = memory_alloc(2 * capacity * sizeof *grown);
    if (!grown) return false;
    memcpy(grown, call->outputs, n * sizeof *grown);
    memcpy(grown + capacity, call->output_masks, n * sizeof *grown);
    layer_call_end(call);
    call->outputs = grown;
    call->output_masks = grown + capacity;
    call->capacity_ = (int)capacity;
    return true;
}

bool ed_layer_return(ed_layer_call *call, ed_tensor *y)
{
    if (!call) return ed_fail(ED_INVALID_ARGUMENT, "layer_return: call is NULL");
    if (!y || !make_room(call)) return false;
    call->outputs[call->n_outputs] = y;
    call->output_masks[call->n_outputs++] = NULL;
    return true;
}

bool ed_layer_return_mask(ed_layer_call *call, int output, ed_tensor *mask)
{
    if (!call || !mask)
        return ed_fail(ED_INVALID_ARGUMENT, "layer_return_mask: %s is NULL",
                       call ? "mask" : "call");
    if (output < 0 || output >= call->n_outputs)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "layer_return_mask: output %d is out of bounds: there are %d", output,
                       call->n_outputs);
    call->output_masks[output] = mask;
    return true;
}

void layer_call_end(ed_layer_call *call)
{
    if (call->outputs && call->outputs != call->some_) memory_free(call->outputs);
    call->outputs = NULL;
}

/* Float inputs of another dtype than the layer's are converted. */
static bool convert_inputs(const ed_layer *layer, ed_layer_call *call)
{
    ed_tensor **converted = NULL;
    for (int i = 0; i < call->n_inputs; i++) {
        ed_tensor *x = call->inputs[i];
        if (!ed_dtype_is_float(x->dtype) || x->dtype == layer->dtype) continue;
        if (!converted) {
            converted = ed_scope_alloc((size_t)call->n_inputs * sizeof *converted);
            if (!converted) return false;
            memcpy(converted, call->inputs, (size_t)call->n_inputs * sizeof *converted);
            call->inputs = converted;
        }
        if (!(converted[i] = ed_cast(x, layer->dtype))) return false;
    }
    return true;
}

/* The penalty on the outputs, by sample: what Keras calls activity_regularizer. */
static bool add_activity(ed_layer *layer, const ed_layer_call *call)
{
    for (int i = 0; i < call->n_outputs; i++) {
        ed_tensor *y = call->outputs[i];
        if (!ed_dtype_is_float(y->dtype)) continue;
        ed_tensor *penalty = ed_regularize(layer->activity_regularizer, y);
        if (y->rank && y->shape[0] > 1) penalty = ed_div(penalty, (double)y->shape[0]);
        if (!ed_layer_add_loss(layer, penalty)) return false;
    }
    return true;
}

static bool build_and_forward(ed_layer *layer, ed_layer_call *call)
{
    if (!check_inputs(layer, call)) return false;
    if (layer->dtype && !convert_inputs(layer, call)) return false;
    if (!layer->built && !build(layer, call)) return false;
    if (layer->has_losses && !layer->parent) layer_clear_losses(layer);
    if (!SCOPE_GUARDED(layer->class->forward(layer, call))) return false;
    if (layer->activity_regularizer && layer_losses_wanted(call) && !add_activity(layer, call))
        return false;
    if (!call->n_outputs)
        return layer_fail(layer, ED_FAILED_PRECONDITION, "forward returned no output");
    if (layer->class->passes_masks && !call->output_masks[0])
        call->output_masks[0] = call->masks[0];
    return true;
}

bool layer_call(ed_layer *layer, ed_layer_call *call)
{
    if (!layer) return ed_fail(ED_INVALID_ARGUMENT, "forward: layer is NULL");
    if (__builtin_expect(symbol_among(call->inputs, call->n_inputs), 0))
        return layer_call_symbols(layer, call);
    ED_SCOPE;
    const error_before before = error_begin();
    if (!build_and_forward(layer, call) || error_since(before)) {
        blame(layer, before);
        return false;
    }
    if (!layer->output_dtype) {
        note_input(layer, call->inputs[0]);
        note_output(layer, call->outputs[0]);
    } else if (__builtin_expect(call->outputs[0]->flags & TENSOR_HOLLOW, 0)) {
        note_open(layer->input_rank, layer->input_shape, call->inputs[0]);
        note_open(layer->output_rank, layer->output_shape, call->outputs[0]);
    }
    __atomic_store_n(&layer->output_id, call->outputs[0]->id, __ATOMIC_RELAXED);
    for (int i = 0; i < call->n_outputs; i++) {
        ed_keep(call->outputs[i]);
        if (call->output_masks[i]) ed_keep(call->output_masks[i]);
    }
    return true;
}

/* ---- Building without data ------------------------------------------------------------------- */

/* A call with a symbol runs no kernel, but makes the weights. */
bool ed_layer_build_with(ed_layer *layer, ed_ints shape, const ed_build_options *options)
{
    if (NULL_GIVEN("layer_build", layer)) return false;
    if (!shape.values) return ed_fail(ED_INVALID_ARGUMENT, "layer_build: shape is NULL");
    if (!(options = CHECKED_OPTIONS("layer_build", ED_BUILD_OPTIONS, options))) return false;
    if (shape.count < 0 || shape.count > ED_MAX_RANK)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "a shape has 0 to %d sizes, got %lld",
                          ED_MAX_RANK, (long long)shape.count);
    ED_SCOPE;
    ed_tensor *x = functional_input(shape, options->dtype, NULL), *mask = NULL;
    if (!x) return false;
    ed_layer_call call = {.n_inputs = 1, .inputs = &x, .masks = &mask};
    const bool ok = layer_call(layer, &call);
    layer_call_end(&call);
    return ok;
}

/* ---- Forward, as users call it --------------------------------------------------------------- */

static bool give_masks(const ed_layer_call *call, const ed_forward_options *options)
{
    if (!options->output_masks) return true;
    ed_list *masks = list_new(call->n_outputs);
    for (int i = 0; masks && i < call->n_outputs; i++)
        masks->items[i] = ed_retain(call->output_masks[i]);
    return (*options->output_masks = scope_give(masks)) != NULL;
}

/* layer_call, in which layers add to .losses, or in a call without training to nothing; a call
 * inside another goes as that does. */
static bool call_by_options(ed_layer *layer, ed_layer_call *call, const ed_forward_options *options)
{
    thread_state *self = thread_self();
    scope_see_left(self);
    if (!options->losses && (call->training || self->losses)) return layer_call(layer, call);
    layer_losses *outer, *losses = layer_losses_begin(!options->losses, &outer);
    if (!losses) return false;
    bool ok = layer_call(layer, call);
    if (ok && options->losses)
        ok = (*options->losses = ed_list_make(losses->items, losses->count)) != NULL;
    layer_losses_end(losses, outer);
    return ok;
}

static bool one_output(const ed_layer *layer, const ed_layer_call *call)
{
    if (call->n_outputs == 1) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the layer has %d outputs, expected 1; ed_forward of a list returns all",
                      call->n_outputs);
}

/* What a call that failed leaves. */
static void no_results(const ed_forward_options *options)
{
    if (!options) return;
    if (options->output_masks) *options->output_masks = NULL;
    if (options->losses) *options->losses = NULL;
}

static bool check_masks(const ed_layer *layer, const ed_list *masks, int64_t n_inputs)
{
    if (!layer || !masks || masks->size == n_inputs) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "got %lld masks for %lld inputs; one for each is expected",
                      (long long)masks->size, (long long)n_inputs);
}

ed_tensor *ed_forward_with(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    if (!options) options = &none;
    if (!check_masks(layer, options->masks, 1)) return no_results(options), NULL;
    ed_tensor *mask = options->masks ? options->masks->items[0] : options->mask;
    ed_layer_call call = {
        .n_inputs = 1, .inputs = &x, .masks = &mask, .training = options->training};
    ed_tensor *y = NULL;
    if (call_by_options(layer, &call, options) && one_output(layer, &call) &&
        give_masks(&call, options))
        y = call.outputs[0];
    if (!y) no_results(options);
    layer_call_end(&call);
    return y;
}

/* The masks of n inputs: the list's, or the one mask for the first; in `some` or allocated. */
static ed_tensor **gather_masks(const ed_forward_options *options, int n, ed_tensor **some, int few)
{
    ed_tensor **masks = n <= few ? some : memory_alloc((size_t)n * sizeof *masks);
    for (int i = 0; masks && i < n; i++)
        masks[i] = options->masks ? options->masks->items[i] : i ? NULL : options->mask;
    return masks;
}

static bool check_forward(const ed_layer *layer, const ed_list *inputs,
                          const ed_forward_options *options)
{
    if (!layer || !inputs)
        return ed_fail(ED_INVALID_ARGUMENT, "forward: %s is NULL", layer ? "inputs" : "layer");
    if (inputs->size > INT32_MAX)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "%lld inputs are too many",
                          (long long)inputs->size);
    return check_masks(layer, options->masks, inputs->size);
}

/* Calls the layer with the inputs of a list; the caller then calls layer_call_end. */
static bool call_with_list(ed_layer *layer, const ed_list *inputs,
                           const ed_forward_options *options, ed_layer_call *call)
{
    if (!check_forward(layer, inputs, options)) return false;
    enum { FEW = 8 };
    const int n = (int)inputs->size;
    ed_tensor *some[FEW], **masks = gather_masks(options, n, some, FEW);
    if (!masks) return false;
    *call = (ed_layer_call){
        .n_inputs = n, .inputs = inputs->items, .masks = masks, .training = options->training};
    const bool ok = call_by_options(layer, call, options) && give_masks(call, options);
    if (masks != some) memory_free(masks);
    return ok;
}

ed_list *ed_forward_list(ed_layer *layer, ed_list *inputs, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    ed_layer_call call = {0};
    ed_list *outputs = NULL;
    if (call_with_list(layer, inputs, options ? options : &none, &call))
        outputs = ed_list_make(call.outputs, call.n_outputs);
    if (!outputs) no_results(options);
    layer_call_end(&call);
    return outputs;
}

ed_tensor *ed_forward_one_with(ed_layer *layer, ed_list *inputs, const ed_forward_options *options)
{
    const ed_forward_options none = {0};
    ed_layer_call call = {0};
    ed_tensor *y = NULL;
    if (call_with_list(layer, inputs, options ? options : &none, &call) && one_output(layer, &call))
        y = call.outputs[0];
    if (!y) no_results(options);
    layer_call_end(&call);
    return y;
}
