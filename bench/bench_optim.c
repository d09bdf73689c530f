/*
 * Optimizer steps alone, over 10 million float32 parameters in 1 and in 100 variables, and over
 * those of the MNIST network; Adam's first step over 100,000 variables, which makes their slots,
 * and the others. Usage: bench_optim [--threads N] [prefix...].
 */
#include "bench/programs.h"
#include "eddy.h"

enum { VARIABLES = 100 };

typedef struct load {
    const char *name;
    int count;
    int64_t sizes[VARIABLES];
} load;

typedef struct step {
    ed_optimizer *optimizer;
    ed_list *gradients, *variables;
} step;

static ed_tensor *numbers(int64_t n)
{
    float *values = malloc((size_t)n * sizeof *values);
    if (!values) exit(1);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(i * 2654435761u % 2000) / 1000 - 1;
    ed_tensor *t = ed_constant(values, ED_SHAPE(n));
    free(values);
    return t;
}

static void make_step(void *user)
{
    step *s = user;
    ed_apply_gradients(s->optimizer, s->gradients, s->variables);
}

static ed_optimizer *make_adam(void)
{
    return ed_optimizer_adam();
}

static ed_optimizer *make_sgd(void)
{
    return ed_optimizer_sgd(.learning_rate = 1e-3);
}

static ed_optimizer *make_sgd_momentum(void)
{
    return ed_optimizer_sgd(.learning_rate = 1e-3, .momentum = 0.9);
}

static ed_optimizer *make_rmsprop(void)
{
    return ed_optimizer_rmsprop();
}

static ed_optimizer *make_clipped(void)
{
    return ed_optimizer_adam(.global_clipnorm = 1);
}

static const struct kind {
    const char *name;
    ed_optimizer *(*make)(void);
} kinds[] = {{"adam", make_adam},
             {"sgd", make_sgd},
             {"sgd_momentum", make_sgd_momentum},
             {"rmsprop", make_rmsprop},
             {"adam_clip_global_norm", make_clipped}};

static void time_steps(const char *name, const struct kind *kind, const load *of)
{
    ED_SCOPE;
    ed_tensor *variables[VARIABLES], *gradients[VARIABLES];
    for (int i = 0; i < of->count; i++) {
        gradients[i] = numbers(of->sizes[i]);
        variables[i] = ed_variable(gradients[i]);
    }
    step s = {kind->make(), ed_list_make(gradients, of->count), ed_list_make(variables, of->count)};
    bench_run(name, make_step, &s, 1);
}

static void make_first_step(void *user)
{
    step *s = user;
    ED_SCOPE;
    s->optimizer = ed_optimizer_adam();
    make_step(s);
}

/* Of one element each. */
static void time_many(int argc, char **argv)
{
    static const char first[] = "H.adam_100000_variables_first",
                      others[] = "H.adam_100000_variables";
    enum { MANY = 100000 };
    static ed_tensor *variables[MANY], *gradients[MANY];
    if (!bench_wanted(argc, argv, first) && !bench_wanted(argc, argv, others)) return;
    ED_SCOPE;
    for (int i = 0; i < MANY; i++) {
        gradients[i] = ed_ones(ED_SHAPE(1));
        variables[i] = ed_variable(gradients[i]);
    }
    step s = {NULL, ed_list_make(gradients, MANY), ed_list_make(variables, MANY)};
    if (bench_wanted(argc, argv, first)) bench_run(first, make_first_step, &s, 1);
    s.optimizer = ed_optimizer_adam();
    if (bench_wanted(argc, argv, others)) bench_run(others, make_step, &s, 1);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--threads")) {
        ed_set_num_threads(atoi(argv[2]));
        argv += 2, argc -= 2;
    }
    static load loads[] = {{"10M_in_1", 1, {10000000}},
                           {"10M_in_100", VARIABLES, {0}},
                           {"mlp", 4, {784 * 512, 512, 512 * 10, 10}}};
    for (int i = 0; i < VARIABLES; i++) loads[1].sizes[i] = 100000;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
            char name[64];
            snprintf(name, sizeof name, "H.%s_%s", kinds[k].name, loads[i].name);
            if (bench_wanted(argc, argv, name)) time_steps(name, &kinds[k], &loads[i]);
        }
    time_many(argc, argv);
    if (ed_failed()) return fprintf(stderr, "%s\n", ed_error()), 1;
}
