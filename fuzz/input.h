/* Taking an input apart. */
#ifndef EDDY_FUZZ_INPUT_H
#define EDDY_FUZZ_INPUT_H

#include "io/bytes.h"

/* The next n bytes, or as many as there are. */
static inline io_span fuzz_part(io_cursor *c, size_t n)
{
    size_t rest = (size_t)(c->end - c->at);
    return io_take(c, n < rest ? n : rest);
}

#endif
