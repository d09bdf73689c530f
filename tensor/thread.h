/*
 * What belongs to one thread: its small-block cache, its scopes, its kept error, its listeners.
 * Reached through one thread-local pointer; made at the first call of a thread and destroyed with
 * it.
 */
#ifndef EDDY_TENSOR_THREAD_H
#define EDDY_TENSOR_THREAD_H

#include "tensor/hard.h"
#include "tensor/tensor.h"

#define MEMORY_SMALL_CLASSES 24 /* size classes of up to 7 KiB, see memory.c */
#define ERROR_MESSAGE_SIZE   1024
#define ERROR_PLACE_SIZE     224 /* of "file:line"; of a longer path the end is shown */

struct ed_object;
struct ed_listener;

typedef struct memory_list {
    struct memory_block *first;
    int count;
} memory_list;

enum { THREAD_FIRST_SCOPES = HARD(2, 16) }; /* take no memory of their own */

typedef struct scope_frame {
    size_t mark; /* where the scope's objects begin on the stack */
    size_t kept; /* how many of them, the first ones, already belong to the scope outside */
} scope_frame;

/* What the thread's last ed_gradient had no gradient for (tensor/core.h). */
typedef struct unconnected_source {
    char place[ERROR_PLACE_SIZE]; /* "": not known */
    int64_t source;               /* counted from 1; 0: none */
    char name[64];
} unconnected_source;

/*
 * What a function that the library calls may not close: the scopes below `depth`, which are from
 * before the call. `caller` tells a function that is running from one that was left by longjmp:
 * the complement of the address of the library's frame that called it, so that 0 is none.
 */
typedef struct scope_barrier {
    uint32_t depth;
    uintptr_t caller;
} scope_barrier;

typedef struct thread_state {
    memory_list small[MEMORY_SMALL_CLASSES];
    int64_t live_bytes; /* change not yet told to the process's count */
    int64_t live_tensors;

    struct ed_object **objects; /* of all scopes, innermost last */
    size_t n_objects, object_capacity;
    scope_frame *scopes; /* scopes[0] is the root scope */
    scope_frame first_scopes[THREAD_FIRST_SCOPES];
    uint32_t n_scopes, scope_capacity;
    scope_barrier barrier;
    bool warned;

    uint64_t next_id, last_id; /* tensor ids still to give out */

    int first;           /* as messages count them */
    ed_error_code error; /* written by error.c alone, as the next six */
    char message[ERROR_MESSAGE_SIZE];
    size_t sentence; /* where it begins in the message, behind the place */
    ed_place place;  /* its file NULL: not known */
    bool in_handler; /* or it was left by longjmp */
    int quiet;       /* how deep in attempts whose errors are dropped: nobody is told of them */
    uint32_t errors; /* how many were kept */
    unconnected_source unconnected;

    struct ed_listener *listeners; /* innermost first; see ops/op.h */
    struct ed_listener *notified_next;
    bool notifying;
    uint32_t unread; /* how often elements of hollow tensors were asked for */
    int noting;  /* how deep in functions whose calls are noted: variables must not be written */
    int tracing; /* how deep in calls with hollow tensors whose results become symbols */

    int64_t weight_room;   /* bytes that new weights may still take, of a file's model; 0: any */
    int64_t made_together; /* bytes of results each of which is read only after the last is made:
                            * they go past the caches as one so large would; 0: there are none */

    struct layer_losses *losses; /* what layers add to a loss goes there; NULL: they keep it */

    /* No other thread of the process had this number, as it may have had the address; 0 when the
     * thread ends. Another thread may set what is called then; both under the lock. */
    uint64_t serial;
    void (*at_end)(struct thread_state *self);

    struct thread_state *previous, *next;
} thread_state;

/* The calling thread's state; NULL before its first call. */
extern __thread thread_state *thread_current __attribute__((tls_model("initial-exec")));

/*
 * Makes the calling thread's state. Never NULL: without memory it is a spare one, which can keep
 * errors and nothing else. The state that is made once memory is back has an error, and the scopes
 * that were opened meanwhile.
 */
thread_state *thread_make(void);
extern thread_state thread_spare;

/* The depth of one more scope, or of one less, of a thread that has the spare state. */
uint32_t thread_open_lost(void);
void thread_close_lost(uint32_t depth);

static inline thread_state *thread_self(void)
{
    thread_state *self = thread_current;
    return __builtin_expect(self != NULL, 1) ? self : thread_make();
}

/* All threads' states, for sums over them; call between lock and unlock. */
thread_state *thread_lock_all(void);
void thread_unlock_all(void);

/* Given to the process by memory.c when a thread ends. */
void memory_thread_end(thread_state *self);

/* Releases what all scopes of the thread hold. */
void scope_thread_end(thread_state *self);

/* ---- Calling functions of the user's --------------------------------------------------------- */

/* A function that the library called was left by longjmp, and with it what it was called for. */
void scope_left(thread_state *self);

/* Makes the scopes from that depth on one with the scope outside, which then has their objects. */
void scope_join(thread_state *self, uint32_t depth);

/* How it was before the call of a function. */
typedef struct scope_guarded {
    scope_barrier outer;
    uint32_t depth;
} scope_guarded;

/* Notices it, in a frame of the library further out than the one that called the function. */
__attribute__((always_inline)) static inline void scope_see_left(thread_state *self)
{
    const uintptr_t frame = ~(uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(frame < self->barrier.caller, 0)) scope_left(self);
}

/*
 * Before and after each call of a function of the user's: meanwhile only scopes that it opens
 * itself can be closed. Closing others would release what the library still uses. Scopes that it
 * leaves open, also by longjmp out of a call within it, are no more afterwards: the library's next
 * one to close would be another than it opened. What they hold, as the function's result, lives on
 * in the scope of the call. SCOPE_GUARDED does both around a call that has a value.
 */
__attribute__((always_inline)) static inline scope_guarded scope_guard(thread_state *self)
{
    scope_see_left(self);
    const scope_guarded before = {self->barrier, self->n_scopes};
    self->barrier = (scope_barrier){self->n_scopes, ~(uintptr_t)__builtin_frame_address(0)};
    return before;
}

static inline void scope_unguard(thread_state *self, scope_guarded before)
{
    if (__builtin_expect(self->n_scopes > before.depth, 0)) scope_join(self, before.depth);
    self->barrier = before.outer;
}

#define SCOPE_GUARDED(call)                                                                        \
    ({                                                                                             \
        thread_state *guarded_ = thread_self();                                                    \
        const scope_guarded before_ = scope_guard(guarded_);                                       \
        __auto_type value_ = call;                                                                 \
        scope_unguard(guarded_, before_);                                                          \
        value_;                                                                                    \
    })

#endif
