#include "optim/optimizer.h"
#include <float.h>
#include <string.h>

/*
 * What a checkpoint saves of an optimizer, under the names of Keras 3's checkpoints. These have all
 * its variables in one list (_variables: iterations, learning rate, slots) and the slots again in a
 * list for each kind of slot. The index in _variables differs between versions of Keras, so slots
 * are found by the kind's list and their variable.
 *
 * Checkpoints of Keras 2 also have the optimizer's constants (beta_1, ...). A restore does not
 * change these: a file's must equal those of the optimizer.
 */

/* Keras has the learning rate in its floatx; here that is the dtype of the variables, float32
 * before there are some. */
static ed_dtype rate_dtype(const ed_optimizer *o)
{
    for (int64_t i = 0; i < o->n_entries; i++)
        if (o->entries[i].variable->dtype != ED_FLOAT64) return ED_FLOAT32;
    return o->n_entries ? ED_FLOAT64 : ED_FLOAT32;
}

static void get_rate(const void *self, void *elements)
{
    const ed_optimizer *o = self;
    dtype_store(rate_dtype(o), elements, 0, o->common->learning_rate);
}

static const char *refuses_rate(const void *self, const void *elements)
{
    double rate;
    (void)self;
    memcpy(&rate, elements, sizeof rate);
    return rate >= 0 && rate <= FLT_MAX ? NULL : "must be finite and >= 0";
}

/* If the file has the present rate rounded to float32, the present rate stays. */
static void set_rate(void *self, const void *elements)
{
    ed_optimizer *o = self;
    double rate;
    memcpy(&rate, elements, sizeof rate);
    if (rate != (float)o->common->learning_rate) o->common->learning_rate = rate;
}

static void get_constant(const void *self, void *elements)
{
    float value = (float)*(const double *)self;
    memcpy(elements, &value, sizeof value);
}

static const char *refuses_constant(const void *self, const void *elements)
{
    float value;
    memcpy(&value, elements, sizeof value);
    return value == (float)*(const double *)self
               ? NULL
               : "must equal the option that this optimizer was created with";
}

static void keep_constant(void *self, const void *elements)
{
    (void)self, (void)elements;
}

static void track_constants(ed_optimizer *o, ed_tracker *t)
{
    static const ed_state state = {ED_FLOAT32,    -1, get_constant, refuses_constant,
                                   keep_constant, 0};
    static double no_decay = 0;
    for (int i = 0; i < 6 && o->class->constants[i]; i++) {
        const ed_field *f = schema_find(o->class->kind.fields, o->class->constants[i]);
        graph_name(t, t->self, GRAPH_MATCH, f->name,
                   graph_cell(t, ED_FIELD_AT(f, o->made.options), &state));
    }
    graph_name(t, t->self, GRAPH_MATCH, "decay", graph_cell(t, &no_decay, &state));
}

/* What follows from the options and the number of steps. */
static void get_scalar(const void *self, void *elements)
{
    const ed_optimizer *o = self;
    dtype_store(rate_dtype(o), elements, 0, o->class->scalar_at(o, optim_steps(o)));
}

static const char *takes_any(const void *self, const void *elements)
{
    return (void)self, (void)elements, NULL;
}

static void track_scalar(ed_optimizer *o, ed_tracker *t)
{
    const ed_state state = {rate_dtype(o), -1, get_scalar, takes_any, keep_constant, ED_FLOAT64};
    if (o->class->scalar)
        graph_name(t, t->self, GRAPH_NAME, o->class->scalar, graph_cell(t, o, &state));
}

static void get_scale(const void *self, void *elements)
{
    const float scale = (float)((const ed_optimizer *)self)->scale;
    memcpy(elements, &scale, sizeof scale);
}

static const char *refuses_scale(const void *self, const void *elements)
{
    float scale;
    (void)self;
    memcpy(&scale, elements, sizeof scale);
    return scale > 0 && scale <= FLT_MAX ? NULL : "must be finite and above 0";
}

static void set_scale(void *self, const void *elements)
{
    float scale;
    memcpy(&scale, elements, sizeof scale);
    ((ed_optimizer *)self)->scale = scale;
}

/* Keras has these in an optimizer around this one. */
static void track_loss_scale(ed_optimizer *o, ed_tracker *t)
{
    static const ed_state state = {ED_FLOAT32, -1, get_scale, refuses_scale, set_scale, 0};
    if (!o->common->dynamic_loss_scale) return;
    graph_name(t, t->self, GRAPH_NAME, "dynamic_scale", graph_cell(t, o, &state));
    graph_name(t, t->self, GRAPH_NAME, "step_counter",
               graph_cell(t, &o->finite_steps, &graph_count_state));
}

