#include "nn/layers/cells.h"
#include "track/graph.h"
#include <string.h>

/*
 * Layers that walk over the steps of a sequence: one op for the whole of it where there is one,
 * else a loop that calls the cell. What is between two steps belongs to the layer's scope: a tape
 * holds it anyway, and without a tape it is small.
 */

typedef struct walk {
    ed_tensor *x, *mask; /* [batch, time, ...], [batch, time] or NULL */
    bool training;
    int n;                          /* of states; 0: the cell begins by itself */
    ed_tensor *states[MOST_STATES]; /* to begin with; then the last ones */
    ed_tensor *all, *last;          /* the outputs of all steps, if wanted; of the last one */
} walk;

/* ---- Step by step ---------------------------------------------------------------------------- */

/* mask [batch] with as many axes as y. */
static ed_tensor *mask_for(ed_tensor *mask, const ed_tensor *y)
{
    int64_t shape[ED_MAX_RANK] = {mask->shape[0]};
    for (int i = 1; i < y->rank; i++) shape[i] = 1;
    return ed_reshape(mask, ((ed_ints){shape, y->rank}));
}

/* `now` where the mask is true, `before` elsewhere; zeros if there is none. */
static ed_tensor *chosen(ed_tensor *mask, ed_tensor *now, ed_tensor *before)
{
    mask = mask_for(mask, now);
    return before ? ed_where(mask, now, before) : ed_where(mask, now, 0);
}

static bool take_step(const recurrent *r, walk *w, const ed_layer_call *call, ed_tensor *mask,
                      bool first)
{
    const int n = call->n_outputs - 1;
    if (n < 1 || n > MOST_STATES || (w->n && n != w->n))
        return layer_fail(r->cell, ED_INVALID_ARGUMENT,
                          "a cell returns its output and %s new states, got %d outputs",
                          w->n ? "as many" : "1 to 32", n + 1);
    for (int i = 0; i < n; i++) {
        ed_tensor *old = first && !w->n ? NULL : w->states[i], *now = call->outputs[1 + i];
        w->states[i] = mask ? chosen(mask, now, old) : now;
        if (!w->states[i]) return false;
    }
    w->n = n;
    ed_tensor *y = call->outputs[0];
    w->last = mask ? chosen(mask, y, r->zero_output_for_mask ? NULL : w->last) : y;
    return w->last;
}

/* Calls the cell with step i. */
static bool walk_step(const recurrent *r, walk *w, ed_tensor *x, ed_tensor *mask, bool first)
{
    ed_tensor *inputs[1 + MOST_STATES] = {x}, *masks[1 + MOST_STATES] = {NULL};
    memcpy(inputs + 1, w->states, (size_t)w->n * sizeof *inputs);
    ed_layer_call call = {
        .n_inputs = 1 + w->n, .inputs = inputs, .masks = masks, .training = w->training};
    const bool ok = layer_call(r->cell, &call) && take_step(r, w, &call, mask, first);
    layer_call_end(&call);
    return ok;
}

static bool walk_steps(const recurrent *r, walk *w)
{
    const int64_t time = w->x->shape[1];
    ed_list *steps = ed_unstack(w->x, .axis = 1);
    ed_list *masks = w->mask ? ed_unstack(w->mask, .axis = 1) : NULL;
    ed_tensor **all = ed_scope_alloc((size_t)time * sizeof *all);
    if (!steps || !all || (w->mask && !masks)) return false;
    for (int64_t t = 0; t < time; t++) {
        const int64_t at = r->go_backwards ? time - 1 - t : t;
        if (!walk_step(r, w, steps->items[at], masks ? masks->items[at] : NULL, t == 0))
            return false;
        all[t] = w->last;
    }
    return !r->return_sequences || (w->all = ed_stack(ed_list_make(all, time), .axis = 1));
}

/* ---- As one op ------------------------------------------------------------------------------- */

static bool has_op(const cell *c, const walk *w)
{
    return c && c->type != CELL_CONV_LSTM && c->activation == ed_tanh &&
           (c->type == CELL_SIMPLE || c->gate == ed_sigmoid) &&
           !(w->training && c->recurrent_dropout > 0);
}

