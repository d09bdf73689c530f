#include "train/manager.h"
#include "io/file.h"
#include "tensor/schema_core.h"
#include "train/object_graph.h"
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * The manager: creation, its folder, restoring, destruction. Saving is in manager_save.c.
 *
 * A state file is interpreted as in TensorFlow: the manager does not remove checkpoints without a
 * time stamp, or older than the last one that is kept for ever. If there is no valid state file,
 * all checkpoints of the manager's name belong to it.
 */

static double real_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double (*manager_clock)(void) = real_time;

/* ---- All managers ---------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    ed_checkpoint_manager *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_all(void)
{
    pthread_mutex_lock(&all.lock);
}

static void unlock_all(void)
{
    pthread_mutex_unlock(&all.lock);
}

__attribute__((constructor(103))) static void manager_watch_forks(void)
{
    pthread_atfork(lock_all, unlock_all, unlock_all);
}

static void join_all(ed_checkpoint_manager *m)
{
    lock_all();
    m->next = all.first;
    if (m->next) m->next->previous = m;
    all.first = m;
    unlock_all();
}

static void leave_all(ed_checkpoint_manager *m)
{
    lock_all();
    if (m->next) m->next->previous = m->previous;
    if (m->previous)
        m->previous->next = m->next;
    else if (all.first == m)
        all.first = m->next;
    unlock_all();
}

/* At exit of the process, perhaps with managers that were not released. Does not wait for
 * threads of other processes, and holds no lock while it waits. */
__attribute__((destructor)) static void wait_for_all(void)
{
    lock_all();
    ed_checkpoint_manager *m = all.first;
    unlock_all();
    for (; m; m = m->next)
        if (m->owner == getpid()) manager_finish(m);
}

/* ---- The object ------------------------------------------------------------------------------ */

/* In a child of fork there is no thread to wait for, and the lock belongs to the parent: only
 * the copy of its descriptor is closed. Memory of a save in progress is not freed. */
static void manager_destroy(void *object)
{
    ed_checkpoint_manager *m = object;
    leave_all(m);
    if (m->owner == getpid()) {
        manager_finish(m);
        io_unlock(m->lock);
    } else if (m->lock >= 0)
        close(m->lock);
    state_free(&m->state);
    io_buffer_free(&m->skipped);
    ed_release(m->restoration);
    ed_release(m->checkpoint);
    ed_release(m->step_counter);
    memory_free(m->folder);
    memory_free(m->name);
    memory_free(m->place);
    memory_free(m);
}

static const object_class manager_class = {.name = "checkpoint manager",
                                           .destroy = manager_destroy};

/* Whether this process created the manager; false, with an error, if not. */
static bool is_ours(const ed_checkpoint_manager *m, const char *who)
{
    if (m->owner == getpid()) return true;
    return ed_fail(ED_FAILED_PRECONDITION,
                   "%s: %s: the manager belongs to process %d, from which this one was forked", who,
                   m->folder, (int)m->owner),
           false;
}

/* ---- The step counter ------------------------------------------------------------------------ */

static bool whole_number(const graph_node *node, int64_t *value)
{
    if (node->kind == GRAPH_CELL && node->state.dtype == ED_INT64 && node->state.count < 0)
        return node->state.get(node->object, value), true;
    if (node->kind != GRAPH_VARIABLE) return false;
    const ed_tensor *v = tensor_read(node->object);
    if (v->dtype != ED_INT64 || v->size != 1) return false;
    memcpy(value, v->data, sizeof *value);
    return true;
}

/* The value of the step counter; false with an error. */
static bool read_step(const ed_checkpoint_manager *m, int64_t *step)
{
    static const char *const name = "step";
    graph g;
    if (!graph_make(&g, &name, &m->step_counter, 1, false)) return false;
    int at = graph_find(&g, m->step_counter);
    bool fine = at >= 0 && whole_number(&g.nodes[at], step);
    graph_free(&g);
    if (!fine)
        ed_fail(ED_INVALID_ARGUMENT, "checkpoint_manager: step_counter must be an int64 "
                                     "variable of one element or an ed_counter");
    return fine;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* A time stamp in the future (the clock was set back) must not make an old checkpoint the
 * newest. */
static double no_later(double time, double now)
{
    return now < time ? now : time;
}

/* The index of a path among the first `count`, -1: none. */
static int64_t find_before(const state *s, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++)
        if (!strcmp(s->entries[i].path, path)) return i;
    return -1;
}

