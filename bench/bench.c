/*
 * eddy_bench: times Eddy's workloads, one line each behind a comment with the version:
 *
 *     # Eddy <TAB> version <TAB> compiler
 *     id <TAB> median seconds <TAB> fewest <TAB> most <TAB> unit <TAB> amount <TAB> bytes moved
 *
 *   --threads N       Eddy's, and the limits' (default: all cores)
 *   --only A,B        ids that begin so, or whose name behind the point does
 *   --workload ID     this one alone
 *   --budget SECONDS  of samples for each workload (default 0.3)
 *   --list            ids alone
 *   --check           results are checked, nothing is timed
 *   --memory          bytes beyond those of before, at the most, of the one workload
 *   --once            one run of each behind one that warms up, in the function bench_counted:
 *                     for what counts instructions
 *   --keep-cache      leave Eddy's cache of memory as earlier workloads filled it
 *
 * Every workload is run once, and its result checked: a wrong one prints WRONG and no time. Then
 * runs are repeated until a sample takes a millisecond, and samples until the budget is spent, at
 * least three.
 */
#include "bench/bench.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORKLOADS = 512, MOST_SAMPLES = 400, LEAST_SAMPLES = 3, MOST_PREFIXES = 64 };

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static struct {
    int threads;
    double budget;
    bool list, check, memory, once, keep_cache;
    const char *workload, *only[MOST_PREFIXES];
    int prefixes;
} options = {.budget = 0.3};

static workload all[MOST_WORKLOADS];
static int count;
static const char *group;   /* that is being added */
static char complaint[160]; /* about the workload at hand */

void bench_add(workload w, const char *format, ...)
{
    if (count == MOST_WORKLOADS) abort();
    int length = snprintf(w.id, sizeof w.id, "%s.", group);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w.id + length, sizeof w.id - (size_t)length, format, arguments);
    va_end(arguments);
    if (w.forward) w.run = bench_gradients;
    all[count++] = w;
}

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int bench_threads(void)
{
    return options.threads;
}

const char *bench_folder(void)
{
    static char path[512];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash = strrchr(path, '/');
    if (length < 0 || !slash) abort();
    *slash = 0;
    return path;
}

/* ---- Operands -------------------------------------------------------------------------------- */

ed_tensor *bench_numbers(ed_ints shape)
{
    return ed_random_uniform(shape, .low = -2, .high = 2);
}

ed_tensor *bench_positive(ed_ints shape)
{
    return ed_random_uniform(shape, .low = 0.1, .high = 2.1);
}

ed_tensor *bench_indices(int64_t n, int64_t below, ed_dtype dtype)
{
    return ed_random_uniform(ED_SHAPE(n), .dtype = dtype, .high = (double)below);
}

void bench_fill_cache(void)
{
    ED_SCOPE;
    for (int i = 0; i < 20; i++) ed_zeros(ED_SHAPE(M16));
    for (int i = 0; i < 40; i++) ed_zeros(ED_SHAPE(1000000 + 300000 * i));
}

/* ---- Checks ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    if (*complaint) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint, sizeof complaint, format, arguments);
    va_end(arguments);
}

void bench_claim(bool so, const char *what)
{
    if (!so) complain("not so: %s", what);
}

void bench_near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        complain("%s is %.9g, not %.9g", what, got, want);
}

void bench_shape(const ed_tensor *t, ed_ints shape)
{
    ed_ints is = ed_shape(t);
    bool same = is.count == shape.count;
    for (int i = 0; same && i < shape.count; i++) same = is.values[i] == shape.values[i];
    bench_claim(same, "the result has the right shape");
}

double bench_at(const ed_tensor *t, int64_t i)
{
    const void *data = ed_data(t);
    if (!data || i >= ed_size(t)) return complain("no element %lld", (long long)i), NAN;
    switch (ed_dtype_of(t)) {
    case ED_FLOAT32: return ((const float *)data)[i];
    case ED_FLOAT64: return ((const double *)data)[i];
    case ED_INT32: return ((const int32_t *)data)[i];
    case ED_INT64: return (double)((const int64_t *)data)[i];
    case ED_BOOL: return ((const bool *)data)[i];
    default: return NAN;
    }
}

/* ---- Timing ---------------------------------------------------------------------------------- */

static void run(workload *w, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        ED_SCOPE;
        w->run(w);
    }
}

