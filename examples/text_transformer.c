/*
 * A small transformer that learns a text letter by letter and then writes: each position attends to
 * those before it (Vaswani et al., 2017), and says which letter comes next.
 * text_transformer [EPOCHS]
 */
#include <eddy.h>
#include <stdlib.h>

enum { LENGTH = 32, WIDTH = 48, HEADS = 4, BLOCKS = 2, BATCH = 16 };

static const char text[] = "the sun rose over the hill, and the hill rose over the sea. "
                           "the sea sang to the sand, and the sand ran to the tree. "
                           "the tree bent over the stone, and the stone said to the sun: "
                           "one song is sung by the sea, and the day has begun. ";
enum { LETTERS = sizeof text - 1 };

/* ---- Letters [batch, length] to vectors: what each is, and where it stands ------------------- */

static bool letters_build(ed_layer *layer, const ed_layer_call *call)
{
    (void)call;
    return ed_layer_add_child(layer, ed_layer_embedding(128, WIDTH)) &&
           ed_layer_add_weight(layer, "where", ED_SHAPE(LENGTH, WIDTH),
                               .initializer = ed_initializer_random_uniform());
}

static bool letters_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *what = ed_forward(ed_layer_child(layer, 0), call->inputs[0]);
    return ed_layer_return(call, ed_add(what, ed_layer_weight(layer, 0)));
}

static const ed_layer_class letters_class = {
    .kind.name = "letters", .build = letters_build, .forward = letters_forward};

/* ---- The model ------------------------------------------------------------------------------- */

static ed_tensor *normalize(ed_tensor *x)
{
    return ed_forward(ed_layer_layer_normalization(), x);
}

/* What a position has learned so far, what it finds at those before it, what follows from both. */
static ed_tensor *block(ed_tensor *x)
{
    ed_layer *attention =
        ed_layer_multi_head_attention(HEADS, WIDTH / HEADS, .use_causal_mask = true);
    ed_tensor *seen = normalize(x);
    x = ed_add(x, ed_forward_one(attention, ed_list_of(seen, seen)));
    ed_layer *inner = ed_layer_dense(4 * WIDTH, .activation = "gelu");
    return ed_add(x, ed_forward(ed_layer_dense(WIDTH), ed_forward(inner, normalize(x))));
}

static ed_layer *transformer(void)
{
    ed_tensor *input = ed_input(ED_SHAPE(LENGTH), .dtype = ED_INT32);
    ed_tensor *x = ed_forward(ed_layer_new(&letters_class, NULL), input);
    for (int i = 0; i < BLOCKS; i++) x = block(x);
    return ed_model(input, ed_forward(ed_layer_dense(128), normalize(x)));
}

/* LETTERS letters that begin as the text does; the model sees LENGTH of them at most. */
static void write_on(ed_layer *model, ed_tensor *all)
{
    int32_t written[LETTERS];
    ed_copy_to(all, written, LETTERS);
    for (int i = LENGTH; i < LETTERS && !ed_failed(); i++) {
        ED_SCOPE;
        ed_tensor *x = ed_constant(written + i - LENGTH, ED_SHAPE(1, LENGTH));
        ed_tensor *last = ed_strided_slice(ed_forward(model, x), ED_INDEX(0), ED_INDEX(-1));
        written[i] = (int32_t)ed_item(ed_argmax(last));
    }
    for (int i = 0; i < LETTERS; i++) putchar(written[i]);
    putchar('\n');
}

int main(int argc, char **argv)
{
    const int epochs = argc > 1 ? atoi(argv[1]) : 30;
    ed_set_seed(2);

    /* Every excerpt of the text, and what follows each of its letters: [excerpts, LENGTH] both. */
    ed_tensor *all = ed_cast(ed_constant_of(ED_UINT8, text, ED_SHAPE(LETTERS)), ED_INT32);
    ed_tensor *starts = ed_reshape(ed_range(0, LETTERS - LENGTH), ED_SHAPE(-1, 1));
    ed_tensor *places = ed_cast(ed_add(starts, ed_range(0, LENGTH)), ED_INT32);
    ed_tensor *excerpts = ed_gather(all, places), *following = ed_gather(all, ed_add(places, 1));

    ed_layer *model = transformer();
    printf("%d letters, %lld weights\n", LETTERS, (long long)ed_layer_count_params(model));
    ed_model_compile(model,
                     .optimizer = ed_optimizer_adam(.learning_rate = 3e-3, .global_clipnorm = 1),
                     .loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true),
                     .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(.name = "right")));
    ed_model_fit(model, excerpts, following, .epochs = epochs, .batch_size = BATCH, .verbose = 2);
    ed_history *reached = ed_model_evaluate(model, excerpts, following);
    printf("accuracy of the next letter: %.1f %%\n", 100 * ed_history_last(reached, "right"));
    write_on(model, all);
    if (ed_failed()) return fprintf(stderr, "text_transformer: %s\n", ed_error()), 1;
    return 0;
}
