/*
 * Words and their integers: a hash table from each of the words of a vocabulary to its place there.
 */
#include "data/data.h"
#include "tensor/nearest.h"
#include "tensor/schema_core.h"
#include <stdlib.h>
#include <string.h>

/* A word, and how often it came. */
typedef struct word {
    const char *text; /* NULL: none */
    int64_t count, place;
} word;

/* Open addressing in 2^k slots, at least twice as many as there are words. */
typedef struct word_table {
    word *slots;
    uint64_t mask;
} word_table;

/* Whether there is an array without a NULL in it. */
static bool are_words(const char *who, const char *name, ed_strings words)
{
    if (!words.values || words.count < 0)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s has no array of strings", who, name);
    for (int64_t i = 0; i < words.count; i++)
        if (!words.values[i])
            return ed_fail(ED_INVALID_ARGUMENT, "%s: %s[%lld] is NULL", who, name, (long long)i);
    return true;
}

/* In the scope, for so many different words; false without memory. */
static bool table_begin(word_table *table, int64_t words)
{
    uint64_t size = 2;
    while (size < 2 * (uint64_t)words) size *= 2;
    table->mask = size - 1;
    table->slots = ed_scope_alloc(size * sizeof *table->slots);
    if (table->slots) memset(table->slots, 0, size * sizeof *table->slots);
    return table->slots;
}

/* The slot of the word; one without text if it is not in the table. */
static word *table_find(const word_table *table, const char *s)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (const char *c = s; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    uint64_t at = (hash ^ hash >> 32) & table->mask;
    while (table->slots[at].text && strcmp(table->slots[at].text, s) != 0)
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

/* ---- Vocabularies ---------------------------------------------------------------------------- */

static int more_frequent(const void *a, const void *b)
{
    const word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return -strcmp(x->text, y->text);
}

ed_strings ed_vocabulary_with(ed_strings words, const ed_vocabulary_options *options)
{
    if (!(options = CHECKED_OPTIONS("vocabulary", ED_VOCABULARY_OPTIONS, options)) ||
        !are_words("vocabulary", "words", words))
        return (ed_strings){0};
    word_table table;
    if (!table_begin(&table, words.count)) return (ed_strings){0};
    for (int64_t i = 0; i < words.count; i++) {
        word *w = table_find(&table, words.values[i]);
        w->text = words.values[i];
        w->count++;
    }
    int64_t n = 0;
    for (uint64_t i = 0; i <= table.mask; i++)
        if (table.slots[i].text) table.slots[n++] = table.slots[i];
    qsort(table.slots, (size_t)n, sizeof *table.slots, more_frequent);
    if (options->max_tokens && n > options->max_tokens) n = options->max_tokens;
    const char **different = ed_scope_alloc((size_t)(n + 1) * sizeof *different);
    for (int64_t i = 0; different && i < n; i++) different[i] = table.slots[i].text;
    return different ? (ed_strings){different, n} : (ed_strings){0};
}

/* ---- Lookup ---------------------------------------------------------------------------------- */

static bool enter_vocabulary(word_table *table, ed_strings vocabulary)
{
    if (!table_begin(table, vocabulary.count)) return false;
    for (int64_t i = 0; i < vocabulary.count; i++) {
        word *w = table_find(table, vocabulary.values[i]);
        if (w->text)
            return ed_fail(ED_INVALID_ARGUMENT,
                           "string_lookup: \"%.40s\" is in the vocabulary twice", w->text);
        *w = (word){.text = vocabulary.values[i], .place = i};
    }
    return true;
}

static bool unknown_word(const char *s, ed_strings vocabulary)
{
    nearest_words near = {0};
    for (int64_t i = 0; i < vocabulary.count; i++) nearest_see(&near, s, vocabulary.values[i]);
    char hint[256];
    nearest_text(&near, hint, sizeof hint);
    return ed_fail(ED_NOT_FOUND, "string_lookup: the vocabulary has no \"%.40s\"%s%s", s,
                   *hint ? "; " : "", hint);
}

static bool look_up(ed_strings words, ed_strings vocabulary, int64_t first, int64_t *to)
{
    word_table table;
    if (!enter_vocabulary(&table, vocabulary)) return false;
    for (int64_t i = 0; i < words.count; i++) {
        const word *w = table_find(&table, words.values[i]);
        if (!w->text && !first) return unknown_word(words.values[i], vocabulary);
        to[i] = w->text ? w->place + first : 0;
    }
    return true;
}

ed_tensor *ed_string_lookup_with(ed_strings words, ed_strings vocabulary,
                                 const ed_string_lookup_options *options)
{
    if (!(options = CHECKED_OPTIONS("string_lookup", ED_STRING_LOOKUP_OPTIONS, options)) ||
        !are_words("string_lookup", "words", words) ||
        !are_words("string_lookup", "vocabulary", vocabulary))
        return NULL;
    ED_SCOPE;
    ed_tensor *places = scope_give(tensor_new(ED_INT64, 1, &words.count));
    if (!places || !look_up(words, vocabulary, options->num_oov_indices, (int64_t *)places->data))
        return NULL;
    return ed_keep(places);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* ASCII's; the bytes of all other letters are parts of words. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

ed_strings ed_split_words(const char *s)
{
    if (!s) return ed_fail(ED_INVALID_ARGUMENT, "split_words: text is NULL"), (ed_strings){0};
    const size_t length = strlen(s);
    char *to = ed_scope_alloc(length + 1);
    const char **words = ed_scope_alloc((length / 2 + 2) * sizeof *words);
    if (!to || !words) return (ed_strings){0};
    int64_t n = 0;
    for (const char *begin = to;; s++) {
        if (*s && !is_space(*s)) {
            if (!is_punctuation(*s)) *to++ = *s >= 'A' && *s <= 'Z' ? *s + 32 : *s;
            continue;
        }
        if (to > begin) {
            words[n++] = begin;
            *to++ = 0;
            begin = to;
        }
        if (!*s) return (ed_strings){words, n};
    }
}
