/* Words that are written much like one that does not exist, for messages. */
#ifndef EDDY_TENSOR_NEAREST_H
#define EDDY_TENSOR_NEAREST_H

#include <stddef.h>
#include <stdio.h>

enum { NEAREST_MOST = 3 };

/* The nearest words so far, all at the same distance; begins as {0}. */
typedef struct nearest_words {
    const char *words[NEAREST_MOST];
    int count, distance;
} nearest_words;

/* Takes a word, which must stay, into account: a beginning of the other one, or few letters off.
 * Case and underscores make no difference. */
void nearest_see(nearest_words *found, const char *wanted, const char *word);

/* Writes "did you mean "a", "b" or "c"?"; nothing if there are no such words. */
void nearest_text(const nearest_words *found, char *to, size_t size);

#endif
