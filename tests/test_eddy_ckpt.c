/*
 * The program eddy-ckpt as a user runs it: what it prints, where, and its exit code. Files are made
 * here, damaged here, or TensorFlow's own (EDDY_DATA).
 */
#include "io/bundle.h"
#include "io/io.h"
#include "ops/ops.h"
#include "tests/archives.h"
#include "tests/folders.h"
#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>

/* ---- Running it ------------------------------------------------------------------------------ */

static char program[4096];
static char *printed, *complained; /* by the last run */

/* Takes the place of what was there. */
static void read_again(char **content, const char *path)
{
    free(*content);
    assert_non_null(*content = read_text(path));
}

static void in_child(const char *out, char *const *words)
{
    int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int e = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (o < 0 || e < 0 || dup2(o, 1) < 0 || dup2(e, 2) < 0) _exit(126);
    execute(program, words);
    _exit(127);
}

/* eddy-ckpt with these words, in the test's folder; the exit code. */
static int run_to(const char *out, const char *const *words)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) in_child(out, (char *const *)words);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("it was killed by signal %d", WTERMSIG(status));
    read_again(&complained, "stderr");
    return WEXITSTATUS(status);
}

#define RUN(code, ...) run(code, (const char *const[]){"eddy-ckpt", __VA_ARGS__, NULL})
static void run(int code, const char *const *words)
{
    int got = run_to("stdout", words);
    read_again(&printed, "stdout");
    if (got != code)
        fail_msg("%s %s: exit code %d, not %d\n%s%s", words[1] ? words[1] : "",
                 words[1] && words[2] ? words[2] : "", got, code, printed, complained);
}

static void prints(const char *what)
{
    if (!strstr(printed, what)) fail_msg("'%s' is not printed:\n%s%s", what, printed, complained);
}

static void complains(const char *what)
{
    if (!strstr(complained, what)) fail_msg("it does not complain of '%s': %s", what, complained);
    if (strncmp(complained, "eddy-ckpt: ", 11)) fail_msg("not in its own name: %s", complained);
}

static void prints_exactly(const char *what)
{
    assert_string_equal(printed, what);
    assert_string_equal(complained, "");
}

/* ---- Files ----------------------------------------------------------------------------------- */

#define SAFETENSORS(path, ...)                                                                     \
    do {                                                                                           \
        if (!write_safetensors(path, __VA_ARGS__)) fail_msg("%s", ed_error());                     \
    } while (0)

/* An entry of a bundle made of raw elements. */
struct raw {
    const char *name;
    io_dtype dtype;
    int64_t count;
    const void *data;
    size_t size;
};

static void write_bundle(const char *prefix, const struct raw *raw, int count, const char *words)
{
    bundle_writer *w = bundle_create("test", prefix);
    for (int i = 0; i < count; i++)
        assert_true(bundle_add_raw(w, raw[i].name, raw[i].dtype, 1, &raw[i].count, raw[i].data,
                                   raw[i].size));
    io_span span = {(const uint8_t *)words, words ? strlen(words) : 0};
    if (words) assert_true(bundle_add_strings(w, "words", 0, NULL, &span, 1));
    if (!bundle_finish(w)) fail_msg("%s", ed_error());
}

static void flip(const char *path, int64_t offset)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET);
    int byte = getc(f);
    fseek(f, -1, SEEK_CUR);
    putc(byte ^ 0x10, f);
    fclose(f);
}

static int setup(void **state)
{
    strcpy(program, built("programs/eddy-ckpt"));
    return folder_begin(state) || chdir(folder_root);
}

static int teardown(void **state)
{
    free(printed);
    free(complained);
    return chdir("/") || folder_end(state);
}

/* ---- Use and misuse -------------------------------------------------------------------------- */

static void misuse_is_told(void **state)
{
    (void)state;
    const char *const none[] = {"eddy-ckpt", NULL};
    run(2, none);
    complains("usage: eddy-ckpt COMMAND");
    RUN(2, "list", "x.npz");
    complains("unknown command list\nusage:");
    RUN(2, "ls");
    complains("ls needs more files\nusage:");
    RUN(2, "diff", "a");
    complains("usage:");
    RUN(2, "ls", "a", "b");
    complains("ls takes fewer files\nusage:");
    RUN(2, "ls", "a", "--sideways");
    complains("usage:");
    RUN(2, "ls", "a", "--rtol=1");
    complains("ls does not take this option\nusage:");
    RUN(2, "ls", "a", "--sort=colour");
    complains("colour\nusage:");
    RUN(2, "diff", "a", "b", "--rtol=-1");
    complains("-1\nusage:");
    RUN(2, "diff", "a", "b", "--atol=much");
    complains("much\nusage:");
    RUN(2, "diff", "a", "b", "--atol=nan");
    complains("nan\nusage:");
    RUN(2, "ls", "a", "--match");
    complains("--match\nusage:");
    assert_string_equal(printed, "");
}

