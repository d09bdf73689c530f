/* Restoring from files whose object graphs lie, or have much in little: an error or a right result,
 * in time and memory that follow from the size of the file. */
#include "io/bundle.h"
#include "track/graph.h"
#include "tests/folders.h"
#include "tests/program.h"
#include <time.h>

#ifdef EDDY_SANITIZED
enum { MANY = 10000 };
#else
enum { MANY = 100000 };
#endif

/* An object graph in the making: a message of nodes, each a message of fields. */
typedef struct forged {
    io_buffer graph, node;
} forged;

static void put_child(forged *f, uint64_t node, const char *name, size_t length)
{
    io_buffer child = {0};
    io_put_field_varint(&child, 1, node);
    io_put_field_bytes(&child, 2, name, length);
    io_put_field_bytes(&f->node, 1, child.data, child.size);
    io_buffer_free(&child);
}

static void child(forged *f, uint64_t node, const char *name)
{
    put_child(f, node, name, strlen(name));
}

static void attribute(forged *f, const char *name, const char *key)
{
    io_buffer a = {0};
    if (name) io_put_field_bytes(&a, 1, name, strlen(name));
    if (key) io_put_field_bytes(&a, 3, key, strlen(key));
    io_put_field_bytes(&f->node, 2, a.data, a.size);
    io_buffer_free(&a);
}

static void value(forged *f, const char *key)
{
    attribute(f, "VARIABLE_VALUE", key);
}

static void slot(forged *f, uint64_t of, const char *name, uint64_t node)
{
    io_buffer s = {0};
    io_put_field_varint(&s, 1, of);
    io_put_field_bytes(&s, 2, name, strlen(name));
    io_put_field_varint(&s, 3, node);
    io_put_field_bytes(&f->node, 3, s.data, s.size);
    io_buffer_free(&s);
}

static void node_done(forged *f)
{
    io_put_field_bytes(&f->graph, 1, f->node.data, f->node.size);
    io_buffer_free(&f->node);
    f->node = (io_buffer){0};
}

/* The graph beside the entries "x", "y" (three floats of 4, of 5) and "text". */
static void write_forged(forged *f, const char *path)
{
    const float x[] = {4, 4, 4}, y[] = {5, 5, 5};
    const int64_t shape[] = {3};
    const io_span words = {(const uint8_t *)"words", 5}, message = {f->graph.data, f->graph.size};
    bundle_writer *w = bundle_create("test", path);
    assert_true(bundle_add_raw(w, "x", IO_FLOAT32, 1, shape, x, sizeof x) &&
                bundle_add_raw(w, "y", IO_FLOAT32, 1, shape, y, sizeof y) &&
                bundle_add_strings(w, "text", 0, NULL, &words, 1) &&
                bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1) && bundle_finish(w));
    io_buffer_free(&f->graph);
    f->graph = (io_buffer){0};
}

enum { FORGERIES = 24 };

/* What comes of it where "v" is a variable of three floats: its value after, or an error's kind and
 * words. Forgeries from 100 on are restored in part. */
