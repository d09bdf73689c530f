/* The loops of conv_winograd.simd.c for one float type. */

/* A vector of elements, `part` of one where fewer are left, 0 behind them; and back. */
VECTOR_INLINE VECTOR TYPED(read)(const NUMBER *from, const bool part, int64_t left)
{
    return part ? vload_part(from, left) : vload(from);
}

VECTOR_INLINE void TYPED(write)(NUMBER *to, VECTOR x, const bool part, int64_t left)
{
    if (part)
        vstore_part(to, x, left);
    else
        vstore(to, x);
}

/* G's four rows by three numbers. */
VECTOR_INLINE void TYPED(spread_taps)(VECTOR a, VECTOR b, VECTOR c, VECTOR to[4])
{
    const VECTOR outer = (a + c) * (NUMBER)0.5, inner = b * (NUMBER)0.5;
    to[0] = a, to[1] = outer + inner, to[2] = outer - inner, to[3] = c;
}

VECTOR_INLINE void TYPED(some_taps)(const NUMBER *from, int64_t tap, const bool part, int64_t left,
                                    NUMBER *to, int64_t step)
{
    VECTOR columns[3][4], row[4];
    UNROLL for (int j = 0; j < 3; j++) TYPED(spread_taps)(
        TYPED(read)(from + j * tap, part, left), TYPED(read)(from + (3 + j) * tap, part, left),
        TYPED(read)(from + (6 + j) * tap, part, left), columns[j]);
    UNROLL for (int i = 0; i < 4; i++)
    {
        TYPED(spread_taps)(columns[0][i], columns[1][i], columns[2][i], row);
        UNROLL for (int j = 0; j < 4; j++) vstore(to + (4 * i + j) * step, row[j]);
    }
}

static void TYPED(taps)(const void *from, int64_t tap_step, int64_t row_step, int64_t rows,
                        int64_t columns, const winograd_matrices *to)
{
    const int64_t whole = columns / VECTOR_LANES * VECTOR_LANES;
    for (int64_t i = 0; i < rows; i++) {
        const NUMBER *row = (const NUMBER *)from + i * row_step;
        NUMBER *at = (NUMBER *)to->data + i * to->row;
        for (int64_t j = 0; j < whole; j += VECTOR_LANES)
            TYPED(some_taps)(row + j, tap_step, false, 0, at + j, to->step);
        if (whole < columns)
            TYPED(some_taps)(row + whole, tap_step, true, columns - whole, at + whole, to->step);
    }
}

/* B^T by four numbers. */
VECTOR_INLINE void TYPED(differences)(const VECTOR d[4], VECTOR to[4])
{
    to[0] = d[0] - d[2], to[1] = d[1] + d[2], to[2] = d[2] - d[1], to[3] = d[1] - d[3];
}

VECTOR_INLINE void TYPED(some_patch)(char *const cells[], int64_t c, const bool part, int64_t left,
                                     NUMBER *to, int64_t step)
{
    VECTOR rows[4][4], column[4], down[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        UNROLL for (int j = 0; j < 4; j++) column[j] =
            TYPED(read)((const NUMBER *)cells[4 * i + j] + c, part, left);
        TYPED(differences)(column, rows[i]);
    }
    UNROLL for (int j = 0; j < 4; j++)
    {
        UNROLL for (int i = 0; i < 4; i++) column[i] = rows[i][j];
        TYPED(differences)(column, down);
        UNROLL for (int i = 0; i < 4; i++) vstore(to + (4 * i + j) * step + c, down[i]);
    }
}

static void TYPED(patches)(const winograd_images *from, const winograd_block *b,
                           const winograd_matrices *to)
{
    const int64_t whole = from->channels / VECTOR_LANES * VECTOR_LANES;
    NUMBER *at = to->data;
    place p = place_of(b);
    for (int64_t i = 0; i < b->count; i++, place_next(&p, b), at += to->row) {
        char *cells[16];
        cells_of(from, b, &p, 4, cells);
        for (int64_t c = 0; c < whole; c += VECTOR_LANES)
            TYPED(some_patch)(cells, c, false, 0, at, to->step);
        if (whole < from->channels)
            TYPED(some_patch)(cells, whole, true, from->channels - whole, at, to->step);
    }
}

/* A^T by four numbers. */
VECTOR_INLINE void TYPED(sums)(const VECTOR m[4], VECTOR to[2])
{
    to[0] = m[0] + m[1] + m[2], to[1] = m[1] - m[2] - m[3];
}

/* Some channels of a tile. Returns 0 times their sum: NaN if one of them is inf or NaN. */
VECTOR_INLINE VECTOR TYPED(some_results)(const NUMBER *from, int64_t step, char *const cells[],
                                         int64_t c, const bool part, int64_t left,
                                         const winograd_end *end)
{
    VECTOR rows[4][2], some[4], y[2], check = {0};
    const NUMBER *bias = end->bias;
    const VECTOR shift = bias ? TYPED(read)(bias + c, part, left) : (VECTOR){0};
    UNROLL for (int i = 0; i < 4; i++)
    {
        UNROLL for (int j = 0; j < 4; j++) some[j] =
            TYPED(read)(from + (4 * i + j) * step + c, part, left);
        TYPED(sums)(some, rows[i]);
    }
    UNROLL for (int j = 0; j < 2; j++)
    {
        UNROLL for (int i = 0; i < 4; i++) some[i] = rows[i][j];
        TYPED(sums)(some, y);
        UNROLL for (int i = 0; i < 2; i++)
        {
            check += y[i] * 0;
            if (bias) y[i] += shift;
            if (end->relu) y[i] = vselect((MASK)(y[i] < 0), (VECTOR){0}, y[i]);
            TYPED(write)((NUMBER *)cells[2 * i + j] + c, y[i], part, left);
        }
    }
    return check;
}

