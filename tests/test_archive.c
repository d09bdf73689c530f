/* Archives whatever their format: which one a file is, names and places, every dtype and layout out
 * and in, conversion, damage and failures. */
#include "io/archive.h"
#include "io/bundle.h"
#include "ops/ops.h"
#include "nn/nn.h"
#include "tests/archives.h"
#include "tests/folders.h"

/* The formats that can be written and hold many tensors. */
enum { MAX_FORMATS = 16 };
static const archive_format *formats[MAX_FORMATS];
static int format_count;

static void find_formats(void)
{
    int n;
    const archive_format *const *all = archive_formats(&n);
    assert_true(n <= MAX_FORMATS);
    for (int i = 0; i < n; i++)
        if (all[i]->write && !all[i]->single) formats[format_count++] = all[i];
    assert_true(format_count >= 3);
}

static bool write_as(const archive_format *format, const char *path, const archive_item *items,
                     int64_t count)
{
    return archive_write_items("test", format, path, items, count);
}

/* A file of safetensors, whose content ends in elements. */
static void put_safetensors(const char *name, const char *content, size_t size, size_t elements)
{
    char file[512];
    const uint64_t header = size - elements;
    assert_true(8 + size <= sizeof file);
    memcpy(file, &header, 8);
    memcpy(file + 8, content, size);
    write_bytes(in_folder("%s", name), file, 8 + size);
}

static ed_archive *opened(const char *name)
{
    ed_archive *archive = ed_archive_open(in_folder("%s", name));
    if (!archive) fail_msg("%s", ed_error());
    return archive;
}

static int end(void **state)
{
    return folder_end(state) || check_end(state);
}

static archive_item item_of(const char *name, const ed_tensor *t)
{
    return (archive_item){.name = name,
                          .dtype = io_dtype_from(t->dtype),
                          .rank = t->rank,
                          .shape = t->shape,
                          .bytes = t->size * (int64_t)dtype_size(t->dtype),
                          .tensor = t};
}

/* ---- What there is to write ------------------------------------------------------------------ */

/* A tensor of any dtype with bytes that differ; of the scope. */
static ed_tensor *sample(ed_dtype dtype, int rank, const int64_t *shape)
{
    ed_tensor *t = scope_give(tensor_new(dtype, rank, shape));
    assert_non_null(t);
    for (int64_t i = 0; i < t->size * (int64_t)dtype_size(dtype); i++)
        t->data[i] = (char)(dtype == ED_BOOL ? i * 5 / 3 % 2 : i * 37 + 11);
    return t;
}

enum { LAYOUTS = 6 };

/* A scalar, a vector, an empty one, a matrix, its transpose, a vector backwards in steps of two. */
static ed_tensor *layout(ed_dtype dtype, int kind)
{
    ed_tensor *matrix = sample(dtype, 2, (int64_t[]){3, 2}),
              *vector = sample(dtype, 1, (int64_t[]){7});
    switch (kind) {
    case 0: return sample(dtype, 0, NULL);
    case 1: return vector;
    case 2: return sample(dtype, 3, (int64_t[]){2, 0, 3});
    case 3: return matrix;
    case 4: return scope_give(tensor_view(matrix, 2, (int64_t[]){2, 3}, (int64_t[]){1, 2}, 0));
    default: return scope_give(tensor_view(vector, 1, (int64_t[]){4}, (int64_t[]){-2}, 6));
    }
}

/* Entry i is this tensor. */
static void same(ed_archive *archive, int64_t i, const ed_tensor *expected)
{
    char packed[256], digits[33];
    size_t size = (size_t)expected->size * dtype_size(expected->dtype);
    tensor_pack(expected, packed);
    assert_string_equal(ed_archive_dtype(archive, i), ed_dtype_name(expected->dtype));
    assert_int_equal(ed_archive_bytes(archive, i), size);
    ed_ints shape = ed_archive_shape(archive, i);
    assert_non_null(shape.values);
    assert_int_equal(shape.count, expected->rank);
    for (int d = 0; d < expected->rank; d++) assert_int_equal(shape.values[d], expected->shape[d]);
    ed_tensor *t = ed_archive_tensor(archive, i);
    if (!t) fail_msg("%s", ed_error());
    assert_int_equal(t->dtype, expected->dtype);
    assert_int_equal(t->rank, expected->rank);
    for (int d = 0; d < t->rank; d++) assert_int_equal(t->shape[d], expected->shape[d]);
    assert_memory_equal(ed_data(t), packed, size);
    assert_true(ed_archive_verify(archive, i));
    io_digest_text(io_digest_of(packed, size), digits);
    assert_string_equal(ed_archive_digest(archive, i), digits);
}

