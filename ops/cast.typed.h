/* Conversion of one type of 32 or 64 bits, or of bytes, to every dtype. */

/* To integers: of a float the nearest there is; of an integer its low bits, for which signs make no
 * difference. */
VECTOR_INLINE void TYPED(cast_to_integers)(int64_t n, const NUMBER *restrict from, void *out,
                                           ed_dtype dtype)
{
    uint8_t *restrict u8 = out;
    uint16_t *restrict u16 = out;
    uint32_t *restrict u32 = out;
    uint64_t *restrict u64 = out;
#if FLOATING
    int8_t *restrict i8 = out;
    int16_t *restrict i16 = out;
    int32_t *restrict i32 = out;
    int64_t *restrict i64 = out;
    switch (dtype) {
    case ED_INT8:
        for (int64_t i = 0; i < n; i++) i8[i] = TYPED(i8_from)(from[i]);
        break;
    case ED_INT16:
        for (int64_t i = 0; i < n; i++) i16[i] = TYPED(i16_from)(from[i]);
        break;
    case ED_INT32:
        for (int64_t i = 0; i < n; i++) i32[i] = TYPED(i32_from)(from[i]);
        break;
    case ED_INT64:
        for (int64_t i = 0; i < n; i++) i64[i] = TYPED(i64_from)(from[i]);
        break;
    case ED_UINT8:
        for (int64_t i = 0; i < n; i++) u8[i] = TYPED(u8_from)(from[i]);
        break;
    case ED_UINT16:
        for (int64_t i = 0; i < n; i++) u16[i] = TYPED(u16_from)(from[i]);
        break;
    case ED_UINT32:
        for (int64_t i = 0; i < n; i++) u32[i] = TYPED(u32_from)(from[i]);
        break;
    case ED_UINT64:
        for (int64_t i = 0; i < n; i++) u64[i] = TYPED(u64_from)(from[i]);
        break;
    default: break;
    }
#else
    switch (dtype_size(dtype)) {
    case 1:
        for (int64_t i = 0; i < n; i++) u8[i] = (uint8_t)from[i];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) u16[i] = (uint16_t)from[i];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) u32[i] = (uint32_t)from[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) u64[i] = (uint64_t)from[i];
    }
#endif
}

/* To a 16-bit float: from float32 at once, from others through strips of it that round as they
 * would. */
VECTOR_INLINE void TYPED(cast_to_half)(int64_t n, const NUMBER *restrict from, uint16_t *to,
                                       void (*halves)(int64_t n, const float *from, uint16_t *to))
{
    if (_Generic(*from, float : true, default : false)) {
        halves(n, (const float *)from, to);
        return;
    }
    for (int64_t first = 0; first < n; first += STRIP) {
        float strip[STRIP];
        const int64_t count = n - first < STRIP ? n - first : STRIP;
        for (int64_t i = 0; i < count; i++) strip[i] = TYPED(odd_from)(from[first + i]);
        halves(count, strip, to + first);
    }
}

static void TYPED(cast)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        loop_streamed(TYPED(cast), 1, &(const size_t){sizeof(NUMBER)},
                      dtype_size(((const cast_attrs *)attrs)->dtype), n, in, steps, out, attrs);
        return;
    }
    const ed_dtype dtype = ((const cast_attrs *)attrs)->dtype;
    const NUMBER *restrict from = in[0];
    float *restrict f32 = out;
    double *restrict f64 = out;
    uint8_t *restrict truth = out;
    switch (dtype) {
    case ED_FLOAT32:
        for (int64_t i = 0; i < n; i++) f32[i] = (float)from[i];
        break;
    case ED_FLOAT64:
        for (int64_t i = 0; i < n; i++) f64[i] = (double)from[i];
        break;
    case ED_BOOL:
        for (int64_t i = 0; i < n; i++) truth[i] = from[i] != 0;
        break;
    case ED_FLOAT16: TYPED(cast_to_half)(n, from, out, halves_from_floats); break;
    case ED_BFLOAT16: TYPED(cast_to_half)(n, from, out, bfloats_from_floats); break;
    default: TYPED(cast_to_integers)(n, from, out, dtype);
    }
}

#undef TYPE
