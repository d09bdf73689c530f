#include "io/bytes.h"
#include "model/keras_parts.h"
#include "model/model_core.h"
#include "nn/functional.h"
#include <stdarg.h>
#include <string.h>

/*
 * Models as tables and as graphs. Both are made from a list of rows: the layers of a model, or, of
 * one that was made by ed_model, its operations, with what is connected to what.
 */

typedef struct row {
    const ed_layer *layer;   /* NULL: an input or an op */
    const symbol_node *node; /* NULL: not an operation of the model itself */
    int calls;               /* the index of its first call, as in functional_operation */
    int depth;               /* of the models around it */
} row;

typedef struct rows {
    const functional *f; /* NULL: not made by ed_model */
    row *items;
    int64_t n;
} rows;

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Whether the layer is shown by the layers in it: a model, or one's own layer with children. */
static bool is_model(const ed_layer *layer)
{
    return layer->class->in_order || layer_functional(layer) ||
           (!layer->class->kind.fields && layer->n_children);
}

static int64_t count_rows(const ed_layer *layer, bool nested)
{
    const functional *f = layer_functional(layer);
    int64_t n = f ? f->n_operations : layer->n_children;
    for (int64_t i = 0; nested && i < layer->n_children; i++)
        if (is_model(layer->children[i])) n += count_rows(layer->children[i], true);
    return n;
}

static void put_rows(rows *r, const ed_layer *layer, bool nested, int depth)
{
    const functional *f = layer_functional(layer);
    const int64_t n = f ? f->n_operations : layer->n_children;
    for (int64_t i = 0; i < n; i++) {
        const ed_layer *child = f ? f->operations[i].layer : layer->children[i];
        r->items[r->n++] = f ? (row){child, f->operations[i].node, f->operations[i].calls, depth}
                             : (row){child, .depth = depth};
        if (nested && child && is_model(child)) put_rows(r, child, true, depth + 1);
    }
}

/* The rows of the model; a layer that is none is a row itself. The scope has the memory; false
 * without it. */
