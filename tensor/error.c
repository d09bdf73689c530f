#include "tensor/core.h"
#include <stdarg.h>
#include <stdio.h>

/* Every error of the library is born in ed_fail: a breakpoint there sees them all. */

static struct {
    ed_error_handler handler;
    void *user;
} on_error;

void *ed_fail(ed_error_code code, const char *format, ...)
{
    thread_state *self = thread_self();
    if (self->error) return NULL;
    self->error = code ? code : ED_INVALID_ARGUMENT;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->message, sizeof self->message, format ? format : "unnamed error", arguments);
    va_end(arguments);
    if (on_error.handler) on_error.handler(self->error, self->message, on_error.user);
    return NULL;
}

bool ed_failed(void)
{
    return thread_self()->error != ED_OK;
}

const char *ed_error(void)
{
    thread_state *self = thread_self();
    return self->error ? self->message : "";
}

ed_error_code ed_error_kind(void)
{
    return thread_self()->error;
}

void ed_clear_error(void)
{
    thread_state *self = thread_self();
    self->error = ED_OK;
    self->message[0] = 0;
}

void ed_set_error_handler(ed_error_handler handler, void *user)
{
    on_error.handler = handler;
    on_error.user = user;
}
