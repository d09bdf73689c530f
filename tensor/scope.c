#include "tensor/core.h"
#include "tensor/threads.h"
#include <string.h>

/*
 * A thread's scopes share one stack of objects; a scope is the place where it begins.
 *
 *     objects:  a b c | d e f g
 *     scopes:   ^root ^mark of the inner scope; ed_keep(f) swaps f with d and counts it as kept:
 *               a b c | f . e d g     kept is 1, and closing releases e d g: the root has f
 *
 * An object knows the place where it was last put on some thread's stack, so that ed_keep need not
 * look for it. It is a hint, which other threads may change at any time: whoever uses it looks
 * whether the object is there. Only "never" is certain.
 */

enum { ROOT_BOUND = 100000 };

static struct {
    void (*handler)(const char *message, void *user);
    void *user;
} on_warning;

void ed_set_warning_handler(void (*handler)(const char *message, void *user), void *user)
{
    on_warning.handler = handler;
    on_warning.user = user;
}

void *object_new(const object_class *class, size_t bytes)
{
    ed_object *object = memory_zalloc(bytes);
    if (!object) return NULL;
    object->refs = 1;
    object->class = class;
    return object;
}

void *ed_retain(void *object)
{
    if (object) __atomic_fetch_add(&((ed_object *)object)->refs, 1, __ATOMIC_RELAXED);
    return object;
}

void ed_release(void *object)
{
    ed_object *o = object;
    if (!o) return;
    if (__atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) == 1 ||
        __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) == 1)
        o->class->destroy(o);
}

void *ed_scope_hold(void *object)
{
    return object ? scope_give(ed_retain(object))
                  : ed_fail(ED_INVALID_ARGUMENT, "scope_hold: object is NULL");
}

/* The root scope is made with the first thing that needs it. */
static void have_root(thread_state *self)
{
    if (self->n_scopes) return;
    self->scopes = self->first_scopes;
    self->scope_capacity = THREAD_FIRST_SCOPES;
    self->scopes[0] = (scope_frame){0};
    self->n_scopes = 1;
}

static void warn(thread_state *self)
{
    self->warned = true;
    if (!on_warning.handler) return;
    const scope_guarded guarded = scope_guard(self);
    on_warning.handler("the root scope of this thread holds more than 100000 objects: "
                       "is an ED_SCOPE missing in a loop?",
                       on_warning.user);
    scope_unguard(self, guarded);
}

static bool make_room(thread_state *self)
{
    if (self == &thread_spare)
        return ed_fail(ED_OUT_OF_MEMORY, "thread: no memory for the first call of this thread");
    have_root(self);
    if (self->n_scopes == 1 && self->n_objects >= ROOT_BOUND && !self->warned) warn(self);
    size_t capacity = self->object_capacity ? 2 * self->object_capacity : HARD(1, 256);
    void *objects = memory_grow(self->objects, self->n_objects * sizeof(ed_object *),
                                capacity * sizeof(ed_object *));
    if (!objects) return false;
    self->objects = objects;
    self->object_capacity = capacity;
    return true;
}

static void scope_put(thread_state *self, size_t at, ed_object *object)
{
    self->objects[at] = object;
    __atomic_store_n(&object->place, (uint32_t)(at % UINT32_MAX) + 1, __ATOMIC_RELAXED);
}

void *scope_give(void *object)
{
    if (!object) return NULL;
    thread_state *self = thread_self();
    if (__builtin_expect(self->n_objects == self->object_capacity, 0) && !make_room(self)) {
        ed_release(object);
        return NULL;
    }
    scope_put(self, self->n_objects++, object);
    return object;
}

static bool grow_scopes(thread_state *self)
{
    const size_t n = self->n_scopes, capacity = 2 * n;
    scope_frame *scopes = memory_alloc(capacity * sizeof *scopes);
    if (!scopes) return false;
    memcpy(scopes, self->scopes, n * sizeof *scopes);
    if (self->scopes != self->first_scopes) memory_free(self->scopes);
    self->scopes = scopes;
    self->scope_capacity = (uint32_t)capacity;
    return true;
}

ed_scope ed_scope_open(void)
{
    thread_state *self = thread_self();
    if (__builtin_expect(self == &thread_spare, 0)) return (ed_scope){thread_open_lost()};
    have_root(self);
    if (self->n_scopes == self->scope_capacity && !grow_scopes(self)) return (ed_scope){0};
    self->scopes[self->n_scopes] = (scope_frame){.mark = self->n_objects};
    return (ed_scope){self->n_scopes++};
}

/*
 * An object's destructor may itself make and release objects, on top of the stack: so the stack is
 * shortened before each release. It may not close the scopes that are being closed.
 */
static void close_to(thread_state *self, uint32_t depth)
{
    const scope_guarded guarded = scope_guard(self);
    while (self->n_scopes > depth) {
        scope_frame frame = self->scopes[self->n_scopes - 1];
        size_t floor = frame.mark + frame.kept;
        self->barrier.depth = self->n_scopes;
        while (self->n_objects > floor) ed_release(self->objects[--self->n_objects]);
        self->n_scopes--;
    }
    scope_unguard(self, guarded);
}

/* The function's barrier may be that of functions further out, too. They put back their own when
 * they return. */
void scope_left(thread_state *self)
{
    self->barrier = (scope_barrier){0};
    self->weight_room = 0;
    self->made_together = 0;
    self->tracing = self->quiet = 0;
    self->losses = NULL;
    threads_may_stop(false);
}

/* The root scope stays, which the function may have made. */
void scope_join(thread_state *self, uint32_t depth)
{
    self->n_scopes = depth ? depth : 1;
}

/* Depth 0 is the mark of a scope that could not be opened; the root scope is not closed by hand. */
void ed_scope_close(ed_scope *scope)
{
    if (!scope || !scope->depth) return;
    thread_state *self = thread_self();
    if (__builtin_expect(self == &thread_spare, 0)) thread_close_lost(scope->depth);
    scope_see_left(self);
    if (scope->depth < self->barrier.depth) {
        close_to(self, self->barrier.depth);
        ed_fail(ED_FAILED_PRECONDITION,
                "scope_close: the scope is from before the call of the function that closes it, "
                "and stays open");
        return;
    }
    close_to(self, scope->depth);
    scope->depth = 0;
}

/* Where the object is on the stack, `floor` or above: SIZE_MAX if it isn't there, or is below it
 * too. */
static size_t find_above(const thread_state *self, const ed_object *object, size_t floor)
{
    const uint32_t place = __atomic_load_n(&object->place, __ATOMIC_RELAXED);
    if (!place) return SIZE_MAX;
    if (place <= self->n_objects && self->objects[place - 1] == object)
        return place > floor ? place - 1 : SIZE_MAX;
    for (size_t i = self->n_objects; i > floor; i--)
        if (self->objects[i - 1] == object) return i - 1;
    return SIZE_MAX;
}

void *ed_keep(void *object)
{
    thread_state *self = thread_self();
    if (!object || self->n_scopes < 2) return object;
    scope_frame *frame = &self->scopes[self->n_scopes - 1];
    size_t floor = frame->mark + frame->kept, at = find_above(self, object, floor);
    if (at == SIZE_MAX) return object;
    scope_put(self, at, self->objects[floor]);
    scope_put(self, floor, object);
    frame->kept++;
    return object;
}

void scope_thread_end(thread_state *self)
{
    close_to(self, 0);
    memory_free(self->objects);
    if (self->scopes != self->first_scopes) memory_free(self->scopes);
    self->objects = NULL;
    self->scopes = NULL;
    self->object_capacity = 0;
    self->scope_capacity = 0;
}
