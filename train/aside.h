/*
 * Errors that are looked at and forgiven: what is kept is put aside, so that the next error can be
 * told from it, and comes back afterwards as if nothing had been.
 */
#ifndef EDDY_TRAIN_ASIDE_H
#define EDDY_TRAIN_ASIDE_H

#include "tensor/thread.h"
#include <string.h>

typedef struct error_aside {
    ed_error_code code;
    char message[sizeof((thread_state *)0)->message];
} error_aside;

static inline void error_put_aside(error_aside *a)
{
    a->code = ed_error_kind();
    memcpy(a->message, thread_self()->message, sizeof a->message);
    ed_clear_error();
}

/* Whether the error says that a file is not there or damaged. */
static inline bool error_is_loss(ed_error_code code)
{
    return code == ED_NOT_FOUND || code == ED_DATA_LOSS;
}

/* Takes up what was put aside; an error since then is dropped if it is `forgiven`, or if there is
 * an earlier one. */
static inline void error_take_up(const error_aside *a, bool forgiven)
{
    if (forgiven || a->code) ed_clear_error();
    if (!a->code) return;
    thread_state *self = thread_self();
    self->error = a->code;
    memcpy(self->message, a->message, sizeof a->message);
}

#endif
