/* .npy and .npz: NumPy's verdicts on files good and bad, what is written, mapping, and what goes
 * wrong: damage, memory, disks. */
#include "io/npy.h"
#include "io/zip.h"
#include "tests/archives.h"
#include "tests/folders.h"
#include "tests/json.h"
#include <errno.h>
#include <math.h>
#include <sys/wait.h>
#include <zlib.h>

static char path[80];

static ed_archive *opened(const char *name)
{
    ed_archive *archive = ed_archive_open(name);
    if (!archive) fail_msg("%s", ed_error());
    return archive;
}

/* ---- NumPy's verdicts ------------------------------------------------------------------------ */

static bool collect(void *user, const void *data, size_t size)
{
    io_buffer *all = user;
    io_put(all, data, size);
    return !all->failed;
}

/* The elements of an entry as `stream` gives them. */
static io_buffer streamed(ed_archive *archive, int64_t i)
{
    io_buffer all = {0};
    archive_item item = archive_item_of(archive, i);
    if (!archive_stream(&item, collect, &all)) fail_msg("%s", ed_error());
    return all;
}

/* NumPy read these as `value` says: dtype, shape, and the bytes in the machine's order. */
static void check_value(const char *what, ed_archive *archive, int64_t i, const json *value,
                        ed_archive *values)
{
    const char *name = json_text(json_get(value, "array"));
    int64_t wanted = ed_archive_find(values, name);
    if (wanted < 0) fail_msg("%s: there is no array %s", what, name);
    if (strcmp(ed_archive_dtype(archive, i), json_text(json_get(value, "dtype"))))
        fail_msg("%s: read as %s", what, ed_archive_dtype(archive, i));
    const json *shape = json_get(value, "shape");
    ed_ints found = ed_archive_shape(archive, i);
    assert_int_equal(found.count, json_count(shape));
    for (int64_t k = 0; k < found.count; k++)
        assert_int_equal(found.values[k], json_int(json_at(shape, k)));

    io_buffer a = streamed(archive, i), b = streamed(values, wanted);
    if (a.size != b.size || (a.size && memcmp(a.data, b.data, a.size) != 0))
        fail_msg("%s: other bytes than NumPy read", what);
    assert_int_equal((int64_t)a.size, ed_archive_bytes(archive, i));
    if (!ed_archive_verify(archive, i)) fail_msg("%s: %s", what, ed_error());
    ed_tensor *t = ed_archive_tensor(archive, i);
    if (!strncmp(ed_archive_dtype(archive, i), "complex", 7)) {
        assert_null(t);
        failed_with(ED_UNIMPLEMENTED, "complex");
    } else {
        if (!t) fail_msg("%s: %s", what, ed_error());
        assert_int_equal(ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t)), a.size);
        if (a.size) assert_memory_equal(ed_data(t), a.data, a.size);
        assert_int_equal(ed_rank(t), found.count);
    }
    io_buffer_free(&a);
    io_buffer_free(&b);
}

/* Fixed-size texts, of bytes or of code points; here all of one byte in UTF-8 or of two. */
static void check_texts(const char *what, ed_archive *archive, int64_t i, const json *texts)
{
    io_buffer all = streamed(archive, i);
    size_t n = (size_t)json_count(texts), item = all.size / n;
    bool wide = strchr(ed_archive_dtype(archive, i), 'U');
    for (size_t k = 0; k < n; k++) {
        char found[64] = "", *to = found;
        for (size_t at = 0; at < item; at += wide ? 4 : 1) {
            const uint8_t *p = all.data + k * item + at;
            uint32_t code = *p;
            if (wide) memcpy(&code, p, 4);
            assert_true(code < 0x800);
            if (code >= 0x80) *to++ = (char)(0xc0 | code >> 6);
            *to++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
        }
        if (strcmp(found, json_text(json_at(texts, (int64_t)k)))) fail_msg("%s: '%s'", what, found);
    }
    io_buffer_free(&all);
    assert_null(ed_archive_tensor(archive, i));
    failed_with(ED_UNIMPLEMENTED, "tensors don't support");
}

/* A member that is no .npy: NumPy gives its bytes, of which the verdict has size and CRC-32. */
static void check_raw(ed_archive *archive, int64_t i, const json *raw)
{
    io_buffer all = streamed(archive, i);
    assert_string_equal(ed_archive_dtype(archive, i), "bytes");
    assert_int_equal(all.size, json_int(json_at(raw, 0)));
    assert_int_equal(crc32_z(0, all.data, all.size), json_int(json_at(raw, 1)));
    io_buffer_free(&all);
    assert_null(ed_archive_tensor(archive, i));
    failed_with(ED_UNIMPLEMENTED, "not a .npy file");
}

/* What NumPy gave for one array. */
static void check_array(const char *what, ed_archive *archive, int64_t i, const json *verdict,
                        ed_archive *values)
{
    const json *error = json_get(verdict, "error"), *raw = json_get(verdict, "raw"),
               *texts = json_get(verdict, "text");
    if (error) {
        assert_null(ed_archive_tensor(archive, i));
        if (!strstr(ed_error(), what)) fail_msg("%s: said '%s'", what, ed_error());
        ed_clear_error();
    } else if (raw) {
        check_raw(archive, i, raw);
    } else if (texts) {
        check_texts(what, archive, i, texts);
    } else if (!json_bool(json_get(verdict, "tensor"))) {
        assert_string_equal(ed_archive_dtype(archive, i), json_text(json_get(verdict, "dtype")));
        assert_null(ed_archive_tensor(archive, i));
        failed_with(ED_UNIMPLEMENTED, json_text(json_get(verdict, "dtype")));
    } else {
        check_value(what, archive, i, json_get(verdict, "value"), values);
    }
}

/* A file that has one array, or refuses to. */
static void check_npy(const char *name, const char *file, const json *verdict, ed_archive *values)
{
    ED_SCOPE;
    ed_archive *archive = ed_archive_open(file);
    if (!archive) {
        if (!json_get(verdict, "error")) fail_msg("%s: %s", name, ed_error());
        if (!strstr(ed_error(), name)) fail_msg("%s: said '%s'", name, ed_error());
        ed_clear_error();
        assert_null(ed_read_npy(file));
        assert_true(ed_failed());
        ed_clear_error();
        return;
    }
    assert_string_equal(ed_archive_format(archive), "npy");
    assert_int_equal(ed_archive_count(archive), 1);
    check_array(name, archive, 0, verdict, values);
    ed_tensor *t = ed_read_npy(file), *again = ed_archive_tensor(archive, 0);
    assert_true(!t == !again && !t == ed_failed());
    ed_clear_error();
    if (t && ed_size(t)) assert_memory_equal(ed_data(t), ed_data(again), 1);
}