static void help_is_no_error(void **state)
{
    (void)state;
    RUN(0, "--help");
    prints("usage: eddy-ckpt COMMAND");
    assert_string_equal(complained, "");
    RUN(0, "diff", "--help");
    prints("convert");
}

static void files_that_are_not_there(void **state)
{
    (void)state;
    RUN(2, "ls", "nowhere.npz");
    complains("nowhere.npz");
    RUN(2, "show", "nowhere");
    complains("nowhere");
    RUN(2, "diff", "nowhere", "nowhere");
    complains("nowhere");
    RUN(2, "verify", "nowhere");
    complains("nowhere");
    RUN(2, "convert", "nowhere", "there.npz");
    complains("nowhere");
    assert_int_not_equal(access("there.npz", F_OK), 0);
    assert_int_equal(mkdir("empty", 0700), 0);
    RUN(2, "ls", "empty");
    complains("empty: no checkpoint found in this folder");
}

static void output_that_does_not_arrive(void **state)
{
    (void)state;
    ED_SCOPE;
    SAFETENSORS("full.safetensors", "x", ed_zeros(ED_SHAPE(2)));
    const char *const words[] = {"eddy-ckpt", "ls", "full.safetensors", NULL};
    assert_int_equal(run_to("/dev/full", words), 2);
    complains("No space left on device");
}

/* ---- ls -------------------------------------------------------------------------------------- */

static void lists_in_columns(void **state)
{
    (void)state;
    ED_SCOPE;
    SAFETENSORS("ls.safetensors", "net/bias", ed_zeros(ED_SHAPE(7)), "net/kernel",
                ed_zeros(ED_SHAPE(300, 7)), "step", ed_zeros(ED_SHAPE(), .dtype = ED_INT64));
    RUN(0, "ls", "ls.safetensors", "--sort=name");
    prints_exactly("float32  [7]         28  net/bias\n"
                   "float32  [300, 7]  8400  net/kernel\n"
                   "int64    []           8  step\n"
                   "3 tensors, 8436 bytes (8.2 KiB)\n");
    RUN(0, "ls", "ls.safetensors", "--sort=size");
    prints_exactly("float32  [300, 7]  8400  net/kernel\n"
                   "float32  [7]         28  net/bias\n"
                   "int64    []           8  step\n"
                   "3 tensors, 8436 bytes (8.2 KiB)\n");
    RUN(0, "ls", "ls.safetensors", "--match=*bias");
    prints_exactly("float32  [7]  28  net/bias\n"
                   "1 tensor, 28 bytes\n");
    RUN(2, "ls", "ls.safetensors", "--match=net");
    complains("tensor net not found");
}

static void names_cannot_steer_a_terminal(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_zeros(ED_SHAPE());
    SAFETENSORS("odd.safetensors", "\x1b[31mred\nline\\", x, "gr\xc3\xbc\xc3\x9f", x,
                "\xc2\x9b"
                "c1",
                x);
    RUN(0, "ls", "odd.safetensors");
    prints("\\x1b[31mred\\nline\\\\\n");
    prints("gr\xc3\xbc\xc3\x9f\n");
    prints("\\xc2\\x9bc1\n");
    assert_null(strchr(printed, '\x1b'));
    RUN(2, "show", "odd.safetensors", "\x1b[2J");
    complains("\\x1b[2J");
    assert_null(strchr(complained, '\x1b'));
}

static void nothing_is_listed_of_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_true(write_npz("none.npz"));
    RUN(0, "ls", "none.npz");
    prints_exactly("0 tensors, 0 bytes\n");
    RUN(0, "show", "none.npz");
    prints_exactly("");
    RUN(0, "diff", "none.npz", "none.npz");
    prints_exactly("0 tensors, all the same\n");
}

/* ---- show ------------------------------------------------------------------------------------ */