/* From the state file: removes those from the list that don't belong to the manager. One that is
 * listed twice stays where it was listed first, with its last time stamp, as in TensorFlow. */
static void recover_listed(state *s, double now)
{
    int64_t kept = 0;
    s->last_preserved = no_later(s->last_preserved, now);
    for (int64_t i = 0; i < s->count; i++) {
        state_entry e = s->entries[i];
        bool best = s->best && !strcmp(s->best, e.path);
        bool ours = e.timestamp && no_later(e.timestamp, now) > s->last_preserved;
        e.timestamp = e.timestamp ? no_later(e.timestamp, now) : now;
        int64_t before = find_before(s, kept, e.path);
        if (before >= 0) s->entries[before].timestamp = e.timestamp;
        if (before < 0 && (ours || best))
            s->entries[kept++] = e;
        else
            memory_free(e.path);
    }
    s->count = kept;
}

/* The value of save_counter in a checkpoint; *counter is -1 if that can't be read. false, with an
 * error, for what is not the checkpoint's fault. */
static bool saved_counter(const char *path, int64_t *counter)
{
    static const char key[] = "save_counter" VALUE_SUFFIX;
    error_saved earlier;
    error_save(&earlier);
    bundle *b = bundle_open("checkpoint_manager", path);
    const bundle_entry *e = b ? bundle_find(b, key) : NULL;
    bool number = e && !e->damage && e->dtype == IO_INT64 && e->elements == 1;
    bool read = number && bundle_read(b, e, counter);
    if (!read) *counter = -1;
    ed_error_code code = ed_error_kind();
    bool fine = !code || io_is_loss(code) || code == ED_UNIMPLEMENTED;
    error_restore(&earlier, fine);
    ed_release(b);
    return fine;
}

/* What take_up_unlisted knows of the newest checkpoint. */
typedef struct newest {
    const state *listed; /* all that the state file lists */
    double written;      /* the time of the state file */
    int64_t counter;     /* the newest one's save_counter, -1: unknown */
} newest;

/* Whether it is the save that came after the newest one; *n then describes it. Times alone don't
 * tell: a copied folder has new ones. */
static bool comes_next(newest *n, const state_entry *e, bool *next)
{
    *next = false;
    if (e->timestamp < n->written || state_find(n->listed, e->path) >= 0) return true;
    int64_t counter;
    if (!saved_counter(e->path, &counter)) return false;
    *next = counter < 0 || n->counter < 0 || counter == n->counter + 1;
    if (*next) n->counter = counter;
    return true;
}

static bool list_as_newest(ed_checkpoint_manager *m, const state_entry *e, double now)
{
    memory_free(m->state.latest);
    m->state.latest = text_copy(e->path);
    return m->state.latest && state_add(&m->state, e->path, no_later(e->timestamp, now));
}

/* A checkpoint that a killed save completed, but did not enter in the state file: its number is
 * higher than the newest one's, its save_counter is the next one, and it is not older than the
 * state file. It is entered now: training continues from it, so other programs must see it as the
 * newest too. */
static bool take_up_unlisted(ed_checkpoint_manager *m, const state *listed, double now)
{
    int64_t number = state_number(m->state.latest, m->stem);
    if (number < 0) return true;
    char *file = state_join(m->folder, "checkpoint");
    newest n = {.listed = listed, .written = file ? state_time_of(file) : 0, .counter = -1};
    state found = {0};
    bool fine = file && state_scan(m->place, m->stem, number, &found), more = false;
    if (fine && found.count) fine = saved_counter(m->state.latest, &n.counter);
    for (int64_t i = 0; fine && i < found.count; i++) {
        bool next;
        fine = comes_next(&n, &found.entries[i], &next);
        if (fine && next) fine = more = list_as_newest(m, &found.entries[i], now);
    }
    if (fine && more && m->lock != IO_READ_ONLY)
        fine = state_write("checkpoint_manager", m->folder, &m->state);
    state_free(&found);
    memory_free(file);
    return fine;
}

