/*
 * The program eddy without a terminal: scripts, options, exit codes, what it takes from its
 * surroundings and from Lua's own program; and what the module draws and says of itself.
 */
#include "tensor/version.h"
#include "tests/folders.h"
#include "tests/terminal.h"
#include <math.h>
#include <zlib.h>

/* ---- Scripts --------------------------------------------------------------------------------- */

static void scripts_run(void **unused)
{
    (void)unused;
    char with_program[sizeof program + 16];
    write_text(in_folder("words.lua"), "#!/usr/bin/env eddy\n"
                                       "print(arg[0], #arg, arg[-1] ~= nil, ...)\n"
                                       "return 5\n");
    runs("words.lua one 'two words'", 0, "words.lua\t2\ttrue\tone\ttwo words\n");
    runs("-e 'x = 1' -- words.lua", 0, "words.lua\t0\ttrue\n");
    runs("-e 'print(1)' -e'print(arg[0] ~= nil, arg[1])'", 0, "1\ntrue\t-e\n");
    runs("- a b < words.lua", 0, "-\t2\ttrue\ta\tb\n");
    runs("< words.lua", 0, strcat(strcpy(with_program, program), "\t0\tfalse\n"));
    write_text(in_folder("module.lua"), "return {value = 7, name = ...}\n");
    runs("-l module -e 'print(module.value, module.name)'", 0, "7\tmodule\n");
    runs("-l m=module -e 'print(m.value, module)'", 0, "7\tnil\n");
    runs("-e 'print(require(\"eddy\") == ed)'", 0, "true\n");
}

static void exit_codes_are_those_of_lua(void **unused)
{
    (void)unused;
    write_text(in_folder("bad.lua"), "local function f() error('no good') end\nf()\n");
    write_text(in_folder("wrong.lua"), "x = = 1\n");
    runs("-e 'os.exit(7)'", 7, "");
    runs("-e 'os.exit(true)'", 0, "");
    complains("bad.lua", "eddy: bad.lua:1: no good\nstack traceback:\n");
    complains("bad.lua", "bad.lua:1: in local 'f'\n\tbad.lua:2: in main chunk");
    complains("wrong.lua", "eddy: wrong.lua:1: unexpected symbol near '='");
    complains("none.lua", "eddy: cannot open none.lua");
    complains("-e 'error{}'", "eddy: (error object is a table value)\nstack traceback:\n");
    complains("-e 'error()'", "eddy: (error object is a nil value)\n");
    complains("-e 'error(setmetatable({}, {__tostring = function() return 5 .. \"\" end}))'",
              "eddy: 5\n");
    complains("-e 'print(' words.lua", "eddy: (command line):1: ");
    complains("-l no_such_module", "module 'no_such_module' not found");
    complains("-e", "-e is unknown or needs an argument");
    complains("--sage x.lua", "--sage is unknown");
    complains("-e 'x = ed.ones{2} + ed.ones{3}'", "(command line):1: add: ");
    complains("-e 'coroutine.wrap(function() error(\"inside\") end)()'", "inside");
    assert_null(strchr(complained, 27)); /* no colours in a file */
}

static void the_environment_is_that_of_lua(void **unused)
{
    (void)unused;
    write_text(in_folder("init.lua"), "x = (x or 0) + 5\n");
    setenv("LUA_INIT", "x = 1", 1);
    runs("-e 'print(x, ed ~= nil)'", 0, "1\ttrue\n");
    runs("-E -e 'print(x)'", 0, "nil\n");
    runs("--safe -e 'print(x)'", 0, "nil\n");
    setenv("LUA_INIT_5_4", "@init.lua", 1);
    runs("-e 'print(x)'", 0, "5\n");
    setenv("LUA_INIT_5_4", "error 'no good'", 1);
    complains("-e 'print(x)'", "eddy: LUA_INIT_5_4:1: no good\n");
    assert_string_equal(printed, "");
    setenv("LUA_INIT_5_4", "@none.lua", 1);
    complains("-e 'print(x)'", "eddy: cannot open none.lua");
    unsetenv("LUA_INIT_5_4");
    unsetenv("LUA_INIT");
    setenv("LUA_PATH", "./?.of_path", 1);
    runs("-e 'print(package.path)'", 0, "./?.of_path\n");
    assert_int_equal(run("-E -e 'print(package.path)'"), 0);
    assert_null(strstr(printed, "of_path"));
    unsetenv("LUA_PATH");
    runs("-e 'warn \"told\"'", 0, "");
    assert_int_equal(run("-W -e 'warn \"told\"'"), 0);
    assert_string_equal(complained, "Lua warning: told\n");
}

