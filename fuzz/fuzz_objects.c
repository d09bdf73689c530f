#include "fuzz/fuzz.h"
#include "fuzz/values.h"
#include "io/bundle.h"
#include "train/object_graph.h"
#include "train/train.h"
#include <stdio.h>
#include <string.h>

/*
 * The input is the graph of objects in a checkpoint. It is read, and then stands in a file whose
 * values are in order, from which a program is restored that has all a graph can lead to: a layer
 * with its weights, one that waits for them, lists, an optimizer with slots, a number.
 */

static bool look_at_graph(const uint8_t *data, size_t size)
{
    io_buffer message = {0};
    file_graph f;
    io_put(&message, data, size);
    if (!fuzz_given(objects_read(&f, &message, "fuzz") ? data : NULL, "objects_read")) return false;
    for (int i = 0; i < f.n_nodes; i++) {
        const file_node *n = &f.nodes[i];
        const char *key = objects_key(&f, i);
        fuzz_claim(!key || strlen(key) <= size, "a key is longer than the message");
        for (int k = 0; k < n->children; k++) {
            int to = objects_child(&f, i, f.children[n->child + k].name);
            fuzz_claim(to >= 0 && to < f.n_nodes, "child %d of node %d is not found", k, i);
        }
    }
    objects_at(&f, "model/dense/kernel");
    objects_free(&f);
    return true;
}

/* ---- The program ----------------------------------------------------------------------------- */

typedef struct program {
    ed_layer *built, *waiting;
    ed_optimizer *adam;
    int64_t counter;
    ed_checkpoint *checkpoint;
} program;

/* `p` stays where it is: its counter is part of the checkpoint. */
static void make(program *p)
{
    p->built = ed_layer_dense(2, .name = "dense");
    p->waiting = ed_layer_dense(2, .name = "dense");
    p->adam = ed_optimizer_adam();
    p->counter = 7;
    ed_tensor *x = ed_ones(ED_SHAPE(1, 2)), *v = ed_variable(ed_ones(ED_SHAPE(2)), .name = "v");
    ed_forward(p->built, x);
    ed_apply_gradients(p->adam, ed_list_of(ed_ones(ED_SHAPE(2))), ed_list_of(v));
    p->checkpoint = ed_checkpoint("model", p->built, "late", p->waiting, "optimizer", p->adam,
                                  "list", ed_list_of(v), "step", ed_counter(&p->counter));
    fuzz_claim(p->checkpoint && !ed_failed(), "the program can't be made");
}

/* What waits is taken where it can be. */
static void go_on(program *p)
{
    ed_forward(p->waiting, ed_ones(ED_SHAPE(1, 2)));
    ed_clear_error();
    ed_list *weights = ed_layer_trainable_variables(p->waiting);
    if (weights && ed_list_size(weights) == 2)
        ed_apply_gradients(p->adam, ed_list_of(ed_ones(ED_SHAPE(2, 2)), ed_ones(ED_SHAPE(2))),
                           weights);
    ed_clear_error();
}

static bundle *values;

__attribute__((destructor)) static void close_values(void)
{
    ed_release(values);
}

/* Values of a program of which every part is made, under their keys; kept open. */
static const bundle *all_there_is(void)
{
    if (values) return values;
    ED_SCOPE;
    char prefix[128];
    program p;
    snprintf(prefix, sizeof prefix, "%s/all", fuzz_folder());
    make(&p);
    go_on(&p);
    fuzz_claim(ed_checkpoint_write(p.checkpoint, prefix), "the values can't be written");
    values = bundle_open("fuzz", prefix);
    fuzz_claim(values, "the values can't be read");
    return values;
}

/* The same values, and the graph given. */
static void write_file(const char *prefix, io_span message)
{
    const bundle *b = all_there_is();
    bundle_writer *w = bundle_create("fuzz", prefix);
    for (int64_t i = 0; i < bundle_count(b); i++) {
        const bundle_entry *e = bundle_at(b, i);
        if (e->dtype == IO_STRING) continue;
        ed_tensor *t = bundle_tensor(b, e);
        bundle_add(w, e->name, t);
        ed_release(t);
    }
    bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1);
    fuzz_claim(bundle_finish(w), "the file can't be written");
}

static void restore(const char *prefix, bool partial)
{
    ED_SCOPE;
    program p;
    make(&p);
    io_digest before = fuzz_values(p.checkpoint);
    ed_restoration *r = ed_checkpoint_read(p.checkpoint, prefix, .partial = partial);
    if (!fuzz_given(r, "read")) {
        io_digest after = fuzz_values(p.checkpoint);
        fuzz_claim(before.low == after.low && before.high == after.high,
                   "a restore that failed changed something");
        return;
    }
    fuzz_claim(ed_restoration_report(r), "no report");
    go_on(&p);
    fuzz_claim(ed_restoration_report(r), "no report afterwards");
    ed_restoration_assert_consumed(r);
    ed_restoration_assert_existing_objects_matched(r);
    ed_restoration_assert_nontrivial_match(r);
    ed_restoration_expect_partial(r);
    ed_clear_error();
}

void fuzz_objects(const uint8_t *data, size_t size)
{
    all_there_is();
    if (!look_at_graph(data, size)) return;
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/x", fuzz_folder());
    write_file(prefix, (io_span){data, size});
    restore(prefix, false);
    restore(prefix, true);
}
