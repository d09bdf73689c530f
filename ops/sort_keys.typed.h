/* What ops/sort.typed.h needs for an element of 4 bytes or fewer (WIDE 0) or 8 bytes (WIDE 1). */
#if WIDE
#define KEY       uint64_t
#define KEY_ITEM  uint64_t
#define KEY_SORT  sort_items_u64
#define PAIR_ITEM sort_item_pair
#define PAIR_SORT sort_items_pair
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
#define PAIR_ITEM             uint64_t
#define PAIR_SORT             sort_items_u64
#define PAIR_MAKE(key, index) ((uint64_t)(key) << 32 | (uint64_t)(index))
#define PAIR_INDEX(item)      (int64_t)((item)&UINT32_MAX)
#define PAIR_KEY(item)        (uint32_t)((item) >> 32)
#define PAIR_SHIFT            32
#endif
#undef WIDE
