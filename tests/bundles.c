#include "tests/bundles.h"
#include "tests/folders.h"

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
    write_bytes(path, w.file.data, w.file.size);
    table_writer_free(&w);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    write_bytes(path, data, size);
}

void put_crc(io_buffer *message, uint32_t crc)
{
    io_put_field_fixed32(message, ENTRY_CRC, io_crc32c_mask(crc));
}

bool gather(void *user, const void *data, size_t size)
{
    io_put(user, data, size);
    return true;
}
