#include "tensor/schema_core.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Strings of tensors, in NumPy's form: numbers that say as much as is needed to read them back, at
 * most so many digits behind the point, all of one width; lines of bounded width; of large tensors
 * the first and last elements of each axis.
 *
 * Two passes over what is shown: the first finds the width and form that suits all elements, the
 * second writes.
 */

enum { NUMBER = 400 }; /* room for a number's text */

/* ---- Growing text ---------------------------------------------------------------------------- */

typedef struct writer {
    char *text;
    size_t used, capacity;
    size_t line; /* where the present line begins */
    bool failed;
} writer;

static void put_bytes(writer *w, const char *s, size_t n)
{
    if (w->used + n > w->capacity) {
        size_t capacity = HARD(w->used + n, 2 * (w->used + n) + 256);
        char *larger = w->failed ? NULL : memory_grow(w->text, w->used, capacity);
        if (!larger) {
            w->failed = true;
            return;
        }
        w->text = larger;
        w->capacity = capacity;
    }
    memcpy(w->text + w->used, s, n);
    w->used += n;
}

static void put_text(writer *w, const char *s)
{
    put_bytes(w, s, strlen(s));
}

static void put_spaces(writer *w, int n)
{
    while (n-- > 0) put_bytes(w, " ", 1);
}

static void put_line_end(writer *w, int newlines)
{
    while (newlines-- > 0) put_bytes(w, "\n", 1);
    w->line = w->used;
}

/* ---- Decimal numbers ------------------------------------------------------------------------- */

/* d.ddd... times 10 to the exponent, without trailing zeros; a single 0 for zero. */
typedef struct decimal {
    char digits[24];
    int count, exponent;
} decimal;

static void drop_zeros(decimal *d)
{
    while (d->count > 1 && d->digits[d->count - 1] == '0') d->count--;
}

/* What printf makes of a positive number, whatever the locale puts for the point. */
static decimal parse(const char *s)
{
    decimal d = {.count = 0};
    for (; *s && *s != 'e'; s++)
        if (*s >= '0' && *s <= '9' && d.count < (int)sizeof d.digits) d.digits[d.count++] = *s;
    d.exponent = *s ? atoi(s + 1) : 0;
    drop_zeros(&d);
    return d;
}

static bool reads_back(ed_dtype dtype, const char *s, double value)
{
    switch (dtype) {
    case ED_FLOAT64: return strtod(s, NULL) == value;
    case ED_FLOAT16: return half_to_float(half_from_float(strtof(s, NULL))) == value;
    case ED_BFLOAT16: return bfloat16_to_float(bfloat16_from_float(strtof(s, NULL))) == value;
    default: return strtof(s, NULL) == value;
    }
}

/* One more in the last of the digits of "d.ddde+xx"; false when that carries over. */
static bool step_up(char *s)
{
    char *last = strchr(s, 'e') - 1;
    return (*last)++ != '9';
}

/*
 * The fewest digits that read back as the number; of those with as few, the nearest. At powers of
 * two the numbers below are closer than those above, so that the nearest decimal may lie outside
 * where the next one up does not.
 */
static decimal shortest(ed_dtype dtype, double value)
{
    char s[40];
    for (int digits = 0; digits < 17; digits++) {
        snprintf(s, sizeof s, "%.*e", digits, value);
        if (reads_back(dtype, s, value)) break;
        if (step_up(s) && reads_back(dtype, s, value)) break;
    }
    return parse(s);
}

static decimal with_places(double value, int places)
{
    char s[40];
    snprintf(s, sizeof s, "%.*e", places, value);
    return parse(s);
}

/* Places behind the point when written without exponent. */
static int places(const decimal *d)
{
    int n = d->count - 1 - d->exponent;
    return n > 0 ? n : 0;
}

/* At most `precision` digits behind the point. The parts before and behind
 * it, without the point. */
static void positional(ed_dtype dtype, double value, int precision, char *whole, char *fraction)
{
    decimal d = shortest(dtype, value);
    if (places(&d) > precision) {
        char s[NUMBER];
        int n = snprintf(s, sizeof s, "%.*f", precision, value);
        memcpy(fraction, s + n - precision, (size_t)precision + 1);
        n = (int)strspn(s, "0123456789");
        memcpy(whole, s, (size_t)n);
        whole[n] = 0;
    } else {
        int n = 0, m = 0;
        for (int i = 0; i <= d.exponent; i++) whole[n++] = i < d.count ? d.digits[i] : '0';
        if (n == 0) whole[n++] = '0';
        for (int i = d.exponent + 1; i < d.count; i++) fraction[m++] = i < 0 ? '0' : d.digits[i];
        whole[n] = fraction[m] = 0;
    }
    for (size_t m = strlen(fraction); m > 0 && fraction[m - 1] == '0'; m--) fraction[m - 1] = 0;
}

