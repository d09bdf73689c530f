/*
 * Boxes y1, x1, y2, x2: which of those that overlap stay, and drawing them.
 *
 * Suppression takes candidates from a heap, the best one first. Its score falls by the boxes chosen
 * since it was last in the heap; if it still is what it was, it is chosen, else it goes back.
 */
#include "ops/images.h"
#include <math.h>
#include <string.h>

#define NO_SLOPE "which boxes are chosen changes in steps"

/* ---- Suppression ----------------------------------------------------------------------------- */

/* A box that may be chosen: its score is right but for the chosen ones from `seen` on. */
typedef struct candidate {
    double score;
    int64_t box, seen;
} candidate;

typedef struct suppression {
    const double *boxes;
    const double *overlaps; /* [n, n] in place of boxes; or NULL */
    int64_t n;
    double iou, score, falling; /* thresholds; -1 / (2 sigma), 0 for none */
    candidate *heap, *chosen;
    int64_t waiting, done;
} suppression;

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void heap_put(suppression *s, candidate c)
{
    int64_t at = s->waiting++;
    for (; at > 0 && comes_before(&c, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = c;
}

static candidate heap_take(suppression *s)
{
    const candidate best = s->heap[0], last = s->heap[--s->waiting];
    int64_t at = 0;
    for (int64_t next; (next = 2 * at + 1) < s->waiting; at = next) {
        if (next + 1 < s->waiting && comes_before(&s->heap[next + 1], &s->heap[next])) next++;
        if (!comes_before(&s->heap[next], &last)) break;
        s->heap[at] = s->heap[next];
    }
    s->heap[at] = last;
    return best;
}

/* Intersection over union; 0 for boxes without area, or with NaN or infinite areas. Their numbers
 * may be in either order. */
static double overlap_of(const double *a, const double *b)
{
    double shared = 1, areas[2] = {1, 1};
    for (int i = 0; i < 2; i++) {
        const double a0 = fmin(a[i], a[i + 2]), a1 = fmax(a[i], a[i + 2]),
                     b0 = fmin(b[i], b[i + 2]), b1 = fmax(b[i], b[i + 2]);
        shared *= fmax(0, fmin(a1, b1) - fmax(a0, b0));
        areas[0] *= a1 - a0;
        areas[1] *= b1 - b0;
    }
    const double overlap = shared / (areas[0] + areas[1] - shared);
    return areas[0] > 0 && areas[1] > 0 && overlap >= 0 ? overlap : 0;
}

/* NaN is none. */
static double given_overlap(double overlap)
{
    return overlap >= 0 ? overlap : 0;
}

/* The candidate's score after the boxes chosen since it was last looked at; false: it goes. */
static bool falls(const suppression *s, candidate *c)
{
    for (int64_t i = s->done - 1; i >= c->seen; i--) {
        const int64_t other = s->chosen[i].box;
        const double overlap = s->overlaps
                                   ? given_overlap(s->overlaps[c->box * s->n + other])
                                   : overlap_of(s->boxes + 4 * c->box, s->boxes + 4 * other);
        if (!s->falling && overlap > s->iou) return false;
        c->score *= overlap <= s->iou ? exp(s->falling * overlap * overlap) : 0;
        if (!(c->score > s->score)) return false;
    }
    c->seen = s->done;
    return true;
}

static void choose(suppression *s, int64_t most)
{
    while (s->done < most && s->waiting) {
        candidate c = heap_take(s);
        const double before = c.score;
        if (!falls(s, &c)) continue;
        if (c.score == before)
            s->chosen[s->done++] = c;
        else
            heap_put(s, c);
    }
}

#define MOST_ATTR(FIELD, T)                                                                        \
    FIELD(T, INT, max_output_size, 1, ED_AT_LEAST(0), "the number of boxes at most")
#define HARD_ATTRS(FIELD, T) MOST_ATTR(FIELD, T) ED_NON_MAX_SUPPRESSION_OPTIONS(FIELD, T)
#define SOFT_ATTRS(FIELD, T) MOST_ATTR(FIELD, T) ED_SOFT_NMS_OPTIONS(FIELD, T)
ED_OPTIONS(hard_attrs, HARD_ATTRS);
ED_OPTIONS(soft_attrs, SOFT_ATTRS);
#define HARD_CALL(...) ED_ATTRS(HARD_ATTRS, hard_attrs, __VA_ARGS__)
#define SOFT_CALL(...) ED_ATTRS(SOFT_ATTRS, soft_attrs, __VA_ARGS__)

static bool check_scored(const ed_call *call)
{
    const ed_ints boxes = ed_shape(call->inputs[0]), scores = ed_shape(call->inputs[1]);
    if (boxes.count == 2 && boxes.values[1] == 4 && scores.count == 1 &&
        scores.values[0] == boxes.values[0])
        return true;
    return ed_call_fail(
        call, ED_INVALID_ARGUMENT, "boxes must be [n, 4] and scores [n], got %s and %s",
        text_of_ints(boxes.values, boxes.count).s, text_of_ints(scores.values, scores.count).s);
}

/* Gives the indices, and the scores if there is such an output. */
static bool give_chosen(ed_call *call, const suppression *s)
{
    const ed_dtype dtype = ed_dtype_of(call->inputs[1]);
    ed_tensor *indices = scope_give(tensor_new(ED_INT64, 1, &s->done));
    ed_tensor *scores = scope_give(tensor_new(dtype, 1, &s->done));
    if (!indices || !scores) return false;
    for (int64_t i = 0; i < s->done; i++) {
        ((int64_t *)indices->data)[i] = s->chosen[i].box;
        dtype_store(dtype, scores->data, i, s->chosen[i].score);
    }
    return ed_call_result(call, 0, indices) &&
           (call->n_outputs == 1 || ed_call_result(call, 1, scores));
}

/* Of boxes, or with `overlaps` of their overlaps, which are the first operand then. */
static bool suppress_checked(ed_call *call, const soft_attrs *o, bool overlaps)
{
    const int64_t n = ed_dim(call->inputs[1], 0),
                  most = o->max_output_size < n ? o->max_output_size : n;
    const double *scores = ed_as_doubles(call->inputs[1]), *first = ed_as_doubles(call->inputs[0]);
    suppression s = {.boxes = first,
                     .overlaps = overlaps ? first : NULL,
                     .n = n,
                     .iou = o->iou_threshold,
                     .score = o->score_threshold,
                     .falling = o->soft_nms_sigma > 0 ? -0.5 / o->soft_nms_sigma : 0};
    if (!scores || !first) return false;
    s.heap = memory_alloc((size_t)n * sizeof *s.heap);
    s.chosen = s.heap ? memory_alloc((size_t)n * sizeof *s.chosen) : NULL;
    bool ok = s.chosen;
    for (int64_t i = 0; ok && i < n; i++)
        if (scores[i] > s.score) heap_put(&s, (candidate){scores[i], i, 0});
    if (ok) choose(&s, most);
    ok = ok && give_chosen(call, &s);
    memory_free(s.heap);
    memory_free(s.chosen);
    return ok;
}

static bool suppress(ed_call *call, const soft_attrs *o)
{
    return check_scored(call) && suppress_checked(call, o, false);
}

static const soft_attrs *hard_as_soft(const hard_attrs *o, soft_attrs *soft)
{
    *soft = *SOFT_CALL(.max_output_size = o->max_output_size, .iou_threshold = o->iou_threshold,
                       .score_threshold = o->score_threshold);
    return soft;
}

static bool non_max_suppression_compose(ed_call *call)
{
    soft_attrs soft;
    return suppress(call, hard_as_soft(call->attrs, &soft));
}

static bool non_max_suppression_with_scores_compose(ed_call *call)
{
    return suppress(call, call->attrs);
}

extern const ed_op ed_op_non_max_suppression_overlaps;

/* All scores fall each time that a box is chosen. */
static bool plain_suppress(const ed_call *call, const soft_attrs *o)
{
    const ed_tensor *boxes = call->inputs[0];
    const int64_t n = boxes->shape[0];
    double *left = memory_alloc((size_t)n * sizeof *left);
    if (!left) return false;
    memcpy(left, call->inputs[1]->data, (size_t)n * sizeof *left);
    for (int64_t k = 0; k < call->outputs[0]->size; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (left[i] > o->score_threshold && (best < 0 || left[i] > left[best])) best = i;
        if (best < 0) break;
        ((double *)call->outputs[0]->data)[k] = (double)best;
        if (call->n_outputs > 1) ((double *)call->outputs[1]->data)[k] = left[best];
        for (int64_t i = 0; i < n; i++) {
            const double *all = (const double *)boxes->data, sigma = o->soft_nms_sigma;
            const double overlap = i == best ? 1
                                   : call->op == &ed_op_non_max_suppression_overlaps
                                       ? given_overlap(all[i * n + best])
                                       : overlap_of(all + 4 * i, all + 4 * best);
            if (i == best || (sigma == 0 && overlap > o->iou_threshold))
                left[i] = NAN;
            else if (!(overlap <= o->iou_threshold))
                left[i] *= 0;
            else if (sigma > 0)
                left[i] *= exp(-overlap * overlap / (2 * sigma));
        }
    }
    memory_free(left);
    return true;
}

static bool non_max_suppression_reference(const ed_call *call)
{
    soft_attrs soft;
    return plain_suppress(call, hard_as_soft(call->attrs, &soft));
}

static bool non_max_suppression_with_scores_reference(const ed_call *call)
{
    return plain_suppress(call, call->attrs);
}

#define SCORED(n) ED_SAMPLE_IN(0, 1, n, 4), ED_DISTINCT_IN(0.1, 0.9, n)

ED_OP(non_max_suppression) = {
    .name = "non_max_suppression",
    .doc = "the indices of boxes that do not overlap a better one",
    .operands = {{"boxes", ED_SET_FLOAT, 'T', .early = true},
                 {"scores", ED_SET_FLOAT, 'T', .early = true}},
    ED_OP_ATTRS(HARD_ATTRS, hard_attrs),
    .compose = non_max_suppression_compose,
    .no_gradient = NO_SLOPE,
    .reference = non_max_suppression_reference,
    .samples = ED_SAMPLES(
        {.inputs = {SCORED(9)}, .attrs = HARD_CALL(.max_output_size = 5, .iou_threshold = 0.2)},
        {.inputs = {SCORED(7)}, .attrs = HARD_CALL(.max_output_size = 20, .score_threshold = 0.3)}),
};

ED_OP(non_max_suppression_with_scores) = {
    .name = "non_max_suppression_with_scores",
    .doc = "the indices of boxes that do not overlap a better one, and their scores",
    .operands = {{"boxes", ED_SET_FLOAT, 'T', .early = true},
                 {"scores", ED_SET_FLOAT, 'T', .early = true}},
    .results = ED_RESULTS({.name = "selected_indices"}, {.name = "selected_scores"}),
    ED_OP_ATTRS(SOFT_ATTRS, soft_attrs),
    .compose = non_max_suppression_with_scores_compose,
    .no_gradient = NO_SLOPE,
    .reference = non_max_suppression_with_scores_reference,
    .samples = ED_SAMPLES({.inputs = {SCORED(9)},
                           .attrs = SOFT_CALL(.max_output_size = 5, .iou_threshold = 0.2)},
                          {.inputs = {SCORED(8)},
                           .attrs = SOFT_CALL(.max_output_size = 20, .score_threshold = 0.2,
                                              .iou_threshold = 1, .soft_nms_sigma = 0.5)}),
};

ed_tensor *ed_non_max_suppression_with(ed_tensor *boxes, ed_tensor *scores, int64_t max_output_size,
                                       const ed_non_max_suppression_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_NON_MAX_SUPPRESSION_OPTIONS, options);
    return CALL_OP(non_max_suppression,
                   ED_OPTIONS_FROM(ED_NON_MAX_SUPPRESSION_OPTIONS, options, hard_attrs,
                                   .max_output_size = max_output_size),
                   boxes, scores);
}

ed_tensor *ed_non_max_suppression_with_scores_with(ed_tensor *boxes, ed_tensor *scores,
                                                   int64_t max_output_size,
                                                   ed_tensor **selected_scores,
                                                   const ed_soft_nms_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_SOFT_NMS_OPTIONS, options);
    return ops_call_into(&ed_op_non_max_suppression_with_scores,
                         (ed_tensor *const[]){boxes, scores}, 2,
                         ED_OPTIONS_FROM(ED_SOFT_NMS_OPTIONS, options, soft_attrs,
                                         .max_output_size = max_output_size),
                         (ed_tensor * *const[]){selected_scores});
}

