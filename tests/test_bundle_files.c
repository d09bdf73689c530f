/*
 * Bundles that TensorFlow wrote, old and new, and forms of them that it reads: every name, shape
 * and value as TensorFlow gave them, its verdict on each damaged one, and its indices written again
 * byte for byte. The files are in EDDY_DATA/tf; without it there is nothing to do.
 */
#include "io/archive.h"
#include "tests/bundles.h"
#include "tests/folders.h"
#include "tests/json.h"
#include <ftw.h>

static char folder[3000]; /* EDDY_DATA/tf */

static void need_data(void)
{
    const char *data = getenv("EDDY_DATA");
    char file[4200];
    snprintf(folder, sizeof folder, "%s/tf", data ? data : "");
    snprintf(file, sizeof file, "%s/INDEX.md", folder);
    if (!data || !io_exists(file)) skip_since("EDDY_DATA has no files of TensorFlow");
}

/* ---- Every file ------------------------------------------------------------------------------ */

/* The files whose names end in a text, found by nftw. */
static struct list {
    const char *ending;
    char paths[400][256]; /* below `folder` */
    int count;
} list;

static int note(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)where;
    size_t size = strlen(path), ending = strlen(list.ending);
    if (kind != FTW_F || size < ending || strcmp(path + size - ending, list.ending)) return 0;
    assert_in_range(list.count, 0, 399);
    snprintf(list.paths[list.count++], sizeof *list.paths, "%s", path + strlen(folder) + 1);
    return 0;
}

static void find_all(const char *ending)
{
    list.ending = ending;
    list.count = 0;
    assert_int_equal(nftw(folder, note, 16, FTW_PHYS), 0);
}

/* `path` below the folder, `cut` characters less at its end. */
static const char *full(char out[4200], const char *path, size_t cut)
{
    snprintf(out, 4200, "%s/%.*s", folder, (int)(strlen(path) - cut), path);
    return out;
}

static int64_t live;

static int begin(void **state)
{
    (void)state;
    live = ed_memory_stats().live_bytes;
    return 0;
}

static int end(void **state)
{
    const bool stays = ed_memory_stats().live_bytes != live;
    if (stays && !ed_failed()) print_error("left behind: memory stays\n");
    return check_end(state) || stays;
}

/* Every bundle that is not damaged on purpose: all checksums hold. */
static void checksums(void **state)
{
    (void)state;
    char path[4200];
    int tensors = 0, bundles = 0;
    need_data();
    find_all(".index");
    for (int i = 0; i < list.count; i++) {
        if (strstr(list.paths[i], "/damaged/") || strstr(list.paths[i], "v1/incomplete") ||
            strstr(list.paths[i], "manager/odd/")) /* has an index without data */
            continue;
        bundle *b = bundle_open("test", full(path, list.paths[i], 6));
        if (!b) fail_msg("%s", ed_error());
        for (int64_t k = 0; k < bundle_count(b); k++, tensors++)
            if (!bundle_verify(b, bundle_at(b, k))) fail_msg("%s", ed_error());
        bundles++;
        ed_release(b);
    }
    print_message("%d bundles, %d tensors\n", bundles, tensors);
    assert_true(bundles > 70 && tensors > 4000);
}

/* An index of raw blocks, read and written anew, is the same bytes. */
static void indices_again(void **state)
{
    (void)state;
    char path[4200];
    int same = 0;
    need_data();
    find_all(".index");
    for (int i = 0; i < list.count; i++) {
        /* Laid out by hand, with other settings or against the format. */
        if (strstr(list.paths[i], "made/bundle/")) continue;
        table t;
        if (!table_open(&t, "test", full(path, list.paths[i], 0))) fail_msg("%s", ed_error());
        table_walk walk = {.table = &t};
        table_writer w = {0};
        while (table_next(&walk))
            table_add(&w, (io_span){walk.key.data, walk.key.size}, walk.value);
        table_walk_end(&walk);
        assert_true(table_end(&w));
        if (!t.unpacked) {
            same++;
            if (w.file.size != t.size || memcmp(w.file.data, t.file, t.size))
                fail_msg("%s comes out otherwise", list.paths[i]);
        }
        table_writer_free(&w);
        table_close(&t);
    }
    print_message("%d indices\n", same);
    assert_true(same > 50);
}

