#include "train/state_file.h"
#include "io/file.h"
#include "io/json.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text format is parsed as protocol buffers define it: fields in any order, comments, both
 * kinds of quotes, adjacent strings, lists in brackets. An unknown field makes the file damaged,
 * as in TensorFlow. If the newest is given several times, the last one counts. */

void state_free(state *s)
{
    for (int64_t i = 0; i < s->count; i++) memory_free(s->entries[i].path);
    memory_free(s->entries);
    memory_free(s->latest);
    memory_free(s->best);
    *s = (state){0};
}

static bool add_owned(state *s, char *path, double timestamp)
{
    if (path && s->count == s->capacity) {
        int64_t more = s->capacity ? 2 * s->capacity : HARD(1, 8);
        state_entry *grown = memory_grow(s->entries, (size_t)s->capacity * sizeof *grown,
                                         (size_t)more * sizeof *grown);
        if (!grown) {
            memory_free(path);
            return false;
        }
        s->entries = grown;
        s->capacity = more;
    }
    if (path) s->entries[s->count++] = (state_entry){path, timestamp};
    return path;
}

bool state_add(state *s, const char *path, double timestamp)
{
    return add_owned(s, text_copy(path), timestamp);
}

bool state_copy(const state *from, state *to)
{
    *to = (state){
        .last_preserved = from->last_preserved, .metric = from->metric, .highest = from->highest};
    bool fine = (!from->latest || (to->latest = text_copy(from->latest))) &&
                (!from->best || (to->best = text_copy(from->best)));
    for (int64_t i = 0; fine && i < from->count; i++)
        fine = state_add(to, from->entries[i].path, from->entries[i].timestamp);
    if (!fine) state_free(to);
    return fine;
}

int64_t state_find(const state *s, const char *path)
{
    for (int64_t i = 0; i < s->count; i++)
        if (!strcmp(s->entries[i].path, path)) return i;
    return -1;
}

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct reader {
    const char *at, *end; /* *end is 0 */
    const char *folder;
    state *s;
    io_buffer times; /* doubles, in the file's order */
    bool damaged;
} reader;

static bool note_damage(reader *r)
{
    r->damaged = true;
    return false;
}

static bool take_mark(reader *r, char mark)
{
    if (r->at >= r->end || *r->at != mark) return false;
    r->at++;
    return true;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : 99;
}

/* Exactly so many hexadecimal digits; -1 if there are fewer. */
static int64_t read_hex(reader *r, int digits)
{
    int64_t value = 0;
    for (; digits && digit_of(*r->at) < 16; digits--) value = value * 16 + digit_of(*r->at++);
    return digits ? -1 : value;
}

/* After \u or \U: a code point, also one of two \u that are UTF-16's surrogates. */
static bool read_code_point(reader *r, io_buffer *b, int digits)
{
    char bytes[4];
    int64_t c = read_hex(r, digits);
    if (c >= 0xd800 && c < 0xdc00 && digits == 4 && take_mark(r, '\\') && take_mark(r, 'u')) {
        int64_t low = read_hex(r, 4);
        c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + low - 0xdc00 : -1;
    }
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return note_damage(r);
    io_put(b, bytes, (size_t)(io_put_utf8(bytes, (uint32_t)c) - bytes));
    return true;
}

/* After a backslash: a letter, up to three octal or two hexadecimal digits for a byte, or a code
 * point. */