/* ---- non_max_suppression_overlaps ------------------------------------------------------------ */

static bool non_max_suppression_overlaps_compose(ed_call *call)
{
    const ed_ints overlaps = ed_shape(call->inputs[0]), scores = ed_shape(call->inputs[1]);
    soft_attrs soft;
    if (overlaps.count != 2 || scores.count != 1 || overlaps.values[0] != scores.values[0] ||
        overlaps.values[1] != scores.values[0])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "overlaps must be [n, n] and scores [n], got %s and %s",
                            text_of_ints(overlaps.values, overlaps.count).s,
                            text_of_ints(scores.values, scores.count).s);
    return suppress_checked(call, hard_as_soft(call->attrs, &soft), true);
}

ED_OP(non_max_suppression_overlaps) = {
    .name = "non_max_suppression_overlaps",
    .doc = "the indices of boxes that do not overlap a better one, by their overlaps",
    .operands = {{"overlaps", ED_SET_FLOAT, 'T', .early = true},
                 {"scores", ED_SET_FLOAT, 'T', .early = true}},
    ED_OP_ATTRS(HARD_ATTRS, hard_attrs),
    .compose = non_max_suppression_overlaps_compose,
    .no_gradient = NO_SLOPE,
    .reference = non_max_suppression_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 6, 6), ED_DISTINCT_IN(0.1, 0.9, 6)},
                           .attrs = HARD_CALL(.max_output_size = 4, .iou_threshold = 0.6)},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 4, 4), ED_DISTINCT_IN(0.1, 0.9, 4)},
                           .attrs = HARD_CALL(.max_output_size = 9, .score_threshold = 0.4)}),
};

