#include "model/model_core.h"
#include <math.h>
#include <string.h>

/* A callback made from options, or from a program's function. */
struct ed_callback {
    made_object made;
    ed_callback_function function; /* a program's; NULL: the kind's */
    void *user;
    void (*destroy)(void *user);
    max_align_t state[];
};

static void callback_destroy(void *object)
{
    ed_callback *c = object;
    const callback_class *class = (const callback_class *)c->made.kind;
    if (c->function && c->destroy) SCOPE_GUARDED((c->destroy(c->user), true));
    if (!c->function && class && class->destroy) class->destroy(c->state);
    made_destroy(c);
}

static void callback_track(void *object, ed_tracker *t)
{
    ed_callback *c = object;
    const callback_class *class = (const callback_class *)c->made.kind;
    if (!c->function && class->track) class->track(c->state, t);
}

static const object_class made_callback = {
    .name = "callback", .destroy = callback_destroy, .track = callback_track, .is_made = true};
static const object_class own_callback = {
    .name = "callback", .destroy = callback_destroy, .track = callback_track};

void *callback_make(const ed_kind *kind, const void *options)
{
    const size_t bytes = sizeof(ed_callback) + ((const callback_class *)kind)->state_size;
    return scope_give(made_new(&made_callback, bytes, kind, options));
}

ed_callback *ed_callback_from(ed_callback_function function, void *user,
                              void (*destroy)(void *user))
{
    if (!function) return ed_fail(ED_INVALID_ARGUMENT, "callback_from: function is NULL");
    ed_callback *c = object_new(&own_callback, sizeof *c);
    if (!c) return NULL;
    c->function = function;
    c->user = user;
    c->destroy = destroy;
    return scope_give(c);
}

bool callback_check(const char *who, ed_objects callbacks)
{
    for (int64_t i = 0; i < callbacks.count; i++) {
        const object_class *class = ((const ed_object *)callbacks.values[i])->class;
        if (class != &made_callback && class != &own_callback)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: callback %lld is a %s", who, text_nth(i),
                           class->name);
    }
    return true;
}

static bool call_callback(ed_callback *c, ed_training *training)
{
    const error_before before = error_begin();
    const callback_class *class = (const callback_class *)c->made.kind;
    const bool ok = c->function ? SCOPE_GUARDED(c->function(c->user, training))
                                : class->function(c->made.options, c->state, training);
    if (!ok && error_is_missing(before))
        ed_fail(ED_FAILED_PRECONDITION, "model_fit: a callback failed without an error");
    return ok;
}

static bool saves(const ed_callback *c)
{
    return !c->function && ((const callback_class *)c->made.kind)->saves;
}

/* The end of a training is told to all, whichever fails. */
bool callback_tell(ed_objects callbacks, ed_training *training, ed_training_event event)
{
    bool ok = true;
    training->event = event;
    for (int64_t i = 0; i < 2 * callbacks.count; i++) {
        ED_SCOPE;
        ed_callback *c = callbacks.values[i % callbacks.count];
        if (saves(c) != (i >= callbacks.count)) continue;
        ok &= call_callback(c, training);
        if (!ok && event != ED_TRAIN_END) return false;
    }
    return ok;
}

double ed_training_value(const ed_training *training, const char *name)
{
    if (!training || !name)
        return ed_fail(ED_INVALID_ARGUMENT, "training_value: %s is NULL",
                       training ? "name" : "training"),
               NAN;
    for (int64_t i = 0; i < training->count; i++)
        if (!strcmp(training->names[i], name)) return training->values[i];
    return NAN;
}
