/* TensorFlow's bundles: damage, hostile sizes, slices, calls to the system and allocations that
 * fail. */
#include "ops/ops.h"
#include "tests/bundle_folder.h"
#include <time.h>

/* ---- Damage ---------------------------------------------------------------------------------- */

static ed_tensor *small_x, *small_y;

/* A bundle of two tensors and a string. */
static void write_small(void)
{
    const io_span string = SPAN("graph");
    bundle_writer *w = bundle_create("test", prefix);
    assert_true(bundle_add(w, "model/x", small_x));
    assert_true(bundle_add(w, "model/y", small_y));
    assert_true(bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &string, 1));
    finish(w);
}

/* Whether everything of the small bundle is read as it was written. An error names the file. */
static bool small_is_whole(void)
{
    ED_SCOPE;
    bool whole = true;
    bundle *b = bundle_open("test", prefix);
    if (!b) {
        if (!ed_failed() || !strstr(ed_error(), prefix)) fail_msg("said '%s'", ed_error());
        ed_clear_error();
        return false;
    }
    const char *const names[] = {"model/x", "model/y"};
    ed_tensor *const written[] = {small_x, small_y};
    for (int i = 0; i < 2; i++) {
        const bundle_entry *e = bundle_find(b, names[i]);
        ed_tensor *t = e ? scope_give(bundle_tensor(b, e)) : NULL;
        if (t) assert_same_tensor(t, written[i]);
        whole &= t != NULL;
        if (e && !t && !strstr(ed_error(), names[i])) fail_msg("said '%s'", ed_error());
        ed_clear_error();
    }
    const bundle_entry *graph = bundle_find(b, BUNDLE_GRAPH);
    io_buffer out = {0};
    if (graph && bundle_string(b, graph, 0, &out)) {
        assert_int_equal(out.size, 5);
        assert_memory_equal(out.data, "graph", 5);
    } else {
        whole = false;
    }
    io_buffer_free(&out);
    ed_clear_error();
    const bundle_entry *digests = bundle_find(b, BUNDLE_DIGESTS);
    whole &= digests && bundle_verify(b, digests);
    ed_clear_error();
    assert_int_equal(bundle_count(b), 4);
    ed_release(b);
    return whole;
}

/*
 * Each bit of each byte. No checksum covers in the index: the block of the metaindex, which holds
 * nothing, its handle, and the zeros of the footer. (A handle that reads on into the index' own
 * does harm and is an error.)
 */