static void coroutines_are_those_of_lua(void **unused)
{
    (void)unused;
    write_text(in_folder("coroutines.lua"),
               "local co = coroutine.create(function(a, b)\n"
               "    local c = coroutine.yield(a + b)\n"
               "    local d, e = coroutine.yield(c * 2)\n"
               "    return d + e, 'end'\n"
               "end)\n"
               "print(coroutine.resume(co, 1, 2))\n"
               "print(coroutine.resume(co, 10))\n"
               "print(coroutine.status(co), coroutine.resume(co, 3, 4))\n"
               "print(coroutine.resume(co))\n"
               "print(coroutine.resume(coroutine.running()))\n"
               "print(coroutine.resume(coroutine.create(function() error({}) end)) == false)\n"
               "local closed = false\n"
               "local gen = coroutine.wrap(function()\n"
               "    local x <close> = setmetatable({}, {__close = function() closed = true end})\n"
               "    coroutine.yield(1)\n"
               "    error('late', 0)\n"
               "end)\n"
               "print(gen(), pcall(gen))\n"
               "print(closed, pcall(gen))\n"
               "print(pcall(coroutine.resume, 1))\n"
               "for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do\n"
               "    io.write(v, ' ')\n"
               "end\n"
               "print(select('#', coroutine.resume(coroutine.create(function() end))))\n");
    assert_int_equal(run("coroutines.lua"), 0);
    char ours[4096];
    snprintf(ours, sizeof ours, "%.4000s", printed);
    const char *expected = "true\t3\ntrue\t20\nsuspended\ttrue\t7\tend\n"
                           "false\tcannot resume dead coroutine\n"
                           "false\tcannot resume non-suspended coroutine\n"
                           "true\n";
    assert_int_equal(strncmp(ours, expected, strlen(expected)), 0);
    assert_non_null(strstr(ours, "1\tfalse\t"));
    assert_non_null(strstr(ours, "late\ntrue\tfalse\t"));
    assert_non_null(strstr(ours, "cannot resume dead coroutine\n"));
    assert_non_null(strstr(ours, "1 2 3 1\n"));
}

/* They fail with the words of Lua's own, at the same places, and can go on. */
static void coroutines_fail_as_those_of_lua(void **unused)
{
    (void)unused;
    write_text(
        in_folder("failing.lua"),
        "local function fails(f, ...) return select(2, pcall(f, ...)) end\n"
        "local w = coroutine.wrap(function() error('once', 0) end)\n"
        "print(fails(function() w() end))\n"
        "print(fails(function() w() end))\n"
        "w = coroutine.wrap(function() w() end)\n"
        "print(fails(function() w() end))\n"
        "local outer outer = coroutine.create(function()\n"
        "    return coroutine.resume(coroutine.create(function() return coroutine.resume(outer) "
        "end))\n"
        "end)\n"
        "print(coroutine.resume(outer))\n"
        "print(fails(coroutine.close, coroutine.running()))\n"
        "local many = {} for i = 1, 600000 do many[i] = i end\n"
        "local co = coroutine.create(function(...) while true do coroutine.yield(1) end end)\n"
        "print(coroutine.resume(co, table.unpack(many)))\n"
        "print(coroutine.resume(co, table.unpack(many)))\n"
        "print(coroutine.resume(co))\n"
        "local function give() coroutine.yield(table.unpack(many)) return 'after' end\n"
        "co, w = coroutine.create(give), coroutine.wrap(give)\n"
        "local holder = coroutine.wrap(function(...)\n"
        "    coroutine.yield((select(2, coroutine.resume(co))))\n"
        "    coroutine.yield(fails(function() w() end))\n"
        "end)\n"
        "print(holder(table.unpack(many, 1, 500000)))\n"
        "print(holder())\n"
        "print(coroutine.resume(co))\n"
        "print(w())\n");
    runs("failing.lua", 0,
         "failing.lua:3: once\n"
         "failing.lua:4: cannot resume dead coroutine\n"
         "failing.lua:6: failing.lua:5: cannot resume non-suspended coroutine\n"
         "true\ttrue\tfalse\tcannot resume non-suspended coroutine\n"
         "cannot close a running coroutine\n"
         "true\t1\n"
         "false\ttoo many arguments to resume\n"
         "true\t1\n"
         "too many results to resume\n"
         "failing.lua:21: too many results to resume\n"
         "true\tafter\n"
         "after\n");
}

