/* Packing of many short rows, for one size of elements. */

static void TYPED(pack_rows)(const int64_t *shape, const void *from, const int64_t *strides,
                             void *to)
{
    const NUMBER *from_row = from;
    NUMBER *to_row = to;
    for (int64_t r = 0; r < shape[0]; r++, from_row += strides[0], to_row += shape[1])
        for (int64_t c = 0; c < shape[1]; c++) to_row[c] = from_row[c * strides[1]];
}

#undef TYPE