/* Seconds of so many runs. */
static double seconds(workload *w, int64_t times)
{
    if (w->before) w->before(w);
    double begin = bench_now();
    run(w, times);
    return bench_now() - begin;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Prints the median of samples, and the fewest and the most seconds. */
static void report(const workload *w, double *samples, int n)
{
    static const char *const units[] = {"calls", "bytes",        "updated", "read",
                                        "flops", "double_flops", "written", "samples"};
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    printf("%s\t%.4e\t%.4e\t%.4e\t%s\t%.6g\t%.6g\n", w->id, median, samples[0], samples[n - 1],
           units[w->unit], w->amount, w->moved);
}

static void time_it(workload *w)
{
    double samples[MOST_SAMPLES], once = fmax(seconds(w, 1), 1e-9);
    int64_t inner = once < 1e-3 && !w->before ? (int64_t)(1e-3 / once) : 1;
    for (int i = 0; i < (once < 0.05 ? 3 : 1); i++) seconds(w, 1);
    int n = 0;
    double end = bench_now() + options.budget;
    while (n < LEAST_SAMPLES || (n < MOST_SAMPLES && bench_now() < end)) {
        samples[n++] = seconds(w, inner) / (double)inner / (w->calls ? w->calls : 1);
    }
    report(w, samples, n);
}

/* Where instructions are counted. */
__attribute__((noinline)) void bench_counted(workload *w);
void bench_counted(workload *w)
{
    run(w, 1);
}

static void make(workload *w)
{
    if (w->make) w->make(w);
    if (w->forward) bench_gradients_make(w);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A line of /proc/self/status, in bytes. */
static int64_t status(const char *field)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    size_t length = strlen(field);
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, field, length)) sscanf(line + length, ": %lld", &kilobytes);
    if (file) fclose(file);
    return kilobytes * 1024;
}

/* The most resident memory of ten runs beyond that of now: the model, its gradients, all; or what
 * another process took. */
static void weigh(workload *w)
{
    int64_t before = status("VmRSS");
    ED_SCOPE;
    make(w);
    for (int i = 0; i < 10; i++) seconds(w, 1);
    int64_t bytes = w->memory ? w->memory : status("VmHWM") - before;
    printf("%s\t%lld\n", w->id, (long long)bytes);
    if (w->drop) w->drop(w);
}

/* ---- The program ----------------------------------------------------------------------------- */

/* The result of the first run is right, and no call failed. */
static bool right(workload *w)
{
    ED_SCOPE;
    if (w->before) w->before(w);
    ed_tensor *y = w->run(w);
    if (w->forward)
        bench_gradients_check(w);
    else if (w->check && !ed_failed())
        w->check(w, y ? ed_contiguous(y) : NULL);
    if (ed_failed()) complain("%s", ed_error());
    return !*complaint;
}

static bool measure(workload *w)
{
    ED_SCOPE;
    *complaint = 0;
    ed_set_seed(1);
    if (!options.keep_cache) ed_memory_trim();
    if (options.memory) return weigh(w), true;
    make(w);
    bool good = right(w);
    if (!good)
        printf("%s\tWRONG %s\n", w->id, complaint);
    else if (options.check)
        printf("%s\tok\n", w->id);
    else if (options.once)
        bench_counted(w);
    else
        time_it(w);
    if (w->drop) w->drop(w);
    fflush(stdout);
    ed_clear_error();
    return good;
}

static bool wanted(const char *id)
{
    if (options.workload) return !strcmp(id, options.workload);
    const char *name = strchr(id, '.') + 1;
    for (int i = 0; i < options.prefixes; i++) {
        size_t length = strlen(options.only[i]);
        if (!strncmp(id, options.only[i], length) || !strncmp(name, options.only[i], length))
            return true;
    }
    return !options.prefixes;
}

static void take_prefixes(char *text)
{
    for (char *p = strtok(text, ", "); p && options.prefixes < MOST_PREFIXES;
         p = strtok(NULL, ", "))
        options.only[options.prefixes++] = p;
}

static bool take(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        bool *flag = !strcmp(name, "--list")         ? &options.list
                     : !strcmp(name, "--check")      ? &options.check
                     : !strcmp(name, "--memory")     ? &options.memory
                     : !strcmp(name, "--once")       ? &options.once
                     : !strcmp(name, "--keep-cache") ? &options.keep_cache
                                                     : NULL;
        if (flag) {
            *flag = true;
            continue;
        }
        if (++i >= argc) return false;
        if (!strcmp(name, "--threads"))
            options.threads = atoi(argv[i]);
        else if (!strcmp(name, "--budget"))
            options.budget = atof(argv[i]);
        else if (!strcmp(name, "--workload"))
            options.workload = argv[i];
        else if (!strcmp(name, "--only"))
            take_prefixes(argv[i]);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!take(argc, argv)) return fputs("usage: see the top of bench/bench.c\n", stderr), 2;
    if (options.threads < 1) options.threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    ed_set_num_threads(options.threads);
#define ADD_GROUP(name) group = #name, bench_##name();
    BENCH_GROUPS(ADD_GROUP)
    if (!options.list) printf("# Eddy\t%s\t%s\n", ed_version(), COMPILER);
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (!wanted(all[i].id)) continue;
        if (options.list)
            puts(all[i].id);
        else
            good &= measure(&all[i]);
    }
    return good ? 0 : 1;
}