ed_tensor *ed_non_max_suppression_overlaps_with(ed_tensor *overlaps, ed_tensor *scores,
                                                int64_t max_output_size,
                                                const ed_non_max_suppression_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_NON_MAX_SUPPRESSION_OPTIONS, options);
    return CALL_OP(non_max_suppression_overlaps,
                   ED_OPTIONS_FROM(ED_NON_MAX_SUPPRESSION_OPTIONS, options, hard_attrs,
                                   .max_output_size = max_output_size),
                   overlaps, scores);
}

/* ---- draw_bounding_boxes --------------------------------------------------------------------- */

static const double color_table[10][4] = {
    {1, 1, 0, 1},     {0, 0, 1, 1},   {1, 0, 0, 1},   {0, 1, 0, 1}, {0.5, 0, 0.5, 1},
    {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

static bool draw_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *boxes = call->inputs[1],
                    *colors = call->n_inputs > 2 ? call->inputs[2] : NULL;
    if (x->rank != 4 || boxes->rank != 3 || boxes->shape[0] != x->shape[0] || boxes->shape[2] != 4)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "images must be [batch, height, width, channels] and boxes [batch, n, "
                            "4], got %s and %s",
                            text_of_tensor(x).s, text_of_tensor(boxes).s);
    if (colors && (colors->rank != 2 || colors->shape[0] < 1 || colors->shape[1] < x->shape[3]))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "colors must be [m, channels] with m >= 1 for images %s, got %s",
                            text_of_tensor(x).s, text_of_tensor(colors).s);
    if (!colors && x->shape[3] > 4)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "images with more than 4 channels need colors, got %s",
                            text_of_tensor(x).s);
    return ops_infer_like(call);
}

