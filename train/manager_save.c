#include "train/manager.h"
#include "io/bundle.h"
#include "tensor/threads.h"
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/*
 * A save, and the removal of old checkpoints:
 *
 *     the bundle, complete and on disk -> the state file with it as the newest
 *         -> old checkpoints are removed -> the state file without them
 *
 * After a kill at any point, the folder has a complete newest checkpoint, the old or the new one.
 * The next manager finds a checkpoint that is complete but not listed, because it is newer than the
 * state file.
 *
 * A failure before the bundle is complete leaves nothing of it, and its number free. After that the
 * new checkpoint is kept and listed, whatever fails: removing it could fail too, and the state file
 * may list it although its fsync failed. The next save removes what this one could not.
 *
 * A save has its own snapshot of the values and its own copy of the state. So the thread in the
 * background shares nothing with the caller, who takes the new state when the thread has ended.
 * There are no locks; there is at most one save at a time.
 */

static const char who[] = "manager_save";

struct save {
    snapshot *values;
    char *folder, *path;
    state next; /* the state with the new checkpoint; after writing, the state of the folder */
    keep_rules rules;
    int64_t step, counter;

    bool written, fine; /* written: the bundle; fine: everything */
    error_saved error;  /* of the thread */
    pthread_t thread;
    bool landed; /* atomic */
};

static void save_free(save *s)
{
    if (!s) return;
    snapshot_free(s->values);
    state_free(&s->next);
    memory_free(s->folder);
    memory_free(s->path);
    memory_free(s);
}

/* ---- Removing old checkpoints ---------------------------------------------------------------- */

/* The list of a copied folder may have checkpoints of the original folder. */
static bool is_inside(const char *folder, const char *path, bool *inside)
{
    char *relative = state_relative(folder, path);
    if (!relative) return false;
    *inside = *relative != '/' && strncmp(relative, "../", 3) && !strstr(relative, "/../");
    memory_free(relative);
    return true;
}

/* Whether the checkpoint of that time is kept for ever; it is then the last such one. */
static bool is_preserved(save *s, double time)
{
    double hours = s->rules.every_hours;
    if (!hours || !(time - hours * 3600 >= s->next.last_preserved)) return false;
    s->next.last_preserved = time;
    return true;
}

static bool dismiss(save *s, const state_entry *old)
{
    bool inside;
    if (!is_inside(s->folder, old->path, &inside)) return false;
    return !inside || is_preserved(s, old->timestamp) || bundle_remove(who, old->path);
}

