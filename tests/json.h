/*
 * JSON for tests: verdicts that other libraries gave are kept in such files. A tree on malloc.
 *
 * Asking for what isn't there gives NULL from json_get and json_at, which all others take for a
 * failed test: a value that is absent or of another kind is never read as 0.
 */
#ifndef EDDY_TESTS_JSON_H
#define EDDY_TESTS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json json;

/* The whole file / text; the test fails if it is not there or no JSON. */
json *json_read_file(const char *path);
json *json_read(const char *text, size_t size);
void json_free(json *j); /* the root; NULL is allowed */

json_kind json_kind_of(const json *j);

/* Members of an array or object, in the file's order. */
int64_t json_count(const json *j);
const json *json_at(const json *j, int64_t i); /* NULL: there are fewer */
const char *json_key(const json *j, int64_t i);
size_t json_key_size(const json *j, int64_t i); /* a key may hold a 0 */

/* The member of an object; NULL: none. */
const json *json_get(const json *j, const char *key);

/* A text ends in a 0, and may hold others: json_text_size. The number as it is written, too. */
const char *json_text(const json *j);
size_t json_text_size(const json *j);

/* Of the texts "nan", "inf" and "-inf", too. */
double json_number(const json *j);

/* Whole numbers within their range; nothing else. */
int64_t json_int(const json *j);
uint64_t json_unsigned(const json *j);

bool json_bool(const json *j);

/* What a text in base64 stands for, and a 0 behind it; lives as long as the tree. */
const void *json_base64(const json *j, size_t *size);

#endif