/* ---- Form of all elements -------------------------------------------------------------------- */

typedef struct form {
    const ed_tensor *t;
    const ed_print_options *options;
    bool summary;
    bool exponential;
    int left, right; /* columns before and behind the point; of whole numbers all are before it */
    int exponent;    /* digits of exponents */
    /* of the finite elements */
    double smallest, largest; /* of those that are not 0, without sign */
    bool any_finite, any_odd, any_negative_inf;
} form;

static bool is_cut(const form *f, int axis)
{
    return f->summary && f->t->shape[axis] / 2 >= f->options->edge_items &&
           f->t->shape[axis] > 2 * f->options->edge_items;
}

static const char *element_at(const form *f, const char *data, int axis, int64_t i)
{
    return data + i * f->t->strides[axis] * (int64_t)dtype_size(f->t->dtype);
}

/* Calls see for every element that is shown. */
static void each(form *f, int axis, const char *data, void (*see)(form *f, const char *element))
{
    if (axis == f->t->rank) {
        see(f, data);
        return;
    }
    int64_t extent = f->t->shape[axis];
    for (int64_t i = 0; i < extent; i++) {
        if (is_cut(f, axis) && i == f->options->edge_items) i = extent - i;
        each(f, axis + 1, element_at(f, data, axis, i), see);
    }
}

static void widen(int *width, int n)
{
    if (n > *width) *width = n;
}

static void see_range(form *f, const char *element)
{
    double value = dtype_load(f->t->dtype, element, 0), size = fabs(value);
    if (!isfinite(value)) {
        f->any_odd = true;
        f->any_negative_inf |= value < 0;
        return;
    }
    f->any_finite = true;
    if (size == 0) return;
    if (size < f->smallest) f->smallest = size;
    if (size > f->largest) f->largest = size;
}

static void see_exponential(form *f, const char *element)
{
    double value = dtype_load(f->t->dtype, element, 0);
    if (!isfinite(value)) return;
    decimal d = shortest(f->t->dtype, fabs(value));
    const int precision = (int)f->options->precision;
    if (d.count - 1 > precision) d = with_places(fabs(value), precision);
    widen(&f->left, 1 + (signbit(value) != 0));
    widen(&f->right, d.count - 1);
    widen(&f->exponent, abs(d.exponent) >= 100 ? 3 : 2);
}

static void see_positional(form *f, const char *element)
{
    double value = dtype_load(f->t->dtype, element, 0);
    char whole[NUMBER], fraction[NUMBER];
    if (!isfinite(value)) return;
    positional(f->t->dtype, fabs(value), (int)f->options->precision, whole, fraction);
    widen(&f->left, (int)strlen(whole) + (signbit(value) != 0));
    widen(&f->right, (int)strlen(fraction));
}

/* At least `width` columns; returns how many. */
static int format_integer(ed_dtype dtype, const char *element, int width, char *s, size_t room)
{
    if (dtype == ED_UINT64)
        return snprintf(s, room, "%*" PRIu64, width, *(const uint64_t *)element);
    if (dtype == ED_INT64) return snprintf(s, room, "%*" PRId64, width, *(const int64_t *)element);
    return snprintf(s, room, "%*.0f", width, dtype_load(dtype, element, 0));
}

static void see_integer(form *f, const char *element)
{
    char s[24];
    widen(&f->left, format_integer(f->t->dtype, element, 0, s, sizeof s));
}

/* A number as the dtype has it: the comparisons below are made in it. */
static double in_dtype(ed_dtype dtype, double value)
{
    switch (dtype) {
    case ED_FLOAT64: return value;
    case ED_FLOAT16: return half_to_float(half_from_float((float)value));
    case ED_BFLOAT16: return bfloat16_to_float(bfloat16_from_float((float)value));
    default: return (float)value;
    }
}

/* From here on a number has more digits than the dtype knows, and takes an exponent. */
static double exponent_from(ed_dtype dtype)
{
    return dtype == ED_FLOAT64 ? 1e16 : dtype == ED_FLOAT32 ? 1e6 : 1e3;
}

