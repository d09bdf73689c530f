/*
 * An op has the same gradient whichever way it is called: by the dispatcher, by its public function
 * in C, by Lua's function. Every op that has one is called on its samples in these ways, each on a
 * tape: the results must be the same bits, and so must the gradients of each result by each
 * operand, for the same gradient of the result; and where one way has no gradient, no other may
 * have one.
 */
#include "lua/objects.h"
#include "lua/ops.h"
#include "tests/asserts.h"
#include "tests/functions.h"
#include "tests/ways.h"

int luaopen_eddy(lua_State *L);

/* Bytes of attributes. */
enum { ROOM = 1024 };

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static struct {
    int ops, samples, calls, gradients;
} total;

/* ---- In Lua ---------------------------------------------------------------------------------- */

static lua_State *L;

static void push_tensor(ed_tensor *x)
{
    handle_put(handle_new(L, HANDLE_TENSOR), x);
}

/* Puts the value at the top into the table below it, behind the others. */
static void append(void)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* The operands and, behind them, a table of the options; those that are the defaults are left out,
 * unless all are wanted. */
static void push_operands(const trial *t, bool all)
{
    lua_newtable(L);
    for (int i = 0; i < t->n; i++) push_tensor(t->x[i]), append();
    if (!t->op->attrs) return;
    lua_newtable(L);
    bool any = false;
    for (const ed_field *f = t->op->attrs; f->name; f++) {
        if (!all && !way_gives(t, f)) continue;
        help_push_attr(L, f, t->attrs);
        lua_setfield(L, -2, f->name);
        any = true;
    }
    if (any)
        append();
    else
        lua_pop(L, 1);
}

static void push_sources(const trial *t)
{
    lua_newtable(L);
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) push_tensor(t->x[i]), append();
}

static void push_seeds(const answer *asked)
{
    lua_newtable(L);
    for (int k = 0; k < asked->n && k < WAY_RESULTS; k++) {
        if (asked->seed[k])
            push_tensor(asked->seed[k]);
        else
            lua_pushboolean(L, false);
        append();
    }
}

/* Tensor i of the table at the top, in the scope; NULL for something else. */
static ed_tensor *tensor_in_table(int i)
{
    lua_rawgeti(L, -1, i);
    ed_tensor *x = handle_at(L, -1, HANDLE_TENSOR);
    lua_pop(L, 1);
    return x ? scope_give(ed_retain(x)) : NULL;
}