static int track_scalars(ed_optimizer *o, ed_tracker *t)
{
    const ed_state rate = {rate_dtype(o), -1, get_rate, refuses_rate, set_rate, ED_FLOAT64};
    int all = graph_container(t);
    int iterations = graph_cell(t, &o->iterations, &graph_count_state);
    int learning_rate = o->common->schedule ? -1 : graph_cell(t, o, &rate);
    graph_name(t, t->self, GRAPH_KEY | GRAPH_WRITE, "_variables", all);
    graph_name(t, t->self, GRAPH_NAME, "_iterations", iterations);
    graph_name(t, t->self, GRAPH_MATCH, "iter", iterations);
    graph_number(t, all, GRAPH_WRITE, 0, iterations);
    if (learning_rate < 0) return all;
    graph_name(t, t->self, GRAPH_NAME, "_learning_rate", learning_rate);
    graph_name(t, t->self, GRAPH_MATCH, "learning_rate", learning_rate);
    graph_number(t, all, GRAPH_WRITE, 1, learning_rate);
    return all;
}

/* In place of a slot that a variable lacks. */
static void get_zero(const void *self, void *elements)
{
    (void)self;
    memset(elements, 0, sizeof(int32_t));
}

/* Slots `from` to `to` - 1 of each variable; returns the next place. */
static int64_t track_places(ed_optimizer *o, ed_tracker *t, int all, int64_t place, int from,
                            int to)
{
    static const ed_state nothing = {ED_INT32, -1, get_zero, NULL, NULL, 0};
    for (int64_t i = 0; i < o->n_entries; i++)
        for (int s = from; s < to; s++) {
            ed_tensor *slot = o->entries[i].slots[s];
            if (slot)
                graph_number(t, all, GRAPH_KEY | GRAPH_WRITE, place++, graph_object(t, slot));
            else if (o->class->keeps_places && s < OPTIM_OWN)
                graph_number(t, all, GRAPH_KEY | GRAPH_WRITE, place++, graph_cell(t, o, &nothing));
        }
    return place;
}

/* The slots' order in _variables, after the scalars, is that of ed_optimizer_variables. */
static void track_all(ed_optimizer *o, ed_tracker *t, int all)
{
    const int together = o->class->together;
    int64_t place = o->common->schedule ? 1 : 2;
    place = track_places(o, t, all, place, OPTIM_AVERAGE, OPTIM_AVERAGE + 1);
    place = track_places(o, t, all, place, OPTIM_SUM, OPTIM_SUM + 1);
    place = track_places(o, t, all, place, 0, together);
    for (int s = together; s < OPTIM_OWN; s++) place = track_places(o, t, all, place, s, s + 1);
}

static void track_slots(ed_optimizer *o, ed_tracker *t, int slot)
{
    graph_slot known = {.optimizer = t->self,
                        .variable = -1,
                        .value = -1,
                        .index = -1,
                        .keras3_list = optim_slot_list(o, slot),
                        .keras2_slot = optim_slot_legacy(o, slot)};
    graph_slot_of(t, known);
    int list = graph_container(t);
    graph_name(t, t->self, GRAPH_KEY | GRAPH_WRITE, known.keras3_list, list);
    for (known.index = 0; known.index < o->n_entries; known.index++) {
        const optim_entry *e = &o->entries[known.index];
        if (!e->slots[slot]) continue;
        known.variable = graph_object(t, e->variable);
        known.value = graph_object(t, e->slots[slot]);
        graph_number(t, list, GRAPH_WRITE, known.index, known.value);
        graph_slot_of(t, known);
    }
}

void optim_track(void *object, ed_tracker *t)
{
    ed_optimizer *o = object;
    ED_SCOPE;
    int all = track_scalars(o, t), trained = graph_container(t);
    track_all(o, t, all);
    graph_name(t, t->self, GRAPH_WRITE, "_trainable_variables", trained);
    for (int64_t i = 0; i < o->n_entries; i++)
        graph_number(t, trained, GRAPH_WRITE, i, graph_object(t, o->entries[i].variable));
    for (int slot = 0; slot < OPTIM_SLOTS; slot++)
        if (o->slots & 1u << slot) track_slots(o, t, slot);
    track_constants(o, t);
    track_loss_scale(o, t);
    track_scalar(o, t);
}

graph_wait *optim_wait(void *object)
{
    return &((ed_optimizer *)object)->wait;
}

bool optim_waiting(const ed_optimizer *o, int slot, const ed_tensor *v, const ed_tensor *like,
                   ed_tensor **initial, int *node)
{
    graph_source *source = o->wait.source;
    *initial = NULL;
    *node = -1;
    if (!source) return true;
    const graph_slot wanted = {.index = o->n_entries - 1,
                               .keras3_list = optim_slot_list(o, slot),
                               .keras2_slot = optim_slot_legacy(o, slot)};
    *node = source->find_slot(source, o->wait.node, &wanted, v);
    if (*node < 0) return true;
    *initial = source->value(source, *node, ed_variable_name(v), like->dtype, ed_shape(like));
    return *initial;
}

void optim_unmade(const ed_optimizer *o, int64_t first)
{
    graph_source *source = o->wait.source;
    for (int64_t i = first; source && i < o->n_entries; i++)
        for (int s = 0; s < OPTIM_SLOTS; s++)
            if (o->entries[i].slots[s]) source->unmade(source, o->entries[i].slots[s]);
}
