/*
 * The prompt of the program eddy, at a terminal.
 */
#include "tests/folders.h"
#include "tests/terminal.h"
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static void results_are_printed(void **unused)
{
    (void)unused;
    start();
    enter("1 + 1", "2");
    enter("_ * 21", "42");
    enter("= 'a\\t\"b'", "\"a\\009\\\"b\"");
    enter("'a\\n'", "\"a\\n\"");
    enter("ed.tensor{{1, 2}, {3, 4}}", "[[1 2]\n [3 4]]\ntensor int32 [2, 2]");
    enter("{3, x = _, t = {}, s = 'text', [7.5] = true}",
          "{3, s = \"text\", t = {}, x = int32 [2, 2], [7.5] = true}");
    enter("{1, {2, {3}, 'x', {}}, {a = 1}, {{}}}", "{1, {2, {...}, \"x\", {}}, {...}, {{}}}");
    enter("{{('x'):rep(21), 'a\\nb', ed.ones{2}}}", "{{\"...\", \"...\", float32 [2]}}");
    enter("nil", "nil");
    enter("1, nil, 'three'", "1\nnil\n\"three\"");
    enter("print('printed')", "printed");
    enter("x = 5", "");
    enter("x", "5");
    enter("setmetatable({}, {__tostring = function() return 'told' end})", "told");
    enter("'\xc3\xa9'", "\"\xc3\xa9\"");
    leave();
}

static void objects_are_shown(void **unused)
{
    (void)unused;
    start();
    enter("o = setmetatable({}, {__tostring = function() return 'obj' end})", "");
    enter("t = {} for i = 1, 100 do t[i] = o end", "");
    enter("t", "{obj, obj, ");
    assert_non_null(strstr(terminal.plain, " obj, obj, obj, ... 100 in all}\n"));
    enter("{[1.5] = o, [2.5] = 1}", "{[1.5] = obj, [2.5] = 1}");
    enter("bad = setmetatable({}, {__tostring = error})", "");
    enter("{bad, two = setmetatable({}, {__tostring = function() return 'a\\nb' end})}",
          ", two = a...}");
    assert_non_null(strstr(terminal.plain, "\n{table: 0x"));
    enter("x = ed.ones{2} do local y <close> = x end", "");
    enter("x", "a closed tensor");
    enter("{x, ed.ones{3}, ed.variable(1.5), ed.dense(3)}",
          "{a closed tensor, float32 [3], variable float32 [], layer dense (dense)}");
    enter("ed.adam()", "optimizer adam (learning_rate 0.001, iterations 0)");
    enter("ed.dataset(ed.ones{4, 2}, ed.ones{4, 1}, {batch = 2})", "dataset (rows 4, batches 2)");
    enter("ed.metrics.mean()", "metric (result 0)");
    enter("{ed.generator(7)}", "{generator (state 7, ");
    enter("c = ed.checkpoint{x = ed.variable(1)}", "");
    enter("m = ed.checkpoint_manager(c, 'shown')", "");
    enter("{c, m}", "{checkpoint, checkpoint_manager (checkpoints 0, latest none)}");
    enter("m:save()", "\"shown/ckpt-1\"");
    enter("m", "checkpoint_manager (checkpoints 1, latest shown/ckpt-1)");
    enter("l = ed.sequential{ed.dense(3)} l(ed.ones{1, 2})", "");
    enter("l:summary()", "dense (Dense) │ (None, 3)    │       9 │");
    enter("l", "sequential\n  dense: kernel [2, 3], bias [3]\n9 parameters");
    enter("ed.sequential{ed.dense(3)}", "\n  dense\nnot built: the first call makes its variables");
    enter("'a]]b\\nc'", "a]]b\nc");
    enter("'a\\n\\1'", "\"a\\n\\001\"");
    leave();
}

