#include "tensor/core.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Every error of the library begins in ed_fail: a breakpoint there sees them all. Only this file
 * touches the thread's code and message.
 */

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

/* One of the arguments is NULL; `names` lists them as the preprocessor writes them: "a, b". */
bool error_null(const char *who, const char *names, const void *const *arguments)
{
    for (; *arguments; arguments++) names += strcspn(names, ",") + 2;
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %.*s is NULL", who, (int)strcspn(names, ","), names),
           true;
}

void error_append(const char *format, ...)
{
    thread_state *self = thread_self();
    if (!self->error) return;
    size_t used = strlen(self->message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->message + used, sizeof self->message - used, format, arguments);
    va_end(arguments);
}

void error_save(error_saved *saved)
{
    thread_state *self = thread_self();
    saved->code = self->error;
    memcpy(saved->message, self->message, sizeof saved->message);
    ed_clear_error();
}

void error_restore(const error_saved *saved, bool drop)
{
    if (drop || saved->code) ed_clear_error();
    if (!saved->code) return;
    thread_state *self = thread_self();
    self->error = saved->code;
    memcpy(self->message, saved->message, sizeof self->message);
}

void ed_set_error_handler(ed_error_handler handler, void *user)
{
    on_error.handler = handler;
    on_error.user = user;
}
