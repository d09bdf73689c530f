/*
 * A part of the tests' shared library: says at the end of every test program, when the root scope
 * is closed, that nobody holds anything any more.
 */
#include "tensor/tensor.h"
#include <unistd.h>

static pid_t program;

__attribute__((constructor)) static void note_program(void)
{
    program = getpid();
}

/* After the library's own (tensor/thread.c), which ends the main thread. Children of fork may go as
 * they like. */
__attribute__((destructor(101))) static void check_live(void)
{
    if (getpid() != program) return;
    const ed_memory left = ed_memory_stats();
    if (!left.live_tensors && !left.live_bytes) return;
    fflush(NULL);
    fprintf(stderr, "left at the end: %lld tensors, %lld bytes\n", (long long)left.live_tensors,
            (long long)left.live_bytes);
    _exit(1);
}
