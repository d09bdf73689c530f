#include "tests/json.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct json {
    json_kind kind;
    bool truth;
    char *text; /* of texts, and of numbers as they are written */
    size_t size;
    char *key; /* in an object */
    size_t key_size;
    json **members;
    int64_t count, room;
    uint8_t *bytes; /* decoded from base64 */
};

struct reader {
    const char *begin, *at, *end;
    int depth;
};

/* ---- Making ---------------------------------------------------------------------------------- */

static void *need(void *memory)
{
    if (!memory) fail_msg("json: out of memory");
    return memory;
}

static json *node(json_kind kind)
{
    json *j = need(calloc(1, sizeof *j));
    j->kind = kind;
    return j;
}

static void append(json *parent, json *member)
{
    if (parent->count == parent->room) {
        parent->room = parent->room ? 2 * parent->room : 8;
        parent->members =
            need(realloc(parent->members, (size_t)parent->room * sizeof *parent->members));
    }
    parent->members[parent->count++] = member;
}

void json_free(json *j)
{
    if (!j) return;
    for (int64_t i = 0; i < j->count; i++) json_free(j->members[i]);
    free(j->members);
    free(j->text);
    free(j->key);
    free(j->bytes);
    free(j);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void wrong(const struct reader *r, const char *what)
{
    fail_msg("json: byte %td: %s", r->at - r->begin, what);
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && *r->at && strchr(" \t\r\n", *r->at)) r->at++;
}

/* Whether that character comes next, which is then gone past. */
static bool next_is(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static unsigned hex4(struct reader *r)
{
    unsigned value = 0;
    if (r->end - r->at < 4) wrong(r, "the text ends inside \\u");
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = *r->at ? strchr(digits, *r->at) : NULL;
        if (!digit) wrong(r, "no hexadecimal digit");
        value = value << 4 | ((digit - digits) & 15);
        r->at++;
    }
    return value;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)((0xff00 >> (more + 1) & 0xff) | code >> 6 * more);
    while (more--) *to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return to;
}

/* Behind a backslash. */
static char *read_escape(struct reader *r, char *to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) wrong(r, "the text ends inside an escape");
    char c = *r->at++;
    if (c == 'u') {
        unsigned code = hex4(r);
        bool pair =
            code >> 10 == 0x36 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u';
        if (pair) {
            r->at += 2;
            code = 0x10000 + ((code & 0x3ff) << 10) + (hex4(r) & 0x3ff);
        }
        return put_utf8(to, code);
    }
    const char *name = c ? strchr(names, c) : NULL;
    if (!name) wrong(r, "unknown escape");
    *to++ = values[name - names];
    return to;
}

/* Behind the opening quote. */
static char *read_text(struct reader *r, size_t *size)
{
    const char *quote = r->at;
    while (quote < r->end && *quote != '"') quote += *quote == '\\' ? 2 : 1;
    if (quote >= r->end) wrong(r, "a text does not end");
    char *text = need(malloc((size_t)(quote - r->at) + 1)), *to = text;
    while (r->at < quote) {
        if (*r->at != '\\') {
            *to++ = *r->at++;
            continue;
        }
        r->at++;
        to = read_escape(r, to);
    }
    *to = 0;
    *size = (size_t)(to - text);
    r->at = quote + 1;
    return text;
}

static json *read_value(struct reader *r);

static json *read_members(struct reader *r, json_kind kind)
{
    char close = kind == JSON_OBJECT ? '}' : ']';
    json *j = node(kind);
    if (next_is(r, close)) return j;
    do {
        char *key = NULL;
        size_t key_size = 0;
        if (kind == JSON_OBJECT) {
            if (!next_is(r, '"')) wrong(r, "expected a key");
            key = read_text(r, &key_size);
            if (!next_is(r, ':')) wrong(r, "expected ':'");
        }
        json *member = read_value(r);
        member->key = key;
        member->key_size = key_size;
        append(j, member);
    } while (next_is(r, ','));
    if (!next_is(r, close)) wrong(r, "expected ',' or the closing bracket");
    return j;
}

static json *read_number(struct reader *r)
{
    json *j = node(JSON_NUMBER);
    const char *from = r->at;
    while (r->at < r->end && *r->at && strchr("+-.0123456789eE", *r->at)) r->at++;
    if (r->at == from) wrong(r, "expected a value");
    j->size = (size_t)(r->at - from);
    j->text = need(strndup(from, j->size));
    char *end;
    strtod(j->text, &end);
    if (*end) wrong(r, "this is no number");
    return j;
}

