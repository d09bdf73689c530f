/* Writing archives, for tests. */
#ifndef EDDY_TESTS_ARCHIVES_H
#define EDDY_TESTS_ARCHIVES_H

#include "io/archive.h"

#define write_npz(path, ...) ed_archive_write(path, ED_NAMED(__VA_ARGS__), .format = "npz")
#define write_safetensors(path, ...)                                                               \
    ed_archive_write(path, ED_NAMED(__VA_ARGS__), .format = "safetensors")

static inline bool write_items(const char *format, const char *path, const archive_item *items,
                               int64_t count)
{
    return archive_write_items("test", archive_format_by_name(format), path, items, count);
}

#endif
