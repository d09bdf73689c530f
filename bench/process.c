/*
 * A process that starts, takes its first training step (first_step.c) and ends; the program is
 * linked with libeddy.a or with libeddy.so. The peers' processes are Python's.
 */
#include "bench/bench.h"
#include <stdio.h>

static ed_tensor *start(workload *w)
{
    char command[600];
    long kilobytes = 0;
    snprintf(command, sizeof command, "EDDY_NUM_THREADS=%d exec '%s/%s'", bench_threads(),
             bench_folder(), (const char *)w->row);
    FILE *output = popen(command, "r");
    bool good = output && fscanf(output, "%ld", &kilobytes) == 1;
    if (!output || pclose(output) || !good) return NULL;
    w->memory = kilobytes * 1024;
    return ed_scalar(kilobytes);
}

static void check(workload *w, ed_tensor *y)
{
    (void)w;
    bench_claim(y && bench_at(y, 0) > 0, "the program takes a step and says its memory");
}

void bench_process(void)
{
    workload w = {.run = start, .check = check, .row = "first_step_shared"};
    bench_add(w, "first_step");
    w.row = "first_step_static";
    bench_add(w, "first_step_static");
}