static void shows_what_tensors_hold(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x =
        ed_constant(ED_VALUES(double, -2, 0, NAN, 5, INFINITY, -INFINITY, -0., 1), ED_SHAPE(2, 4));
    ed_tensor *n = ed_constant(ED_VALUES(int32_t, 7, -3), ED_SHAPE(2));
    SAFETENSORS("show.safetensors", "x", x, "n", n, "empty", ed_zeros(ED_SHAPE(0, 3)), "nan",
                ed_full(ED_SHAPE(2), NAN));
    RUN(0, "show", "show.safetensors", "x", "--digest");
    char digest[33], expected[1000];
    io_digest_text(io_digest_of(ed_data(x), 64), digest);
    snprintf(expected, sizeof expected,
             "x\n  float64 [2, 4], 64 bytes\n"
             "  min -2, max 5, mean 0.8, stddev %.7g\n"
             "  2 zero, 1 NaN, 2 infinite\n  XXH3-128 %s\n%s\n",
             sqrt((2.8 * 2.8 + .8 * .8 * 2 + 4.2 * 4.2 + .2 * .2) / 5), digest, ed_to_string(x));
    prints_exactly(expected);
    RUN(0, "show", "show.safetensors", "[n]", "e*");
    prints("n\n  int32 [2], 8 bytes\n  min -3, max 7, mean 2, stddev 5\n"
           "  0 zero, 0 NaN, 0 infinite\n");
    prints("empty\n  float32 [0, 3], 0 bytes\n  0 zero, 0 NaN, 0 infinite\n");
    assert_null(strstr(printed, "shape"));
    RUN(0, "show", "show.safetensors", "nan");
    prints("nan\n  float32 [2], 8 bytes\n  0 zero, 2 NaN, 0 infinite\n");
    RUN(2, "show", "show.safetensors", "x", "y");
    complains("tensor y not found");
}

/* A mean that is large beside the spread, and a tensor of many blocks. */
static void statistics_are_stable(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 300000 };
    double *x = test_malloc(N * sizeof *x);
    for (int i = 0; i < N; i++) x[i] = 1e9 + i % 3;
    ed_tensor *t = ed_constant(x, ED_SHAPE(N)), *ramp = ed_range(0, N, .dtype = ED_FLOAT64);
    test_free(x);
    SAFETENSORS("stable.safetensors", "offset", t, "ramp", ramp, "huge",
                ed_full(ED_SHAPE(10), 1.5e308, .dtype = ED_FLOAT64));
    RUN(0, "show", "stable.safetensors", "o*", "r*", "h*");
    prints("min 1e+09, max 1e+09, mean 1e+09, stddev 0.8164966\n");
    char expected[100];
    snprintf(expected, sizeof expected, "min 0, max 299999, mean 149999.5, stddev %.7g\n",
             sqrt(((double)N * N - 1) / 12));
    prints(expected);
    prints("min 1.5e+308, max 1.5e+308, mean 1.5e+308, stddev 0\n");
}

static void reads_dtypes_that_tensors_lack(void **state)
{
    (void)state;
    const float complex64[] = {3, -4, 0, 0};
    const uint64_t large[] = {1ull << 53, 0};
    const struct raw raw[] = {
        {"c64", IO_COMPLEX64, 2, complex64, sizeof complex64},
        {"u64", IO_UINT64, 2, large, sizeof large},
        {"i8", IO_INT8, 2, "\x80\x7f", 2},
        {"bool", IO_BOOL, 3, "\0\1\1", 3},
        /* 0, 1, 1.5, largest, infinity, NaN, smallest */
        {"e5m2", IO_FLOAT8_E5M2, 7, "\x00\x3c\x3e\x7b\x7c\x7d\x81", 7},
        {"e4m3fn", IO_FLOAT8_E4M3FN, 5, "\x38\x7e\x7f\xff\x81", 5},
        {"e4m3fnuz", IO_FLOAT8_E4M3FNUZ, 3, "\x40\x7f\x80", 3},
        {"int4", IO_INT4, 2, "\x07\x08", 2},
        {"bf16", IO_BFLOAT16, 2, "\x80\x3f\x80\xff", 4},
    };
    write_bundle("kinds", raw, sizeof raw / sizeof *raw, NULL);
    RUN(0, "show", "kinds");
    prints("bool\n  bool [3], 3 bytes\n  min 0, max 1, mean 0.6666667, stddev 0.4714045\n");
    prints("c64\n  complex64 [2], 16 bytes\n  min -4, max 3, mean -0.25, stddev 2.48746");
    prints("2 zero, 0 NaN, 0 infinite; real and imaginary parts are counted apart\n");
    prints("u64\n  uint64 [2], 16 bytes\n  min 0, max 9007199254740992, mean 4.5036e+15");
    prints("i8\n  int8 [2], 2 bytes\n  min -128, max 127, mean -0.5, stddev 127.5\n");
    prints("float8_e5m2 [7], 7 bytes\n  min -1.525879e-05, max 57344, mean 11469.3");
    prints("1 zero, 1 NaN, 1 infinite\n");
    prints("float8_e4m3fn [5], 5 bytes\n  min -0.001953125, max 448, mean 149.666");
    prints("float8_e4m3fnuz [3], 3 bytes\n  min 1, max 240, mean 120.5, stddev 119.5\n"
           "  0 zero, 1 NaN, 0 infinite\n");
    prints("int4 [2], 2 bytes\n  min -8, max 7, mean -0.5, stddev 7.5\n");
    prints(
        "bfloat16 [2], 4 bytes\n  min 1, max 1, mean 1, stddev 0\n  0 zero, 0 NaN, 1 infinite\n");
}

