/*
 * Tables of numbers and words from CSV files (RFC 4180): fields between delimiters, in quotes where
 * they have delimiters, quotes (doubled) or ends of lines. Blank lines are passed over; spaces
 * around a field without quotes, a byte order mark and the ends of lines of other systems do not
 * matter.
 *
 * The file is mapped and read twice: lines are counted first, so that the tensor is made in its
 * size, and every line is known to have as many fields as the first.
 */
#include "data/data.h"
#include "io/file.h"
#include "tensor/nearest.h"
#include "tensor/schema_core.h"
#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct csv {
    const char *who; /* the function, for errors */
    const char *path, *at, *end;
    int64_t line; /* of `at`, the first is 1 */
    char delimiter;
    int64_t columns, chosen;
    const char **names; /* of all columns */
    int64_t *order;     /* the column of each one that is chosen */
} csv;

typedef struct csv_field {
    const char *s; /* within the quotes, without blanks around it */
    size_t length;
    int64_t line;
    bool quoted, last; /* of its line */
} csv_field;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static void *csv_fail(const csv *c, int64_t line, const char *what)
{
    return ed_fail(ED_DATA_LOSS, "%s: %s: line %lld: %s", c->who, c->path, (long long)line, what);
}

/* Moves behind the end of a line: LF, CR or both. */
static void pass_end(csv *c)
{
    if (c->at < c->end && *c->at == '\r') c->at++;
    if (c->at < c->end && *c->at == '\n') c->at++;
    c->line++;
}

static bool is_end(const csv *c)
{
    return c->at == c->end || *c->at == '\n' || *c->at == '\r';
}

/* Moves behind a quoted field, whose first quote was read; false with an error. */
static bool pass_quoted(csv *c, csv_field *f)
{
    f->quoted = true;
    f->s = c->at;
    for (; c->at < c->end; c->at++) {
        if (*c->at == '\n') c->line++;
        if (*c->at != '"') continue;
        if (c->at + 1 == c->end || c->at[1] != '"') break;
        c->at++;
    }
    if (c->at == c->end) return csv_fail(c, f->line, "a quote is not closed");
    f->length = (size_t)(c->at++ - f->s);
    while (c->at < c->end && is_blank(*c->at) && *c->at != c->delimiter) c->at++;
    if (is_end(c) || *c->at == c->delimiter) return true;
    return csv_fail(c, c->line, "something follows the closing quote of a field");
}

static bool next_field(csv *c, csv_field *f)
{
    *f = (csv_field){.line = c->line};
    while (c->at < c->end && is_blank(*c->at) && *c->at != c->delimiter) c->at++;
    if (c->at < c->end && *c->at == '"') {
        c->at++;
        if (!pass_quoted(c, f)) return false;
    } else {
        f->s = c->at;
        while (!is_end(c) && *c->at != c->delimiter) c->at++;
        f->length = (size_t)(c->at - f->s);
        while (f->length && is_blank(f->s[f->length - 1])) f->length--;
    }
    f->last = is_end(c);
    if (f->last)
        pass_end(c);
    else
        c->at++;
    return true;
}

/* Moves to the next line that is not blank; false at the end. */
static bool next_line(csv *c)
{
    for (;;) {
        const char *s = c->at;
        while (s < c->end && is_blank(*s) && *s != c->delimiter) s++;
        if (s == c->end) return false;
        if (*s != '\n' && *s != '\r') return true;
        c->at = s;
        pass_end(c);
    }
}

/* The number of fields of the line, to whose end it moves; 0 with an error. */
static int64_t count_fields(csv *c)
{
    csv_field f = {0};
    int64_t n = 0;
    for (; !f.last; n++)
        if (!next_field(c, &f)) return 0;
    return n;
}

/* The field as a string in the scope; NULL without memory. */
static const char *field_text(const csv_field *f)
{
    char *s = ed_scope_alloc(f->length + 1);
    size_t n = 0;
    for (size_t i = 0; s && i < f->length; i++) {
        if (f->quoted && f->s[i] == '"') i++; /* the second of two */
        s[n++] = f->s[i];
    }
    if (s) s[n] = 0;
    return s;
}

/* ---- Columns --------------------------------------------------------------------------------- */

/* The names, in the scope: those of the first line, or numbers, which leave it to be read. */
static bool read_names(csv *c, bool header)
{
    if (!next_line(c)) return csv_fail(c, c->line, "the file has no lines");
    csv first = *c;
    if (!(c->columns = count_fields(&first))) return false;
    c->names = ed_scope_alloc((size_t)c->columns * sizeof *c->names);
    if (!c->names) return false;
    for (int64_t i = 0; i < c->columns; i++) {
        csv_field f;
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i + 1);
        if (!header)
            f = (csv_field){.s = number, .length = strlen(number)};
        else if (!next_field(c, &f))
            return false;
        if (!(c->names[i] = field_text(&f))) return false;
    }
    return true;
}

