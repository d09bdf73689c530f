#include "ops/draws.h"
#include "tensor/core.h"
#include <string.h>

struct ops_draws {
    uint64_t (*states)[3];
    size_t n, capacity;
    size_t next; /* of a replay */
    bool replaying;

    struct ops_draws *outer;
};

static __thread ops_draws *current;

ops_draws *ops_draws_new(void)
{
    return memory_zalloc(sizeof(ops_draws));
}

/* What noted or gave them may have been left by longjmp. */
static void drop_from_chain(const ops_draws *draws)
{
    ops_draws **at = &current;
    while (*at && *at != draws) at = &(*at)->outer;
    if (*at) *at = draws->outer;
}

void ops_draws_free(ops_draws *draws)
{
    if (!draws) return;
    drop_from_chain(draws);
    memory_free(draws->states);
    memory_free(draws);
}

static ops_draws *begin(ops_draws *draws, bool replaying)
{
    ops_draws *before = current;
    draws->outer = before;
    draws->replaying = replaying;
    draws->next = 0;
    current = draws;
    return before;
}

ops_draws *ops_draws_record(ops_draws *draws)
{
    return begin(draws, false);
}

ops_draws *ops_draws_replay(ops_draws *draws)
{
    return begin(draws, true);
}

void ops_draws_end(ops_draws *before)
{
    current = before;
}

static bool append(ops_draws *d, const uint64_t state[3])
{
    if (d->n == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : HARD(1, 16);
        void *states =
            memory_grow(d->states, d->n * sizeof *d->states, capacity * sizeof *d->states);
        if (!states) return false;
        d->states = states;
        d->capacity = capacity;
    }
    memcpy(d->states[d->n++], state, sizeof *d->states);
    return true;
}

/* Recordings nest within recordings and replays: every one up to the nearest replay hears of a
 * draw. */
bool ops_draws_note(const uint64_t state[3])
{
    for (ops_draws *d = current; d && !d->replaying; d = d->outer)
        if (!append(d, state)) return false;
    return true;
}

bool ops_draws_take(uint64_t state[3])
{
    ops_draws *d = current;
    while (d && !d->replaying) d = d->outer;
    if (!d || d->next == d->n) return false;
    memcpy(state, d->states[d->next++], sizeof *d->states);
    return true;
}