static bool walk_op(recurrent *r, cell *c, walk *w)
{
    const bool back = r->go_backwards;
    ed_tensor *x = w->x, *k = c->kernel, *rk = c->recurrent_kernel, *b = c->bias, *y;
    ed_tensor *h = w->n ? w->states[0] : NULL;
    if (w->training && c->dropout > 0)
        x = ed_mul(x, ed_dropout(ed_ones(ED_SHAPE(x->shape[0], 1, x->shape[2]), .dtype = x->dtype),
                                 c->dropout, .generator = c->generator));
    if (c->type == CELL_LSTM)
        y = ed_lstm(x, k, rk, b, h, w->n ? w->states[1] : NULL, w->mask, &w->states[0],
                    &w->states[1], .go_backwards = back);
    else if (c->type == CELL_GRU)
        y = ed_gru(x, k, rk, b, h, w->mask, &w->states[0], .go_backwards = back,
                   .reset_after = c->reset_after);
    else
        y = ed_simple_rnn(x, k, rk, b, h, w->mask, &w->states[0], .go_backwards = back);
    if (!y) return false;
    w->n = c->type == CELL_LSTM ? 2 : 1;
    if (w->mask && r->zero_output_for_mask) {
        ed_tensor *mask = back ? ed_reverse(w->mask, ED_INTS(1)) : w->mask;
        y = ed_where(ed_expand_dims(mask, -1), y, 0);
    }
    w->all = y;
    if (!r->return_sequences)
        w->last = !y        ? NULL
                  : w->mask ? ed_squeeze(ed_slice(y, .begin = ED_INTS(0, -1)), .axis = ED_AXES(1))
                            : w->states[0];
    return r->return_sequences ? y != NULL : w->last != NULL;
}

/* ---- The layer ------------------------------------------------------------------------------- */

static bool check_sequence(const ed_layer *layer, const recurrent *r, const ed_layer_call *call)
{
    const ed_tensor *x = call->inputs[0], *mask = call->masks[0];
    if (!layer_accepts(layer, x, r->rank, r->more)) return false;
    if (x->shape[1] == 0)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input must have at least one step, [batch, time, ...], got %s",
                          text_of_tensor(x).s);
    if (mask && (mask->dtype != ED_BOOL || mask->rank != 2 || mask->shape[0] != x->shape[0] ||
                 mask->shape[1] != x->shape[1]))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the mask must be bool [%lld, %lld], got %s",
                          (long long)x->shape[0], (long long)x->shape[1], text_of_tensor(mask).s);
    return true;
}

/* Builds the cell by the shape of a step, so that its weights are there. */
bool recurrent_layer_build(ed_layer *layer, const ed_layer_call *call)
{
    recurrent *r = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    if (!check_sequence(layer, r, call)) return false;
    if (!cell_of(r->cell) || r->cell->built) return true; /* others by their first step */
    int64_t shape[ED_MAX_RANK] = {x->shape[0]};
    for (int i = 2; i < x->rank; i++) shape[i - 1] = x->shape[i];
    return ed_layer_build(r->cell, ((ed_ints){shape, x->rank - 1}), .dtype = x->dtype);
}

static bool held_states(const ed_layer *layer, const recurrent *r, walk *w)
{
    if (r->held[0]->shape[0] != w->x->shape[0])
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the layer is stateful, and its states are of a batch of %lld, the input "
                          "is %s: ed_layer_reset_states begins anew",
                          (long long)r->held[0]->shape[0], text_of_tensor(w->x).s);
    w->n = r->n_held;
    memcpy(w->states, r->held, (size_t)w->n * sizeof *w->states);
    return true;
}