static int64_t find_column(const csv *c, const char *name)
{
    nearest_words near = {0};
    int64_t found = -1;
    for (int64_t i = 0; i < c->columns; i++) {
        nearest_see(&near, name, c->names[i]);
        if (strcmp(c->names[i], name) != 0) continue;
        if (found >= 0)
            return ed_fail(ED_INVALID_ARGUMENT, "%s: %s has two columns \"%s\"", c->who, c->path,
                           name),
                   -1;
        found = i;
    }
    char hint[256];
    nearest_text(&near, hint, sizeof hint);
    if (found < 0)
        ed_fail(ED_NOT_FOUND, "%s: %s has no column \"%s\"%s%s", c->who, c->path, name,
                *hint ? "; " : "", hint);
    return found;
}

/* Those that `wanted` names, a line as that of the names; NULL: all. */
static bool choose_columns(csv *c, const char *wanted)
{
    csv list = {.who = c->who, .path = "columns", .at = wanted, .line = 1, .delimiter = ','};
    csv_field f = {0};
    if (wanted) list.end = wanted + strlen(wanted);
    csv counted = list;
    if (wanted && !(c->chosen = count_fields(&counted))) return false;
    if (!wanted) c->chosen = c->columns;
    if (!(c->order = ed_scope_alloc((size_t)c->chosen * sizeof *c->order))) return false;
    for (int64_t i = 0; i < c->chosen; i++) {
        if (!wanted) {
            c->order[i] = i;
            continue;
        }
        const char *name = next_field(&list, &f) ? field_text(&f) : NULL;
        if (!name || (c->order[i] = find_column(c, name)) < 0) return false;
    }
    return true;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool is_missing(const char *s)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "null", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(s, words[i])) return true;
    return false;
}

/* A decimal number, or "inf"; strtod alone would take hexadecimal ones too. */
static bool parse_number(const char *s, double *value)
{
    const char *digits = s + (*s == '-' || *s == '+');
    const bool infinite = !strcasecmp(digits, "inf") || !strcasecmp(digits, "infinity");
    if (!infinite && (!*s || strspn(s, "0123456789+-.eE") != strlen(s))) return false;
    char *end;
    *value = strtod_l(s, &end, newlocale(LC_ALL_MASK, "C", NULL)); /* constant: not freed */
    return end > s && !*end;
}