static void every_dtype_and_layout(void **state)
{
    (void)state;
    static char names[ED_DTYPE_COUNT][LAYOUTS][32];
    for (int f = 0; f < format_count; f++) {
        ED_SCOPE;
        archive_item items[ED_DTYPE_COUNT * LAYOUTS];
        int64_t n = 0;
        for (ed_dtype dtype = 1; dtype < ED_DTYPE_COUNT; dtype++)
            for (int kind = 0; kind < LAYOUTS; kind++) {
                sprintf(names[dtype][kind], "%s/%d", ed_dtype_name(dtype), kind);
                items[n++] = item_of(names[dtype][kind], layout(dtype, kind));
            }
        if (!write_as(formats[f], in_folder("x"), items, n)) fail_msg("%s", ed_error());
        ed_archive *archive = opened("x");
        assert_string_equal(ed_archive_format(archive), formats[f]->name);
        for (int64_t i = 0; i < n; i++) {
            int64_t place = ed_archive_find(archive, items[i].name);
            assert_true(place >= 0);
            assert_string_equal(ed_archive_name(archive, place), items[i].name);
            same(archive, place, items[i].tensor);
        }
        assert_int_equal(ed_archive_count(archive),
                         n + formats[f]->strings); /* a bundle's digests */
        folder_files(true);
    }
}

static void odd_names(void **state)
{
    (void)state;
    static const char *const names[] = {"a",
                                        "a/b",
                                        "a/b/.ATTRIBUTES/VARIABLE_VALUE",
                                        "quo\"te\\'s",
                                        " ",
                                        "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
                                        "..",
                                        "a\tb\n",
                                        "[0]",
                                        "A"};
    enum { NAMES = sizeof names / sizeof *names };
    for (int f = 0; f < format_count; f++) {
        ED_SCOPE;
        archive_item items[NAMES];
        for (int i = 0; i < NAMES; i++)
            items[i] = item_of(names[i], ed_constant(ED_VALUES(int32_t, i), ED_SHAPE()));
        if (!write_as(formats[f], in_folder("x"), items, NAMES)) fail_msg("%s", ed_error());
        ed_archive *archive = opened("x");
        for (int i = 0; i < NAMES; i++)
            assert_true(ed_item(ed_archive_get(archive, names[i])) == i);
        assert_int_equal(ed_archive_find(archive, "b"), -1);
        assert_int_equal(ed_archive_find(archive, ""), -1);
        assert_int_equal(ed_archive_find(archive, "\xff"), -1);
        assert_false(ed_failed());
        folder_files(true);
    }
}

/* ---- Which format a file is ------------------------------------------------------------------ */

static void recognised_by_content(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *t = ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2));
    assert_true(write_safetensors(in_folder("safe.npz"), "t", t));
    assert_true(write_npz(in_folder("zipped.npy"), "t", t));
    assert_true(ed_archive_write(in_folder("empty.safetensors"), ED_NAMED(), .format = "npz"));
    assert_true(ed_write_npy(in_folder("one.index"), t));
    archive_item item = item_of("t", t);
    assert_true(write_items("bundle", in_folder("model-7"), &item, 1));
    static const struct {
        const char *path, *format;
        int count;
    } cases[] = {{"safe.npz", "safetensors", 1},  {"zipped.npy", "npz", 1},
                 {"empty.safetensors", "npz", 0}, {"one.index", "npy", 1},
                 {"model-7", "bundle", 2},        {"model-7.index", "bundle", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ed_archive *archive = opened(cases[i].path);
        assert_string_equal(ed_archive_format(archive), cases[i].format);
        assert_int_equal(ed_archive_count(archive), cases[i].count);
        const char *name = strcmp(cases[i].format, "npy") ? "t" : "";
        if (cases[i].count) same(archive, ed_archive_find(archive, name), t);
    }
}