static void check_npz(const char *name, const char *file, const json *verdict, ed_archive *values)
{
    ED_SCOPE;
    ed_archive *archive = ed_archive_open(file);
    const json *members = json_get(verdict, "members");
    if (!members) {
        if (archive) fail_msg("%s: accepted", name);
        ed_clear_error();
        return;
    }
    if (!archive) fail_msg("%s: %s", name, ed_error());
    assert_string_equal(ed_archive_format(archive), "npz");
    assert_int_equal(ed_archive_count(archive), json_count(members));
    for (int64_t i = 0; i < json_count(members); i++) {
        int64_t at = ed_archive_find(archive, json_key(members, i));
        if (at < 0) fail_msg("%s: there is no %s", name, json_key(members, i));
        check_array(name, archive, at, json_at(members, i), values);
    }
}

/* Whether this build lacks the method that the file is compressed by. */
static bool is_without(const char *file)
{
    bool bzip2 = false, lzma = false;
#ifdef EDDY_WITHOUT_BZIP2
    bzip2 = true;
#endif
#ifdef EDDY_WITHOUT_LZMA
    lzma = true;
#endif
    return (bzip2 && strstr(file, "bzip2")) || (lzma && strstr(file, "lzma"));
}

static void verdicts(void **state)
{
    (void)state;
    const char *record = in_data("tf/made/npy/expect.npz");
    ED_SCOPE;
    ed_archive *values = opened(record);
    json *all = json_read_file(in_data("tf/made/npy/expect.json"));
    const json *files = json_get(all, "files");
    assert_int_equal(json_count(files), 133);
    for (int64_t i = 0; i < json_count(files); i++) {
        char name[128];
        snprintf(name, sizeof name, "made/npy/%s", json_key(files, i));
        const char *file = in_data("tf/%s", name);
        if (is_without(name)) continue;
        if (strstr(name, ".npz"))
            check_npz(json_key(files, i), file, json_at(files, i), values);
        else
            check_npy(json_key(files, i), file, json_at(files, i), values);
    }
    json_free(all);
}

/* Read and written again, NumPy's own files are the same byte for byte. */
static void as_numpy_writes(void **state)
{
    (void)state;
    static const char *const files[] = {
        "made/npy/bool.npy",       "made/npy/float16.npy",      "made/npy/float32.npy",
        "made/npy/float64.npy",    "made/npy/int8.npy",         "made/npy/int16.npy",
        "made/npy/int32.npy",      "made/npy/int64.npy",        "made/npy/uint8.npy",
        "made/npy/uint16.npy",     "made/npy/uint32.npy",       "made/npy/uint64.npy",
        "made/npy/scalar.npy",     "made/npy/empty.npy",        "made/npy/empty_fortran.npy",
        "made/npy/seven_dims.npy", "npy/numpy124/f32_2x3.npy",  "npy/numpy124/i64_vec.npy",
        "npy/numpy124/u8_0d.npy",  "npy/numpy124/bool_2x2.npy", "npy/numpy124/f16_empty_0x3.npy",
        "npy/candle_test.npy",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *file = in_data("tf/%s", files[i]);
        ED_SCOPE;
        ed_tensor *t = ed_read_npy(file);
        if (!t || !ed_write_npy(path, t)) fail_msg("%s: %s", files[i], ed_error());
        size_t n, m;
        unsigned char *numpys = read_bytes(file, &n), *ours = read_bytes(path, &m);
        if (n != m || memcmp(numpys, ours, n) != 0) fail_msg("%s: differs", files[i]);
        free(numpys);
        free(ours);
    }
}