typedef struct strings {
    io_buffer data;
    int64_t sizes[64], count;
} strings;

static bool keep_string(void *user, io_span string)
{
    strings *all = user;
    assert_in_range(all->count, 0, 63);
    all->sizes[all->count++] = (int64_t)string.size;
    io_put(&all->data, string.data, string.size);
    return true;
}

static void copy_entry(bundle_writer *w, const bundle *b, const bundle_entry *e)
{
    if (e->dtype == IO_STRING) {
        strings all = {0};
        io_span spans[64];
        assert_true(bundle_strings(b, e, keep_string, &all));
        size_t at = 0;
        for (int64_t i = 0; i < all.count; at += (size_t)all.sizes[i++])
            spans[i] = (io_span){all.data.data + at, (size_t)all.sizes[i]};
        assert_true(bundle_add_strings(w, e->name, e->rank, e->shape, spans, all.count));
        io_buffer_free(&all.data);
        return;
    }
    uint8_t *elements = malloc((size_t)e->bytes + 1);
    assert_true(bundle_read(b, e, elements));
    assert_true(
        bundle_add_raw(w, e->name, e->dtype, e->rank, e->shape, elements, (size_t)e->bytes));
    free(elements);
}

static int by_offset(const void *a, const void *b)
{
    const bundle_item *x = *(const bundle_item *const *)a, *y = *(const bundle_item *const *)b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->size > y->size) - (x->size < y->size);
}

/* A bundle written anew from what was read, in the order of its data, has TensorFlow's bytes, data
 * and entries, and behind them our digests. */
static void copy_bundle(const char *from, const char *to)
{
    static const bundle_item *order[4000];
    char path[4300];
    bundle *b = bundle_open("test", from);
    bundle_writer *w = bundle_create("test", to);
    assert_true(b && w && bundle_count(b) <= 4000);
    for (int64_t k = 0; k < bundle_count(b); k++) order[k] = (const bundle_item *)bundle_at(b, k);
    qsort(order, (size_t)bundle_count(b), sizeof *order, by_offset);
    for (int64_t k = 0; k < bundle_count(b); k++) copy_entry(w, b, &order[k]->seen);
    if (!bundle_finish(w)) fail_msg("%s", ed_error());

    bundle *again = bundle_open("test", to);
    assert_non_null(again);
    assert_int_equal(bundle_count(again), bundle_count(b) + 1);
    for (int64_t k = 0; k < bundle_count(b); k++) {
        const bundle_item *theirs = order[k];
        const bundle_item *mine = (const bundle_item *)bundle_find(again, theirs->seen.name);
        assert_int_equal(mine->message.size, theirs->message.size);
        assert_memory_equal(mine->message.data, theirs->message.data, mine->message.size);
    }
    size_t size, longer;
    snprintf(path, sizeof path, "%s.data-00000-of-00001", from);
    char *theirs = read_bytes(path, &size);
    snprintf(path, sizeof path, "%s.data-00000-of-%05d", to, bundle_shards(again));
    char *mine = read_bytes(path, &longer);
    assert_true(longer > size);
    assert_memory_equal(mine, theirs, size);
    ed_release(again);
    ed_release(b);
    free(mine);
    free(theirs);
}

