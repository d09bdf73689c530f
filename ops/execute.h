/*
 * The dispatcher's private side: built-in definitions, small helpers for the families.
 */
#ifndef EDDY_OPS_EXECUTE_H
#define EDDY_OPS_EXECUTE_H

#include "ops/op.h"
#include "tensor/core.h"
#include "tensor/hard.h"
#include "tensor/schema_core.h"

/*
 * Puts a definition into the table: ED_OP(exp) = {.name = "exp", ...}; the linker gathers them. The
 * definition is ed_op_exp.
 */
#define ED_OP(symbol)                                                                              \
    extern const ed_op ed_op_##symbol;                                                             \
    static const ed_op *const op_entry_##symbol                                                    \
        __attribute__((used, section("ed_ops"), aligned(sizeof(void *)))) = &ed_op_##symbol;       \
    __attribute__((visibility("hidden"))) const ed_op ed_op_##symbol

/* What the gradient of a definition needs, behind its operands: the first one, the first two, the
 * result. */
#define SAVES_X  .operands[0].saved = true
#define SAVES_AB .operands[0].saved = true, .operands[1].saved = true
#define SAVES_Y  .results = ED_RESULTS({.name = "y", .saved = true})

/* ed_call_op with the operands spelled out. */
#define CALL_OP(symbol, attrs, ...)                                                                \
    ed_call_op(&ed_op_##symbol, (ed_tensor *const[]){__VA_ARGS__},                                 \
               sizeof((ed_tensor *const[]){__VA_ARGS__}) / sizeof(ed_tensor *), attrs)

/* The same without those optional operands at the end that are NULL. */
#define CALL_OP_GIVEN(symbol, attrs, ...)                                                          \
    ops_call_given(&ed_op_##symbol, (ed_tensor *const[]){__VA_ARGS__},                             \
                   sizeof((ed_tensor *const[]){__VA_ARGS__}) / sizeof(ed_tensor *), attrs)
ed_tensor *ops_call_given(const ed_op *op, ed_tensor *const *inputs, int n, const void *attrs);

/* Returns the first output. The others go where the pointers say, one for each (NULL: not wanted),
 * and are NULL on failure. */
ed_tensor *ops_call_into(const ed_op *op, ed_tensor *const *inputs, int n, const void *attrs,
                         ed_tensor **const *others);

/*
 * How often the listeners of the thread differentiate what is called now. Where an op that is
 * faster has no gradient of its own, public ops take its place: in a gradient function if they do
 * so once, in a composition if twice.
 */
int ops_differentiated(void);

/*
 * Whether a tensor of elements may be overwritten in place of making another: nobody else holds it,
 * and nobody hears of what is called now, as a tape that records would have to.
 */
bool ops_is_spare(const ed_tensor *x);

/* x += y, for a spare x and a y of its dtype and shape, contiguous. */
void ops_add_into(ed_tensor *x, const ed_tensor *y);

/* What a call needs as long as it has few operands, few outputs and a small plan. */
enum { OPS_FEW_OUTPUTS = 3 };

/* Each output is a header of some 200 bytes, also if it has no element: more are refused before
 * memory is used. */
enum { OPS_MOST_OUTPUTS = 1 << 24 };

typedef struct ed_call_room {
    ed_tensor *inputs[ED_MAX_OPERANDS], *outputs[OPS_FEW_OUTPUTS];
    max_align_t plan[ED_SMALL_PLAN / sizeof(max_align_t)];
    bool hollow, symbolic; /* an operand has TENSOR_HOLLOW, TENSOR_SYMBOLIC */
} ed_call_room;

/*
 * Begins a call with room for n inputs and for the outputs that the definition says; `attrs` may be
 * NULL for the defaults. false without memory. The end frees the room; the outputs are the
 * caller's.
 */
bool ops_call_begin(ed_call *call, ed_call_room *room, const ed_op *op, ed_tensor *const *operands,
                    int n, const void *attrs);
void ops_call_end(ed_call *call);

/* The number of an op's results, as far as its definition says it. */
static inline int ops_results(const ed_op *op)
{
    if (!op->results) return 1;
    int n = 0;
    while (op->results[n].name) n++;
    return n;
}

/* Whether it is the library's, not a program's. */
bool ops_is_built_in(const ed_op *op);

/* The number of operands that an op declares. */
int ops_operands(const ed_op *op);

/* Sums dy over the axes along which an operand of `shape` was broadcast, so
 * that it has that shape. */
ed_tensor *ops_sum_to(ed_tensor *dy, ed_ints shape);

/*
 * The shape that two shapes broadcast to, NumPy's rule; false (nothing kept) if they don't. out has
 * room for ED_MAX_RANK.
 */
bool ops_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank,
                   int64_t *out);

/*
 * Axes given by an option into a bit mask: not given means all. Fails on axes outside or named
 * twice.
 */
bool ops_axes(const ed_call *call, ed_ints axes, int rank, unsigned *mask);

/* One axis of a tensor of `rank` dimensions, negative counting from the end, into *out. Fails when
 * there is none. */
bool ops_axis(const ed_call *call, int64_t axis, int rank, int *out);

/* Infers one output of input 0's dtype and shape. */
bool ops_infer_like(ed_call *call);

/* For kernels in parallel: how many elements of work are worth a second thread. */
enum { OPS_PARALLEL_WORK = HARD(1, 32768) };

/* Attributes of at most so many bytes need no `defaults` to be all zero. */
enum { OPS_ZERO_ATTRS = 512 };

#endif