/* The last call failed with that code and message, in which %s is the list of all formats. */
static void failed_listing(ed_error_code code, const char *format)
{
    char message[512];
    snprintf(message, sizeof message, format, format_list());
    failed_with(code, message);
}

static void not_recognised(void **state)
{
    (void)state;
    ED_SCOPE;
    write_bytes(in_folder("text"), "hello, this is a text\n", 22);
    write_bytes(in_folder("empty"), "", 0);
    write_bytes(in_folder("short"), "PK\3", 3);
    write_bytes(in_folder("no.index"), "hello, this is no table\n", 24);
    static const char *const names[] = {"text", "empty", "short", "no.index"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_null(ed_archive_open(in_folder("%s", names[i])));
        assert_non_null(strstr(ed_error(), names[i]));
        failed_listing(ED_DATA_LOSS, "the format of the file is not known: must be one of %s");
    }
    assert_null(ed_archive_open(in_folder("nothing")));
    failed_with(ED_NOT_FOUND, "nothing");
    assert_null(ed_archive_open(folder_root));
    failed_with(ED_IO, folder_root);
    /* The data of a bundle are none. */
    archive_item item = item_of("t", ed_constant(ED_VALUES(float, 1, 2, 3), ED_SHAPE(3)));
    assert_true(write_items("bundle", in_folder("b"), &item, 1));
    assert_null(ed_archive_open(in_folder("b.data-00000-of-00001")));
    failed_with(ED_DATA_LOSS, "is not known");
    char cut[64];
    FILE *f = fopen(in_folder("b.index"), "rb");
    assert_int_equal(fread(cut, 1, sizeof cut, f), sizeof cut);
    fclose(f);
    write_bytes(in_folder("b.index"), cut, sizeof cut);
    assert_null(ed_archive_open(in_folder("b")));
    failed_with(ED_DATA_LOSS, "b.index");
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void places(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1), ED_SHAPE(1)),
              *y = ed_constant(ED_VALUES(int64_t, 2), ED_SHAPE());
    assert_true(write_safetensors(in_folder("x"), "x", x, "y", y));
    ed_archive *archive = opened("x");
    assert_string_equal(ed_archive_name(archive, 0), "y");
    assert_string_equal(ed_archive_name(archive, -1), "x");
    assert_string_equal(ed_archive_name(archive, -2), "y");
    same(archive, -1, x);
    same(archive, -2, y);
    same(archive, 1, x);
    static const int64_t outside[] = {2, -3, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        assert_null(ed_archive_name(archive, outside[i]));
        failed_with(ED_OUT_OF_RANGE, "out of bounds for an archive of 2 tensors");
        assert_null(ed_archive_dtype(archive, outside[i]));
        failed_with(ED_OUT_OF_RANGE, "archive_dtype");
        assert_null(ed_archive_shape(archive, outside[i]).values);
        failed_with(ED_OUT_OF_RANGE, "archive_shape");
        assert_int_equal(ed_archive_bytes(archive, outside[i]), 0);
        failed_with(ED_OUT_OF_RANGE, "archive_bytes");
        assert_null(ed_archive_tensor(archive, outside[i]));
        failed_with(ED_OUT_OF_RANGE, "archive_tensor");
        assert_false(ed_archive_verify(archive, outside[i]));
        failed_with(ED_OUT_OF_RANGE, "archive_verify");
        assert_null(ed_archive_digest(archive, outside[i]));
        failed_with(ED_OUT_OF_RANGE, "archive_digest");
    }
    assert_null(ed_archive_get(archive, "z"));
    failed_with(ED_NOT_FOUND, "'z'");
    assert_null(ed_archive_metadata(archive, "z"));
    assert_true(write_npz(in_folder("n"), "x", x));
    assert_null(ed_archive_metadata(opened("n"), "z"));
    assert_false(ed_failed());
}