static bool find_rows(rows *r, const ed_layer *model, bool nested)
{
    const bool is_one = is_model(model);
    *r = (rows){.f = layer_functional(model)};
    const int64_t n = is_one ? count_rows(model, nested) : 1;
    if (!(r->items = ed_scope_alloc((size_t)(n + 1) * sizeof *r->items))) return false;
    if (is_one)
        put_rows(r, model, nested, 0);
    else
        r->items[r->n++] = (row){.layer = model};
    return true;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static const char *row_name(const row *r)
{
    return r->layer ? r->layer->name : functional_name(r->node);
}

/* The class in Keras' words; of ops and layers of one's own the name of the kind. */
static const char *class_name_of(const row *r, char *room)
{
    if (!r->layer && !r->node->op) return "InputLayer";
    const keras_op *op = r->layer ? NULL : keras_op_of(r->node);
    if (!r->layer) return op ? op->class_name : r->node->op->name;
    if (layer_functional(r->layer)) return "Functional";
    return keras_class_of(&r->layer->class->kind, room) ? room : r->layer->class->kind.name;
}

static void put_class(io_buffer *b, const row *r)
{
    char room[KERAS_NAME];
    io_put_format(b, "%s", class_name_of(r, room));
}

static void put_sizes(io_buffer *b, int rank, const int64_t *shape, const int64_t *other)
{
    io_put_format(b, "(");
    for (int d = 0; d < rank; d++) {
        if (d) io_put_format(b, ", ");
        if (shape[d] < 0 || shape[d] != other[d])
            io_put_format(b, "None");
        else
            io_put_format(b, "%lld", (long long)shape[d]);
    }
    io_put_format(b, rank == 1 ? ",)" : ")");
}

/* The outputs of an operation, or the first output of a layer, whose first size is the batch's. */
static void put_output(io_buffer *b, const row *r)
{
    if (r->node) {
        const int n = r->node->n_outputs;
        if (n > 1) io_put_format(b, "[");
        for (int i = 0; i < n; i++) {
            const symbol_form *form = r->node->forms + i;
            if (i) io_put_format(b, ", ");
            put_sizes(b, form->rank, form->shapes[0], form->shapes[1]);
        }
        if (n > 1) io_put_format(b, "]");
        return;
    }
    if (!r->layer->output_dtype) return io_put_format(b, "?");
    int64_t shape[ED_MAX_RANK];
    memcpy(shape, r->layer->output_shape, sizeof shape);
    if (r->layer->output_rank) shape[0] = -1;
    put_sizes(b, r->layer->output_rank, shape, shape);
}

/* 1,234,567 */
static void put_count(io_buffer *b, int64_t n)
{
    if (n >= 1000) {
        put_count(b, n / 1000);
        io_put_format(b, ",%03d", (int)(n % 1000));
    } else {
        io_put_format(b, "%d", (int)n);
    }
}

static bool is_unbuilt(const ed_layer *layer)
{
    return layer->class->build && !layer->built;
}

static void put_parameters(io_buffer *b, const row *r)
{
    int64_t n = 0;
    ed_list *weights = r->layer ? layer_weights(r->layer) : NULL;
    for (int64_t i = 0; weights && i < weights->size; i++) n += weights->items[i]->size;
    ed_release(weights);
    b->failed |= r->layer && !weights;
    put_count(b, n);
    if (r->layer && is_unbuilt(r->layer)) io_put_format(b, " (unbuilt)");
}

/* "dense_1[0][0]": output 0 of the layer's first call. */
static void put_source(io_buffer *b, const functional *f, const symbol *s)
{
    io_put_format(b, "%s[%d][%d]", functional_name(s->node), functional_call_number(f, s->node),
                  s->index);
}

/* All rows are as wide as the widest, so of many sources some are shown, and the number of the
 * others. */
static void put_sources(io_buffer *b, const functional *f, const row *r)
{
    enum { MOST = 32 };
    int64_t n = 0;
    for (int i = r->node && !r->depth ? r->calls : -1; i >= 0; i = f->calls[i].next) {
        for (int k = 0; k < f->nodes[i]->n_inputs; k++) {
            const ed_tensor *input = f->nodes[i]->inputs[k];
            if (!ed_is_symbolic(input) || n++ >= MOST) continue;
            if (n > 1) io_put_format(b, ", ");
            put_source(b, f, (const symbol *)input);
        }
    }
    if (n > MOST) io_put_format(b, ", and %lld more", (long long)(n - MOST));
    if (!n) io_put_format(b, "-");
}

/* ---- The table ------------------------------------------------------------------------------- */

enum { LAYER_COLUMN, OUTPUT_COLUMN, PARAMETER_COLUMN, TRAINABLE_COLUMN, SOURCE_COLUMN, COLUMNS };

static const char *const titles[COLUMNS] = {
    "Layer (type)", "Output Shape", "Param #", "Trainable", "Connected to",
};

typedef struct table {
    const rows *rows;
    bool shown[COLUMNS];
    int widths[COLUMNS];
} table;

static void put_cell(io_buffer *b, const table *t, int64_t i, int column)
{
    const row *r = i < 0 ? NULL : t->rows->items + i;
    if (!r) return io_put_format(b, "%s", titles[column]);
    switch (column) {
    case LAYER_COLUMN:
        if (r->depth) io_put_format(b, "%*s└ ", 3 * r->depth, "");
        io_put_format(b, "%s (", row_name(r));
        put_class(b, r);
        return io_put_format(b, ")");
    case OUTPUT_COLUMN: return put_output(b, r);
    case PARAMETER_COLUMN: return put_parameters(b, r);
    case TRAINABLE_COLUMN:
        return io_put_format(b, "%s", !r->layer ? "-" : r->layer->frozen ? "N" : "Y");
    default: return put_sources(b, t->rows->f, r);
    }
}

/* Of UTF-8: the bytes that begin a character. */
static int width_of(const uint8_t *s, size_t size)
{
    int width = 0;
    for (size_t i = 0; i < size; i++) width += (s[i] & 0xc0) != 0x80;
    return width;
}

static void put_padded(io_buffer *b, const table *t, int64_t i, int column)
{
    io_buffer cell = {0};
    put_cell(&cell, t, i, column);
    const int gap = t->widths[column] - width_of(cell.data, cell.size);
    const int before = column == PARAMETER_COLUMN ? gap : 0;
    io_put_format(b, " %*s", before, "");
    io_put(b, cell.data, cell.size);
    io_put_format(b, "%*s ", gap - before, "");
    b->failed |= cell.failed;
    io_buffer_free(&cell);
}

static bool find_widths(table *t)
{
    bool failed = false;
    for (int column = 0; column < COLUMNS; column++)
        for (int64_t i = -1; i < t->rows->n; i++) {
            io_buffer cell = {0};
            put_cell(&cell, t, i, column);
            const int width = width_of(cell.data, cell.size);
            if (width > t->widths[column]) t->widths[column] = width;
            failed |= cell.failed;
            io_buffer_free(&cell);
            if (!t->shown[column]) break;
        }
    return !failed;
}

/* A line between rows: its left end, its bar, its crossing, its right end. */
static void put_line(io_buffer *b, const table *t, const char *const marks[4])
{
    bool first = true;
    for (int column = 0; column < COLUMNS; column++) {
        if (!t->shown[column]) continue;
        io_put_format(b, "%s", marks[first ? 0 : 2]);
        for (int i = 0; i < t->widths[column] + 2; i++) io_put_format(b, "%s", marks[1]);
        first = false;
    }
    io_put_format(b, "%s\n", marks[3]);
}

static void put_row(io_buffer *b, const table *t, int64_t i)
{
    const char *bar = i < 0 ? "┃" : "│";
    for (int column = 0; column < COLUMNS; column++) {
        if (!t->shown[column]) continue;
        io_put_format(b, "%s", bar);
        put_padded(b, t, i, column);
    }
    io_put_format(b, "%s\n", bar);
}

static void put_table(io_buffer *b, const table *t)
{
    put_line(b, t, (const char *const[4]){"┏", "━", "┳", "┓"});
    put_row(b, t, -1);
    put_line(b, t, (const char *const[4]){"┡", "━", "╇", "┩"});
    for (int64_t i = 0; i < t->rows->n; i++) {
        if (i) put_line(b, t, (const char *const[4]){"├", "─", "┼", "┤"});
        put_row(b, t, i);
    }
    put_line(b, t, (const char *const[4]){"└", "─", "┴", "┘"});
}

/* " Total params: 784 (3.06 KB)" */
static void put_sum(io_buffer *b, const char *title, int64_t count, int64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1024 && unit < 5; unit++) size /= 1024;
    io_put_format(b, " %s params: ", title);
    put_count(b, count);
    io_put_format(b, " (%.2f %s)\n", size, units[unit]);
}