static void find_float_form(form *f)
{
    ed_dtype dtype = f->t->dtype;
    f->smallest = INFINITY;
    each(f, 0, f->t->data, see_range);
    f->exponential = f->largest > 0 && (f->largest >= fmin(1e8, exponent_from(dtype)) ||
                                        f->smallest < in_dtype(dtype, 1e-4) ||
                                        in_dtype(dtype, f->largest / f->smallest) > 1000);
    each(f, 0, f->t->data, f->exponential ? see_exponential : see_positional);
    int right = f->exponential && f->any_finite ? f->right + f->exponent + 2 : f->right;
    if (f->any_odd) widen(&f->left, 3 + f->any_negative_inf - right - 1);
}

static void find_form(form *f)
{
    if (ed_dtype_is_float(f->t->dtype))
        find_float_form(f);
    else if (f->t->dtype != ED_BOOL)
        each(f, 0, f->t->data, see_integer);
}

/* ---- Elements -------------------------------------------------------------------------------- */

static const char *odd_name(double value)
{
    return isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/*
 * All have as many digits as the one that needs most: true ones, where it needs fewer itself. Like
 * the following, returns the number of columns.
 */
static int format_exponential(const form *f, double value, char *s, size_t room)
{
    decimal d = shortest(f->t->dtype, fabs(value));
    if (d.count - 1 != f->right) d = with_places(fabs(value), f->right);
    char fraction[24];
    for (int i = 0; i < f->right; i++) fraction[i] = i + 1 < d.count ? d.digits[i + 1] : '0';
    fraction[f->right] = 0;
    return snprintf(s, room, "%*s%c.%se%c%0*d", f->left - 1, signbit(value) ? "-" : "", d.digits[0],
                    fraction, d.exponent < 0 ? '-' : '+', f->exponent, abs(d.exponent));
}

static int format_positional(const form *f, double value, char *s, size_t room)
{
    char number[NUMBER] = "-", fraction[NUMBER];
    positional(f->t->dtype, fabs(value), (int)f->options->precision, number + 1, fraction);
    return snprintf(s, room, "%*s.%-*s", f->left, number + !signbit(value), f->right, fraction);
}

static int format_float(const form *f, double value, char *s, size_t room)
{
    if (isfinite(value))
        return f->exponential ? format_exponential(f, value, s, room)
                              : format_positional(f, value, s, room);
    int behind = f->exponential ? f->right + f->exponent + 2 : f->right;
    return snprintf(s, room, "%*s", f->left + behind + 1, odd_name(value));
}

static int format_element(const form *f, const char *element, char *s, size_t room)
{
    ed_dtype dtype = f->t->dtype;
    if (dtype == ED_BOOL) return snprintf(s, room, "%s", *element ? " True" : "False");
    if (ed_dtype_is_float(dtype)) return format_float(f, dtype_load(dtype, element, 0), s, room);
    return format_integer(dtype, element, f->left, s, room);
}

/* A number alone, as it is written in a program. */
static void put_scalar(writer *w, const ed_tensor *t)
{
    char s[2 * NUMBER + 8], whole[NUMBER], fraction[NUMBER];
    double value = dtype_load(t->dtype, t->data, 0), size = fabs(value);
    if (t->dtype == ED_BOOL) {
        snprintf(s, sizeof s, "%s", value != 0 ? "True" : "False");
    } else if (!ed_dtype_is_float(t->dtype)) {
        format_integer(t->dtype, t->data, 0, s, sizeof s);
    } else if (!isfinite(value)) {
        snprintf(s, sizeof s, "%s", odd_name(value));
    } else if (size == 0 || (size >= 1e-4 && size < exponent_from(t->dtype))) {
        positional(t->dtype, size, NUMBER - 100, whole, fraction);
        snprintf(s, sizeof s, "%s%s.%s", signbit(value) ? "-" : "", whole,
                 *fraction ? fraction : "0");
    } else {
        decimal d = shortest(t->dtype, size);
        snprintf(s, sizeof s, "%s%c%s%.*se%c%02d", value < 0 ? "-" : "", d.digits[0],
                 d.count > 1 ? "." : "", d.count - 1, d.digits + 1, d.exponent < 0 ? '-' : '+',
                 abs(d.exponent));
    }
    put_text(w, s);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* A word of a row, on a new line if it doesn't fit on this one and the line has words already. */
static void put_word(writer *w, const form *f, int64_t i, const char *word, size_t n)
{
    if (i > 0 && w->used - w->line + 1 + n > (size_t)(f->options->width - f->t->rank)) {
        while (w->used > w->line && w->text[w->used - 1] == ' ') w->used--;
        put_line_end(w, 1);
        put_spaces(w, f->t->rank);
    } else if (i > 0) {
        put_bytes(w, " ", 1);
    }
    put_bytes(w, word, n);
}

static void put_row(writer *w, const form *f, const char *data)
{
    int axis = f->t->rank - 1;
    int64_t extent = f->t->shape[axis];
    for (int64_t i = 0; i < extent && !w->failed; i++) {
        char s[NUMBER];
        if (is_cut(f, axis) && i == f->options->edge_items) {
            put_word(w, f, i, "...", 3);
            i = extent - i;
        }
        int n = format_element(f, element_at(f, data, axis, i), s, sizeof s);
        put_word(w, f, i, s, (size_t)n);
    }
}

static void put_array(writer *w, const form *f, int axis, const char *data)
{
    int64_t extent = f->t->shape[axis];
    int newlines = f->t->rank - 1 - axis;
    put_bytes(w, "[", 1);
    if (newlines == 0) put_row(w, f, data);
    for (int64_t i = 0; newlines && i < extent && !w->failed; i++) {
        if (i > 0) {
            put_line_end(w, newlines);
            put_spaces(w, axis + 1);
        }
        if (is_cut(f, axis) && i == f->options->edge_items) {
            put_bytes(w, "...", 3);
            put_line_end(w, newlines);
            put_spaces(w, axis + 1);
            i = extent - i;
        }
        put_array(w, f, axis + 1, element_at(f, data, axis, i));
    }
    put_bytes(w, "]", 1);
}

static void put_tensor(writer *w, const ed_tensor *t, const ed_print_options *options)
{
    form f = {.t = t, .options = options, .summary = t->size > options->threshold};
    if (t->flags & TENSOR_HOLLOW) {
        put_text(w, "(no elements yet)");
    } else if (t->size == 0) {
        put_bytes(w, "[]", 2);
    } else if (t->rank == 0) {
        put_scalar(w, t);
    } else {
        find_form(&f);
        put_array(w, &f, 0, t->data);
    }
}

static void put_description(writer *w, const ed_tensor *t)
{
    char s[64];
    if (ed_is_variable(t)) {
        put_text(w, "\nvariable \"");
        put_text(w, ed_variable_name(t));
        put_text(w, "\" ");
    } else {
        put_text(w, "\ntensor ");
    }
    snprintf(s, sizeof s, "%s ", ed_dtype_name(t->dtype));
    put_text(w, s);
    put_text(w, text_of_ints(tensor_open_shape(t), t->rank).s);
    put_bytes(w, "", 1);
}

/* ---- The functions --------------------------------------------------------------------------- */

const char *ed_to_string_with(const ed_tensor *tensor, const ed_print_options *options)
{
    if (!tensor) return ed_fail(ED_INVALID_ARGUMENT, "to_string: tensor is NULL");
    if (!(options = CHECKED_OPTIONS("to_string", ED_PRINT_OPTIONS, options))) return NULL;
    const ed_tensor *elements = tensor_read(tensor);
    if (!elements) return NULL;
    writer w = {0};
    put_tensor(&w, elements, options);
    put_description(&w, tensor);
    if (!w.failed) return text_give(w.text);
    memory_free(w.text);
    return NULL;
}

/* The value of a call that failed, or an unconnected gradient. */
static bool print_null(FILE *file)
{
    if (ed_failed()) return fprintf(file, "NULL (%s)\n", ed_error()), false;
    ed_fail(ED_INVALID_ARGUMENT, "print: tensor is NULL");
    return error_explain_null(), false;
}

bool ed_print_with(FILE *file, const ed_tensor *tensor, const ed_print_options *options)
{
    if (!file) return ed_fail(ED_INVALID_ARGUMENT, "print: file is NULL"), false;
    if (!tensor) return print_null(file);
    ED_SCOPE;
    const char *s = ed_to_string_with(tensor, options);
    if (!s) return false;
    if (fputs(s, file) >= 0 && fputc('\n', file) != EOF) return true;
    return ed_fail(ED_IO, "print: the file can't be written"), false;
}