/* Removes the oldest. If one can't be removed, all later ones stay too. */
static bool sweep(save *s)
{
    state *list = &s->next;
    int64_t excess = s->rules.newest ? list->count - s->rules.newest : 0, kept = 0;
    bool fine = true;
    for (int64_t i = 0; i < list->count; i++) {
        state_entry *old = &list->entries[i];
        bool stays = i >= excess || !fine || (list->best && !strcmp(list->best, old->path));
        if (!stays) stays = !(fine = dismiss(s, old));
        if (stays)
            list->entries[kept++] = *old;
        else
            memory_free(old->path);
    }
    list->count = kept;
    return fine;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void save_run(save *s)
{
    s->written = snapshot_write(s->values, who, s->path);
    snapshot_free(s->values); /* from now on variables are changed in place again */
    s->values = NULL;
    if (!s->written || !state_write(who, s->folder, &s->next)) return;
    int64_t before = s->next.count;
    bool swept = sweep(s);
    s->fine = (s->next.count == before || state_write(who, s->folder, &s->next)) && swept;
}

static void *save_thread(void *user)
{
    save *s = user;
    threads_alone(); /* the other threads are for training */
    save_run(s);
    error_save(&s->error);
    __atomic_store_n(&s->landed, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Signals are handled by the program's own threads. */
static bool start_thread(save *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&s->thread, NULL, save_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

int64_t manager_flying_step(const save *s)
{
    return s->step;
}

bool manager_has_landed(const save *s)
{
    return __atomic_load_n(&s->landed, __ATOMIC_ACQUIRE);
}

/* Takes over the result of the save. After a failure its number is free again. */
static bool take_over(ed_checkpoint_manager *m, save *s)
{
    bool fine = s->fine;
    if (s->written) {
        state before = m->state;
        m->state = s->next;
        s->next = before;
        m->last_step = s->step;
        m->stepped = true;
    } else if (m->checkpoint->save_counter == s->counter)
        m->checkpoint->save_counter--;
    if (s->error.code) ed_fail(s->error.code, "%s", s->error.message);
    save_free(s);
    return fine;
}

bool manager_finish(ed_checkpoint_manager *m)
{
    save *s = m->in_flight;
    if (!s) return true;
    m->in_flight = NULL;
    pthread_join(s->thread, NULL);
    return take_over(m, s);
}

/* ---- Starting a save ------------------------------------------------------------------------- */

static bool is_better(const ed_checkpoint_manager *m, const state *s, double metric)
{
    return m->best == ED_BEST_HIGHEST ? metric > s->metric : metric < s->metric;
}

/* A best checkpoint of the other direction, or of a manager without `best`, does not count. */
static bool note_best(const ed_checkpoint_manager *m, save *s, double metric)
{
    state *next = &s->next;
    bool highest = m->best == ED_BEST_HIGHEST;
    if (next->best && m->best && next->highest == highest && strcmp(next->best, s->path) &&
        !is_better(m, next, metric))
        return true;
    memory_free(next->best);
    next->best = NULL;
    if (!m->best) return true;
    next->metric = metric;
    next->highest = highest;
    return (next->best = text_copy(s->path));
}

/* The new one is the last, also if it replaces one of the same name. */
static bool list_it(const ed_checkpoint_manager *m, save *s, double metric)
{
    state *next = &s->next;
    if (!state_copy(&m->state, next)) return false;
    int64_t old = state_find(next, s->path);
    if (old >= 0) {
        memory_free(next->entries[old].path);
        next->count--;
        memmove(next->entries + old, next->entries + old + 1,
                (size_t)(next->count - old) * sizeof *next->entries);
    }
    memory_free(next->latest);
    return (next->latest = text_copy(s->path)) && state_add(next, s->path, manager_clock()) &&
           note_best(m, s, metric);
}

static save *prepare(ed_checkpoint_manager *m, const ed_manager_save_options *o, int64_t step)
{
    save *s = memory_zalloc(sizeof *s);
    if (!s) return NULL;
    int64_t counter = m->checkpoint->save_counter;
    char *name = io_text("%s-%lld", m->name, (long long)(o->number < 0 ? counter : o->number));
    s->rules = m->rules;
    s->step = step;
    s->counter = counter;
    s->folder = text_copy(m->folder);
    s->path = name ? state_join(m->folder, name) : NULL;
    memory_free(name);
    if (s->folder && s->path && list_it(m, s, o->metric) &&
        (s->values = snapshot_take(m->checkpoint, true, o->weights_only)))
        return s;
    save_free(s);
    return NULL;
}

const char *manager_save(ed_checkpoint_manager *m, const ed_manager_save_options *options,
                         int64_t step)
{
    ed_checkpoint *c = m->checkpoint;
    if (c->save_counter == INT64_MAX)
        return ed_fail(ED_OUT_OF_RANGE, "manager_save: the save counter would overflow");
    c->save_counter++;
    save *s = prepare(m, options, step);
    const char *path = s ? train_text(s->path) : NULL;
    if (!path) {
        save_free(s);
        c->save_counter--;
        return NULL;
    }
    if (options->in_background && start_thread(s)) {
        m->in_flight = s;
        return path;
    }
    save_run(s);
    return take_over(m, s) ? path : NULL;
}
