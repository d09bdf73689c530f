/*
 * Checkpoints of 400 MB, 8 variables of 50 MB, in TMPDIR or else in the program's folder: saved to
 * disk, loaded from the system's memory or cold; what a save in the background costs its caller,
 * and the next step, which copies what it changes.
 */
#include "bench/bench.h"
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { VARIABLES = 8, ELEMENTS = 12500000 };
static const double total = 4.0 * VARIABLES * ELEMENTS;

typedef struct files {
    char folder[512];
    ed_checkpoint *checkpoint;
    ed_checkpoint_manager *manager;
    ed_optimizer *sgd;
    ed_list *gradients;
} files;

static const char *path_in(const files *f, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return path;
}

static void make(workload *w)
{
    ed_tensor *variables[VARIABLES], *gradients[VARIABLES];
    for (int i = 0; i < VARIABLES; i++) {
        gradients[i] = bench_numbers(ED_SHAPE(ELEMENTS));
        variables[i] = ed_variable(gradients[i]);
    }
    files *f = calloc(1, sizeof *f);
    if (!f) abort();
    w->more = f;
    w->list = ed_list_make(variables, VARIABLES);
    f->gradients = ed_list_make(gradients, VARIABLES);
    f->sgd = ed_optimizer_sgd(.learning_rate = 1e-9);
    f->checkpoint = ed_checkpoint("model", w->list);
    const char *given = getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%s/eddy-bench-XXXXXX", given ? given : bench_folder());
    bench_claim(mkdtemp(f->folder), "a folder can be made");
    f->manager = ed_checkpoint_manager(f->checkpoint, path_in(f, "kept"), .max_to_keep = 1);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void drop(workload *w)
{
    files *f = w->more;
    ed_manager_wait(f->manager);
    nftw(f->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
}

/* ---- What is timed, and what comes before each time ---- */

static ed_tensor *save(workload *w)
{
    files *f = w->more;
    ed_checkpoint_write(f->checkpoint, path_in(f, "saved"));
    return NULL;
}

static void make_saved(workload *w)
{
    make(w);
    save(w);
}

static ed_tensor *load(workload *w)
{
    files *f = w->more;
    ed_checkpoint_read(f->checkpoint, path_in(f, "saved"));
    return NULL;
}

/* The system keeps nothing of the files in its memory. */
static void forget(workload *w)
{
    glob_t found;
    if (glob(path_in(w->more, "saved*"), 0, NULL, &found)) abort();
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int file = open(found.gl_pathv[i], O_RDONLY);
        if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) abort();
        close(file);
    }
    globfree(&found);
}

static void trim(workload *w)
{
    (void)w;
    ed_memory_trim();
}

static ed_tensor *save_in_background(workload *w)
{
    files *f = w->more;
    ed_manager_save(f->manager, .in_background = true);
    return NULL;
}

static void wait_for_save(workload *w)
{
    files *f = w->more;
    ed_manager_wait(f->manager);
}

static ed_tensor *step(workload *w)
{
    files *f = w->more;
    ed_apply_gradients(f->sgd, f->gradients, w->list);
    return NULL;
}

static void begin_save(workload *w)
{
    wait_for_save(w);
    save_in_background(w);
}

/* The values that were saved come back. */
static void check(workload *w, ed_tensor *y)
{
    (void)y;
    files *f = w->more;
    wait_for_save(w);
    ed_tensor *variable = ed_list_get(w->list, 0), *values = ed_value(variable);
    save(w);
    ed_assign(variable, ed_zeros_like(values));
    load(w);
    BENCH_SPREAD(i, ELEMENTS)
    bench_near("a value", bench_at(ed_value(variable), i), bench_at(values, i), 0);
    bench_claim(!access(path_in(f, "saved.index"), R_OK), "the file is there");
}

void bench_file(void)
{
    static const struct {
        const char *name;
        bench_unit unit;
        double amount;
        void (*make)(workload *w);
        ed_tensor *(*run)(workload *w);
        void (*before)(workload *w);
    } rows[] = {
        {"save_400MB", BENCH_WRITTEN, total, make, save, NULL},
        {"load_400MB", BENCH_BYTES, 2 * total, make_saved, load, NULL},
        {"load_400MB_fresh", BENCH_BYTES, 2 * total, make_saved, load, trim},
        {"load_400MB_cold", BENCH_CALLS, 1, make_saved, load, forget},
        {"save_400MB_in_background", BENCH_CALLS, 1, make, save_in_background, wait_for_save},
        {"step_400MB", BENCH_UPDATED, 3 * total, make, step, NULL},
        {"step_400MB_during_save", BENCH_UPDATED, 3 * total, make, step, begin_save}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        workload w = {rows[i].unit, rows[i].amount, .make = rows[i].make, .run = rows[i].run};
        w.before = rows[i].before, w.check = check, w.drop = drop;
        bench_add(w, "%s", rows[i].name);
    }
}