static void shows_strings(void **state)
{
    (void)state;
    char words[400] = "a\tword, then: ";
    memset(words + strlen(words), 'x', 300);
    write_bundle("texts", NULL, 0, words);
    RUN(0, "show", "texts", "w*");
    prints("words\n  string []");
    prints("  \"a\\tword, then: xxx");
    prints("xxx\"... (314 bytes)\n");
    RUN(0, "show", "texts", "words");
    prints("xxx\"\n");
    assert_non_null(strstr(printed, words + 8));
    RUN(2, "show", "texts", "--graph");
    complains("no object graph");
}

/* ---- diff ------------------------------------------------------------------------------------ */

static void write_pair(const char *name, ed_tensor *a, ed_tensor *b)
{
    SAFETENSORS("a.safetensors", name, a, "same", ed_ones(ED_SHAPE(3)));
    SAFETENSORS("b.safetensors", name, b, "same", ed_ones(ED_SHAPE(3)));
}

static void finds_numbers_that_differ(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_constant(ED_VALUES(float, 1, 2, NAN, INFINITY, 0), ED_SHAPE(5));
    write_pair("x", a, ed_constant(ED_VALUES(float, 1, 2.5, NAN, INFINITY, -0.f), ED_SHAPE(5)));
    RUN(1, "diff", "a.safetensors", "b.safetensors");
    prints_exactly("x: 1 of 5 differ, by at most 0.5, relative 0.2\n"
                   "1 tensor differs, 1 is the same\n");
    RUN(0, "diff", "a.safetensors", "b.safetensors", "--rtol=0.2");
    prints_exactly("2 tensors, all the same\n");
    RUN(1, "diff", "a.safetensors", "b.safetensors", "--rtol=0.19");
    RUN(0, "diff", "a.safetensors", "b.safetensors", "--atol=0.5");
    RUN(1, "diff", "a.safetensors", "b.safetensors", "--atol=0.49");
    RUN(0, "diff", "a.safetensors", "b.safetensors", "--atol=0.1", "--rtol=0.161");
    RUN(0, "diff", "a.safetensors", "b.safetensors", "--match=s*");

    write_pair("x", a, ed_constant(ED_VALUES(float, 1, NAN, 3, -INFINITY, 0), ED_SHAPE(5)));
    RUN(1, "diff", "a.safetensors", "b.safetensors", "--rtol=100");
    prints("x: 3 of 5 differ, by at most inf, relative inf, 2 in being NaN\n");
}

static void finds_what_only_one_has(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_zeros(ED_SHAPE(2, 3));
    SAFETENSORS("a.safetensors", "left", x, "shape", x, "dtype", x);
    SAFETENSORS("b.safetensors", "right", x, "shape", ed_zeros(ED_SHAPE(3, 2)), "dtype",
                ed_zeros(ED_SHAPE(2, 3), .dtype = ED_INT32));
    RUN(1, "diff", "a.safetensors", "b.safetensors");
    prints("only in a.safetensors: left\n");
    prints("only in b.safetensors: right\n");
    prints("shape: float32 [2, 3] and float32 [3, 2]\n");
    prints("dtype: float32 [2, 3] and int32 [2, 3]\n");
    prints("4 tensors differ, 0 are the same\n");
}

/* float64 can't tell these integers apart. */
static void whole_numbers_are_compared_exactly(void **state)
{
    (void)state;
    ED_SCOPE;
    int64_t large = (int64_t)1 << 60;
    write_pair("n", ed_constant(ED_VALUES(int64_t, large, -1, INT64_MIN), ED_SHAPE(3)),
               ed_constant(ED_VALUES(int64_t, large + 1, 1, INT64_MAX), ED_SHAPE(3)));
    RUN(1, "diff", "a.safetensors", "b.safetensors");
    prints("n: 3 of 3 differ, by at most 1.844674e+19, relative 2\n");
    RUN(1, "diff", "a.safetensors", "b.safetensors", "--atol=2");
    prints("n: 1 of 3 differ");
    RUN(1, "diff", "a.safetensors", "b.safetensors", "--atol=0.5");
    prints("n: 3 of 3 differ");
}