static double forge(forged *f, int which, ed_error_code *kind, const char **words)
{
    *kind = ED_DATA_LOSS;
    *words = "object graph is damaged";
    switch (which) {
    case 0: return 0; /* no nodes at all */
    case 1:
        child(f, 2, "v");
        node_done(f);
        node_done(f);
        return 0;
    case 2:
        child(f, (uint64_t)-1, "v");
        node_done(f);
        return 0;
    case 3:
        child(f, 1ull << 32, "v");
        node_done(f);
        node_done(f);
        return 0;
    case 4:
        put_child(f, 1, "v\0w", 3);
        node_done(f);
        node_done(f);
        return 0;
    case 5:
        slot(f, 7, "m", 0);
        node_done(f);
        return 0;
    case 6:
        slot(f, 0, "m", (uint64_t)-1);
        node_done(f);
        return 0;
    case 7:
        io_put_u8(&f->node, 0x0a);
        io_put_varint(&f->node, 1000);
        node_done(f);
        return 0;
    case 8: io_put(&f->graph, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); return 0;
    default: break;
    }
    *kind = ED_NOT_FOUND;
    child(f, 1, "v");
    if (which == 9) child(f, 2, "v"); /* twice: the first */
    if (which == 10) child(f, 0, "self");
    if (which == 11) child(f, 1, "also");
    if (which == 23) child(f, 2, "w");
    node_done(f);
    switch (which) {
    case 9:
    case 10:
    case 11:
        value(f, "x");
        *kind = ED_OK;
        break;
    case 12:
        value(f, "nowhere");
        *words = "key 'nowhere' not found";
        break;
    case 13:
        value(f, "");
        *words = "key '' not found";
        break;
    case 14:
        attribute(f, "VARIABLE_VALUE", NULL);
        *words = "key '' not found";
        break;
    case 15:
        attribute(f, NULL, NULL);
        *kind = ED_INVALID_ARGUMENT;
        *words = "missing from the file: v";
        break;
    case 16:
        attribute(f, "OTHER", "y");
        value(f, "x");
        value(f, "y");
        *kind = ED_OK;
        break;
    case 17:
        value(f, "text");
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] in the program and string[] in the file";
        break;
    case 18:
        value(f, BUNDLE_GRAPH);
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] in the program";
        break;
    case 19:
        value(f, BUNDLE_DIGESTS);
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] in the program";
        break;
    case 20:
        child(f, 1, "below");
        value(f, "x");
        *kind = ED_OK;
        break; /* an object too */
    case 21:
        child(f, 0, "up");
        slot(f, 0, "m", 1);
        slot(f, 1, "m", 1);
        value(f, "x");
        *kind = ED_OK;
        break;
    case 22:
        *kind = ED_INVALID_ARGUMENT;
        *words = "missing from the file: v";
        break;
    case 23:
        value(f, "x");
        node_done(f);
        value(f, "y");
        *kind = ED_INVALID_ARGUMENT;
        *words = "unexpected in the file: y";
        break;
    default: break;
    }
    node_done(f);
    if (which == 9) {
        attribute(f, "OTHER", "y");
        node_done(f);
    }
    return 4;
}

static void forgeries(void **state)
{
    (void)state;
    for (int i = 0; i < FORGERIES; i++) {
        ED_SCOPE;
        forged f = {0};
        ed_error_code kind;
        const char *words;
        double expected = forge(&f, i, &kind, &words);
        write_forged(&f, in_folder("forgery"));
        ed_tensor *v = floats(3, 9);
        ed_restoration *r =
            ed_checkpoint_read(ed_checkpoint("v", v), in_folder("forgery"), .partial = i == 9);
        if (kind) {
            if (r) fail_msg("forgery %d was restored", i);
            failed_with(kind, words);
        } else {
            if (!r) fail_msg("forgery %d: %s", i, ed_error());
        }
        assert_true(first(v) == (kind ? 9 : expected));

        /* whatever it is, everything else takes it in its stride */
        ed_layer *layer = ed_layer_sequential("m", ed_layer_dense(2));
        ed_optimizer *o = ed_optimizer_adam();
        ed_checkpoint *c = ed_checkpoint("v", layer, "self", o, "also", v);
        if ((r = ed_checkpoint_read(c, in_folder("forgery"), .partial = true))) {
            ed_restoration_assert_consumed(r);
            ed_clear_error();
            assert_non_null(ed_restoration_report(r));
            train_layer(layer, o);
            assert_non_null(ed_checkpoint_write(c, in_folder("forgery-2")));
        }
        ed_clear_error();
    }
}

/* Much in a small file, and slow only if something is quadratic: n empty nodes; a chain of n values
 * below a layer that waits, whose names would come to gigabytes; n values that are all one entry; n
 * names that the usual hash takes for one. */
