/*
 * The fuzz targets (fuzz/fuzz.h) in every build: on the inputs in fuzz/corpus, some of which once
 * failed, and on many changes of each of them, the same ones every time.
 */
#include "fuzz/fuzz.h"
#include "tests/asserts.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 1 << 15 };

typedef struct input {
    uint8_t bytes[LARGEST];
    size_t size;
} input;

static uint64_t random_state;

/* xorshift64: below n. */
static size_t random_below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return n ? random_state % n : 0;
}

/* A bit turned, a byte replaced by one that is likely to matter, a part taken out, moved or
 * doubled, the end cut. */
static void change(input *in)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', ']', '-', '9'};
    size_t at = random_below(in->size), to = random_below(in->size), most = in->size - at,
           n = random_below(most < 16 ? most : 16);
    if (!in->size) return;
    switch (random_below(6)) {
    case 0: in->bytes[at] ^= (uint8_t)(1 << random_below(8)); return;
    case 1: in->bytes[at] = telling[random_below(sizeof telling)]; return;
    case 2: in->bytes[at] += (uint8_t)(random_below(2) ? 1 : -1); return;
    case 3:
        memmove(in->bytes + at, in->bytes + at + n, most - n);
        in->size -= n;
        return;
    case 4:
        if (to + n > in->size) return;
        memmove(in->bytes + to, in->bytes + at, n);
        return;
    default:
        if (random_below(4) == 0) in->size = at;
    }
}

static void run_input(const fuzz_target *target, const input *given)
{
    static input changed;
    fuzz_run(target, given->bytes, given->size);
    for (int i = 0; i < target->changes; i++) {
        changed = *given;
        for (size_t k = random_below(4); k < 4; k++) change(&changed);
        fuzz_run(target, changed.bytes, changed.size);
    }
}

static void load(input *in, const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    in->size = fread(in->bytes, 1, LARGEST, f);
    assert_true(in->size < LARGEST);
    fclose(f);
}

static int in_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_target(void **state)
{
    const fuzz_target *target = *state;
    static input in;
    struct dirent **entries;
    char folder[64], path[400];
    snprintf(folder, sizeof folder, "fuzz/corpus/%s", target->name);
    int n = scandir(folder, &entries, is_input, in_order);
    if (n <= 0) fail_msg("no inputs in %s: the test runs in the project's folder", folder);
    random_state = 88172645463325252u;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        load(&in, path);
        run_input(target, &in);
        free(entries[i]);
    }
    free(entries);
}

int main(void)
{
    struct CMUnitTest tests[32];
    int n;
    const fuzz_target *targets = fuzz_targets(&n);
    assert_true(n <= 32);
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = targets[i].name, .test_func = run_target, .initial_state = (void *)&targets[i]};
    return _cmocka_run_group_tests("corpus", tests, (size_t)n, NULL, NULL);
}
