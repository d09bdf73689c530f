/* TensorFlow's bundles: what they are made of, there and back. Damage and failures are in
 * test_bundle_damage.c; what TensorFlow itself wrote is read by test_bundle_files.c. */
#include "io/snappy.h"
#include "ops/ops.h"
#include "tests/bundle_folder.h"

/* ---- Snappy ---------------------------------------------------------------------------------- */

static void unpacks(io_span packed, const char *whole, size_t whole_size)
{
    size_t size;
    uint8_t to[600];
    assert_true(snappy_size(packed, &size));
    assert_int_equal(size, whole_size);
    assert_true(snappy_unpack(packed, to, size));
    assert_memory_equal(to, whole, size);
    for (size_t cut = 1; cut < packed.size; cut++) {
        uint8_t *part = malloc(cut); /* so that a byte too far is seen */
        memcpy(part, packed.data, cut);
        io_span shorter = {part, cut};
        size_t claim;
        if (snappy_size(shorter, &claim)) {
            assert_int_equal(claim, size);
            assert_false(snappy_unpack(shorter, to, size));
        }
        free(part);
    }
}

static void snappy(void **state)
{
    (void)state;
    unpacks(SPAN("\x05\x10hello"), "hello", 5);
    unpacks(SPAN("\x0a\x04"
                 "ab\x11\x02"),
            "ababababab", 10); /* copy of 8 from 2 back, by one byte */
    unpacks(SPAN("\x0a\x04"
                 "ab\x1e\x02\x00"),
            "ababababab", 10);
    unpacks(SPAN("\x0a\x04"
                 "ab\x1f\x02\x00\x00\x00"),
            "ababababab", 10);
    /* A literal of 1 + 299 by two bytes of length, then a copy from 256 + 44 back. */
    uint8_t packed[320] = {0xb0, 0x02, 61 << 2, 0x2b, 0x01}, whole[304];
    for (int i = 0; i < 304; i++) whole[i] = (uint8_t)(i % 300 * 7);
    memcpy(packed + 5, whole, 300);
    memcpy(packed + 305, "\x21\x2c", 2);
    unpacks((io_span){packed, 307}, (char *)whole, 304);
    for (int i = 0; i < 3; i++) { /* 1, 3 and 4 bytes of length */
        static const uint8_t tags[] = {60 << 2, 62 << 2, 63 << 2}, extra[] = {1, 3, 4};
        uint8_t again[80] = {70, tags[i], 69};
        memset(again + 2 + extra[i], 'x', 70);
        char xs[70];
        memset(xs, 'x', 70);
        unpacks((io_span){again, 2u + extra[i] + 70}, xs, 70);
    }

    static const io_span damaged[] = {{(const uint8_t *)"\x0a\x04"
                                                        "ab\x11\x00",
                                       6}, /* from nowhere */
                                      {(const uint8_t *)"\x0a\x04"
                                                        "ab\x11\x03",
                                       6}, /* from before the beginning */
                                      {(const uint8_t *)"\x09\x04"
                                                        "ab\x11\x02",
                                       6}, /* beyond the end */
                                      {(const uint8_t *)"\x0b\x04"
                                                        "ab\x11\x02",
                                       6}, /* not up to it */
                                      {(const uint8_t *)"\x02\x08"
                                                        "abc",
                                       5}, /* literal beyond the end */
                                      {(const uint8_t *)"\x03\xfc\xff\xff\xff\xff", 6}};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        size_t size;
        uint8_t to[16];
        assert_true(snappy_size(damaged[i], &size));
        assert_false(snappy_unpack(damaged[i], to, size));
    }
    size_t size;
    assert_false(snappy_size(SPAN("\xff\xff\xff\xff\x0f"), &size)); /* more than can come of it */
    assert_false(snappy_size(SPAN(""), &size));
    assert_false(snappy_size(SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &size));
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* A published index of three scalars, byte for byte. */
static void table_known(void **state)
{
    (void)state;
    static const raw_entry entries[] = {
        RAW_HEADER, RAW("a", "\x08\x01\x12\x00\x28\x04\x35\x06\x38\x27\x1f"),
        RAW("b", "\x08\x01\x12\x00\x20\x04\x28\x04\x35\xef\xd6\x82\xc3"),
        RAW("c", "\x08\x01\x12\x00\x20\x08\x28\x04\x35\xef\xd6\x82\xc3")};
    static const char first[] = "\0\0\x06\x08\x01\x1a\x02\x08\x01\0\x01\x0b"
                                "a\x08\x01\x12\0\x28\x04\x35\x06\x38\x27\x1f\0\x01\x0d"
                                "b\x08\x01\x12\0\x20\x04\x28\x04\x35\xef\xd6\x82\xc3\0\x01\x0d"
                                "c";
    static const char last[] = "\0\0\0\0\x01\0\0\0\0\xc1\xe6\x19\xdf" /* restarts, trailer */
                               "\0\0\0\0\x01\0\0\0\0\xc0\xf2\xa1\xb0" /* metaindex */
                               "\0\x01\x02\x64\0\x42\0\0\0\0\x01\0\0\0\0\x58\xb2\xe9\xf7"
                               "\x47\x08\x54\x0e";
    craft(prefix, entries, 4, "\0\0\0\x3f\0\0\x40\x40\0\0\x40\x40", 12);
    size_t size;
    char *file = read_bytes(index_path, &size);
    assert_int_equal(size, 151);
    assert_memory_equal(file, first, sizeof first - 1);
    assert_memory_equal(file + 58, last, sizeof last - 1);
    assert_memory_equal(file + 143, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    free(file);
    bundle *b = open_it();
    assert_int_equal(bundle_count(b), 3);
    assert_int_equal(bundle_shards(b), 1);
    assert_string_equal(bundle_prefix(b), prefix);
    float c;
    assert_true(bundle_read(b, entry_of(b, "c"), &c));
    assert_true(c == 3);
    ed_release(b);
}

/* Many keys of all lengths with values that don't fit one block. */
static void table_blocks(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static char value[600000];
    for (size_t i = 0; i < sizeof value; i++) value[i] = (char)(i * 31 >> 3);
    table_writer w = {0};
    char key[64];
    for (int i = 0; i < COUNT; i++) {
        int n = snprintf(key, sizeof key, "x/name/%06d%.*s", i, i % 5, "tail");
        size_t size = i == 1500 ? sizeof value : i == 1501 ? 262144 : (size_t)(i * 7919 % 400);
        key[0] = (char)(i < 1000 ? '0' : i < 2000 ? '1' : 0xff);
        table_add(&w, (io_span){(uint8_t *)key, (size_t)n}, (io_span){(uint8_t *)value, size});
    }
    assert_true(table_end(&w));
    write_bytes(index_path, w.file.data, w.file.size);
    table_writer_free(&w);

    table t;
    assert_true(table_open(&t, "test", index_path));
    assert_in_range(t.count, 4, 8);
    table_walk walk = {.table = &t};
    int i = 0;
    for (; table_next(&walk); i++) {
        int n = snprintf(key, sizeof key, "x/name/%06d%.*s", i, i % 5, "tail");
        size_t size = i == 1500 ? sizeof value : i == 1501 ? 262144 : (size_t)(i * 7919 % 400);
        key[0] = (char)(i < 1000 ? '0' : i < 2000 ? '1' : 0xff);
        assert_int_equal(walk.key.size, n);
        assert_memory_equal(walk.key.data, key, n);
        assert_int_equal(walk.value.size, size);
        assert_memory_equal(walk.value.data, value, size);
    }
    assert_false(walk.failed);
    assert_int_equal(i, COUNT);
    table_walk_end(&walk);
    table_close(&t);
}

/* ---- There and back -------------------------------------------------------------------------- */

static io_digest digest_of(ed_tensor *t)
{
    return io_digest_of(ed_data(t), (size_t)t->size * dtype_size(t->dtype));
}

/* Every dtype and many shapes, whole and as strided views. */
static void round_trip(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_ints shapes[] = {
        {(const int64_t[]){0}, 0},           {(const int64_t[]){0}, 1},
        {(const int64_t[]){5}, 1},           {(const int64_t[]){3, 0, 2}, 3},
        {(const int64_t[]){300, 7, 130}, 3}, {(const int64_t[]){2, 1, 2, 1, 2, 1, 2, 3}, 8},
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    ed_tensor *kept[ED_DTYPE_COUNT][SHAPES][2];
    char name[64];
    bundle_writer *w = bundle_create("test", prefix);
    assert_non_null(w);
    for (ed_dtype d = 1; d < ED_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) {
            ed_tensor *t = pattern(d, (int)shapes[s].count, shapes[s].values), *view = t;
            if (t->rank > 1) view = ed_transpose(t);
            if (t->rank == 1) view = ed_reverse(t, ED_AXES(0));
            kept[d][s][0] = t;
            kept[d][s][1] = view;
            for (int k = 0; k < 2; k++) {
                snprintf(name, sizeof name, "%s/%d/%s", ed_dtype_name(d), s, k ? "view" : "whole");
                assert_true(bundle_add(w, name, kept[d][s][k]));
            }
        }
    finish(w);
    assert_int_equal(folder_files(false), 2);
    bundle *b = open_it();
    assert_int_equal(bundle_count(b), (ED_DTYPE_COUNT - 1) * SHAPES * 2 + 1);
    for (ed_dtype d = 1; d < ED_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++)
            for (int k = 0; k < 2; k++) {
                snprintf(name, sizeof name, "%s/%d/%s", ed_dtype_name(d), s, k ? "view" : "whole");
                const bundle_entry *e = entry_of(b, name);
                assert_null(e->damage);
                assert_string_equal(io_dtype_name(e->dtype), ed_dtype_name(d));
                assert_int_equal(e->bytes, e->elements * (int64_t)dtype_size(d));
                ed_tensor *t = scope_give(bundle_tensor(b, e));
                assert_non_null(t);
                assert_same_tensor(t, kept[d][s][k]);
                assert_true(bundle_verify(b, e));
                io_digest digest, expected = digest_of(kept[d][s][k]);
                assert_true(bundle_digest(b, e, &digest));
                assert_true(digest.low == expected.low && digest.high == expected.high);
                io_buffer pieces = {0};
                assert_true(bundle_stream(b, e, gather, &pieces));
                assert_int_equal(pieces.size, e->bytes);
                if (e->bytes) assert_memory_equal(pieces.data, ed_data(t), pieces.size);
                io_buffer_free(&pieces);
            }
    io_digest digest;
    assert_true(bundle_verify(b, entry_of(b, BUNDLE_DIGESTS)));
    assert_false(bundle_digest(b, entry_of(b, BUNDLE_DIGESTS), &digest));
    assert_null(bundle_find(b, "float32"));
    assert_null(bundle_find(b, ""));
    assert_null(bundle_find(b, "zzz"));
    assert_null(bundle_at(b, -1));
    assert_null(bundle_at(b, bundle_count(b)));
    for (int64_t i = 1; i < bundle_count(b); i++)
        assert_true(strcmp(bundle_at(b, i - 1)->name, bundle_at(b, i)->name) < 0);
    ed_release(b);
}

static bool count_string(void *user, io_span string)
{
    io_put_u8(user, (uint8_t)string.size);
    return true;
}

static bool stop_at_once(void *user, io_span string)
{
    (void)string;
    ++*(int *)user;
    return false;
}

static void strings_and_rare_dtypes(void **state)
{
    (void)state;
    ED_SCOPE;
    static char lengthy[100000];
    memset(lengthy, 'l', sizeof lengthy);
    const io_span strings[] = {SPAN("text"),
                               SPAN(""),
                               SPAN("with\0zero"),
                               SPAN("\xff\xfe"),
                               {(uint8_t *)lengthy, sizeof lengthy},
                               SPAN("last")};
    const uint16_t numbers[] = {1, 2, 65535};
    bundle_writer *w = bundle_create("test", prefix);
    assert_true(bundle_add_strings(w, "s", 2, (int64_t[]){2, 3}, strings, 6));
    assert_true(bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, strings, 1));
    assert_true(bundle_add_strings(w, "none", 2, (int64_t[]){4, 0}, NULL, 0));
    assert_true(bundle_add_raw(w, "u16", IO_UINT16, 1, (int64_t[]){3}, numbers, 6));
    assert_true(bundle_add_raw(w, "c64", IO_COMPLEX64, 0, NULL, "\0\0\x80\x3f\0\0\0\x40", 8));
    assert_true(bundle_add_raw(w, "i4", IO_INT4, 1, (int64_t[]){2}, "\x7\xf", 2));
    int64_t deep[12];
    for (int i = 0; i < 12; i++) deep[i] = 1;
    assert_true(bundle_add_raw(w, "deep", IO_FLOAT32, 12, deep, "\0\0\x80\x3f", 4));
    finish(w);

    bundle *b = open_it();
    const bundle_entry *s = entry_of(b, "s");
    assert_int_equal(s->elements, 6);
    assert_int_equal(s->bytes, 5 + 3 + 4 + 4 + 9 + 2 + 100000 + 4);
    for (int i = 0; i < 6; i++) {
        io_buffer out = {0};
        assert_true(bundle_string(b, s, i, &out));
        assert_int_equal(out.size, strings[i].size);
        if (out.size) assert_memory_equal(out.data, strings[i].data, out.size);
        io_buffer_free(&out);
    }
    io_buffer sizes = {0};
    int calls = 0;
    assert_true(bundle_strings(b, s, count_string, &sizes));
    assert_int_equal(sizes.size, 6);
    assert_memory_equal(sizes.data, "\x4\0\x9\x2\xa0\x4", 6);
    assert_false(bundle_strings(b, s, stop_at_once, &calls));
    assert_false(ed_failed());
    assert_int_equal(calls, 1);
    assert_true(bundle_strings(b, entry_of(b, "none"), count_string, &sizes));
    assert_false(bundle_string(b, s, 6, &sizes));
    assert_error("index is out of bounds");
    assert_false(bundle_string(b, entry_of(b, "u16"), 0, &sizes));
    assert_error("not a tensor of strings");
    assert_int_equal(sizes.size, 6);
    io_buffer_free(&sizes);
    assert_false(bundle_read(b, s, lengthy));
    assert_error("strings and variants");
    assert_null(bundle_tensor(b, s));
    assert_error("dtype string is not supported");
    assert_null(bundle_tensor(b, entry_of(b, "c64")));
    assert_error("dtype complex64 is not supported");
    assert_null(bundle_tensor(b, entry_of(b, "deep")));
    assert_error("has rank 12");
    char read[8];
    assert_true(bundle_read(b, entry_of(b, "c64"), read));
    assert_memory_equal(read, "\0\0\x80\x3f\0\0\0\x40", 8);
    assert_true(bundle_read(b, entry_of(b, "deep"), read));
    assert_true(bundle_read(b, entry_of(b, "i4"), read));
    assert_memory_equal(read, "\x7\xf", 2);
    for (int64_t i = 0; i < bundle_count(b); i++) assert_true(bundle_verify(b, bundle_at(b, i)));
    ed_release(b);
}

/* The digests are lines that anybody can read, in the order of names. */
static void digest_lines(void **state)
{
    (void)state;
    ED_SCOPE;
    bundle_writer *w = bundle_create("test", prefix);
    assert_true(bundle_add(w, "second", pattern(ED_FLOAT32, 1, (int64_t[]){5})));
    assert_true(bundle_add_raw(w, "first", IO_FLOAT32, 1, (int64_t[]){0}, "", 0));
    finish(w);
    bundle *b = open_it();
    const bundle_entry *e = entry_of(b, BUNDLE_DIGESTS);
    assert_int_equal(e->rank, 1);
    assert_int_equal(e->elements, 2);
    io_buffer lines = {0};
    assert_true(bundle_string(b, e, 0, &lines));
    io_put_u8(&lines, '\n');
    assert_true(bundle_string(b, e, 1, &lines));
    io_put_u8(&lines, 0);
    char expected[200], digits[33];
    io_digest_text(digest_of(pattern(ED_FLOAT32, 1, (int64_t[]){5})), digits);
    /* XXH3-128 of nothing, as published with it. */
    snprintf(expected, sizeof expected, "99aa06d3014798d86001c324468d497f  first\n%s  second",
             digits);
    assert_string_equal((char *)lines.data, expected);
    io_buffer_free(&lines);
    ed_release(b);
}

static void refused_additions(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_null(bundle_create("test", NULL));
    assert_error("prefix is NULL");
    assert_null(bundle_create("test", "/tmp/"));
    assert_error("prefix must end in a file name");
    assert_null(bundle_open("test", NULL));
    assert_error("NULL");
    ed_tensor *x = pattern(ED_FLOAT32, 1, (int64_t[]){3});
    const io_span string = SPAN("s");
    for (int i = 0; i < 10; i++) {
        bundle_writer *w = bundle_create("test", prefix);
        assert_true(bundle_add(w, "x", x));
        switch (i) {
        case 0: assert_false(bundle_add(w, NULL, x)); break;
        case 1: assert_false(bundle_add(w, "", x)); break;
        case 2: assert_false(bundle_add(w, BUNDLE_DIGESTS, x)); break;
        case 3: assert_false(bundle_add(w, "y", NULL)); break;
        case 4:
            assert_false(bundle_add_raw(w, "y", IO_FLOAT32, 1, (int64_t[]){3}, "1234", 4));
            break;
        case 5: assert_false(bundle_add_raw(w, "y", IO_STRING, 0, NULL, "1234", 4)); break;
        case 6: assert_false(bundle_add_raw(w, "y", IO_FLOAT8_E8M0, 0, NULL, "1", 1)); break;
        case 7: assert_false(bundle_add_strings(w, "y", 1, (int64_t[]){2}, &string, 1)); break;
        case 8: assert_false(bundle_add_strings(w, "y", 1, (int64_t[]){-1}, &string, -1)); break;
        default: assert_true(bundle_add(w, "x", x));
        }
        if (i < 9) {
            assert_int_equal(ed_error_kind(),
                             i == 5 || i == 6 ? ED_UNIMPLEMENTED : ED_INVALID_ARGUMENT);
            ed_clear_error();
            assert_false(bundle_add(w, "z", x)); /* what failed stays failed */
        }
        assert_false(bundle_finish(w));
        if (i == 9) assert_error("two tensors have the name 'x'");
        assert_int_equal(folder_files(false), 0);
    }
    bundle_discard(NULL);
    assert_null(bundle_open("test", prefix));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
}

/* A folder that has to be made, an empty bundle, names of any bytes, removal. */
static void odd_bundles(void **state)
{
    (void)state;
    ED_SCOPE;
    char deep[200];
    snprintf(deep, sizeof deep, "%s/a/b/my.model-7", folder_root);
    bundle_writer *w = bundle_create("test", deep);
    assert_non_null(w);
    finish(w);
    bundle *b = bundle_open("test", deep);
    assert_non_null(b);
    assert_int_equal(bundle_count(b), 0);
    ed_release(b);
    w = bundle_create("test", deep);
    char lengthy[5000];
    memset(lengthy, 'n', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = 0;
    ed_tensor *x = pattern(ED_INT32, 1, (int64_t[]){3});
    const char *const names[] = {"\xff\xff", " ", "ü/..S%n", lengthy, "\x01"};
    for (int i = 0; i < 5; i++) assert_true(bundle_add(w, names[i], x));
    finish(w);
    b = bundle_open("test", deep);
    for (int i = 0; i < 5; i++) assert_true(bundle_verify(b, entry_of(b, names[i])));
    ed_release(b);
    static const char *const others[] = {"my.model-7.data-00000-of-00002",
                                         "my.model-7.data-00003-of-100000", /* of it */
                                         "my.model-7.data-0000-of-00002",
                                         "my.model-7.data-00000-of-00002.tmp",
                                         "my.model-77.index",
                                         "my.model-7.data-00000-of-",
                                         "my.model-7.meta"};
    for (int i = 0; i < 7; i++) write_text(in_folder("a/b/%s", others[i]), "");
    assert_true(bundle_remove("test", deep));
    for (int i = 0; i < 7; i++) {
        const char *path = in_folder("a/b/%s", others[i]);
        assert_int_equal(access(path, F_OK) == 0, i >= 2);
        unlink(path);
    }
    assert_true(bundle_remove("test", deep)); /* nothing there is no failure */
    assert_false(bundle_remove("test", NULL));
    assert_error("prefix is NULL");
    assert_int_equal(rmdir(in_folder("a/b")), 0);
    assert_int_equal(rmdir(in_folder("a")), 0);
}

/* An open bundle is not disturbed by another that takes its place. */
static void replaced_while_open(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = pattern(ED_INT32, 1, (int64_t[]){1000}), *y = ed_zeros(ED_SHAPE(5));
    bundle_writer *w = bundle_create("test", prefix);
    assert_true(bundle_add(w, "x", x));
    finish(w);
    bundle *b = open_it();
    w = bundle_create("test", prefix);
    assert_true(bundle_add(w, "y", y));
    finish(w);
    assert_same_tensor(scope_give(bundle_tensor(b, entry_of(b, "x"))), x);
    ed_release(b);
    b = open_it();
    assert_null(bundle_find(b, "x"));
    assert_same_tensor(scope_give(bundle_tensor(b, entry_of(b, "y"))), y);
    ed_release(b);
}

/* ---- Size ------------------------------------------------------------------------------------ */

/* Joined crcs of two parts are the whole's. */
static void joined_crcs(void **state)
{
    (void)state;
    enum { SIZE = 70000 };
    static uint8_t data[SIZE];
    for (int i = 0; i < SIZE; i++) data[i] = (uint8_t)((uint32_t)i * 40503u >> 7);
    for (size_t cut = 0; cut <= SIZE; cut += cut < 300 ? 1 : 997)
        for (size_t size = SIZE; size >= cut && size > SIZE - 3; size--) {
            uint32_t first = io_crc32c(0, data, cut), rest = io_crc32c(0, data + cut, size - cut);
            assert_int_equal(io_crc32c_join(first, rest, size - cut), io_crc32c(0, data, size));
        }
}

/* Large tensors: any number of threads, no copy of the whole. */
static void large(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { ROWS = 4001, COLUMNS = 3001 };
    ed_tensor *x = pattern(ED_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS});
    ed_tensor *view = ed_transpose(x);
    int64_t before = ed_memory_stats().live_bytes;
    ed_memory_reset_peak();
    bundle_writer *w = bundle_create("test", prefix);
    assert_true(bundle_add(w, "x", x));
    assert_true(bundle_add(w, "view", view));
    finish(w);
    assert_true(ed_memory_stats().peak_bytes - before < 4 << 20);
    bundle *b = open_it();
    int threads = ed_num_threads();
    for (int n = 1; n <= 4; n++) {
        ED_SCOPE;
        ed_set_num_threads(n);
        assert_same_tensor(scope_give(bundle_tensor(b, entry_of(b, "x"))), x);
        assert_same_tensor(scope_give(bundle_tensor(b, entry_of(b, "view"))), view);
    }
    ed_memory_reset_peak();
    before = ed_memory_stats().live_bytes;
    assert_true(bundle_verify(b, entry_of(b, "x")));
    assert_true(ed_memory_stats().peak_bytes - before < 4 << 20);
    /* A read that fails once is made again; one that goes on failing is an error. */
    for (int n = 0; n < 200; n += 13) {
        io_fault(IO_CALL_READ, n, n % 2 ? 5 : 0, false);
        assert_same_tensor(scope_give(bundle_tensor(b, entry_of(b, "x"))), x);
        io_fault(IO_CALL_READ, n, 5, true);
        ed_tensor *t = bundle_tensor(b, entry_of(b, "x"));
        bool met = io_fault_count() > n;
        io_fault(IO_CALL_READ, -1, 0, false);
        assert_int_equal(t == NULL, met);
        if (met) assert_error(data_path);
        ed_release(t);
    }
    /* A byte is changed in the first piece, in the middle and at the end. */
    static const int64_t places[] = {5, (int64_t)ROWS * COLUMNS * 2,
                                     (int64_t)ROWS * COLUMNS * 4 - 1};
    for (int i = 0; i < 3; i++) {
        FILE *f = fopen(data_path, "r+b");
        fseek(f, places[i], SEEK_SET);
        int byte = fgetc(f);
        fseek(f, places[i], SEEK_SET);
        fputc(byte ^ 4, f);
        fclose(f);
        assert_null(bundle_tensor(b, entry_of(b, "x")));
        assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
        assert_error("tensor 'x'");
        assert_false(bundle_verify(b, entry_of(b, "x")));
        assert_error("tensor 'x'");
        assert_true(bundle_verify(b, entry_of(b, "view")));
        f = fopen(data_path, "r+b");
        fseek(f, places[i], SEEK_SET);
        fputc(byte, f);
        fclose(f);
    }
    /* The file becomes shorter while it is open. */
    assert_int_equal(truncate(data_path, (off_t)ROWS * COLUMNS * 2), 0);
    assert_null(bundle_tensor(b, entry_of(b, "x")));
    assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
    ed_clear_error();
    ed_set_num_threads(threads);
    ed_release(b);
}

#define TEST(name) cmocka_unit_test_teardown(name, end_test)

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(snappy),
        TEST(table_known),
        TEST(table_blocks),
        TEST(round_trip),
        TEST(strings_and_rare_dtypes),
        TEST(digest_lines),
        TEST(refused_additions),
        TEST(odd_bundles),
        TEST(replaced_while_open),
        TEST(joined_crcs),
        TEST(large),
    };
    return cmocka_run_group_tests(tests, begin, folder_end);
}
