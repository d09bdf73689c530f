#include "fuzz/fuzz.h"
#include "fuzz/input.h"
#include "io/bundle.h"
#include "io/table.h"
#include <stdio.h>
#include <string.h>

/*
 * The input is an index and a shard. The index is either a file as it lies, or the entries of one,
 * which is built of them: so what is changed in an entry is not lost with the blocks around it.
 *
 *     | 0: file, 1: entries | size of the shard, 2 bytes | shard | index |
 *     entries: | size of key | key | size of message | message | ...
 */

static void write_index(io_cursor *c)
{
    table_writer w = {0};
    while (io_more(c)) {
        io_span key = fuzz_part(c, io_u8(c)), message = fuzz_part(c, io_u8(c));
        table_add(&w, key, message);
    }
    fuzz_claim(table_end(&w), "no memory for the index");
    fuzz_file("x.index", w.file.data, w.file.size);
    table_writer_free(&w);
}

static bool see_string(void *seen, io_span string)
{
    ++*(int64_t *)seen;
    for (size_t i = 0; i < string.size; i++) *(volatile const uint8_t *)&string.data[i];
    return true;
}

static bool see_bytes(void *seen, const void *data, size_t size)
{
    (void)data;
    *(int64_t *)seen += (int64_t)size;
    return true;
}

/* Strings there are as many of as the entry says, bytes too. */
static void look_at(const bundle *b, const bundle_entry *e)
{
    int64_t strings = 0, bytes = 0;
    io_digest digest;
    const bundle_entry *found = bundle_find(b, e->name);
    fuzz_claim(found == e || strlen(e->name) < e->name_size, "entry '%s' is not found", e->name);
    bundle_digest(b, e, &digest);
    const bool whole = fuzz_given(bundle_verify(b, e) ? b : NULL, "bundle_verify");
    const bool read = bundle_stream(b, e, see_bytes, &bytes);
    ed_clear_error();
    fuzz_claim(whole == read && (!whole || bytes == e->bytes),
               "'%s' has %lld bytes, read were %lld", e->name, (long long)e->bytes,
               (long long)bytes);
    fuzz_claim(!whole || !e->damage, "'%s' is damaged and was verified", e->name);
    if (e->damage || e->dtype != IO_STRING) return;
    const bool visited =
        fuzz_given(bundle_strings(b, e, see_string, &strings) ? b : NULL, "strings");
    fuzz_claim(visited == whole && (!visited || strings == e->elements),
               "'%s' has %lld strings, read were %lld", e->name, (long long)e->elements,
               (long long)strings);
    io_buffer last = {0};
    fuzz_given(bundle_string(b, e, e->elements - 1, &last) ? b : NULL, "bundle_string");
    io_buffer_free(&last);
}

void fuzz_bundle(const uint8_t *data, size_t size)
{
    io_cursor c = io_cursor_on(data, size);
    const bool entries = io_u8(&c) & 1;
    io_span shard = fuzz_part(&c, io_u16(&c));
    fuzz_file("x.data-00000-of-00001", shard.data, shard.size);
    if (entries)
        write_index(&c);
    else
        fuzz_file("x.index", c.at, (size_t)(c.end - c.at));

    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/x", fuzz_folder());
    bundle *b = bundle_open("fuzz", prefix);
    if (!fuzz_given(b, "bundle_open")) return;
    for (int64_t i = 0; i < bundle_count(b); i++) look_at(b, bundle_at(b, i));
    ed_release(b);
    fuzz_archive(prefix);
}
