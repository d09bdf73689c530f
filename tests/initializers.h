/* Initializers by name, with a generator. */
#ifndef TESTS_INITIALIZERS_H
#define TESTS_INITIALIZERS_H

#include "eddy.h"
#include <string.h>

static inline ed_initializer *initializer_named(const char *name, ed_generator *generator)
{
    const ed_kind *kind = ed_kind_find("initializer", name);
    max_align_t options[16];
    if (!kind || kind->options_size > sizeof options) return NULL;
    memcpy(options, kind->defaults, kind->options_size);
    for (const ed_field *f = kind->fields; f->name; f++)
        if (f->type == ED_FIELD_GENERATOR) *(ed_generator **)ED_FIELD_AT(f, options) = generator;
    return ed_make(kind, options);
}

#endif
