/*
 * The program eddy as a user meets it: at a terminal, which is a pty here, and with scripts.
 */
#include "tests/folders.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

static char program[4096];

/* ---- A terminal ------------------------------------------------------------------------------ */

enum { PATIENCE = 60 }; /* seconds; sanitizers and other work may take their time */

static struct {
    int fd;
    pid_t child;
    char raw[1 << 20];   /* all that was printed */
    char plain[1 << 20]; /* without what moves the cursor and sets colours */
    size_t raw_size, plain_size;
    size_t seen;  /* of plain, by `expect` */
    int skipping; /* within an escape sequence: 1 behind ESC, 2 behind ESC [ */
} terminal;

static void strip(char c)
{
    if (terminal.skipping == 1) {
        terminal.skipping = c == '[' ? 2 : 0;
    } else if (terminal.skipping == 2) {
        if (c >= '@' && c <= '~') terminal.skipping = 0;
    } else if (c == 27) {
        terminal.skipping = 1;
    } else if (c != '\r' && c != '\a') {
        terminal.plain[terminal.plain_size++] = c;
        terminal.plain[terminal.plain_size] = 0;
    }
}

/* Takes what the program prints within a time; false at its end. */
static bool take(int milliseconds)
{
    struct pollfd output = {.fd = terminal.fd, .events = POLLIN};
    if (poll(&output, 1, milliseconds) <= 0) return true;
    size_t room = sizeof terminal.raw - terminal.raw_size - 1;
    if (!room) fail_msg("it prints and prints");
    ssize_t n = read(terminal.fd, terminal.raw + terminal.raw_size, room);
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; i++) strip(terminal.raw[terminal.raw_size + (size_t)i]);
    terminal.raw_size += (size_t)n;
    terminal.raw[terminal.raw_size] = 0;
    return true;
}

/* Lets it run for a while. */
static void rest(void)
{
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 300000000;
    do {
        take(50);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 0);
}

/* Waits until the program has printed the text, behind what was expected before. */
static void expect(const char *what)
{
    for (time_t end = time(NULL) + PATIENCE;;) {
        const char *at = strstr(terminal.plain + terminal.seen, what);
        if (at) {
            terminal.seen = (size_t)(at - terminal.plain) + strlen(what);
            return;
        }
        bool on = take(1000);
        if (!on || time(NULL) > end)
            fail_msg("%s: '%s' was expected behind byte %zu of:\n%s", on ? "too late" : "it ended",
                     what, terminal.seen, terminal.plain);
    }
}

static void type(const char *keys)
{
    for (size_t n = strlen(keys); n;) {
        ssize_t taken = write(terminal.fd, keys, n);
        assert_true(taken > 0);
        keys += taken;
        n -= (size_t)taken;
    }
}

/* A line, and what comes of it; then the prompt is there again. */
static void enter(const char *line, const char *what)
{
    type(line);
    type("\r");
    expect("\n");
    expect(what);
    expect(*what ? "\n> " : "> ");
}

/* A line that is given up by Ctrl-C once the text is shown; what was typed behind a Ctrl-C, or is
 * not yet read when it comes, is lost. */
static void give_up(const char *keys, const char *what)
{
    type(keys);
    expect(what);
    type("\003");
    expect("^C\n> ");
}

static void set_environment(const char *const *names)
{
    setenv("HOME", folder_root, 1);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("NO_COLOR");
    for (; names && *names; names += 2) setenv(names[0], names[1], 1);
}

/* Starts it with these words and variables and waits for its prompt. */
static void start_with(const char *const *words, const char *const *variables)
{
    memset(&terminal, 0, sizeof terminal);
    struct winsize size = {.ws_row = 24, .ws_col = 100};
    terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
    assert_true(terminal.child >= 0);
    if (!terminal.child) {
        set_environment(variables);
        if (chdir(folder_root)) _exit(126);
        execv(program, (char *const *)words);
        _exit(127);
    }
    expect("> ");
}

static void start(void)
{
    start_with((const char *const[]){"eddy", NULL}, NULL);
}

/* Waits for its end; what waitpid says. */
static int await_end(void)
{
    int status;
    for (time_t end = time(NULL) + PATIENCE; take(100);)
        if (time(NULL) > end) fail_msg("it does not end:\n%s", terminal.plain + terminal.seen);
    assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
    close(terminal.fd);
    return status;
}

static void leave(void)
{
    type("\004");
    assert_int_equal(await_end(), 0);
}

static void runs(const char *words, int code, const char *prints);
static void complains(const char *words, const char *what);
static char printed[1 << 18], complained[1 << 16]; /* by these two */