static void bundles_again(void **state)
{
    (void)state;
    char path[4200], copy[64] = "/tmp/eddy-XXXXXX", prefix[96];
    int copied = 0;
    need_data();
    assert_non_null(mkdtemp(copy));
    snprintf(prefix, sizeof prefix, "%s/again", copy);
    find_all(".index");
    for (int i = 0; i < list.count; i++) {
        if (!strstr(list.paths[i], "made/ckpt/") && !strstr(list.paths[i], "made/keras")) continue;
        if (strstr(list.paths[i], "ckpt/kinds")) continue; /* has a variant */
        copy_bundle(full(path, list.paths[i], 6), prefix);
        copied++;
    }
    print_message("%d bundles\n", copied);
    assert_true(copied > 25);
    assert_true(bundle_remove("test", prefix));
    assert_int_equal(remove(copy), 0);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Arrays that a record names. */
typedef struct arrays {
    void *self; /* of the format npz; NULL: the record names none */
    const char *path;
} arrays;

/* The array's elements, all of it. */
static void array_bytes(const arrays *a, const char *name, io_buffer *out)
{
    assert_non_null(a->self);
    for (int64_t i = 0; i < archive_format_by_name("npz")->count(a->self); i++) {
        archive_entry e = archive_format_by_name("npz")->entry(a->self, i);
        if (strcmp(e.name, name)) continue;
        if (!archive_format_by_name("npz")->stream(a->self, i, gather, out))
            fail_msg("%s", ed_error());
        return;
    }
    fail_msg("%s has no %s", a->path, name);
}

/* A numeric tensor's bytes against the array, or the row of one, that the record names. */
static void compare_numbers(const bundle *b, const bundle_entry *e, const json *expected,
                            const arrays *a)
{
    io_buffer array = {0};
    array_bytes(a, json_text(json_get(expected, "array")), &array);
    const json *row = json_get(expected, "row");
    size_t from = row ? (size_t)(json_int(row) * e->bytes) : 0, size = (size_t)e->bytes;
    assert_true(from + size <= array.size);
    if (!row) assert_int_equal(size, array.size);
    uint8_t *data = malloc(size + 1);
    if (!bundle_read(b, e, data)) fail_msg("%s", ed_error());
    if (size && memcmp(data, array.data + from, size)) fail_msg("%s differs", e->name);
    free(data);
    if (io_dtype_to(e->dtype) && e->rank <= ED_MAX_RANK) {
        ed_tensor *t = bundle_tensor(b, e);
        assert_non_null(t);
        assert_int_equal(t->rank, e->rank);
        if (size) assert_memory_equal(t->data, array.data + from, size);
        ed_release(t);
    }
    io_buffer_free(&array);
}

static void compare_strings(const bundle *b, const bundle_entry *e, const json *values)
{
    assert_int_equal(e->elements, json_count(values));
    for (int64_t i = 0; i < e->elements; i++) {
        io_buffer out = {0};
        size_t size;
        const void *expected = json_base64(json_at(values, i), &size);
        if (!bundle_string(b, e, i, &out)) fail_msg("%s", ed_error());
        assert_int_equal(out.size, size);
        if (size) assert_memory_equal(out.data, expected, size);
        io_buffer_free(&out);
    }
}

static void compare_shape(const bundle_entry *e, const json *expected)
{
    const json *shape = json_get(expected, "shape"), *dtype = json_get(expected, "tf_dtype");
    if (!dtype) dtype = json_get(expected, "dtype");
    if (strcmp(json_text(dtype), "object")) /* a string, in NumPy's words */
        assert_string_equal(io_dtype_name(e->dtype), json_text(dtype));
    assert_int_equal(e->rank, json_count(shape));
    for (int i = 0; i < e->rank; i++) assert_int_equal(e->shape[i], json_int(json_at(shape, i)));
}

/* One tensor with everything the record says of it. */
static void compare_tensor(const bundle *b, const char *name, const json *expected, const arrays *a)
{
    const bundle_entry *e = bundle_find(b, name);
    if (!e) fail_msg("%s has no %s", bundle_prefix(b), name);
    if (e->damage) fail_msg("%s: %s", name, e->damage);
    compare_shape(e, expected);
    const bundle_item *item = (const bundle_item *)e;
    if (json_get(expected, "crc32c")) {
        assert_int_equal(item->shard_number, json_int(json_get(expected, "shard")));
        assert_int_equal(item->offset, json_int(json_get(expected, "offset")));
        assert_int_equal(item->size, json_int(json_get(expected, "size")));
        assert_int_equal(item->crc, strtoul(json_text(json_get(expected, "crc32c")), NULL, 16));
    }
    if (json_get(expected, "slices"))
        assert_int_equal(item->slices, json_count(json_get(expected, "slices")));
    if (json_get(expected, "array")) compare_numbers(b, e, expected, a);
    if (json_get(expected, "values_b64")) compare_strings(b, e, json_get(expected, "values_b64"));
    if (json_get(expected, "bytes")) {
        io_buffer out = {0};
        assert_true(bundle_string(b, e, 0, &out));
        assert_int_equal(out.size, json_int(json_get(expected, "bytes")));
        io_buffer_free(&out);
    }
    if (!bundle_verify(b, e)) fail_msg("%s", ed_error());
}

/* Every record of a checkpoint, those of many equal variables apart. */
static void values(void **state)
{
    (void)state;
    char path[4200], npz[4200], prefix[4200];
    int tensors = 0, records = 0;
    need_data();
    find_all(".json");
    for (int i = 0; i < list.count; i++) {
        json *record = json_read_file(full(path, list.paths[i], 0));
        bool object = json_kind_of(record) == JSON_OBJECT;
        const json *checkpoint = object ? json_get(record, "checkpoint") : NULL;
        const json *expected = checkpoint ? json_get(record, "tensors") : NULL;
        if (!expected || strstr(path, "v1_format")) {
            json_free(record);
            continue;
        }
        char *own = io_folder_of(path);
        snprintf(prefix, sizeof prefix, "%s/%s", own, json_text(checkpoint));
        memory_free(own);
        snprintf(npz, sizeof npz, "%.*s.npz", (int)strlen(path) - 5, path);
        arrays a = {io_exists(npz) ? archive_format_by_name("npz")->open(npz) : NULL, npz};
        bundle *b = bundle_open("test", prefix);
        if (!b) fail_msg("%s", ed_error());
        assert_int_equal(bundle_count(b), json_count(expected));
        for (int64_t k = 0; k < json_count(expected); k++, tensors++)
            compare_tensor(b, json_key(expected, k), json_at(expected, k), &a);
        const json *facts = json_get(record, "facts");
        if (facts) assert_int_equal(bundle_shards(b), json_int(json_get(facts, "num_shards")));
        ed_release(b);
        ed_release(a.self);
        json_free(record);
        records++;
    }
    print_message("%d records, %d tensors\n", records, tensors);
    assert_true(records >= 44 && tensors >= 836);
}

/* One line of the list of collected files: `name` dtype [shape] @offset+size [first values, ..] */
static void compare_line(const bundle *b, const char *line)
{
    char name[200], dtype[20];
    long long offset, size;
    const char *at = strstr(line, "] @"), *values = at ? strstr(at, " [") : NULL;
    assert_non_null(values);
    assert_int_equal(sscanf(line, " - `%199[^`]` %19s", name, dtype), 2);
    assert_int_equal(sscanf(at, "] @%lld+%lld", &offset, &size), 2);
    const bundle_entry *e = bundle_find(b, name);
    if (!e) fail_msg("there is no %s", name);
    const bundle_item *item = (const bundle_item *)e;
    assert_string_equal(io_dtype_name(e->dtype), dtype);
    assert_int_equal(item->offset, offset);
    assert_int_equal(item->size, size);
    ed_tensor *t = bundle_tensor(b, e);
    if (!t) fail_msg("%s", ed_error());
    values += 2;
    for (int64_t i = 0; *values != ']' && *values != '.'; i++) {
        char *rest;
        double value = strtod(values, &rest);
        assert_true(i < t->size && rest > values);
        if (t->dtype == ED_FLOAT32) value = (float)value;
        assert_true(dtype_load(t->dtype, t->data, i) == value);
        values = rest + strspn(rest, ", ");
    }
    ed_release(t);
}

/* Collected files of many versions of TensorFlow, against what another reader found in them. */
static void collected(void **state)
{
    (void)state;
    char path[4200], line[4096], below[300];
    int lines = 0;
    need_data();
    FILE *f = fopen(full(path, "INDEX.md", 0), "r");
    bundle *b = NULL;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "- `%299[^`]`", below) == 1) {
            ed_release(b);
            bool index = strstr(below, ".index") != NULL;
            b = index ? bundle_open("test", full(path, below, 6)) : NULL;
            assert_int_equal(b != NULL, index);
        } else if (b && !strncmp(line, "    - `", 7) && strstr(line, "] @")) {
            compare_line(b, line);
            lines++;
        }
    }
    ed_release(b);
    fclose(f);
    print_message("%d tensors\n", lines);
    assert_true(lines >= 105);
}

