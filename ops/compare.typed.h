/* The choice by a condition, for one size of elements. */

static void TYPED(where)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        const size_t sizes[] = {1, sizeof(NUMBER), sizeof(NUMBER)};
        loop_streamed(TYPED(where), 3, sizes, sizeof(NUMBER), n, in, steps, out, attrs);
        return;
    }
    const uint8_t *restrict condition = in[0];
    const NUMBER *restrict from_a = in[1], *restrict from_b = in[2];
    NUMBER *restrict to = out;
    if (!steps[0]) {
        const NUMBER *from = *condition ? from_a : from_b;
        const int step = steps[*condition ? 1 : 2];
        for (int64_t i = 0; i < n; i++) to[i] = from[step ? i : 0];
    } else if (steps[1] && steps[2]) {
        for (int64_t i = 0; i < n; i++) {
            const NUMBER a = from_a[i], b = from_b[i];
            to[i] = condition[i] ? a : b;
        }
    } else if (steps[1]) {
        const NUMBER b = *from_b;
        for (int64_t i = 0; i < n; i++) {
            const NUMBER a = from_a[i];
            to[i] = condition[i] ? a : b;
        }
    } else if (steps[2]) {
        const NUMBER a = *from_a;
        for (int64_t i = 0; i < n; i++) {
            const NUMBER b = from_b[i];
            to[i] = condition[i] ? a : b;
        }
    } else {
        const NUMBER a = *from_a, b = *from_b;
        for (int64_t i = 0; i < n; i++) to[i] = condition[i] ? a : b;
    }
}

#undef TYPE