/* The results and the gradients, two tables at the top. */
static void read_answer(const trial *t, answer *got)
{
    for (int k = 0; k < got->n && k < WAY_RESULTS; k++) {
        lua_rawgeti(L, -1, k + 1);
        for (int i = 0, s = 0; lua_istable(L, -1) && i < t->n; i++)
            if (check_differentiates(t, i)) got->dx[k][i] = tensor_in_table(++s);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    for (int k = 0; k < got->n && k < WAY_RESULTS; k++) got->y[k] = tensor_in_table(k + 1);
}

/* Pushes what ways.lua says of a call of the op; whether there is one. */
static bool push_function(const ed_op *op)
{
    lua_getglobal(L, "ways");
    lua_getfield(L, -1, "find");
    lua_pushstring(L, ops_name(op));
    lua_call(L, 1, 1);
    return lua_isfunction(L, -1);
}

static bool by_lua(const trial *t, const answer *asked, answer *got)
{
    lua_settop(L, 0);
    lua_getglobal(L, "ways");
    lua_getfield(L, 1, "slopes");
    lua_remove(L, 1);
    if (!push_function(t->op)) return false;
    lua_remove(L, 2);
    push_operands(t, !ops_of(L, 2));
    push_sources(t);
    push_seeds(asked);
    if (lua_pcall(L, 4, 2, 0) != LUA_OK) {
        ed_fail(ED_INVALID_ARGUMENT, "%s", lua_tostring(L, -1));
        return true;
    }
    got->n = (int)lua_rawlen(L, 1);
    read_answer(t, got);
    return true;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

enum { WAYS = 2 };
static const struct {
    const char *name;
    way *call;
} ways[WAYS] = {{"the function of C", way_of_function}, {"Lua", by_lua}};

/* How many results a program gets at least: what is there for gradients alone is not given in all
 * ways, nor, in Lua, are attention's sums. */
static int results_for_all(const ed_op *op, int n)
{
    if (!strcmp(op->name, "scaled_dot_product_attention")) return 1;
    for (int k = 0; op->results && !(op->flags & ED_OP_MANY_OUTPUTS) && k < n; k++)
        if (op->results[k].kept) return k;
    return n;
}

static void compare(findings *f, const trial *t, const char *name, const answer *a, const answer *b)
{
    EXPECT(f, b->n <= a->n && b->n >= results_for_all(t->op, a->n), "%s: %d results, not %d", name,
           b->n, a->n);
    for (int k = 0; k < b->n && k < a->n && k < WAY_RESULTS; k++) {
        EXPECT(f, b->y[k] && same_bits(a->y[k], b->y[k]), "%s: result %d differs", name, k);
        for (int i = 0; i < t->n; i++) {
            const ed_tensor *x = a->dx[k][i], *y = b->dx[k][i];
            total.gradients += x != NULL;
            EXPECT(f, !x == !y, "%s: result %d has %s by operand %d, the op itself has %s", name, k,
                   y ? "a gradient" : "none", i, x ? "one" : "none");
            if (x && y)
                EXPECT(f, same_bits(x, y), "%s: the gradient of result %d by operand %d differs",
                       name, k, i);
        }
    }
}

/* In how many calls each way was gone. */
typedef struct tally {
    int of[WAYS];
} tally;

static void check_sample(findings *f, const trial *t, tally *calls)
{
    answer own = {0};
    ed_set_seed(5);
    if (!EXPECT(f, way_of_dispatch(t, NULL, &own) && !ed_failed(), "the op itself: %s", ed_error()))
        return;
    for (int w = 0; w < WAYS; w++) {
        answer other = {0};
        ed_set_seed(5);
        if (!ways[w].call(t, &own, &other)) continue;
        calls->of[w]++;
        if (EXPECT(f, !ed_failed() && other.n, "%s: %s", ways[w].name, ed_error()))
            compare(f, t, ways[w].name, &own, &other);
        ed_clear_error();
    }
}

/* Each way was gone, if not with every sample. */
static void check_reached(findings *f, const tally *calls)
{
    for (int w = 0; w < WAYS; w++) {
        EXPECT(f, calls->of[w], "%s does not reach it", ways[w].name);
        total.calls += calls->of[w];
    }
}

/* An op that a program calls, and that has a gradient. */
static bool is_called(const ed_op *op)
{
    return !(op->flags & ED_OP_INTERNAL) && !op->no_gradient && !op->operands[0].writes &&
           op->samples && !check_is_closed(op);
}

/* What only an op's own call can say: the numbers that it draws, which are the process's in all
 * other calls, and their dtype. */
static bool is_of_draws(const ed_field *a)
{
    return a->type == ED_FIELD_DRAW || !strcmp(a->name, "draws");
}

static void draw_anew(trial *t, void *room)
{
    if (!t->op->attrs) return;
    memcpy(room, t->attrs, t->op->attrs_size);
    for (const ed_field *a = t->op->attrs; a->name; a++)
        if (is_of_draws(a))
            memset(ED_FIELD_AT(a, room), 0,
                   a->type == ED_FIELD_DRAW ? sizeof(ed_draw) : field_size(a));
    t->attrs = room;
}

/* Whether a gradient flows to any operand. */
static bool is_differentiable(const trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) return true;
    return false;
}

static void check_samples(findings *f, ed_dtype dtype, tally *calls)
{
    trial t;
    max_align_t room[ROOM / sizeof(max_align_t)];
    f->check = ed_dtype_name(dtype);
    for (int s = 0; trial_begin(f, &t, s, dtype); s++) {
        ED_SCOPE;
        if (!is_differentiable(&t) || !trial_fill(&t)) continue;
        draw_anew(&t, room);
        check_sample(f, &t, calls);
        total.samples++;
        lua_settop(L, 0);
    }
}

/* How many failures there are; none of an op without an operand that has a gradient. */
static int check_op_in_all_ways(const ed_op *op, findings *f)
{
    const int before = total.samples;
    tally calls = {0};
    *f = (findings){.op = op, .sample = -1};
    check_samples(f, ED_FLOAT32, &calls);
    check_samples(f, ED_FLOAT64, &calls);
    f->sample = -1;
    if (total.samples > before) check_reached(f, &calls);
    total.ops += total.samples > before;
    lua_gc(L, LUA_GCCOLLECT);
    return f->failures;
}

static void all_ways_agree(void **unused)
{
    (void)unused;
    static findings f;
    int failures = 0;
    for (int i = 0; i < ed_op_count(); i++) {
        if (!is_called(ed_op_at(i))) continue;
        failures += check_op_in_all_ways(ed_op_at(i), &f);
        if (f.failures) print_error("%s", f.text);
    }
    printf("test_ways: %d ops, %d samples, %d calls beside the op's own, %d gradients\n", total.ops,
           total.samples, total.calls, total.gradients);
    assert_int_equal(failures, 0);
}

/* ---- The check is checked -------------------------------------------------------------------- */

/* What Lua's function is replaced by, so that its gradient is not the op's. */
static const struct {
    const char *op, *damage, *words;
} damages[] = {
    {"exp", "function(x) return broken(x) + (x - ed.stop_gradient(x)) * 1e-6 end", "differs"},
    {"exp", "function(x) return ed.stop_gradient(broken(x)) end", "Lua: result 0 has none"},
    {"batch_norm",
     "function(...) local y, mean, variance = broken(...) return y, ed.stop_gradient(mean), "
     "variance end",
     "Lua: result 1 has none"},
};

static void broken_ways_are_noticed(void **unused)
{
    (void)unused;
    static findings f;
    for (int i = 0; i < COUNT(damages); i++) {
        const char *op = damages[i].op;
        lua_settop(L, 0);
        if (luaL_dostring(
                L, lua_pushfstring(L, "broken = ed.%s ed.%s = %s", op, op, damages[i].damage)))
            fail_msg("%s", lua_tostring(L, -1));
        assert_true(check_op_in_all_ways(ed_op_find(op), &f));
        if (!strstr(f.text, damages[i].words)) fail_msg("%s", f.text);
        assert_false(luaL_dostring(L, lua_pushfstring(L, "ed.%s = broken", op)));
        assert_false(check_op_in_all_ways(ed_op_find(op), &f));
    }
}

/* ---------------------------------------------------------------------------------------------- */

static int open_lua(void **unused)
{
    (void)unused;
    L = luaL_newstate();
    if (!L) return -1;
    luaL_openlibs(L);
    luaL_requiref(L, "eddy", luaopen_eddy, 0);
    lua_setglobal(L, "ed");
    return luaL_dostring(L, "package.path = 'tests/lua/lib/?.lua' ways = require 'ways'");
}

static int close_lua(void **unused)
{
    (void)unused;
    lua_close(L);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_ways_agree, check_end),
        cmocka_unit_test_teardown(broken_ways_are_noticed, check_end),
    };
    return cmocka_run_group_tests(tests, open_lua, close_lua);
}
