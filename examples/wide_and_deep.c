/*
 * Who earns more? A table of people, made here and read from a CSV file: columns of numbers and of
 * words. A wide part remembers pairs of words, a deep part generalizes (Cheng et al., 2016).
 * wide_and_deep [FILE.csv [ROWS]]
 */
#include <eddy.h>
#include <math.h>
#include <stdlib.h>

enum { JOBS = 8, TOWNS = 6, SHOWN = 5 };

static const char *const jobs[JOBS] = {"baker",  "clerk", "driver",  "engineer",
                                       "farmer", "nurse", "painter", "teacher"};
static const char *const towns[TOWNS] = {"Aar", "Bern", "Como", "Davos", "Elm", "Flims"};

/* The rule is hidden in the table: age and hours count by a curve, and so does each pair of job and
 * town. */
static bool write_table(const char *path, int rows)
{
    FILE *file = fopen(path, "w");
    if (!file) return perror(path), false;
    double bonus[JOBS][TOWNS];
    for (int i = 0; i < JOBS * TOWNS; i++) bonus[i / TOWNS][i % TOWNS] = rand() % 400 / 100.0 - 2;
    fprintf(file, "age,hours,job,town,earns_more\n");
    for (int i = 0; i < rows; i++) {
        const int age = 18 + rand() % 50, hours = 10 + rand() % 50;
        const int job = rand() % JOBS, town = rand() % TOWNS;
        const double score = bonus[job][town] + 1.5 * sin((age - 18) / 15.0) + (hours - 35) / 15.0;
        fprintf(file, "%d,%d,%s,%s,%d\n", age, hours, jobs[job], towns[town], score > 0.5);
    }
    return fclose(file) == 0;
}

/* A column of words as integers from 0. */
static ed_tensor *integers(const char *path, const char *column)
{
    ed_strings words = ed_read_csv_words(path, .columns = column);
    return ed_string_lookup(words, ed_vocabulary(words), .num_oov_indices = 0);
}

/* Of measures [batch, 2] and the integers of job and town [batch]. */
static ed_layer *wide_and_deep(ed_tensor *numbers)
{
    ed_layer *normalize = ed_layer_normalization();
    ed_layer_adapt(normalize, numbers);
    ed_tensor *measures = ed_input(ED_SHAPE(2), .name = "measures");
    ed_tensor *job = ed_input(ED_SHAPE(), .dtype = ED_INT64, .name = "job");
    ed_tensor *town = ed_input(ED_SHAPE(), .dtype = ED_INT64, .name = "town");
    ed_tensor *pair = ed_one_hot(ed_add(ed_mul(job, TOWNS), town), JOBS * TOWNS);
    ed_tensor *wide = ed_forward(ed_layer_dense(1), pair);
    ed_tensor *deep = ed_concat(ed_list_of(ed_forward(normalize, measures),
                                           ed_forward(ed_layer_embedding(JOBS, 4), job),
                                           ed_forward(ed_layer_embedding(TOWNS, 4), town)),
                                .axis = 1);
    for (int units = 32; units >= 16; units /= 2)
        deep = ed_forward(ed_layer_dense(units, .activation = "relu"), deep);
    ed_tensor *answer = ed_sigmoid(ed_add(wide, ed_forward(ed_layer_dense(1), deep)));
    return ed_model(ed_list_of(measures, job, town), answer, .name = "wide_and_deep");
}

static ed_tensor *rows_of(ed_tensor *x, int64_t begin, int64_t end)
{
    return ed_slice(x, .begin = ED_INTS(begin), .end = ED_INTS(end));
}

/* Rows `begin` to before `end` of the model's three inputs. */
static ed_list *part(ed_list *inputs, int64_t begin, int64_t end)
{
    return ed_list_of(rows_of(ed_list_get(inputs, 0), begin, end),
                      rows_of(ed_list_get(inputs, 1), begin, end),
                      rows_of(ed_list_get(inputs, 2), begin, end));
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "people.csv";
    const int rows = argc > 2 ? atoi(argv[2]) : 40000, learned = rows * 4 / 5;
    srand(1);
    ed_set_seed(1);
    if (!write_table(file, rows)) return 1;
    ed_tensor *numbers = ed_read_csv(file, .columns = "age,hours");
    ed_list *inputs = ed_list_of(numbers, integers(file, "job"), integers(file, "town"));
    ed_tensor *more = ed_read_csv(file, .columns = "earns_more");
    printf("%s: %d people, %.0f %% earn more\n", file, rows, 100 * ed_item(ed_reduce_mean(more)));

    ed_layer *model = wide_and_deep(numbers);
    ed_model_compile(model, .optimizer = ed_optimizer_adam(.learning_rate = 5e-3),
                     .loss = ed_loss_binary_crossentropy(),
                     .metrics = ED_OBJECTS(ed_metric_binary_accuracy(.name = "accuracy"),
                                           ed_metric_auc(.name = "auc")));
    ed_model_fit(model, part(inputs, 0, learned), rows_of(more, 0, learned), .epochs = 10,
                 .batch_size = 64, .validation_split = 0.1, .verbose = 2);

    ed_list *x = part(inputs, learned, rows);
    ed_tensor *y = rows_of(more, learned, rows);
    ed_history *reached = ed_model_evaluate(model, x, y);
    printf("accuracy on other people: %.2f %%\n", 100 * ed_history_last(reached, "accuracy"));
    printf("area under the curve: %.3f\n", ed_history_last(reached, "auc"));
    ed_tensor *chances = ed_model_predict(model, part(x, 0, SHOWN));
    ed_tensor *people = ed_list_get(x, 0);
    for (int i = 0; i < SHOWN && !ed_failed(); i++)
        printf("%g years, %g hours: %3.0f %%; %s\n", ed_item_at(people, i, 0),
               ed_item_at(people, i, 1), 100 * ed_item_at(chances, i, 0),
               ed_item_at(y, i, 0) > 0 ? "yes" : "no");
    if (ed_failed()) return fprintf(stderr, "wide_and_deep: %s\n", ed_error()), 1;
    return 0;
}