static bool read_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static json *read_value(struct reader *r)
{
    if (++r->depth > 200) wrong(r, "too deep");
    json *j;
    if (next_is(r, '{')) {
        j = read_members(r, JSON_OBJECT);
    } else if (next_is(r, '[')) {
        j = read_members(r, JSON_ARRAY);
    } else if (next_is(r, '"')) {
        j = node(JSON_TEXT);
        j->text = read_text(r, &j->size);
    } else if (read_word(r, "null")) {
        j = node(JSON_NULL);
    } else if (read_word(r, "true")) {
        j = node(JSON_BOOL);
        j->truth = true;
    } else if (read_word(r, "false")) {
        j = node(JSON_BOOL);
    } else {
        j = read_number(r);
    }
    r->depth--;
    return j;
}

json *json_read(const char *text, size_t size)
{
    struct reader r = {text, text, text + size, 0};
    json *j = read_value(&r);
    skip_space(&r);
    if (r.at < r.end) wrong(&r, "something comes after the value");
    return j;
}

json *json_read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("json: %s: %s", path, strerror(errno));
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = need(malloc((size_t)size + 1));
    if (fread(text, 1, (size_t)size, f) != (size_t)size) fail_msg("json: %s: cut short", path);
    fclose(f);
    json *j = json_read(text, (size_t)size);
    free(text);
    return j;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static const json *expect(const json *j, json_kind kind, const char *what)
{
    if (!j) fail_msg("json: there is no %s here", what);
    if (j->kind != kind) fail_msg("json: '%s' is no %s", j->key ? j->key : "", what);
    return j;
}

json_kind json_kind_of(const json *j)
{
    if (!j) fail_msg("json: there is nothing here");
    return j->kind;
}

int64_t json_count(const json *j)
{
    if (!j) fail_msg("json: there is no array or object here");
    if (j->kind != JSON_ARRAY) expect(j, JSON_OBJECT, "array or object");
    return j->count;
}

const json *json_at(const json *j, int64_t i)
{
    return i >= 0 && i < json_count(j) ? j->members[i] : NULL;
}

const char *json_key(const json *j, int64_t i)
{
    const json *member = json_at(expect(j, JSON_OBJECT, "object"), i);
    if (!member) fail_msg("json: there is no member %lld", (long long)i);
    return member->key;
}

size_t json_key_size(const json *j, int64_t i)
{
    json_key(j, i);
    return j->members[i]->key_size;
}

const json *json_get(const json *j, const char *key)
{
    expect(j, JSON_OBJECT, "object");
    for (int64_t i = 0; i < j->count; i++)
        if (!strcmp(j->members[i]->key, key)) return j->members[i];
    return NULL;
}

const char *json_text(const json *j)
{
    if (j && j->kind == JSON_NUMBER) return j->text;
    return expect(j, JSON_TEXT, "text")->text;
}

size_t json_text_size(const json *j)
{
    json_text(j);
    return j->size;
}

double json_number(const json *j)
{
    if (j && j->kind == JSON_TEXT) {
        if (!strcmp(j->text, "nan")) return NAN;
        if (!strcmp(j->text, "inf")) return INFINITY;
        if (!strcmp(j->text, "-inf")) return -INFINITY;
    }
    return strtod(expect(j, JSON_NUMBER, "number")->text, NULL);
}

int64_t json_int(const json *j)
{
    char *end;
    errno = 0;
    long long value = strtoll(expect(j, JSON_NUMBER, "whole number")->text, &end, 10);
    if (errno || *end) fail_msg("json: %s is no 64-bit whole number", j->text);
    return value;
}

uint64_t json_unsigned(const json *j)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(expect(j, JSON_NUMBER, "whole number")->text, &end, 10);
    if (errno || *end || *j->text == '-') fail_msg("json: %s is out of range", j->text);
    return value;
}

bool json_bool(const json *j)
{
    return expect(j, JSON_BOOL, "truth value")->truth;
}

const void *json_base64(const json *j, size_t *size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *text = expect(j, JSON_TEXT, "text")->text;
    uint8_t *bytes = need(realloc(j->bytes, j->size / 4 * 3 + 4)), *to = bytes;
    ((json *)j)->bytes = bytes;
    uint32_t bits = 0;
    int held = 0;
    for (; *text && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit) fail_msg("json: '%c' in base64", *text);
        bits = bits << 6 | (uint32_t)(digit - digits);
        if ((held += 6) < 8) continue;
        held -= 8;
        *to++ = (uint8_t)(bits >> held);
    }
    *to = 0;
    *size = (size_t)(to - bytes);
    return bytes;
}