static void small_files_of_much(void **state)
{
    (void)state;
    const clock_t start = clock();
    for (int which = 0; which < 4; which++) {
        ED_SCOPE;
        enum { N = 5 * MANY };
        int n = which == 0 ? 2 * N : N;
        forged f = {0};
        child(&f, 1, "m");
        if (which == 3)
            for (int i = 0; i < n; i++) {
                char name[32];
                snprintf(name, sizeof name, "%c%c%d", i & 1 ? 'a' : 'b', i & 2 ? 'c' : 'd', i);
                child(&f, 2, name);
            }
        node_done(&f);
        if (which == 2)
            for (int i = 0; i < n; i++) child(&f, 2 + (uint64_t)i, "again");
        if (which == 1) child(&f, 2, "next");
        node_done(&f);
        for (int i = 0; i < n; i++) {
            if (which == 1 && i + 1 < n) child(&f, 3 + (uint64_t)i, "a.long.name");
            if (which == 1) value(&f, i ? "x" : "y");
            if (which == 2) value(&f, "x");
            node_done(&f);
        }
        int64_t size = (int64_t)f.graph.size;
        write_forged(&f, in_folder("much"));
        ed_layer *layer = ed_layer_dense(2);
        ed_checkpoint *c = ed_checkpoint("m", layer);
        ed_memory_reset_peak();
        int64_t before = ed_memory_stats().live_bytes;
        ed_restoration *r = ed_checkpoint_read(c, in_folder("much"), .partial = true);
        int64_t peak = ed_memory_stats().peak_bytes - before;
        print_message("%lld bytes, at most %lld\n", (long long)size, (long long)peak);
        if (peak > 64 * size + (1 << 20))
            fail_msg("%lld bytes for a file of %lld", (long long)peak, (long long)size);
        if (!r) {
            failed_with(ED_DATA_LOSS, "duplicate values");
            continue;
        }
        if (!ed_checkpoint_write(c, in_folder("much-2")))
            failed_with(which == 1 ? ED_OUT_OF_RANGE : ED_FAILED_PRECONDITION,
                        which == 1 ? "too deep" : "no variables to save");
        ed_forward(layer, some_input());
        assert_fine();
    }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 60);
}

/* A chain as above whose every value is there: names are kept as far as the file is large. */
static void chain_that_waits(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = MANY / 10 };
    forged f = {0};
    child(&f, 1, "m");
    node_done(&f);
    bundle_writer *w = bundle_create("test", in_folder("waits"));
    for (int i = 0; i < N; i++) {
        char key[32];
        const float x = (float)i;
        snprintf(key, sizeof key,
                 "%d"
                 "/.ATTRIBUTES/VARIABLE_VALUE",
                 i);
        child(&f, 2 + (uint64_t)i, "next");
        if (i) value(&f, key);
        node_done(&f);
        assert_true(bundle_add_raw(w, key, IO_FLOAT32, 0, NULL, &x, sizeof x));
    }
    node_done(&f);
    const io_span message = {f.graph.data, f.graph.size};
    assert_true(bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1) && bundle_finish(w));
    ed_memory before = ed_memory_stats();
    ed_checkpoint *c = ed_checkpoint("m", ed_layer_dense(2));
    ed_restoration *r = ed_checkpoint_read(c, in_folder("waits"));
    assert_fine();
    assert_int_equal(ed_restoration_count(r, ED_WAITING), N - 1);
    assert_string_equal(ed_restoration_path(r, ED_WAITING, 0), "m/next");
    assert_true(strlen(ed_restoration_path(r, ED_WAITING, N - 2)) < 64); /* its key */
    assert_true(strlen(ed_restoration_report(r)) < 3 * f.graph.size);
    assert_true(ed_memory_stats().live_bytes - before.live_bytes < (int64_t)f.graph.size * 20);
    io_buffer_free(&f.graph);
    ed_checkpoint_write(
        c, in_folder("waits-2")); /* nothing of that is written: its names are too long */
    if (N < 5000)
        ed_clear_error();
    else
        assert_fine();
}

#define TEST(f) cmocka_unit_test_teardown(f, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forgeries),
        TEST(small_files_of_much),
        TEST(chain_that_waits),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
