/*
 * A checkpoint damaged in every way that one change can: each bit turned, each length cut, each
 * tail zeroed, files of two checkpoints mixed. A restore gives the values that were saved, all of
 * them and bit for bit, or it fails and changes nothing. What no checksum covers is found, bit by
 * bit, and has a name here.
 */
#include "fuzz/values.h"
#include "io/bundle.h"
#include "io/table.h"
#include "tests/folders.h"
#include <fcntl.h>
#include <string.h>

/* ---- Programs -------------------------------------------------------------------------------- */

typedef struct program {
    ed_layer *model;
    ed_optimizer *adam;
    int64_t step;
    ed_checkpoint *checkpoint;
} program;

/* `p` stays where it is: its counter is part of the checkpoint. */
static void make(program *p)
{
    p->model = ed_layer_dense(2);
    p->adam = ed_optimizer_adam();
    p->step = 0;
    p->checkpoint =
        ed_checkpoint("model", p->model, "optimizer", p->adam, "step", ed_counter(&p->step));
    assert_non_null(p->checkpoint);
}

/* Goes on to other values everywhere. */
static void train(program *p, double x)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_forward(p->model, ed_full(ED_SHAPE(1, 3), x));
    ed_minimize(p->adam, tape, ed_reduce_sum(ed_square(y)), p->model);
    p->step += 3;
    assert_false(ed_failed());
}

static bool same(io_digest a, io_digest b)
{
    return a.low == b.low && a.high == b.high;
}

/* What is restored into, and the two checkpoints: that which is damaged, and one of `live` itself
 * that makes it what it was. */
static program live;
static const char *saved, *other;
static io_digest saved_values, live_values;

/* Whether a restore from the damaged one succeeds; either way everything is as it must be. */
static bool restores(const char *path, const char *damage, long long where)
{
    ED_SCOPE;
    ed_restoration *r = ed_checkpoint_restore(live.checkpoint, path);
    io_digest now = fuzz_values(live.checkpoint);
    if (!r) {
        if (ed_error_kind() != ED_DATA_LOSS)
            fail_msg("%s at %lld: '%s' (%d)", damage, where, ed_error(), ed_error_kind());
        if (!same(now, live_values))
            fail_msg("%s at %lld: the restore failed and changed something", damage, where);
        ed_clear_error();
        return false;
    }
    if (!same(now, saved_values)) fail_msg("%s at %lld: other values came", damage, where);
    assert_non_null(ed_checkpoint_restore(live.checkpoint, other));
    assert_true(same(fuzz_values(live.checkpoint), live_values));
    return true;
}

/* ---- A file that is changed in place --------------------------------------------------------- */

typedef struct file {
    const char *path;
    int descriptor;
    uint8_t bytes[1 << 14];
    int64_t size;
} file;

static void put(const file *f, const void *bytes, int64_t size, int64_t at)
{
    assert_int_equal(pwrite(f->descriptor, bytes, (size_t)size, at), size);
}

static void open_file(file *f, const char *path)
{
    f->path = path;
    f->descriptor = open(path, O_RDWR);
    assert_true(f->descriptor >= 0);
    f->size = pread(f->descriptor, f->bytes, sizeof f->bytes, 0);
    assert_true(f->size > 0 && f->size < (int64_t)sizeof f->bytes);
}

/* As it was. */
static void close_file(file *f)
{
    assert_int_equal(ftruncate(f->descriptor, f->size), 0);
    put(f, f->bytes, f->size, 0);
    assert_int_equal(close(f->descriptor), 0);
}

/* ---- Places that no checksum covers ---------------------------------------------------------- */

typedef struct place {
    const char *name;
    int64_t from, to;
    bool verified;  /* verifying the digests notices what a restore does not */
    int64_t passed; /* changes there that a restore did not notice */
} place;

static place *place_at(place *places, int count, int64_t at)
{
    for (int i = 0; i < count; i++)
        if (at >= places[i].from && at < places[i].to) return &places[i];
    return NULL;
}

