/*
 * C as its users meet it: every program of examples/, at a size that takes little time, does what
 * it is there to show; and the snippets of the manual print what the page says.
 */
#include "tests/children.h"
#include <math.h>

#define EXAMPLE(name, ...)                                                                         \
    run_program(built("examples/" name), fresh_folder("run"), NULL,                                \
                (const char *[]){__VA_ARGS__, NULL})

/* Sanitized, those that train for long train for one epoch: bounds are what that comes to. */
#ifdef EDDY_SANITIZED
enum { BRIEF = true };
#else
enum { BRIEF = false };
#endif

/* ---- Examples -------------------------------------------------------------------------------- */

static void first(void **state)
{
    (void)state;
    EXAMPLE("first", NULL);
    assert_true(number_after("loss ") < 1e-9);
}

static void loop(void **state)
{
    (void)state;
    EXAMPLE("loop", NULL);
    assert_true(number_after("step 300: loss ") < 1e-9);
}

static void rnn(void **state)
{
    (void)state;
    EXAMPLE("rnn", NULL);
    assert_true(number_after("right sums of numbers of 64 bits: ") > 95);
}

static void mnist_cnn(void **state)
{
    (void)state;
    EXAMPLE("mnist_cnn", "small", BRIEF ? "1" : NULL);
    assert_true(number_after("accuracy on 500 other digits: ") > (BRIEF ? 50 : 80));
    assert_true(number_after("it says ") <= 9);
}

static void two_heads(void **state)
{
    (void)state;
    EXAMPLE("two_heads", "small", BRIEF ? "1" : NULL);
    assert_true(number_after("on 1000 other images: ") > (BRIEF ? 30 : 65));
    assert_true(number_after("strength wrong by ") < 0.1);
}

static void lstm(void **state)
{
    (void)state;
    EXAMPLE("lstm", "small");
    assert_true(number_after("accuracy on others: ") > 95);
    assert_true(number_after("accuracy on longer ones: ") > 80);
    assert_true(number_after("())(()         balanced with probability ") < 0.5);
}

static void text_transformer(void **state)
{
    (void)state;
    EXAMPLE("text_transformer", BRIEF ? "1" : "16");
    assert_true(number_after("accuracy of the next letter: ") > (BRIEF ? 30 : 90));
    assert_non_null(strstr(printed, "\nthe sun rose over the hill, and "));
}

static void vae(void **state)
{
    (void)state;
    EXAMPLE("vae", "vae.png", "small", BRIEF ? "1" : NULL);
    assert_true(number_after("images that come back: ") < (BRIEF ? 0.07 : 0.04));
    assert_true(number_after("of their mean: ") > 0.04);
    assert_non_null(strstr(printed, "written to vae.png\n"));
}

static void autoencoder(void **state)
{
    (void)state;
    EXAMPLE("autoencoder", "rows.png", "small", BRIEF ? "1" : NULL);
    assert_true(number_after("of the noise: ") > 0.02);
    assert_true(number_after("of the answers: ") < (BRIEF ? 0.07 : 0.025));
    assert_non_null(strstr(printed, "written to rows.png\n"));
}

static void gan(void **state)
{
    (void)state;
    EXAMPLE("gan", "made.png", BRIEF ? "100" : "1000");
    assert_true(number_after("made images: ") < (BRIEF ? 0.17 : 0.04));
    assert_non_null(strstr(printed, "written to made.png\n"));
}

static void transfer(void **state)
{
    (void)state;
    EXAMPLE("transfer", "small");
    const double alone = number_after("alone: ");
    assert_true(number_after("frozen: ") > alone);
    assert_true(number_after("tuned: ") > alone);
}

static void dqn(void **state)
{
    (void)state;
    EXAMPLE("dqn", "5000");
    assert_true(number_after("move 5000: the shortest way from ") > 80);
}

static void wide_and_deep(void **state)
{
    (void)state;
    EXAMPLE("wide_and_deep", "people.csv", "4000");
    assert_true(number_after("accuracy on other people: ") > 85);
    assert_true(number_after("area under the curve: ") > 0.9);
}

static void word2vec(void **state)
{
    (void)state;
    EXAMPLE("word2vec", "400");
    assert_true(number_after("neighbors of the word's kind: ") > 80);
}

static void kmeans(void **state)
{
    (void)state;
    EXAMPLE("kmeans", "200");
    assert_true(number_after("were drawn around: ") < 0.05);
}

static void physics(void **state)
{
    (void)state;
    EXAMPLE("physics", "300");
    assert_true(number_after("largest error: ") < 0.2);
}

static void profile(void **state)
{
    (void)state;
    EXAMPLE("profile", "5");
    assert_true(number_after("all ops") >= 10);
}

static void custom_op(void **state)
{
    (void)state;
    EXAMPLE("custom_op", NULL);
    assert_non_null(strstr(printed, "gradient right: "));
    assert_true(fabs(number_after("by squares ") - 3) > 1);
    assert_true(fabs(number_after("by huber ") - 3) < 0.2);
}

