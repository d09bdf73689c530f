/*
 * Models described by what is done with their inputs, as Keras' functional models.
 *
 *     ed_tensor *image = ed_input(ED_SHAPE(28, 28)), *table = ed_input(ED_SHAPE(10));
 *     ed_tensor *a = ed_forward(ed_layer_flatten(), image);
 *     ed_tensor *both = ed_concat(ed_list_of(a, table), .axis = 1);
 *     ed_tensor *h = ed_relu(ed_forward(ed_layer_dense(64), both));
 *     ed_layer *model = ed_model(ed_list_of(image, table), ed_forward(ed_layer_dense(1), h));
 *
 * What ed_input returns is a symbolic tensor: it has a dtype and a shape but no elements, and so
 * has what layers and ops make of it. Its first size is that of the batch, which is open: -1. A
 * layer may be called several times, on other tensors: its weights are shared.
 *
 * Ops that change variables, and those whose result's shape depends on elements, can't be part of a
 * description; a layer of one's own may use them. An operand that is no symbol is held as it is:
 * what a layer made of a plain tensor is a constant. What an op reads of a variable is read again
 * at each call of the model, but only variables of layers are weights of the model, to be trained
 * and saved.
 *
 * Several threads may not make models of the same symbolic tensors or layers at the same time.
 */
#ifndef EDDY_NN_GRAPH_H
#define EDDY_NN_GRAPH_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options of ed_input. */
#define ED_INPUT_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the elements")                                  \
    FIELD(T, STRING, name, NULL, ED_ANY, "default: input_layer, made unique in its model")         \
    FIELD(T, INT, batch_size, 0, ED_AT_LEAST(0), "0: any")
ED_OPTIONS(ed_input_options, ED_INPUT_OPTIONS);

/* A symbolic tensor of the shape with the batch's size in front: ED_SHAPE(28, 28) gives
 * [-1, 28, 28]. A size -1 is open: any. Fails for other negative sizes, for a shape of ED_MAX_RANK
 * sizes or more, and for a name that is empty or contains '/'. */
ed_tensor *ed_input_with(ed_ints shape, const ed_input_options *options);
#define ed_input(shape, ...)                                                                       \
    ED_WITH_OPTIONS(ed_input_with(shape, &ed_options_), ED_INPUT_OPTIONS, ed_input_options,        \
                    __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

/* Whether the tensor is symbolic; false for NULL. */
bool ed_is_symbolic(const ed_tensor *tensor);

/* Options of ed_model. */
#define ED_MODEL_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, STRING, name, NULL, ED_ANY, "default: functional")                                    \
    FIELD(T, BOOL, trainable, true, ED_ANY, "whether its weights are trained")
ED_OPTIONS(ed_model_options, ED_MODEL_OPTIONS);

/*
 * The model that computes the outputs from the inputs, which are symbolic tensors: a layer, whose
 * children are the layers between them. The inputs need not be those of ed_input: what is between
 * two layers of a model can be the input or an output of another, which then shares its layers.
 * ed_model takes a tensor or a list for each; ed_model_with takes lists.
 *
 * The layer takes that many inputs and returns that many outputs. An input must have the dtype and
 * the shape of the description, but for open sizes. The model holds the symbolic tensors. Fails if
 * an output depends on an input that is not among the inputs, if an input is given twice or is a
 * mask, and if two layers were given the same name. An input that no output depends on is taken, as
 * in Keras: the model must be given it, and does nothing with it.
 */
ed_layer *ed_model_with(ed_list *inputs, ed_list *outputs, const ed_model_options *options);
#define ed_model(inputs, outputs, ...)                                                             \
    ED_WITH_OPTIONS(ed_model_with(ED_AS_LIST(inputs), ED_AS_LIST(outputs), &ed_options_),          \
                    ED_MODEL_OPTIONS, ed_model_options,                                            \
                    __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

/* The symbolic tensors that ed_model was given: new lists, which belong to the scope. Fails for a
 * layer that ed_model did not make. */
ed_list *ed_model_inputs(const ed_layer *model);
ed_list *ed_model_outputs(const ed_layer *model);

/* Which input or output of the model has that name, that of ed_input or of the layer or op that
 * makes it; 0 is the first. -1, with ED_NOT_FOUND, if there is none, or more than one. */
int64_t ed_model_input_index(const ed_layer *model, const char *name);
int64_t ed_model_output_index(const ed_layer *model, const char *name);

/* What the layer or input of that name returns in the model, symbolic tensors: a new list, which
 * belongs to the scope. Of a layer with several calls, those of one that the outputs need first.
 * ed_model(ed_model_inputs(m), ed_model_values(m, "dense_2")) is the model up to that layer.
 * ED_NOT_FOUND if there is none of that name. */
ed_list *ed_model_values(const ed_layer *model, const char *layer);

#pragma GCC visibility pop
#endif