/* A zero in a name is shown as \0; of names that look the same then the first is found. */
static void zeros_in_names(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char header[] =
        "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
        "\"a\\\\0b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]},"
        "\"\\u0000\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[2,3]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[3,4]}}\1\2\3\4";
    put_safetensors("x", header, sizeof header - 1, 4);
    ed_archive *archive = opened("x");
    static const char *const names[] = {"a\\0b", "a\\0b", "\\0", "a"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(ed_archive_name(archive, i), names[i]);
        assert_true(ed_item(ed_archive_tensor(archive, i)) == i + 1);
        assert_int_equal(ed_archive_find(archive, names[i]), i == 1 ? 0 : i);
    }
    /* They can be converted if that leaves them different. */
    archive_item items[] = {archive_item_of(archive, 1), archive_item_of(archive, 2),
                            archive_item_of(archive, 3)};
    assert_true(write_items("safetensors", in_folder("y"), items, 3));
    assert_true(ed_item(ed_archive_get(opened("y"), "\\0")) == 3);
    items[2] = archive_item_of(archive, 0);
    assert_false(write_items("safetensors", in_folder("z"), items, 3));
    failed_with(ED_INVALID_ARGUMENT, "two tensors have the name 'a\\0b'");
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void arguments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1), ED_SHAPE(1));
    static const struct {
        const char *names[3];
        bool second_missing;
        int64_t count;
        const char *why;
    } cases[] = {{{"a", "b", "a"}, false, 6, "two tensors have the name 'a'"},
                 {{"a", "", "c"}, false, 6, "the name of tensor 1 is empty"},
                 {{"a", NULL, "c"}, false, 6, "the name of tensor 1 is NULL"},
                 {{"a", "b", "c"}, true, 6, "the value of tensor 1 is NULL"},
                 {{"a", "b", "c"}, false, 5, "pairs of name and tensor, got 5 values"},
                 {{"a", "b", "c"}, false, -2, "pairs of name and tensor, got -2 values"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int npz = 0; npz < 2; npz++) {
            const void *pairs[] = {cases[i].names[0], x,
                                   cases[i].names[1], cases[i].second_missing ? NULL : x,
                                   cases[i].names[2], x};
            assert_false(ed_archive_write(in_folder("x"), ((ed_named){pairs, cases[i].count}),
                                          .format = npz ? "npz" : "safetensors"));
            failed_with(ED_INVALID_ARGUMENT, cases[i].why);
            assert_int_equal(folder_files(false), 0);
        }
}

/* The format is that of the path's ending, or the one that is named. */
static void formats_of_paths(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2));
    int n;
    const archive_format *const *all = archive_formats(&n);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "by_ending%s", all[i]->ending);
        if (!ed_archive_write(in_folder("%s", name), ED_NAMED("x", x))) fail_msg("%s", ed_error());
        assert_true(ed_archive_write(in_folder("named"), ED_NAMED("x", x), .format = all[i]->name));
        ed_archive *archive = opened(name), *named = opened("named");
        assert_string_equal(ed_archive_format(archive), all[i]->name);
        assert_string_equal(ed_archive_format(named), all[i]->name);
        same(archive, all[i]->single ? 0 : ed_archive_find(archive, "x"), x);
        folder_files(true);
    }
    assert_false(ed_archive_write(in_folder("model.bin"), ED_NAMED("x", x)));
    failed_listing(ED_INVALID_ARGUMENT,
                   "model.bin: the format is not known from the ending: set format to one of "
                   "%s");
    assert_false(ed_archive_write(in_folder("x.npz"), ED_NAMED("x", x), .format = "zip"));
    failed_listing(ED_INVALID_ARGUMENT, "unknown format 'zip': must be one of %s");
    assert_false(ed_archive_write(in_folder("x.npy"), ED_NAMED("x", x, "y", x)));
    failed_with(ED_INVALID_ARGUMENT, "format npy holds one tensor, got 2");
    assert_int_equal(folder_files(false), 0);
}

static void variables(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2)));
    ed_tensor *later = ed_constant(ED_VALUES(float, 3, 4), ED_SHAPE(2));
    ed_assign(v, later);
    assert_true(write_safetensors(in_folder("s"), "v", v, "again", v));
    assert_true(write_npz(in_folder("n"), "v", v));
    same(opened("s"), 0, later);
    same(opened("s"), 1, later);
    same(opened("n"), 0, later);
}

/* ---- Conversion ------------------------------------------------------------------------------ */

