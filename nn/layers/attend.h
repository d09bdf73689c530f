/* What layers of attention share. */
#ifndef EDDY_NN_LAYERS_ATTEND_H
#define EDDY_NN_LAYERS_ATTEND_H

#include "nn/layer_core.h"

/* The softmax of scores [..., targets, sources], of sources that are seen: where `mask`, bool that
 * broadcasts to the scores, or NULL, is true, and with `causal` up to the target's number. */
ed_tensor *attend_weights(ed_tensor *scores, ed_tensor *mask, bool causal);

#endif