/* Color number n, channel c. */
static double color_of(const ed_call *call, int64_t n, int64_t c)
{
    const ed_tensor *colors = call->n_inputs > 2 ? call->inputs[2] : NULL;
    if (colors)
        return dtype_load(colors->dtype, colors->data, n % colors->shape[0] * colors->shape[1] + c);
    return call->inputs[0]->shape[3] == 1 ? 1 : color_table[n % 10][c];
}

/* Where a number of a box is, as a product in the boxes' dtype. */
static double place_of(double number, int64_t extent, ed_dtype dtype)
{
    return dtype == ED_FLOAT32 ? truncf((float)number * (float)(extent - 1))
                               : trunc(number * (double)(extent - 1));
}

/* The pixel there; far outside for NaN and what is too large. */
static int64_t pixel_of(const ed_tensor *boxes, int64_t i, int64_t extent)
{
    const double at = place_of(dtype_load(boxes->dtype, boxes->data, i), extent, boxes->dtype);
    return fabs(at) < 0x1p40 ? (int64_t)at : at < 0 ? -((int64_t)1 << 40) : (int64_t)1 << 40;
}

/* Pixels rows[0]..rows[1] by columns[0]..columns[1] of an image. */
static void fill_pixels(const ed_call *call, int64_t image, const int64_t rows[2],
                        const int64_t columns[2], int64_t color)
{
    ed_tensor *y = call->outputs[0];
    for (int64_t r = rows[0]; r <= rows[1]; r++)
        for (int64_t c = columns[0]; c <= columns[1]; c++)
            for (int64_t k = 0; k < y->shape[3]; k++)
                dtype_store(y->dtype, y->data,
                            ((image * y->shape[1] + r) * y->shape[2] + c) * y->shape[3] + k,
                            color_of(call, color, k));
}