static void compares_strings_of_bundles(void **state)
{
    (void)state;
    const float x[] = {1, 2};
    const struct raw raw = {"x", IO_FLOAT32, 2, x, sizeof x};
    write_bundle("s1", &raw, 1, "one");
    write_bundle("s2", &raw, 1, "two");
    RUN(1, "diff", "s1", "s2");
    prints_exactly("words: the elements differ\n1 tensor differs, 1 is the same\n");
    RUN(0, "diff", "s1", "s1.index");
    prints_exactly("2 tensors, all the same\n");
}

/* ---- verify ---------------------------------------------------------------------------------- */

/* Pickled objects, and a zip file of other things, as a .keras file: no word of "sound". */
static void verify_names_what_it_cannot(void **state)
{
    (void)state;
    char header[128] = "\x93NUMPY\1\0\x76\0{'descr': '|O', 'fortran_order': False, 'shape': (1,)}";
    memset(header + 10 + strlen(header + 10), ' ', sizeof header - 10 - strlen(header + 10));
    header[sizeof header - 1] = '\n';
    FILE *f = fopen("objects.npy", "wb");
    assert_int_equal(fwrite(header, 1, sizeof header, f) + fwrite("\x80\4.", 1, 3, f), 131);
    fclose(f);
    RUN(2, "verify", "objects.npy");
    prints("pickled objects, which are never loaded: not verified");
    prints("objects.npy: 1 of 1 tensors is not verified");
    assert_null(strstr(printed, "sound"));
    assert_null(strstr(printed, "damaged"));
}

static void verify_names_the_damaged(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, 4};
    const struct raw raw[] = {{"first", IO_FLOAT32, 4, x, sizeof x},
                              {"second", IO_FLOAT32, 4, x, sizeof x},
                              {"third", IO_COMPLEX64, 2, x, sizeof x}};
    write_bundle("v", raw, 3, "some words");
    RUN(0, "verify", "v", "v.index");
    prints("v: 5 tensors, all sound\nv.index: 5 tensors, all sound\n");
    flip("v.data-00000-of-00001", 20);
    RUN(1, "verify", "v");
    prints("second: archive_open: v: tensor 'second': the checksum of its elements does not match");
    prints("v: 1 of 5 tensors is damaged\n");
    assert_null(strstr(printed, "first"));
    assert_null(strstr(printed, "third"));
    assert_string_equal(complained, "");
    RUN(2, "show", "v");
    prints("third\n  complex64 [2]");
    complains("second");
    RUN(2, "diff", "v", "v");
    complains("second");
    RUN(2, "convert", "v", "v.safetensors", "--match=[fst]*d");
    complains("second");
    assert_int_not_equal(access("v.safetensors", F_OK), 0);
    flip("v.index", 0);
    RUN(1, "verify", "v");
    prints("v.index: the index is damaged");
    RUN(2, "verify", "v", "nowhere");
    complains("nowhere");
    RUN(2, "ls", "v");
    complains("v.index");
}

/* ---- convert --------------------------------------------------------------------------------- */

static void write_all_dtypes(const char *prefix)
{
    const float floats[] = {1, -2.5, 3e30f, NAN};
    const struct raw raw[] = {{"net/f32", IO_FLOAT32, 4, floats, 16},
                              {"net/f64", IO_FLOAT64, 2, floats, 16},
                              {"net/f16", IO_FLOAT16, 8, floats, 16},
                              {"net/i8", IO_INT8, 16, floats, 16},
                              {"net/i16", IO_INT16, 8, floats, 16},
                              {"net/i32", IO_INT32, 4, floats, 16},
                              {"net/i64", IO_INT64, 2, floats, 16},
                              {"net/u8", IO_UINT8, 16, floats, 16},
                              {"net/u16", IO_UINT16, 8, floats, 16},
                              {"net/u32", IO_UINT32, 4, floats, 16},
                              {"net/u64", IO_UINT64, 2, floats, 16},
                              {"net/c64", IO_COMPLEX64, 2, floats, 16},
                              {"net/flag", IO_BOOL, 3, "\0\1\1", 3},
                              {"net/none", IO_FLOAT32, 0, NULL, 0},
                              {"step/.ATTRIBUTES/VARIABLE_VALUE", IO_INT64, 1, floats, 8}};
    write_bundle(prefix, raw, sizeof raw / sizeof *raw, "not for others");
}

static void there_and_back_is_the_same(void **state)
{
    (void)state;
    write_all_dtypes("all");
    RUN(0, "convert", "all", "all.safetensors");
    complains("left out: words: the format has no strings");
    RUN(0, "convert", "all.safetensors", "all.npz");
    assert_string_equal(complained, "");
    RUN(0, "convert", "all.npz", "back/all.index");
    RUN(0, "convert", "all", "whole");
    RUN(0, "diff", "all", "all.safetensors");
    prints("15 tensors, all the same; 1 of strings not compared\n");
    RUN(0, "diff", "all.npz", "all.safetensors");
    RUN(1, "diff", "back/all", "all");
    prints_exactly("only in all: words\n1 tensor differs, 15 are the same\n");
    RUN(0, "diff", "whole", "all");
    RUN(0, "diff", "back", "all.npz");
    RUN(0, "verify", "all.safetensors", "all.npz", "back/all", "whole");
}