/* All entries but a bundle's digests, which it makes itself. */
static int64_t items_of(ed_archive *archive, archive_item *items)
{
    int64_t n = 0;
    for (int64_t i = 0; i < ed_archive_count(archive); i++)
        if (strcmp(ed_archive_name(archive, i), BUNDLE_DIGESTS) != 0)
            items[n++] = archive_item_of(archive, i);
    return n;
}

/* Elements of dtypes that tensors don't have come from a bundle. */
static void put_rare(const char *name)
{
    static const struct {
        const char *name;
        io_dtype dtype;
        int64_t bytes;
    } rare[] = {{"c64", IO_COMPLEX64, 24}, {"u16", IO_UINT16, 6}, {"i8", IO_INT8, 3}};
    static const unsigned char bytes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                          13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
    bundle_writer *w = bundle_create("test", in_folder("%s", name));
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        assert_true(bundle_add_raw(w, rare[i].name, rare[i].dtype, 1, (int64_t[]){3}, bytes,
                                   (size_t)rare[i].bytes));
    assert_true(bundle_add(w, "deep/f32", ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2, 1))));
    assert_true(bundle_add(w, "empty", ed_constant(ED_VALUES(double, 0), ED_SHAPE(0, 3))));
    assert_true(bundle_add(w, "true", ed_constant(ED_VALUES(bool, true), ED_SHAPE())));
    assert_true(bundle_finish(w));
}

static void conversions(void **state)
{
    (void)state;
    ED_SCOPE;
    archive_item items[16];
    put_rare("rare");
    ed_archive *first = opened("rare");
    for (int f = 0; f < format_count; f++) {
        int64_t n = items_of(first, items);
        assert_int_equal(n, 6);
        if (!write_as(formats[f], in_folder("one"), items, n)) fail_msg("%s", ed_error());
        ed_archive *one = opened("one");
        for (int g = 0; g < format_count; g++) {
            n = items_of(one, items);
            if (!write_as(formats[g], in_folder("two"), items, n)) fail_msg("%s", ed_error());
            ed_archive *two = opened("two");
            assert_string_equal(ed_archive_format(two), formats[g]->name);
            for (int64_t i = 0; i < n; i++) {
                int64_t a = ed_archive_find(first, items[i].name),
                        b = ed_archive_find(two, items[i].name);
                assert_true(a >= 0 && b >= 0);
                assert_string_equal(ed_archive_dtype(first, a), ed_archive_dtype(two, b));
                ed_ints x = ed_archive_shape(first, a), y = ed_archive_shape(two, b);
                assert_int_equal(x.count, y.count);
                for (int64_t d = 0; d < x.count; d++) assert_int_equal(x.values[d], y.values[d]);
                assert_string_equal(ed_archive_digest(first, a), ed_archive_digest(two, b));
            }
            unlink(in_folder("two"));
            assert_true(bundle_remove("test", in_folder("two")));
        }
        unlink(in_folder("one"));
        assert_true(bundle_remove("test", in_folder("one")));
    }
    assert_null(ed_archive_get(first, "c64"));
    failed_with(ED_UNIMPLEMENTED, "complex64");
}

/* Strings go from bundle to bundle, and nowhere else. */
static void strings(void **state)
{
    (void)state;
    ED_SCOPE;
    static const io_span words[] = {
        {(const uint8_t *)"", 0}, {(const uint8_t *)"a\0b", 3}, {(const uint8_t *)"\xff", 1}};
    bundle_writer *w = bundle_create("test", in_folder("words"));
    assert_true(bundle_add_strings(w, "w", 1, (int64_t[]){3}, words, 3));
    assert_true(bundle_finish(w));
    ed_archive *archive = opened("words");
    archive_item items[2];
    assert_int_equal(items_of(archive, items), 1);
    assert_string_equal(ed_archive_dtype(archive, ed_archive_find(archive, "w")), "string");
    assert_true(ed_archive_verify(archive, ed_archive_find(archive, "w")));
    assert_true(write_items("bundle", in_folder("again"), items, 1));
    ed_archive *again = opened("again");
    const bundle *b = archive_file(again);
    for (int i = 0; i < 3; i++) {
        io_buffer out = {0};
        assert_true(bundle_string(b, bundle_find(b, "w"), i, &out));
        assert_int_equal(out.size, words[i].size);
        if (out.size) assert_memory_equal(out.data, words[i].data, out.size);
        io_buffer_free(&out);
    }
    assert_null(ed_archive_get(again, "w"));
    failed_with(ED_UNIMPLEMENTED, "string");
    assert_false(write_items("safetensors", in_folder("s"), items, 1));
    failed_with(ED_UNIMPLEMENTED, "string");
    assert_false(write_items("npz", in_folder("n"), items, 1));
    failed_with(ED_UNIMPLEMENTED, "string");
    assert_int_not_equal(access(in_folder("s"), F_OK), 0);
    assert_int_not_equal(access(in_folder("n"), F_OK), 0);
}

