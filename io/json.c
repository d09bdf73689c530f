#include "io/json.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/* The length of the character at p in bytes, 0 if it is invalid. */
static int utf8_length(const uint8_t *p, const uint8_t *end)
{
    if (*p < 0x80) return 1;
    int n = *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    if (!n || end - p < n) return 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    bool too_long = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xf0 && p[1] < 0x90);
    bool no_character = (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf4 && p[1] >= 0x90);
    return too_long || no_character ? 0 : n;
}

/* The first byte that does not begin a valid character, or the end. Most strings are ASCII:
 * eight bytes at a time. */
static const uint8_t *utf8_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, 8), !(eight & 0x8080808080808080))) {
            p += 8;
            continue;
        }
        int n = utf8_length(p, end);
        if (!n) break;
        p += n;
    }
    return p;
}

bool io_is_utf8(const void *data, size_t size)
{
    const uint8_t *end = (const uint8_t *)data + size;
    return utf8_end(data, end) == end;
}

char *io_put_utf8(char *to, uint32_t c)
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    *to = (char)(lead[n] | c);
    return to + n;
}

/* ---- Marks ----------------------------------------------------------------------------------- */

io_json io_json_on(char *text, size_t size)
{
    io_json j = {.begin = text, .at = text, .end = text + size};
    const uint8_t *good = utf8_end((const uint8_t *)text, (const uint8_t *)text + size);
    if (good == (const uint8_t *)text + size) return j;
    j.at = text + (good - (const uint8_t *)text);
    j.wrong = "it is not UTF-8";
    return j;
}

bool io_json_fail(io_json *j, const char *wrong)
{
    if (!j->wrong) j->wrong = wrong;
    return false;
}

char io_json_next(io_json *j)
{
    if (j->wrong) return 0;
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
    return j->at < j->end ? *j->at : 0;
}

bool io_json_take(io_json *j, char mark)
{
    if (io_json_next(j) == mark) return j->at++, true;
    switch (mark) {
    case '{': return io_json_fail(j, "expected an object");
    case '[': return io_json_fail(j, "expected an array");
    case ':': return io_json_fail(j, "expected ':'");
    default: return io_json_fail(j, "expected ',' or a closing bracket");
    }
}

bool io_json_member(io_json *j, int64_t n, char close)
{
    if (io_json_next(j) == close) return j->at++, false;
    return n ? io_json_take(j, ',') : !j->wrong;
}