/* Whether somebody notices who asks for what a restore does not need. */
static bool digests_verify(void)
{
    ED_SCOPE;
    bundle *b = bundle_open("test", saved);
    assert_non_null(b);
    bool whole = bundle_verify(b, bundle_find(b, BUNDLE_DIGESTS));
    ed_clear_error();
    ed_release(b);
    return whole;
}

/* Each bit of each byte in turn. */
static void turn_bits(const file *f, place *places, int count)
{
    for (int64_t at = 0; at < f->size; at++)
        for (int bit = 0; bit < 8; bit++) {
            uint8_t turned = (uint8_t)(f->bytes[at] ^ 1 << bit);
            put(f, &turned, 1, at);
            if (restores(saved, f->path, at)) {
                place *p = place_at(places, count, at);
                if (!p)
                    fail_msg("%s: bit %d of byte %lld is not covered", f->path, bit, (long long)at);
                p->passed++;
                if (p->verified && digests_verify()) fail_msg("byte %lld: verified", (long long)at);
            }
            put(f, &f->bytes[at], 1, at);
        }
}

/* Each length below the file's, and each tail of zeros, as a crash may leave one. */
static void cut(const file *f, place *places, int count)
{
    static const uint8_t zeros[sizeof f->bytes];
    for (int64_t size = 0; size < f->size; size++) {
        bool nothing = !memcmp(f->bytes + size, zeros, (size_t)(f->size - size));
        assert_int_equal(ftruncate(f->descriptor, size), 0);
        if (restores(saved, "cut", size) && !place_at(places, count, size))
            fail_msg("%s: cut to %lld bytes and not noticed", f->path, (long long)size);
        put(f, zeros, f->size - size, size);
        if (restores(saved, "zeroed", size) && !place_at(places, count, size) && !nothing)
            fail_msg("%s: zeroed from %lld on and not noticed", f->path, (long long)size);
        put(f, f->bytes + size, f->size - size, size);
    }
}

/* ---- The index ------------------------------------------------------------------------------- */

enum { FOOTER = 48, MAGIC = 8, TRAILER = 5 };

/* LevelDB's index of an index has a block that holds nothing, which nobody reads, and a footer
 * without a checksum: the handles of two blocks, zeros to fill it up, a
 * number that must be right. */
static int index_places(const file *f, place places[3])
{
    io_cursor c = io_cursor_on(f->bytes + f->size - FOOTER, FOOTER - MAGIC);
    int64_t footer = f->size - FOOTER, meta = (int64_t)io_varint(&c), size = (int64_t)io_varint(&c),
            handle = (int64_t)(c.at - f->bytes);
    io_varint(&c), io_varint(&c);
    int64_t padding = (int64_t)(c.at - f->bytes);
    places[0] = (place){.name = "the empty block", .from = meta, .to = meta + size + TRAILER};
    places[1] = (place){.name = "the empty block's handle", .from = footer, .to = handle};
    places[2] = (place){.name = "the footer's zeros", .from = padding, .to = f->size - MAGIC};
    places[3] = (place){.name = "the handles' last byte", .from = padding - 1, .to = padding};
    assert_true(io_ok(&c) && places[0].to <= footer && padding <= f->size - MAGIC);
    return 4;
}

static void index_damaged(void **state)
{
    (void)state;
    static file f;
    place places[4];
    open_file(&f, in_folder("damaged-1.index"));
    int count = index_places(&f, places);
    turn_bits(&f, places, count);
    cut(&f, NULL, 0);
    close_file(&f);
    for (int i = 0; i < count; i++)
        print_message("index, %lld bytes: %lld of %lld bits of %s pass\n", (long long)f.size,
                      (long long)places[i].passed, 8 * (long long)(places[i].to - places[i].from),
                      places[i].name);
    assert_int_equal(places[0].passed, 8 * (places[0].to - places[0].from));
    assert_int_equal(places[2].passed, 8 * (places[2].to - places[2].from));
    assert_int_equal(places[3].passed, 1);
    assert_true(restores(saved, "nothing", 0));
}

/* ---- The data -------------------------------------------------------------------------------- */

/* The digests are checksums themselves, and have none of their own that restoring asks for: without
 * them there are TensorFlow's. */