static void functions_say_how_they_are_called(void **unused)
{
    (void)unused;
    start();
    enter("help",
          "help(x) or ?x shows help on a function, a name or an object, help() a list of all");
    enter("ed.sum", "function ed.sum(x, {axis=, keepdims=}); ?ed.sum shows help");
    enter("ed.ones{2}.item", "function tensor:item(); ?tensor:item shows help");
    enter("print", "function: 0x");
    enter("ed.nrom(2)", "stdin:5: there is no ed.nrom; did you mean ed.norm");
    enter("y", "nil: there is no variable y");
    enter("y = 1", "");
    enter("y", "1");
    enter("setmetatable(_G, {__index = function() return 'made' end}) == _G", "true");
    enter("z", "\"made\"");
    leave();
}

static void tensors_fit_the_terminal(void **unused)
{
    (void)unused;
    start();
    const struct winsize size = {.ws_row = 12, .ws_col = 30};
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
    enter("x = ed.range(300):reshape(100, 3)", "");
    enter("x", "[[  0   1   2]\n [  3   4   5]\n [  6   7   8]\n ...\n [291 292 293]\n [294 295 "
               "296]\n [297 298 299]]\ntensor int32 [100, 3]");
    enter("x:reshape(4, 25, 3)", "[[[  0 ...   2]\n  ...\n  [ 72 ...  74]]\n\n ...\n");
    enter("ed.range(8)", "[0 1 2 3 4 5 6 7]");
    enter("ed.range(12)", "[ 0  1  2  3  4  5  6  7  8\n  9 10 11]\ntensor");
    enter("ed.print_options{width = 20}.width", "20");
    enter("ed.range(12)", "[ 0  1  2  3  4  5\n  6  7  8  9 10 11]\ntensor");
    enter("ed.print_options{threshold = 300}.threshold", "300");
    enter("x", " [ 90  91  92]\n");
    leave();
}

static void times_are_taken(void **unused)
{
    (void)unused;
    start();
    enter(":timeit n = (n or 0) + 1", " a call at best, ");
    enter("n > 5", "true");
    enter(":timeit", "x is an expression or a statement");
    enter(":timeit 1 +", "unexpected symbol");
    enter(":timeit error 'no'", "stdin:4: no");
    enter("ed.timeit(function() end, 3)", "(5 rounds of 3 calls)");
    leave();
}

static void statements_take_several_lines(void **unused)
{
    (void)unused;
    start();
    type("function twice(x)\r");
    expect(">> ");
    type("  return 2 * x\r");
    expect(">> ");
    enter("end", "");
    enter("twice(21)", "42");
    type("ed.tensor{1,\r");
    expect(">> ");
    enter("2}", "tensor int32 [2]");
    type("s = [[one\r");
    expect(">> ");
    enter("two]]", "");
    enter("s", "one\ntwo");
    type("if true then\r");
    expect(">> ");
    type("\004"); /* given up */
    expect("> ");
    enter("3", "3");
    type("t = {1,\r"); /* by an empty line */
    expect(">> ");
    enter("", "stdin:11: unexpected symbol near <eof>");
    /* no further line can close a quote, unless the line's end is part of the text */
    enter("print \"ok", "stdin:12: unfinished string near '\"ok'");
    type("s = 'one\\\r");
    expect(">> ");
    enter("two'", "");
    enter("s == 'one\\ntwo'", "true");
    enter("-- a comment alone", "");
    /* indented by TABs, as a program that is pasted */
    type("for i = 1, 2 do\r\tif i == 2 then\r\t\tprint('two' .. i)\r\tend\rend\r");
    expect("\ntwo2");
    expect("> ");
    /* with empty lines */
    type("function f()\r\r    local x = 7\r\r\r    return x\rend\rf() .. ' it is'\r");
    expect("\"7 it is\"\n> ");
    leave();
}

