/*
 * JSON (RFC 8259), read strictly: a scanner that its caller leads along the members it expects. No
 * tree is built, nothing recurses, and nothing is allocated: texts are decoded where they stand.
 *
 *     io_json_take(&j, '{');
 *     for (int64_t n = 0; io_json_member(&j, n, '}'); n++) {
 *         io_json_text(&j, &key);
 *         io_json_take(&j, ':');
 *         io_json_skip(&j);
 *     }
 *     io_json_end(&j);
 *
 * A scanner that fails stays failed: calls do nothing and give false, so that `wrong` needs to be
 * asked once. It is a plain value; a copy of it looks ahead.
 */
#ifndef EDDY_IO_JSON_H
#define EDDY_IO_JSON_H

#include "io/bytes.h"

typedef struct io_json {
    char *begin, *at, *end;
    int64_t numbers;   /* how many were gone past */
    const char *wrong; /* what is wrong at `at`; NULL as long as nothing is */
} io_json;

/* On a text, which must be UTF-8 (else it has failed already), and which io_json_text changes. */
io_json io_json_on(char *text, size_t size);

/* Fails, unless it has: always false. `wrong` is a text that stays. */
bool io_json_fail(io_json *j, const char *wrong);

/* Past white space; the byte that comes next, 0 at the end and after a failure. */
char io_json_next(io_json *j);

/* Past this punctuation mark. */
bool io_json_take(io_json *j, char mark);

/* To member n = 0, 1, ... of the object or array that was entered, past the comma before it; false
 * behind the last one, past the closing bracket. */
bool io_json_member(io_json *j, int64_t n, char close);

/* A text, its escapes decoded in place, with a 0 behind it; it may hold zeros itself. */
bool io_json_text(io_json *j, io_span *text);

/* A whole number that 64 bits hold, without sign, fraction or exponent. */
bool io_json_unsigned(io_json *j, uint64_t *value);

/* A number as a double, and a 64-bit integer; a sign is allowed in both. */
bool io_json_double(io_json *j, double *value);
bool io_json_integer(io_json *j, int64_t *value);

/* `true` or `false`. */
bool io_json_bool(io_json *j, bool *value);

/* Past `null`, if that comes next; no failure if it doesn't. */
bool io_json_null(io_json *j);

/* Past any value, at most 128 brackets deep. */
bool io_json_skip(io_json *j);

/* Past the name of an object's member and its colon. */
bool io_json_skip_key(io_json *j);

/* Whether only white space is left; anything else is a failure. */
bool io_json_end(io_json *j);

/* Whether the bytes are UTF-8: shortest forms only, no surrogates, nothing beyond U+10FFFF. */
bool io_is_utf8(const void *data, size_t size);

/* Puts a text as JSON writes it, in quotes: escapes where they have to be, UTF-8 as it is. */
void io_put_json_text(io_buffer *b, const char *text);

/* Puts a finite number with the fewest digits that are read back as the same one. */
void io_put_json_number(io_buffer *b, double value);

#endif
