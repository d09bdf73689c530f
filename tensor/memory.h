/*
 * The one gate to the system's memory. Blocks come in size classes (four to each power of two) and
 * are kept when freed: small ones by the thread that frees them, large ones by the process, so that
 * a hot loop neither calls malloc nor pays page faults.
 *
 *     | header, 64 bytes | data, aligned to 64 bytes ... |
 *                        ^ what memory_alloc returns
 */
#ifndef EDDY_TENSOR_MEMORY_H
#define EDDY_TENSOR_MEMORY_H

#include "tensor/hard.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Uninitialised memory for `bytes` bytes, aligned to 64; NULL with ED_OUT_OF_MEMORY kept when there
 * is none. */
void *memory_alloc(size_t bytes);

/* The same, all zero. */
void *memory_zalloc(size_t bytes);

/* As realloc: NULL leaves the old block as it was. */
void *memory_grow(void *old, size_t old_bytes, size_t bytes);

/* Gives a block back; NULL is allowed. Any thread may. */
void memory_free(void *data);

/* a * b into *result; false on overflow of size_t. */
static inline bool memory_mul(size_t a, size_t b, size_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/*
 * A block that views share: counted, with the data behind the header, or (wrapped) with somebody
 * else's memory and how to give that back.
 */
typedef struct ed_buffer {
    int32_t refs;
    void *data;
    void (*deleter)(void *data, void *user);
    void *user;
} ed_buffer;

/* A buffer of its own memory / on somebody else's, with one reference; NULL with the error kept. */
ed_buffer *memory_buffer(size_t bytes);
ed_buffer *memory_buffer_wrap(void *data, void (*deleter)(void *, void *), void *user);

/* What the last release comes to. */
void memory_buffer_destroy(ed_buffer *buffer);

static inline void memory_buffer_retain(ed_buffer *buffer)
{
    __atomic_fetch_add(&buffer->refs, 1, __ATOMIC_RELAXED);
}

/* A sole owner needs no atomic read-modify-write to know that it is the last. */
static inline void memory_buffer_release(ed_buffer *buffer)
{
    if (__atomic_load_n(&buffer->refs, __ATOMIC_ACQUIRE) == 1 ||
        __atomic_fetch_sub(&buffer->refs, 1, __ATOMIC_ACQ_REL) == 1)
        memory_buffer_destroy(buffer);
}

/* The number of tensors a thread made less those it destroyed goes through here. */
void memory_count_tensor(int change);

#endif