/* 3100 variables, made by a rule, in an index of two blocks. */
static void many(void **state)
{
    (void)state;
    char path[4200], name[200], local[100];
    need_data();
    json *record = json_read_file(full(path, "made/ckpt/many/expect.json", 0));
    arrays a = {archive_format_by_name("npz")->open(full(path, "made/ckpt/many/expect.npz", 0)),
                path};
    if (!a.self) fail_msg("%s", ed_error());
    bundle *b = bundle_open("test", full(path, "made/ckpt/many/ckpt", 0));
    assert_non_null(b);
    int64_t count = json_int(json_get(record, "count"));
    assert_int_equal(bundle_count(b), count + 1);
    io_buffer numbers = {0}, pairs = {0};
    array_bytes(&a, "number", &numbers);
    array_bytes(&a, "values", &pairs);
    assert_int_equal(pairs.size, count * 8);
    for (int64_t i = 0; i < count; i++) {
        float pair[2], got[2];
        int number = numbers.size == (size_t)count * 8 ? (int)((int64_t *)numbers.data)[i]
                                                       : ((int32_t *)numbers.data)[i];
        memcpy(pair, pairs.data + 8 * i, 8);
        snprintf(local, sizeof local,
                 "%04d_kernel_of_a_layer_whose_name_is_long_enough_to_fill_index", number);
        snprintf(name, sizeof name, "vars/%s/.ATTRIBUTES/VARIABLE_VALUE", local);
        const bundle_entry *e = bundle_find(b, name);
        if (!e) fail_msg("there is no %s", name);
        assert_int_equal(e->elements, i % 7 ? 1 : 2);
        assert_true(bundle_read(b, e, got));
        assert_memory_equal(got, pair, (size_t)e->bytes);
    }
    io_buffer_free(&numbers);
    io_buffer_free(&pairs);
    ed_release(b);
    ed_release(a.self);
    json_free(record);
}