/* From a state file that was read. */
static bool recover_by_file(ed_checkpoint_manager *m, double now)
{
    state listed;
    if (!state_copy(&m->state, &listed)) return false;
    recover_listed(&m->state, now);
    bool fine = take_up_unlisted(m, &listed, now);
    state_free(&listed);
    return fine;
}

static bool recover(ed_checkpoint_manager *m)
{
    double now = manager_clock();
    switch (state_read(m->folder, &m->state)) {
    case STATE_FAILED: return false;
    case STATE_READ: return recover_by_file(m, now);
    default: break;
    }
    if (!state_scan(m->place, m->stem, -1, &m->state)) return false;
    for (int64_t i = 0; i < m->state.count; i++)
        m->state.entries[i].timestamp = no_later(m->state.entries[i].timestamp, now);
    if (!m->state.count) m->state.last_preserved = now - 1;
    return true;
}

static bool is_state_file(const char *name, void *user)
{
    (void)user;
    return !strcmp(name, "checkpoint");
}

/* Whether the name is that of a file of this manager's checkpoints. */
static bool is_own_file(const char *name, void *user)
{
    const ed_checkpoint_manager *m = user;
    const char *dot = strstr(name, ".data-");
    if (!dot && strlen(name) > 6) dot = name + strlen(name) - 6;
    char *stem = dot && (dot[1] == 'd' || !strcmp(dot, ".index")) ? text_copy(name) : NULL;
    if (stem) stem[dot - name] = 0;
    bool own = stem && state_number(stem, m->stem) >= 0;
    memory_free(stem);
    return own;
}

static bool is_own_index(const char *name, void *user)
{
    const size_t length = strlen(name);
    return length > 6 && !strcmp(name + length - 6, ".index") && is_own_file(name, user);
}

/* The state file goes first, then what makes the other files a checkpoint: wherever this is
 * killed, what is left is whole or none. */
bool manager_clear(ed_checkpoint_manager *m)
{
    if (!manager_finish(m)) return false;
    io_remove_all(m->folder, is_state_file, m);
    io_remove_all(m->place, is_own_index, m);
    io_remove_all(m->place, is_own_file, m);
    state_free(&m->state);
    m->state = (state){0};
    return true;
}

/* ---- Construction ---------------------------------------------------------------------------- */

/* Whether it is names with a '/' between them, none of them empty, . or .. */
static bool is_inner_path(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (!n || (n <= 2 && !strncmp(path, "..", n))) return false;
        if (!path[n]) return true;
        path += n + 1;
    }
}

static const char *what_is_wrong(const ed_checkpoint_manager_options *o)
{
    if (o->max_to_keep < 0) return "max_to_keep must be >= 0";
    if (!(o->keep_checkpoint_every_n_hours >= 0) || isinf(o->keep_checkpoint_every_n_hours))
        return "keep_checkpoint_every_n_hours must be finite and >= 0";
    if (o->checkpoint_name && !is_inner_path(o->checkpoint_name))
        return "checkpoint_name must be a file name, or a path of one inside the folder";
    if (o->checkpoint_interval < 0) return "checkpoint_interval must be >= 0";
    if (o->checkpoint_interval && !o->step_counter)
        return "checkpoint_interval requires a step_counter";
    if (o->best < ED_BEST_NONE || o->best > ED_BEST_LOWEST)
        return "best must be ED_BEST_NONE, ED_BEST_HIGHEST or ED_BEST_LOWEST";
    return NULL;
}

static bool take_options(ed_checkpoint_manager *m, const ed_checkpoint_manager_options *o)
{
    int64_t step;
    m->rules = (keep_rules){o->max_to_keep, o->keep_checkpoint_every_n_hours};
    m->best = o->best;
    m->step_counter = ed_retain(o->step_counter);
    m->interval = o->checkpoint_interval;
    m->initialize = o->initialize;
    m->user = o->user;
    m->name = text_copy(o->checkpoint_name ? o->checkpoint_name : "ckpt");
    return m->name && (!m->step_counter || read_step(m, &step));
}

/* Where the files of "folder" + "part/ck" are: "folder/part", as "ck". */
static bool find_place(ed_checkpoint_manager *m)
{
    char *path = state_join(m->folder, m->name);
    m->stem = io_name_of(m->name);
    m->place = !path ? NULL : m->stem == m->name ? text_copy(m->folder) : io_folder_of(path);
    memory_free(path);
    return m->place;
}

