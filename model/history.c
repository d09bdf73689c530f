#include "model/model_core.h"
#include <math.h>
#include <string.h>

/* Names in the order in which they were first noted, and a row of values for each epoch. */

typedef struct series {
    char *name;
    double *values; /* `capacity` of the history's; NaN where none was noted */
} series;

struct ed_history {
    ed_object object;
    series *all;
    int64_t count, names_capacity, epochs, capacity;
};

static void history_destroy(void *object)
{
    ed_history *h = object;
    for (int64_t i = 0; i < h->count; i++) {
        memory_free(h->all[i].name);
        memory_free(h->all[i].values);
    }
    memory_free(h->all);
    memory_free(h);
}

static const object_class history_class = {.name = "history", .destroy = history_destroy};

ed_history *history_new(void)
{
    return scope_give(object_new(&history_class, sizeof(ed_history)));
}

/* Room for one more epoch. */
static bool history_grow(ed_history *h)
{
    if (h->epochs < h->capacity) return true;
    const size_t n = (size_t)h->capacity, more = n ? 2 * n : HARD(1, 16);
    for (int64_t i = 0; i < h->count; i++) {
        double *grown = memory_grow(h->all[i].values, n * sizeof *grown, more * sizeof *grown);
        if (!grown) return false;
        h->all[i].values = grown;
    }
    h->capacity = (int64_t)more;
    return true;
}

bool history_epoch(ed_history *h)
{
    if (!history_grow(h)) return false;
    for (int64_t i = 0; i < h->count; i++) h->all[i].values[h->epochs] = NAN;
    h->epochs++;
    return true;
}

static series *history_find(const ed_history *h, const char *name)
{
    for (int64_t i = 0; i < h->count; i++)
        if (!strcmp(h->all[i].name, name)) return &h->all[i];
    return NULL;
}

static series *history_add(ed_history *h, const char *name)
{
    if (h->count == h->names_capacity) {
        const size_t n = (size_t)h->names_capacity, more = n ? 2 * n : HARD(1, 8);
        void *grown = memory_grow(h->all, n * sizeof *h->all, more * sizeof *h->all);
        if (!grown) return NULL;
        h->all = grown;
        h->names_capacity = (int64_t)more;
    }
    series new = {text_copy(name), memory_alloc((size_t)h->capacity * sizeof(double))};
    if (!new.name || !new.values) {
        memory_free(new.name);
        memory_free(new.values);
        return NULL;
    }
    for (int64_t i = 0; i < h->epochs; i++) new.values[i] = NAN;
    h->all[h->count] = new;
    return &h->all[h->count++];
}

bool history_note(ed_history *h, const char *name, double value)
{
    series *s = history_find(h, name);
    if (!s && !(s = history_add(h, name))) return false;
    s->values[h->epochs - 1] = value;
    return true;
}

bool history_rename(ed_history *h, char *const *names)
{
    for (int64_t i = 0; i < h->count; i++) {
        if (!strcmp(h->all[i].name, names[i])) continue;
        char *copy = text_copy(names[i]);
        if (!copy) return false;
        memory_free(h->all[i].name);
        h->all[i].name = copy;
    }
    return true;
}

bool history_resize(ed_history *h, int64_t epochs, char *const *names, int64_t count)
{
    while (h->epochs < epochs)
        if (!history_epoch(h)) return false;
    h->epochs = epochs;
    for (int64_t i = h->count; i < count; i++)
        if (!history_add(h, names[i])) return false;
    return true;
}

/* All values, name by name. */
static void get_values(const void *self, void *elements)
{
    const ed_history *h = self;
    for (int64_t i = 0; i < h->count; i++)
        memcpy((double *)elements + i * h->epochs, h->all[i].values,
               (size_t)h->epochs * sizeof(double));
}

static void set_values(void *self, const void *elements)
{
    const ed_history *h = self;
    for (int64_t i = 0; i < h->count; i++)
        memcpy(h->all[i].values, (const double *)elements + i * h->epochs,
               (size_t)h->epochs * sizeof(double));
}

void history_track(ed_history *h, ed_tracker *t)
{
    const ed_state state = {ED_FLOAT64, h->count * h->epochs, get_values, NULL, set_values, 0};
    if (state.count) ed_track_state(t, "history", h, &state);
}

int64_t ed_history_epochs(const ed_history *h)
{
    return h ? h->epochs : 0;
}

int64_t ed_history_count(const ed_history *h)
{
    return h ? h->count : 0;
}

const char *ed_history_name(const ed_history *h, int64_t i)
{
    if (!h) return ed_fail(ED_INVALID_ARGUMENT, "history_name: history is NULL");
    if (i >= 0 && i < h->count) return h->all[i].name;
    return ed_fail(ED_OUT_OF_RANGE, "history_name: name %lld is out of bounds: there are %lld",
                   text_nth(i), (long long)h->count);
}

static const series *named(const char *who, const ed_history *h, const char *name)
{
    if (!h || !name)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s is NULL", who, h ? "name" : "history");
    const series *s = history_find(h, name);
    return s ? s : ed_fail(ED_NOT_FOUND, "%s: there is no value named %s", who, name);
}

ed_tensor *ed_history_values(const ed_history *h, const char *name)
{
    const series *s = named("history_values", h, name);
    return s ? ed_constant_of(ED_FLOAT64, s->values, ED_SHAPE(h->epochs)) : NULL;
}

double ed_history_last(const ed_history *h, const char *name)
{
    const series *s = named("history_last", h, name);
    for (int64_t i = s ? h->epochs : 0; i > 0; i--)
        if (!isnan(s->values[i - 1])) return s->values[i - 1];
    if (s) ed_fail(ED_NOT_FOUND, "history_last: no epoch has a value of %s", name);
    return NAN;
}
