#include "train/restore.h"
#include <string.h>

/* The result of a restore: reports and assertions. The file's side is the states of its nodes;
 * the program's side is looked up at each call, since it may have changed. */

static const file_state state_of[] = {
    [ED_RESTORED] = FILE_RESTORED, [ED_UNEXPECTED] = FILE_UNEXPECTED, [ED_WAITING] = FILE_WAITING};

static bool check_kind(const char *who, ed_restored kind)
{
    if (kind == ED_RESTORED || kind == ED_MISSING || kind == ED_UNEXPECTED || kind == ED_WAITING)
        return true;
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: kind must be ED_RESTORED, ED_MISSING, ED_UNEXPECTED or ED_WAITING, got %d",
                   who, (int)kind);
}

/* Name i of that kind; with i < 0 NULL, and their number in *count. */
static const char *path_of(const ed_restoration *r, ed_restored kind, int64_t i, int64_t *count)
{
    *count = 0;
    if (kind == ED_MISSING) {
        *count = r->n_missing;
        return i >= 0 && i < r->n_missing ? r->missing[i] : NULL;
    }
    for (int at = 0; at < r->file.n_nodes; at++) {
        if (r->states[at] != state_of[kind]) continue;
        if ((*count)++ == i) return restore_name(r, at);
    }
    return NULL;
}

int64_t ed_restoration_count(const ed_restoration *restoration, ed_restored kind)
{
    if (NULL_GIVEN("restoration_count", restoration) || !check_kind("restoration_count", kind))
        return 0;
    int64_t count;
    path_of(restoration, kind, -1, &count);
    return count;
}

const char *ed_restoration_path(const ed_restoration *restoration, ed_restored kind, int64_t i)
{
    if (NULL_GIVEN("restoration_path", restoration) || !check_kind("restoration_path", kind))
        return NULL;
    int64_t count;
    const char *name = path_of(restoration, kind, i, &count);
    if (name) return train_text(name);
    return ed_fail(ED_OUT_OF_RANGE, "restoration_path: index %lld is out of bounds for %lld paths",
                   (long long)i, (long long)count);
}

static void put_kind(io_buffer *b, const ed_restoration *r, ed_restored kind, const char *title)
{
    int64_t count;
    path_of(r, kind, -1, &count);
    io_put_format(b, "%s: %lld\n", title, (long long)count);
    if (kind == ED_MISSING)
        for (int i = 0; i < r->n_missing; i++) io_put_format(b, "    %s\n", r->missing[i]);
    else if (kind != ED_RESTORED)
        for (int at = 0; at < r->file.n_nodes; at++)
            if (r->states[at] == state_of[kind]) io_put_format(b, "    %s\n", restore_name(r, at));
}

const char *ed_restoration_report(const ed_restoration *restoration)
{
    if (NULL_GIVEN("restoration_report", restoration)) return NULL;
    io_buffer b = {0};
    io_put_format(&b, "checkpoint %s\n", restoration->source.path);
    put_kind(&b, restoration, ED_RESTORED, "restored");
    put_kind(&b, restoration, ED_MISSING, "missing from the file");
    put_kind(&b, restoration, ED_UNEXPECTED, "unexpected in the file");
    put_kind(&b, restoration, ED_WAITING, "waiting for objects that will be created");
    io_put_u8(&b, 0);
    if (!b.failed) return text_give((char *)b.data);
    io_buffer_free(&b);
    return NULL;
}

/* ---- Assertions ------------------------------------------------------------------------------ */

static bool fail_with(io_buffer *b, const char *who)
{
    if (!b->size && !b->failed) return true;
    io_put_u8(b, 0);
    if (!b->failed) ed_fail(ED_FAILED_PRECONDITION, "%s: %s", who, (const char *)b->data);
    io_buffer_free(b);
    return false;
}

typedef struct live_values {
    graph g;
    char **paths;
    const ed_restoration *r;
} live_values;

/* By this restore or a later one. */
static bool was_restored(const ed_restoration *r, const graph_node *node)
{
    for (const ed_restoration *later = r->checkpoint->restorations; later; later = later->next) {
        int at = restore_place(later, node);
        if (at >= 0 && later->states[at] == FILE_RESTORED) return true;
        if (later == r) break;
    }
    return false;
}

/* A value without a path is only matched: it is not one of the program's own. */
static const char *not_restored(const void *user, int i)
{
    const live_values *v = user;
    if (!graph_is_restored(&v->g.nodes[i]) || !v->paths[i]) return NULL;
    return was_restored(v->r, &v->g.nodes[i]) ? NULL : v->paths[i];
}

static bool existing(ed_restoration *r, const char *who)
{
    if (!r->checkpoint)
        return ed_fail(ED_FAILED_PRECONDITION, "%s: the checkpoint was released", who);
    live_values v = {.r = r};
    if (!checkpoint_graph(r->checkpoint, r->counted, &v.g)) return false;
    io_buffer b = {0};
    if ((v.paths = graph_paths(&v.g)))
        restore_list(&b, "not restored: ", v.g.n_nodes, not_restored, &v);
    bool ok = v.paths && fail_with(&b, who);
    graph_free_paths(&v.g, v.paths);
    graph_free(&v.g);
    return ok;
}

bool ed_restoration_assert_existing_objects_matched(ed_restoration *restoration)
{
    if (NULL_GIVEN("restoration_assert_existing_objects_matched", restoration)) return false;
    return existing(restoration, "restoration_assert_existing_objects_matched");
}

static const char *not_taken(const void *restoration, int i)
{
    const ed_restoration *r = restoration;
    return r->states[i] == FILE_UNEXPECTED || r->states[i] == FILE_WAITING ? restore_name(r, i)
                                                                           : NULL;
}

bool ed_restoration_assert_consumed(ed_restoration *restoration)
{
    if (NULL_GIVEN("restoration_assert_consumed", restoration)) return false;
    if (!existing(restoration, "restoration_assert_consumed")) return false;
    io_buffer b = {0};
    restore_list(&b, "in the file, but not restored: ", restoration->file.n_nodes, not_taken,
                 restoration);
    return fail_with(&b, "restoration_assert_consumed");
}

bool ed_restoration_assert_nontrivial_match(ed_restoration *restoration)
{
    if (NULL_GIVEN("restoration_assert_nontrivial_match", restoration)) return false;
    if (restoration->matched) return true;
    return ed_fail(ED_FAILED_PRECONDITION,
                   "restoration_assert_nontrivial_match: nothing but the root was matched");
}

/* Drops the waiting values, and requires nothing any more. */
bool ed_restoration_expect_partial(ed_restoration *restoration)
{
    if (NULL_GIVEN("restoration_expect_partial", restoration)) return false;
    restoration->strict = false;
    for (int i = 0; i < restoration->file.n_nodes; i++) {
        if (restoration->states[i] != FILE_WAITING) continue;
        restoration->states[i] = FILE_SKIPPED;
        ed_release(restoration->waiting[i]);
        restoration->waiting[i] = NULL;
    }
    return true;
}