static void the_prompt_without_a_terminal(void **unused)
{
    (void)unused;
    write_text(in_folder("input"), "1 + 1\nfunction f()\nreturn 'of two lines'\nend\nf()\nx.y\n");
    assert_int_equal(run("-i < input"), 0);
    assert_non_null(strstr(printed, "> 2\n"));
    assert_non_null(strstr(printed, "\"of two lines\"\n"));
    assert_non_null(strstr(complained, "attempt to index a nil value (global 'x')"));
    runs("--version", 0, "Eddy " ED_VERSION ", Lua 5.4.4\n");
    assert_int_equal(run("--help"), 0);
    assert_non_null(strstr(printed, "usage: eddy"));
}

static void safe_is_safe(void **unused)
{
    (void)unused;
    runs("--safe -e 'print(os, io, package, require, debug, dofile, loadfile)'", 0,
         "nil\tnil\tnil\tnil\tnil\tnil\tnil\n");
    runs(
        "--safe -e 'print(load(\"return 6 * 7\")(), load(\"return x\", \"n\", \"bt\", {x = 8})())'",
        0, "42\t8\n");
    runs("--safe -e 'print(load(string.dump(function() end)))'", 0,
         "nil\tattempt to load a binary chunk (mode is 't')\n");
    runs("--safe -e 'print(load(string.dump(function() end), \"x\", \"b\"))'", 0,
         "nil\tattempt to load a binary chunk (mode is 't')\n");
    runs("-e 'io.open(\"code.luac\", \"wb\"):write(string.dump(load(\"print(9)\"))):close()'", 0,
         "");
    runs("code.luac", 0, "9\n");
    complains("--safe code.luac", "attempt to load a binary chunk (mode is 't')");
    complains("--safe -l module", "modules are not available with --safe");
    runs("--safe -e 'print(ed.ones{2}:sum():item(), #coroutine.wrap(function() return {1} end)())'",
         0, "2.0\t1\n");
    runs("-e 'print(os and io and package and debug and true)'", 0, "true\n");
}

/* ---- Help ------------------------------------------------------------------------------------ */

/* Whatever the module offers, help has words for. */
static void help_knows_every_name(void **unused)
{
    (void)unused;
    write_text(
        in_folder("names.lua"),
        "local function check(t, prefix)\n"
        "    for name, value in pairs(t) do\n"
        "        local path = prefix .. name\n"
        "        if type(value) == 'function' and not ed.describe(path) then print(path) end\n"
        "        if type(value) == 'table' and prefix == '' then check(value, name .. '.') end\n"
        "    end\n"
        "end\n"
        "check(ed, '')\n"
        "for _, kind in ipairs{'tensor', 'tape', 'layer', 'optimizer', 'metric', 'generator',\n"
        "        'dataset', 'checkpoint', 'restoration', 'checkpoint_manager', 'archive'} do\n"
        "    for name, what in pairs(ed.names(kind)) do\n"
        "        local path = kind .. (what == 'field' and '.' or ':') .. name\n"
        "        if not ed.describe(path) then print(path) end\n"
        "    end\n"
        "end\n"
        "assert(not ed.describe('no_such') and not ed.describe('layer:rows'))\n"
        "assert(ed.describe('dense'):find('ed.dense(units, {activation=', 1, true))\n"
        "assert(ed.describe(ed.random.normal):find('ed.random.normal(shape', 1, true))\n"
        "assert(ed.describe('add'):find('^ed.add%(a, b%)'))\n"
        "assert(ed.describe('tensor:add') == ed.describe('add'))\n"
        "assert(ed.describe('layer:add'):find('^layer:add%(child%)'))\n"
        "assert(ed.describe('optimizer.iterations'):find('^optimizer.iterations'))\n"
        "assert(ed.describe('tensor:split'):find('ed.split(x, parts', 1, true))\n"
        "assert(ed.describe(ed.dense(1)):find('not_trainable', 1, true))\n");
    runs("names.lua", 0, "");
}

/* Every example that help shows is run when it is asked for: it has a result. */
static void help_shows_examples(void **unused)
{
    (void)unused;
    write_text(
        in_folder("examples.lua"),
        "local without = 0\n"
        "for name, f in pairs(ed) do\n"
        "    local text = type(f) == 'function' and ed.describe(name) or ''\n"
        "    if text:find('\\n    gradient ') and not text:find('\\n    > ed.', 1, true) then\n"
        "        without = without + 1\n"
        "        print(name)\n"
        "    end\n"
        "end\n"
        "assert(ed.describe('exp'):find('tensor float32', 1, true))\n"
        "print(without)\n");
    runs("examples.lua", 0, "0\n");
}

