/*
 * A checkpoint of 400 MB, 8 variables of 50 MB, saved and loaded, beside what the system does with
 * the same bytes: write and fsync; the sum over the mapped file; a copy into fresh memory. The disk
 * of a shared machine has moods, so every round does all of them, one right after the other, and
 * the last column has the median of the rounds' ratios: above 1, the checkpoint is faster than its
 * twin.
 *
 * "load_cold" reads a file that the system does not have in memory, the other loads one that it
 * has. "load" goes into fresh memory, the others into memory that the process has already.
 *
 * A save in the background: how long it keeps the caller, and what the next steps cost. The first
 * copies what it changes, after the first save into memory that is fresh too.
 *
 * The files go to TMPDIR, or else to the program's folder, and are removed at the end. The memory
 * that all of this needs is touched once before anything is timed: under a hypervisor a page's
 * first use costs more than writing it to the disk.
 */
#include "bench/programs.h"
#include "eddy.h"
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 5, VARIABLES = 8, BYTES = 50000000, MEGABYTE = 1000000, TOUCHED = 1500 };

/* What is timed, once a round. */
enum {
    RAW_WRITE,
    SAVE,
    RAW_COLD,
    LOAD_COLD,
    RAW_WARM,
    COPY,
    LOAD_FRESH,
    LOAD_AGAIN,
    STEP,
    SAVE_BACKGROUND,
    STEP_FIRST,
    STEP_DURING,
    STEP_AGAIN,
    TIMED
};

static const struct line {
    const char *name;
    int twin; /* -1: none */
    const char *twin_name;
} lines[TIMED] = {
    [RAW_WRITE] = {"limit_write_fsync_400MB", -1, NULL},
    [SAVE] = {"K.save_400MB", RAW_WRITE, "write+fsync"},
    [RAW_COLD] = {"limit_map_cold_400MB", -1, NULL},
    [LOAD_COLD] = {"K.load_cold_400MB", RAW_COLD, "mapped sum"},
    [RAW_WARM] = {"limit_map_400MB", -1, NULL},
    [COPY] = {"limit_copy_fresh_400MB", -1, NULL},
    [LOAD_FRESH] = {"K.load_400MB", COPY, "copy"},
    [LOAD_AGAIN] = {"K.load_again_400MB", RAW_WARM, "mapped sum"},
    [STEP] = {"K.step_sgd_400MB", -1, NULL},
    [SAVE_BACKGROUND] = {"K.save_background_returns", -1, NULL},
    [STEP_FIRST] = {"K.step_sgd_after_first_save", STEP, "step"},
    [STEP_DURING] = {"K.step_sgd_during_save", STEP, "step"},
    [STEP_AGAIN] = {"K.step_sgd_after_second_save", STEP, "step"},
};

static double seconds[TIMED][ROUNDS];

static struct {
    char folder[512];
    ed_tensor *variables[VARIABLES];
    ed_list *list, *gradients;
    ed_optimizer *sgd;
    ed_checkpoint *checkpoint;
    ed_checkpoint_manager *manager;
    int64_t save_bytes, load_bytes; /* of memory at the most, beyond what was there before */
} b;

static void die(const char *what)
{
    fprintf(stderr, "bench_checkpoint: %s: %s\n", what, ed_failed() ? ed_error() : "failed");
    exit(1);
}

static char *path_of(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", b.folder, name);
    return path;
}

static const char *values_of(int i)
{
    return ed_data(b.variables[i]);
}

/* ---- What the system does -------------------------------------------------------------------- */

static void sync_folder(void)
{
    int folder = open(b.folder, O_RDONLY | O_DIRECTORY);
    if (folder < 0 || fsync(folder)) die("fsync of the folder");
    close(folder);
}

static void raw_write(void)
{
    int file = open(path_of("raw"), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file < 0) die("open");
    for (int i = 0; i < VARIABLES; i++)
        for (size_t at = 0; at < BYTES; at += MEGABYTE)
            if (write(file, values_of(i) + at, MEGABYTE) != MEGABYTE) die("write");
    if (fsync(file)) die("fsync");
    close(file);
    sync_folder();
}

static void forget(const char *name)
{
    int file = open(path_of(name), O_RDONLY);
    if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) die("fadvise");
    close(file);
}

static volatile uint64_t sum_seen;

static void raw_map(void)
{
    int file = open(path_of("raw"), O_RDONLY);
    size_t size = (size_t)VARIABLES * BYTES;
    uint64_t *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0), sum = 0;
    if (data == MAP_FAILED) die("mmap");
    for (size_t i = 0; i < size / sizeof *data; i++) sum += data[i];
    sum_seen = sum;
    munmap(data, size);
    close(file);
}

static void copy_fresh(void)
{
    size_t size = (size_t)VARIABLES * BYTES;
    char *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) die("mmap");
    for (int i = 0; i < VARIABLES; i++) memcpy(to + (size_t)i * BYTES, values_of(i), BYTES);
    munmap(to, size);
}

/* ---- What Eddy does -------------------------------------------------------------------------- */

static void save(void)
{
    ED_SCOPE;
    if (!ed_checkpoint_write(b.checkpoint, path_of("saved"))) die("save");
}

static void load(void)
{
    ED_SCOPE;
    if (!ed_checkpoint_read(b.checkpoint, path_of("saved"))) die("load");
}

static void step(void)
{
    ED_SCOPE;
    if (!ed_apply_gradients(b.sgd, b.gradients, b.list)) die("step");
}

static void save_in_background(void)
{
    ED_SCOPE;
    if (!ed_manager_save(b.manager, .in_background = true)) die("save in the background");
}

