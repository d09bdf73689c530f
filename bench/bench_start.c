/*
 * From the start of a process to its finished first training step, and what that takes of memory:
 * the programs first_step_static and first_step_shared beside this one are started again and again.
 * A line a program: name, seconds, peak of resident memory.
 */
#include "bench/programs.h"
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

enum { RUNS = 21 };

/* Starts the program once; false if it fails. */
static bool start(const char *program, double *seconds, double *kilobytes)
{
    double begin = bench_now(), end = 0;
    FILE *output = popen(program, "r");
    if (!output) return false;
    bool read = fscanf(output, "%lf %lf", &end, kilobytes) == 2;
    *seconds = end - begin;
    return pclose(output) == 0 && read;
}

static void measure(const char *name, const char *program)
{
    double seconds[RUNS], kilobytes[RUNS];
    for (int i = 0; i < RUNS; i++)
        if (!start(program, &seconds[i], &kilobytes[i])) {
            fprintf(stderr, "bench_start: %s fails\n", program);
            exit(1);
        }
    qsort(seconds, RUNS, sizeof *seconds, bench_by_value);
    qsort(kilobytes, RUNS, sizeof *kilobytes, bench_by_value);
    printf("%s\t%.4e\tpeak %.1f MB\n", name, seconds[RUNS / 2], kilobytes[RUNS / 2] / 1000 * 1.024);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"static", "shared"};
    char self[PATH_MAX] = "", name[64], program[PATH_MAX + 64];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    const char *folder = dirname(self);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "S.start_to_first_step_%s", kinds[i]);
        snprintf(program, sizeof program, "exec '%s/first_step_%s'", folder, kinds[i]);
        if (bench_wanted(argc, argv, name)) measure(name, program);
    }
    return 0;
}