/* ---- Plots ----------------------------------------------------------------------------------- */

static void plots_are_drawn(void **unused)
{
    (void)unused;
    /* a rising line: two dots wide and four high for each character */
    runs("-e 'ed.plot({0, 1, 2, 3}, {width = 2, height = 1})'", 0,
         "        2 ┤⡠⠊\n"
         "          └──\n"
         "           1 4\n");
    runs("-e 'ed.hist({1, 1, 1, 2}, {bins = 2, width = 3})'", 0,
         "        1 │███ 3\n"
         "      1.5 │█ 1\n"
         "        2\n");
    runs("-e 'ed.imshow{{0, 1, 2}, {3, 4, 4}}'", 0, "  ░░▒▒\n▓▓████\n");
    complains(
        "-e 'ed.plot({1, 2}, {1})'",
        "(command line):1: plot: x and y must have the same length: x has 2 numbers, y has 1");
    complains("-e 'ed.plot()'", "plot: expected y, or x and y");
    complains("-e 'ed.imshow(ed.ones{2, 2, 2})'", "imshow: the image must be [height, width]");
    complains("-e 'ed.hist({1}, {bins = 0})'", "hist: bins");
    assert_int_equal(run("-e 'ed.plot{0/0, 1/0, 1} ed.plot{} ed.plot(ed.zeros{0}) ed.hist{}'"), 0);
    /* values at the ends of what numbers can be */
    runs("-e 'ed.hist({1e308, -1e308, 5}, {bins = 2, width = 2})'", 0,
         "  -1e+308 │█ 1\n"
         "        0 │██ 2\n"
         "   1e+308\n");
    assert_int_equal(run("-e 'ed.hist{5e-324} ed.hist{1.7e308} ed.plot{1e20, 1e20 + 65536} "
                         "ed.plot{1e308, -1e308} ed.plot{5e-324, 1e-323}'"),
                     0);
    runs("-e 'ed.imshow{{0/0, 1}, {2, 1/0}}'", 0, "\n████\n  2 elements are not finite\n");
    runs("-e 'ed.imshow{{1/0, -1/0}}'", 0, "██\n  2 elements are not finite\n");
    /* no more than a terminal shows */
    runs("-e 'ed.imshow(ed.range(0, 300, 1):reshape{100, 3})'", 0,
         "\n\n\n\n░░\n░░\n░░\n░░\n▒▒\n▒▒\n▒▒\n▒▒\n▓▓\n▓▓\n▓▓\n▓▓\n██\n██\n██\n██\n"
         "  of 100 x 3 pixels, one in 5 each way\n");
    /* what is wrong, where */
    complains("-e '\ned.imshow(ed.ones{2, 2}, {width = 0})'",
              "(command line):2: imshow: width must be an integer from 1 to 1000");
    complains("-e 'ed.imshow(5)'", "(command line):1: imshow: expected a tensor or a table, got");
    complains("-e 'ed.hist(\"a\")'",
              "(command line):1: hist: expected a tensor or a table of numbers");
    complains("-e 'ed.plot(ed.adam())'", "of numbers, got an optimizer");
    complains(
        "-e 'ed.plot({1, 2}, {foo = 1})'",
        "(command line):1: plot: there is no option foo; the options are title, width, height");
    complains("-e 'ed.plot({1, 2}, {title = 5})'", "plot: title must be a string, got a number");
    complains("-e 'local x = ed.ones{2} do local y <close> = x end ed.plot(x)'",
              "eddy: (command line):1: bad argument");
    complains("-e 'ed.plot({1}, {file = \"none/x.png\"})'",
              "eddy: (command line):1: write_png: none/x.png: open: No such file");
    complains("-e 'ed.write_png(\"a\\0b\", ed.ones{2, 2})'", "there is a zero byte in it");
    complains("-e 'ed.write_png(\"none/x.png\", ed.ones{2, 2})'", "none/x.png: open: No such file");
    complains("-e 'ed.write_png(\"x.png\", ed.ones{2, 2, 5})'", "got float32[2, 2, 5]");
    complains("-e 'ed.write_png(\"x.png\", ed.ones{0, 2})'", "got float32[0, 2, 1]");
}

