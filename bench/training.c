/*
 * Whole steps of training: forward, backward, the optimizer. Of each model its number of parameters
 * is checked, that the loss climbs along its gradient as fast as the gradient is long, and that
 * steps make it smaller.
 */
#include "bench/bench.h"
#include <stdlib.h>

typedef struct training {
    ed_layer *model;
    ed_optimizer *optimizer;
} training;

typedef struct row {
    const char *name;
    void (*make)(workload *w); /* x[0] and x[1]: inputs and targets */
    ed_layer *(*model)(void);
    ed_tensor *(*loss)(workload *w);
    int64_t parameters;
} row;

/* ---- Models ---- */

static ed_layer *mlp(void)
{
    return ed_layer_sequential("mlp", ed_layer_flatten(), ed_layer_dense(512, .activation = "relu"),
                               ed_layer_dropout(0.2), ed_layer_dense(10));
}

static ed_layer *small_mlp(void)
{
    return ed_layer_sequential("xor", ed_layer_dense(16, .activation = "tanh"), ed_layer_dense(1));
}

static ed_layer *lenet(const char *format)
{
    return ed_layer_sequential(
        "lenet", ed_layer_conv2d(32, ED_INTS(3), .activation = "relu", .data_format = format),
        ed_layer_max_pooling2d(.data_format = format),
        ed_layer_conv2d(64, ED_INTS(3), .activation = "relu", .data_format = format),
        ed_layer_max_pooling2d(.data_format = format), ed_layer_flatten(),
        ed_layer_dense(128, .activation = "relu"), ed_layer_dense(10));
}

static ed_layer *lenet_nhwc(void)
{
    return lenet("channels_last");
}

static ed_layer *lenet_nchw(void)
{
    return lenet("channels_first");
}

static ed_layer *lstm(void)
{
    return ed_layer_sequential("lstm", ed_layer_lstm(128), ed_layer_dense(10));
}

/* A block of an encoder: attention, sum, normalization; two dense layers, sum, normalization. */
static ed_layer *transformer(void)
{
    ed_tensor *x = ed_input(ED_SHAPE(128, 256));
    ed_list *queries_and_values = ed_list_of(x, x);
    ed_tensor *attention =
        ed_list_get(ed_forward(ed_layer_multi_head_attention(4, 64), queries_and_values), 0);
    ed_tensor *h = ed_forward(ed_layer_layer_normalization(.epsilon = 1e-5), ed_add(x, attention));
    ed_tensor *inner =
        ed_forward(ed_layer_dense(256), ed_forward(ed_layer_dense(1024, .activation = "gelu"), h));
    return ed_model(x, ed_forward(ed_layer_layer_normalization(.epsilon = 1e-5), ed_add(h, inner)));
}

/* ---- Data and losses; n[0]: the batch ---- */

static void make_labels(workload *w, ed_ints shape)
{
    w->x[0] = ed_random_uniform(shape);
    w->x[1] = bench_indices(w->n[0], 10, ED_INT32);
}

static void make_images(workload *w)
{
    make_labels(w, ED_SHAPE(w->n[0], 28, 28));
}

static void make_images_nhwc(workload *w)
{
    make_labels(w, ED_SHAPE(w->n[0], 28, 28, 1));
}

static void make_images_nchw(workload *w)
{
    make_labels(w, ED_SHAPE(w->n[0], 1, 28, 28));
}

static void make_pairs(workload *w)
{
    w->x[0] = ed_random_uniform(ED_SHAPE(w->n[0], 2));
    w->x[1] = ed_random_uniform(ED_SHAPE(w->n[0], 1));
}

static void make_tokens(workload *w)
{
    for (int i = 0; i < 2; i++) w->x[i] = ed_random_uniform(ED_SHAPE(w->n[0], 128, 256));
}

static ed_tensor *output(workload *w)
{
    const training *t = w->more;
    return ed_forward(t->model, w->x[0], .training = true);
}

static ed_tensor *cross_entropy(workload *w)
{
    return ed_reduce_mean(ed_sparse_softmax_cross_entropy(w->x[1], output(w)));
}

static ed_tensor *squared_error(workload *w)
{
    return ed_reduce_mean(ed_squared_difference(output(w), w->x[1]));
}

/* ---- A step ---- */

static void make(workload *w)
{
    const row *r = w->row;
    training *t = malloc(sizeof *t);
    if (!t) abort();
    *t = (training){r->model(), ed_optimizer_adam()};
    w->more = t;
    r->make(w);
}

static void drop(workload *w)
{
    free(w->more);
}

static ed_tensor *step(workload *w)
{
    const row *r = w->row;
    const training *t = w->more;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = r->loss(w);
    ed_minimize(t->optimizer, tape, loss, t->model);
    return loss;
}

/* With the same dropout each time. */
static double loss_now(workload *w)
{
    ED_SCOPE;
    const row *r = w->row;
    ed_set_seed(5);
    return ed_item(r->loss(w));
}

static void move(ed_list *variables, ed_list *direction, double by)
{
    ED_SCOPE;
    for (int64_t i = 0; i < ed_list_size(variables); i++)
        ed_assign_add(ed_list_get(variables, i), ed_mul(ed_list_get(direction, i), by));
}

