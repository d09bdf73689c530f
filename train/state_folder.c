#include "train/state_file.h"
#include "io/bundle.h"
#include "train/train.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Paths ----------------------------------------------------------------------------------- */

char *state_join(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    if (*path == '/' || !n) return text_copy(path);
    return io_text("%s%s%s", folder, folder[n - 1] == '/' ? "" : "/", path);
}

char *state_relative(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    while (n && folder[n - 1] == '/') n--;
    const char *rest = path + n;
    if (!*folder || strncmp(folder, path, n) || *rest != '/') return text_copy(path);
    return text_copy(rest + strspn(rest, "/"));
}

int64_t state_number(const char *path, const char *name)
{
    const char *last = io_name_of(path), *dash = strrchr(last, '-');
    size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    if (!digits || digits > 18 || dash[1 + digits] || (digits > 1 && dash[1] == '0')) return -1;
    size_t n = (size_t)(dash - last);
    if (name && (strlen(name) != n || memcmp(name, last, n))) return -1;
    return strtoll(dash + 1, NULL, 10);
}

double state_time_of(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return 0;
    return (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
}

/* ---- Scanning -------------------------------------------------------------------------------- */

/* Whether the files of a checkpoint exist, with an index that can be read; one that requires a
 * newer reader counts. false, with an error, for other failures. */
static bool look_for(const char *path, bool *there)
{
    error_saved earlier;
    error_save(&earlier);
    bundle *b = bundle_open("checkpoint", path);
    ed_error_code code = ed_error_kind();
    *there = b ? bundle_is_complete(b) : code == ED_UNIMPLEMENTED;
    bool fine = b || *there || io_is_loss(code);
    error_restore(&earlier, fine);
    ed_release(b);
    return fine;
}

typedef struct scan {
    const char *folder, *name;
    int64_t beyond; /* only numbers beyond this one */
    state found;
    bool failed;
} scan;

/* The path of a file without the suffix; NULL, without an error, if it has another suffix. */
static char *path_without(scan *s, const char *name, size_t suffix)
{
    char *path = state_join(s->folder, name);
    if (!path) {
        s->failed = true;
        return NULL;
    }
    path[strlen(path) - suffix] = 0;
    if (state_number(path, s->name) > s->beyond) return path;
    memory_free(path);
    return NULL;
}

static bool note_index(const char *name, void *user)
{
    scan *s = user;
    size_t n = strlen(name);
    if (n <= 6 || strcmp(name + n - 6, ".index")) return true;
    char *path = path_without(s, name, 6), *index = path ? io_text("%s.index", path) : NULL;
    if (path) s->failed = !index || !state_add(&s->found, path, state_time_of(index));
    memory_free(index);
    memory_free(path);
    return !s->failed;
}

static int by_number(const void *a, const void *b)
{
    const state_entry *x = a, *y = b;
    int64_t m = state_number(x->path, NULL), n = state_number(y->path, NULL);
    return m != n ? (m > n) - (m < n) : strcmp(x->path, y->path);
}

/* All that have an index, sorted. */
static bool scan_folder(const char *folder, const char *name, int64_t beyond, state *found)
{
    scan s = {.folder = folder, .name = name, .beyond = beyond};
    if (!io_each_name("checkpoint", folder, note_index, &s)) {
        state_free(&s.found);
        return false;
    }
    *found = s.found;
    if (found->count)
        qsort(found->entries, (size_t)found->count, sizeof *found->entries, by_number);
    return true;
}

bool state_scan(const char *folder, const char *name, int64_t beyond, state *s)
{
    *s = (state){0};
    if (!scan_folder(folder, name, beyond, s)) return false;
    int64_t count = s->count, kept = 0;
    bool fine = true, there = false;
    for (int64_t i = 0; i < count; i++) {
        fine = fine && look_for(s->entries[i].path, &there);
        if (fine && there)
            s->entries[kept++] = s->entries[i];
        else
            memory_free(s->entries[i].path);
    }
    s->count = kept;
    if (fine && kept) fine = (s->latest = text_copy(s->entries[kept - 1].path));
    if (!fine) state_free(s);
    return fine;
}

/* ---- Shards without an index ----------------------------------------------------------------- */

/* The length of ".data-DDDDD-of-DDDDD" at the end of a name, 0 if it does not end so. */
static size_t shard_suffix(const char *name)
{
    enum { SUFFIX = 20 };
    size_t n = strlen(name);
    if (n <= SUFFIX) return 0;
    const char *end = name + n - SUFFIX;
    bool is = !strncmp(end, ".data-", 6) && strspn(end + 6, "0123456789") == 5 &&
              !strncmp(end + 11, "-of-", 4) && strspn(end + 15, "0123456789") == 5;
    return is ? SUFFIX : 0;
}

static bool note_shard(const char *name, void *user)
{
    scan *s = user;
    size_t suffix = shard_suffix(name);
    char *path = suffix ? path_without(s, name, suffix) : NULL;
    if (path) s->failed = !state_add(&s->found, path, 0);
    memory_free(path);
    return !s->failed;
}

void state_remove_strays(const char *folder, const char *name, const state *s)
{
    scan shards = {.folder = folder, .name = name, .beyond = -1};
    error_saved earlier;
    error_save(&earlier);
    io_each_name("checkpoint", folder, note_shard, &shards);
    for (int64_t i = 0; i < shards.found.count; i++) {
        const char *path = shards.found.entries[i].path;
        char *index = io_text("%s.index", path);
        if (index && !io_exists(index) && state_find(s, path) < 0)
            bundle_remove("checkpoint", path);
        memory_free(index);
    }
    state_free(&shards.found);
    error_restore(&earlier, true);
}

/* ---- The newest ------------------------------------------------------------------------------ */

/* The last listed one whose files exist, as a new string; *path is NULL if there is none. */
static bool last_there(const state *s, char **path)
{
    bool there = false;
    for (int64_t i = s->count; i-- && !there;) {
        if (!look_for(s->entries[i].path, &there)) return false;
        if (there) return (*path = text_copy(s->entries[i].path));
    }
    return true;
}

/* By the state file: the newest, which may be a single file in TensorFlow 1's format, or another
 * one. */
static bool latest_listed(const char *folder, char **path)
{
    state s;
    state_found found = state_read(folder, &s);
    if (found != STATE_READ) return found != STATE_FAILED;
    bool there = false, fine = look_for(s.latest, &there);
    if (fine && (there || io_exists(s.latest)))
        fine = (*path = text_copy(s.latest));
    else if (fine)
        fine = last_there(&s, path);
    state_free(&s);
    return fine;
}

static bool latest_in_folder(const char *folder, char **path)
{
    state s = {0};
    bool fine = scan_folder(folder, NULL, -1, &s) && last_there(&s, path);
    state_free(&s);
    return fine;
}

const char *ed_latest_checkpoint(const char *folder)
{
    if (NULL_GIVEN("latest_checkpoint", folder)) return NULL;
    char *path = NULL;
    if (latest_listed(folder, &path) && !path) latest_in_folder(folder, &path);
    return text_give(path);
}
