/*
 * Words as vectors: each word's vector has to say which words stand near it (skip-gram, Mikolov et
 * al., 2013), so words that are used alike come to lie side by side. Of all the wrong answers a few
 * are drawn at each step (sampled softmax, Jean et al., 2015). word2vec [STEPS]
 */
#include <eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 24, BATCH = 256, SAMPLED = 12, SENTENCES = 5000, CLOSEST = 3 };
enum { NEAR = 2 }; /* so many words before and behind */

/* A text is drawn from these kinds of words, each after its name, and patterns of sentences. */
static const char *const kinds[][10] = {
    {"animal", "cat", "dog", "horse", "cow", "sheep", "goat", "fox", "bear"},
    {"person", "anna", "ben", "clara", "david", "emma", "felix"},
    {"food", "bread", "cheese", "soup", "rice", "fish", "apples", "honey"},
    {"place", "garden", "forest", "village", "city", "harbor", "valley"},
    {"eats", "eats", "tastes", "swallows", "chews"},
    {"sees", "sees", "finds", "follows", "calls"},
    {"goes", "runs", "walks", "returns", "wanders"},
    {"color", "white", "black", "brown", "gray"},
    {"", "the", "in", "to", "with"},
};
static const char *const patterns[][10] = {
    {"the", "color", "animal", "eats", "the", "food"},
    {"person", "eats", "food", "in", "the", "place"},
    {"the", "color", "animal", "goes", "to", "the", "place"},
    {"person", "goes", "to", "the", "place", "with", "the", "animal"},
    {"person", "sees", "the", "color", "animal", "in", "the", "place"},
};
enum { KINDS = sizeof kinds / sizeof *kinds, PATTERNS = sizeof patterns / sizeof *patterns };

typedef struct word {
    const char *text;
    int kind; /* KINDS - 1: none */
    int count, number;
} word;

static word words[10 * KINDS];
static int n_words;
static int32_t text[10 * SENTENCES];
static int length;

static void list_words(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 1; kinds[kind][i]; i++, n_words++)
            words[n_words] = (word){.text = kinds[kind][i], .kind = kind, .number = n_words};
}

/* The index of a word of that kind, or of the word itself. */
static int draw_word(const char *place)
{
    int fitting[10 * KINDS], n = 0;
    for (int i = 0; i < n_words; i++)
        if (!strcmp(kinds[words[i].kind][0], place)) fitting[n++] = i;
    for (int i = 0; i < n_words && n == 0; i++)
        if (!strcmp(words[i].text, place)) return i;
    return fitting[rand() % n];
}

static int more_frequent(const void *a, const void *b)
{
    const word *x = a, *y = b;
    return y->count != x->count ? y->count - x->count : x->number - y->number;
}

/* Words as numbers from 0, the most frequent first, as the sampler wants them. */
static void draw_text(void)
{
    list_words();
    for (int i = 0; i < SENTENCES; i++)
        for (const char *const *place = patterns[rand() % PATTERNS]; *place; place++)
            words[text[length++] = draw_word(*place)].count++;
    qsort(words, (size_t)n_words, sizeof *words, more_frequent);
    int number[10 * KINDS];
    for (int i = 0; i < n_words; i++) number[words[i].number] = i;
    for (int i = 0; i < length; i++) text[i] = number[text[i]];
}

static ed_tensor *whole_numbers(double low, double high)
{
    ed_tensor *x = ed_random_uniform(ED_SHAPE(BATCH), .low = low, .high = high);
    return ed_cast(ed_floor(x), ED_INT64);
}

/* Words [BATCH], and for each one that stands near it [BATCH, 1]. */
static ed_tensor *examples(ed_tensor *codes, ed_tensor **near)
{
    ed_tensor *at = whole_numbers(NEAR, length - NEAR), *by = whole_numbers(1, NEAR + 1);
    ed_tensor *side = ed_sub(ed_mul(whole_numbers(0, 2), 2), 1);
    *near = ed_reshape(ed_gather(codes, ed_add(at, ed_mul(by, side))), ED_SHAPE(BATCH, 1));
    return ed_gather(codes, at);
}

/* Prints words and the closest others, by the angle between the vectors; the share of those that
 * are of the word's kind. */
static double compare(ed_tensor *vectors)
{
    ed_tensor *unit = ed_l2_normalize(vectors, .axis = ED_AXES(1));
    ed_tensor *closeness = ed_matmul(unit, unit, .transpose_b = true), *closest;
    ed_top_k(ed_sub(closeness, ed_mul(2, ed_eye(n_words))), CLOSEST, &closest);
    const int64_t *others = ed_data(closest);
    int right = 0, counted = 0;
    for (int i = 0; others && i < n_words; i++, others += CLOSEST) {
        if (words[i].kind == KINDS - 1) continue;
        for (int k = 0; k < CLOSEST; k++, counted++)
            right += words[others[k]].kind == words[i].kind;
        if (i % 6 == 0)
            printf("%-10s %s, %s, %s\n", words[i].text, words[others[0]].text,
                   words[others[1]].text, words[others[2]].text);
    }
    return 100.0 * right / counted;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 3000;
    srand(2);
    ed_set_seed(2);
    draw_text();
    printf("%d words, %d different ones\n", length, n_words);

    ed_tensor *codes = ed_cast(ed_constant_of(ED_INT32, text, ED_SHAPE(length)), ED_INT64);
    ed_tensor *vectors =
        ed_variable(ed_random_uniform(ED_SHAPE(n_words, SIZE), .low = -0.5, .high = 0.5));
    ed_tensor *weights =
        ed_variable(ed_random_normal(ED_SHAPE(n_words, SIZE), .stddev = 1 / sqrt(SIZE)));
    ed_tensor *biases = ed_variable(ed_zeros(ED_SHAPE(n_words)));
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 1e-2);
    for (int step = 1; step <= steps && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *near, *near_count, *drawn_count, *seen = examples(codes, &near);
        ed_tensor *drawn =
            ed_log_uniform_candidate_sampler(near, SAMPLED, n_words, &near_count, &drawn_count);
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = ed_reduce_mean(ed_sampled_softmax_loss(
            weights, biases, near, ed_gather(vectors, seen), drawn, near_count, drawn_count));
        ed_minimize(adam, tape, loss, ed_list_of(vectors, weights, biases));
        if (step % (steps < 5 ? 1 : steps / 5) == 0)
            printf("step %4d: loss %.3f\n", step, ed_item(loss));
    }
    printf("neighbors of the word's kind: %.0f %%\n", compare(ed_value(vectors)));
    if (ed_failed()) return fprintf(stderr, "word2vec: %s\n", ed_error()), 1;
    return 0;
}
