/* Opening the user's files, and finding tensors in them. */
#include "programs/ckpt.h"
#include "train/train.h"
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *whole, const char *ending)
{
    size_t n = strlen(whole), m = strlen(ending);
    return n >= m && !strcmp(whole + n - m, ending);
}

/* PREFIX for PREFIX.index, any other path unchanged; memory_free frees it. */
static char *prefix_of(const char *path)
{
    size_t n = strlen(path) - (ends_in(path, ".index") ? strlen(".index") : 0);
    return io_text("%.*s", (int)n, path);
}

/* ---- Folders --------------------------------------------------------------------------------- */

/* The only .index in a folder. */
struct sole {
    char *name;
    int count;
};

static bool note_index(const char *name, void *user)
{
    struct sole *sole = user;
    if (!ends_in(name, ".index") || sole->count++) return true;
    return (sole->name = prefix_of(name));
}

/* The newest checkpoint in a folder, or the only one if none has a number; NULL with an error. */
static char *checkpoint_in(const char *folder)
{
    struct sole sole = {NULL, 0};
    const char *newest = ed_latest_checkpoint(folder);
    if (newest || ed_failed()) return newest ? io_text("%s", newest) : NULL;
    char *path = NULL;
    if (io_each_name("open", folder, note_index, &sole) && sole.count == 1)
        path = io_text("%s/%s", folder, sole.name);
    else if (!sole.count)
        ed_fail(ED_NOT_FOUND, "open: %s: no checkpoint found in this folder", folder);
    else
        ed_fail(ED_INVALID_ARGUMENT, "open: %s: %d checkpoints found in this folder; name one",
                folder, sole.count);
    memory_free(sole.name);
    return path;
}

bool ckpt_open(ckpt_file *file, const char *given)
{
    struct stat status;
    *file = (ckpt_file){.given = given};
    bool folder = !stat(given, &status) && S_ISDIR(status.st_mode);
    file->path = folder ? checkpoint_in(given) : io_text("%s", given);
    if (!file->path) return false;
    file->archive = ed_retain(ed_archive_open(file->path));
    file->count = ed_archive_count(file->archive);
    return file->archive;
}

void ckpt_close(ckpt_file *file)
{
    ed_release(file->archive);
    memory_free(file->path);
    *file = (ckpt_file){.given = NULL};
}

/* ---- Tensors --------------------------------------------------------------------------------- */

const bundle *ckpt_bundle(const ckpt_file *file)
{
    bool is = !strcmp(ed_archive_format(file->archive), "bundle");
    return is ? archive_file(file->archive) : NULL;
}

int64_t ckpt_elements(const archive_item *item)
{
    int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < item->rank; i++) empty |= item->shape[i] == 0;
    for (int i = 0; i < item->rank && !empty; i++)
        if (__builtin_mul_overflow(n, item->shape[i], &n)) return -1;
    return empty ? 0 : n;
}

/* ---- Selecting ------------------------------------------------------------------------------- */

/* Adds the tensors that a pattern matches; false if there are none. */
static bool mark(const ckpt_file *file, const char *pattern, bool *chosen)
{
    int64_t exact = ed_archive_find(file->archive, pattern);
    bool any = exact >= 0;
    if (any) chosen[exact] = true;
    for (int64_t i = 0; i < file->count && exact < 0; i++) {
        bool fits = !fnmatch(pattern, ed_archive_name(file->archive, i), 0);
        chosen[i] |= fits;
        any |= fits;
    }
    return any || ed_fail(ED_NOT_FOUND, "%s: tensor %s not found", file->given, pattern);
}

bool ckpt_select(const ckpt_file *file, char *const *patterns, int count, ckpt_places *places)
{
    *places = (ckpt_places){NULL, 0};
    bool *chosen = memory_zalloc((size_t)file->count + 1);
    bool right = chosen;
    for (int i = 0; i < count && right; i++) right = mark(file, patterns[i], chosen);
    if (right) places->at = memory_alloc(((size_t)file->count + 1) * sizeof *places->at);
    for (int64_t i = 0; i < file->count && places->at; i++)
        if (!count || chosen[i]) places->at[places->count++] = i;
    memory_free(chosen);
    return places->at;
}
