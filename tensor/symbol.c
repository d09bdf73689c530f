#include "tensor/core.h"

static void symbol_destroy(void *object)
{
    symbol *s = object;
    ed_release(s->examples[0]);
    ed_release(s->examples[1]);
    ed_release(s->node);
    memory_count_tensor(-1);
    memory_free(s);
}

const object_class tensor_symbol_class = {.name = "tensor", .destroy = symbol_destroy};

/* It looks like the first tensor, whose buffer stays as long as the symbol holds that. */
ed_tensor *tensor_symbol(ed_tensor *first, ed_tensor *second, struct symbol_node *node, int index)
{
    symbol *s = first && second ? object_new(&tensor_symbol_class, sizeof *s) : NULL;
    if (!s) {
        ed_release(first);
        ed_release(second);
        return NULL;
    }
    const ed_object header = s->base.object;
    s->base = *first;
    s->base.object = header;
    s->base.id = tensor_new_id();
    s->base.flags |= TENSOR_SYMBOLIC;
    s->examples[0] = first;
    s->examples[1] = second;
    for (int d = 0; d < first->rank; d++)
        s->open[d] = first->shape[d] == second->shape[d] ? first->shape[d] : -1;
    s->node = ed_retain(node);
    s->index = index;
    memory_count_tensor(1);
    return &s->base;
}
