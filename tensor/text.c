#include "tensor/core.h"
#include "tensor/thread.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void text_append(text *t, const char *format, ...)
{
    size_t used = strlen(t->s);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->s + used, sizeof t->s - used, format, arguments);
    va_end(arguments);
}

static void append_ints(text *t, const int64_t *values, int64_t count)
{
    enum { MOST = 8 };
    text_append(t, "[");
    for (int64_t i = 0; i < count && i < MOST; i++)
        text_append(t, i ? ", %lld" : "%lld", (long long)values[i]);
    text_append(t, count > MOST ? ", ...]" : "]");
}

text text_of_ints(const int64_t *values, int64_t count)
{
    text t = {""};
    append_ints(&t, values, count);
    return t;
}

text text_of_tensor(const ed_tensor *tensor)
{
    text t = {""};
    text_append(&t, "%s", ed_dtype_name(tensor->dtype));
    append_ints(&t, tensor_open_shape(tensor), tensor->rank);
    return t;
}

int ed_set_index_base(int base)
{
    thread_state *self = thread_self();
    const int before = self->first;
    self->first = base == 1;
    return before;
}

long long text_nth(int64_t axis)
{
    return axis < 0 ? axis : axis + thread_self()->first;
}

text text_of_places(const int64_t *axes, int64_t count)
{
    int64_t named[ED_MAX_RANK];
    if (count > ED_MAX_RANK) return text_of_ints(axes, count);
    for (int64_t i = 0; i < count; i++) named[i] = text_nth(axes[i]);
    return text_of_ints(named, count);
}

text text_of_element(const ed_tensor *t, int64_t element)
{
    int64_t at[ED_MAX_RANK];
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = element % t->shape[d];
        element /= t->shape[d];
    }
    return text_of_places(at, t->rank);
}

char *text_copy(const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = memory_alloc(bytes);
    return copy ? memcpy(copy, s, bytes) : NULL;
}

/* ---- Texts that belong to the scope ---------------------------------------------------------- */

typedef struct kept_text {
    ed_object object;
    char *s;
} kept_text;

static void kept_destroy(void *object)
{
    memory_free(((kept_text *)object)->s);
    memory_free(object);
}

static const object_class kept_class = {.name = "text", .destroy = kept_destroy};

const char *text_give(char *s)
{
    kept_text *kept = s ? object_new(&kept_class, sizeof *kept) : NULL;
    if (!kept) {
        memory_free(s);
        return NULL;
    }
    kept->s = s;
    return scope_give(kept) ? s : NULL;
}

void *ed_scope_alloc(size_t bytes)
{
    return (void *)text_give(memory_alloc(bytes));
}
