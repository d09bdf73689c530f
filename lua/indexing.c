#include "lua/indexing.h"
#include "lua/maker.h"
#include <stdlib.h>
#include <string.h>

/* One part of an index, as it was written. */
typedef struct range {
    bool single;
    bool no_first, no_last;
    int64_t first, last, step;
} range;

typedef struct places {
    int count;
    int gap; /* "..." is before this part and stands for all axes that are left; -1 without one */
    range at[ED_MAX_RANK];
} places;

/* The elements of an axis that a part selects, counted from 0. */
typedef struct stretch {
    int64_t begin, count, step;
} stretch;

static bool bad(const char *why)
{
    return ed_fail(ED_INVALID_ARGUMENT, "index: %s", why), false;
}

/* ---- Reading an index ------------------------------------------------------------------------ */

static bool add_index(places *p, range r)
{
    if (p->count == ED_MAX_RANK) return bad("more indices than a tensor can have axes");
    if (!r.no_first && !r.first)
        return bad("index 0 is out of bounds: indices count from 1, and from -1 at the end");
    if (!r.single && !r.step) return bad("the step must not be 0");
    if (r.step < -INT64_MAX) r.step = -INT64_MAX; /* can be negated */
    p->at[p->count++] = r;
    return true;
}

static bool add_gap(places *p)
{
    if (p->gap >= 0) return bad("'...' is given twice");
    p->gap = p->count;
    return true;
}

static bool read_integer(lua_State *L, int at, int64_t *value)
{
    int fine;
    *value = lua_tointegerx(L, at, &fine);
    if (fine && lua_type(L, at) == LUA_TNUMBER) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "index: expected an integer, got %s",
                   convert_kind(L, at).s),
           false;
}

static bool read_number(lua_State *L, int at, places *p)
{
    int64_t i;
    return read_integer(L, at, &i) && add_index(p, (range){.single = true, .first = i});
}