static void TYPED(results)(const winograd_matrices *from, const winograd_block *b,
                           const winograd_images *to, const winograd_end *end)
{
    const int64_t whole = to->channels / VECTOR_LANES * VECTOR_LANES;
    const NUMBER *at = from->data;
    place p = place_of(b);
    for (int64_t i = 0; i < b->count; i++, place_next(&p, b), at += from->row) {
        VECTOR check = {0};
        char *cells[4];
        cells_of(to, b, &p, 2, cells);
        for (int64_t c = 0; c < whole; c += VECTOR_LANES)
            check += TYPED(some_results)(at, from->step, cells, c, false, 0, end);
        if (whole < to->channels)
            check +=
                TYPED(some_results)(at, from->step, cells, whole, true, to->channels - whole, end);
        if (vbits((MASK)(check != check))) mark(end, b, &p);
    }
}

/* A by two numbers. */
VECTOR_INLINE void TYPED(spread_cells)(VECTOR a, VECTOR b, VECTOR to[4])
{
    to[0] = a, to[1] = a + b, to[2] = a - b, to[3] = -b;
}

VECTOR_INLINE void TYPED(some_cells)(char *const cells[], int64_t c, const bool part, int64_t left,
                                     NUMBER *to, int64_t step)
{
    VECTOR y[4], columns[2][4], row[4];
    UNROLL for (int i = 0; i < 4; i++) y[i] = TYPED(read)((const NUMBER *)cells[i] + c, part, left);
    UNROLL for (int j = 0; j < 2; j++) TYPED(spread_cells)(y[j], y[2 + j], columns[j]);
    UNROLL for (int i = 0; i < 4; i++)
    {
        TYPED(spread_cells)(columns[0][i], columns[1][i], row);
        UNROLL for (int j = 0; j < 4; j++) vstore(to + (4 * i + j) * step + c, row[j]);
    }
}

static void TYPED(cells)(const winograd_images *from, const winograd_block *b,
                         const winograd_matrices *to)
{
    const int64_t whole = from->channels / VECTOR_LANES * VECTOR_LANES;
    NUMBER *at = to->data;
    place p = place_of(b);
    for (int64_t i = 0; i < b->count; i++, place_next(&p, b), at += to->row) {
        char *cells[4];
        cells_of(from, b, &p, 2, cells);
        for (int64_t c = 0; c < whole; c += VECTOR_LANES)
            TYPED(some_cells)(cells, c, false, 0, at, to->step);
        if (whole < from->channels)
            TYPED(some_cells)(cells, whole, true, from->channels - whole, at, to->step);
    }
}

/* G^T by four numbers. */
VECTOR_INLINE void TYPED(join_taps)(const VECTOR s[4], VECTOR to[3])
{
    const VECTOR sum = (s[1] + s[2]) * (NUMBER)0.5;
    to[0] = s[0] + sum, to[1] = (s[1] - s[2]) * (NUMBER)0.5, to[2] = sum + s[3];
}

/* A vector's taps. Returns 0 times their sum. */
VECTOR_INLINE VECTOR TYPED(some_kernel)(const NUMBER *from, int64_t step, int64_t groups,
                                        int64_t group, const bool part, int64_t left, NUMBER *to,
                                        int64_t tap)
{
    VECTOR rows[4][3], column[4], taps[3], check = {0};
    UNROLL for (int i = 0; i < 4; i++)
    {
        VECTOR row[4];
        UNROLL for (int j = 0; j < 4; j++) row[j] =
            TYPED(read)(from + (4 * i + j) * step, part, left);
        for (int64_t g = 1; g < groups; g++)
            UNROLL for (int j = 0; j < 4; j++) row[j] +=
                TYPED(read)(from + g * group + (4 * i + j) * step, part, left);
        TYPED(join_taps)(row, rows[i]);
    }
    UNROLL for (int j = 0; j < 3; j++)
    {
        UNROLL for (int i = 0; i < 4; i++) column[i] = rows[i][j];
        TYPED(join_taps)(column, taps);
        UNROLL for (int i = 0; i < 3; i++)
        {
            check += taps[i] * 0;
            TYPED(write)(to + (3 * i + j) * tap, taps[i], part, left);
        }
    }
    return check;
}

static bool TYPED(kernel)(const winograd_matrices *from, int64_t groups, int64_t group,
                          int64_t rows, int64_t columns, void *to, int64_t tap_step)
{
    const int64_t whole = columns / VECTOR_LANES * VECTOR_LANES;
    VECTOR check = {0};
    for (int64_t i = 0; i < rows; i++) {
        const NUMBER *at = (const NUMBER *)from->data + i * from->row;
        NUMBER *row = (NUMBER *)to + i * columns;
        for (int64_t j = 0; j < whole; j += VECTOR_LANES)
            check +=
                TYPED(some_kernel)(at + j, from->step, groups, group, false, 0, row + j, tap_step);
        if (whole < columns)
            check += TYPED(some_kernel)(at + whole, from->step, groups, group, true,
                                        columns - whole, row + whole, tap_step);
    }
    return !vbits((MASK)(check != check));
}

#undef TYPE
