/* Rows and tiles of elements of one size. */

static void TYPED(copy_row)(int64_t n, const void *from, int64_t from_stride, void *to,
                            int64_t to_stride)
{
    const NUMBER *restrict a = from;
    NUMBER *restrict b = to;
    if (to_stride != 1)
        for (int64_t i = 0; i < n; i++) b[i * to_stride] = a[i * from_stride];
    else if (from_stride == 1)
        for (int64_t i = 0; i < n; i++) b[i] = a[i];
    else if (from_stride == -1)
        for (int64_t i = 0; i < n; i++) b[i] = a[-i];
    else if (from_stride == 2)
        for (int64_t i = 0; i < n; i++) b[i] = a[2 * i];
    else
        for (int64_t i = 0; i < n; i++) b[i] = a[i * from_stride];
}

static void TYPED(copy_fill)(const void *value, void *to, int64_t n)
{
    const NUMBER v = *(const NUMBER *)value;
    NUMBER *b = to;
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