static void conversion_harms_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    write_all_dtypes("in");
    RUN(0, "convert", "in", "out.npz", "--match=net/*");
    RUN(2, "convert", "in", "out.npz", "--match=step*");
    complains("out.npz exists; --force overwrites it");
    RUN(0, "ls", "out.npz");
    prints("14 tensors");
    RUN(0, "convert", "in", "out.npz", "--match=step*", "--force");
    RUN(0, "ls", "out.npz");
    prints("1 tensor,");
    RUN(2, "convert", "in", "in.index");
    complains("in.index is both input and output");
    RUN(2, "convert", "out.npz", "./out.npz", "--force");
    complains("is both input and output");
    RUN(2, "convert", "in", "x.bin", "--to=zip");
    complains("unknown format 'zip': must be one of ");
    complains(format_list());
    RUN(2, "convert", "in", "words.npz", "--match=words");
    complains("left out: words");
    assert_non_null(strstr(complained, "no tensor is left to write"));
    RUN(2, "convert", "in", "nowhere/x.npz", "--match=step*");
    complains("nowhere");
}

static void strips_and_names(void **state)
{
    (void)state;
    ED_SCOPE;
    const float x[] = {1, 2};
    const struct raw raw[] = {{"a/.ATTRIBUTES/VARIABLE_VALUE", IO_FLOAT32, 2, x, 8},
                              {"a", IO_FLOAT32, 2, x, 8},
                              {"b/.ATTRIBUTES/VARIABLE_VALUE", IO_FLOAT32, 2, x, 8}};
    write_bundle("named", raw, 3, NULL);
    RUN(2, "convert", "named", "named.safetensors", "--strip");
    complains("two tensors have the name 'a'");
    RUN(0, "convert", "named", "named.safetensors", "--strip", "--match=[ab]/*");
    RUN(0, "ls", "named.safetensors");
    prints("8  a\n");
    prints("8  b\n");
    RUN(2, "convert", "named", "one.npy");
    complains("format npy holds one tensor, got 3; choose one by --match");
    RUN(0, "convert", "named", "one.npy", "--match=b/*");
    assert_memory_equal(ed_data(ed_read_npy("one.npy")), x, sizeof x);
    RUN(0, "convert", "one.npy", "one.bin", "--to=safetensors");
    RUN(0, "ls", "one.bin");
    prints("8  one\n");
    RUN(0, "show", "one.npy");
    prints("(the tensor)\n  float32 [2]");
}

static void dtypes_that_a_format_lacks(void **state)
{
    (void)state;
    const struct raw raw[] = {{"b", IO_BFLOAT16, 2, "\x80\x3f\x80\xff", 4},
                              {"c", IO_FLOAT8_E5M2, 2, "\x00\x3c", 2}};
    write_bundle("bf", raw, 2, NULL);
    RUN(0, "convert", "bf", "bf.npz", "--match=b");
    RUN(1, "diff", "bf", "bf.npz");
    prints_exactly("only in bf: c\n1 tensor differs, 1 is the same\n");
    RUN(2, "convert", "bf", "c.npz");
    complains("float8_e5m2");
    assert_int_not_equal(access("c.npz", F_OK), 0);
    RUN(0, "convert", "bf", "bf.safetensors");
    RUN(0, "diff", "bf.safetensors", "bf");
}

/* NumPy's texts: listed, compared, not converted. */
static void dtypes_that_only_one_format_has(void **state)
{
    (void)state;
    char npy[] = "\x93NUMPY\1\0\0\0{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}  "
                 "\nabcdef";
    npy[8] = (char)(sizeof npy - 1 - 10 - 6);
    assert_true(io_write_file("test", "s3.npy", npy, sizeof npy - 1));
    npy[sizeof npy - 2] = 'x';
    assert_true(io_write_file("test", "t3.npy", npy, sizeof npy - 1));
    RUN(0, "ls", "s3.npy");
    prints_exactly("|S3  [2]  6  (the tensor)\n1 tensor, 6 bytes\n");
    RUN(0, "show", "s3.npy");
    prints_exactly("(the tensor)\n  |S3 [2], 6 bytes\n");
    RUN(0, "diff", "s3.npy", "s3.npy");
    RUN(1, "diff", "s3.npy", "t3.npy");
    prints("(the tensor): the elements differ\n");
    RUN(2, "convert", "s3.npy", "s3.safetensors");
    complains("only its own format has this dtype");
}

