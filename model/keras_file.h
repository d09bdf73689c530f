/*
 * The parts of Keras' .keras files: the configuration of a model and of what compile gave it, as
 * JSON, and the values of its variables, as HDF5. model/keras_file.c puts them together.
 */
#ifndef EDDY_MODEL_KERAS_FILE_H
#define EDDY_MODEL_KERAS_FILE_H

#include "io/hdf5.h"
#include "io/json_tree.h"
#include "model/keras_names.h"
#include "model/model_core.h"
#include "optim/optimizer.h"

/* Objects in objects; a layer in a layer is 4 brackets of JSON, which may be 128 deep. */
enum { KERAS_DEEPEST = 30 };

/* ---- keras_write.c --------------------------------------------------------------------------- */

/* Writes the model as a Keras object, with what compile gave it; false, with an error that begins
 * with `who`, for what Keras' files cannot have. */
bool keras_put_model(const char *who, io_buffer *b, ed_layer *model);

/* ---- keras_read.c ---------------------------------------------------------------------------- */

/* What a configuration says of the input of a model. */
typedef struct keras_input {
    bool given;
    int rank;
    int64_t shape[ED_MAX_RANK]; /* -1: any */
    ed_dtype dtype;
} keras_input;

/* An object of the family that a Keras object describes, in the scope; NULL, with an error that
 * begins with `who`. */
void *keras_make(const char *who, const char *family, const json_node *node);

/* The model likewise, and the input it was built for. */
ed_layer *keras_make_model(const char *who, const json_node *node, keras_input *input);

/* Compiles the model as compile_config says; true, without an error, if that is empty. */
bool keras_compile(const char *who, const json_node *config, ed_layer *model);

/* ---- keras_weights.c ------------------------------------------------------------------------- */

/* Writes, or sets, the values of all variables of the model and, where it is compiled, of its
 * optimizer. */
bool keras_write_weights(h5_file *file, ed_layer *model);
bool keras_read_weights(const h5_file *file, const char *name, ed_layer *model);
bool keras_write_optimizer(h5_file *file, ed_layer *model);
bool keras_read_optimizer(const h5_file *file, const char *name, ed_layer *model);

#endif