static void own_dataset(void **state)
{
    (void)state;
    EXAMPLE("own_dataset", NULL);
    assert_true(number_after(": loss ") < 0.01);
    assert_non_null(strstr(printed, ", the same\n"));
}

static void threads(void **state)
{
    (void)state;
    EXAMPLE("threads", NULL);
    assert_true(number_after("loss ") < 0.05);
    assert_true(number_after("at most ") < 1e-5);
    assert_non_null(strstr(printed, "the same answer in all threads: yes\n"));
}

/* Line i of what was printed, to its end. */
static const char *line(int i)
{
    const char *s = printed;
    while (i-- && s && (s = strchr(s, '\n'))) s++;
    if (!s) fail_msg("too few lines:\n%s", printed ? printed : "");
    return s;
}

#define BEGINS(i, text) assert_memory_equal(line(i), text, strlen(text))

static char *requests(void)
{
    static char text[1 << 16];
    char *end = stpcpy(text, "0.1 0.2  3 -1\n1 2 3\nabc\nnan 0\n\n");
    for (int i = 0; i < 10000; i++) *end++ = '1';
    end = stpcpy(end, "\nmemory\n");
    for (int i = 0; i < 1000; i++) end = stpcpy(end, i % 3 ? "0 0\n" : "1 2 3\n");
    stpcpy(end, "memory\n0.2 0.1");
    return text;
}

static const char *server_answers(const char *folder)
{
    run_program(built("examples/server"), folder, in_folder("requests"),
                (const char *[]){"saved", NULL});
    BEGINS(0, "inside ");
    assert_non_null(strstr(line(0), ", outside 0."));
    BEGINS(1, "error: ");
    assert_non_null(strstr(line(1), "reshape: float32[3] has 3 elements"));
    assert_non_null(strstr(line(2), "no number: abc\n"));
    assert_non_null(strstr(line(3), "no number: nan 0\n"));
    BEGINS(4, "\n");
    assert_non_null(strstr(line(5), "the line is longer than"));
    const char *memory = line(6), *end = strchr(memory, '\n') + 1;
    assert_memory_equal(line(1007), memory, end - memory);
    BEGINS(1008, "inside ");
    return line(0);
}

/* Trained the first time, restored the second; a thousand requests leave memory as it was. */
static void server(void **state)
{
    (void)state;
    const char *folder = fresh_folder("server");
    write_text(in_folder("requests"), requests());
    char answer[64];
    snprintf(answer, sizeof answer, "%s", server_answers(folder));
    assert_string_equal(names_in(in_folder("server/saved")),
                        "checkpoint ckpt-1.data-00000-of-00001 ckpt-1.index");
    server_answers(folder);
    assert_memory_equal(printed, answer, strcspn(answer, "\n"));
}

/* One that is new is to be tested here too; the demo, mnist, and fine_tune take longer than tests
 * should, and the others are parts. */
static void none_is_forgotten(void **state)
{
    (void)state;
    assert_string_equal(
        names_in("examples"),
        "autoencoder.c cmake cpp custom_op.c digits.c digits.h dqn.c fine_tune.c first.c gan.c "
        "kmeans.c loop.c lstm.c lua mnist.c mnist_cnn.c own_dataset.c physics.c profile.c "
        "progress.c progress.h rnn.c server.c text_transformer.c threads.c transfer.c two_heads.c "
        "vae.c wide_and_deep.c word2vec.c");
}

/* ---- The manual ------------------------------------------------------------------------------ */

static void the_manual(void **state)
{
    (void)state;
    run_manual(built("tests/c/c"), "docs/c.md", 60);
}

static void debugging(void **state)
{
    (void)state;
    run_manual(built("tests/c/debugging"), "docs/debugging.md", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first),
        cmocka_unit_test(loop),
        cmocka_unit_test(rnn),
        cmocka_unit_test(mnist_cnn),
        cmocka_unit_test(two_heads),
        cmocka_unit_test(lstm),
        cmocka_unit_test(text_transformer),
        cmocka_unit_test(vae),
        cmocka_unit_test(autoencoder),
        cmocka_unit_test(gan),
        cmocka_unit_test(transfer),
        cmocka_unit_test(dqn),
        cmocka_unit_test(wide_and_deep),
        cmocka_unit_test(word2vec),
        cmocka_unit_test(kmeans),
        cmocka_unit_test(physics),
        cmocka_unit_test(profile),
        cmocka_unit_test(custom_op),
        cmocka_unit_test(own_dataset),
        cmocka_unit_test(threads),
        cmocka_unit_test(server),
        cmocka_unit_test(none_is_forgotten),
        cmocka_unit_test(the_manual),
        cmocka_unit_test(debugging),
    };
    return cmocka_run_group_tests(tests, folder_begin, children_end);
}