static void check_slope(workload *w, ed_list *variables)
{
    const row *r = w->row;
    const double distance = 0.003;
    ed_tensor *norm;
    ed_set_seed(5);
    ed_tape *tape = ed_tape_begin();
    ed_list *gradients = ed_gradient(tape, r->loss(w), variables);
    ed_clip_by_global_norm(gradients, 1e30, &norm);
    double length = ed_item(norm);
    move(variables, gradients, distance / length);
    double up = loss_now(w);
    move(variables, gradients, -2 * distance / length);
    double down = loss_now(w);
    move(variables, gradients, distance / length);
    bench_near("the loss's slope along its gradient, in units of that",
               (up - down) / 2 / distance / length, 1, 0.02);
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    ed_list *variables = ed_layer_trainable_variables(((training *)w->more)->model);
    int64_t parameters = 0;
    for (int64_t i = 0; i < ed_list_size(variables); i++)
        parameters += ed_size(ed_list_get(variables, i));
    bench_near("the number of parameters", (double)parameters, (double)r->parameters, 0);
    check_slope(w, variables);
    double first = bench_at(y, 0), least = INFINITY;
    for (int i = 0; i < 20; i++) {
        ED_SCOPE;
        step(w);
        least = fmin(least, loss_now(w));
    }
    bench_claim(least < first, "steps make the loss smaller");
}

/* ---- Inference ---- */

static ed_tensor *infer(workload *w)
{
    const training *t = w->more;
    return ed_forward(t->model, w->x[0]);
}

/* The logits of the first image. */
static void check_inference(workload *w, ed_tensor *y)
{
    ed_list *v = ed_layer_trainable_variables(((training *)w->more)->model);
    ed_tensor *kernel[2], *bias[2];
    for (int i = 0; i < 2; i++) {
        kernel[i] = ed_value(ed_list_get(v, 2 * i));
        bias[i] = ed_value(ed_list_get(v, 2 * i + 1));
    }
    double logits[10];
    for (int o = 0; o < 10; o++) logits[o] = bench_at(bias[1], o);
    for (int64_t u = 0; u < 512; u++) {
        double h = bench_at(bias[0], u);
        for (int64_t i = 0; i < 784; i++)
            h += bench_at(w->x[0], i) * bench_at(kernel[0], i * 512 + u);
        for (int o = 0; o < 10; o++) logits[o] += fmax(h, 0) * bench_at(kernel[1], u * 10 + o);
    }
    for (int o = 0; o < 10; o++) bench_near("a logit", bench_at(y, o), logits[o], 2e-5);
}

/* ---- Attention alone: query, key and value [batch, heads, tokens, size] ---- */

static void make_attention(workload *w)
{
    for (int i = 0; i < 3; i++) w->x[i] = ed_random_uniform(ED_SHAPE(8, 4, 128, 64));
    w->list = ed_list_of(w->x[0], w->x[1], w->x[2]);
}

static ed_tensor *attention(workload *w)
{
    return ed_scaled_dot_product_attention(w->x[0], w->x[1], w->x[2], NULL, NULL);
}

static double dot(const ed_tensor *a, int64_t i, const ed_tensor *b, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < 64; k++) sum += bench_at(a, i * 64 + k) * bench_at(b, j * 64 + k);
    return sum;
}

static void check_attention(workload *w, ed_tensor *y)
{
    for (int64_t i = 5; i < 8 * 4 * 128; i += 500) {
        int64_t first = i / 128 * 128, column = i % 64;
        double sum = 0, mean = 0;
        for (int64_t j = first; j < first + 128; j++) {
            double weight = exp(dot(w->x[0], i, w->x[1], j) / 8);
            sum += weight, mean += weight * bench_at(w->x[2], j * 64 + column);
        }
        bench_near("an element", bench_at(y, i * 64 + column), mean / sum, 1e-5);
    }
}

static void add_attention(void)
{
    workload w = {BENCH_FLOPS, 4.0 * 8 * 4 * 128 * 128 * 64, .make = make_attention,
                  .run = attention, .check = check_attention};
    bench_add(w, "attention_8x4x128x64");
    w.amount *= 3, w.forward = attention;
    bench_add(w, "attention_8x4x128x64_grad");
}

void bench_training(void)
{
    static const row mlp_row = {"mlp", make_images, mlp, cross_entropy, 407050};
    static const struct {
        row row;
        int batch;
    } others[] = {{{"xor", make_pairs, small_mlp, squared_error, 65}, 4},
                  {{"lenet_nhwc", make_images_nhwc, lenet_nhwc, cross_entropy, 225034}, 128},
                  {{"lenet_nchw", make_images_nchw, lenet_nchw, cross_entropy, 225034}, 128},
                  {{"lstm_128_of_28_steps", make_images, lstm, cross_entropy, 81674}, 128},
                  {{"transformer_256", make_tokens, transformer, squared_error, 789760}, 8}};
    workload w = {BENCH_SAMPLES, .make = make, .drop = drop, .row = &mlp_row};
    for (int i = 0; i < 4; i++) {
        w.amount = (const int[]){32, 128, 500, 5000}[i], w.n[0] = (int64_t)w.amount;
        w.run = step, w.check = check;
        bench_add(w, "mlp_b%d", (int)w.n[0]);
        w.run = infer, w.check = check_inference;
        bench_add(w, "mlp_inference_b%d", (int)w.n[0]);
    }
    w.run = step, w.check = check;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        w.row = &others[i].row, w.n[0] = others[i].batch, w.amount = others[i].batch;
        bench_add(w, "%s_b%d", others[i].row.name, others[i].batch);
    }
    add_attention();
}