static void digests_place(place *p)
{
    table t;
    assert_true(table_open(&t, "test", in_folder("damaged-1.index")));
    table_walk w = {.table = &t};
    *p = (place){.name = "the digests", .verified = true};
    while (table_next(&w)) {
        if (w.key.size != strlen(BUNDLE_DIGESTS) || memcmp(w.key.data, BUNDLE_DIGESTS, w.key.size))
            continue;
        io_cursor c = io_cursor_on(w.value.data, w.value.size);
        io_field field;
        while (io_next_field(&c, &field)) {
            if (field.number == 4) p->from = (int64_t)field.value; /* offset */
            if (field.number == 5) p->to = (int64_t)field.value;   /* size */
        }
    }
    p->to += p->from;
    table_walk_end(&w);
    table_close(&t);
    assert_true(p->from > 0);
}

static void data_damaged(void **state)
{
    (void)state;
    static file f;
    place digests;
    digests_place(&digests);
    open_file(&f, in_folder("damaged-1.data-00000-of-00001"));
    assert_int_equal(digests.to, f.size);
    turn_bits(&f, &digests, 1);
    cut(&f, &digests, 1);
    close_file(&f);
    print_message("data, %lld bytes: %lld of %lld bits of %s pass\n", (long long)f.size,
                  (long long)digests.passed, 8 * (long long)(digests.to - digests.from),
                  digests.name);
    assert_true(restores(saved, "nothing", 0));
}

/* ---- Longer, missing, mixed ------------------------------------------------------------------ */

static void longer(void **state)
{
    (void)state;
    static file f;
    static const char *const names[] = {"damaged-1.index", "damaged-1.data-00000-of-00001"};
    for (int i = 0; i < 2; i++) {
        open_file(&f, in_folder("%s", names[i]));
        for (int64_t more = 1; more < 200; more++) {
            put(&f, f.bytes, more, f.size); /* what an append of the file to itself begins with */
            bool restored = restores(saved, "longer", more);
            if (restored != (i == 1)) fail_msg("%s: %lld bytes more", names[i], (long long)more);
        }
        close_file(&f);
    }
}

static void missing(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *data = in_folder("damaged-1.data-00000-of-00001"), *aside = in_folder("aside");
    assert_int_equal(rename(data, aside), 0);
    assert_false(restores(saved, "no data", 0));
    assert_int_equal(rename(aside, data), 0);
    const char *index = in_folder("damaged-1.index");
    assert_int_equal(rename(index, aside), 0);
    assert_null(ed_checkpoint_restore(live.checkpoint, saved));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
    assert_true(same(fuzz_values(live.checkpoint), live_values));
    assert_int_equal(rename(aside, index), 0);
    assert_true(restores(saved, "nothing", 0));
}

/* The index of one and the data of the other, which are of one size. */
static void mixed(void **state)
{
    (void)state;
    static file a, b;
    open_file(&a, in_folder("damaged-1.data-00000-of-00001"));
    open_file(&b, in_folder("other-1.data-00000-of-00001"));
    assert_int_equal(a.size, b.size);
    put(&a, b.bytes, b.size, 0);
    assert_false(restores(saved, "other data", 0));
    /* Up to any place the one's, from there on the other's. */
    int64_t differ = 0, passed = 0;
    for (int64_t at = 0; at <= a.size; at++) {
        put(&a, a.bytes, at, 0);
        passed += restores(saved, "half other data", at);
        if (at < a.size && a.bytes[at] != b.bytes[at]) differ = at;
    }
    assert_true(differ > 0 && passed >= a.size - differ);
    close_file(&b);
    close_file(&a);
    open_file(&a, in_folder("damaged-1.index"));
    open_file(&b, in_folder("other-1.index"));
    assert_int_equal(ftruncate(a.descriptor, b.size), 0);
    put(&a, b.bytes, b.size, 0);
    assert_false(restores(saved, "other index", 0));
    close_file(&b);
    close_file(&a);
}

/* ---- The state file -------------------------------------------------------------------------- */

static const char *const names[] = {"ckpt-1.index", "ckpt-1.data-00000-of-00001", "ckpt-2.index",
                                    "ckpt-2.data-00000-of-00001"};
