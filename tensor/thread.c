#include "tensor/thread.h"
#include <pthread.h>
#include <stdlib.h>

__thread thread_state *thread_current __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static thread_state *all;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void unlink_state(thread_state *self)
{
    pthread_mutex_lock(&lock);
    if (self->next) self->next->previous = self->previous;
    *(self->previous ? &self->previous->next : &all) = self->next;
    pthread_mutex_unlock(&lock);
}

static void thread_end(void *state)
{
    thread_state *self = state;
    thread_current = self; /* destructors of objects run as in the thread's life */
    scope_thread_end(self);
    pthread_mutex_lock(&lock);
    self->serial = 0;
    pthread_mutex_unlock(&lock);
    if (self->at_end) self->at_end(self);
    memory_thread_end(self);
    unlink_state(self);
    thread_current = NULL;
    free(self);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_end);
}

/* Of threads whose state can't be had: enough to keep an error. */
thread_state thread_spare;

/* What such a thread did: its state, once there is one, begins with it. */
static __thread struct {
    bool failed;
    uint32_t scopes;
} lost;

uint32_t thread_open_lost(void)
{
    return ++lost.scopes;
}

void thread_close_lost(uint32_t depth)
{
    if (depth && lost.scopes >= depth) lost.scopes = depth - 1;
}

/* The scopes hold nothing yet, and have the depths that thread_open_lost said. */
static void make_up_for_lost(void)
{
    for (; lost.scopes; lost.scopes--) ed_scope_open();
    lost.failed = false;
    ed_fail(ED_OUT_OF_MEMORY, "thread: no memory for the first call of this thread");
}

thread_state *thread_make(void)
{
    static uint64_t serial;
    pthread_once(&once, make_key);
    thread_state *self = calloc(1, sizeof *self);
    if (!self) {
        lost.failed = true;
        return &thread_spare;
    }
    pthread_mutex_lock(&lock);
    self->serial = ++serial;
    self->next = all;
    if (all) all->previous = self;
    all = self;
    pthread_mutex_unlock(&lock);
    pthread_setspecific(key, self);
    thread_current = self;
    if (lost.failed) make_up_for_lost();
    return self;
}

thread_state *thread_lock_all(void)
{
    pthread_mutex_lock(&lock);
    return all;
}

void thread_unlock_all(void)
{
    pthread_mutex_unlock(&lock);
}

/* Neither is the list left locked in a child of fork. */
static void lock_list(void)
{
    pthread_mutex_lock(&lock);
}

__attribute__((constructor(102))) static void thread_watch_forks(void)
{
    pthread_atfork(lock_list, thread_unlock_all, thread_unlock_all);
}

/* The main thread ends with the process, without pthread's destructors. */
__attribute__((destructor(102))) static void end_main(void)
{
    if (thread_current) thread_end(thread_current);
}
