/*
 * Attention: what its op (ops/attention.c) and its loops (ops/attention.simd.c) share.
 *
 * The matrix of scores, [targets, sources] for each head, is never in memory as a whole. It is
 * computed by blocks: for some rows, one block of columns after the other, with the largest score
 * and the sum of the exponentials of each row carried along (Milakov and Gimelshein, "Online
 * normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). The gradient
 * computes each block again from both: where scores are as large as -1e9, as masks make them, their
 * logsumexp has lost the logarithm of the sum. Borders of blocks depend on is_causal alone.
 */
#ifndef EDDY_OPS_ATTENTION_H
#define EDDY_OPS_ATTENTION_H

#include "ops/execute.h"
#include "ops/kernels/gemm_piece.h"
#include "ops/random_attrs.h"

/* Of a block, at most; rows that see up to themselves are cut smaller, so that less is computed
 * that none of them sees. */
enum { ATTENTION_ROWS = 128, ATTENTION_CAUSAL_ROWS = 64, ATTENTION_COLUMNS = 256 };
_Static_assert(ATTENTION_COLUMNS % ATTENTION_CAUSAL_ROWS == 0,
               "a block of columns begins where one of rows does");

/* Of the mask: none; true where a source takes part; numbers that are added to the scores. */
typedef enum attention_mask { MASK_NONE, MASK_BOOL, MASK_F32, MASK_F64 } attention_mask;

/* A block of the scores of one head: rows of `stride` numbers that begin at [row, column]. */
typedef struct attention_block {
    int64_t rows, columns, stride, row, column;
    attention_mask kind;
    const char *mask;              /* the head's */
    int64_t mask_row, mask_column; /* strides in elements */
    double scale;
    bool causal;
    const uint8_t *keep; /* of every score, whether dropout keeps it; NULL: all */
    double factor;       /* of those that it keeps */
} attention_block;

/* Loops over blocks of one float type. Statistics have a number for each row. */
typedef struct attention_loops {
    /* s = e^(scale s + mask - largest); largest and sum take the block in, rescale is e^(the change
     * of largest). Dropout follows. */
    void (*exponentials)(const attention_block *b, void *s, void *largest, void *sum,
                         void *rescale);
    /* y = rescale y + t, rows of n numbers. */
    void (*join)(int64_t rows, int64_t n, const void *rescale, const void *t, void *y);
    /* y = y / sum, and the logarithm of the sum of the exponentials of the scores; 0 and -inf where
     * nothing takes part. */
    void (*finish)(int64_t rows, int64_t n, const void *largest, const void *sum, void *y,
                   void *logsumexp);
    /* s = e^(scale s + mask - largest) / sum. */
    void (*probabilities)(const attention_block *b, void *s, const void *largest, const void *sum);
    /* From p and the gradient g of p after dropout: g becomes the gradient of the unscaled
     * scores, p what dropout leaves of it. */
    void (*gradient)(const attention_block *b, void *p, void *g, const void *delta);
    /* y += t, n numbers. */
    void (*add)(int64_t n, const void *t, void *y);
} attention_loops;

ISA_DECLARE_TABLE(attention_loops, attention_table, []);

#define ATTENTION_ATTRS(FIELD, T) ED_ATTENTION_VALUES(FIELD, T) DRAW_ATTR(FIELD, T)
ED_OPTIONS(attention_attrs, ATTENTION_ATTRS);

/* Attributes of samples; DRAWN is a draw of dropout. */
#define ATTENTION(...) ED_ATTRS(ATTENTION_ATTRS, attention_attrs, __VA_ARGS__)
#define DRAWN                                                                                      \
    {                                                                                              \
        .drawn = true, .state = { 1, 2, 3 }                                                        \
    }

/* What a call computes: the plan of both ops. */
typedef struct attention {
    int64_t heads, group; /* of query in the whole batch; how many share a key */
    int64_t targets, sources, size, values;
    int64_t rows; /* of a block, at most */
    double scale;
    attention_mask mask;
} attention;

/* Checks the operands and makes the plan; mask may be NULL. */
bool attention_plan(ed_call *call, const ed_tensor *query, const ed_tensor *key,
                    const ed_tensor *value, const ed_tensor *mask);

/* One call's kernel, as its threads share it. */
typedef struct attention_work {
    const attention *a;
    const attention_attrs *o;
    const attention_loops *loops;
    const ed_tensor *query, *key, *value, *mask;
    ed_tensor *const *outputs;
    const ed_tensor *dy, *largest, *sum, *delta; /* of the gradient */
    bool wide;
    size_t element, each; /* bytes of a number, and of a worker's scratch */
    char *scratch;
} attention_work;

/* A worker's scratch: blocks of scores, products, statistics of rows, what dropout keeps. */
typedef struct attention_room {
    char *scores, *others, *product, *rescale, *gemm;
    uint8_t *keep, *zeros;
} attention_room;

/* Runs the work's heads, or parts of them, on threads; false without memory. */
bool attention_run(attention_work *w, int64_t parts,
                   void (*range)(int64_t first, int64_t last, int worker, void *user));
attention_room attention_room_of(const attention_work *w, int worker);

/* Where head `head` of query begins in a tensor of its leading axes, `group` heads of which are one
 * of the tensor; the same in the mask, which is broadcast. */
const char *attention_head(const attention_work *w, const ed_tensor *x, int64_t head,
                           int64_t group);

/* How many columns the block at [row, column] has: those that some row of a whole block would see;
 * behind the last row none. */
int64_t attention_columns(const attention_work *w, int64_t row, int64_t column);

/* That block of a head, without numbers yet; what dropout keeps of it is in the room. */
attention_block attention_block_at(const attention_work *w, const attention_room *room,
                                   int64_t head, int64_t row, int64_t column);

/* A matrix, its strides in bytes. */
typedef struct attention_matrix {
    char *data;
    int64_t row, column;
} attention_matrix;
attention_matrix attention_of(const ed_tensor *x, const char *head);
attention_matrix attention_turned(attention_matrix x);

/* C[m,n] = A[m,k] B[k,n], the rows of C dense or a block's. */
void attention_product(const attention_work *w, const attention_room *room, int64_t m, int64_t n,
                       int64_t k, attention_matrix a, attention_matrix b, char *c, int64_t c_row);

/* By plain loops, for references: the scores of a target of a head with all sources, masked. */
void attention_plain_scores(const ed_call *call, const double *query, const double *key,
                            const ed_tensor *mask, int64_t head, int64_t target, double *scores);

/* What dropout makes of each probability, [heads, targets, sources]: 0 or a factor. In the scope.
 * NULL without dropout, and without memory. */
ed_tensor *attention_kept(const attention *a, const attention_attrs *o, ed_dtype dtype);

/* The gradient function of the op. */
bool attention_gradient(const ed_gradient_call *g);

#endif