/* Other files that are about: NumPy 1.24's, and what must not be loaded. */
static void other_files(void **state)
{
    (void)state;
    const char *first = in_data("tf/npy/numpy124/be_i32.npy");
    ED_SCOPE;
    ed_tensor *t = ed_read_npy(first);
    assert_int_equal(ed_dtype_of(t), ED_INT32);
    t = ed_read_npy(in_data("tf/npy/numpy124/f64_fortran_3x4.npy"));
    assert_int_equal(ed_strides(t).values[0], 1);
    assert_int_equal(ed_strides(t).values[1], 3);
    assert_non_null(ed_read_npy(in_data("tf/npy/numpy124/f32_v2.npy")));
    static const struct {
        const char *file, *why;
    } refused[] = {{"npy/py3-objarr.npy", "never loaded"},
                   {"npy/numpy124/struct_utf8_v3.npy", "structured"},
                   {"npy/numpy124/struct_v1.npy", "structured"},
                   {"npy/numpy124/str_U5.npy", "<U5"},
                   {"npy/numpy124/bytes_S3.npy", "|S3"},
                   {"npy/numpy124/c64.npy", "complex64"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_null(ed_read_npy(in_data("tf/%s", refused[i].file)));
        failed_with(ED_UNIMPLEMENTED, refused[i].why);
    }
    static const char *const objects[] = {"npy/py3-objarr.npy", "made/npy/object_member.npz"};
    for (int i = 0; i < 2; i++) {
        ed_archive *archive = opened(in_data("tf/%s", objects[i]));
        assert_string_equal(ed_archive_dtype(archive, -1), "object");
        assert_null(ed_archive_digest(archive, -1));
        failed_with(ED_UNIMPLEMENTED, "never loaded");
    }
    for (int i = 0; i < 2; i++) {
        ed_archive *archive =
            opened(in_data("tf/%s", i ? "npy/numpy124/stored.npz" : "npy/numpy124/deflate.npz"));
        assert_int_equal(ed_archive_count(archive), 2);
        for (int k = 0; k < 2; k++) {
            if (!ed_archive_tensor(archive, k)) fail_msg("%s", ed_error());
            assert_true(ed_archive_verify(archive, k));
        }
    }
}

/* ---- Headers --------------------------------------------------------------------------------- */

/* A version 1.0 header of this text, in `to`; returns its size. */
static size_t put_header(unsigned char *to, const char *words)
{
    size_t n = strlen(words);
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (unsigned char)n;
    to[9] = (unsigned char)(n >> 8);
    memcpy(to + 10, words, n);
    return n + 10;
}

static void header_texts(void **state)
{
    (void)state;
#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
    static const struct {
        const char *header, *wrong;
        int rank;
        int64_t bytes;
    } cases[] = {
        {HEAD "(2, 3), }", NULL, 2, 24},
        {HEAD "(2,3,)}", NULL, 2, 24},
        {HEAD "()}", NULL, 0, 4},
        {HEAD "( )}", NULL, 0, 4},
        {HEAD "(7,)}\n\n  ", NULL, 1, 28},
        {HEAD "(0xfF,)}", NULL, 1, 1020},
        {HEAD "(0o17,)}", NULL, 1, 60},
        {HEAD "(0b11,)}", NULL, 1, 12},
        {HEAD "(0,)}", NULL, 1, 0},
        {HEAD "(3L,)}", NULL, 1, 12},
        {HEAD "(1_000,)}", NULL, 1, 4000},
        {HEAD "(2, # two\n 3)}", NULL, 2, 24},
        {HEAD "(0, 9223372036854775807, 9223372036854775807)}", NULL, 3, 0},
        {HEAD "(2, 3)}# the end", NULL, 2, 24},
        {HEAD "(2,), 'descr': '<f8'}", NULL, 1, 16},
        {"{'descr': [('a', '<f4')], 'descr': '<f8', 'fortran_order': True, 'shape': (2,)}", NULL, 1,
         16},
        {"{'descr': [('a)', '|O', ((2,),)), (\"]\", [('b\\'', '<f8')])], 'fortran_order': True, "
         "'shape': (2,)}",
         NULL, 1, 0},
        {HEAD "(2, 3)", "dictionary", 0, 0},
        {HEAD "(2, 3)}}", "unexpected data after", 0, 0},
        {HEAD "(2, 3)} x", "unexpected data after", 0, 0},
        {HEAD "(2, 3),, }", "expected a string", 0, 0},
        {HEAD "(2, 3) 'x': 1}", "dictionary", 0, 0},
        {HEAD "(2,, 3)}", "non-negative integers", 0, 0},
        {HEAD "(,)}", "non-negative integers", 0, 0},
        {HEAD "(2 3)}", "non-negative integers", 0, 0},
        {HEAD "(2)}", "not a tuple", 0, 0},
        {HEAD "(2,", "non-negative integers", 0, 0},
        {HEAD "(2", "non-negative integers", 0, 0},
        {HEAD "(2, 3", "non-negative integers", 0, 0},
        {HEAD "(-1,)}", "non-negative integers", 0, 0},
        {HEAD "(1__0,)}", "non-negative integers", 0, 0},
        {HEAD "(10_,)}", "non-negative integers", 0, 0},
        {HEAD "(_1,)}", "non-negative integers", 0, 0},
        {HEAD "(0x,)}", "non-negative integers", 0, 0},
        {HEAD "(0b12,)}", "non-negative integers", 0, 0},
        {HEAD "(012,)}", "non-negative integers", 0, 0},
        {HEAD "(1e3,)}", "non-negative integers", 0, 0},
        {HEAD "(9223372036854775808,)}", "too large", 0, 0},
        {HEAD "(2305843009213693952,)}", "too large", 0, 0},
        {HEAD "(4611686018427387904, 4)}", "too large", 0, 0},
        {HEAD, "not a tuple", 0, 0},
        {"", "dictionary", 0, 0},
        {"{}", "lacks", 0, 0},
        {"{'descr", "unterminated", 0, 0},
        {"{'descr'", "dictionary", 0, 0},
        {"{'descr':", "expected a string", 0, 0},
        {"{'descr': '<f4\\", "unterminated", 0, 0},
        {"{'descr': [", "unterminated", 0, 0},
        {"{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (2,)}", "unterminated", 0, 0},
        {"{'descr': '', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0, 0},
        {"{'descr': '<', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0, 0},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0, 0},
        {"{'descr': '<U-1', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0, 0},
        {"{'descr': '|S99999999999', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0,
         0},
        {"{'descr': '>float32', 'fortran_order': False, 'shape': ()}", "not a NumPy dtype", 0, 0},
        {"{'descr': 'a name that is much too long for any', 'fortran_order': False, 'shape': ()}",
         "not a NumPy dtype", 0, 0},
        {"{'descr': '<f4', 'fortran_order': Falsey, 'shape': ()}", "dictionary", 0, 0},
        {"{'descr': '<f4', 'fortran_order': None, 'shape': ()}", "must be True or False", 0, 0},
        {"{'descr': '<f4', 'fortran_order': Tru", "must be True or False", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[400];
        size_t n = put_header(file, cases[i].header);
        unsigned char *exact = malloc(n); /* so that a sanitizer sees where it ends */
        memcpy(exact, file, n);
        npy_header h;
        size_t measured;
        const char *wrong = n < NPY_FIRST ? "dictionary" : npy_measure(exact, n, &measured);
        if (!wrong) {
            assert_int_equal(measured, n);
            wrong = npy_parse(exact, n, &h);
        }
        free(exact);
        if (!wrong != !cases[i].wrong || (wrong && !strstr(wrong, cases[i].wrong)))
            fail_msg("%s: '%s', expected '%s'", cases[i].header, wrong, cases[i].wrong);
        if (wrong) continue;
        assert_int_equal(h.rank, cases[i].rank);
        assert_int_equal(h.bytes, cases[i].bytes);
    }
}

/* The longest header, by 16 bits of length and by 32. */
static void header_lengths(void **state)
{
    (void)state;
    unsigned char first[NPY_FIRST] = "\x93NUMPY";
    for (int version = 1; version <= 3; version++)
        for (uint32_t length = 9999; length <= 10002; length++) {
            size_t size;
            first[6] = (unsigned char)version;
            memcpy(first + 8, &length, 4); /* its upper half is text where the version is 1 */
            const char *wrong = npy_measure(first, NPY_FIRST, &size);
            assert_int_equal(!wrong, length <= 10000);
            if (!wrong) assert_int_equal(size, length + (version == 1 ? 10 : 12));
            if (!wrong) assert_true(size <= NPY_MAX_HEADER);
        }
    memcpy(first + 6, "\2\0\377\377\377\377", 6);
    assert_non_null(npy_measure(first, NPY_FIRST, &(size_t){0}));
    memcpy(first + 6, "\2\0\1\0\1\0", 6);
    assert_non_null(npy_measure(first, NPY_FIRST, &(size_t){0}));
}

/* 64 dimensions are the most, in the header and after. */
static void ranks(void **state)
{
    (void)state;
    for (int rank = 8; rank <= 65; rank += rank == 8 ? 1 : rank == 9 ? 55 : 1) {
        ED_SCOPE;
        unsigned char file[1000];
        char words[800];
        int n =
            snprintf(words, sizeof words, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,");
        for (int i = 1; i < rank; i++) n += snprintf(words + n, sizeof words - (size_t)n, "1,");
        snprintf(words + n, sizeof words - (size_t)n, ")}");
        size_t size = put_header(file, words);
        file[size++] = 7;
        file[size++] = 8;
        write_bytes(path, file, size);
        ed_tensor *t = ed_read_npy(path);
        assert_true(!t == (rank > ED_MAX_RANK));
        if (t) {
            assert_int_equal(ed_rank(t), rank);
            continue;
        }
        failed_with(rank == 65 ? ED_DATA_LOSS : ED_UNIMPLEMENTED, "rank");
        if (rank == 65) continue;
        ed_archive *archive = opened(path);
        assert_int_equal(ed_archive_shape(archive, 0).count, rank);
        assert_null(ed_archive_tensor(archive, 0));
        failed_with(ED_UNIMPLEMENTED, "rank");
        io_buffer all = streamed(archive, 0);
        assert_int_equal(all.size, 2);
        assert_memory_equal(all.data, "\7\10", 2);
        io_buffer_free(&all);
    }
}

/* What NumPy 2 leaves between the dictionary and the newline. */
static void written_headers(void **state)
{
    (void)state;
    static const struct {
        io_dtype dtype;
        int rank;
        int64_t shape[8];
        const char *dictionary;
        size_t size;
    } cases[] = {
        {IO_FLOAT32, 2, {2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 128},
        {IO_FLOAT64, 0, {0}, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 128},
        {IO_BOOL, 1, {5}, "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }", 128},
        {IO_BFLOAT16, 1, {0}, "{'descr': '<V2', 'fortran_order': False, 'shape': (0,), }", 128},
        {IO_INT8, 1, {1}, "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }", 128},
        {IO_COMPLEX128, 1, {1}, "{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", 128},
        /* 10 + 96 + 20 + 1 bytes and a space are two lines; a byte more takes 65 spaces more */
        {IO_FLOAT32,
         8,
         {1, 1000, 1000, 1000, 1000, 1000, 1000, 10},
         "{'descr': '<f4', 'fortran_order': False, "
         "'shape': (1, 1000, 1000, 1000, 1000, 1000, 1000, 10), }",
         128},
        {IO_FLOAT32,
         8,
         {1, 1000, 1000, 1000, 1000, 1000, 1000, 100},
         "{'descr': '<f4', 'fortran_order': False, "
         "'shape': (1, 1000, 1000, 1000, 1000, 1000, 1000, 100), }",
         192},
        {IO_FLOAT32,
         8,
         {10, 1000, 1000, 1000, 1000, 1000, 1000, 10},
         "{'descr': '<f4', 'fortran_order': False, "
         "'shape': (10, 1000, 1000, 1000, 1000, 1000, 1000, 10), }",
         128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        io_buffer b = {0};
        size_t n = strlen(cases[i].dictionary);
        assert_true(npy_put_header(&b, cases[i].dtype, cases[i].rank, cases[i].shape));
        if (b.size != cases[i].size) fail_msg("%s: %zu bytes", cases[i].dictionary, b.size);
        assert_memory_equal(b.data, "\x93NUMPY\1\0", 8);
        assert_int_equal(b.data[8] | b.data[9] << 8, b.size - 10);
        assert_memory_equal(b.data + 10, cases[i].dictionary, n);
        for (size_t k = 10 + n; k < b.size - 1; k++) assert_int_equal(b.data[k], ' ');
        assert_int_equal(b.data[b.size - 1], '\n');
        io_buffer_free(&b);
    }
    io_buffer b = {0};
    assert_false(npy_put_header(&b, IO_STRING, 0, NULL));
    assert_false(npy_put_header(&b, IO_QINT8, 0, NULL));
    assert_int_equal(b.size, 0);
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* Whether the tensor lies in somebody else's memory: the mapped file. */
static bool is_mapped(const ed_tensor *t)
{
    return t->buffer->deleter;
}

static void layouts(void **state)
{
    (void)state;
    ED_SCOPE;
    unsigned char file[400];
    size_t n = put_header(file, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3,)}   \n");
    assert_int_equal(n % 4, 0);
    memcpy(file + n, (int32_t[]){1, 2, 3, 4, 5, 6}, 24);
    write_bytes(path, file, n + 24);
    ed_tensor *t = ed_read_npy(path);
    assert_true(is_mapped(t) && ed_is_contiguous(t));
    assert_int_equal(((const int32_t *)ed_data(t))[5], 6);
    unlink(path); /* gone by name, still there for who has it mapped */
    assert_int_equal(((const int32_t *)ed_data(t))[4], 5);

    n = put_header(file, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3,)}\n");
    assert_int_not_equal(n % 4, 0);
    memcpy(file + n, (int32_t[]){1, 2, 3, 4, 5, 6}, 24);
    write_bytes(path, file, n + 24);
    t = ed_read_npy(path);
    assert_false(is_mapped(t));
    assert_int_equal(((const int32_t *)ed_data(t))[5], 6);

    n = put_header(file, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3,)}    \n");
    assert_int_equal(n % 4, 0);
    memcpy(file + n, (int32_t[]){1, 2, 3, 4, 5, 6}, 24);
    write_bytes(path, file, n + 24);
    t = ed_read_npy(path);
    assert_true(is_mapped(t) && !ed_is_contiguous(t));
    assert_memory_equal(ed_data(t), ((int32_t[]){1, 3, 5, 2, 4, 6}), 24);

    n = put_header(file, "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 3,)}\n");
    memcpy(file + n, "\0\1\2\200\377\0", 6);
    write_bytes(path, file, n + 6);
    t = ed_read_npy(path);
    assert_false(is_mapped(t));
    assert_memory_equal(ed_data(t), "\0\1\1\1\1\0", 6);
}

/* Elements of every size, both byte orders, in Fortran's order with up to nine dimensions: handed
 * on in C's. */
static void fortran_streams(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        int item, part;
        const char *shape;
        int rank, extents[9];
    } cases[] = {
        {"<c16", 16, 8, "(3, 2)", 2, {3, 2}},
        {">c16", 16, 8, "(3, 2)", 2, {3, 2}},
        {">c8", 8, 4, "(3, 2, 2)", 3, {3, 2, 2}},
        {"|S5", 5, 1, "(3, 4)", 2, {3, 4}},
        {">U3", 12, 4, "(3, 4)", 2, {3, 4}},
        {">i2", 2, 2, "(1, 2, 1, 3, 1, 1, 2, 1, 1)", 9, {1, 2, 1, 3, 1, 1, 2, 1, 1}},
        {"<M8[s]", 8, 8, "(4, 5)", 2, {4, 5}},
        {">f16", 16, 16, "(4, 5)", 2, {4, 5}},
        {"|V7", 7, 1, "(2, 2)", 2, {2, 2}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        ED_SCOPE;
        unsigned char file[1000], wanted[600];
        char words[200];
        int item = cases[c].item, part = cases[c].descr[0] == '>' ? cases[c].part : 1, count = 1;
        snprintf(words, sizeof words, "{'descr': '%s', 'fortran_order': True, 'shape': %s}",
                 cases[c].descr, cases[c].shape);
        size_t n = put_header(file, words);
        for (int i = 0; i < cases[c].rank; i++) count *= cases[c].extents[i];
        for (int i = 0; i < count * item; i++)
            file[n + (size_t)i] = (unsigned char)(i * 7 + i / 256);
        for (int k = 0; k < count; k++) { /* k in C's order; its place in Fortran's */
            int place = 0, left = k, step = count;
            for (int i = cases[c].rank - 1; i >= 0; i--) {
                step /= cases[c].extents[i];
                place += left % cases[c].extents[i] * step;
                left /= cases[c].extents[i];
            }
            for (int b = 0; b < item; b++) {
                int reversed = b / part * part + part - 1 - b % part;
                wanted[k * item + b] = file[n + (size_t)(place * item + reversed)];
            }
        }
        write_bytes(path, file, n + (size_t)(count * item));
        io_buffer all = streamed(opened(path), 0);
        assert_int_equal(all.size, count * item);
        if (memcmp(all.data, wanted, all.size) != 0) fail_msg("%s", cases[c].descr);
        io_buffer_free(&all);
    }
}

/* ---- Zip archives ---------------------------------------------------------------------------- */

/* A member to be put into an archive. */
typedef struct put {
    const char *name;
    int method; /* 0, or 8: deflated here */
    const void *data;
    size_t size;
    int64_t claimed; /* as its size when unpacked; 0: what is true */
    int host; /* not 0: has no bytes of its own; 1: those of the first, -1: lies within them */
} put;

static size_t deflated(const void *data, size_t size, unsigned char *to, size_t room)
{
    z_stream z = {.next_in = (void *)data, .avail_in = (unsigned)size, .next_out = to};
    z.avail_out = (unsigned)room;
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void put_common(io_buffer *b, const put *p, size_t packed)
{
    int64_t size = p->claimed ? p->claimed : (int64_t)p->size;
    io_put_u16(b, 20);
    io_put_u16(b, 0);
    io_put_u16(b, (uint16_t)p->method);
    io_put_u32(b, 0);
    io_put_u32(b, (uint32_t)crc32_z(0, p->data, p->size));
    io_put_u32(b, (uint32_t)packed);
    io_put_u32(b, (uint32_t)size);
    io_put_u16(b, (uint16_t)strlen(p->name));
    io_put_u16(b, 0);
}

static void put_zip(const put *members, int count)
{
    enum { ROOM = 1 << 17 };
    io_buffer b = {0}, directory = {0};
    unsigned char *packed = malloc(ROOM);
    size_t offsets[8];
    for (int i = 0; i < count; i++) {
        const put *p = &members[i];
        size_t n = p->size;
        offsets[i] = p->host ? offsets[0] : b.size;
        if (p->host < 0) offsets[i] += 30 + strlen(members[0].name);
        if (p->method) n = deflated(p->data, p->size, packed, ROOM);
        if (!p->host) {
            io_put_u32(&b, 0x04034b50);
            put_common(&b, p, n);
            io_put(&b, p->name, strlen(p->name));
            io_put(&b, p->method ? packed : p->data, n);
        }
        io_put_u32(&directory, 0x02014b50);
        io_put_u16(&directory, 20);
        put_common(&directory, p, n);
        io_put(&directory, "\0\0\0\0\0\0\0\0\0\0", 10);
        io_put_u32(&directory, (uint32_t)offsets[i]);
        io_put(&directory, p->name, strlen(p->name));
    }
    size_t begin = b.size;
    io_put(&b, directory.data, directory.size);
    io_put_u32(&b, 0x06054b50);
    io_put_u32(&b, 0);
    io_put_u16(&b, (uint16_t)count);
    io_put_u16(&b, (uint16_t)count);
    io_put_u32(&b, (uint32_t)directory.size);
    io_put_u32(&b, (uint32_t)begin);
    io_put_u16(&b, 0);
    write_bytes(path, b.data, b.size);
    io_buffer_free(&b);
    io_buffer_free(&directory);
    free(packed);
}

/* A .npy of so many bytes 0, 1, ... (or of zeros); its size. */
static size_t small_npy(unsigned char *to, size_t n, bool zeros)
{
    char words[100];
    snprintf(words, sizeof words, "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,)}", n);
    size_t size = put_header(to, words);
    for (size_t i = 0; i < n; i++) to[size++] = zeros ? 0 : (unsigned char)i;
    return size;
}

static void names_of_members(void **state)
{
    (void)state;
    ED_SCOPE;
    unsigned char a[200], b[200];
    size_t n = small_npy(a, 10, false), m = small_npy(b, 20, false);
    put_zip((put[]){{"one.npy", 0, a, n, 0, 0},
                    {"two", 8, a, n, 0, 0},
                    {"one.npy", 8, b, m, 0, 0},
                    {".npy", 0, b, m, 0, 0},
                    {"x.npy.npy", 0, a, n, 0, 0},
                    {"note.txt", 8, "hello", 5, 0, 0}},
            6);
    static const char *const names[] = {"two", "one", "", "x.npy", "note.txt"};
    static const int64_t sizes[] = {10, 20, 20, 10, 5};
    ed_archive *archive = opened(path);
    assert_int_equal(ed_archive_count(archive), 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(ed_archive_name(archive, i), names[i]);
        assert_int_equal(ed_archive_shape(archive, i).values[0], sizes[i]);
        assert_int_equal(ed_archive_bytes(archive, i), sizes[i]);
        assert_true(ed_archive_verify(archive, i));
        ed_tensor *t = ed_archive_tensor(archive, i);
        assert_true(i == 4 ? !t : ed_size(t) == sizes[i]);
    }
    failed_with(ED_UNIMPLEMENTED, "not a .npy file");
    io_buffer all = streamed(archive, 4);
    assert_int_equal(all.size, 5);
    assert_memory_equal(all.data, "hello", 5);
    io_buffer_free(&all);
}

/* Refused, and without memory that would matter. */
static void refused_cheaply(ed_archive *archive, int64_t i, const char *why)
{
    ed_memory_reset_peak();
    int64_t before = ed_memory_stats().live_bytes;
    assert_null(ed_archive_tensor(archive, i));
    failed_with(ED_DATA_LOSS, why);
    assert_true(ed_memory_stats().peak_bytes - before < 400000);
    assert_int_equal(ed_memory_stats().live_bytes, before);
}

static void members_that_lie(void **state)
{
    (void)state;
    ED_SCOPE;
    static unsigned char file[200], large[100200];
    size_t n = small_npy(file, 20, false), m = small_npy(large, 100000, true);

    /* two that share their bytes: only the last may have them */
    put_zip((put[]){{"a", 0, file, n, 0, 0}, {"a.npy", 0, file, n, 0, 1}, {"c", 0, "x", 1, 0, 0}},
            3);
    ed_archive *archive = opened(path);
    assert_int_equal(ed_archive_count(archive), 2);
    put_zip((put[]){{"a", 0, file, n, 0, 0}, {"b", 0, file, n, 0, 1}}, 2);
    archive = opened(path);
    assert_string_equal(ed_archive_dtype(archive, 0), "damaged");
    refused_cheaply(archive, 0, "local header");
    refused_cheaply(archive, 1, "local header");

    /* one in the other: as bytes of the archive they are both whole */
    put_zip((put[]){{"b", 0, file, n, 0, 0}}, 1);
    size_t whole;
    unsigned char *inner = read_bytes(path, &whole);
    put_zip((put[]){{"a", 0, inner, 31 + n, 0, 0}, {"b", 0, file, n, 0, -1}}, 2);
    free(inner);
    archive = opened(path);
    refused_cheaply(archive, 0, "overlaps another member");
    assert_int_equal(ed_size(ed_archive_tensor(archive, 1)), 20);

    /* headers and directory agree, the data do not */
    size_t h = put_header(file, "{'descr': '<f8', 'fortran_order': False, 'shape': (500000000,)}");
    put_zip((put[]){{"stored", 0, file, h + 16, 4000000000, 0},
                    {"deflated", 8, file, h + 16, 4100000000, 0},
                    {"short", 8, file, h + 16, 0, 0}},
            3);
    archive = opened(path);
    for (int i = 0; i < 3; i++)
        refused_cheaply(archive, i, "unexpected end of file in its elements");
    assert_string_equal(ed_archive_dtype(archive, 1), "float64");
    assert_false(ed_archive_verify(archive, 1));
    failed_with(ED_DATA_LOSS, "unexpected end of file");

    /* a thousand times smaller than it is, and true; then claimed to be shorter */
    put_zip((put[]){{"dense", 8, large, m, 0, 0}, {"cut", 8, large, m, (int64_t)m - 1, 0}}, 2);
    archive = opened(path);
    ed_tensor *t = ed_archive_get(archive, "dense");
    assert_int_equal(ed_size(t), 100000);
    for (int i = 0; i < 100000; i++) assert_int_equal(((const uint8_t *)ed_data(t))[i], 0);
    refused_cheaply(archive, 1, "unexpected end of file in its elements");

    /* what follows the elements is looked at for the checksum's sake, and passed over */
    n = small_npy(file, 20, false);
    memcpy(file + n, "more", 4);
    put_zip((put[]){{"longer", 8, file, n + 4, 0, 0}, {"stored", 0, file, n + 4, 0, 0}}, 2);
    archive = opened(path);
    for (int i = 0; i < 2; i++) assert_int_equal(ed_size(ed_archive_tensor(archive, i)), 20);
}

/* Asks for everything in the archive; whether it could all be had. An array that could be is
 * `wanted`, unless that is NULL; then it can be touched at least. */
static bool use_all(const void *wanted, size_t size)
{
    ED_SCOPE;
    ed_archive *archive = ed_archive_open(path);
    bool good = archive;
    for (int64_t i = 0; archive && i < ed_archive_count(archive); i++) {
        ed_tensor *t = ed_archive_tensor(archive, i);
        size_t n = t ? (size_t)ed_size(t) * ed_dtype_size(ed_dtype_of(t)) : 0;
        const unsigned char *p = t ? ed_data(t) : NULL;
        crc32_z(0, p, n); /* reads all of it */
        if (t && wanted && (n != size || memcmp(p, wanted, n) != 0)) fail_msg("not seen");
        bool verified = ed_archive_verify(archive, i) && ed_archive_digest(archive, i);
        if (t && !verified) fail_msg("%s", ed_error());
        good = good && t;
    }
    assert_true(good || ed_failed());
    ed_clear_error();
    return good;
}

/* Every truncation, every byte changed in three ways. `wanted`: what the one tensor must be if it
 * can be read at all (checksums); NULL: anything. */
static void damage_everything(const unsigned char *good, size_t n, const void *wanted, size_t size)
{
    unsigned char *file = malloc(n);
    ed_memory_reset_peak();
    int64_t before = ed_memory_stats().live_bytes;
    for (size_t cut = 0; cut < n; cut++) {
        write_bytes(path, good, cut);
        if (use_all(wanted, size) && wanted) fail_msg("cut at %zu: read", cut);
    }
    for (size_t at = 0; at < n; at++)
        for (int kind = 0; kind < 3; kind++) {
            memcpy(file, good, n);
            file[at] = (unsigned char)(kind == 0 ? file[at] ^ 1 << at % 8 : kind == 1 ? 255 : 0);
            write_bytes(path, file, n);
            use_all(wanted, size);
        }
    assert_true(ed_memory_stats().peak_bytes - before < 8 << 20);
    assert_int_equal(ed_memory_stats().live_bytes, before);
    free(file);
}

static void damaged_npy(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<i4', 'fortran_order': False, 'shape': (5, 4), }                     \n",
        "{'descr': '>c16', 'fortran_order': True, 'shape': (1, 5,)}\n",
        "{'descr': [('a', '<i4'), ('b', '|S3')], 'fortran_order': False, 'shape': (11,)}\n"};
    for (int i = 0; i < 3; i++) {
        unsigned char file[300];
        size_t n = put_header(file, headers[i]);
        for (int k = 0; k < 80; k++) file[n++] = (unsigned char)(k * k);
        damage_everything(file, n, NULL, 0);
    }
}

static void damaged_npz(void **state)
{
    (void)state;
    unsigned char file[200], elements[40];
    size_t n = small_npy(file, 40, false), size;
    for (int i = 0; i < 40; i++) elements[i] = (unsigned char)i;
    for (int method = 0; method <= 8; method += 8) {
        put_zip((put[]){{"a.npy", method, file, n, 0, 0}}, 1);
        assert_true(use_all(elements, 40));
        unsigned char *good = read_bytes(path, &size);
        damage_everything(good, size, elements, 40);
        free(good);
    }
    int64_t extent = 40;
    archive_item item = {"a", IO_UINT8, 1, &extent, 40, NULL, NULL, 0};
    ED_SCOPE;
    item.tensor = ed_constant(elements, ED_SHAPE(40));
    assert_true(write_items("npz", path, &item, 1));
    unsigned char *good = read_bytes(path, &size);
    damage_everything(good, size, elements, 40);
    free(good);
}

/* The other methods and forms, from NumPy's hand or Python's. */
static void damaged_forms(void **state)
{
    (void)state;
    static const char *const files[] = {"made/npy/bzip2.npz", "made/npy/lzma.npz",
                                        "made/npy/zip64_everywhere.npz", "made/npy/zip64_local.npz",
                                        "made/npy/comment_after.npz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int32_t elements[50];
        size_t n;
        if (is_without(files[i])) {
            assert_null(ed_archive_get(opened(in_data("tf/%s", files[i])), "a"));
            assert_error("which this build of Eddy lacks");
            ed_clear_error();
            continue;
        }
        unsigned char *good = read_bytes(in_data("tf/%s", files[i]), &n);
        {
            ED_SCOPE;
            ed_tensor *t = ed_archive_get(opened(in_data("tf/%s", files[i])), "a");
            assert_int_equal(ed_size(t), 50);
            memcpy(elements, ed_data(t), sizeof elements);
        }
        damage_everything(good, n, elements, sizeof elements);
        free(good);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static ed_tensor *counted(ed_dtype dtype, ed_ints shape)
{
    unsigned char bytes[512];
    for (int i = 0; i < 512; i++) bytes[i] = (unsigned char)(dtype == ED_BOOL ? i & 1 : i * 37);
    ed_tensor *t = ed_constant_of(dtype, bytes, shape);
    if (!t) fail_msg("%s", ed_error());
    return t;
}

static void every_dtype(void **state)
{
    (void)state;
    for (ed_dtype dtype = 1; dtype < ED_DTYPE_COUNT; dtype++) {
        ED_SCOPE;
        static const int64_t shapes[][8] = {{2, 3, 4}, {0}, {7}, {0}, {1, 2, 1, 2, 1, 2, 1, 2}};
        static const int rank[] = {3, 0, 1, 1, 8};
        for (int i = 0; i < 5; i++) {
            ed_tensor *t = counted(dtype, (ed_ints){shapes[i], rank[i]});
            assert_true(ed_write_npy(path, t));
            assert_same_tensor(t, ed_read_npy(path));
            assert_true(write_npz(path, "x", t, "имя/y", t));
            ed_archive *archive = opened(path);
            assert_same_tensor(t, ed_archive_get(archive, "x"));
            assert_same_tensor(t, ed_archive_get(archive, "имя/y"));
            bool mapped = dtype != ED_BOOL && ed_size(t);
            assert_int_equal(is_mapped(ed_archive_get(archive, "x")), mapped);
            assert_int_equal(is_mapped(ed_archive_get(archive, "имя/y")), mapped);
        }
    }
}

static void views_and_variables(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *t = counted(ED_INT16, ED_SHAPE(4, 5, 6)), base = *t;
    ed_tensor *turned =
        scope_give(tensor_view(&base, 3, (int64_t[]){6, 4, 5}, (int64_t[]){1, 30, 6}, 0));
    ed_tensor *back = scope_give(tensor_view(&base, 1, (int64_t[]){40}, (int64_t[]){-3}, 119));
    ed_tensor *v = ed_variable(t);
    assert_true(write_npz(path, "turned", turned, "back", back, "v", v));
    ed_archive *archive = opened(path);
    assert_same_tensor(turned, ed_archive_tensor(archive, 0));
    assert_same_tensor(back, ed_archive_tensor(archive, 1));
    assert_same_tensor(t, ed_archive_tensor(archive, 2));
    assert_true(ed_write_npy(path, turned));
    assert_same_tensor(turned, ed_read_npy(path));
    assert_true(ed_write_npy(path, v));
    assert_same_tensor(t, ed_read_npy(path));
}

/* Names of every length, so that members begin anywhere: padded, they are all mapped. */
static void alignment(void **state)
{
    (void)state;
    char name[80] = "";
    for (int n = 1; n < 75; n++) {
        ED_SCOPE;
        ed_tensor *t = counted(ED_FLOAT64, ED_SHAPE(5));
        name[n - 1] = 'n';
        assert_true(write_npz(path, name, t, "second", t));
        ed_archive *archive = opened(path);
        for (int i = 0; i < 2; i++) {
            ed_tensor *read = ed_archive_tensor(archive, i);
            assert_same_tensor(t, read);
            assert_true(is_mapped(read));
            assert_int_equal((uintptr_t)read->data % 64, 0);
        }
    }
}

static void writing_refused(void **state)
{
    (void)state;
    ED_SCOPE;
    unlink(path);
    ed_tensor *t = counted(ED_FLOAT32, ED_SHAPE(3));
    char *longest = malloc(70000);
    memset(longest, 'x', 70000);
    longest[69999] = 0;
    assert_false(write_npz(path, "a", t, "b", t, "a", t));
    failed_with(ED_INVALID_ARGUMENT, "two tensors have the name 'a'");
    assert_false(write_npz(path, "a", t, longest, t));
    failed_with(ED_INVALID_ARGUMENT, "too long");
    longest[60000] = 0;
    assert_true(write_npz(path, "a", t, longest, t));
    assert_same_tensor(t, ed_archive_get(opened(path), longest));
    unlink(path);
    assert_false(write_npz(path, "a\xff", t));
    failed_with(ED_INVALID_ARGUMENT, "not UTF-8");
    int64_t extent = 1;
    archive_item item = {"s", IO_STRING, 1, &extent, 8, NULL, NULL, 0};
    assert_false(write_items("npz", path, &item, 1));
    failed_with(ED_UNIMPLEMENTED, "'s': NumPy has no dtype string");
    item = (archive_item){"t", IO_FLOAT32, 1, &extent, 4, t, NULL, 0}; /* of three elements */
    assert_false(write_items("npz", path, &item, 1));
    failed_with(ED_UNIMPLEMENTED, "'t': NumPy packs its elements differently");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_false(ed_write_npy("/nowhere/at/all.npy", t));
    failed_with(ED_IO, "/nowhere/at/all.npy");
    assert_false(write_npz("/nowhere/at/all.npz", "a", t));
    failed_with(ED_IO, "/nowhere/at/all.npz");
    assert_true(write_npz(path));
    assert_int_equal(ed_archive_count(opened(path)), 0);
    free(longest);
}

/* What is too large for ZIP, in small: with a lower limit. */
static void large_archives(void **state)
{
    (void)state;
    for (int64_t limit = 0; limit <= 700; limit += 50) {
        io_writer *file = io_create("test", path);
        zip_writer zip = zip_write_on(file);
        zip.limit = limit;
        static unsigned char bytes[300];
        char name[8];
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "%d", i);
            memset(bytes, i, sizeof bytes);
            assert_true(zip_add(&zip, name, 60 * i, (uint32_t)crc32_z(0, bytes, 60 * (size_t)i)));
            assert_int_equal(io_written(file) % 64, 0);
            assert_true(io_write(file, bytes, 60 * (size_t)i));
        }
        assert_true(zip_finish(&zip) && io_commit(file, true));

        io_file f;
        zip_directory d;
        zip_fault fault;
        assert_true(io_open(&f, "test", path));
        if (!zip_open(&f, &d)) fail_msg("limit %d: %s", (int)limit, ed_error());
        assert_int_equal(d.count, 5);
        for (int i = 0; i < 5; i++) {
            size_t got;
            zip_stream *s = zip_begin(&f, &d.members[i], &fault);
            if (!s) fail_msg("limit %d: %s", (int)limit, fault.text);
            assert_true(zip_read(s, bytes, sizeof bytes, &got, &fault));
            assert_int_equal(got, 60 * i);
            for (size_t k = 0; k < got; k++) assert_int_equal(bytes[k], i);
            zip_end(s);
        }
        zip_close(&d);
        io_close(&f);
    }
}

/* More members than 16 bits count. */
static void many_members(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { MANY = 66000 };
    ed_tensor *t = counted(ED_UINT8, ED_SHAPE(3));
    const void **pairs = malloc(2 * MANY * sizeof *pairs);
    char(*names)[8] = malloc(MANY * sizeof *names);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        pairs[2 * i] = names[i];
        pairs[2 * i + 1] = t;
    }
    assert_true(ed_archive_write(path, ((ed_named){pairs, 2 * MANY}), .format = "npz"));
    ed_archive *archive = opened(path);
    assert_int_equal(ed_archive_count(archive), MANY);
    assert_int_equal(ed_archive_find(archive, "65999"), 65999);
    assert_same_tensor(t, ed_archive_tensor(archive, -1));
    size_t n; /* readers that go by the count find it in the larger ending */
    unsigned char *file = read_bytes(path, &n);
    assert_memory_equal(file + n - 22 + 8, "\377\377\377\377", 4);
    assert_memory_equal(file + n - 22 - 20 - 56 + 24, &(uint64_t){MANY}, 8);
    assert_memory_equal(file + n - 22 - 20 - 56 + 32, &(uint64_t){MANY}, 8);
    free(file);
    free(pairs);
    free(names);
}

/* ---- What the machine refuses ---------------------------------------------------------------- */

static const char *source; /* what is read and written */

static bool read_and_write(void)
{
    ED_SCOPE;
    ed_archive *archive = ed_archive_open(source);
    bool good = archive;
    for (int64_t i = 0; good && i < ed_archive_count(archive); i++) {
        ed_tensor *t = ed_archive_tensor(archive, i);
        archive_item item = archive_item_of(archive, i);
        item.name = "x";
        good = t && ed_archive_verify(archive, i) && ed_archive_digest(archive, i) &&
               write_items("npz", path, &item, 1) && ed_write_npy(path, t);
    }
    return good;
}

/* Every allocation may fail, and every call of the system. */
static void no_memory_no_disk(const char *file)
{
    source = file;
    int n = 0;
    while (!succeeds_without(n, n % 2, read_and_write)) n++;
    assert_true(n > 10);
    for (n = 0;; n++) {
        io_fault(IO_CALL_ANY, n, EIO, false);
        bool good = read_and_write(), all = io_fault_count() <= n;
        io_fault(IO_CALL_ANY, -1, 0, false);
        if (all) break;
        if (!good) failed_with(ED_IO, strerror(EIO)); /* closing after reading may fail */
    }
    assert_true(n > 10);
    for (n = 0; n < 12; n++) { /* half of what was asked */
        io_fault(IO_CALL_READ, n, 0, true);
        if (!read_and_write()) fail_msg("%s", ed_error());
        io_fault(IO_CALL_ANY, -1, 0, false);
    }
}

static void refusals(void **state)
{
    (void)state;
    unsigned char file[300];
    char from[96];
    snprintf(from, sizeof from, "%s.source", path);
    size_t n = small_npy(file, 100, false);
    put_zip((put[]){{"a.npy", 0, file, n, 0, 0}, {"b.npy", 8, file, n, 0, 0}}, 2);
    assert_int_equal(rename(path, from), 0);
    no_memory_no_disk(from);
    n = put_header(file, "{'descr': '>i2', 'fortran_order': True, 'shape': (5, 6)}");
    memset(file + n, 7, 60);
    write_bytes(path, file, n + 60);
    assert_int_equal(rename(path, from), 0);
    no_memory_no_disk(from);
    unlink(from);
}

static void refusals_of_forms(void **state)
{
    (void)state;
    if (!is_without("bzip2")) no_memory_no_disk(in_data("tf/made/npy/bzip2.npz"));
    if (!is_without("lzma")) no_memory_no_disk(in_data("tf/made/npy/lzma.npz"));
    no_memory_no_disk(in_data("tf/made/npy/data_descriptors.npz"));
}

static int begin(void **state)
{
    if (folder_begin(state)) return 1;
    snprintf(path, sizeof path, "%s/file", folder_root);
    return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, check_end)
    const struct CMUnitTest tests[] = {
        TEST(verdicts),         TEST(as_numpy_writes),
        TEST(other_files),      TEST(header_texts),
        TEST(header_lengths),   TEST(ranks),
        TEST(written_headers),  TEST(layouts),
        TEST(fortran_streams),  TEST(names_of_members),
        TEST(members_that_lie), TEST(damaged_npy),
        TEST(damaged_npz),      TEST(damaged_forms),
        TEST(every_dtype),      TEST(views_and_variables),
        TEST(alignment),        TEST(writing_refused),
        TEST(large_archives),   TEST(many_members),
        TEST(refusals),         TEST(refusals_of_forms),
    };
    return cmocka_run_group_tests(tests, begin, folder_end);
}
