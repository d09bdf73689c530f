#include "fuzz/fuzz.h"
#include "train/state_file.h"
#include "train/train.h"
#include <string.h>

/* Several slashes are one. */
static bool same_path(const char *a, const char *b)
{
    if (!a || !b) return a == b;
    for (; *a && *a == *b; a++, b++)
        if (*a == '/') a += strspn(a, "/") - 1, b += strspn(b, "/") - 1;
    return *a == *b;
}

/* A number that is none, NaN, is the same as itself. */
static bool same_number(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b) || a == b;
}

static void compare(const state *a, const state *b)
{
    fuzz_claim(same_path(a->latest, b->latest), "the newest was %s, is %s", a->latest, b->latest);
    fuzz_claim(same_path(a->best, b->best), "the best was %s, is %s", a->best, b->best);
    fuzz_claim(!a->best || (same_number(a->metric, b->metric) && a->highest == b->highest),
               "the best metric was %a, is %a", a->metric, b->metric);
    fuzz_claim(same_number(a->last_preserved, b->last_preserved), "last_preserved was %a, is %a",
               a->last_preserved, b->last_preserved);
    fuzz_claim(a->count == b->count, "%lld are listed, were %lld", (long long)b->count,
               (long long)a->count);
    for (int64_t i = 0; i < a->count; i++)
        fuzz_claim(same_path(a->entries[i].path, b->entries[i].path) &&
                       same_number(a->entries[i].timestamp, b->entries[i].timestamp),
                   "%s at %a, was %s at %a", b->entries[i].path, b->entries[i].timestamp,
                   a->entries[i].path, a->entries[i].timestamp);
}

/* What was read is written and read again: the same. */
void fuzz_state(const uint8_t *data, size_t size)
{
    state s, again;
    const char *folder = fuzz_folder();
    fuzz_file("checkpoint", data, size);
    ed_latest_checkpoint(folder);
    fuzz_claim(!ed_failed(), "latest_checkpoint failed");
    state_found found = state_read(folder, &s);
    fuzz_claim(found == STATE_READ || found == STATE_DAMAGED, "state_read gave %d", found);
    if (found != STATE_READ) return;

    bool written = state_write("fuzz", folder, &s);
    fuzz_claim(written, "what was read can't be written");
    fuzz_claim(state_read(folder, &again) == STATE_READ, "what was written can't be read");
    compare(&s, &again);
    state_free(&s);
    state_free(&again);
}
