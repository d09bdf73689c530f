#include "io/io.h"
#include "io/json.h"
#include "tensor/schema_core.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Objects to JSON and back, by their schemas. */

enum { DEEPEST = 42 }; /* nested objects: io/json.c takes 128 brackets, a layer in a layer has 3 */

/* ---- Writing --------------------------------------------------------------------------------- */

static bool put_object(io_buffer *b, const void *object, int depth);

static void put_text(io_buffer *b, const char *s)
{
    if (s)
        io_put_json_text(b, s);
    else
        io_put(b, "null", 4);
}

static bool put_string(io_buffer *b, const ed_field *field, const char *s)
{
    if (s && !io_is_utf8(s, strlen(s)))
        return ed_fail(ED_INVALID_ARGUMENT, "to_json: the option %s is not UTF-8", field->name);
    put_text(b, s);
    return true;
}

static void put_double(io_buffer *b, double value)
{
    if (isfinite(value))
        io_put_json_number(b, value);
    else
        io_put_json_text(b, value != value ? "nan" : value < 0 ? "-inf" : "inf");
}

static void put_ints(io_buffer *b, const ed_ints *list)
{
    if (!list->values) {
        put_text(b, NULL);
        return;
    }
    io_put_u8(b, '[');
    for (int64_t i = 0; i < list->count; i++)
        io_put_format(b, i ? ", %lld" : "%lld", (long long)list->values[i]);
    io_put_u8(b, ']');
}

static void put_floats(io_buffer *b, const ed_floats *list)
{
    if (!list->values) {
        put_text(b, NULL);
        return;
    }
    io_put_u8(b, '[');
    for (int64_t i = 0; i < list->count; i++) {
        if (i) io_put(b, ", ", 2);
        put_double(b, list->values[i]);
    }
    io_put_u8(b, ']');
}

static bool put_objects(io_buffer *b, const ed_objects *list, int depth)
{
    io_put_u8(b, '[');
    for (int64_t i = 0; i < list->count; i++) {
        if (i) io_put(b, ", ", 2);
        if (!put_object(b, list->values[i], depth)) return false;
    }
    io_put_u8(b, ']');
    return true;
}

static bool put_value(io_buffer *b, const ed_field *field, const void *options, int depth)
{
    const void *at = ED_FIELD_AT(field, options);
    switch (field->type) {
    case ED_FIELD_BOOL:
        if (*(const bool *)at)
            io_put(b, "true", 4);
        else
            io_put(b, "false", 5);
        break;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: io_put_format(b, "%lld", (long long)*(const int64_t *)at); break;
    case ED_FIELD_FLOAT: put_double(b, *(const double *)at); break;
    case ED_FIELD_DTYPE: {
        const ed_dtype dtype = *(const ed_dtype *)at;
        put_text(b, dtype ? ed_dtype_name(dtype) : NULL);
        break;
    }
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: put_ints(b, at); break;
    case ED_FIELD_FLOATS: put_floats(b, at); break;
    case ED_FIELD_STRING:
    case ED_FIELD_CHOICE:
    case ED_FIELD_ACTIVATION: return put_string(b, field, *(const char *const *)at);
    case ED_FIELD_DRAW: put_text(b, NULL); break; /* of ops, which have no JSON */
    case ED_FIELD_LAYERS:
    case ED_FIELD_OBJECTS: return put_objects(b, at, depth);
    case ED_FIELD_OBJECT ... ED_FIELD_LAYER: return put_object(b, *(void *const *)at, depth);
    }
    return true;
}

static void put_head(io_buffer *b, const char *family, const char *name)
{
    io_put(b, "{\"module\": ", 11);
    put_text(b, family);
    io_put(b, ", \"class_name\": ", 16);
    put_text(b, name);
    io_put(b, ", \"config\": ", 12);
}

static bool put_object(io_buffer *b, const void *object, int depth)
{
    if (!object) return put_text(b, NULL), true;
    if (depth == DEEPEST)
        return ed_fail(ED_INVALID_ARGUMENT, "to_json: objects are nested more than %d deep",
                       DEEPEST);
    const ed_kind *kind = ed_kind_of(object);
    if (!kind || !kind->fields)
        return ed_fail(
            ED_INVALID_ARGUMENT, "to_json: takes objects that are made from options, got: %s%s%s",
            ((const ed_object *)object)->class->name, kind ? " " : "", kind ? kind->name : "");
    put_head(b, kind->family, kind->name);
    io_put_u8(b, '{');
    void *options = ed_scope_alloc(kind->options_size);
    if (!options) return false;
    memcpy(options, ed_options_of(object), kind->options_size);
    if (kind->present) kind->present(object, options);
    for (const ed_field *f = kind->fields; f->name; f++) {
        if (f != kind->fields) io_put(b, ", ", 2);
        io_put_json_text(b, f->name);
        io_put(b, ": ", 2);
        if (!put_value(b, f, options, depth + 1)) return false;
    }
    io_put(b, "}}", 2);
    return true;
}

