/*
 * All public functions as a table: what tools/calls.sh reads from the headers, so that tests call
 * each with arguments that they make by its types.
 */
#ifndef EDDY_TESTS_FUNCTIONS_H
#define EDDY_TESTS_FUNCTIONS_H

#include "tests/any_values.h"

enum { MOST_ARGUMENTS = 12 };

/* What a call gave: nothing, something, or what says neither; and the object, if it is one. */
typedef struct outcome {
    enum { FAILED, SUCCEEDED, UNSAID } said;
    void *object;
} outcome;

typedef struct function {
    const char *name;
    void (*call)(const value *a, outcome *o);
    const char *types[MOST_ARGUMENTS + 1]; /* as the header writes them */
} function;

/* A member of a structure of options without a list. */
typedef struct member {
    const char *name, *type;
    size_t offset, size;
} member;

typedef struct structure {
    const char *name;
    size_t size;
    const ed_field *fields; /* of options with a list, and their defaults */
    const void *defaults;
    const member *members;
} structure;

/* Function number i; NULL behind the last. */
const function *function_at(int i);

/* The function of an op of that name, ed_name or ed_name_with; NULL without one. */
const function *function_of_op(const char *name);

/* ed_add_with: add. Valid until the next one. */
const char *function_short_name(const char *name);

/* The options that a parameter of the type points to; NULL if it is none of these. */
const structure *structure_of(const char *type);

/* How a header writes the type of a field, and its bytes; NULL for the state of draws. */
const char *field_type(const ed_field *field);
size_t field_size(const ed_field *field);

/* Whether it is a tensor or a plain number as a tensor. */
bool is_tensor_type(const char *type);

#endif
