#include "tests/interop/kinds.h"
#include "eddy.h"
#include "tests/reference.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*
 * Layers and optimizers of all kinds: what kinds.py recorded of Keras, gone on with here from the
 * checkpoint that Keras wrote. What differs is printed by reference_differs.
 */

static ed_optimizer *optimizer_of(const reference_case *c)
{
    reference_case of = *c;
    of.json = json_get(c->json, "optimizer");
    return reference_object(&of);
}

static const char *leaf(const ed_tensor *variable)
{
    const char *name = ed_variable_name(variable), *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static ed_list *outputs_of(const reference_case *c, ed_layer *layer, bool training)
{
    return ed_forward(layer, reference_tensors(c, "inputs"), .training = training,
                      .masks = reference_tensors(c, "masks"));
}

static void compare_outputs(reference_case *c, ed_list *got)
{
    const json *expected = json_get(c->json, "outputs");
    for (int64_t i = 0; i < json_count(expected); i++) {
        char what[32];
        snprintf(what, sizeof what, "output %lld", (long long)i);
        reference_compare(c, what, ed_list_get(got, i), json_at(expected, i));
    }
}

/* Keras' weights, each beside the first of that name that is left: the order of an inner layer's
 * weights and of the outer one's own differs. */
static void compare_weights(reference_case *c, ed_list *all)
{
    enum { MOST = 64 };
    const json *expected = json_get(c->json, "weights");
    bool used[MOST] = {false};
    const int64_t n = ed_list_size(all);
    assert_true(n <= MOST);
    if (n != json_count(expected)) reference_differs(c, "the number of weights");
    for (int64_t i = 0; i < json_count(expected); i++) {
        const char *name = json_text(json_get(json_at(expected, i), "name"));
        int64_t k = 0;
        while (k < n && (used[k] || strcmp(leaf(ed_list_get(all, k)), name) != 0)) k++;
        if (k == n) {
            reference_differs(c, "there is no weight %s", name);
            continue;
        }
        used[k] = true;
        reference_compare(c, name, ed_list_get(all, k), json_get(json_at(expected, i), "value"));
    }
}

/* The mean square of the distances from the targets, summed over the outputs that are floats; and
 * the layer's own losses. */
static ed_tensor *loss_of(const reference_case *c, ed_layer *layer, bool training)
{
    ed_list *outputs = outputs_of(c, layer, training), *targets = reference_tensors(c, "targets");
    ed_tensor *loss = ed_zeros(ED_SHAPE());
    for (int64_t i = 0, n = 0; i < ed_list_size(outputs); i++) {
        ed_tensor *y = ed_list_get(outputs, i);
        if (ed_dtype_of(y) == ED_FLOAT32)
            loss = ed_add(loss, ed_reduce_mean(ed_square(ed_sub(y, ed_list_get(targets, n++)))));
    }
    ed_list *losses = ed_layer_losses(layer);
    for (int64_t i = 0; i < ed_list_size(losses); i++) loss = ed_add(loss, ed_list_get(losses, i));
    return loss;
}

static void train(reference_case *c, ed_layer *layer, ed_optimizer *optimizer)
{
    enum { MOST = 16 };
    const bool training = json_bool(json_get(c->json, "training"));
    const json *expected = json_get(c->json, "losses");
    const int64_t steps = json_int(json_at(json_get(expected, "shape"), 0));
    double losses[MOST];
    assert_true(steps <= MOST);
    for (int64_t i = 0; i < steps; i++) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = loss_of(c, layer, training);
        ed_minimize(optimizer, tape, loss, layer);
        losses[i] = ed_item(loss);
    }
    if (steps)
        reference_compare(c, "losses", ed_cast(ed_constant(losses, ED_SHAPE(steps)), ED_FLOAT32),
                          expected);
}

/* Names that Keras' file lacks. */
static ed_strings renames_of(const reference_case *c)
{
    enum { MOST = 64 };
    static const char *names[MOST];
    const json *renames = json_get(c->json, "renames");
    assert_true(json_count(renames) <= MOST);
    for (int64_t i = 0; i < json_count(renames); i++) names[i] = json_text(json_at(renames, i));
    return (ed_strings){names, json_count(renames)};
}

/* `built`: the layer has its weights when the checkpoint is restored; else those wait. */
static void go_on(reference_case *c, bool built)
{
    const int64_t before = c->differences;
    ed_layer *layer = reference_object(c);
    ed_optimizer *optimizer = optimizer_of(c);
    if (!layer || !optimizer) return;
    if (built) outputs_of(c, layer, false);
    ed_checkpoint *checkpoint = ed_checkpoint("model", layer, "optimizer", optimizer);
    ed_restoration *restoration = ed_checkpoint_read(
        checkpoint, json_text(json_get(c->json, "theirs")), .renames = renames_of(c));
    compare_outputs(c, outputs_of(c, layer, false));
    train(c, layer, optimizer);
    compare_weights(c, ed_layer_variables(layer));
    ed_restoration_assert_consumed(restoration);
    ed_checkpoint_write(checkpoint, json_text(json_get(c->json, "ours")));
    if (ed_failed() || c->differences > before)
        reference_differs(c, built ? "weights there" : "weights made later");
}

void kinds(char **args)
{
    reference_file *file = reference_open(args[0], "interop", args[1]);
    for (int64_t i = 0; i < reference_count(file); i++) {
        reference_case c;
        reference_get(file, i, &c);
        for (int built = 1; built >= 0; built--) {
            ED_SCOPE;
            go_on(&c, built);
        }
        printf("done %s\n", c.name);
    }
    reference_close(file);
}
