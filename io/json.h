/*
 * JSON (RFC 8259), read strictly: a scanner that the caller moves along the members that it
 * expects. It builds no tree, does not recurse and allocates nothing: strings are decoded in place.
 *
 *     io_json_take(&j, '{');
 *     for (int64_t n = 0; io_json_member(&j, n, '}'); n++) {
 *         io_json_text(&j, &key);
 *         io_json_take(&j, ':');
 *         io_json_skip(&j);
 *     }
 *     io_json_end(&j);
 *
 * A scanner that failed stays failed: calls do nothing and return false, so the caller checks
 * `wrong` once. It is a plain value; a copy of it can look ahead.
 */
#ifndef EDDY_IO_JSON_H
#define EDDY_IO_JSON_H

#include "io/bytes.h"

typedef struct io_json {
    char *begin, *at, *end;
    int64_t numbers;   /* the number of numbers that were skipped */
    const char *wrong; /* the error at `at`; NULL: none */
} io_json;

/* Begins with a string, which must be UTF-8 (else the scanner has failed), and which
 * io_json_text changes. */
io_json io_json_on(char *text, size_t size);

/* Sets the error, a string constant, unless there is one; returns false. */
bool io_json_fail(io_json *j, const char *wrong);

/* Skips white space; returns the next byte, 0 at the end and after a failure. */
char io_json_next(io_json *j);

/* Takes this punctuation mark. */
bool io_json_take(io_json *j, char mark);

/* Moves to member n = 0, 1, ... of the object or array, past the comma before it; after the last
 * one moves past the closing bracket and returns false. */
bool io_json_member(io_json *j, int64_t n, char close);

/* A string, its escapes decoded in place, with a 0 after it; it may contain zeros itself. */
bool io_json_text(io_json *j, io_span *text);

/* A non-negative integer of 64 bits, without fraction or exponent. */
bool io_json_unsigned(io_json *j, uint64_t *value);

/* A number as a double / a 64-bit integer; both may have a sign. */
bool io_json_double(io_json *j, double *value);
bool io_json_integer(io_json *j, int64_t *value);

/* `true` or `false`. */
bool io_json_bool(io_json *j, bool *value);

/* Takes `null`, if that is next; not a failure if it is not. */
bool io_json_null(io_json *j);

/* Skips any value, at most 128 brackets deep. */
bool io_json_skip(io_json *j);

/* Takes the name of an object's member and its colon. */
bool io_json_skip_key(io_json *j);

/* Whether only white space is left; anything else is a failure. */
bool io_json_end(io_json *j);

/* Whether the bytes are valid UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF. */
bool io_is_utf8(const void *data, size_t size);

/* Writes a code point, at most 0x10ffff, as UTF-8: up to 4 bytes. Returns what follows them. */
char *io_put_utf8(char *to, uint32_t c);

/* Writes a string as JSON, in quotes: escapes only where required, UTF-8 unchanged. */
void io_put_json_text(io_buffer *b, const char *text);

/* Writes a finite number with the fewest digits that are read back as the same number. */
void io_put_json_number(io_buffer *b, double value);

#endif