/* What lies packed in one format and byte by byte in the other is refused, not mixed up. */
static void packed(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char header[] =
        "{\"f4\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}\1\2";
    put_safetensors("s", header, sizeof header - 1, 2);
    archive_item item = archive_item_of(opened("s"), 0);
    assert_false(write_items("bundle", in_folder("b"), &item, 1));
    failed_with(ED_UNIMPLEMENTED, "float4");
    assert_false(write_items("npz", in_folder("n"), &item, 1));
    failed_with(ED_UNIMPLEMENTED, "float4");
    assert_int_equal(folder_files(false), 1);
    bundle_writer *w = bundle_create("test", in_folder("b"));
    assert_true(bundle_add_raw(w, "f4", IO_FLOAT4_E2M1FN, 1, (int64_t[]){4}, "\1\2\3\4", 4));
    assert_true(bundle_finish(w));
    ed_archive *bytes = opened("b");
    item = archive_item_of(bytes, ed_archive_find(bytes, "f4"));
    assert_false(write_items("safetensors", in_folder("t"), &item, 1));
    failed_with(ED_INVALID_ARGUMENT, "packs its elements differently");
}

/* ---- Damage and failures --------------------------------------------------------------------- */

/* A damaged tensor is told by name, and the others can be read. */
static void damage(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2)),
              *y = ed_constant(ED_VALUES(float, 3), ED_SHAPE());
    archive_item items[] = {item_of("x", x), item_of("y", y)};
    assert_true(write_items("bundle", in_folder("b"), items, 2));
    FILE *f = fopen(in_folder("b.data-00000-of-00001"), "r+b");
    assert_int_equal(fseek(f, 8, SEEK_SET), 0); /* y, behind x */
    fputc(1, f);
    fclose(f);
    ed_archive *archive = opened("b");
    same(archive, ed_archive_find(archive, "x"), x);
    int64_t i = ed_archive_find(archive, "y");
    assert_false(ed_archive_verify(archive, i));
    failed_with(ED_DATA_LOSS, "y");
    assert_null(ed_archive_digest(archive, i));
    failed_with(ED_DATA_LOSS, "y");
    assert_null(ed_archive_tensor(archive, i));
    failed_with(ED_DATA_LOSS, "y");
    items[0] = archive_item_of(archive, i);
    assert_false(write_items("safetensors", in_folder("s"), items, 1));
    failed_with(ED_DATA_LOSS, "y");
    assert_int_equal(folder_files(false), 2);
}

/* A file that became shorter after it was opened is damaged, and no end of the process. */
static void truncated_when_open(void **state)
{
    (void)state;
    static const char *const kinds[] = {"npy", "npz", "safetensors", "bundle"};
    for (int i = 0; i < 4; i++) {
        ED_SCOPE;
        archive_item item = item_of("x", ed_ones(ED_SHAPE(3, 5000)));
        assert_true(write_items(kinds[i], in_folder("t"), &item, 1));
        ed_archive *archive = opened("t");
        assert_int_equal(truncate(in_folder("%s", i == 3 ? "t.data-00000-of-00001" : "t"), 20000),
                         0);
        assert_null(ed_archive_get(archive, i ? "x" : ""));
        failed_with(ED_DATA_LOSS, i == 3 ? "x" : in_folder("t"));
        folder_files(true);
    }
}