/* Changes the folder only after it was locked. */
static bool take_folder(ed_checkpoint_manager *m, const char *folder)
{
    static const char who[] = "checkpoint_manager";
    m->folder = text_copy(folder);
    if (!m->folder || !find_place(m) || !io_make_folders(who, folder)) return false;
    m->lock = io_lock(who, folder, ".eddy-lock");
    if ((m->lock < 0 && m->lock != IO_READ_ONLY) || !recover(m)) return false;
    if (m->lock == IO_READ_ONLY) return true;
    io_sweep(folder, is_state_file, m);
    io_sweep(m->place, is_own_file, m);
    state_remove_strays(m->place, m->stem, &m->state);
    return true;
}

ed_checkpoint_manager *ed_checkpoint_manager_with(ed_checkpoint *checkpoint, const char *folder,
                                                  const ed_checkpoint_manager_options *options)
{
    static const ed_checkpoint_manager_options defaults;
    const ed_checkpoint_manager_options *o = options ? options : &defaults;
    if (NULL_GIVEN("checkpoint_manager", checkpoint, folder)) return NULL;
    const char *wrong = *folder ? what_is_wrong(o) : "folder must not be empty";
    if (wrong) return ed_fail(ED_INVALID_ARGUMENT, "checkpoint_manager: %s", wrong);
    ed_checkpoint_manager *m = object_new(&manager_class, sizeof *m);
    if (!m) return NULL;
    m->lock = -1;
    m->owner = getpid();
    m->checkpoint = ed_retain(checkpoint);
    join_all(m);
    if (take_options(m, o) && take_folder(m, folder)) return scope_give(m);
    ed_release(m);
    return NULL;
}

/* ---- Saving ---------------------------------------------------------------------------------- */

/* Whether a save at this step is due. The first one always is. */
static bool is_due(const ed_checkpoint_manager *m, const ed_manager_save_options *o, int64_t step)
{
    bool known = m->in_flight || m->stepped;
    int64_t last = m->in_flight ? manager_flying_step(m->in_flight) : m->last_step, due;
    if (!m->interval || !known) return true;
    if (step == last) return false;
    return o->any_step || __builtin_add_overflow(last, m->interval, &due) || step >= due;
}

const char *ed_manager_save_with(ed_checkpoint_manager *manager,
                                 const ed_manager_save_options *options)
{
    const ed_manager_save_options *o =
        CHECKED_OPTIONS("manager_save", ED_MANAGER_SAVE_OPTIONS, options);
    ed_checkpoint_manager *m = manager;
    int64_t step = 0;
    if (!o || NULL_GIVEN("manager_save", manager)) return NULL;
    if (!is_ours(m, "manager_save")) return NULL;
    if (m->lock == IO_READ_ONLY)
        return ed_fail(ED_FAILED_PRECONDITION, "manager_save: %s: the folder is read-only",
                       m->folder);
    if (m->best && isnan(o->metric))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "manager_save: metric is NaN; the manager keeps the best "
                       "checkpoint, so it must be a number");
    if (m->in_flight && manager_has_landed(m->in_flight) && !manager_finish(m)) return NULL;
    if (m->interval && !read_step(m, &step)) return NULL;
    if (!is_due(m, o, step)) return "";
    return manager_finish(m) ? manager_save(m, o, step) : NULL;
}