static void tab_completes(void **unused)
{
    (void)unused;
    start();
    enter("x = ed.ones{2, 3}", "");
    type("ed.value_and\t\r");
    expect("ed.value_and_grad");
    expect("function");
    type("x:logsum\t{ax\t1}\r");
    expect("x:logsumexp{axis = 1}");
    expect("tensor float32 [3]");
    type("y = ed.dense{3, kernel_init\t'ones'}\r");
    expect("kernel_initializer = 'ones'");
    type("x.sh\t\r");
    expect("{2, 3}");
    type("ed.zeros{2, dt\t'flo\t64'}\r");
    expect("ed.zeros{2, dtype = 'float64'}");
    expect("tensor float64 [2]");
    give_up("x[1]:redu\t", "reduce_");
    give_up("x:arg\t\t", "argmax        argmin        argpartition  argsort");
    type("tab\t.conc\t({'a', 'b'})\r");
    expect("\"ab\"");
    type("library = {deeper = {deepest = 7}}\rlibr\t.dee\t.dee\t\r");
    expect("library.deeper.deepest");
    expect("\n7");
    type(":ti\t 1\r");
    expect("1\n");
    expect("memory");
    type("?logsum\t\r");
    expect("ed.logsumexp(x");
    /* options, of whatever is called */
    enter("layer, adam = ed.dense(2), ed.adam()", "");
    give_up("ed.adam{lea\t", "learning_rate = ");
    give_up("ed.adam(0.1, {eps\t", "epsilon = ");
    give_up("ed.tape{per\t", "persistent = ");
    give_up("layer(x, {tr\t", "training = ");
    give_up("x:mean{ke\t", "keepdims = ");
    give_up("ed.plot(x, {ti\t", "title = ");
    give_up("mean = ed.no_such{tru\t", "true");
    /* methods of texts, and texts */
    give_up("('x'):rever\t", "reverse");
    give_up("ed.dense(2, {activation = \"leaky\t", "leaky_relu");
    give_up("ed.activate(x, 'swi\t", "swish");
    give_up("x:cast('floa\t64", "float64");
    /* nothing that is looked at is run */
    enter("t = setmetatable({}, {__index = function() error('looked') end})", "");
    give_up("t.a.b\tx", "t.a.bx");
    leave();
}

/* A terminal that dropped the keys before Ctrl-C could drop one between poll and read: the prompt
 * drops them itself. */
static void interrupts_while_keys_come(void **unused)
{
    (void)unused;
    struct termios modes;
    start();
    enter("x = ed.ones{2, 3}", "");
    assert_int_equal(tcgetattr(terminal.fd, &modes), 0);
    assert_true(modes.c_lflag & NOFLSH);
    for (int i = 0; i < 20; i++) give_up("x:arg\t\t\t\t", "argpartition");
    enter("2 + 3", "5");
    /* of lines that come with Ctrl-C behind them at most the first is run */
    type("first = 1\rsecond = 2\rthird = 3\r\003");
    rest();
    enter("second", "nil");
    enter("third", "nil");
    leave();
}

static void tab_completes_files(void **unused)
{
    (void)unused;
    mkdir(in_folder("measures"), 0700);
    write_text(in_folder("measures/first.lua"), "return 'was loaded'");
    start();
    type("dofile('meas\tfi\t')\r");
    expect("dofile('measures/first.lua')");
    expect("\"was loaded\"");
    leave();
}

#define UP "\033[A"

