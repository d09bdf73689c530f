#include "io/json_tree.h"
#include "io/io.h"
#include "tensor/core.h"
#include <math.h>
#include <string.h>

enum { DEEPEST = 128 };

static json_node *read_node(io_json *j, int depth);

/* The scanner fails, unless an allocation did. */
static json_node *new_node(void)
{
    json_node *node = ed_scope_alloc(sizeof *node);
    if (node) *node = (json_node){JSON_NULL};
    return node;
}

static bool read_text(io_json *j, const char **to)
{
    io_span span;
    if (!io_json_text(j, &span)) return false;
    *to = (const char *)span.data;
    return strlen(*to) == span.size || io_json_fail(j, "a string contains a zero byte");
}

/* Members or elements up to the closing bracket. */
static bool read_inside(io_json *j, json_node *node, char close, int depth)
{
    json_node **last = &node->first;
    if (depth == DEEPEST) return io_json_fail(j, "brackets are nested too deeply");
    io_json_take(j, close == '}' ? '{' : '[');
    for (; io_json_member(j, node->count, close); node->count++) {
        const char *key = NULL;
        if (close == '}' && (!read_text(j, &key) || !io_json_take(j, ':'))) return false;
        json_node *inside = read_node(j, depth + 1);
        if (!inside) return false;
        inside->key = key;
        *last = inside;
        last = &inside->next;
    }
    return !j->wrong;
}

/* Whether the word comes next; then it is passed. */
static bool takes_word(io_json *j, const char *word)
{
    const size_t n = strlen(word);
    if (j->wrong || (size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0) return false;
    j->at += n;
    return true;
}

static bool take_number(io_json *j, json_node *node)
{
    if (takes_word(j, "NaN")) return node->number = NAN, true;
    if (takes_word(j, "Infinity")) return node->number = INFINITY, true;
    if (takes_word(j, "-Infinity")) return node->number = -INFINITY, true;
    io_json ahead = *j;
    node->whole = io_json_integer(&ahead, &node->integer);
    return io_json_double(j, &node->number);
}

static bool read_inner(io_json *j, json_node *node, int depth)
{
    bool value;
    switch (io_json_next(j)) {
    case '{': node->type = JSON_OBJECT; return read_inside(j, node, '}', depth);
    case '[': node->type = JSON_ARRAY; return read_inside(j, node, ']', depth);
    case '"': node->type = JSON_TEXT; return read_text(j, &node->text);
    case 'n': return io_json_null(j) || io_json_fail(j, "expected a value");
    case 't':
    case 'f':
        node->type = JSON_BOOL;
        if (!io_json_bool(j, &value)) return false;
        node->number = value;
        return true;
    default: node->type = JSON_NUMBER; return take_number(j, node);
    }
}

static json_node *read_node(io_json *j, int depth)
{
    json_node *node = new_node();
    return node && read_inner(j, node, depth) ? node : NULL;
}

const json_node *json_parse(const char *who, char *bytes, size_t size)
{
    io_json j = io_json_on(bytes, size);
    const json_node *node = read_node(&j, 0);
    if (node && io_json_end(&j)) return node;
    if (j.wrong)
        ed_fail(ED_DATA_LOSS, "%s: byte %lld: %s", who, (long long)(j.at - j.begin), j.wrong);
    return NULL;
}

const json_node *json_member(const json_node *node, const char *key)
{
    if (!node || node->type != JSON_OBJECT) return NULL;
    for (const json_node *n = node->first; n; n = n->next)
        if (!strcmp(n->key, key)) return n;
    return NULL;
}

const char *json_text_of(const json_node *node, const char *key)
{
    const json_node *member = json_member(node, key);
    return member && member->type == JSON_TEXT ? member->text : NULL;
}