/* Slices that leave a gap; TensorFlow's older format, which is no bundle. */
static void incomplete(void **state)
{
    (void)state;
    char path[4200];
    need_data();
    json *record = json_read_file(full(path, "made/v1/incomplete/answers.json", 0));
    const json *answers = json_get(record, "get_tensor");
    bundle *b = bundle_open("test", full(path, "made/v1/incomplete/ckpt", 0));
    assert_non_null(b);
    for (int64_t i = 0; i < json_count(answers); i++) {
        const bundle_entry *e = bundle_find(b, json_key(answers, i));
        assert_non_null(e);
        if (json_kind_of(json_at(answers, i)) == JSON_OBJECT) {
            assert_null(bundle_tensor(b, e));
            assert_error("gap");
            assert_false(bundle_verify(b, e));
            assert_error("gap");
        } else {
            ed_tensor *t = bundle_tensor(b, e);
            assert_non_null(t);
            for (int64_t k = 0; k < 20; k++)
                assert_true(((float *)t->data)[k] ==
                            json_number(json_at(json_at(json_at(answers, i), k / 5), k % 5)));
            ed_release(t);
        }
    }
    ed_release(b);
    json_free(record);
    assert_null(bundle_open("test", full(path, "made/v1/v1_format/model.v1", 0)));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

/* Where we say something else than TensorFlow: refused on opening although it opens them. */
static const struct {
    const char *file, *error, *reason;
} otherwise[] = {
    {"no_header", "header is missing",
     "TensorFlow takes the first tensor's entry for the header and loses the tensor silently"},
    {"keys_unsorted", "not in order",
     "the format has sorted keys; TensorFlow opens it and finds no tensor at all"},
};

static const char *otherwise_error(const char *file)
{
    for (size_t i = 0; i < sizeof otherwise / sizeof *otherwise; i++)
        if (!strcmp(otherwise[i].file, file)) return otherwise[i].error;
    return NULL;
}

/* An entry that must not be read: an error that names it, of whatever is asked. */
static void refused_tensor(const bundle *b, const bundle_entry *e, const char *file)
{
    if (bundle_verify(b, e)) fail_msg("%s: %s passes", file, e->name);
    assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
    assert_error(e->name);
    assert_null(bundle_tensor(b, e));
    assert_error(e->name);
}

static void accepted_tensor(const bundle *b, const bundle_entry *e, const json *expected)
{
    const json *list_of = json_get(expected, "values");
    compare_shape(e, expected);
    assert_int_equal(e->elements, json_count(list_of));
    if (!bundle_verify(b, e)) fail_msg("%s", ed_error());
    if (e->dtype == IO_STRING) {
        compare_strings(b, e, list_of);
        return;
    }
    ed_tensor *t = bundle_tensor(b, e);
    assert_non_null(t);
    for (int64_t i = 0; i < t->size; i++)
        assert_true(dtype_load(t->dtype, t->data, i) == json_number(json_at(list_of, i)));
    ed_release(t);
}

/* What TensorFlow dies of is an error: of the index, or of the tensor that was tampered with. */
static void survived(const bundle *b, const char *file)
{
    const bundle_entry *alpha = bundle_find(b, "alpha"), *beta = bundle_find(b, "beta");
    assert_true(alpha && beta);
    refused_tensor(b, alpha, file);
    if (!bundle_verify(b, beta)) fail_msg("%s: %s", file, ed_error());
}

static void verdict(const char *file, const json *said)
{
    char path[4200], below[200];
    snprintf(below, sizeof below, "made/bundle/damaged/%s", file);
    bundle *b = bundle_open("test", full(path, below, 0));
    const char *other = otherwise_error(file);
    if (json_get(said, "open") || other) {
        if (b) fail_msg("%s opens", file);
        assert_error(other ? other : file);
        return;
    }
    if (!b) fail_msg("%s: %s", file, ed_error());
    const json *tensors = json_get(said, "tensors");
    if (!tensors) survived(b, file);
    for (int64_t i = 0; tensors && i < json_count(tensors); i++) {
        const json *of = json_at(tensors, i);
        const bundle_entry *e = bundle_find(b, json_key(tensors, i));
        if (!e) fail_msg("%s has no %s", file, json_key(tensors, i));
        if (json_get(of, "error"))
            refused_tensor(b, e, file);
        else
            accepted_tensor(b, e, of);
    }
    ed_release(b);
}

static void verdicts(void **state)
{
    (void)state;
    char path[4200];
    need_data();
    json *all = json_read_file(full(path, "made/bundle/damaged/verdicts.json", 0));
    for (int64_t i = 0; i < json_count(all); i++) verdict(json_key(all, i), json_at(all, i));
    print_message("%d verdicts\n", (int)json_count(all));
    assert_true(json_count(all) >= 52);
    json_free(all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checksums), TEST(indices_again), TEST(bundles_again), TEST(values),
        TEST(collected), TEST(many),          TEST(incomplete),    TEST(verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
