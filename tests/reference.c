#include "tests/reference.h"
#include "eddy.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

struct reference_file {
    const char *family, *kind;
    ed_archive *archive;
    json *root;
    ed_tensor *stored[ED_DTYPE_COUNT]; /* all elements of a dtype */
};

/* ---- Files ----------------------------------------------------------------------------------- */

static ed_dtype dtype_named(const char *name)
{
    for (int d = 1; d < ED_DTYPE_COUNT; d++)
        if (!strcmp(ed_dtype_name((ed_dtype)d), name)) return (ed_dtype)d;
    fail_msg("there is no dtype %s", name);
    return ED_DTYPE_NONE;
}

reference_file *reference_open(const char *folder, const char *family, const char *kind)
{
    ED_SCOPE;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/%s.npz", folder, family, kind);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fclose(f);
    reference_file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    file->family = family;
    file->kind = kind;
    file->archive = ed_retain(ed_archive_open(path));
    for (int64_t i = 0; i < ed_archive_count(file->archive); i++) {
        const char *name = ed_archive_name(file->archive, i);
        ed_tensor *t = ed_archive_tensor(file->archive, i);
        if (!t) break;
        if (!strcmp(name, "cases"))
            file->root = json_read(ed_data(t), (size_t)ed_size(t));
        else
            file->stored[dtype_named(name)] = ed_retain(t);
    }
    if (ed_failed()) fail_msg("%s", ed_error());
    if (!file->root) fail_msg("%s has no cases", path);
    return file;
}

void reference_close(reference_file *file)
{
    json_free(file->root);
    for (int d = 0; d < ED_DTYPE_COUNT; d++) ed_release(file->stored[d]);
    ed_release(file->archive);
    free(file);
}

int64_t reference_count(const reference_file *file)
{
    return json_count(json_get(file->root, "cases"));
}

void reference_get(const reference_file *file, int64_t i, reference_case *c)
{
    const json *j = json_at(json_get(file->root, "cases"), i);
    const json *tolerance = json_get(j, "tolerance"), *magnitude = json_get(j, "magnitude");
    const bool single = !strcmp(json_text(json_get(j, "floatx")), "float32");
    *c = (reference_case){.json = j,
                          .file = file,
                          .name = json_text(json_get(j, "name")),
                          .tolerance = single ? 1e-6 : 1e-10};
    if (tolerance) c->tolerance = json_number(tolerance);
    if (magnitude) c->magnitude = json_number(magnitude);
}

bool reference_touches(const reference_file *file, const char *option)
{
    for (int64_t i = 0; i < reference_count(file); i++) {
        reference_case c;
        reference_get(file, i, &c);
        if (json_get(json_get(json_get(c.json, "object"), "config"), option)) return true;
    }
    return false;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

ed_tensor *reference_tensor(const reference_case *c, const json *array)
{
    if (!array || json_kind_of(array) == JSON_NULL) return NULL;
    const json *shape = json_get(array, "shape");
    int64_t sizes[ED_MAX_RANK], count = 1;
    assert_true(json_count(shape) <= ED_MAX_RANK);
    for (int64_t i = 0; i < json_count(shape); i++) count *= sizes[i] = json_int(json_at(shape, i));
    const ed_dtype stored = dtype_named(json_text(json_get(array, "stored")));
    const int64_t at = json_int(json_get(array, "at"));
    ed_tensor *all = c->file->stored[stored];
    assert_true(at >= 0 && count >= 0 && at + count <= ed_size(all));
    const char *data = (const char *)ed_data(all) + at * ed_dtype_size(stored);
    ed_tensor *t = ed_constant_of(stored, data, (ed_ints){sizes, json_count(shape)});
    t = ed_cast(t, dtype_named(json_text(json_get(array, "dtype"))));
    assert_non_null(t);
    return t;
}

ed_list *reference_tensors(const reference_case *c, const char *name)
{
    enum { MOST = 64 };
    const json *list = json_get(c->json, name);
    if (!list || json_kind_of(list) == JSON_NULL) return NULL;
    ed_tensor *tensors[MOST];
    const int64_t n = json_count(list);
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) tensors[i] = reference_tensor(c, json_at(list, i));
    return ed_list_make_optional(tensors, n);
}

/* ---- Objects --------------------------------------------------------------------------------- */

static const ed_field *field_named(const ed_kind *kind, const char *name)
{
    for (const ed_field *f = kind ? kind->fields : NULL; f && f->name; f++)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}

/* The word as the kind spells it. */
static const char *spelled(const ed_field *field, const char *word)
{
    for (const char *const *w = field ? field->limits.words : NULL; w && *w; w++)
        if (!strcasecmp(*w, word)) return *w;
    return word;
}

static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) fprintf(to, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', to);
}

static void put_object(FILE *to, const json *object);

/* A value of an option as text again; `field` is NULL if the kind has no such option. */
static void put_value(FILE *to, const json *j, const ed_field *field)
{
    const bool is_list = field && (field->type == ED_FIELD_INTS || field->type == ED_FIELD_AXES);
    switch (json_kind_of(j)) {
    case JSON_NULL: fputs("null", to); break;
    case JSON_BOOL: fputs(json_bool(j) ? "true" : "false", to); break;
    case JSON_NUMBER: fprintf(to, is_list ? "[%s]" : "%s", json_text(j)); break;
    case JSON_TEXT: put_text(to, spelled(field, json_text(j))); break;
    case JSON_OBJECT: put_object(to, j); break;
    case JSON_ARRAY:
        fputs("[", to);
        for (int64_t i = 0; i < json_count(j); i++) {
            if (i) fputs(", ", to);
            put_value(to, json_at(j, i), NULL);
        }
        fputs("]", to);
    }
}

