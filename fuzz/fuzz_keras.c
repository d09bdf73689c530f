#include "fuzz/fuzz.h"
#include "model/keras_file.h"
#include <math.h>
#include <string.h>

/*
 * The input is the configuration in a .keras file. It is read, compiled as it says, and where that
 * gives a model, what is written of it is read again and written again: the same. Then it is given
 * zeros. The JSON that ed_to_json writes is tried beside it.
 */

/* Numbers up to SMALL are sizes that make no large model; those from HUGE on must be refused, or
 * are no sizes. What lies between may rightfully take minutes. */
static const double SMALL = 20, HUGE_ONES = 1e12;

static bool takes_little(const json_node *node)
{
    const double size = fabs(node->number);
    if (node->type == JSON_NUMBER && size > SMALL && size < HUGE_ONES) return false;
    for (const json_node *e = node->first; e; e = e->next)
        if (!takes_little(e)) return false;
    return true;
}

/* The tree of a copy. */
static const json_node *parse(const void *json, size_t size)
{
    char *bytes = ed_scope_alloc(size + 1);
    if (size) memcpy(bytes, json, size);
    bytes[size] = 0;
    const json_node *node = json_parse("fuzz", bytes, size);
    if (node && takes_little(node)) return node;
    ed_clear_error();
    return NULL;
}

static ed_layer *make(const json_node *config, keras_input *input)
{
    ed_layer *model = keras_make_model("fuzz", config, input);
    if (!fuzz_given(model, "make_model")) return NULL;
    keras_compile("fuzz", json_member(config, "compile_config"), model);
    ed_clear_error();
    return model;
}

static void forward(ed_layer *model, const keras_input *input)
{
    int64_t sizes[ED_MAX_RANK], elements = 1;
    for (int i = 0; i < input->rank; i++) {
        sizes[i] = input->shape[i] < 0 ? 2 : input->shape[i];
        if (__builtin_mul_overflow(elements, sizes[i], &elements)) return;
    }
    if (!input->given || elements > 1 << 12) return;
    ed_tensor *x = ed_zeros(((ed_ints){sizes, input->rank}), .dtype = input->dtype);
    ed_forward(model, x);
    ed_clear_error();
}

/* The model that a text describes, of which the next text is written; NULL without one. */
static ed_layer *rewrite(io_buffer *next, const void *json, size_t size, keras_input *input)
{
    const json_node *config = parse(json, size);
    ed_layer *model = config ? make(config, input) : NULL;
    if (model && !fuzz_given(keras_put_model("fuzz", next, model) ? next : NULL, "put_model"))
        io_buffer_free(next);
    return model;
}

/* What is written first may have names for what the input left out. */
static void look_at_model(const uint8_t *data, size_t size)
{
    keras_input input, same;
    io_buffer texts[3] = {{0}};
    ed_layer *model = rewrite(&texts[0], data, size, &input);
    for (int i = 0; i < 2 && texts[i].size; i++)
        fuzz_claim(!parse(texts[i].data, texts[i].size) ||
                       rewrite(&texts[i + 1], texts[i].data, texts[i].size, &same),
                   "what was written can't be read");
    fuzz_claim(!texts[2].size || (texts[1].size == texts[2].size &&
                                  !memcmp(texts[1].data, texts[2].data, texts[1].size)),
               "what was written and read is another model");
    if (model) forward(model, &input);
    for (int i = 0; i < 3; i++) io_buffer_free(&texts[i]);
}

static void look_at_object(const uint8_t *data, size_t size)
{
    const json_node *node = parse(data, size);
    char *json = ed_scope_alloc(size + 1);
    if (size) memcpy(json, data, size);
    json[size] = 0;
    void *object = node ? ed_from_json(json) : NULL;
    if (!node || !fuzz_given(object, "from_json")) return;
    const char *first = ed_to_json(object);
    if (!fuzz_given(first, "to_json")) return;
    void *copy = ed_from_json(first);
    const char *again = copy ? ed_to_json(copy) : NULL;
    fuzz_claim(again && !strcmp(first, again), "%s was written and read, and is %s", first,
               again ? again : "refused");
}

void fuzz_keras(const uint8_t *data, size_t size)
{
    fuzz_allow(64 << 20);
    look_at_model(data, size);
    look_at_object(data, size);
}