static void history_stays(void **unused)
{
    (void)unused;
    struct stat info;
    unlink(in_folder(".eddy_history"));
    start();
    enter("'of the first run'", "");
    type("function f()\r");
    expect(">> ");
    type("  return 'joined'\r");
    expect(">> ");
    enter("end", "");
    leave();
    assert_int_equal(stat(in_folder(".eddy_history"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    start();
    type(UP);
    expect("function f()   return 'joined' end");
    type("\r");
    expect("> ");
    enter("f()", "\"joined\"");
    type(UP UP UP "\r");
    expect("\"of the first run\"\n");
    leave();
    /* elsewhere, if the system says where */
    const char *variables[] = {"XDG_STATE_HOME", in_folder("state"), NULL};
    start_with((const char *const[]){"eddy", NULL}, variables);
    enter("'kept apart'", "");
    leave();
    assert_int_equal(access(in_folder("state/eddy/history"), R_OK), 0);
}

/* A history too long is cut to its newest lines. */
static void history_is_shortened(void **unused)
{
    (void)unused;
    FILE *f = fopen(in_folder(".eddy_history"), "w");
    assert_non_null(f);
    for (int i = 1; i <= 4100; i++) fprintf(f, "line(%d)\n", i);
    assert_int_equal(fclose(f), 0);
    start();
    give_up(UP, "line(4100)");
    leave();
    int lines = 0, first = 0, n;
    f = fopen(in_folder(".eddy_history"), "r");
    assert_non_null(f);
    for (; fscanf(f, "line(%d)\n", &n) == 1; lines++)
        if (!first) first = n;
    fclose(f);
    assert_int_equal(lines, 2000);
    assert_int_equal(first, 2101);
}

static void control_c_stops(void **unused)
{
    (void)unused;
    start();
    enter("kept = 17", "");
    type("while true do end\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    expect("\n> ");
    enter("kept", "17");
    /* no tape goes on recording */
    enter("v = ed.variable{1.} collectgarbage 'stop'", "");
    type("ed.value_and_grad(function() while true do local y = v * v y:close() end end, {v})\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    expect("\n> ");
    enter("n = ed.memory().live_bytes for i = 1, 1000 do local y = v * v y:close() end", "");
    enter("ed.memory().live_bytes - n", "0");
    enter("collectgarbage 'restart'", "");
    /* in a coroutine */
    type("coroutine.wrap(function() while true do end end)()\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    expect("\n> ");
    /* a program that catches errors: once again, and it ends */
    type("while true do pcall(function() while true do end end) end\r");
    expect("\n");
    rest();
    for (int i = 0; i < 10 && !strstr(terminal.plain + terminal.seen, "interrupted"); i++) {
        type("\003");
        rest();
    }
    expect("interrupted");
    expect("> ");
    /* in a call of Eddy's; the tape stops */
    type("t = ed.tape(function() while true do ed.ones{100, 100}:matmul(ed.ones{100, 100}) end "
         "end)\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    expect("\n> ");
    enter("kept + 1", "18");
    /* at the prompt */
    give_up("half a li", "half a li");
    type("if true then\r");
    give_up("", ">> ");
    enter("kept + 2", "19");
    leave();
}

/* A line that runs until Ctrl-C. */
static void stop_by_key(const char *line)
{
    type(line);
    type("\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    expect("\n> ");
}

static void control_c_stops_threads(void **unused)
{
    (void)unused;
    start();
    enter("loop = ed.layer{name = 'loop', forward = function() while true do end end}()", "");
    stop_by_key("loop(ed.ones{2})");
    stop_by_key("coroutine.wrap(function() loop(ed.ones{2}) end)()");
    enter("wrap = coroutine.wrap", "");
    stop_by_key("wrap(function() wrap(function() loop(ed.ones{2}) end)() end)()");
    enter("closing = setmetatable({}, {__close = function() while true do end end})", "");
    enter("co = coroutine.create(function() local c <close> = closing coroutine.yield(1) end)", "");
    enter("coroutine.resume(co)", "true\n1");
    type("coroutine.close(co)\r");
    expect("\n");
    rest();
    type("\003");
    expect("interrupted");
    enter("coroutine.status(co)", "\"dead\"");
    leave();
}

/* Where no error can be raised, the third press ends the program. */
static void control_c_ends_what_cannot_be_stopped(void **unused)
{
    (void)unused;
    static const char *const lines[] = {
        "('a'):rep(40):find(('a*'):rep(30) .. 'b')\r",
        "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()\r",
    };
    for (int i = 0; i < 2; i++) {
        start();
        type(lines[i]);
        expect("\n");
        rest();
        type("\003");
        rest();
        assert_null(strstr(terminal.plain, "press once more"));
        type("\003");
        expect("the call does not stop; press once more to end the program\n");
        type("\003");
        int status = await_end();
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    }
}

/* The program's own stays from line to line, until Ctrl-C takes its place. */
static void hooks_stay(void **unused)
{
    (void)unused;
    start();
    enter("lines = 0 debug.sethook(function() lines = lines + 1 end, 'l')", "");
    enter("x = 1", "");
    enter("lines > 0 and debug.gethook() ~= nil", "true");
    stop_by_key("while true do end");
    enter("debug.gethook()", "nil");
    leave();
}

static void help_is_there(void **unused)
{
    (void)unused;
    start();
    enter("?matmul", "ed.matmul(a, b, {transpose_a=, transpose_b=})");
    enter("help(ed.conv2d)", "padding           \"VALID\", \"SAME\" or");
    enter("help 'grad'", "ed.grad(f)");
    enter("ed.search 'softmax cross'", "sparse_softmax_cross_entropy");
    enter("?no_such_thing", "nothing is called no_such_thing");
    enter("x = ed.ones(1)", "");
    enter("?x", "ops as methods");
    enter("?x:add", "also a:add(b)    a + b");
    enter("?x.shape", "tensor.shape");
    enter("?layer:add", "layer:add(child)");
    enter(":help", ":time x");
    enter("?", "ops, also methods of tensors");
    leave();
}

static void commands_work(void **unused)
{
    (void)unused;
    start();
    enter("weights = ed.variable(ed.zeros{10, 20}, {name = 'w'})", "");
    enter(":who", "weights          float32  [10, 20]             800 bytes    variable");
    enter(":mem", " tensors in ");
    type(":time ed.ones{2}\r");
    expect("tensor float32 [2]\n");
    expect("s; memory: ");
    expect(" more\n> ");
    enter(":time nothing()", "attempt to call a nil value");
    enter(":time", ":time x   x is an expression or a statement");
    enter(":no", "there is no :no; :help lists the commands");
    enter("::place:: y = 3", "");
    enter("y", "3");
    type(":quit\r");
    assert_int_equal(await_end(), 0);
}

static void memory_is_told_by_lines(void **unused)
{
    (void)unused;
    start();
    enter("large = ed.ones{1000, 1000}", "");
    enter("small = {} for i = 1, 12 do small[i] = ed.ones{10} end", "");
    enter(":mem", "13 tensors in 4.");
    const char *list = strstr(terminal.plain, "13 tensors in 4.");
    const char *first = strstr(list, "\n     1 tensors  4 MB       stdin:1  large = ed.ones{");
    const char *second = strstr(list, "\n    12 tensors  480 bytes  stdin:2  small = {} for i");
    assert_true(first && second && first < second);
    assert_non_null(strstr(second, "no line: layers"));
    enter("large = nil", "");
    enter(":mem", "12 tensors in ");
    /* the ten lines of the most bytes */
    enter("t = {}", "");
    for (int i = 1; i <= 11; i++) {
        char line[64];
        snprintf(line, sizeof line, "t[%d] = ed.ones{%d, 100}", i, i);
        enter(line, "");
    }
    enter(":mem", "     1 tensors  4.4 KB     stdin:15  t[11]");
    assert_null(strstr(terminal.plain, "t[2] = ed.ones{2, 100}\n     1"));
    assert_non_null(strstr(terminal.plain, "    13 tensors  880 bytes  other lines\n"));
    leave();
    runs("-e 'print(ed.memory_trace())'", 0, "false\n");
}

/* Whatever the program does to the globals. */
static void nothing_ends_the_prompt(void **unused)
{
    (void)unused;
    start();
    enter("return setmetatable(_G, {__newindex = function(t, k) error(k) end}) and 1", "1");
    enter("1 + 1", "2");
    enter("_ * 2", "4");
    enter("y = 3", "y");
    enter("return setmetatable(_G, {__index = function(t, k) error(k) end}) and 1", "1");
    enter("?nothing_of_this_name", "nothing is called nothing_of_this_name");
    enter("no_such_name", "no_such_name");
    give_up("no_su\tx", "no_sux");
    enter("package.loaded.eddy = nil", "");
    enter("?matmul", "ed.matmul(a, b");
    type("?matm\t\r");
    expect("?matmul\ned.matmul(a, b");
    give_up("ed.ones{2, dty\t", "dtype = ");
    enter("ed.help = error", "");
    enter("?matmul", "matmul");
    enter("error(setmetatable({}, {__tostring = function() error('deep') end}))", "");
    enter("3", "3");
    enter("debug.sethook(function() error 'hooked' end, 'cr', 1)", "hooked");
    enter("4", "hooked");
    give_up("ed.logsum\t", "ed.logsumexp");
    enter(":time 5", "hooked");
    enter("?matmul", "hooked");
    leave();
}

static void errors_name_their_line(void **unused)
{
    (void)unused;
    start();
    enter("nothing()", "stdin:1: attempt to call a nil value (global 'nothing')");
    type("function bad()\r  local x\r  return x.y\rend\r");
    expect("> ");
    expect("> ");
    enter("bad()", "stdin:4: attempt to index a nil value (local 'x')\n  4:   return x.y\n  in ");
    enter("x = = 1", "stdin:7: unexpected symbol near '='");
    enter("ed.ones{2} + ed.ones{3}", "stdin:8: add: ");
    enter("error({})", "(error object is a table value)");
    enter("error(nil)", "nil");
    leave();
    assert_null(strstr(terminal.plain, "[C]"));
}

static void errors_show_callbacks(void **unused)
{
    (void)unused;
    write_text(in_folder("callback.lua"),
               "local kind = ed.layer{name = 'mine', forward = function(self, x)\n"
               "    local function deep() error('no good') end\n"
               "    deep()\n"
               "end}\n"
               "local layer = kind()\n"
               "function outer() layer(ed.ones{2, 2}) end\n"
               "if ... == 'caught' then\n"
               "    pcall(outer)\n"
               "    ed.ones{2}:add(ed.ones{3})\n"
               "elseif ... == 'thread' then\n"
               "    coroutine.wrap(outer)()\n"
               "elseif ... then\n"
               "    outer()\n"
               "end\n");
    complains("callback.lua now", "eddy: callback.lua:2: no good (in the layer mine)\n"
                                  "stack traceback:\n"
                                  "\t[C]: in function 'error'\n"
                                  "\tcallback.lua:2: in local 'deep'\n"
                                  "\tcallback.lua:3: in function <callback.lua:1>\n"
                                  "\t[C]: in ?\n"
                                  "\t[C]: in upvalue 'layer'\n"
                                  "\tcallback.lua:6: in function 'outer'\n"
                                  "\tcallback.lua:13: in main chunk\n"
                                  "\t[C]: in ?\n");
    complains("callback.lua thread", "\tcallback.lua:2: in local 'deep'\n");
    complains("callback.lua thread", "\t[C]: in upvalue 'layer'\n"
                                     "\tcallback.lua:6: in function 'outer'\n"
                                     "\t[C]: in ?\n"
                                     "\tcallback.lua:11: in main chunk\n");
    complains("callback.lua caught", "callback.lua:9: add: ");
    assert_null(strstr(complained, "deep"));
    start();
    enter("dofile 'callback.lua'", "");
    enter("outer()", "callback.lua:2: no good (in the layer mine)\n"
                     "  in deep, callback.lua:2\n"
                     "  in a function, callback.lua:3\n"
                     "  in outer, callback.lua:6");
    enter("ed.grad(function(x) return x + ed.ones{3} end)(ed.ones{2})", "stdin:3: add: ");
    leave();
    assert_null(strstr(terminal.plain, "eddy:"));
}

static void errors_are_red_unless_unwanted(void **unused)
{
    (void)unused;
    start();
    enter("nothing()", "attempt to call");
    leave();
    assert_non_null(strstr(terminal.raw, "\033[31mstdin:1: attempt to call"));
    start_with((const char *const[]){"eddy", NULL}, (const char *const[]){"NO_COLOR", "1", NULL});
    enter("nothing()", "attempt to call");
    leave();
    assert_null(strstr(terminal.raw, "\033[31m"));
    /* a terminal without abilities: plain lines */
    start_with((const char *const[]){"eddy", NULL}, (const char *const[]){"TERM", "dumb", NULL});
    type("nothing()\n");
    expect("attempt to call");
    leave();
    assert_null(strchr(terminal.raw, 27));
}

static void set_width(unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
    rest();
}

static void resizing_keeps_the_line(void **unused)
{
    (void)unused;
    start();
    type("long_name_of_a_result = 'a text of some length ");
    expect("some length ");
    set_width(30);
    type("goes on ");
    set_width(17);
    type("and on ");
    set_width(120);
    type("to its end'\r");
    expect("\n> ");
    enter("long_name_of_a_result", "\"a text of some length goes on and on to its end\"");
    set_width(40); /* what TAB lists is as wide as the terminal is now */
    give_up("ed.reduce_\t", "reduce_variance");
    leave();
    const char *list = strstr(terminal.plain, "\nreduce_all");
    assert_non_null(list);
    assert_true(strcspn(list + 1, "\n") <= 40);
    /* it may also come while something runs */
    start();
    type("for i = 1, 3e6 do local x = i end 'done'\r");
    set_width(50);
    expect("> ");
    leave();
}

/* A screen that nobody has: lines are read as they come, and one that is being edited goes on. */
static void giant_screens_are_plain(void **unused)
{
    (void)unused;
    const struct winsize giant = {.ws_row = 60000, .ws_col = 60000};
    start();
    type("x = 2");
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &giant), 0);
    enter("1", "");
    enter("x", "21");
    set_width(100);
    enter("x + 1", "22");
    leave();
    start_on(60000, 60000);
    enter("1 + 1", "2");
    leave();
}

static void the_terminal_is_left_in_order(void **unused)
{
    (void)unused;
    struct termios mode;
    static const int signals[] = {SIGTERM, SIGHUP};
    for (int i = 0; i < 2; i++) {
        start();
        type("half a li");
        expect("half a li");
        assert_int_equal(tcgetattr(terminal.fd, &mode), 0);
        assert_false(mode.c_lflag & ICANON);
        assert_int_equal(kill(terminal.child, signals[i]), 0);
        int status;
        assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_int_equal(tcgetattr(terminal.fd, &mode), 0);
        assert_true(mode.c_lflag & ICANON && mode.c_lflag & ECHO);
        close(terminal.fd);
    }
}

static int setup(void **state)
{
    return folder_begin(state) || !terminal_begin(folder_root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_printed),
        cmocka_unit_test(objects_are_shown),
        cmocka_unit_test(functions_say_how_they_are_called),
        cmocka_unit_test(tensors_fit_the_terminal),
        cmocka_unit_test(times_are_taken),
        cmocka_unit_test(statements_take_several_lines),
        cmocka_unit_test(tab_completes),
        cmocka_unit_test(interrupts_while_keys_come),
        cmocka_unit_test(tab_completes_files),
        cmocka_unit_test(history_stays),
        cmocka_unit_test(history_is_shortened),
        cmocka_unit_test(control_c_stops),
        cmocka_unit_test(control_c_stops_threads),
        cmocka_unit_test(control_c_ends_what_cannot_be_stopped),
        cmocka_unit_test(hooks_stay),
        cmocka_unit_test(help_is_there),
        cmocka_unit_test(commands_work),
        cmocka_unit_test(memory_is_told_by_lines),
        cmocka_unit_test(nothing_ends_the_prompt),
        cmocka_unit_test(errors_name_their_line),
        cmocka_unit_test(errors_show_callbacks),
        cmocka_unit_test(errors_are_red_unless_unwanted),
        cmocka_unit_test(resizing_keeps_the_line),
        cmocka_unit_test(giant_screens_are_plain),
        cmocka_unit_test(the_terminal_is_left_in_order),
    };
    return cmocka_run_group_tests(tests, setup, folder_end);
}