/* {}, {first, last}, {first, last, step} at the top of the stack. */
static bool read_range(lua_State *L, places *p)
{
    int64_t n = (int64_t)lua_rawlen(L, -1), numbers[3] = {0, 0, 1};
    if (n > 3 || convert_has_names(L, -1)) return bad("a range must be {first, last, step}");
    for (int64_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        bool fine = read_integer(L, -1, &numbers[i]);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    return add_index(p, (range){false, n < 1, n < 2, numbers[0], numbers[1], numbers[2]});
}

/* Reads the numbers of "first:last:step", any of which may be missing, up to the next comma, to
 * which *s is moved; returns the number of colons, -1 for more than two. */
static int read_numbers(const char **s, int64_t numbers[3], bool given[3])
{
    for (int n = 0; n < 3; n++) {
        char *end;
        long long value = strtoll(*s, &end, 10);
        if ((given[n] = end != *s)) numbers[n] = value;
        *s = end + strspn(end, " ");
        if (**s != ':') return n;
        ++*s;
    }
    return -1;
}

/* Reads "2", "1:3", ":", "::-1" or "..." up to a comma or the end, which it returns; NULL with
 * an error. */
static const char *read_piece(const char *s, places *p)
{
    int64_t numbers[3] = {0, 0, 1};
    bool given[3] = {false, false, false};
    s += strspn(s, " ");
    if (!strncmp(s, "...", 3)) {
        s += 3 + strspn(s + 3, " ");
        return add_gap(p) && (!*s || *s == ',' || bad("'...' must be alone between commas")) ? s
                                                                                             : NULL;
    }
    int colons = read_numbers(&s, numbers, given);
    if (colons < 0 || (*s && *s != ',') || (!colons && !given[0]))
        return bad("expected 'first:last:step' between commas"), NULL;
    range r = {!colons, !given[0], !given[1], numbers[0], numbers[1], numbers[2]};
    return add_index(p, r) ? s : NULL;
}

static bool read_text(lua_State *L, int at, places *p)
{
    const char *s = lua_tostring(L, at);
    if (!convert_is_plain(L, at)) return bad("the string contains a zero byte");
    while ((s = read_piece(s, p)) && *s) s++;
    return s;
}

static bool read_entry(lua_State *L, places *p)
{
    switch (lua_type(L, -1)) {
    case LUA_TTABLE: return read_range(L, p);
    case LUA_TSTRING: return read_text(L, -1, p);
    default: return read_number(L, -1, p);
    }
}

static bool read_table(lua_State *L, int at, places *p)
{
    int64_t n = (int64_t)lua_rawlen(L, at);
    if (convert_has_names(L, at)) return bad("a table of indices must not have names");
    for (int64_t i = 1; i <= n; i++) {
        lua_rawgeti(L, at, i);
        bool fine = read_entry(L, p);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    return true;
}

static bool read_key(lua_State *L, int key, places *p)
{
    const ed_tensor *t = handle_at(L, key, HANDLE_TENSOR);
    p->count = 0;
    p->gap = -1;
    switch (lua_type(L, key)) {
    case LUA_TNUMBER: return read_number(L, key, p);
    case LUA_TTABLE: return read_table(L, key, p);
    case LUA_TSTRING: return read_text(L, key, p);
    default:
        if (t)
            ed_fail(ED_INVALID_ARGUMENT,
                    "index: %s is not a bool tensor; indices in tensors count from 0: "
                    "use ed.gather(x, indices)",
                    convert_type(t).s);
        else
            ed_fail(
                ED_INVALID_ARGUMENT,
                "index: expected a number, a string, a table of indices or a bool tensor, got %s",
                convert_kind(L, key).s);
        return false;
    }
}

bool indexing_is_string(const char *s, size_t size)
{
    return size && (strspn(s, "0123456789:-,. ") == size || memchr(s, 0, size));
}

/* ---- Finding the elements -------------------------------------------------------------------- */

/* Converts an index that counts from 1, or from -1 at the end, to one that counts from 0; before
 * the first if negative. */
static int64_t from_zero(int64_t place, int64_t extent)
{
    return place >= 0 ? place - 1 : place + extent;
}

/* The elements of an axis that a range selects, clipped to the axis; false for a single index
 * that is out of bounds. */
static bool locate(const range *r, int64_t extent, stretch *s)
{
    int64_t first = from_zero(r->first, extent), last = from_zero(r->last, extent);
    if (r->single) {
        *s = (stretch){first, 1, 1};
        return first >= 0 && first < extent;
    }
    bool back = r->step < 0;
    if (r->no_first) first = back ? extent - 1 : 0;
    if (r->no_last) last = back ? 0 : extent - 1;
    int64_t low = back ? last : first, high = back ? first : last;
    if (low < 0) low = 0;
    if (high >= extent) high = extent - 1;
    if (low > high) return *s = (stretch){0, 0, 1}, true;
    *s = (stretch){back ? high : low, (high - low) / (back ? -r->step : r->step) + 1, r->step};
    return true;
}

/* The same for an axis of a symbolic tensor whose size is open: what is counted from its end can't
 * be said. count -1: up to the end. */
static bool locate_open(const range *r, stretch *s)
{
    const int64_t first = r->no_first ? 1 : r->first;
    if ((!r->single && r->step < 0) || first < 1 || (!r->single && !r->no_last && r->last < 1))
        return false;
    *s = (stretch){first - 1, 1, 1};
    if (r->single) return true;
    *s = (stretch){first - 1, -1, r->step};
    if (!r->no_last) s->count = r->last < first ? 0 : (r->last - first) / r->step + 1;
    return true;
}

static bool no_place(const ed_tensor *t, int axis, int64_t place)
{
    if (ed_shape(t).values[axis] < 0)
        ed_fail(ED_INVALID_ARGUMENT,
                "index: the size of axis %d of %s is open, so nothing counts from its end",
                axis + 1, convert_type(t).s);
    else
        ed_fail(ED_OUT_OF_RANGE, "index: index %lld is out of bounds for axis %d of %s",
                (long long)place, axis + 1, convert_type(t).s);
    return false;
}

/* The selected elements of each axis of t; all of an axis that p does not name. */
static bool locate_all(const ed_tensor *t, const places *p, stretch *s)
{
    int left = ed_rank(t) - p->count;
    if (left < 0)
        return ed_fail(ED_INVALID_ARGUMENT, "index: %d indices given for %s", p->count,
                       convert_type(t).s),
               false;
    for (int axis = 0; axis < ed_rank(t); axis++)
        s[axis] = (stretch){0, ed_shape(t).values[axis], 1};
    for (int i = 0; i < p->count; i++) {
        int axis = p->gap >= 0 && i >= p->gap ? i + left : i;
        const int64_t extent = ed_shape(t).values[axis];
        if (!(extent < 0 ? locate_open(&p->at[i], &s[axis]) : locate(&p->at[i], extent, &s[axis])))
            return no_place(t, axis, p->at[i].first);
    }
    return true;
}

/* The axes that single indices remove. */
static ed_ints singles(const ed_tensor *t, const places *p, int64_t *axes)
{
    ed_ints list = {axes, 0};
    for (int i = 0; i < p->count; i++)
        if (p->at[i].single)
            axes[list.count++] = p->gap >= 0 && i >= p->gap ? i + ed_rank(t) - p->count : i;
    return list;
}

/* The selections as ed_slice's arguments. */
typedef struct slice_of_places {
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK], step[ED_MAX_RANK];
    ed_slice_options options;
} slice_of_places;

static void to_slice(const ed_tensor *t, const stretch *s, slice_of_places *of)
{
    for (int i = 0; i < ed_rank(t); i++) {
        int64_t last = s[i].begin + (s[i].count - 1) * s[i].step;
        of->begin[i] = s[i].begin;
        of->step[i] = s[i].step;
        of->end[i] = s[i].step > 0 ? last + 1
                     : last        ? last - 1
                                   : ED_END; /* the limit is excluded */
        if (s[i].count < 0) of->end[i] = ED_END;
    }
    of->options = ED_NEW_OPTIONS(ED_SLICE_OPTIONS, ed_slice_options);
    of->options.begin = (ed_ints){of->begin, ed_rank(t)};
    of->options.end = (ed_ints){of->end, ed_rank(t)};
    of->options.step = (ed_ints){of->step, ed_rank(t)};
}

static ed_tensor *view_at(ed_tensor *t, const places *p)
{
    stretch at[ED_MAX_RANK];
    int64_t axes[ED_MAX_RANK];
    slice_of_places s;
    if (!locate_all(t, p, at)) return NULL;
    to_slice(t, at, &s);
    ed_tensor *y = ed_slice_with(t, &s.options);
    ed_ints gone = singles(t, p, axes);
    return y && gone.count ? ed_squeeze(y, .axis = gone) : y;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

static ed_tensor *mask_at(lua_State *L, int key)
{
    ed_tensor *t = handle_at(L, key, HANDLE_TENSOR);
    return t && ed_dtype_of(t) == ED_BOOL ? t : NULL;
}

/* The indices, from 0, of the rows where the mask over t's leading axes is true. */
static ed_tensor *true_rows(const ed_tensor *t, const ed_tensor *mask)
{
    if (ed_rank(mask) > ed_rank(t) ||
        memcmp(ed_shape(mask).values, ed_shape(t).values,
               (size_t)ed_rank(mask) * sizeof *ed_shape(t).values) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "index: the mask is %s, but the tensor is %s; it must have the sizes of the "
                       "leading axes",
                       convert_type(mask).s, convert_type(t).s);
    const uint8_t *bits = ed_data(mask);
    int64_t n = 0;
    for (int64_t i = 0; bits && i < ed_size(mask); i++) n += bits[i];
    void *numbers;
    ed_tensor *rows = bits ? ed_empty(ED_INT64, ED_SHAPE(n), &numbers) : NULL;
    n = 0;
    for (int64_t i = 0; rows && i < ed_size(mask); i++)
        if (bits[i]) ((int64_t *)numbers)[n++] = i;
    return rows;
}

/* The shape of n rows: n and t's axes after those of the mask. */
static ed_ints shape_of_rows(const ed_tensor *t, const ed_tensor *mask, int64_t rows,
                             int64_t *shape)
{
    int rank = ed_rank(t) - ed_rank(mask);
    shape[0] = rows;
    memcpy(shape + 1, ed_shape(t).values + ed_rank(mask), (size_t)rank * sizeof *shape);
    return (ed_ints){shape, rank + 1};
}

/* The gradient flows to the rows. */
static ed_tensor *read_masked(ed_tensor *t, const ed_tensor *mask)
{
    int64_t shape[ED_MAX_RANK + 1];
    ed_tensor *rows = true_rows(t, mask);
    if (!rows) return NULL;
    ed_tensor *all = ed_reshape(t, shape_of_rows(t, mask, ed_size(mask), shape));
    return ed_gather(all, rows, .axis = 0);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The value is broadcast to the shape that reading the same index gives: that of the slice
 * without the axes of single indices. */
static bool write_view(ed_tensor *v, const places *p, ed_tensor *value)
{
    slice_of_places s;
    int64_t left[ED_MAX_RANK], part[ED_MAX_RANK], axes[ED_MAX_RANK];
    stretch at[ED_MAX_RANK];
    if (!locate_all(v, p, at)) return false;
    to_slice(v, at, &s);
    const ed_ints gone = singles(v, p, axes);
    int n = 0;
    for (int i = 0, k = 0; i < ed_rank(v); i++) {
        part[i] = at[i].count;
        if (k < gone.count && gone.values[k] == i)
            k++;
        else
            left[n++] = at[i].count;
    }
    if (gone.count)
        value = ed_reshape(ed_broadcast_to(value, (ed_ints){left, n}), (ed_ints){part, ed_rank(v)});
    return ed_assign_slice_with(v, value, &s.options);
}

/* ---- The functions of the header ------------------------------------------------------------- */

ed_tensor *indexing_read(lua_State *L, ed_tensor *t, int key)
{
    const ed_tensor *mask = mask_at(L, key);
    if (mask) return read_masked(t, mask);
    places p;
    if (!read_key(L, key, &p)) return NULL;
    return view_at(t, &p);
}

bool indexing_write(lua_State *L, ed_tensor *v, int key, ed_tensor *value)
{
    ed_tensor *mask = mask_at(L, key);
    if (mask) return (ed_assign_masked)(v, mask, value);
    places p;
    return read_key(L, key, &p) && write_view(v, &p, value);
}

/* ---- slice ----------------------------------------------------------------------------------- */

typedef struct slice {
    ed_tensor *x;
    ed_ints first, last, step;
} slice;

static const maker_field slice_fields[] = {
    {"x", .offset = offsetof(slice, x), .read = maker_operand},
    {"first", ED_FIELD_INTS, .offset = offsetof(slice, first)},
    {"last", ED_FIELD_INTS, .offset = offsetof(slice, last)},
    {"step", ED_FIELD_INTS, .offset = offsetof(slice, step)},
    {0},
};

/* Value i of a list, if it has so many. */
static int64_t nth(ed_ints list, int64_t i, int64_t otherwise)
{
    return i < list.count ? list.values[i] : otherwise;
}

static void *make_slice(const void *arguments)
{
    const slice *a = arguments;
    places p = {.gap = -1};
    int64_t n = a->first.count > a->last.count ? a->first.count : a->last.count;
    if (a->step.count > n) n = a->step.count;
    for (int64_t i = 0; i < n; i++) {
        range r = {false,
                   i >= a->first.count,
                   i >= a->last.count,
                   nth(a->first, i, 0),
                   nth(a->last, i, 0),
                   nth(a->step, i, 1)};
        if (!add_index(&p, r)) return NULL;
    }
    return view_at(a->x, &p);
}

static const maker makers[] = {
    {"slice", HANDLE_TENSOR, 1, 1, slice_fields, sizeof(slice), NULL, make_slice},
    {0},
};

void indexing_open(lua_State *L)
{
    maker_open(L, makers);
}