static bool put_sums(io_buffer *b, ed_layer *model)
{
    int64_t count[2] = {0}, bytes[2] = {0};
    ed_list *weights = scope_give(layer_weights(model));
    if (!weights) return false;
    for (int64_t i = 0; i < weights->size; i++) {
        const ed_tensor *w = weights->items[i];
        const bool trained = ed_variable_is_trainable(w);
        count[trained] += w->size;
        bytes[trained] += w->size * (int64_t)dtype_size(w->dtype);
    }
    put_sum(b, "Total", count[0] + count[1], bytes[0] + bytes[1]);
    put_sum(b, "Trainable", count[1], bytes[1]);
    put_sum(b, "Non-trainable", count[0], bytes[0]);
    return true;
}

/* The text, for the scope; frees the buffer. */
static const char *give_text(io_buffer *b, bool ok)
{
    io_put_u8(b, 0);
    char *copy = ok && !b->failed ? text_copy((const char *)b->data) : NULL;
    io_buffer_free(b);
    return copy ? text_give(copy) : NULL;
}

const char *ed_model_summary_with(ed_layer *model, const ed_summary_options *options)
{
    if (NULL_GIVEN("model_summary", model)) return NULL;
    if (!(options = CHECKED_OPTIONS("model_summary", ED_SUMMARY_OPTIONS, options))) return NULL;
    io_buffer b = {0};
    bool ok;
    {
        ED_SCOPE;
        rows r;
        ok = find_rows(&r, model, options->expand_nested);
        if (ok) {
            table t = {&r, {true, true, true, options->show_trainable, r.f}, {0}};
            ok = find_widths(&t);
            io_put_format(&b, "Model: \"%s\"\n", model->name);
            put_table(&b, &t);
            ok = ok && put_sums(&b, model);
        }
    }
    return give_text(&b, ok);
}