static bool store_number(const csv *c, const csv_field *f, const char *name,
                         const ed_read_csv_options *o, char *to)
{
    char number[64], what[160];
    const int shown = f->length < 24 ? (int)f->length : 24;
    const bool fits = f->length < sizeof number;
    double value = o->missing;
    snprintf(number, sizeof number, "%.*s", fits ? (int)f->length : 0, f->s);
    const bool missing = fits && is_missing(number);
    if (!missing && !(fits && parse_number(number, &value)))
        snprintf(what, sizeof what, "column \"%.40s\": \"%.*s\" is not a number", name, shown,
                 f->s);
    else if (ed_dtype_holds(o->dtype, value))
        return ed_dtype_store(o->dtype, to, 0, value);
    else if (missing)
        snprintf(what, sizeof what,
                 "column \"%.40s\": no value; %s has no NaN, so set .missing = 0", name,
                 ed_dtype_name(o->dtype));
    else
        snprintf(what, sizeof what, "column \"%.40s\": %.*s is no value of %s", name, shown, f->s,
                 ed_dtype_name(o->dtype));
    return csv_fail(c, f->line, what);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The number of lines that follow, which all have as many fields as there are columns; -1 with an
 * error. */
static int64_t count_rows(csv c)
{
    int64_t rows = 0;
    for (; next_line(&c); rows++) {
        const int64_t line = c.line, n = count_fields(&c);
        char what[96];
        if (n == c.columns) continue;
        snprintf(what, sizeof what, "%lld fields, and %lld in the first line", (long long)n,
                 (long long)c.columns);
        if (n) csv_fail(&c, line, what);
        return -1;
    }
    return rows;
}

/* The fields of the next line; the file may have changed since its lines were counted. */
static bool next_row(csv *c, csv_field *fields)
{
    if (!next_line(c)) return csv_fail(c, c->line, "the file became shorter");
    for (int64_t i = 0; i < c->columns; i++)
        if (!next_field(c, &fields[i])) return false;
    return true;
}

/* Reads the fields of all lines into [rows, columns]. */
static bool fill_rows(csv *c, const ed_read_csv_options *o, ed_tensor *t)
{
    const size_t size = dtype_size(t->dtype);
    csv_field *fields = ed_scope_alloc((size_t)c->columns * sizeof *fields);
    char *to = t->data;
    if (!fields) return false;
    for (int64_t row = 0; row < t->shape[0]; row++) {
        if (!next_row(c, fields)) return false;
        for (int64_t i = 0; i < c->chosen; i++, to += size) {
            const int64_t column = c->order[i];
            if (!store_number(c, &fields[column], c->names[column], o, to)) return false;
        }
    }
    return true;
}

static ed_tensor *read_rows(csv *c, const ed_read_csv_options *o)
{
    const int64_t shape[] = {count_rows(*c), c->chosen};
    ed_tensor *t = shape[0] < 0 ? NULL : scope_give(tensor_new(o->dtype, 2, shape));
    return t && fill_rows(c, o, t) ? t : NULL;
}

/* The chosen fields of all lines as texts, row by row. */
static ed_strings read_words(csv *c)
{
    const ed_strings none = {0};
    const int64_t rows = count_rows(*c);
    if (rows < 0) return none;
    const char **words = ed_scope_alloc((size_t)(rows * c->chosen + 1) * sizeof *words),
               **to = words;
    csv_field *fields = ed_scope_alloc((size_t)c->columns * sizeof *fields);
    if (!words || !fields) return none;
    for (int64_t row = 0; row < rows; row++) {
        if (!next_row(c, fields)) return none;
        for (int64_t i = 0; i < c->chosen; i++)
            if (!(*to++ = field_text(&fields[c->order[i]]))) return none;
    }
    return (ed_strings){words, rows * c->chosen};
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* A complete copy of the options, checked; NULL on failure. */
static const ed_read_csv_options *checked(const csv *c, const ed_read_csv_options *options)
{
    const ed_read_csv_options *o = CHECKED_OPTIONS(c->who, ED_READ_CSV_OPTIONS, options);
    if (!o) return NULL;
    if (!c->path) return ed_fail(ED_INVALID_ARGUMENT, "%s: path is NULL", c->who);
    if (!o->delimiter || strlen(o->delimiter) != 1 || strchr("\"\r\n", *o->delimiter))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: delimiter must be one character, such as \",\" or \";\"", c->who);
    if (o->dtype == ED_DTYPE_NONE) return ed_fail(ED_INVALID_ARGUMENT, "%s: dtype is none", c->who);
    return o;
}

/* Opens the file and chooses columns: the mapping of the file, in the scope. */
static ed_buffer *open_table(csv *c, const ed_read_csv_options *o)
{
    io_file file;
    if (!io_open(&file, c->who, c->path)) return NULL;
    ed_buffer *map = io_map(&file);
    const size_t size = (size_t)file.size;
    io_close(&file);
    if (!map) return NULL;
    c->at = map->data;
    c->end = c->at + size;
    c->line = 1;
    c->delimiter = *o->delimiter;
    if (size >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3)) c->at += 3;
    if (read_names(c, o->header) && choose_columns(c, o->columns)) return map;
    memory_buffer_release(map);
    return NULL;
}

ed_tensor *ed_read_csv_with(const char *path, const ed_read_csv_options *options)
{
    csv c = {.who = "read_csv", .path = path};
    if (!(options = checked(&c, options))) return NULL;
    ED_SCOPE;
    ed_buffer *map = open_table(&c, options);
    ed_tensor *t = map ? read_rows(&c, options) : NULL;
    if (map) memory_buffer_release(map);
    return t ? ed_keep(t) : NULL;
}

const char *const *ed_read_csv_names_with(const char *path, const ed_read_csv_options *options)
{
    csv c = {.who = "read_csv_names", .path = path};
    if (!(options = checked(&c, options))) return NULL;
    ed_buffer *map = open_table(&c, options);
    if (!map) return NULL;
    memory_buffer_release(map);
    const char **names = ed_scope_alloc((size_t)(c.chosen + 1) * sizeof *names);
    for (int64_t i = 0; names && i <= c.chosen; i++)
        names[i] = i < c.chosen ? c.names[c.order[i]] : NULL;
    return names;
}

ed_strings ed_read_csv_words_with(const char *path, const ed_read_csv_options *options)
{
    csv c = {.who = "read_csv_words", .path = path};
    if (!(options = checked(&c, options))) return (ed_strings){0};
    ed_buffer *map = open_table(&c, options);
    const ed_strings words = map ? read_words(&c) : (ed_strings){0};
    if (map) memory_buffer_release(map);
    return words;
}