static void flips(void **state)
{
    (void)state;
    ED_SCOPE;
    small_x = pattern(ED_FLOAT32, 2, (int64_t[]){3, 4});
    small_y = pattern(ED_INT64, 1, (int64_t[]){2});
    write_small();
    assert_true(small_is_whole());
    const char *const paths[] = {index_path, data_path};
    int passed[2] = {0}, wrong = 0;
    for (int f = 0; f < 2; f++) {
        size_t size;
        char *good = read_bytes(paths[f], &size), *bad = read_bytes(paths[f], &size);
        size_t metaindex = 0; /* an empty block behind the data's; its checksum is known */
        for (size_t i = 0; !f && i + 13 <= size; i++)
            if (!memcmp(good + i, "\0\0\0\0\1\0\0\0\0\xc0\xf2\xa1\xb0", 13)) metaindex = i;
        for (size_t i = 0; i < size; i++)
            for (int bit = 0; bit < 8; bit++) {
                bad[i] = (char)(good[i] ^ 1 << bit);
                write_bytes(paths[f], bad, size);
                bool uncovered = !f && ((i >= metaindex && i < metaindex + 13) ||
                                        (i >= size - 48 && i < size - 8));
                if (small_is_whole()) {
                    passed[f]++;
                    wrong += !uncovered;
                }
                bad[i] = good[i];
            }
        write_bytes(paths[f], good, size);
        free(good);
        free(bad);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(passed[1], 0);
    assert_in_range(passed[0], 8 * 13 + 8 * 34,
                    8 * 13 + 8 * 38); /* the metaindex, zeros, a handle */
    assert_true(small_is_whole());
}

static void truncations(void **state)
{
    (void)state;
    ED_SCOPE;
    small_x = pattern(ED_FLOAT32, 2, (int64_t[]){3, 4});
    small_y = pattern(ED_INT64, 1, (int64_t[]){2});
    write_small();
    const char *const paths[] = {index_path, data_path};
    for (int f = 0; f < 2; f++) {
        size_t size;
        char *good = read_bytes(paths[f], &size);
        for (size_t n = 0; n < size; n++) {
            write_bytes(paths[f], good, n);
            assert_false(small_is_whole());
        }
        char *longer = calloc(1, size + 600);
        memcpy(longer, good, size);
        write_bytes(paths[f], longer, size + 600);
        assert_int_equal(small_is_whole(), f == 1); /* data behind the data is nobody's */
        memset(longer + size / 2, 0, size - size / 2);
        write_bytes(paths[f], longer, size);
        assert_false(small_is_whole());
        write_bytes(paths[f], good, size);
        free(longer);
        free(good);
    }
    assert_int_equal(unlink(data_path), 0);
    assert_false(small_is_whole());
    bundle *b = open_it();
    assert_false(bundle_verify(b, entry_of(b, "model/x")));
    assert_error("data file is missing");
    ed_release(b);
}

/* Digests that are wrong, unreadable, or say nothing. */
static void digests(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char *const lines[] = {
        "99aa06d3014798d86001c324468d497e  x", /* another */
        "99aa06d3014798d86001c324468d497f  y", /* of nobody */
        "99AA06d3014798d86001c324468d497e  x", /* not as we write it */
        "99aa06d3014798d86001c324468d497e x",  /* too short a gap: of "" */
        "short",
        "",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int flipped = 0; flipped < 2; flipped++) {
            uint8_t n = (uint8_t)strlen(lines[i]);
            uint32_t length = n, crc = io_crc32c(0, &length, 4), check = io_crc32c_mask(crc);
            io_buffer data = {0}, x = {0}, d = {0};
            io_put_u8(&data, n);
            io_put_u32(&data, check);
            io_put(&data, lines[i], n);
            crc = io_crc32c(io_crc32c(crc, &check, 4), lines[i], n);
            io_put(&x, "\x08\x01\x12\x04\x12\x02\x08\x00", 8); /* float32[0] */
            put_crc(&x, 0);
            io_put(&d, "\x08\x07\x12\x04\x12\x02\x08\x01\x28", 9);
            io_put_varint(&d, data.size);
            put_crc(&d, crc ^ (uint32_t)flipped);
            const raw_entry entries[] = {
                RAW_HEADER,
                {BUNDLE_DIGESTS, strlen(BUNDLE_DIGESTS), (char *)d.data, d.size},
                {"x", 1, (char *)x.data, x.size}};
            craft(prefix, entries, 3, data.data, data.size);
            bundle *b = open_it();
            assert_int_equal(bundle_verify(b, entry_of(b, BUNDLE_DIGESTS)), !flipped);
            if (flipped) assert_error(BUNDLE_DIGESTS);
            bool damaged = i == 0 && !flipped;
            assert_int_equal(bundle_verify(b, entry_of(b, "x")), !damaged);
            if (damaged) assert_error("tensor 'x': the digest of its elements");
            ed_release(b);
            io_buffer_free(&data);
            io_buffer_free(&x);
            io_buffer_free(&d);
        }
}

/* Every entry that TensorFlow would die of or refuse, and some more; the other tensor stays. */
static void hostile_entries(void **state)
{
    (void)state;
    ED_SCOPE;
    static const struct {
        raw_entry entry;
        const char *why;
    } rows[] = {
        {RAW("a", ""), "dtype is unknown"},
        {RAW("a", "\x08\x01"), "size does not match"},
        {RAW("a", "\x08\x00\x12\x00\x28\x04"), "dtype is unknown"},
        {RAW("a", "\x08\x22\x12\x00\x28\x04"), "dtype is unknown"},
        {RAW("a", "\x08\x65\x12\x00\x28\x04"), "dtype is unknown"},     /* a reference */
        {RAW("a", "\x08\xe9\x07\x12\x00\x28\x04"), "dtype is unknown"}, /* a number of our own */
        {RAW("a", "\x08\x14\x12\x00\x28\x04"), "dtype is unknown"},     /* a resource */
        {RAW("a", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x00"), "dtype is unknown"},
        {RAW("a", "\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "shape is invalid"},
        {RAW("a", "\x08\x01\x12\x0c\x12\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
         "shape is invalid"},
        {RAW("a", "\x08\x01\x12\x14\x12\x06\x08\x80\x80\x80\x80\x20\x12\x06\x08\x80\x80\x80\x80\x20"
                  "\x12\x02\x08\x01"),
         "shape is invalid"}, /* 2^33 * 2^33 */
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x80"), "shape is damaged"},
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08"), "entry in the index is damaged"},
        {RAW("a", "\x08\x01\x12\x00\x28\x05"), "size does not match"},
        {RAW("a", "\x08\x01\x12\x00\x20\x0d\x28\x04"), "beyond its data file"},
        {RAW("a", "\x08\x01\x12\x00\x20\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x28\x04"),
         "beyond its data file"},
        {RAW("a", "\x08\x01\x12\x00\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x04"),
         "beyond its data file"},
        {RAW("a", "\x08\x01\x12\x00\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "beyond its data file"},
        {RAW("a", "\x08\x01\x12\x06\x12\x04\x08\x80\x80\x40\x28\x80\x80\x80\x02"),
         "beyond its data file"}, /* float32[2^20] */
        {RAW("a", "\x08\x01\x12\x00\x18\x01\x28\x04"), "does not have"},
        {RAW("a", "\x08\x01\x12\x00\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x04"),
         "does not have"},
        {RAW("a", "\x08\x01\x12\x00\x28\x04"), "checksum of"},
        {RAW("a", "\x08\x01\x12\x00\x28\x04\x35\x01\x02\x03\x04"), "checksum of"},
        {RAW("a", "\x08\x01\x12\x00\x28\x04\x35\x01\x02\x03"), "entry in the index is damaged"},
        {RAW("a", "\xff\xff\xff\xff"), "entry in the index is damaged"},
        {RAW("a", "\x0b\x0c"), "entry in the index is damaged"}, /* a group */
        {RAW("a", "\x08\x07\x12\x06\x12\x04\x08\x80\x80\x40\x28\x0c"), "more elements"},
        {RAW("a", "\x08\x07\x12\x00\x28\x0c"), "checksum of"}, /* no strings */
        {RAW("a", "\x08\x07\x12\x00\x28\x03"), "lengths are damaged"},
        {RAW("a", "\x08\x15\x12\x00\x28\x0c"), "checksum"}, /* no variant */
        {RAW("a", "\x08\x15\x12\x00\x28\x01"), "lengths are damaged"},
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x02\x3a\x00"),
         "slices is out of bounds"}, /* slices */
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x02\x3a\x02\x0a\x00"),
         "one of its slices is missing"},
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x02\x3a\x04\x0a\x02\x08\x03"),
         "slices is out of bounds"},
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x02\x3a\x04\x0a\x02\x10\x03"),
         "slices is out of bounds"},
        {RAW("a", "\x08\x01\x12\x04\x12\x02\x08\x02\x3a\x03\x0a\x02\x10"), "slices are damaged"},
        {RAW("a", "\x08\x07\x12\x04\x12\x02\x08\x02\x3a\x02\x0a\x00"), "its dtype does not allow"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const raw_entry entries[] = {
            RAW_HEADER, rows[i].entry,
            RAW("b", "\x08\x01\x12\x00\x20\x04\x28\x04\x35\xef\xd6\x82\xc3")};
        craft(prefix, entries, 3, "\0\0\0\x3f\0\0\x40\x40\0\0\x40\x40", 12);
        int64_t before = ed_memory_stats().live_bytes;
        ed_memory_reset_peak();
        bundle *b = open_it();
        float value;
        assert_true(bundle_read(b, entry_of(b, "b"), &value));
        assert_true(value == 3);
        const bundle_entry *a = entry_of(b, "a");
        for (int way = 0; way < 2; way++) {
            if (way == 0) assert_false(bundle_verify(b, a));
            if (way == 1) assert_null(bundle_tensor(b, a));
            if (way == 1 && strstr(ed_error(), "not supported by tensors")) {
                ed_clear_error();
                continue;
            }
            assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
            if (!strstr(ed_error(), rows[i].why) || !strstr(ed_error(), "tensor 'a'"))
                fail_msg("row %zu said '%s', expected '%s'", i, ed_error(), rows[i].why);
            ed_clear_error();
        }
        ed_release(b);
        assert_true(ed_memory_stats().peak_bytes - before < 100000);
        assert_int_equal(ed_memory_stats().live_bytes, before);
    }
}

/* What makes the whole index unreadable. */
static void hostile_indices(void **state)
{
    (void)state;
#define SOME RAW("b", "\x08\x01\x12\x00\x20\x04\x28\x04\x35\xef\xd6\x82\xc3")
    static const struct {
        raw_entry entries[3];
        ed_error_code kind;
        const char *why;
    } rows[] = {
        {{RAW("a", ""), SOME, RAW("c", "")}, ED_DATA_LOSS, "header is missing"},
        {{RAW_HEADER, SOME, RAW("a", "")}, ED_DATA_LOSS, "not in order"},
        {{RAW_HEADER, SOME, RAW("b", "\x08\x01")}, ED_DATA_LOSS, "not in order"}, /* two meanings */
        {{RAW("", "\x08"), SOME, RAW("c", "")}, ED_DATA_LOSS, "header is damaged"},
        {{RAW("", "\x08\x01\x1a\x01\x08"), SOME, RAW("c", "")}, ED_DATA_LOSS, "header is damaged"},
        {{RAW("", "\x08\x01\x1a\x02\x10\x02"), SOME, RAW("c", "")}, ED_UNIMPLEMENTED, "newer"},
        {{RAW("", "\x08\x01\x1a\x02\x18\x01"), SOME, RAW("c", "")}, ED_UNIMPLEMENTED, "newer"},
        {{RAW("", "\x08\x01\x1a\x05\x1a\x03\x05\x01\x02"), SOME, RAW("c", "")},
         ED_UNIMPLEMENTED,
         "newer"},
        {{RAW("", "\x08\x01\x1a\x04\x1a\x02\x05\x02"), SOME, RAW("c", "")}, ED_OK, ""},
        {{RAW_HEADER, SOME, SOME}, ED_OK, ""}, /* said twice */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        craft(prefix, rows[i].entries, 3, "\0\0\0\x3f\0\0\x40\x40", 8);
        bundle *b = bundle_open("test", prefix);
        assert_int_equal(ed_error_kind(), rows[i].kind);
        assert_int_equal(b == NULL, rows[i].kind != ED_OK);
        if (!b) assert_error(rows[i].why);
        if (b) assert_true(bundle_verify(b, entry_of(b, "b")));
        ed_release(b);
    }
    craft(prefix, NULL, 0, "", 0);
    assert_null(bundle_open("test", prefix));
    assert_error("header is missing");
}

/* An index whose names would take a thousand times its size; one of very many entries. */
static void hostile_names(void **state)
{
    (void)state;
    enum { LENGTH = 100000, COUNT = 20000 };
    static uint8_t key[LENGTH + 3];
    memset(key, 'k', LENGTH);
    for (int kind = 0; kind < 2; kind++) {
        table_writer w = {0};
        table_add(&w, SPAN(""), SPAN("\x08\x01\x1a\x02\x08\x01"));
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < 3; k++) key[LENGTH + k] = (uint8_t)(i >> 7 * (2 - k) & 127);
            if (kind == 0)
                w.data.count = 1; /* no restart after the first: every key shares the long part */
            table_add(&w, (io_span){kind ? key + LENGTH : key, kind ? 3 : LENGTH + 3}, SPAN(""));
        }
        assert_true(table_end(&w));
        write_bytes(index_path, w.file.data, w.file.size);
        size_t size = w.file.size;
        table_writer_free(&w);
        int64_t before = ed_memory_stats().live_bytes;
        ed_memory_reset_peak();
        bundle *b = bundle_open("test", prefix);
        if (kind == 0) {
            assert_null(b);
            assert_error("names are too long");
        } else {
            assert_non_null(b);
            assert_int_equal(bundle_count(b), COUNT);
        }
        ed_release(b);
        assert_true(ed_memory_stats().peak_bytes - before < (int64_t)(40 * size + (1 << 20)));
    }
}

/* A name of 100 kB with very many slices: looking for each by its key would take minutes. */
static void hostile_slices(void **state)
{
    (void)state;
    enum { LENGTH = 100000, SLICES = 250000 };
    io_buffer name = {0}, message = {0};
    for (int i = 0; i < LENGTH; i++) io_put_u8(&name, 'n');
    io_put(&message, "\x08\x01\x12\x04\x12\x02\x08\x02", 8);
    for (int i = 0; i < SLICES; i++) io_put(&message, "\x3a\x02\x0a\x00", 4);
    const raw_entry entries[] = {RAW_HEADER,
                                 {(char *)name.data, LENGTH, (char *)message.data, message.size}};
    craft(prefix, entries, 2, "", 0);
    clock_t start = clock();
    bundle *b = open_it();
    assert_false(bundle_verify(b, bundle_at(b, 0)));
    assert_error("all of its slices");
    ed_release(b);
    assert_true(clock() - start < CLOCKS_PER_SEC);
    io_buffer_free(&name);
    io_buffer_free(&message);
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* "v", float32 [4, 2] of 0 ... 7 in two slices of rows; the second's extent is as given. */
static void craft_slices(const char *second_key, size_t key_size, const char *second_slice,
                         size_t slice_size)
{
    const float data[] = {4, 5, 6, 7, 0, 1, 2, 3};
    io_buffer whole = {0}, first = {0}, second = {0};
    static const char shape[] = "\x08\x01\x12\x08\x12\x02\x08\x04\x12\x02\x08\x02";
    static const char part[] = "\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02";
    io_put(&whole, shape, sizeof shape - 1);
    io_put(&whole, "\x3a\x06\x0a\x02\x10\x02\x0a\x00", 8);
    io_put(&whole, second_slice, slice_size);
    io_put(&first, part, sizeof part - 1);
    io_put(&first, "\x20\x10\x28\x10", 4);
    put_crc(&first, io_crc32c(0, data + 4, 16));
    io_put(&second, part, sizeof part - 1);
    io_put(&second, "\x28\x10", 2);
    put_crc(&second, io_crc32c(0, data, 16));
    const raw_entry entries[] = {
        RAW_HEADER,
        {"\0v\0\x01\x01\x02\x80\x82\x80\x7f", 10, (char *)first.data, first.size},
        {second_key, key_size, (char *)second.data, second.size},
        {"v", 1, (char *)whole.data, whole.size}};
    craft(prefix, entries, 4, data, sizeof data);
    io_buffer_free(&whole);
    io_buffer_free(&first);
    io_buffer_free(&second);
}

static void slices(void **state)
{
    (void)state;
    ED_SCOPE;
    craft_slices("\0v\0\x01\x01\x02\x82\x82\x80\x7f", 10,
                 "\x3a\x08\x0a\x04\x08\x02\x10\x02\x0a\x00", 10);
    bundle *b = open_it();
    assert_int_equal(bundle_count(b), 1);
    ed_tensor *v = scope_give(bundle_tensor(b, entry_of(b, "v")));
    assert_non_null(v);
    for (int i = 0; i < 8; i++) assert_true(((float *)v->data)[i] == (float)i);
    assert_true(bundle_verify(b, entry_of(b, "v")));
    io_buffer out = {0};
    assert_true(bundle_stream(b, entry_of(b, "v"), gather, &out));
    assert_memory_equal(out.data, v->data, 32);
    io_buffer_free(&out);
    ed_release(b);

    static const struct {
        const char *key, *slice, *why;
        size_t slice_size;
    } rows[] = {
        /* Rows 1 and 2 overlap the first slice. */
        {"\0v\0\x01\x01\x02\x81\x82\x80\x7f", "\x3a\x08\x0a\x04\x08\x01\x10\x02\x0a\x00",
         "slices overlap", 10},
        /* Listed under one key, stored under another. */
        {"\0v\0\x01\x01\x02\x83\x82\x80\x7f", "\x3a\x08\x0a\x04\x08\x02\x10\x02\x0a\x00",
         "one of its slices is missing", 10},
        {"\0v\0\x01\x01\x02\x82\x82\x80\x7f", "\x3a\x08\x0a\x04\x08\x02\x10\x02", "damaged", 8},
        {"\0v\0\x01\x01\x02\x82\x82\x80\x7f", "", "leave a gap", 0},
        {"\0v\0\x01\x01\x02\x82\x82\x80\x82", "\x3a\x06\x0a\x04\x08\x02\x10\x02", "out of bounds",
         8},
        {"\0v\0\x01\x01\x02\x82\x81\x80\x7f", "\x3a\x08\x0a\x04\x08\x02\x10\x01\x0a\x00",
         "different dtype or shape", 10},
        {"\0v\0\x01\x01\x02\x84\x82\x80\x7f", "\x3a\x08\x0a\x04\x08\x04\x10\x02\x0a\x00",
         "out of bounds", 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        craft_slices(rows[i].key, 10, rows[i].slice, rows[i].slice_size);
        b = open_it();
        assert_null(bundle_tensor(b, entry_of(b, "v")));
        if (!strstr(ed_error(), rows[i].why) || !strstr(ed_error(), "'v'"))
            fail_msg("row %zu said '%s', expected '%s'", i, ed_error(), rows[i].why);
        ed_clear_error();
        ed_release(b);
    }
}

/* ---- Damage with care ------------------------------------------------------------------------ */

/* Opens whatever lies there and reads all of it: errors or values, in bounded memory. */
static void read_whatever(int64_t most)
{
    int64_t before = ed_memory_stats().live_bytes;
    ed_memory_reset_peak();
    bundle *b = bundle_open("test", prefix);
    for (int64_t i = 0; b && i < bundle_count(b); i++) {
        const bundle_entry *e = bundle_at(b, i);
        io_buffer out = {0};
        bool fine = bundle_verify(b, e);
        if (e->damage) assert_false(fine);
        if (!fine) assert_true(ed_failed());
        ed_clear_error();
        bundle_string(b, e, 0, &out);
        ed_clear_error();
        ed_release(bundle_tensor(b, e));
        ed_clear_error();
        io_buffer_free(&out);
    }
    if (!b) assert_true(ed_failed());
    ed_clear_error();
    ed_release(b);
    assert_true(ed_memory_stats().peak_bytes - before < most);
    assert_int_equal(ed_memory_stats().live_bytes, before);
}

static uint32_t next_random(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Changes a few bytes: to anything, to a bit more or less, to what is special in messages. */
static void mutate(uint8_t *data, size_t size)
{
    static const uint8_t special[] = {0, 1, 7, 8, 0x12, 0x28, 0x3a, 0x7f, 0x80, 0xff};
    for (uint32_t n = 1 + next_random() % 4; n; n--) {
        uint8_t *byte = data + next_random() % size;
        uint32_t how = next_random() % 3;
        *byte = how == 0   ? (uint8_t)next_random()
                : how == 1 ? special[next_random() % sizeof special]
                           : (uint8_t)(*byte ^ 1 << next_random() % 8);
    }
}

/* Damage that checksums don't tell: bytes of the index are changed and its checksums made right. */
static void damaged_with_care(void **state)
{
    (void)state;
    craft_slices("\0v\0\x01\x01\x02\x82\x82\x80\x7f", 10,
                 "\x3a\x08\x0a\x04\x08\x02\x10\x02\x0a\x00", 10);
    bundle *b = open_it();
    size_t size, block = b->table.blocks[0].size + 8; /* its one restart, their number */
    ed_release(b);
    uint8_t *good = read_bytes(index_path, &size), *bad = malloc(size);
    for (int round = 0; round < 20000; round++) {
        memcpy(bad, good, size);
        bool all = round % 4 == 0; /* elsewhere too, where checksums may tell */
        mutate(bad, all ? size : block);
        uint32_t crc = io_crc32c_mask(io_crc32c(0, bad, block + 1));
        memcpy(bad + block + 1, &crc, 4);
        size_t index = block + 5 + 13, end = size - 48 - 5;
        crc = io_crc32c_mask(io_crc32c(0, bad + index, end + 1 - index));
        memcpy(bad + end + 1, &crc, 4);
        write_bytes(index_path, bad, size);
        read_whatever(200000);
    }
    free(good);
    free(bad);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static bool write_and_read(void)
{
    ED_SCOPE;
    const io_span strings[] = {SPAN("one"), SPAN("two")};
    bundle_writer *w = bundle_create("test", prefix);
    if (!w) return false;
    bool fine = bundle_add(w, "y", ed_transpose(small_x)) && bundle_add(w, "x", small_x) &&
                bundle_add_strings(w, "s", 1, (int64_t[]){2}, strings, 2);
    fine &= bundle_finish(w);
    bundle *b = fine ? bundle_open("test", prefix) : NULL;
    if (!b) return false;
    ed_tensor *t = scope_give(bundle_tensor(b, entry_of(b, "x")));
    io_buffer out = {0};
    fine = t && bundle_verify(b, entry_of(b, "y")) && bundle_string(b, entry_of(b, "s"), 1, &out);
    io_buffer_free(&out);
    ed_release(b);
    return fine;
}

static void no_memory(void **state)
{
    (void)state;
    ED_SCOPE;
    small_x = pattern(ED_FLOAT32, 2, (int64_t[]){30, 40});
    for (int repeat = 0; repeat < 2; repeat++) {
        int n = 0;
        for (bool done = false; !done; n++) {
            int64_t before = ed_memory_stats().live_bytes;
            ed_memory_fail_at(n, repeat);
            bool fine = write_and_read();
            done = !ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            if (!done && fine) fail_msg("allocation %d failed and nobody minded", n);
            if (!done) assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
            if (done && !fine) fail_msg("%s", ed_error());
            ed_clear_error();
            assert_int_equal(ed_memory_stats().live_bytes, before);
            assert_true(folder_files(true) == (done ? 2 : 0) || folder_files(false) == 0);
        }
        assert_true(n > 25);
    }
    /* The same for slices, which only reading knows. */
    craft_slices("\0v\0\x01\x01\x02\x82\x82\x80\x7f", 10,
                 "\x3a\x08\x0a\x04\x08\x02\x10\x02\x0a\x00", 10);
    int n = 0;
    for (bool done = false; !done; n++) {
        ed_memory_fail_at(n, false);
        bundle *b = bundle_open("test", prefix);
        bool fine = b && bundle_verify(b, entry_of(b, "v"));
        ed_release(b);
        done = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        if (done != fine) fail_msg("allocation %d: %s", n, ed_error());
        if (!done) assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
        ed_clear_error();
    }
    assert_true(n > 12);
}

/* The prefix is the older bundle or the new one, whole. */
static void old_or_new(void)
{
    bundle *b = bundle_open("test", prefix);
    if (!b) fail_msg("%s", ed_error());
    assert_true(bundle_is_complete(b));
    assert_true(!bundle_find(b, "old") == !!bundle_find(b, "x"));
    for (int64_t i = 0; i < bundle_count(b); i++)
        if (!bundle_verify(b, bundle_at(b, i))) fail_msg("%s", ed_error());
    ed_release(b);
}

/* Every call to the system fails in turn: an error, and the prefix is the older bundle or the new
 * one. What can't be removed is removed by the next writer. */
static void faults(void **state)
{
    (void)state;
    ED_SCOPE;
    static const int errors[] = {28 /* ENOSPC */, 5 /* EIO */, 13 /* EACCES */, 24 /* EMFILE */};
    ed_tensor *old = pattern(ED_FLOAT32, 1, (int64_t[]){7});
    small_x = pattern(ED_FLOAT32, 2, (int64_t[]){30, 40});
    for (size_t k = 0; k < 8; k++) {
        int n = 0;
        for (bool done = false; !done; n++) {
            folder_files(true);
            bundle_writer *w = bundle_create("test", prefix);
            assert_true(bundle_add(w, "old", old));
            finish(w);
            io_fault(IO_CALL_ANY, n, errors[k % 4], k >= 4);
            bool fine = write_and_read();
            done = io_fault_count() <= n;
            io_fault(IO_CALL_ANY, -1, 0, false);
            if (done != fine && !(fine && n)) fail_msg("call %d: %s", n, ed_error());
            if (!fine) assert_true(ed_failed() && strstr(ed_error(), folder_root));
            ed_clear_error();
            old_or_new();
            if (!write_and_read()) fail_msg("%s", ed_error());
            if (k < 4) assert_in_range(folder_files(false), 2, 3);
        }
        assert_true(n > 12);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, end_test)

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(flips),           TEST(truncations),     TEST(digests),
        TEST(hostile_entries), TEST(hostile_indices), TEST(hostile_names),
        TEST(hostile_slices),  TEST(slices),          TEST(damaged_with_care),
        TEST(no_memory),       TEST(faults),
    };
    return cmocka_run_group_tests(tests, begin, folder_end);
}
