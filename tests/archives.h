/* Writing archives, for tests. */
#ifndef EDDY_TESTS_ARCHIVES_H
#define EDDY_TESTS_ARCHIVES_H

#include "io/archive.h"
#include <stdio.h>

#define write_npz(path, ...) ed_archive_write(path, ED_NAMED(__VA_ARGS__), .format = "npz")
#define write_safetensors(path, ...)                                                               \
    ed_archive_write(path, ED_NAMED(__VA_ARGS__), .format = "safetensors")

static inline bool write_items(const char *format, const char *path, const archive_item *items,
                               int64_t count)
{
    return archive_write_items("test", archive_format_by_name(format), path, items, count);
}

/* How messages list the formats: "npy, npz", one after the other in the order of their names. */
static inline const char *format_list(void)
{
    static char list[512];
    int n, used = 0;
    const archive_format *const *all = archive_formats(&n);
    for (int i = 0; i < n; i++)
        used +=
            snprintf(list + used, sizeof list - (size_t)used, "%s%s", i ? ", " : "", all[i]->name);
    return list;
}

#endif
