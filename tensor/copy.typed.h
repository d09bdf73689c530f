/* Rows and tiles of elements of one size, which may be several of a tensor's: at any address. */

typedef NUMBER TYPED(cell) __attribute__((aligned(1), may_alias));

/* Steps are in bytes. */
static void TYPED(copy_steps)(int64_t n, const char *restrict from, int64_t from_step,
                              char *restrict to, int64_t to_step)
{
    enum { SIZE = sizeof(NUMBER) };
#define FROM(i) ((const TYPED(cell) *)from)[i]
#define TO(i)   ((TYPED(cell) *)to)[i]
    if (to_step != SIZE)
        for (int64_t i = 0; i < n; i++)
            *(TYPED(cell) *)(to + i * to_step) = *(const TYPED(cell) *)(from + i * from_step);
    else if (from_step == SIZE)
        for (int64_t i = 0; i < n; i++) TO(i) = FROM(i);
    else if (from_step == -SIZE)
        for (int64_t i = 0; i < n; i++) TO(i) = FROM(-i);
    else if (from_step == 2 * SIZE)
        for (int64_t i = 0; i < n; i++) TO(i) = FROM(2 * i);
    else
        for (int64_t i = 0; i < n; i++) TO(i) = *(const TYPED(cell) *)(from + i * from_step);
#undef FROM
#undef TO
}

static void TYPED(copy_fill)(const void *value, void *to, int64_t n)
{
    const NUMBER v = *(const TYPED(cell) *)value;
    TYPED(cell) *b = to;
    for (int64_t i = 0; i < n; i++) b[i] = v;
}

/*
 * A whole tile: its columns begin PITCH bytes apart; row r goes to to + r * step. A square has N
 * vectors of N elements and a tile 4 x 4 squares.
 */
static void TYPED(copy_turn)(const char *lines, char *to, int64_t step)
{
    enum { N = 16 / sizeof(NUMBER) };
    typedef NUMBER vector __attribute__((vector_size(16)));
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            vector v[N], w[N];
            for (int i = 0; i < N; i++) memcpy(&v[i], lines + (c * N + i) * PITCH + r * 16, 16);
            for (int round = 1; round < N; round *= 2) {
                for (int i = 0; i < N / 2; i++) {
                    w[2 * i] = TYPED(LOW)(v[i], v[i + N / 2]);
                    w[2 * i + 1] = TYPED(HIGH)(v[i], v[i + N / 2]);
                }
                memcpy(v, w, sizeof v);
            }
            for (int i = 0; i < N; i++) memcpy(to + (r * N + i) * step + c * 16, &v[i], 16);
        }
}

#undef TYPE