static bool first_states(ed_layer *layer, recurrent *r, const ed_layer_call *call, walk *w)
{
    const int given = call->n_inputs - 1, expected = cell_count_states(r->cell);
    const bool known = cell_of(r->cell) || r->cell->class->max_inputs > 0;
    if (given > MOST_STATES || (given && known && given != expected))
        return layer_fail(layer, ED_INVALID_ARGUMENT, "got %d initial states, expected %d or none",
                          given, expected);
    w->n = given;
    memcpy(w->states, call->inputs + 1, (size_t)given * sizeof *w->states);
    if (given) return true;
    if (r->stateful && r->n_held) return held_states(layer, r, w);
    w->n = (int)r->state_size.count;
    for (int i = 0; i < w->n; i++)
        if (!(w->states[i] = ed_zeros(ED_SHAPE(w->x->shape[0], r->state_size.values[i]),
                                      .dtype = w->x->dtype)))
            return false;
    return true;
}

static void forget(recurrent *r)
{
    for (int i = 0; i < r->n_held; i++) ed_release(r->held[i]);
    r->n_held = 0;
}

/* The next call begins with these states; gradients don't reach through them. */
static bool hold(recurrent *r, const walk *w)
{
    ed_tensor *states[MOST_STATES];
    for (int i = 0; i < w->n; i++)
        if (!(states[i] = ed_stop_gradient(w->states[i]))) return false;
    forget(r);
    for (int i = 0; i < w->n; i++) r->held[i] = ed_retain(states[i]);
    r->n_held = w->n;
    return true;
}

static bool walk_through(ed_layer *layer, recurrent *r, const ed_layer_call *call, walk *w)
{
    if (!check_sequence(layer, r, call) || !first_states(layer, r, call, w)) return false;
    cell *c = cell_of(r->cell);
    if (has_op(c, w)) {
        if (!layer_same_last(layer, w->x, c->kernel->shape[0])) return false;
        return walk_op(r, c, w);
    }
    if (w->training) cell_walk_begin(r->cell);
    const bool ok = walk_steps(r, w);
    if (w->training) cell_walk_end(r->cell);
    return ok;
}

bool recurrent_layer_forward(ed_layer *layer, ed_layer_call *call)
{
    recurrent *r = ed_layer_state(layer);
    walk w = {.x = call->inputs[0], .mask = call->masks[0], .training = call->training};
    if (!walk_through(layer, r, call, &w)) return false;
    bool ok = ed_layer_return(call, r->return_sequences ? w.all : w.last);
    if (ok && r->return_sequences && w.mask) ok = ed_layer_return_mask(call, 0, w.mask);
    for (int i = 0; ok && r->return_state && i < w.n; i++) ok = ed_layer_return(call, w.states[i]);
    const bool hollow = w.x->flags & TENSOR_HOLLOW;
    return ok && (!r->stateful || hollow || hold(r, &w));
}

void recurrent_layer_destroy(ed_layer *layer)
{
    forget(ed_layer_state(layer));
}

static void reset_below(ed_layer *layer)
{
    if (layer->class->destroy == recurrent_layer_destroy) forget(ed_layer_state(layer));
    for (int64_t i = 0; i < layer->n_children; i++) reset_below(layer->children[i]);
}

bool ed_layer_reset_states(ed_layer *layer)
{
    if (NULL_GIVEN("layer_reset_states", layer)) return false;
    reset_below(layer);
    return true;
}

/* ---- simple_rnn, lstm, gru: a cell of their own ---------------------------------------------- */

static bool simple_rnn_init(ed_layer *layer)
{
    const ed_layer_simple_rnn_options *o = layer_options(layer);
    recurrent *r = ed_layer_state(layer);
    layer->activity_regularizer = NULL; /* Keras' passes over it */
    ed_layer *child = ed_layer_simple_rnn_cell_with(ED_OPTIONS_FROM(
        ED_LAYER_SIMPLE_RNN_CELL_OPTIONS, o, ed_layer_simple_rnn_cell_options, .name = "cell"));
    return child && RECURRENT_TAKE(layer, r, o, child, 3);
}

static bool lstm_init(ed_layer *layer)
{
    const ed_layer_lstm_options *o = layer_options(layer);
    recurrent *r = ed_layer_state(layer);
    ed_layer *child = ed_layer_lstm_cell_with(
        ED_OPTIONS_FROM(ED_LAYER_LSTM_CELL_OPTIONS, o, ed_layer_lstm_cell_options, .name = "cell"));
    return child && RECURRENT_TAKE(layer, r, o, child, 3);
}