static uint32_t u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Reads a PNG as the standard says; the inflated rows, and what IHDR has. */
static size_t read_png(const char *path, uint8_t *rows, size_t room, uint8_t head[13])
{
    static uint8_t file[1 << 22], packed[1 << 22];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(file, 1, sizeof file, f), n_packed = 0, at = 8;
    fclose(f);
    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    for (const char *name = ""; strcmp(name, "IEND") != 0;) {
        static char kind[5];
        assert_true(at + 12 <= size);
        uint32_t length = u32(file + at);
        memcpy(kind, file + at + 4, 4);
        name = kind;
        assert_int_equal(u32(file + at + 8 + length), crc32(0, file + at + 4, length + 4));
        if (!strcmp(name, "IHDR")) memcpy(head, file + at + 8, 13);
        if (!strcmp(name, "IDAT")) {
            memcpy(packed + n_packed, file + at + 8, length);
            n_packed += length;
        }
        at += 12 + length;
    }
    assert_int_equal(at, size);
    uLongf n = room;
    assert_int_equal(uncompress(rows, &n, packed, n_packed), Z_OK);
    return n;
}

static void images_are_written(void **unused)
{
    (void)unused;
    static uint8_t rows[1 << 22];
    uint8_t head[13];
    runs("-e 'ed.write_png(\"a.png\", ed.tensor({{1, 2, 3}, {4, 5, 255}}, \"uint8\"))'", 0, "");
    assert_int_equal(read_png(in_folder("a.png"), rows, sizeof rows, head), 8);
    assert_memory_equal(rows, ((uint8_t[]){0, 1, 2, 3, 0, 4, 5, 255}), 8);
    assert_memory_equal(head, ((uint8_t[]){0, 0, 0, 3, 0, 0, 0, 2, 8, 0, 0, 0, 0}), 13);
    runs("-e 'ed.write_png(\"b.png\", ed.tensor{{{-1, 0.5, 2}}, {{0, 0.25, 0/0}}})'", 0, "");
    assert_int_equal(read_png(in_folder("b.png"), rows, sizeof rows, head), 8);
    assert_memory_equal(rows, ((uint8_t[]){0, 0, 128, 255, 0, 0, 64, 0}), 8);
    assert_int_equal(head[9], 2);
    /* more than one chunk: what can't be compressed, with an alpha channel and through a view */
    runs("-e 'x = ed.range(0, 240000, 1):reshape{200, 300, 4}:cast(\"float64\"); "
         "y = (x * 0.6180339887) % 1; ed.write_png(\"c.png\", y:transpose{2, 1, 3})'",
         0, "");
    assert_int_equal(read_png(in_folder("c.png"), rows, sizeof rows, head), 300 * (1 + 200 * 4));
    assert_int_equal(head[9], 6);
    for (size_t i = 0, y = 0; y < 300; y++) {
        assert_int_equal(rows[i++], 0);
        for (size_t x = 0; x < 800; x++, i++) {
            double v = fmod((double)((x / 4 * 300 + y) * 4 + x % 4) * 0.6180339887, 1);
            assert_true(fabs(v * 255 - rows[i]) <= 0.5 + 1e-6);
        }
    }
    runs("-e 'ed.plot({{1, 2, 4}, {3, 2, 1}}, {file = \"d.png\", width = 300, height = 200, "
         "title = \"Two lines\", labels = {\"up\", \"down\"}}) ed.hist({1, 2, 2}, {file = "
         "\"e.png\"}) "
         "ed.imshow(ed.eye(5), {file = \"f.png\", width = 10})'",
         0, "");
    assert_int_equal(read_png(in_folder("d.png"), rows, sizeof rows, head), 200 * (1 + 300 * 3));
    assert_int_equal(read_png(in_folder("e.png"), rows, sizeof rows, head), 400 * (1 + 640 * 3));
    assert_int_equal(read_png(in_folder("f.png"), rows, sizeof rows, head), 10 * (1 + 10));
    for (size_t y = 0; y < 10; y++)
        for (size_t x = 0; x < 10; x++)
            assert_int_equal(rows[y * 11 + 1 + x], x / 2 == y / 2 ? 255 : 0);
}

static int setup(void **state)
{
    return folder_begin(state) || !terminal_begin(folder_root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_run),
        cmocka_unit_test(exit_codes_are_those_of_lua),
        cmocka_unit_test(the_environment_is_that_of_lua),
        cmocka_unit_test(coroutines_are_those_of_lua),
        cmocka_unit_test(coroutines_fail_as_those_of_lua),
        cmocka_unit_test(the_prompt_without_a_terminal),
        cmocka_unit_test(safe_is_safe),
        cmocka_unit_test(help_knows_every_name),
        cmocka_unit_test(help_shows_examples),
        cmocka_unit_test(plots_are_drawn),
        cmocka_unit_test(images_are_written),
    };
    return cmocka_run_group_tests(tests, setup, folder_end);
}