/* ---- The graph ------------------------------------------------------------------------------- */

/* As the inside of a string of DOT. */
static void put_quoted(io_buffer *b, const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (s[i] == '"' || s[i] == '\\') io_put_u8(b, '\\');
        io_put_u8(b, (uint8_t)s[i]);
    }
}

static void put_box(io_buffer *b, const rows *r, int64_t i, bool shapes)
{
    io_buffer label = {0};
    const row *at = r->items + i;
    io_put_format(&label, "%s (", row_name(at));
    put_class(&label, at);
    io_put_format(&label, ")");
    io_put_format(b, "  n%lld [label=\"", (long long)i);
    put_quoted(b, (const char *)label.data, label.size);
    label.size = 0;
    if (shapes) put_output(&label, at);
    if (label.size) io_put_format(b, "\\n");
    put_quoted(b, (const char *)label.data, label.size);
    io_put_format(b, "\"];\n");
    b->failed |= label.failed;
    io_buffer_free(&label);
}

/* The row of the node's operation: there is one for each. */
static int64_t row_of(const rows *r, const symbol_node *node)
{
    const functional_call *call = functional_call_of(r->f, node);
    return call ? call->operation : -1;
}

static void put_edges(io_buffer *b, const rows *r)
{
    for (int i = 0; i < r->f->n_nodes; i++) {
        const symbol_node *node = r->f->nodes[i];
        const int64_t to = row_of(r, node);
        for (int k = 0; k < node->n_inputs; k++) {
            const ed_tensor *input = node->inputs[k];
            const int64_t from =
                ed_is_symbolic(input) ? row_of(r, ((const symbol *)input)->node) : -1;
            if (from >= 0 && to >= 0)
                io_put_format(b, "  n%lld -> n%lld;\n", (long long)from, (long long)to);
        }
    }
}

const char *ed_model_to_dot_with(ed_layer *model, const ed_dot_options *options)
{
    if (NULL_GIVEN("model_to_dot", model)) return NULL;
    if (!(options = CHECKED_OPTIONS("model_to_dot", ED_DOT_OPTIONS, options))) return NULL;
    io_buffer b = {0};
    bool ok;
    {
        ED_SCOPE;
        rows r;
        ok = find_rows(&r, model, false);
        io_put_format(&b, "digraph \"");
        put_quoted(&b, model->name, strlen(model->name));
        io_put_format(&b, "\" {\n  rankdir=%s;\n  node [shape=box];\n",
                      options->left_to_right ? "LR" : "TB");
        for (int64_t i = 0; ok && i < r.n; i++) put_box(&b, &r, i, options->show_shapes);
        if (ok && r.f) put_edges(&b, &r);
        for (int64_t i = 1; ok && model->class->in_order && i < r.n; i++)
            io_put_format(&b, "  n%lld -> n%lld;\n", (long long)i - 1, (long long)i);
        io_put_format(&b, "}\n");
    }
    return give_text(&b, ok);
}
