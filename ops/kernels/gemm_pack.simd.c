/*
 * Packing for matrix products: lines of a matrix come to lie side by side, step by step of k, as
 * the micro-kernels read them.
 */
#include "ops/kernels/isa.h"

#ifdef ISA
#include "ops/kernels/gemm_tile.h"

/* How many bytes ahead lines of the cache are asked for where a step's elements adjoin: a panel or
 * stripe reads a short piece of every row, which the machine does not foresee, and what adjoins the
 * pieces is read next. */
enum { AHEAD = 2 * PANEL };

/* Packs k steps of as many lines as there are lanes, see pack_lines. The last piece reaches back
 * into the one before it. */
INLINE void pack_turned(const bool wide, int64_t k, const char *const row[], int64_t step, char *to,
                        int64_t stride)
{
    const int size = size_of(wide), each = PIECE / size;
    vec turned[PIECE / 4];
    if (step != size) {
        for (int64_t p = 0; p < k; p++)
            for (int i = 0; i < lanes_of(wide); i++)
                memcpy(to + p * stride + i * size, row[i] + p * step, (size_t)size);
    } else if (k < each) {
        load_turned_part(wide, row, (int)k, turned);
        for (int64_t p = 0; p < k; p++) store(to + p * stride, turned[p]);
    } else {
        for (int64_t next = 0; next < k; next += each) {
            const int64_t p = min(next, k - each);
            load_turned(wide, row, p * size, turned);
            UNROLL for (int i = 0; i < each; i++) store(to + (p + i) * stride, turned[i]);
        }
    }
}

/* gemm_pack_lines for either dtype. */
INLINE void pack_lines(const bool wide, int64_t lines, int64_t k, const char *from,
                       int64_t line_step, int64_t step, char *to, int64_t stride)
{
    const int size = size_of(wide), lanes = lanes_of(wide);
    if (line_step == size) {
        int64_t full = lines / lanes;
        int rest = (int)(lines % lanes);
        for (int64_t p = 0; p < k; p++, from += step, to += stride) {
            __builtin_prefetch(from + AHEAD);
            for (int64_t v = 0; v < full; v++) store(to + v * BYTES, load(from + v * BYTES));
            if (rest) store(to + full * BYTES, load_part(wide, from + full * BYTES, rest));
        }
        return;
    }
    for (int64_t line = 0; line < lines; line += lanes, to += BYTES) {
        const char *row[BYTES / 4];
        for (int i = 0; i < lanes; i++) row[i] = from + min(line + i, lines - 1) * line_step;
        pack_turned(wide, k, row, step, to, stride);
    }
}

void ISA_NAME(gemm_pack_lines)(bool wide, int64_t lines, int64_t k, const char *from,
                               int64_t line_step, int64_t step, char *to, int64_t stride)
{
    if (wide)
        pack_lines(true, lines, k, from, line_step, step, to, stride);
    else
        pack_lines(false, lines, k, from, line_step, step, to, stride);
}

void ISA_NAME(gemm_pack)(bool wide, int64_t k, int64_t n, const char *b, int64_t b_row,
                         int64_t b_col, char *panels, int64_t panel_step)
{
    const int panel = PANEL / size_of(wide);
    for (int64_t j = 0; j < n; j += panel, panels += panel_step) ISA_NAME(gemm_pack_lines)
    (wide, min(panel, n - j), k, b + j * b_col, b_col, b_row, panels, PANEL);
}

/* Puts `count` of the vectors, or all that a piece has, into columns; `lanes` lanes of each. */
INLINE void put_columns(const bool wide, const vec turned[], int64_t count, int lanes, char *to,
                        int64_t column_step)
{
    const int each = PIECE / size_of(wide);
    if (lanes == lanes_of(wide) && count >= each)
        UNROLL for (int q = 0; q < each; q++, to += column_step) store(to, turned[q]);
    else
        UNROLL for (int q = 0; q < each; q++, to += column_step) if (q < count)
            store_part(wide, to, turned[q], lanes);
}

/* gemm_turn for either dtype: registers turn as many rows as there are lanes, PIECE bytes of each
 * at a time. The last rows reach back, since storing a part of a vector may take many times as
 * long. */
INLINE void turn(const bool wide, int64_t rows, int64_t columns, const char *from, int64_t row_step,
                 char *to, int64_t column_step)
{
    const int size = size_of(wide), lanes = (int)min(rows, lanes_of(wide)), each = PIECE / size;
    for (int64_t next = 0; next < rows; next += lanes) {
        const int64_t i = min(next, rows - lanes);
        const char *row[BYTES / 4];
        for (int q = 0; q < lanes_of(wide); q++) row[q] = from + min(i + q, rows - 1) * row_step;
        for (int64_t j = 0; j < columns; j += each) {
            vec turned[PIECE / 4];
            load_turned(wide, row, j * size, turned);
            put_columns(wide, turned, columns - j, lanes, to + i * size + j * column_step,
                        column_step);
        }
    }
}

void ISA_NAME(gemm_turn)(bool wide, int64_t rows, int64_t columns, const char *from,
                         int64_t row_step, char *to, int64_t column_step)
{
    if (wide)
        turn(true, rows, columns, from, row_step, to, column_step);
    else
        turn(false, rows, columns, from, row_step, to, column_step);
}

#endif