/* ---- Folders --------------------------------------------------------------------------------- */

static void folders_mean_their_newest(void **state)
{
    (void)state;
    const float x[] = {1, 2};
    const struct raw one = {"one", IO_FLOAT32, 2, x, 8}, nine = {"nine", IO_FLOAT32, 2, x, 8},
                     ten = {"ten", IO_FLOAT32, 2, x, 8};
    write_bundle("folder/plain", &one, 1, NULL);
    RUN(0, "ls", "folder", "--match=one");
    write_bundle("folder/other", &nine, 1, NULL);
    RUN(2, "ls", "folder");
    complains("folder: 2 checkpoints found in this folder; name one");
    write_bundle("folder/ckpt-9", &nine, 1, NULL);
    write_bundle("folder/ckpt-10", &ten, 1, NULL);
    RUN(0, "ls", "folder", "--match=ten");
    const char named[] = "model_checkpoint_path: \"ckpt-9\"\n";
    assert_true(io_write_file("test", "folder/checkpoint", named, sizeof named - 1));
    RUN(0, "ls", "folder/", "--match=nine");
    RUN(0, "convert", "folder", "newest.safetensors");
    RUN(0, "diff", "folder/ckpt-9.index", "newest.safetensors");
}

/* ---- TensorFlow's files ---------------------------------------------------------------------- */

static void a_keras_model(void **state)
{
    (void)state;
    const char *prefix = in_data("tf/bundle/tfx_keras_adam/variables/variables");
    RUN(0, "ls", prefix, "--sort=size");
    prints(" tensors, ");
    prints("float32");
    RUN(0, "verify", prefix);
    prints("all sound");
    RUN(2, "verify", in_data("tf/made/models/mlp.keras"));
    prints("model.weights.h5: not an array: only the checksum of its bytes was verified");
    assert_null(strstr(printed, "sound"));
    RUN(0, "show", prefix, "--graph");
    prints("root #0\n  ");
    prints(": float32 [");
    RUN(0, "show", prefix);
    prints("_CHECKPOINTABLE_OBJECT_GRAPH\n  string []");
    assert_null(strchr(printed, '\x12'));
    RUN(0, "convert", prefix, "keras.safetensors");
    complains("left out: _CHECKPOINTABLE_OBJECT_GRAPH");
    RUN(0, "diff", prefix, "keras.safetensors");
    RUN(0, "convert", prefix, "keras");
    RUN(0, "diff", prefix, "keras");
    assert_null(strstr(printed, "not compared"));
    RUN(0, "verify", "keras");
    RUN(0, "convert", prefix, "bare", "--strip");
    complains("left out: _CHECKPOINTABLE_OBJECT_GRAPH: it has the names of keys");
    RUN(0, "ls", "bare");
    assert_null(strstr(printed, ".ATTRIBUTES"));
}

/* docs/eddy-ckpt.md shows these. */
static void the_manuals_examples(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *save = in_data("tf/made/keras2/sgd_momentum");
    RUN(0, "ls", save, "--match=*kernel*");
    prints_exactly("float32  [3, 4]  48  model/first/kernel/.ATTRIBUTES/VARIABLE_VALUE\n"
                   "float32  [3, 4]  48  model/first/kernel/.OPTIMIZER_SLOT/optimizer/momentum/"
                   ".ATTRIBUTES/VARIABLE_VALUE\n"
                   "float32  [4, 2]  32  model/second/kernel/.ATTRIBUTES/VARIABLE_VALUE\n"
                   "float32  [4, 2]  32  model/second/kernel/.OPTIMIZER_SLOT/optimizer/momentum/"
                   ".ATTRIBUTES/VARIABLE_VALUE\n"
                   "4 tensors, 160 bytes\n");
    RUN(0, "show", save, "model/first/bias/.ATTRIBUTES/VARIABLE_VALUE", "--digest");
    prints_exactly("model/first/bias/.ATTRIBUTES/VARIABLE_VALUE\n  float32 [4], 16 bytes\n"
                   "  min -0.09143876, max 0.004744055, mean -0.05947611, stddev 0.03822667\n"
                   "  0 zero, 0 NaN, 0 infinite\n"
                   "  XXH3-128 1708d3e6166cf6401911ff9ae7a43c5e\n"
                   "[-0.08506531 -0.09143876 -0.06614441  0.00474405]\ntensor float32 [4]\n");
    RUN(0, "show", save, "--graph");
    prints_exactly("root #0\n  model #1\n    first #5\n      kernel #11: float32 [3, 4]\n"
                   "      bias #12: float32 [4]\n    second #6\n"
                   "      kernel #13: float32 [4, 2]\n      bias #14: float32 [2]\n"
                   "  optimizer #2\n    slot momentum of #11, #15: float32 [3, 4]\n"
                   "    slot momentum of #12, #16: float32 [4]\n"
                   "    slot momentum of #13, #17: float32 [4, 2]\n"
                   "    slot momentum of #14, #18: float32 [2]\n    iter #7: int64 []\n"
                   "    decay #8: float32 []\n    learning_rate #9: float32 []\n"
                   "    momentum #10: float32 []\n  step #3: int64 []\n"
                   "  save_counter #4: int64 []\n");
    RUN(0, "convert", save, "weights.safetensors", "--strip", "--match=model/*/kernel/.ATT*");
    RUN(0, "ls", "weights.safetensors");
    prints_exactly("float32  [3, 4]  48  model/first/kernel\n"
                   "float32  [4, 2]  32  model/second/kernel\n2 tensors, 80 bytes\n");

    ed_tensor *kernel = ed_ones(ED_SHAPE(3, 4));
    write_npz("before.npz", "dense/kernel", kernel, "dense/bias",
              ed_constant(ED_VALUES(float, 1, 2, 0.5, 3), ED_SHAPE(4)));
    write_npz("after.npz", "dense/kernel", kernel, "dense/bias",
              ed_constant(ED_VALUES(float, 1, 2, 0.25, 3), ED_SHAPE(4)));
    RUN(1, "diff", "before.npz", "after.npz");
    prints_exactly("dense/bias: 1 of 4 differ, by at most 0.25, relative 0.5\n"
                   "1 tensor differs, 1 is the same\n");
    RUN(0, "diff", "before.npz", "after.npz", "--rtol=0.5");
}

