/*
 * A JSON text as a tree, for readers that cannot say what comes next: members by name, in any
 * order. NaN, Infinity and -Infinity are numbers too, as Python writes them.
 */
#ifndef EDDY_IO_JSON_TREE_H
#define EDDY_IO_JSON_TREE_H

#include "io/json.h"

typedef enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT
} json_type;

typedef struct json_node {
    json_type type;
    const char *key;         /* of an object's member, else NULL */
    const char *text;        /* of JSON_TEXT, without zero bytes */
    double number;           /* of JSON_NUMBER; 0 or 1 of JSON_BOOL */
    int64_t integer;         /* of JSON_NUMBER, if it */
    bool whole;              /* is one of 64 bits */
    struct json_node *first; /* of the members or elements */
    struct json_node *next;  /* behind this one */
    int64_t count;           /* of members or elements */
} json_node;

/* The tree of a text that the caller gives up (io_json_on); it lives in memory of the scope. NULL,
 * with an error that begins with `who` and says where. At most 128 brackets deep. */
const json_node *json_parse(const char *who, char *bytes, size_t size);

/* The member of that name; NULL, without an error, if there is none or `node` is no object or
 * NULL. */
const json_node *json_member(const json_node *node, const char *key);

/* The text of that member; NULL if there is none or it is no text. */
const char *json_text_of(const json_node *node, const char *key);

#endif