bool io_json_end(io_json *j)
{
    io_json_next(j);
    return !j->wrong &&
           (j->at == j->end || io_json_fail(j, "unexpected data after the last bracket"));
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* Four hexadecimal digits at p, -1 if they are not. */
static int32_t four_digits(const char *p, const char *end)
{
    if (end - p < 4) return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = p[i] | 0x20;
        int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0'
                    : c >= 'a' && c <= 'f'     ? c - 'a' + 10
                                               : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The character of the escape after the backslash at *from; moves *from past it. -1 for an
 * invalid one. */
static int32_t escaped(char **from, const char *end)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char *p = *from + 1;
    if (p == end) return -1;
    const char *letter = *p ? strchr(letters, *p) : NULL;
    if (letter) return *from = p + 1, meant[letter - letters];
    if (*p++ != 'u') return -1;
    int32_t c = four_digits(p, end);
    if (c < 0) return -1;
    *from = p + 4;
    if (c < 0xd800 || c > 0xdfff) return c;
    if (c > 0xdbff || end - p < 10 || p[4] != '\\' || p[5] != 'u') return -1;
    int32_t low = four_digits(p + 6, end);
    *from = p + 10;
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* Takes a string; with `decode` it is decoded in place, where it never becomes longer. */
static bool pass_text(io_json *j, bool decode, io_span *text)
{
    if (io_json_next(j) != '"') return io_json_fail(j, "expected a string");
    char *begin = j->at + 1, *to = begin;
    for (char *from = begin; from < j->end;) {
        j->at = from;
        unsigned char c = (unsigned char)*from;
        if (c < 0x20) return io_json_fail(j, "control character in a string");
        if (c == '"') {
            j->at++;
            if (decode) *to = 0;
            *text = (io_span){(uint8_t *)begin, (size_t)(to - begin)};
            return true;
        }
        if (c == '\\') {
            int32_t meant = escaped(&from, j->end);
            if (meant < 0) return io_json_fail(j, "invalid escape in a string");
            if (decode) to = io_put_utf8(to, (uint32_t)meant);
        } else {
            if (decode) *to++ = *from;
            from++;
        }
    }
    j->at = j->end;
    return io_json_fail(j, "unterminated string");
}

bool io_json_text(io_json *j, io_span *text)
{
    *text = (io_span){0};
    return pass_text(j, true, text);
}

void io_put_json_text(io_buffer *b, const char *text)
{
    static const char letters[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t";
    io_put_u8(b, '"');
    for (const char *p = text; *p;) {
        size_t plain = 0;
        while ((unsigned char)p[plain] >= 0x20 && p[plain] != '"' && p[plain] != '\\') plain++;
        io_put(b, p, plain);
        p += plain;
        if (!*p) break;
        const char *letter = strchr(meant, *p);
        if (letter)
            io_put(b, (char[]){'\\', letters[letter - meant]}, 2);
        else
            io_put_format(b, "\\u%04x", *p);
        p++;
    }
    io_put_u8(b, '"');
}

/* ---- Numbers and words ----------------------------------------------------------------------- */

static bool is_digit(const io_json *j)
{
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

static bool pass_one_of(io_json *j, const char *set)
{
    if (j->at == j->end || !*j->at || !strchr(set, *j->at)) return false;
    return j->at++, true;
}

static bool pass_digits(io_json *j)
{
    if (!is_digit(j)) return io_json_fail(j, "invalid number: a digit is missing");
    while (is_digit(j)) j->at++;
    return true;
}

/* -12.5e+3 */
static bool pass_number(io_json *j)
{
    j->numbers++;
    pass_one_of(j, "-");
    if (!pass_one_of(j, "0") && !pass_digits(j)) return false;
    if (is_digit(j)) return io_json_fail(j, "invalid number: it begins with 0");
    if (pass_one_of(j, ".") && !pass_digits(j)) return false;
    if (!pass_one_of(j, "eE")) return true;
    pass_one_of(j, "+-");
    return pass_digits(j);
}

bool io_json_unsigned(io_json *j, uint64_t *value)
{
    *value = 0;
    io_json_next(j);
    if (j->wrong) return false;
    if (!is_digit(j)) return io_json_fail(j, "expected a non-negative integer");
    char *begin = j->at;
    if (!pass_number(j)) return false;
    for (const char *p = begin; p < j->at; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*p - '0'), value)) {
            j->at = begin;
            return io_json_fail(j, "the number is not a 64-bit integer");
        }
    return true;
}

static bool pass_word(io_json *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0) return false;
    return j->at += n, true;
}

bool io_json_double(io_json *j, double *value)
{
    char digits[64];
    *value = 0;
    const char first = io_json_next(j);
    if (first != '-' && (first < '0' || first > '9')) return io_json_fail(j, "expected a number");
    const char *begin = j->at;
    if (!pass_number(j)) return false;
    const size_t n = (size_t)(j->at - begin);
    if (n >= sizeof digits) return io_json_fail(j, "a number has too many digits");
    memcpy(digits, begin, n);
    digits[n] = 0;
    /* strtod expects the decimal point of the program's locale. */
    char *point = strchr(digits, '.');
    if (point) *point = *localeconv()->decimal_point;
    *value = strtod(digits, NULL);
    return true;
}

bool io_json_integer(io_json *j, int64_t *value)
{
    const char first = io_json_next(j);
    const bool negative = first == '-';
    uint64_t magnitude;
    if (!negative && (first < '0' || first > '9')) return io_json_fail(j, "expected an integer");
    if (negative) j->at++;
    if (!io_json_unsigned(j, &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return io_json_fail(j, "a number is beyond 64 bits");
    *value = (int64_t)(negative ? -magnitude : magnitude);
    return true;
}

bool io_json_bool(io_json *j, bool *value)
{
    *value = io_json_next(j) == 't';
    if (*value ? pass_word(j, "true") : pass_word(j, "false")) return true;
    return io_json_fail(j, "expected true or false");
}

bool io_json_null(io_json *j)
{
    return io_json_next(j) == 'n' && pass_word(j, "null");
}

/* ---- Any value ------------------------------------------------------------------------------- */

/* A value without members. */
static bool pass_plain(io_json *j)
{
    io_span text;
    char c = io_json_next(j);
    if (c == '"') return pass_text(j, false, &text);
    if (c == '-' || (c >= '0' && c <= '9')) return pass_number(j);
    if (c && (pass_word(j, "null") || pass_word(j, "true") || pass_word(j, "false"))) return true;
    return io_json_fail(j, "expected a value");
}

bool io_json_skip_key(io_json *j)
{
    io_span text;
    return pass_text(j, false, &text) && io_json_take(j, ':');
}

bool io_json_skip(io_json *j)
{
    enum { DEEPEST = 128 };
    char closing[DEEPEST]; /* the closing brackets of those that are open */
    int depth = 0;
    for (;;) {
        char c = io_json_next(j);
        bool opens = c == '{' || c == '[', empty = false;
        if (opens) {
            if (depth == DEEPEST) return io_json_fail(j, "brackets are nested too deeply");
            closing[depth++] = c == '{' ? '}' : ']';
            j->at++;
            empty = io_json_next(j) == closing[depth - 1];
        } else if (!pass_plain(j)) {
            return false;
        }
        if (!opens || empty) {
            while (depth && io_json_next(j) == closing[depth - 1]) j->at++, depth--;
            if (!depth) return true;
            if (!io_json_take(j, ',')) return false;
        }
        if (closing[depth - 1] == '}' && !io_json_skip_key(j)) return false;
    }
}

void io_put_json_number(io_buffer *b, double value)
{
    char digits[40];
    int precision = 14;
    do snprintf(digits, sizeof digits, "%.*g", ++precision, value);
    while (precision < 17 && strtod(digits, NULL) != value);
    char *point = strchr(digits, *localeconv()->decimal_point);
    if (point) *point = '.';
    io_put(b, digits, strlen(digits));
}