/* ---- At the prompt --------------------------------------------------------------------------- */

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
    enter("ed.mean_metric()", "metric (result 0)");
    enter("{ed.generator(7)}", "{generator (state 7, ");
    enter("c = ed.checkpoint{x = ed.variable(1)}", "");
    enter("m = ed.checkpoint_manager(c, 'shown')", "");
    enter("{c, m}", "{checkpoint, checkpoint_manager (checkpoints 0, latest none)}");
    enter("m:save()", "\"shown/ckpt-1\"");
    enter("m", "checkpoint_manager (checkpoints 1, latest shown/ckpt-1)");
    enter("l = ed.sequential{ed.dense(3)} l(ed.ones{1, 2})", "");
    enter("l:summary()", "[[\nlayer             output        parameters\nsequential/dense  ");
    enter("'a]]b\\nc'", "[=[\na]]b\nc]=]");
    enter("'a\\n\\1'", "\"a\\n\\001\"");
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
    enter("s", "[[\none\ntwo]]");
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
    give_up("x:arg\t\t", "argmax  argmin");
    type("tab\t.conc\t({'a', 'b'})\r");
    expect("\"ab\"");
    type("library = {deeper = {deepest = 7}}\rlibr\t.dee\t.dee\t\r");
    expect("library.deeper.deepest");
    expect("\n7");
    type(":ti\t 1\r");
    expect("1\n");
    expect("holds");
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
        expect("it does not stop; press once more to end the program\n");
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
    enter("help(ed.conv2d)", "padding      a text");
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
    expect("s; holds ");
    expect(" more at the most\n> ");
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
    assert_non_null(strstr(second, "no line: what layers"));
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

/* ---- Scripts --------------------------------------------------------------------------------- */

static void read_all(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(to, 1, room - 1, f);
    to[n] = 0;
    fclose(f);
}

/* Runs it by the shell with these words; they end with a redirection perhaps. The exit code. */
static int run(const char *words)
{
    char command[8192];
    snprintf(command, sizeof command, "cd '%s' && HOME='%s' LC_ALL=C.UTF-8 '%s' %s > '%s' 2> '%s'",
             folder_root, folder_root, program, words, in_folder("out"), in_folder("err"));
    int status = system(command);
    assert_true(WIFEXITED(status));
    read_all(in_folder("out"), printed, sizeof printed);
    read_all(in_folder("err"), complained, sizeof complained);
    return WEXITSTATUS(status);
}

static void runs(const char *words, int code, const char *prints)
{
    int got = run(words);
    if (got != code || strcmp(printed, prints) != 0)
        fail_msg("%s: exit code %d, not %d; printed:\n%s%s", words, got, code, printed, complained);
    if (!code) assert_string_equal(complained, "");
}

static void complains(const char *words, const char *what)
{
    if (run(words) != 1 || !strstr(complained, what))
        fail_msg("%s: '%s' was expected, there is:\n%s%s", words, what, printed, complained);
}

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
    complains("-e", "-e is unknown or lacks what it is to be followed by");
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
    runs("--version", 0, "Eddy " EDDY_VERSION ", Lua 5.4.4\n");
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
    complains("-e 'ed.plot({1, 2}, {1})'", "(command line):1: plot: x has 2 numbers, y 1");
    complains("-e 'ed.plot()'", "plot: y, or x and y, are expected");
    complains("-e 'ed.imshow(ed.ones{2, 2, 2})'", "imshow: [height, width]");
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
              "(command line):2: imshow: width is a whole number from 1 to 1000");
    complains("-e 'ed.imshow(5)'",
              "(command line):1: imshow: a tensor or a table is expected, not");
    complains("-e 'ed.hist(\"a\")'", "(command line):1: hist: a tensor or a table of numbers is");
    complains("-e 'ed.plot(ed.adam())'", "of numbers is expected, not an optimizer");
    complains("-e 'ed.plot({1, 2}, {foo = 1})'",
              "(command line):1: plot: there is no option foo; there are title, width, height");
    complains("-e 'ed.plot({1, 2}, {title = 5})'", "plot: title is a string, not a number");
    complains("-e 'local x = ed.ones{2} do local y <close> = x end ed.plot(x)'",
              "eddy: (command line):1: bad argument");
    complains("-e 'ed.plot({1}, {file = \"none/x.png\"})'",
              "eddy: (command line):1: write_png: none/x.png: open: No such file");
    complains("-e 'ed.write_png(\"a\\0b\", ed.ones{2, 2})'", "there is a zero byte in it");
    complains("-e 'ed.write_png(\"none/x.png\", ed.ones{2, 2})'", "none/x.png: open: No such file");
    complains("-e 'ed.write_png(\"x.png\", ed.ones{2, 2, 5})'", "not float32[2, 2, 5]");
    complains("-e 'ed.write_png(\"x.png\", ed.ones{0, 2})'", "not float32[0, 2, 1]");
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
    unsetenv("LUA_INIT");
    unsetenv("LUA_INIT_5_4");
    unsetenv("LUA_PATH");
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 40);
    if (n <= 0) return -1;
    strcpy(strrchr(program, '/'), "/../lua/eddy");
    return folder_begin(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_printed),
        cmocka_unit_test(objects_are_shown),
        cmocka_unit_test(statements_take_several_lines),
        cmocka_unit_test(tab_completes),
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
        cmocka_unit_test(the_terminal_is_left_in_order),
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
