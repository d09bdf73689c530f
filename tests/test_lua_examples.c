/*
 * Lua as its users meet it: every program of examples/lua, at a size that takes no time, learns
 * what it is there to learn; and every snippet of docs/lua.md does what the page says.
 */
#include "tests/folders.h"
#include <fcntl.h>
#include <sys/wait.h>

/* ---- Running --------------------------------------------------------------------------------- */

static char program[4096], source[2048]; /* eddy, and the folder of the sources */
static char *printed;                    /* by the last run, both streams */

static int setup(void **state)
{
    strcpy(program, built("lua/eddy"));
    if (!getcwd(source, sizeof source)) return 1;
    return folder_begin(state);
}

static int teardown(void **state)
{
    free(printed);
    return folder_end(state);
}

static void in_child(const char *output, char *const *words)
{
    int to = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0 || chdir(folder_root)) _exit(126);
    execute(program, words);
    _exit(127);
}

/* eddy with a file of the sources and words, in the test's folder; the exit code. */
static int run(const char *file, const char *first, const char *second)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", source, file);
    const char *words[] = {"eddy", path, first, first ? second : NULL, NULL};
    const char *output = in_folder("output");
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) in_child(output, (char *const *)words);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(printed);
    printed = read_text(output);
    assert_non_null(printed);
    if (!WIFEXITED(status)) fail_msg("%s was killed by signal %d", file, WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Sanitized, an example takes minutes: what has a twin in C, which test_c runs, is left to it. */
static bool is_for_this_build(const char *file)
{
#ifdef EDDY_SANITIZED
    char twin[4096];
    snprintf(twin, sizeof twin, "%s/examples/%.*s.c", source, (int)strcspn(file, "."), file);
    return access(twin, R_OK) != 0;
#else
    (void)file;
    return true;
#endif
}

#define EXAMPLE(file, ...) example(file, (const char *[2]){__VA_ARGS__})
static void example(const char *file, const char *const *words)
{
    char path[256];
    if (!is_for_this_build(file)) skip_since("sanitized: its twin in C runs");
    snprintf(path, sizeof path, "examples/lua/%s", file);
    int code = run(path, words[0], words[1]);
    if (code) fail_msg("%s: exit code %d\n%s", file, code, printed);
}

/* Where the text stands last in what was printed. */
static const char *last(const char *text)
{
    const char *found = NULL;
    for (const char *s = printed; (s = strstr(s, text)); s++) found = s;
    if (!found) fail_msg("'%s' is not printed:\n%s", text, printed);
    return found + strlen(text);
}

static double number_after(const char *text)
{
    const char *s = last(text);
    char *end;
    double value = strtod(s, &end);
    if (end == s) fail_msg("'%s' is followed by no number:\n%s", text, printed);
    return value;
}

/* A text that is printed is followed by a number that is less. */
#define SHRINKS(text, most)                                                                        \
    do {                                                                                           \
        double value = number_after(text);                                                         \
        if (!(value < (most))) fail_msg("%s%g is not below %g", text, value, most);                \
    } while (0)

/* ---- Examples -------------------------------------------------------------------------------- */

static void first(void **state)
{
    (void)state;
    EXAMPLE("first.lua");
    SHRINKS("step 300: loss ", 1e-9);
    last("variable \"dense/kernel\" float32 [3, 1]\n");
    last("variable \"dense/bias\" float32 [1]\n");
}

/* Run again, it goes on from where it was: at the end, with the same network. */
static void mlp(void **state)
{
    (void)state;
    EXAMPLE("mnist_mlp.lua", "small", "saved");
    SHRINKS("epoch 1: loss ", 2.2);
    double before = number_after("accuracy on 500 other digits: ");
    assert_true(before > 35);
    EXAMPLE("mnist_mlp.lua", "small", "saved");
    last("goes on from saved/ckpt-1\n");
    assert_null(strstr(printed, "epoch"));
    assert_true(number_after("accuracy on 500 other digits: ") == before);
}

static void cnn(void **state)
{
    (void)state;
    EXAMPLE("mnist_cnn.lua", "small");
    SHRINKS("loss ", 0.6);
    assert_true(number_after("accuracy on 750 other digits: ") > 80);
    assert_true(number_after("it says ") <= 9);
}

static void two_heads(void **state)
{
    (void)state;
    EXAMPLE("two_heads.lua", "small");
    assert_true(number_after("on 1000 other images: ") > 95);
    SHRINKS("strength wrong by ", 0.06);
}

static void char_rnn(void **state)
{
    (void)state;
    EXAMPLE("char_rnn.lua", "small");
    SHRINKS("step 60: loss ", 0.7);
    last("the s");
}

static void text_transformer(void **state)
{
    (void)state;
    EXAMPLE("text_transformer.lua", "small");
    last("the sun rose over the hill, and ");
    assert_true(number_after("accuracy of the next letter: ") > 90);
}

/* An untrained one stands for about 20 steps. */
static void cartpole(void **state)
{
    (void)state;
    EXAMPLE("cartpole.lua", "small");
    assert_true(number_after("round 40: stood for ") > 60);
}

static void physics(void **state)
{
    (void)state;
    EXAMPLE("physics.lua", "small");
    SHRINKS("residual ", 0.03);
    SHRINKS("largest error: ", 0.15);
}

static void is_png(const char *file, int width, int height)
{
    uint8_t head[24], sizes[8] = {0, 0, width >> 8, width & 255, 0, 0, height >> 8, height & 255};
    FILE *f = fopen(in_folder(file), "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    fclose(f);
    assert_memory_equal(head, "\x89PNG\r\n\x1a\n", 8);
    assert_memory_equal(head + 16, sizes, 8);
}

static void autoencoder(void **state)
{
    (void)state;
    EXAMPLE("autoencoder.lua", "small", "rows.png");
    SHRINKS("step 100: loss ", 0.27);
    last("written to rows.png\n");
    is_png("rows.png", 840, 168);
}

static void kmeans(void **state)
{
    (void)state;
    EXAMPLE("kmeans.lua", "small");
    SHRINKS("farthest from a place that the points were drawn around: ", 0.05);
}

static void pinn(void **state)
{
    (void)state;
    EXAMPLE("pinn.lua", "small");
    SHRINKS("t = 0.50: largest error ", 0.1);
}

static void vae(void **state)
{
    (void)state;
    EXAMPLE("vae.lua", "small", "made.png");
    SHRINKS("images that come back: ", 0.04);
    last("written to made.png\n");
    is_png("made.png", 224, 224);
}

static void wide_and_deep(void **state)
{
    (void)state;
    EXAMPLE("wide_and_deep.lua", "small", "people.csv");
    assert_true(number_after("accuracy on 800 other people: ") > 88);
}

static void transfer(void **state)
{
    (void)state;
    EXAMPLE("transfer.lua", "small");
    assert_true(number_after("195 weights trained, ") > 70);
    assert_true(number_after("tuned         56259 weights trained, ") > 74);
}

static void lstm_sequence(void **state)
{
    (void)state;
    EXAMPLE("lstm_sequence.lua", "small");
    assert_true(number_after("accuracy on others: ") > 95);
    assert_true(number_after("on longer ones: ") > 85);
    last("()             yes");
}

static void word2vec(void **state)
{
    (void)state;
    EXAMPLE("word2vec.lua", "small");
    assert_true(number_after("neighbors of the word's kind: ") > 80);
}

static void dqn(void **state)
{
    (void)state;
    EXAMPLE("dqn.lua", "small");
    assert_true(number_after("move 4000: the shortest way is found from ") >= 33);
}

static void gan(void **state)
{
    (void)state;
    EXAMPLE("gan.lua", "small", "made.png");
    SHRINKS("made images: ", 0.04);
    is_png("made.png", 224, 224);
}

/* One that is new is to be tested here too. */
static void none_is_forgotten(void **state)
{
    (void)state;
    assert_string_equal(names_in("examples/lua"),
                        "autoencoder.lua cartpole.lua char_rnn.lua digits.lua dqn.lua "
                        "first.lua gan.lua kmeans.lua lstm_sequence.lua mnist_cnn.lua "
                        "mnist_mlp.lua physics.lua pinn.lua text_transformer.lua "
                        "transfer.lua two_heads.lua vae.lua wide_and_deep.lua word2vec.lua");
}

/* ---- The manual ------------------------------------------------------------------------------ */

#define RUNNER "tests/lua/lib/manual.lua"

static void the_manual(void **state)
{
    (void)state;
    char manual[4096];
    snprintf(manual, sizeof manual, "%s/docs/lua.md", source);
    int code = run(RUNNER, manual, NULL);
    if (code) fail_msg("exit code %d: %s", code, printed);
    assert_true(strtol(printed, NULL, 10) >= 15);
    assert_true(number_after(" snippets, ") >= 60);
}

static void refuses(const char *snippet, const char *why)
{
    char text[256];
    snprintf(text, sizeof text, "A page.\n\n```lua\n%s\n```\n", snippet);
    write_text(in_folder("page.md"), text);
    int code = run(RUNNER, "page.md", NULL);
    if (code != 1) fail_msg("%s: exit code %d: %s", snippet, code, printed);
    if (!strstr(printed, why)) fail_msg("'%s' is not printed: %s", why, printed);
}

/* What runs the manual sees what is wrong with one. */
static void a_wrong_manual(void **state)
{
    (void)state;
    refuses("print(1 + 1)  --> 3", "page.md:3: line 1 should be: 3");
    refuses("print(1 + 1)  --> 22", "line 1 should be: 22");
    refuses("print(1 + 1)", "0 lines are told, 1 were printed");
    refuses("x = 1  --> 1", "line 1 should be: 1");
    refuses("print(1 .. 2 --> 12", "')' expected");
    refuses("x = ed.zeros{2}[3]", "page.md:4: index: index 3 is out of bounds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first),
        cmocka_unit_test(mlp),
        cmocka_unit_test(cnn),
        cmocka_unit_test(two_heads),
        cmocka_unit_test(text_transformer),
        cmocka_unit_test(char_rnn),
        cmocka_unit_test(cartpole),
        cmocka_unit_test(physics),
        cmocka_unit_test(autoencoder),
        cmocka_unit_test(kmeans),
        cmocka_unit_test(pinn),
        cmocka_unit_test(vae),
        cmocka_unit_test(wide_and_deep),
        cmocka_unit_test(transfer),
        cmocka_unit_test(lstm_sequence),
        cmocka_unit_test(word2vec),
        cmocka_unit_test(dqn),
        cmocka_unit_test(gan),
        cmocka_unit_test(none_is_forgotten),
        cmocka_unit_test(the_manual),
        cmocka_unit_test(a_wrong_manual),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