static bool gru_init(ed_layer *layer)
{
    const ed_layer_gru_options *o = layer_options(layer);
    recurrent *r = ed_layer_state(layer);
    ed_layer *child = ed_layer_gru_cell_with(
        ED_OPTIONS_FROM(ED_LAYER_GRU_CELL_OPTIONS, o, ed_layer_gru_cell_options, .name = "cell"));
    return child && RECURRENT_TAKE(layer, r, o, child, 3);
}

#define RECURRENT(symbol, SYMBOL, states, text, ...)                                               \
    LAYER(symbol, SYMBOL, 1, text, .state_size = sizeof(recurrent), .max_inputs = 1 + states,      \
          .init = symbol##_init, .build = recurrent_layer_build,                                   \
          .forward = recurrent_layer_forward, .destroy = recurrent_layer_destroy,                  \
          .samples = LAYER_SAMPLES(__VA_ARGS__))

#define SAMPLE_OF(symbol, SYMBOL, n, ...)                                                          \
    {                                                                                              \
        .options = OPTIONS(symbol, SYMBOL, .units = 2, __VA_ARGS__),                               \
        .inputs = {{3, {2, 3, 2}}, {2, {2, 2}}, {2, {2, 2}}}, .n_inputs = 1 + n                    \
    }

RECURRENT(simple_rnn, SIMPLE_RNN, 1, "h = tanh(x kernel + h recurrent_kernel + bias), step by step",
          SAMPLE_OF(simple_rnn, SIMPLE_RNN, 0, .return_sequences = true),
          SAMPLE_OF(simple_rnn, SIMPLE_RNN, 1, .go_backwards = true, .return_state = true,
                    .dropout = 0.5),
          SAMPLE_OF(simple_rnn, SIMPLE_RNN, 0, .activation = "softplus", .use_bias = false,
                    .return_sequences = true, .recurrent_dropout = 0.5))

RECURRENT(lstm, LSTM, 2, "long short-term memory, step by step",
          SAMPLE_OF(lstm, LSTM, 0, .return_sequences = true),
          SAMPLE_OF(lstm, LSTM, 2, .go_backwards = true, .return_state = true, .dropout = 0.5),
          SAMPLE_OF(lstm, LSTM, 0, .activation = "softplus", .use_bias = false,
                    .return_sequences = true, .recurrent_dropout = 0.5))

RECURRENT(gru, GRU, 1, "gated recurrent unit, step by step",
          SAMPLE_OF(gru, GRU, 0, .return_sequences = true),
          SAMPLE_OF(gru, GRU, 1, .go_backwards = true, .return_state = true, .dropout = 0.5),
          SAMPLE_OF(gru, GRU, 0, .reset_after = false, .activation = "softplus",
                    .return_sequences = true, .recurrent_dropout = 0.5))

/* ---- rnn: any cell --------------------------------------------------------------------------- */

static bool rnn_init(ed_layer *layer)
{
    const ed_layer_rnn_options *o = layer_options(layer);
    recurrent *r = ed_layer_state(layer);
    if (!o->cell) return layer_fail(layer, ED_INVALID_ARGUMENT, "cell is NULL; it is required");
    if (o->state_size.count > MOST_STATES)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "state_size has %lld sizes, more than %d",
                          (long long)o->state_size.count, MOST_STATES);
    r->state_size = o->state_size;
    r->more = true;
    return RECURRENT_TAKE(layer, r, o, o->cell, 2);
}

/* Keras' name of the cell. */
static void rnn_track(ed_layer *layer, ed_tracker *t)
{
    const recurrent *r = ed_layer_state(layer);
    if (strcmp(r->cell->name, "cell") != 0)
        graph_name(t, t->self, GRAPH_ALIAS, "cell", graph_object(t, r->cell));
}

LAYER(rnn, RNN, 1, "calls a cell at each step", .state_size = sizeof(recurrent), .max_inputs = -1,
      .init = rnn_init, .build = recurrent_layer_build, .forward = recurrent_layer_forward,
      .destroy = recurrent_layer_destroy, .track = rnn_track)