/* ---- The rounds ------------------------------------------------------------------------------ */

static void timed(int what, int round, void (*f)(void))
{
    double start = bench_now();
    f();
    seconds[what][round] = bench_now() - start;
}

/* The same, and the memory it takes. */
static void timed_and_weighed(int what, int round, void (*f)(void), int64_t *bytes)
{
    ed_memory_reset_peak();
    int64_t before = ed_memory_stats().live_bytes;
    timed(what, round, f);
    *bytes = ed_memory_stats().peak_bytes - before;
}

static void remove_files(void)
{
    unlink(path_of("raw"));
    unlink(path_of("saved.data-00000-of-00001"));
    unlink(path_of("saved.index"));
    sync();
}

/* Who goes first changes from round to round: a disk that has given much may give less. */
static void in_turn(int round, void (*one)(int round), void (*other)(int round))
{
    if (round % 2 == 0) one(round);
    other(round);
    if (round % 2) one(round);
}

static void round_raw_write(int round)
{
    timed(RAW_WRITE, round, raw_write);
}

static void round_save(int round)
{
    timed_and_weighed(SAVE, round, save, &b.save_bytes);
}

static void round_raw_cold(int round)
{
    forget("raw");
    timed(RAW_COLD, round, raw_map);
}

static void round_load_cold(int round)
{
    forget("saved.data-00000-of-00001");
    timed(LOAD_COLD, round, load);
}

static void round_warm(int round)
{
    timed(RAW_WARM, round, raw_map);
    timed(COPY, round, copy_fresh);
    timed(LOAD_AGAIN, round, load);
    ed_memory_trim();
    timed_and_weighed(LOAD_FRESH, round, load, &b.load_bytes);
}

static void round_background(int round)
{
    step();
    timed(STEP, round, step);
    timed(SAVE_BACKGROUND, round, save_in_background);
    timed(STEP_FIRST, round, step);
    timed(STEP_DURING, round, step);
    if (!ed_manager_wait(b.manager)) die("save in the background");
    save_in_background();
    timed(STEP_AGAIN, round, step);
    if (!ed_manager_wait(b.manager)) die("save in the background");
}

static double median(const double *values)
{
    double sorted[ROUNDS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, bench_by_value);
    return sorted[ROUNDS / 2];
}

static double median_ratio(int what)
{
    double ratios[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) ratios[r] = seconds[lines[what].twin][r] / seconds[what][r];
    return median(ratios);
}

static void print_line(int what)
{
    const struct line *l = &lines[what];
    printf("%s\t%.4e\t", l->name, median(seconds[what]));
    if (l->twin >= 0) printf("%.2f x %s", median_ratio(what), l->twin_name);
    if (what == SAVE) printf(", %.1f MB of memory", (double)b.save_bytes / MEGABYTE);
    if (what == LOAD_FRESH) printf(", %.1f MB of memory", (double)b.load_bytes / MEGABYTE);
    puts("");
}

/* ---- All together ---------------------------------------------------------------------------- */

/* Memory of our own and of the system's for files. */
static void touch_memory(void)
{
    size_t size = (size_t)TOUCHED * MEGABYTE;
    char *memory = malloc(size);
    if (!memory) die("memory");
    for (size_t i = 0; i < size; i += 4096) ((volatile char *)memory)[i] = 1;
    free(memory);
    raw_write();
    save();
    load();
}

static void make_model(void)
{
    float *values = malloc(BYTES);
    ed_tensor *gradients[VARIABLES];
    if (!values) die("memory");
    for (int i = 0; i < VARIABLES; i++) {
        for (size_t k = 0; k < BYTES / sizeof *values; k++)
            values[k] = (float)((k + (size_t)i) * 2654435761u % 2000003) / 1000 - 1000;
        gradients[i] = ed_constant(values, ED_SHAPE(BYTES / sizeof *values));
        b.variables[i] = ed_variable(gradients[i]);
    }
    free(values);
    b.list = ed_list_make(b.variables, VARIABLES);
    b.gradients = ed_list_make(gradients, VARIABLES);
    b.sgd = ed_optimizer_sgd(.learning_rate = 1e-9);
    b.checkpoint = ed_checkpoint("model", b.list);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(b.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(const char *program)
{
    const char *given = getenv("TMPDIR"), *slash = strrchr(program, '/');
    int own = slash ? (int)(slash - program) : 1;
    if (given)
        snprintf(b.folder, sizeof b.folder, "%s/eddy-bench-XXXXXX", given);
    else
        snprintf(b.folder, sizeof b.folder, "%.*s/eddy-bench-XXXXXX", own, slash ? program : ".");
    if (!mkdtemp(b.folder)) die(b.folder);
    atexit(remove_folder);
}

int main(int argc, char **argv)
{
    bool wanted = false;
    for (int i = 0; i < TIMED; i++) wanted |= bench_wanted(argc, argv, lines[i].name);
    if (!wanted) return 0;
    ED_SCOPE;
    make_folder(argv[0]);
    make_model();
    b.manager = ed_checkpoint_manager(b.checkpoint, path_of("kept"), .max_to_keep = 1);
    if (ed_failed()) die("the model");
    touch_memory();
    for (int r = 0; r < ROUNDS; r++) {
        remove_files();
        in_turn(r, round_raw_write, round_save);
        in_turn(r, round_raw_cold, round_load_cold);
        round_warm(r);
        round_background(r);
    }
    for (int i = 0; i < TIMED; i++)
        if (bench_wanted(argc, argv, lines[i].name)) print_line(i);
    return ed_failed() ? 1 : 0;
}
