/*
 * Words as vectors: each word's vector has to say which words stand near it (skip-gram, Mikolov et
 * al., 2013), so words that are used alike come to lie side by side. Of all the wrong answers a few
 * are drawn at each step (sampled softmax, Jean et al., 2015). word2vec [STEPS]
 */
#include <eddy.h>
#include <stdlib.h>
#include <string.h>

/* NEAR: so many words before and behind. */
enum { SIZE = 24, BATCH = 256, SAMPLED = 12, SENTENCES = 5000, CLOSEST = 3, NEAR = 2 };

/* A text is drawn from these kinds of words and patterns of sentences. */
static const char *const kinds[][2] = {
    {"animal", "cat dog horse cow sheep goat fox bear"},
    {"person", "anna ben clara david emma felix"},
    {"food", "bread cheese soup rice fish apples honey"},
    {"place", "garden forest village city harbor valley"},
    {"eats", "eats tastes swallows chews"},
    {"sees", "sees finds follows calls"},
    {"goes", "runs walks returns wanders"},
    {"color", "white black brown gray"},
};
static const char *const patterns[] = {
    "the color animal eats the food", "person eats food in the place",
    "the color animal goes to the place", "person goes to the place with the animal",
    "person sees the color animal in the place"};
enum { KINDS = sizeof kinds / sizeof *kinds, PATTERNS = sizeof patterns / sizeof *patterns };

static ed_strings words_of[KINDS];

/* A word of the kind of that name; the name itself if there is none. */
static const char *draw_word(const char *name)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(kinds[kind][0], name))
            return words_of[kind].values[rand() % words_of[kind].count];
    return name;
}

/* The kind of a word; -1: none. */
static int kind_of(const char *word)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t i = 0; i < words_of[kind].count; i++)
            if (!strcmp(words_of[kind].values[i], word)) return kind;
    return -1;
}

static ed_strings draw_text(void)
{
    static const char *text[10 * SENTENCES];
    int64_t length = 0;
    for (int kind = 0; kind < KINDS; kind++) words_of[kind] = ed_split_words(kinds[kind][1]);
    for (int i = 0; i < SENTENCES; i++) {
        ed_strings pattern = ed_split_words(patterns[rand() % PATTERNS]);
        for (int64_t k = 0; k < pattern.count; k++) text[length++] = draw_word(pattern.values[k]);
    }
    return (ed_strings){text, length};
}

/* Words [BATCH], and for each one that stands near it [BATCH, 1]. */
static ed_tensor *examples(ed_tensor *codes, ed_tensor **near)
{
    const double end = (double)ed_size(codes) - NEAR;
    ed_tensor *at = ed_random_uniform(ED_SHAPE(BATCH), .low = NEAR, .high = end, .dtype = ED_INT64);
    ed_tensor *by =
        ed_random_uniform(ED_SHAPE(BATCH), .low = 1, .high = NEAR + 1, .dtype = ED_INT64);
    ed_tensor *ahead = ed_random_uniform(ED_SHAPE(BATCH), .high = 2, .dtype = ED_INT64);
    ed_tensor *other = ed_where(ed_equal(ahead, 1), ed_add(at, by), ed_sub(at, by));
    *near = ed_reshape(ed_gather(codes, other), ED_SHAPE(BATCH, 1));
    return ed_gather(codes, at);
}

/* Prints words and the closest others, by the angle between the vectors; the share of those that
 * are of the word's kind. */
static double compare(ed_tensor *vectors, ed_strings known)
{
    ed_tensor *unit = ed_l2_normalize(vectors, .axis = ED_AXES(1));
    ed_tensor *closeness = ed_matmul(unit, unit, .transpose_b = true), *closest;
    ed_top_k(ed_sub(closeness, ed_mul(2, ed_eye(known.count))), CLOSEST, &closest);
    const int64_t *others = ed_data(closest);
    int right = 0, counted = 0;
    for (int64_t i = 0; others && i < known.count; i++, others += CLOSEST) {
        const char *word = known.values[i];
        if (kind_of(word) < 0) continue;
        for (int k = 0; k < CLOSEST; k++, counted++)
            right += kind_of(known.values[others[k]]) == kind_of(word);
        if (i % 6 == 0)
            printf("%-10s %s, %s, %s\n", word, known.values[others[0]], known.values[others[1]],
                   known.values[others[2]]);
    }
    return 100.0 * right / counted;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 3000;
    srand(2);
    ed_set_seed(2);

    /* Words as numbers from 0, the most frequent first, as the sampler wants them. */
    ed_strings text = draw_text(), known = ed_vocabulary(text);
    ed_tensor *codes = ed_string_lookup(text, known, .num_oov_indices = 0);
    const int64_t n = known.count;
    printf("%lld words, %lld different ones\n", (long long)text.count, (long long)n);

    ed_tensor *vectors =
        ed_variable(ed_random_uniform(ED_SHAPE(n, SIZE), .low = -0.5, .high = 0.5));
    ed_tensor *weights = ed_variable(ed_random_normal(ED_SHAPE(n, SIZE), .stddev = 0.2));
    ed_tensor *biases = ed_variable(ed_zeros(ED_SHAPE(n)));
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 1e-2);
    for (int step = 1; step <= steps && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *near, *near_count, *drawn_count, *seen = examples(codes, &near);
        ed_tensor *drawn =
            ed_log_uniform_candidate_sampler(near, SAMPLED, n, &near_count, &drawn_count);
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = ed_reduce_mean(ed_sampled_softmax_loss(
            weights, biases, near, ed_gather(vectors, seen), drawn, near_count, drawn_count));
        ed_minimize(adam, tape, loss, ed_list_of(vectors, weights, biases));
        if (step % (steps < 5 ? 1 : steps / 5) == 0)
            printf("step %4d: loss %.3f\n", step, ed_item(loss));
    }
    printf("neighbors of the word's kind: %.0f %%\n", compare(ed_value(vectors), known));
    if (ed_failed()) return fprintf(stderr, "word2vec: %s\n", ed_error()), 1;
    return 0;
}
