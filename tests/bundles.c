#include "tests/bundles.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s can't be opened", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

void spill(const char *path, const void *data, size_t size)
{
    /* In place: a file that is cut and written again is flushed by some systems each time. */
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, size), size);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    close(file);
}

void craft(const char *prefix, const raw_entry *entries, size_t count, const void *data,
           size_t size)
{
    char path[4200];
    table_writer w = {0};
    for (size_t i = 0; i < count; i++)
        table_add(&w, (io_span){(const uint8_t *)entries[i].key, entries[i].key_size},
                  (io_span){(const uint8_t *)entries[i].message, entries[i].message_size});
    assert_true(table_end(&w));
    snprintf(path, sizeof path, "%s.index", prefix);
    spill(path, w.file.data, w.file.size);
    table_writer_free(&w);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    spill(path, data, size);
}

void put_crc(io_buffer *message, uint32_t crc)
{
    io_put_field_fixed32(message, ENTRY_CRC, io_crc32c_mask(crc));
}