static void put_object(FILE *to, const json *object)
{
    const char *family = json_text(json_get(object, "module"));
    const char *name = json_text(json_get(object, "class_name"));
    const ed_kind *kind = ed_kind_find(family, name);
    ed_clear_error(); /* ed_from_json says it too */
    fprintf(to, "{\"module\": \"%s\", \"class_name\": \"%s\", \"config\": {", family, name);
    const json *config = json_get(object, "config");
    for (int64_t i = 0; i < json_count(config); i++) {
        const char *key = json_key(config, i);
        fprintf(to, "%s\"%s\": ", i ? ", " : "", key);
        put_value(to, json_at(config, i), field_named(kind, key));
    }
    fputs("}}", to);
}

void *reference_object(reference_case *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    put_object(to, json_get(c->json, "object"));
    fclose(to);
    void *made = ed_from_json(text);
    if (!made) reference_differs(c, "can't be made of %s", text);
    free(text);
    return made;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

void reference_differs(reference_case *c, const char *format, ...)
{
    char what[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!c->quiet)
        print_error("%s %s: %s: %s%s%s\n", c->file->family, c->file->kind, c->name, what,
                    ed_failed() ? ": " : "", ed_error());
    ed_clear_error();
    c->differences++;
}

/* "[1, 2]" for an index of all elements in row-major order. */
static const char *place(const ed_tensor *t, int64_t i, char *text, size_t size)
{
    int64_t at[ED_MAX_RANK];
    size_t used = 1;
    for (int axis = ed_rank(t) - 1; axis >= 0; axis--) {
        at[axis] = i % ed_dim(t, axis);
        i /= ed_dim(t, axis);
    }
    strcpy(text, "[");
    for (int axis = 0; axis < ed_rank(t) && used < size; axis++)
        used += (size_t)snprintf(text + used, size - used, axis ? ", %lld" : "%lld",
                                 (long long)at[axis]);
    if (used + 1 < size) strcpy(text + used, "]");
    return text;
}

static bool zeros(const ed_tensor *t)
{
    const double *x = ed_data(ed_cast((ed_tensor *)t, ED_FLOAT64));
    for (int64_t i = 0; i < ed_size(t); i++)
        if (x[i] != 0) return false;
    return true;
}

static bool same_form(reference_case *c, const char *what, const ed_tensor *got,
                      const ed_tensor *expected)
{
    bool same = ed_rank(got) == ed_rank(expected) && ed_dtype_of(got) == ed_dtype_of(expected);
    for (int axis = 0; same && axis < ed_rank(got); axis++)
        same = ed_dim(got, axis) == ed_dim(expected, axis);
    if (!same)
        reference_differs(c, "%s is %s, expected %s", what, ed_to_string(got),
                          ed_to_string(expected));
    return same;
}

static bool same_elements(reference_case *c, const char *what, const ed_tensor *got,
                          const ed_tensor *expected)
{
    const double *a = ed_data(ed_cast((ed_tensor *)got, ED_FLOAT64));
    const double *b = ed_data(ed_cast((ed_tensor *)expected, ED_FLOAT64));
    const bool exact = ed_dtype_of(expected) != ED_FLOAT32 && ed_dtype_of(expected) != ED_FLOAT64;
    const double tolerance = exact ? 0 : c->tolerance;
    double largest = c->magnitude, off = 0;
    int64_t worst = -1;
    for (int64_t i = 0; i < ed_size(expected); i++)
        if (isfinite(b[i])) largest = fmax(largest, fabs(b[i]));
    for (int64_t i = 0; i < ed_size(expected); i++) {
        if (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) continue;
        const double distance = isfinite(a[i]) && isfinite(b[i]) ? fabs(a[i] - b[i]) : INFINITY;
        if (worst < 0 || distance > off) {
            worst = i;
            off = distance;
        }
    }
    if (worst < 0) return true;
    c->worst = fmax(c->worst, off / largest);
    if (off <= tolerance * largest + (exact ? 0 : DBL_MIN)) return true;
    char at[100];
    reference_differs(c, "%s%s is %.17g, expected %.17g: relative error %.2g, allowed %.2g", what,
                      place(expected, worst, at, sizeof at), a[worst], b[worst], off / largest,
                      tolerance);
    return false;
}

bool reference_compare(reference_case *c, const char *what, ed_tensor *got, const json *array)
{
    ED_SCOPE;
    if (ed_failed()) {
        reference_differs(c, "%s", what);
        return false;
    }
    ed_tensor *expected = reference_tensor(c, array);
    if (!expected || !got) {
        ed_tensor *other = expected ? expected : got;
        if (!other || zeros(other)) return true;
        reference_differs(c, "%s is %s, expected %s", what, ed_to_string(got),
                          ed_to_string(expected));
        ed_clear_error();
        return false;
    }
    return same_form(c, what, got, expected) && same_elements(c, what, got, expected);
}
