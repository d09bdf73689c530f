#include "tensor/nearest.h"
#include "tensor/schema_core.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * The table of kinds. The linker gathers those of the library in a section, which is sorted where
 * it lies at the first use, so that looking something up takes no memory; programs' own follow in
 * the order in which they were registered. Looked up when a binding or an object is made by name.
 */

extern const ed_kind *__start_ed_kinds[] __attribute__((visibility("hidden")));
extern const ed_kind *__stop_ed_kinds[] __attribute__((visibility("hidden")));

static struct {
    pthread_mutex_t lock;
    bool sorted;
    const ed_kind **own; /* of programs */
    int n_own, capacity;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int compare_kinds(const void *a, const void *b)
{
    const ed_kind *first = *(const ed_kind *const *)a, *second = *(const ed_kind *const *)b;
    const int order = strcmp(first->family, second->family);
    return order ? order : strcmp(first->name, second->name);
}

static void lock(void)
{
    pthread_mutex_lock(&table.lock);
}

static void lock_table(void)
{
    lock();
    if (!table.sorted)
        qsort(__start_ed_kinds, (size_t)(__stop_ed_kinds - __start_ed_kinds),
              sizeof *__start_ed_kinds, compare_kinds);
    table.sorted = true;
}

static void unlock_table(void)
{
    pthread_mutex_unlock(&table.lock);
}

static int count_kinds(void)
{
    return (int)(__stop_ed_kinds - __start_ed_kinds) + table.n_own;
}

static const ed_kind *kind_at(int i)
{
    const int built_in = (int)(__stop_ed_kinds - __start_ed_kinds);
    return i < built_in ? __start_ed_kinds[i] : table.own[i - built_in];
}

bool kind_is_builtin(const ed_kind *kind)
{
    for (const ed_kind **k = __start_ed_kinds; k < __stop_ed_kinds; k++)
        if (*k == kind) return true;
    return false;
}

static const ed_kind *look_up(const char *family, const char *name)
{
    const ed_kind wanted = {.family = family, .name = name}, *key = &wanted;
    const ed_kind **found =
        bsearch(&key, __start_ed_kinds, (size_t)(__stop_ed_kinds - __start_ed_kinds),
                sizeof *__start_ed_kinds, compare_kinds);
    if (found) return *found;
    for (int i = 0; i < table.n_own; i++)
        if (!compare_kinds(&key, &table.own[i])) return table.own[i];
    return NULL;
}

/* Room for `wanted` kinds of a program's. The lock is not held, as the error of memory that is
 * missing has a handler, which may look kinds up, or leave. */
static bool grow_table(int wanted)
{
    const int capacity = wanted + HARD(0, wanted + 15);
    const ed_kind **own = memory_alloc((size_t)capacity * sizeof *own), **old = own;
    if (!own) return false;
    lock_table();
    if (table.capacity < capacity) {
        if (table.n_own) memcpy(own, table.own, (size_t)table.n_own * sizeof *own);
        old = table.own;
        table.own = own;
        table.capacity = capacity;
    }
    unlock_table();
    memory_free(old);
    return true;
}

/* Locks the table, which has room for one more then; false, unlocked, without memory. */
static bool lock_with_room(void)
{
    for (;;) {
        lock_table();
        const int wanted = table.n_own + 1;
        if (wanted <= table.capacity) return true;
        unlock_table();
        if (!grow_table(wanted)) return false;
    }
}

/* What the definition lacks; NULL if it is complete. */
static const char *lacks(const ed_kind *kind)
{
    return !kind->family || !*kind->family                            ? "a family"
           : !kind->name || !*kind->name                              ? "a name"
           : !kind->doc                                               ? "a line of documentation"
           : !kind->make                                              ? "make"
           : kind->fields && (!kind->defaults || !kind->options_size) ? "defaults and options_size"
                                                                      : NULL;
}

bool ed_kind_register(const ed_kind *kind)
{
    if (!kind) return ed_fail(ED_INVALID_ARGUMENT, "kind_register: kind is NULL");
    const char *missing = lacks(kind);
    if (missing)
        return ed_fail(ED_INVALID_ARGUMENT, "kind_register: the kind %s lacks %s",
                       kind->name ? kind->name : "?", missing);
    if (!lock_with_room()) return false;
    const bool taken = look_up(kind->family, kind->name);
    if (!taken) table.own[table.n_own++] = kind;
    unlock_table();
    if (taken)
        ed_fail(ED_INVALID_ARGUMENT, "kind_register: there is a %s named %s already", kind->family,
                kind->name);
    return !taken;
}

static const ed_kind *look_up_word(const char *family, const char *word)
{
    for (int i = 0; i < count_kinds(); i++) {
        const ed_kind *kind = kind_at(i);
        const char *other = kind->short_name ?: kind->name;
        if (!strcmp(kind->family, family) &&
            (!strcasecmp(kind->name, word) || !strcasecmp(other, word)))
            return kind;
    }
    return NULL;
}

const ed_kind *kind_by_word(const char *family, const char *word)
{
    lock_table();
    const ed_kind *kind = look_up_word(family, word);
    unlock_table();
    return kind;
}

/* What to say where a name is none of its family: those that are near, or else all. */
static void suggest_kinds(const char *family, const char *name, char *to, size_t size)
{
    nearest_words near = {0};
    size_t used = 0;
    *to = 0;
    for (int i = 0; i < count_kinds(); i++) {
        const ed_kind *kind = kind_at(i);
        if (strcmp(kind->family, family) != 0) continue;
        nearest_see(&near, name, kind->name);
        if (kind->short_name) nearest_see(&near, name, kind->short_name);
        if (used < size)
            used += (size_t)snprintf(to + used, size - used, used ? ", %s" : "there are %s",
                                     kind->name);
    }
    if (near.count)
        nearest_text(&near, to, size);
    else if (used >= size)
        strcpy(to + size - 4, "...");
}

const ed_kind *ed_kind_find(const char *family, const char *name)
{
    if (!family || !name)
        return ed_fail(ED_INVALID_ARGUMENT, "kind_find: %s is NULL", family ? "name" : "family");
    char known[512];
    lock_table();
    const ed_kind *kind = look_up(family, name);
    if (!kind) kind = look_up_word(family, name);
    if (!kind) suggest_kinds(family, name, known, sizeof known);
    unlock_table();
    if (kind) return kind;
    if (!*known)
        return ed_fail(ED_NOT_FOUND,
                       "there is no family '%s' of objects with options, such as "
                       "layer or optimizer",
                       family);
    return ed_fail(ED_NOT_FOUND, "unknown %s \"%s\"; %s", family, name, known);
}

int ed_kind_count(void)
{
    lock_table();
    const int count = count_kinds();
    unlock_table();
    return count;
}

const ed_kind *ed_kind_at(int i)
{
    lock_table();
    const ed_kind *kind = i >= 0 && i < count_kinds() ? kind_at(i) : NULL;
    unlock_table();
    return kind;
}

__attribute__((constructor(103))) static void kinds_watch_forks(void)
{
    pthread_atfork(lock, unlock_table, unlock_table);
}

__attribute__((destructor(103))) static void kinds_end(void)
{
    memory_free(table.own);
    table.own = NULL;
    table.n_own = table.capacity = 0;
}