static void draw_box(const ed_call *call, int64_t image, int64_t n)
{
    const ed_tensor *boxes = call->inputs[1];
    int64_t low[2], high[2], first[2], last[2];
    for (int a = 0; a < 2; a++) {
        const int64_t extent = call->outputs[0]->shape[1 + a],
                      at = (image * boxes->shape[1] + n) * 4 + a;
        low[a] = pixel_of(boxes, at, extent);
        high[a] = pixel_of(boxes, at + 2, extent);
        if (low[a] > high[a] || low[a] >= extent || high[a] < 0) return;
        first[a] = low[a] < 0 ? 0 : low[a];
        last[a] = high[a] >= extent ? extent - 1 : high[a];
    }
    const int64_t rows[] = {first[0], last[0]}, columns[] = {first[1], last[1]};
    for (int end = 0; end < 2; end++) {
        const int64_t row[] = {rows[end], rows[end]}, column[] = {columns[end], columns[end]};
        if (rows[end] == (end ? high : low)[0]) fill_pixels(call, image, row, columns, n);
        if (columns[end] == (end ? high : low)[1]) fill_pixels(call, image, rows, column, n);
    }
}

static bool draw_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *boxes = call->inputs[1], *y = call->outputs[0];
    memcpy(y->data, x->data, (size_t)x->size * dtype_size(x->dtype));
    for (int64_t i = 0; y->size && i < x->shape[0]; i++)
        for (int64_t n = 0; n < boxes->shape[1]; n++) draw_box(call, i, n);
    return true;
}

/* Whether pixel (r, c) is on the border of a box. */
static bool plain_is_border(const ed_call *call, const double *box, int64_t r, int64_t c)
{
    const int64_t *image = call->inputs[0]->shape;
    double at[4];
    for (int k = 0; k < 4; k++)
        at[k] = place_of(box[k], image[1 + k % 2], ed_dtype_of(call->operands[1]));
    const bool within =
        at[0] <= (double)r && (double)r <= at[2] && at[1] <= (double)c && (double)c <= at[3];
    return within &&
           ((double)r == at[0] || (double)r == at[2] || (double)c == at[1] || (double)c == at[3]);
}

static bool draw_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *boxes = call->inputs[1];
    const int64_t h = x->shape[1], w = x->shape[2], channels = x->shape[3], n = boxes->shape[1];
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t p = i / channels;
        const double *all = (const double *)boxes->data + p / w / h * n * 4;
        double y = ((const double *)x->data)[i];
        for (int64_t k = 0; k < n; k++)
            if (plain_is_border(call, all + 4 * k, p / w % h, p % w))
                y = color_of(call, k, i % channels);
        ((double *)call->outputs[0]->data)[i] = y;
    }
    return true;
}

ED_OP(draw_bounding_boxes) = {
    .name = "draw_bounding_boxes",
    .doc = "images with the borders of boxes drawn into them",
    .operands = {{"images", ED_SET_FLOAT, 'T'},
                 {"boxes", ED_SET_FLOAT, 'B'},
                 {"colors", ED_SET_FLOAT, 'C', .optional = true}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = draw_infer,
    .kernel = draw_kernel,
    .no_gradient = "where boxes are drawn changes in steps",
    .reference = draw_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 2, 7, 6, 3),
                                      ED_SAMPLE_IN(-0.3, 1.3, 2, 5, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 2, 6, 7, 1),
                                      ED_SAMPLE_IN(-0.1, 1.1, 2, 3, 4), ED_SAMPLE_IN(0, 1, 2, 3)}}),
};

ed_tensor *ed_draw_bounding_boxes(ed_tensor *images, ed_tensor *boxes, ed_tensor *colors)
{
    return CALL_OP_GIVEN(draw_bounding_boxes, NULL, images, boxes, colors);
}