static bool read_escape(reader *r, io_buffer *b)
{
    static const char letters[] = "abfnrtv\\'\"?", bytes[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *letter = r->at < r->end ? strchr(letters, *r->at) : NULL;
    if (letter && *letter) {
        io_put_u8(b, (uint8_t)bytes[letter - letters]);
        r->at++;
        return true;
    }
    if (take_mark(r, 'u')) return read_code_point(r, b, 4);
    if (take_mark(r, 'U')) return read_code_point(r, b, 8);
    bool hex = take_mark(r, 'x') || take_mark(r, 'X');
    int value = 0, base = hex ? 16 : 8, digits = 0;
    for (; digits < (hex ? 2 : 3) && digit_of(*r->at) < base; digits++)
        value = value * base + digit_of(*r->at++);
    if (!digits || value > 255) return note_damage(r);
    io_put_u8(b, (uint8_t)value);
    return true;
}

static bool read_quoted(reader *r, io_buffer *b)
{
    const char quote = r->at < r->end ? *r->at : 0;
    if (quote != '"' && quote != '\'') return note_damage(r);
    for (r->at++; r->at < r->end && *r->at != '\n';) {
        if (take_mark(r, quote)) return true;
        if (take_mark(r, '\\')) {
            if (!read_escape(r, b)) return false;
        } else
            io_put_u8(b, (uint8_t)*r->at++);
    }
    return note_damage(r);
}

/* The string in a buffer, which the caller owns; NULL, damaged, if it contains a zero byte. */
static char *text_of(reader *r, io_buffer *b)
{
    io_put_u8(b, 0);
    char *made = b->failed ? NULL : (char *)b->data;
    if (made && strlen(made) + 1 == b->size) return made;
    if (made) note_damage(r);
    io_buffer_free(b);
    return NULL;
}

static bool read_double(reader *r, double *value)
{
    char digits[64];
    size_t n = strspn(r->at, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.+-");
    if (!n || n >= sizeof digits || memchr(r->at, 'x', n) || memchr(r->at, 'X', n))
        return note_damage(r);
    memcpy(digits, r->at, n);
    digits[n] = 0;
    char *end;
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL); /* constant, for the decimal point */
    *value = strtod_l(digits, &end, plain);
    if (end > digits && (*end == 'f' || *end == 'F')) end++;
    if (end == digits || *end) return note_damage(r);
    r->at += n;
    return true;
}

/* After '#': our note of the best one; any other comment is ignored. */
static void read_comment(reader *r)
{
    static const char begin[] = " best ";
    const char *line = r->at, *end = strchrnul(line, '\n');
    reader word = {.at = line + sizeof begin - 1, .end = end};
    io_buffer b = {0};
    r->at = end;
    if (strncmp(line, begin, sizeof begin - 1) || !read_quoted(&word, &b)) {
        io_buffer_free(&b);
        return;
    }
    bool highest = !strncmp(word.at, " highest ", 9), lowest = !strncmp(word.at, " lowest ", 8);
    double metric;
    word.at += highest ? 9 : 8;
    char *path = text_of(&word, &b);
    if (path && (highest || lowest) && read_double(&word, &metric) && word.at == end) {
        memory_free(r->s->best);
        r->s->best = state_join(r->folder, path);
        r->s->metric = metric;
        r->s->highest = highest;
    }
    memory_free(path);
}

static void skip(reader *r)
{
    for (;;) {
        r->at += strspn(r->at, " \t\r\n\f\v");
        if (!take_mark(r, '#')) return;
        read_comment(r);
    }
}

/* A path as the program uses it: adjacent strings are joined. */
static char *read_path(reader *r)
{
    io_buffer b = {0};
    do {
        if (!read_quoted(r, &b)) {
            io_buffer_free(&b);
            return NULL;
        }
        skip(r);
    } while (r->at < r->end && (*r->at == '"' || *r->at == '\''));
    char *read = text_of(r, &b), *path = read && *read ? state_join(r->folder, read) : NULL;
    if (read && !*read) note_damage(r);
    memory_free(read);
    return path;
}

static bool read_latest(reader *r)
{
    memory_free(r->s->latest);
    return (r->s->latest = read_path(r));
}

static bool read_listed(reader *r)
{
    return add_owned(r->s, read_path(r), 0);
}

static bool read_time(reader *r)
{
    double time;
    if (!read_double(r, &time)) return false;
    io_put(&r->times, &time, sizeof time);
    return !r->times.failed;
}

static bool read_preserved(reader *r)
{
    return read_double(r, &r->s->last_preserved);
}

static const struct {
    const char *name;
    bool (*read)(reader *r);
    bool repeated;
} fields[] = {
    {"model_checkpoint_path", read_latest, false},
    {"all_model_checkpoint_paths", read_listed, true},
    {"all_model_checkpoint_timestamps", read_time, true},
    {"last_preserved_timestamp", read_preserved, false},
};

/* [a, b, c] */
static bool read_list(reader *r, bool (*read)(reader *r))
{
    skip(r);
    if (take_mark(r, ']')) return true;
    do {
        skip(r);
        if (!read(r)) return false;
        skip(r);
    } while (take_mark(r, ','));
    return take_mark(r, ']') || note_damage(r);
}

static bool read_field(reader *r)
{
    size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyz_"), i = 0,
           known = sizeof fields / sizeof *fields;
    while (i < known && (strlen(fields[i].name) != n || memcmp(fields[i].name, r->at, n))) i++;
    if (i == known) return note_damage(r);
    r->at += n;
    skip(r);
    if (!take_mark(r, ':')) return note_damage(r);
    skip(r);
    bool listed = fields[i].repeated && take_mark(r, '[');
    if (!(listed ? read_list(r, fields[i].read) : fields[i].read(r))) return false;
    skip(r);
    if (take_mark(r, ',') || take_mark(r, ';')) skip(r);
    return true;
}

/* Time stamps belong to the paths in the same order; the best one must be listed. */
static void settle(reader *r)
{
    state *s = r->s;
    int64_t times = (int64_t)(r->times.size / sizeof(double));
    for (int64_t i = 0; i < s->count && i < times; i++)
        memcpy(&s->entries[i].timestamp, r->times.data + (size_t)i * sizeof(double),
               sizeof(double));
    if (!s->best || state_find(s, s->best) >= 0) return;
    memory_free(s->best);
    s->best = NULL;
}

static state_found parse(const char *folder, const uint8_t *data, size_t size, state *s)
{
    reader r = {
        .at = (const char *)data, .end = (const char *)data + size, .folder = folder, .s = s};
    bool fine = true;
    for (skip(&r); fine && r.at < r.end;) fine = read_field(&r);
    if (fine) settle(&r);
    io_buffer_free(&r.times);
    if (fine && s->latest) return STATE_READ;
    state_free(s);
    return fine || r.damaged ? STATE_DAMAGED : STATE_FAILED;
}

state_found state_read(const char *folder, state *s)
{
    enum { LIMIT = 256 << 20 };
    *s = (state){0};
    char *path = state_join(folder, "checkpoint");
    if (!path) return STATE_FAILED;
    error_saved earlier;
    error_save(&earlier);
    uint8_t *data = NULL;
    size_t size;
    bool there = io_read_file("checkpoint", path, LIMIT, &data, &size);
    ed_error_code code = ed_error_kind();
    error_restore(&earlier, io_is_loss(code));
    memory_free(path);
    if (!there)
        return code == ED_NOT_FOUND   ? STATE_NONE
               : code == ED_DATA_LOSS ? STATE_DAMAGED
                                      : STATE_FAILED;
    state_found found = parse(folder, data, size, s);
    memory_free(data);
    return found;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* In quotes, escaped as in protocol buffers. */
static void put_text(io_buffer *b, const char *s)
{
    static const char escaped[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
    bool readable = io_is_utf8(s, strlen(s));
    io_put_u8(b, '"');
    for (const char *c = s; *c; c++) {
        const char *letter = strchr(escaped, *c);
        uint8_t byte = (uint8_t)*c;
        if (letter)
            io_put_format(b, "\\%c", letters[letter - escaped]);
        else if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !readable))
            io_put_format(b, "\\%03o", byte);
        else
            io_put_u8(b, byte);
    }
    io_put_u8(b, '"');
}

/* The shortest decimal number that is read back as the same double, in Python's format:
 * 1700002700.0, 1e+16. The decimal point does not depend on the locale. */
static void put_double(io_buffer *b, double value)
{
    if (!isfinite(value)) {
        io_put_format(b, "%s", value != value ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    char printed[64], digits[20];
    int n = 0, precision = 0;
    do snprintf(printed, sizeof printed, "%.*e", precision, fabs(value));
    while (strtod(printed, NULL) != fabs(value) && ++precision < 17);
    const char *c = printed;
    for (; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    int exponent = atoi(c + 1);
    if (signbit(value)) io_put_u8(b, '-');
    if (exponent < -4 || exponent >= 16) {
        io_put_format(b, "%c%s%.*se%+03d", digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                      exponent);
        return;
    }
    if (exponent < 0) io_put_format(b, "0.%.*s", -exponent - 1, "000");
    for (int i = 0; i < n || i <= exponent + 1; i++) {
        if (i && i == exponent + 1) io_put_u8(b, '.');
        io_put_u8(b, (uint8_t)(i < n ? digits[i] : '0'));
    }
}

static bool put_path(io_buffer *b, const char *before, const char *folder, const char *path)
{
    char *relative = state_relative(folder, path);
    if (!relative) return false;
    io_put_format(b, "%s", before);
    put_text(b, relative);
    memory_free(relative);
    return true;
}

static void put_number(io_buffer *b, const char *before, double value)
{
    io_put_format(b, "%s", before);
    put_double(b, value);
    io_put_u8(b, '\n');
}

static bool put_state(io_buffer *b, const char *folder, const state *s)
{
    if (!put_path(b, "model_checkpoint_path: ", folder, s->latest ? s->latest : "")) return false;
    io_put_u8(b, '\n');
    for (int64_t i = 0; i < s->count; i++) {
        if (!put_path(b, "all_model_checkpoint_paths: ", folder, s->entries[i].path)) return false;
        io_put_u8(b, '\n');
    }
    int64_t times = s->count; /* readers count them from the first path on */
    while (times && s->entries[times - 1].timestamp == 0) times--;
    for (int64_t i = 0; i < times; i++)
        put_number(b, "all_model_checkpoint_timestamps: ", s->entries[i].timestamp);
    if (s->last_preserved) put_number(b, "last_preserved_timestamp: ", s->last_preserved);
    if (s->best) {
        if (!put_path(b, "# best ", folder, s->best)) return false;
        put_number(b, s->highest ? " highest " : " lowest ", s->metric);
    }
    return !b->failed;
}

bool state_write(const char *who, const char *folder, const state *s)
{
    io_buffer b = {0};
    char *path = state_join(folder, "checkpoint");
    bool fine = path && put_state(&b, folder, s) && io_write_file(who, path, b.data, b.size);
    io_buffer_free(&b);
    memory_free(path);
    return fine;
}
