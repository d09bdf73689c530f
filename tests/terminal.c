#include "tests/terminal.h"
#include "tests/folders.h"
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char program[4096], printed[1 << 18], complained[1 << 16];
static const char *home;

bool terminal_begin(const char *folder)
{
    unsetenv("LUA_INIT");
    unsetenv("LUA_INIT_5_4");
    unsetenv("LUA_PATH");
    home = folder;
    strcpy(program, built("lua/eddy"));
    return !access(program, X_OK);
}

/* ---- At a terminal --------------------------------------------------------------------------- */

enum { PATIENCE = 60 }; /* seconds; sanitizers and other work may take their time */

struct terminal terminal;

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

void rest(void)
{
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 300000000;
    do {
        take(50);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 0);
}

void expect(const char *what)
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

void type(const char *keys)
{
    for (size_t n = strlen(keys); n;) {
        ssize_t taken = write(terminal.fd, keys, n);
        assert_true(taken > 0);
        keys += taken;
        n -= (size_t)taken;
    }
}

void enter(const char *line, const char *what)
{
    type(line);
    type("\r");
    expect("\n");
    expect(what);
    expect(*what ? "\n> " : "> ");
}

void give_up(const char *keys, const char *what)
{
    type(keys);
    expect(what);
    type("\003");
    expect("^C\n> ");
}

static void set_environment(const char *const *names)
{
    setenv("HOME", home, 1);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("NO_COLOR");
    for (; names && *names; names += 2) setenv(names[0], names[1], 1);
}

static void start_sized(const char *const *words, const char *const *variables, struct winsize size)
{
    memset(&terminal, 0, sizeof terminal);
    terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
    assert_true(terminal.child >= 0);
    if (!terminal.child) {
        set_environment(variables);
        if (chdir(home)) _exit(126);
        execute(program, (char *const *)words);
        _exit(127);
    }
    expect("> ");
}

void start_with(const char *const *words, const char *const *variables)
{
    start_sized(words, variables, (struct winsize){.ws_row = 24, .ws_col = 100});
}

void start(void)
{
    start_with((const char *const[]){"eddy", NULL}, NULL);
}

void start_on(unsigned short rows, unsigned short columns)
{
    start_sized((const char *const[]){"eddy", NULL}, NULL,
                (struct winsize){.ws_row = rows, .ws_col = columns});
}

int await_end(void)
{
    int status;
    for (time_t end = time(NULL) + PATIENCE; take(100);)
        if (time(NULL) > end) fail_msg("it does not end:\n%s", terminal.plain + terminal.seen);
    assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
    close(terminal.fd);
    return status;
}

void leave(void)
{
    type("\004");
    assert_int_equal(await_end(), 0);
}

/* ---- By the shell ---------------------------------------------------------------------------- */

static void read_all(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(to, 1, room - 1, f);
    to[n] = 0;
    fclose(f);
}

int run(const char *words)
{
    char command[16384], out[512], err[512];
    snprintf(out, sizeof out, "%s/out", home);
    snprintf(err, sizeof err, "%s/err", home);
    snprintf(command, sizeof command,
             "cd '%s' && HOME='%s' LC_ALL=C.UTF-8 $EMULATOR '%s' %s > '%s' 2> '%s'", home, home,
             program, words, out, err);
    int status = system(command);
    assert_true(WIFEXITED(status));
    read_all(out, printed, sizeof printed);
    read_all(err, complained, sizeof complained);
    return WEXITSTATUS(status);
}

void runs(const char *words, int code, const char *prints)
{
    int got = run(words);
    if (got != code || strcmp(printed, prints) != 0)
        fail_msg("%s: exit code %d, not %d; printed:\n%s%s", words, got, code, printed, complained);
    if (!code) assert_string_equal(complained, "");
}

void complains(const char *words, const char *what)
{
    if (run(words) != 1 || !strstr(complained, what))
        fail_msg("%s: '%s' was expected, there is:\n%s%s", words, what, printed, complained);
}