/* Without its data all that is known of a bundle are names. */
static void missing_data(void **state)
{
    (void)state;
    ED_SCOPE;
    archive_item item = item_of("x", ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2)));
    assert_true(write_items("bundle", in_folder("b"), &item, 1));
    assert_int_equal(unlink(in_folder("b.data-00000-of-00001")), 0);
    ed_archive *archive = opened("b");
    int64_t i = ed_archive_find(archive, "x");
    assert_string_equal(ed_archive_dtype(archive, i), "damaged");
    assert_int_equal(ed_archive_shape(archive, i).count, 0);
    assert_null(ed_archive_tensor(archive, i));
    failed_with(ED_DATA_LOSS, "'x': its data file is missing");
    assert_false(ed_archive_verify(archive, i));
    failed_with(ED_DATA_LOSS, "'x': its data file is missing");
    item = archive_item_of(archive, i);
    assert_false(write_items("safetensors", in_folder("s"), &item, 1));
    failed_with(ED_UNIMPLEMENTED, "damaged");
}

/* NumPy's own kinds are listed by their own name, and can't be had nor written elsewhere. */
static void foreign(void **state)
{
    (void)state;
    ED_SCOPE;
    char file[128 + 8] =
        "\x93NUMPY\1\0\x76\0{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }";
    memset(file + 10 + strlen(file + 10), ' ', 127 - 10 - strlen(file + 10));
    file[127] = '\n';
    write_bytes(in_folder("u.npy"), file, sizeof file);
    ed_archive *archive = opened("u.npy");
    assert_string_equal(ed_archive_name(archive, 0), "");
    assert_non_null(strstr(ed_archive_dtype(archive, 0), "U1"));
    assert_null(ed_archive_tensor(archive, 0));
    failed_with(ED_UNIMPLEMENTED, "U1");
    archive_item item = archive_item_of(archive, 0);
    item.name = "u";
    assert_false(write_items("safetensors", in_folder("s"), &item, 1));
    failed_with(ED_UNIMPLEMENTED, "U1");
    assert_false(write_items("bundle", in_folder("b"), &item, 1));
    failed_with(ED_UNIMPLEMENTED, "U1");
    assert_int_equal(folder_files(false), 1);
}

/* What stands behind a name is a tensor or a variable: the pairs have no types. */
static void other_objects(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2));
    const char *path = in_folder("o.npz");
    assert_false(ed_archive_write(path, ED_NAMED("x", x, "y", ed_list_of(x))));
    failed_with(ED_INVALID_ARGUMENT, "must be a tensor or a number, got list");
    assert_false(ed_archive_write(path, ED_NAMED("x", ed_layer_dense(3))));
    failed_with(ED_INVALID_ARGUMENT, "must be a tensor or a number, got layer");
    assert_int_equal(folder_files(false), 0);
    assert_true(ed_archive_write(path, ED_NAMED("x", x, "v", ed_variable(x))));
    assert_int_equal(unlink(path), 0);
}

static int format; /* what it is converted to */

static bool convert(void)
{
    ED_SCOPE;
    archive_item items[16];
    ed_archive *archive = ed_archive_open(in_folder("rare"));
    if (!archive) return false;
    return write_as(formats[format], in_folder("x"), items, items_of(archive, items)) &&
           ed_archive_open(in_folder("x"));
}

static void remove_converted(void)
{
    unlink(in_folder("x"));
    assert_true(bundle_remove("test", in_folder("x")));
}

static void no_memory(void **state)
{
    (void)state;
    {
        ED_SCOPE;
        put_rare("rare");
    }
    for (format = 0; format < format_count; format++)
        for (int repeat = 0; repeat < 2; repeat++) {
            int n = 0;
            for (; !succeeds_without(n, repeat, convert); n++) {
                remove_converted();
                assert_int_equal(folder_files(false), 2);
            }
            assert_true(n > 20);
            remove_converted();
        }
}

int main(void)
{
    find_formats();
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_begin, end)
    const struct CMUnitTest tests[] = {TEST(every_dtype_and_layout),
                                       TEST(odd_names),
                                       TEST(recognised_by_content),
                                       TEST(not_recognised),
                                       TEST(places),
                                       TEST(zeros_in_names),
                                       TEST(arguments),
                                       TEST(formats_of_paths),
                                       TEST(variables),
                                       TEST(conversions),
                                       TEST(strings),
                                       TEST(packed),
                                       TEST(damage),
                                       TEST(truncated_when_open),
                                       TEST(missing_data),
                                       TEST(foreign),
                                       TEST(other_objects),
                                       TEST(no_memory)};
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