static void a_folder_of_checkpoints(void **state)
{
    (void)state;
    RUN(0, "ls", in_data("tf/bundle/sonnet_linear_1x1"));
    prints("save_counter/.ATTRIBUTES/VARIABLE_VALUE\n");
    RUN(0, "show", in_data("tf/bundle/sonnet_linear_1x1"),
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE");
    prints("min 1, max 1, mean 1, stddev 0\n");
    RUN(0, "show", in_data("tf/bundle/sonnet_linear_1x1"), "--graph");
    prints("  save_counter #");
}

/* What TensorFlow finds damaged, and what it reads. */
static void damaged_bundles(void **state)
{
    (void)state;
    RUN(0, "verify", in_data("tf/made/bundle/damaged/base"));
    RUN(1, "verify", in_data("tf/made/bundle/damaged/data_flip_alpha"));
    prints("alpha: archive_open: ");
    prints("1 of 3 tensors is damaged");
    RUN(1, "verify", in_data("tf/made/bundle/damaged/data_flip_name"));
    prints("name: archive_open: ");
    RUN(1, "verify", in_data("tf/made/bundle/damaged/data_missing"));
    prints("3 of 3 tensors are damaged");
    RUN(1, "verify", in_data("tf/made/bundle/damaged/index_flip_key"));
    RUN(1, "verify", in_data("tf/made/bundle/damaged/index_garbage"));
    RUN(2, "show", in_data("tf/made/bundle/damaged/shape_huge"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(help_is_no_error),
        cmocka_unit_test(files_that_are_not_there),
        cmocka_unit_test(output_that_does_not_arrive),
        cmocka_unit_test(lists_in_columns),
        cmocka_unit_test(names_cannot_steer_a_terminal),
        cmocka_unit_test(nothing_is_listed_of_nothing),
        cmocka_unit_test(shows_what_tensors_hold),
        cmocka_unit_test(statistics_are_stable),
        cmocka_unit_test(reads_dtypes_that_tensors_lack),
        cmocka_unit_test(shows_strings),
        cmocka_unit_test(finds_numbers_that_differ),
        cmocka_unit_test(finds_what_only_one_has),
        cmocka_unit_test(whole_numbers_are_compared_exactly),
        cmocka_unit_test(compares_strings_of_bundles),
        cmocka_unit_test(verify_names_what_it_cannot),
        cmocka_unit_test(verify_names_the_damaged),
        cmocka_unit_test(there_and_back_is_the_same),
        cmocka_unit_test(conversion_harms_nothing),
        cmocka_unit_test(strips_and_names),
        cmocka_unit_test(dtypes_that_a_format_lacks),
        cmocka_unit_test(dtypes_that_only_one_format_has),
        cmocka_unit_test(folders_mean_their_newest),
        cmocka_unit_test(the_manuals_examples),
        cmocka_unit_test(a_keras_model),
        cmocka_unit_test(a_folder_of_checkpoints),
        cmocka_unit_test(damaged_bundles),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