const char *ed_to_json(const void *object)
{
    if (!object) return ed_fail(ED_INVALID_ARGUMENT, "to_json: object is NULL");
    io_buffer b = {0};
    ed_scope working = ed_scope_open();
    const bool ok = put_object(&b, object, 0);
    ed_scope_close(&working);
    io_put_u8(&b, 0);
    if (ok && !b.failed) return text_give((char *)b.data);
    io_buffer_free(&b);
    return NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void *read_object(io_json *j, const char *family, int depth);

/* Sets the error unless there is one. */
static bool refuse(const io_json *j, const char *who, const char *field)
{
    if (!ed_failed())
        ed_fail(ED_INVALID_ARGUMENT, "from_json: %s: %s: %s", who, field,
                j->wrong ? j->wrong : "invalid value of this option");
    return false;
}

static bool read_string(io_json *j, const char **s)
{
    io_span span;
    *s = NULL;
    if (io_json_null(j)) return true;
    if (!io_json_text(j, &span)) return false;
    *s = (const char *)span.data;
    return strlen(*s) == span.size || io_json_fail(j, "a string contains a zero byte");
}

static bool read_double(io_json *j, double *value)
{
    const char *word;
    if (io_json_next(j) != '"') return io_json_double(j, value);
    if (!read_string(j, &word)) return false;
    *value = !strcmp(word, "inf") ? INFINITY : !strcmp(word, "-inf") ? -INFINITY : NAN;
    return !isnan(*value) || !strcmp(word, "nan") || io_json_fail(j, "expected a number");
}

static bool read_dtype(io_json *j, ed_dtype *dtype)
{
    const char *name;
    *dtype = ED_DTYPE_NONE;
    if (!read_string(j, &name)) return false;
    for (int d = 1; name && d < ED_DTYPE_COUNT; d++)
        if (!strcmp(ed_dtype_name((ed_dtype)d), name)) *dtype = (ed_dtype)d;
    return !name || *dtype || io_json_fail(j, "expected the name of a dtype");
}

/* The number of elements of the next array; the scanner stays before it. */
static int64_t count_elements(const io_json *j)
{
    io_json ahead = *j;
    int64_t n = 0;
    io_json_take(&ahead, '[');
    while (io_json_member(&ahead, n, ']')) {
        if (!io_json_skip(&ahead)) return -1;
        n++;
    }
    return ahead.wrong ? -1 : n;
}

static bool read_ints(io_json *j, ed_ints *list)
{
    *list = (ed_ints){NULL, 0};
    if (io_json_null(j)) return true;
    const int64_t count = count_elements(j);
    if (count < 0) return io_json_fail(j, "expected a list of integers");
    int64_t *values = ed_scope_alloc((size_t)(count + 1) * sizeof *values);
    if (!values) return false;
    io_json_take(j, '[');
    for (int64_t i = 0; io_json_member(j, i, ']'); i++)
        if (!io_json_integer(j, &values[i])) return false;
    *list = (ed_ints){values, count};
    return !j->wrong;
}

static bool read_floats(io_json *j, ed_floats *list)
{
    *list = (ed_floats){NULL, 0};
    if (io_json_null(j)) return true;
    const int64_t count = count_elements(j);
    if (count < 0) return io_json_fail(j, "expected a list of numbers");
    double *values = ed_scope_alloc((size_t)(count + 1) * sizeof *values);
    if (!values) return false;
    io_json_take(j, '[');
    for (int64_t i = 0; io_json_member(j, i, ']'); i++)
        if (!read_double(j, &values[i])) return false;
    *list = (ed_floats){values, count};
    return !j->wrong;
}

static bool read_objects(io_json *j, const char *family, int depth, ed_objects *list)
{
    const int64_t count = count_elements(j);
    if (count < 0) return io_json_fail(j, "expected a list of objects");
    void **values = ed_scope_alloc((size_t)(count + 1) * sizeof *values);
    if (!values) return false;
    io_json_take(j, '[');
    for (int64_t i = 0; io_json_member(j, i, ']'); i++)
        if (!(values[i] = read_object(j, family, depth))) return false;
    *list = (ed_objects){values, count};
    return !j->wrong;
}

static bool read_value(io_json *j, const ed_field *field, void *options, int depth)
{
    void *at = ED_FIELD_AT(field, options);
    switch (field->type) {
    case ED_FIELD_BOOL: return io_json_bool(j, at);
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: return io_json_integer(j, at);
    case ED_FIELD_FLOAT: return read_double(j, at);
    case ED_FIELD_DTYPE: return read_dtype(j, at);
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: return read_ints(j, at);
    case ED_FIELD_FLOATS: return read_floats(j, at);
    case ED_FIELD_STRING:
    case ED_FIELD_CHOICE:
    case ED_FIELD_ACTIVATION: return read_string(j, at);
    case ED_FIELD_DRAW: return false;
    case ED_FIELD_LAYERS:
    case ED_FIELD_OBJECTS: return read_objects(j, schema_family(field->type), depth, at);
    case ED_FIELD_OBJECT ... ED_FIELD_LAYER:
        *(void **)at = NULL;
        return io_json_null(j) ||
               (*(void **)at = read_object(j, schema_family(field->type), depth));
    }
    return false;
}

/* The options in the scanner, over the kind's defaults. */
static bool read_options(io_json *j, const ed_kind *kind, void *options, int depth)
{
    memcpy(options, kind->defaults, kind->options_size);
    io_json_take(j, '{');
    for (int64_t n = 0; io_json_member(j, n, '}'); n++) {
        const char *name;
        if (!read_string(j, &name) || !name || !io_json_take(j, ':'))
            return refuse(j, kind->name, "the options");
        const ed_field *field = schema_find(kind->fields, name);
        if (!field)
            return ed_fail(ED_INVALID_ARGUMENT, "from_json: %s has no option '%s'", kind->name,
                           name);
        if (!read_value(j, field, options, depth)) return refuse(j, kind->name, name);
    }
    return !j->wrong || refuse(j, kind->name, "the options");
}

/* The members of an object; the configuration is read when the kind is known. */
typedef struct head {
    const char *family, *name;
    io_json config;
    bool has_config;
} head;

static bool read_head(io_json *j, head *h)
{
    *h = (head){0};
    io_json_take(j, '{');
    for (int64_t n = 0; io_json_member(j, n, '}'); n++) {
        const char *key;
        if (!read_string(j, &key) || !key || !io_json_take(j, ':')) return false;
        if (!strcmp(key, "config")) {
            io_json_next(j);
            h->config = *j;
            h->has_config = true;
            io_json_skip(j);
        } else if (!strcmp(key, "module"))
            read_string(j, &h->family);
        else if (!strcmp(key, "class_name"))
            read_string(j, &h->name);
        else
            io_json_skip(j);
    }
    if (h->family && h->name && h->has_config) return !j->wrong;
    return io_json_fail(j, "expected an object with module, class_name and config");
}

/* An object of the family (NULL or "object": any), which belongs to the scope. */
static void *read_object(io_json *j, const char *family, int depth)
{
    head h;
    if (depth == DEEPEST) return io_json_fail(j, "objects are nested too deeply"), NULL;
    if (!read_head(j, &h)) return NULL;
    if (family && strcmp(family, "object") != 0 && strcmp(family, h.family) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "from_json: expected an object of the family %s, got the %s %s", family,
                       h.family, h.name);
    const ed_kind *kind = ed_kind_find(h.family, h.name);
    if (!kind) return NULL;
    if (!kind->fields)
        return ed_fail(ED_INVALID_ARGUMENT, "from_json: the %s %s has no options", h.family,
                       h.name);
    void *options = ed_scope_alloc(kind->options_size);
    return options && read_options(&h.config, kind, options, depth + 1) ? ed_make(kind, options)
                                                                        : NULL;
}

void *ed_from_json(const char *json)
{
    if (!json) return ed_fail(ED_INVALID_ARGUMENT, "from_json: json is NULL");
    ED_SCOPE;
    const size_t size = strlen(json);
    char *copy = text_copy(json);
    if (!copy) return NULL;
    io_json j = io_json_on(copy, size);
    void *object = read_object(&j, NULL, 0);
    const bool whole = object && io_json_end(&j);
    if (j.wrong && !ed_failed())
        ed_fail(ED_INVALID_ARGUMENT, "from_json: byte %lld: %s", (long long)(j.at - copy), j.wrong);
    memory_free(copy);
    return whole ? ed_keep(object) : NULL;
}