static io_digest newest_values;

static void look_for_newest(const char *damage, int64_t at)
{
    ED_SCOPE;
    const char *path = ed_latest_checkpoint(in_folder("run"));
    if (!path || strcmp(path, in_folder("run/ckpt-2")))
        fail_msg("%s at %lld: latest is %s %s", damage, (long long)at, path, ed_error());
}

/* A manager takes the folder over: it restores the newest, and removes none. */
static void manage(const char *damage, int64_t at)
{
    ED_SCOPE;
    program p;
    make(&p);
    train(&p, 3);
    ed_checkpoint_manager *m =
        ed_checkpoint_manager(p.checkpoint, in_folder("run"), .max_to_keep = 3);
    const char *path = ed_manager_restore_or_initialize(m);
    if (!path || strcmp(path, in_folder("run/ckpt-2")))
        fail_msg("%s at %lld: the manager restores %s %s", damage, (long long)at, path, ed_error());
    if (!same(fuzz_values(p.checkpoint), newest_values))
        fail_msg("%s at %lld: other values", damage, (long long)at);
    for (int i = 0; i < 4; i++)
        if (access(in_folder("run/%s", names[i]), F_OK))
            fail_msg("%s at %lld: the manager removed %s", damage, (long long)at, names[i]);
}

/* The folder of a manager that saved twice. */
static void make_run(file *f)
{
    ED_SCOPE;
    program p;
    make(&p);
    ed_checkpoint_manager *m = ed_checkpoint_manager(p.checkpoint, fresh_folder("run"),
                                                     .max_to_keep = 3, .best = ED_BEST_HIGHEST);
    for (int i = 1; i <= 2; i++) {
        train(&p, i);
        assert_non_null(ed_manager_save(m, .metric = i / 4.));
    }
    newest_values = fuzz_values(p.checkpoint);
    open_file(f, in_folder("run/checkpoint"));
}

/* Writes it anew: the manager may have put another file in its place. */
static void try_state(const uint8_t *bytes, int64_t size, const char *damage, int64_t at)
{
    assert_true(io_write_file("test", in_folder("run/checkpoint"), bytes, (size_t)size));
    look_for_newest(damage, at);
    manage(damage, at);
}

static void state_file_damaged(void **state)
{
    (void)state;
    static file f;
    static uint8_t bytes[sizeof f.bytes + 1];
    make_run(&f);
    for (int64_t size = 0; size < f.size; size++) try_state(f.bytes, size, "cut", size);
    for (int64_t at = 0; at < f.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bytes, f.bytes, (size_t)f.size);
            bytes[at] ^= (uint8_t)(1 << bit);
            try_state(bytes, f.size, "bit turned", at);
        }
    memcpy(bytes, f.bytes, (size_t)f.size);
    for (int more = 0; more < 256; more++) {
        bytes[f.size] = (uint8_t)more;
        try_state(bytes, f.size + 1, "longer", more);
    }
    assert_int_equal(unlink(in_folder("run/checkpoint")), 0);
    look_for_newest("missing", 0);
    manage("missing", 0);
    close(f.descriptor);
}

/* ---- All together ---------------------------------------------------------------------------- */

static int begin(void **state)
{
    if (folder_begin(state)) return 1;
    static program before;
    make(&before);
    train(&before, 1);
    saved = strdup(ed_checkpoint_save(before.checkpoint, in_folder("damaged")));
    saved_values = fuzz_values(before.checkpoint);
    make(&live);
    train(&live, 2);
    train(&live, 0.5);
    other = strdup(ed_checkpoint_save(live.checkpoint, in_folder("other")));
    live_values = fuzz_values(live.checkpoint);
    return ed_failed() || same(saved_values, live_values);
}

static int end(void **state)
{
    free((char *)saved);
    free((char *)other);
    return folder_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_damaged), cmocka_unit_test(data_damaged),
        cmocka_unit_test(longer),        cmocka_unit_test(missing),
        cmocka_unit_test(mixed),         cmocka_unit_test(state_file_damaged),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