bool ed_manager_wait(ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_wait", manager)) return false;
    return is_ours(manager, "manager_wait") && manager_finish(manager);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

typedef enum tried { TRIED_RESTORED, TRIED_LOST, TRIED_FAILED } tried;

/* A damaged checkpoint is added to `skipped`; this is not an error. */
static tried try_one(ed_checkpoint_manager *m, const char *path)
{
    error_saved earlier;
    error_save(&earlier);
    ed_restoration *r =
        checkpoint_restore(m->checkpoint, "manager_restore_or_initialize", path, NULL, false);
    bool lost = !r && io_is_loss(ed_error_kind());
    if (lost) io_put_format(&m->skipped, "%s: %s\n", path, ed_error());
    error_restore(&earlier, lost);
    if (lost && m->skipped.failed)
        ed_fail(ED_OUT_OF_MEMORY, "manager_restore_or_initialize: out of memory");
    if (!r) return lost && !m->skipped.failed ? TRIED_LOST : TRIED_FAILED;
    ed_release(m->restoration);
    m->restoration = ed_retain(r);
    return TRIED_RESTORED;
}

/* Tries those of a list from the newest on, except `latest` and those in `before`, which were
 * tried. */
static tried try_list(ed_checkpoint_manager *m, const state *list, const state *before,
                      const char **path)
{
    tried t = TRIED_LOST;
    for (int64_t i = list->count; i-- && t == TRIED_LOST;) {
        *path = list->entries[i].path;
        if (m->state.latest && !strcmp(m->state.latest, *path)) continue;
        if (!before || state_find(before, *path) < 0) t = try_one(m, *path);
    }
    return t;
}

/* Tries the latest, then the listed ones, then others in the folder: kept for ever, or of other
 * programs. */
static tried try_all(ed_checkpoint_manager *m, const char **restored)
{
    const char *path = m->state.latest;
    tried t = path ? try_one(m, path) : TRIED_LOST;
    if (t == TRIED_LOST) t = try_list(m, &m->state, NULL, &path);
    if (t == TRIED_LOST) {
        state found;
        if (!state_scan(m->place, m->stem, -1, &found)) return TRIED_FAILED;
        t = try_list(m, &found, &m->state, &path);
        *restored = t == TRIED_RESTORED ? train_text(path) : NULL;
        state_free(&found);
    } else if (t == TRIED_RESTORED)
        *restored = train_text(path);
    return t;
}

static const char *begin_anew(ed_checkpoint_manager *m)
{
    if (!m->initialize) return "";
    const error_before before = error_begin();
    const bool ok = SCOPE_GUARDED(m->initialize(m->user));
    if (ok && !error_since(before)) return "";
    if (error_is_missing(before))
        ed_fail(ED_FAILED_PRECONDITION,
                "manager_restore_or_initialize: %s: initialize returned false", m->folder);
    return NULL;
}

const char *ed_manager_restore_or_initialize(ed_checkpoint_manager *manager)
{
    static const char who[] = "manager_restore_or_initialize";
    ed_checkpoint_manager *m = manager;
    const char *path = NULL;
    if (NULL_GIVEN(who, manager)) return NULL;
    if (!is_ours(m, who) || !manager_finish(m)) return NULL;
    io_buffer_free(&m->skipped);
    m->skipped = (io_buffer){0};
    tried t = try_all(m, &path);
    if (t == TRIED_FAILED) return NULL;
    if (t == TRIED_RESTORED) {
        m->stepped = m->interval && read_step(m, &m->last_step);
        return path;
    }
    if (!m->skipped.size) return begin_anew(m);
    return ed_fail(ED_DATA_LOSS,
                   "%s: %s: every checkpoint in the folder is damaged (to start from scratch, "
                   "remove its files): %.*s",
                   who, m->folder, (int)m->skipped.size - 1, (const char *)m->skipped.data);
}

ed_restoration *ed_manager_restoration(const ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_restoration", manager)) return NULL;
    return manager->restoration;
}

const char *ed_manager_skipped(const ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_skipped", manager)) return NULL;
    return text_give(io_text("%.*s", (int)manager->skipped.size,
                             manager->skipped.size ? (const char *)manager->skipped.data : ""));
}

/* ---- The list of checkpoints ----------------------------------------------------------------- */

int64_t ed_manager_count(const ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_count", manager)) return 0;
    return manager->state.count;
}

const char *ed_manager_checkpoint(const ed_checkpoint_manager *manager, int64_t i)
{
    if (NULL_GIVEN("manager_checkpoint", manager)) return NULL;
    int64_t count = manager->state.count, at = i < 0 ? i + count : i;
    if (at >= 0 && at < count) return train_text(manager->state.entries[at].path);
    return ed_fail(ED_OUT_OF_RANGE,
                   "manager_checkpoint: index %lld is out of bounds for %lld checkpoints",
                   (long long)i, (long long)count);
}

const char *ed_manager_latest(const ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_latest", manager)) return NULL;
    return manager->state.latest ? train_text(manager->state.latest) : NULL;
}

const char *ed_manager_best(const ed_checkpoint_manager *manager)
{
    if (NULL_GIVEN("manager_best", manager)) return NULL;
    return manager->state.best ? train_text(manager->state.best) : NULL;
}
