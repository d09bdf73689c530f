/*
 * Is "(()())(" balanced? An LSTM (Hochreiter and Schmidhuber, 1997) reads sequences of brackets of
 * different lengths and learns to count; then it judges longer ones than it has seen. lstm [small]
 */
#include <eddy.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN = 1, CLOSED = 2, LONGEST = 40 }; /* 0 is padding */

static int between(int least, int most)
{
    return least + rand() % (most - least + 1);
}

/* Pairs of brackets in a random order, each closed after it was opened. */
static void balance(int32_t *sequence, int pairs)
{
    for (int i = 0, opened = 0, depth = 0; i < 2 * pairs; i++) {
        const bool open = depth == 0 || (opened < pairs && rand() % 2);
        opened += open;
        depth += open ? 1 : -1;
        sequence[i] = open ? OPEN : CLOSED;
    }
}

static bool is_balanced(const int32_t *sequence, int length)
{
    int depth = 0;
    for (int i = 0; i < length && depth >= 0; i++) depth += sequence[i] == OPEN ? 1 : -1;
    return depth == 0;
}

/*
 * n sequences of `least` to `most` pairs, padded by 0: [n, LONGEST]; in half of them two brackets
 * are exchanged, and one may be turned. *y: which are balanced, [n].
 */
static ed_tensor *sequences(int n, int least, int most, ed_tensor **y)
{
    int32_t(*x)[LONGEST] = calloc((size_t)n, sizeof *x);
    float *right = calloc((size_t)n, sizeof *right);
    for (int i = 0; x && right && i < n; i++) {
        const int pairs = between(least, most), length = 2 * pairs;
        balance(x[i], pairs);
        if (i % 2 == 0) {
            const int a = between(0, length - 1), b = between(0, length - 1);
            const int32_t turned = i % 4 ? x[i][a] : OPEN + CLOSED - x[i][a];
            x[i][a] = x[i][b];
            x[i][b] = turned;
        }
        right[i] = is_balanced(x[i], length);
    }
    *y = ed_constant_of(ED_FLOAT32, right, ED_SHAPE(n));
    ed_tensor *all = ed_constant_of(ED_INT32, x, ED_SHAPE(n, LONGEST));
    free(x);
    free(right);
    return all;
}

static double accuracy(ed_layer *model, int least, int most)
{
    ed_tensor *y, *x = sequences(1000, least, most, &y);
    return 100 * ed_history_last(ed_model_evaluate(model, x, y), "accuracy");
}

static double judge(ed_layer *model, const char *text)
{
    int32_t codes[LONGEST];
    const int length = (int)strlen(text);
    for (int i = 0; i < length; i++) codes[i] = text[i] == '(' ? OPEN : CLOSED;
    return ed_item(ed_forward(model, ed_constant_of(ED_INT32, codes, ED_SHAPE(1, length))));
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "small");
    srand(1);
    ed_set_seed(1);

    /* The embedding masks the padding, which the LSTM then passes over. */
    ed_layer *model =
        ed_layer_sequential("brackets", ed_layer_embedding(3, 8, .mask_zero = true),
                            ed_layer_lstm(16), ed_layer_dense(1, .activation = "sigmoid"));
    ed_model_compile(model,
                     .optimizer = ed_optimizer_adam(.learning_rate = 1e-2, .global_clipnorm = 1),
                     .loss = ed_loss_binary_crossentropy(),
                     .metrics = ED_OBJECTS(ed_metric_binary_accuracy(.name = "accuracy")));
    ed_tensor *y, *x = sequences(small ? 3000 : 10000, 2, 10, &y);
    ed_model_fit(model, x, y, .epochs = small ? 10 : 20, .batch_size = 64, .verbose = 2);

    printf("accuracy on others: %.1f %%\n", accuracy(model, 2, 10));
    printf("accuracy on longer ones: %.1f %%\n", accuracy(model, 11, 20));
    const char *const texts[] = {"()", "(()())", "(()())(", "())(()", "((((()()))))"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        printf("%-14s balanced with probability %.3f\n", texts[i], judge(model, texts[i]));
    if (ed_failed()) return fprintf(stderr, "lstm: %s\n", ed_error()), 1;
    return 0;
}
