/*
 * Keys of elements, for one type: unsigned numbers in the elements' order, NaN after all. A value's
 * key has its sign even if it is 0, and -0 comes before 0. A KEY_ITEM is a key alone, a PAIR_ITEM a
 * key with an index: one number where an element has 4 bytes or fewer. KEY_LOWEST is the type's
 * smallest number. What needs these includes this with TYPE set, and undefines it.
 */
#undef KEY
#undef KEY_ITEM
#undef KEY_SORT
#undef KEY_LINE
#undef KEY_SIGN
#undef PAIR_ITEM
#undef PAIR_SORT
#undef PAIR_LINE
#undef PAIR_MAKE
#undef PAIR_INDEX
#undef PAIR_KEY
#undef PAIR_SHIFT
#undef KEY_LOWEST

#define KEY_WIDE     TYPED(key_wide)
#define key_wide_f64 1
#define key_wide_i64 1
#if KEY_WIDE
#define KEY       uint64_t
#define KEY_ITEM  uint64_t
#define KEY_SORT  sort_items_u64
#define KEY_LINE  sort_line_u64
#define PAIR_ITEM sort_item_pair
#define PAIR_SORT sort_items_pair
#define PAIR_LINE sort_line_pair
#define PAIR_MAKE(key, index)                                                                      \
    (sort_item_pair)                                                                               \
    {                                                                                              \
        key, index                                                                                 \
    }
#define PAIR_INDEX(item) (item).index
#define PAIR_KEY(item)   (item).key
#define PAIR_SHIFT       0
#else
#define KEY                   uint32_t
#define KEY_ITEM              uint32_t
#define KEY_SORT              sort_items_u32
#define KEY_LINE              sort_line_u32
#define PAIR_ITEM             uint64_t
#define PAIR_SORT             sort_items_u64
#define PAIR_LINE             sort_line_u64
#define PAIR_MAKE(key, index) ((uint64_t)(key) << 32 | (uint64_t)(index))
#define PAIR_INDEX(item)      (int64_t)((item)&UINT32_MAX)
#define PAIR_KEY(item)        (uint32_t)((item) >> 32)
#define PAIR_SHIFT            32
#endif
#if FLOATING
#define KEY_LOWEST (-(NUMBER)INFINITY)
#else
#define KEY_LOWEST ((NUMBER)NUMBER_MIN)
#endif
#if FLOATING || SIGNED
#define KEY_SIGN ((KEY)1 << (8 * sizeof(KEY) - 1))
#else
#define KEY_SIGN ((KEY)0)
#endif

#if FLOATING
#define NAN_KEY (~(KEY)0)
static inline KEY TYPED(value_key)(NUMBER x, bool descending)
{
    KEY bits;
    if (x != x) return NAN_KEY;
    memcpy(&bits, &x, sizeof bits);
    bits = bits & KEY_SIGN ? ~bits : bits | KEY_SIGN;
    return descending ? ~bits : bits;
}
static inline NUMBER TYPED(of_key)(KEY key, bool descending)
{
    NUMBER x;
    if (key == NAN_KEY) return NAN;
    key = descending ? ~key : key;
    key = key & KEY_SIGN ? key ^ KEY_SIGN : ~key;
    memcpy(&x, &key, sizeof x);
    return x;
}
#undef NAN_KEY
#else
static inline KEY TYPED(value_key)(NUMBER x, bool descending)
{
    const KEY key = (KEY)x ^ KEY_SIGN;
    return descending ? ~key : key;
}
static inline NUMBER TYPED(of_key)(KEY key, bool descending)
{
    return (NUMBER)((descending ? ~key : key) ^ KEY_SIGN);
}
#endif

/* The key where equal elements keep their order: -0 and 0 have the same. */
static inline KEY TYPED(key_of)(NUMBER x, bool descending)
{
    return TYPED(value_key)((NUMBER)(x + 0), descending);
}
