#include "fuzz/values.h"
#include "fuzz/fuzz.h"
#include "train/checkpoint.h"
#include "train/object_graph.h"

static void add_cell(io_digester *d, const graph_node *node)
{
    const ed_state *cell = &node->state;
    size_t bytes = dtype_size(cell->dtype) * (size_t)(cell->count < 0 ? 1 : cell->count);
    void *value = memory_alloc(bytes);
    fuzz_claim(value, "no memory");
    cell->get(node->object, value);
    io_digest_add(d, value, bytes);
    memory_free(value);
}

static void add_variable(io_digester *d, const ed_tensor *v)
{
    const ed_tensor *t = tensor_read(v);
    io_digest_add(d, t->data, (size_t)t->size * dtype_size(t->dtype));
}

io_digest fuzz_values(const ed_checkpoint *checkpoint)
{
    graph g;
    io_digester *d = io_digest_begin();
    fuzz_claim(d && checkpoint_graph(checkpoint, true, &g), "the objects have no graph");
    for (int i = 0; i < g.n_nodes; i++) {
        if (g.nodes[i].kind == GRAPH_VARIABLE) add_variable(d, g.nodes[i].object);
        if (g.nodes[i].kind == GRAPH_CELL) add_cell(d, &g.nodes[i]);
    }
    io_digest digest = io_digest_end(d);
    memory_free(d);
    graph_free(&g);
    return digest;
}
