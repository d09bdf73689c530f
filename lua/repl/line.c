#include "lua/repl/repl.h"
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* Lines from the terminal, edited by libedit. We pass it the keys: the signals that concern a
 * line are blocked except while we wait for a key, so that none is missed, and each is handled
 * between two keys, when libedit is in a consistent state. */
static EditLine *editor; /* NULL: plain lines */
static lua_State *state; /* for completion */

/* ---- Signals --------------------------------------------------------------------------------- */

static const int watched[] = {SIGWINCH, SIGCONT, SIGTSTP, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof *watched };
static volatile sig_atomic_t arrived[WATCHED];
static struct sigaction others[WATCHED]; /* the actions before ours */
static sigset_t waiting;                 /* the mask while waiting */

static void note(int number)
{
    if (repl_signal_is_elsewhere(number)) return;
    for (int i = 0; i < WATCHED; i++)
        if (watched[i] == number) arrived[i] = 1;
}

static void watch_signals(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT); /* handled by repl_call */
    struct sigaction action = {.sa_handler = note};
    for (int i = 0; i < WATCHED; i++) {
        arrived[i] = 0;
        sigaddset(&blocked, watched[i]);
        sigaction(watched[i], &action, &others[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, &waiting);
}

static void leave_signals(void)
{
    for (int i = 0; i < WATCHED; i++) sigaction(watched[i], &others[i], NULL);
    sigprocmask(SIG_SETMASK, &waiting, NULL);
}

/* Stops or ends the program by the signal, with the terminal in its normal state meanwhile. */
static void obey(int i)
{
    sigset_t one;
    struct sigaction noting;
    sigemptyset(&one);
    sigaddset(&one, watched[i]);
    el_set(editor, EL_PREP_TERM, 0);
    sigaction(watched[i], &others[i], &noting);
    raise(watched[i]);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* the signal takes effect here */
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigaction(watched[i], &noting, NULL);
    el_set(editor, EL_PREP_TERM, 1);
}

/* libedit makes two copies of the screen, when a line begins and when the size changes: not of
 * 60000 x 60000. */
static bool fits_screen(void)
{
    enum { MOST_CELLS = 1 << 22 };
    struct winsize size;
    return ioctl(STDIN_FILENO, TIOCGWINSZ, &size) ||
           (int64_t)size.ws_row * size.ws_col <= MOST_CELLS;
}

static void answer_signals(void)
{
    for (int i = 0; i < WATCHED; i++) {
        if (!arrived[i]) continue;
        arrived[i] = 0;
        if (watched[i] == SIGWINCH) {
            if (fits_screen()) el_resize(editor);
        } else if (watched[i] != SIGCONT) {
            obey(i);
        }
        el_set(editor, EL_REFRESH);
    }
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The next byte: 1; 0 at the end; -1 for Ctrl-C and errors. */
static int next_byte(char *byte)
{
    for (;;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        if (ppoll(&input, 1, NULL, &waiting) > 0) {
            ssize_t n = read(STDIN_FILENO, byte, 1);
            if (n >= 0 || errno != EINTR) return (int)n;
        } else if (errno != EINTR) {
            return -1;
        } else if (repl_pressed()) {
            return -1;
        } else {
            answer_signals();
        }
    }
}

/* What libedit calls for a character. A Ctrl-D that is typed while a call runs, before the line
 * is edited, arrives as a zero. */
enum { CTRL_D = 4 };

static int next_character(EditLine *e, wchar_t *to)
{
    (void)e;
    mbstate_t decoder = {0};
    for (;;) {
        char byte;
        int got = next_byte(&byte);
        if (got < 1) return got;
        size_t n = mbrtowc(to, &byte, 1, &decoder);
        if (n == 0) *to = CTRL_D;
        if (n == 0 || n == 1) return 1;
        if (n != (size_t)-2) decoder = (mbstate_t){0}; /* not a character: ignored */
    }
}

/* ---- TAB ------------------------------------------------------------------------------------- */

typedef struct offer {
    const char *text;   /* before the cursor */
    size_t word;        /* the length of its last word */
    const char **names; /* completions of that word */
    size_t count;
} offer;

/* Leaves on the stack the table that keeps the names alive. */
static int make_offer(lua_State *L)
{
    offer *o = lua_touserdata(L, 1);
    o->word = complete(L, o->text);
    o->names = show_sorted_keys(L, lua_gettop(L), &o->count);
    return 2;
}

static size_t common_length(const offer *o)
{
    size_t n = strlen(o->names[0]);
    for (size_t i = 1; i < o->count; i++) {
        size_t k = 0;
        while (k < n && o->names[i][k] == o->names[0][k]) k++;
        n = k;
    }
    return n;
}

enum { MOST_LISTED = 300 };

/* In columns, read downward. */
static void list(const offer *o)
{
    size_t widest = 0, n = o->count < MOST_LISTED ? o->count : MOST_LISTED;
    for (size_t i = 0; i < n; i++)
        if (strlen(o->names[i]) > widest) widest = strlen(o->names[i]);
    size_t columns = (size_t)line_width() / (widest + 2);
    if (!columns) columns = 1;
    size_t rows = (n + columns - 1) / columns;
    putchar('\n');
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = row; i < n; i += rows)
            printf("%-*s", i + rows < n ? (int)widest + 2 : 0, o->names[i]);
        putchar('\n');
    }
    if (n < o->count) printf("and %zu more\n", o->count - n);
    fflush(stdout);
}

static int take_offer(const offer *o)
{
    if (!o->count) return CC_ERROR;
    size_t common = common_length(o);
    if (common > o->word) {
        char more[256];
        snprintf(more, sizeof more, "%.*s", (int)(common - o->word), o->names[0] + o->word);
        return el_insertstr(editor, more) == 0 ? CC_REFRESH : CC_ERROR;
    }
    if (o->count == 1) return CC_NORM;
    list(o);
    return CC_REDISPLAY;
}

/* A TAB after blanks only indents; so do those of a program that is pasted. */
static unsigned char on_tab(EditLine *e, int key)
{
    (void)key;
    const LineInfo *line = el_line(e);
    size_t size = (size_t)(line->cursor - line->buffer);
    char before[4096];
    if (size >= sizeof before) return CC_ERROR;
    memcpy(before, line->buffer, size);
    before[size] = 0;
    if (strspn(before, " \t") == size) return el_insertstr(e, "    ") == 0 ? CC_REFRESH : CC_ERROR;
    offer o = {.text = before};
    int top = lua_gettop(state);
    lua_pushcfunction(state, make_offer);
    lua_pushlightuserdata(state, &o);
    int answer = lua_pcall(state, 1, 2, 0) == LUA_OK ? take_offer(&o) : CC_ERROR;
    lua_settop(state, top);
    return (unsigned char)answer;
}

/* ---- History --------------------------------------------------------------------------------- */

/* A text file with one statement per line. Each statement is appended when it is entered:
 * several prompts may be open, and a prompt may be killed. */
static History *past;
static char *history_path; /* NULL: no history */
enum { KEPT = 2000, LARGEST_HISTORY = 16 << 20 };

/* printf into allocated memory; NULL if memory is short. */
static char *printed(const char *format, const char *s)
{
    char *made;
    return asprintf(&made, format, s) < 0 ? NULL : made;
}

/* Creates the missing folders of the path. */
static void make_folders(char *path)
{
    for (char *end = path + 1; (end = strchr(end, '/')); *end++ = '/') {
        *end = 0;
        mkdir(path, 0777); /* a failure shows when the file is opened */
    }
}

static char *find_history_path(void)
{
    const char *folder = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (!folder || *folder != '/') return home && *home ? printed("%s/.eddy_history", home) : NULL;
    char *path = printed("%s/eddy/history", folder);
    if (path) make_folders(path);
    return path;
}

/* The whole file with a 0 at its end, *size bytes; NULL if there is none, or if it is too large. */
static char *read_history(size_t *size)
{
    struct stat file;
    FILE *from = history_path ? fopen(history_path, "re") : NULL;
    if (!from) return NULL;
    const bool fits = !fstat(fileno(from), &file) && file.st_size <= LARGEST_HISTORY;
    char *lines = fits ? malloc((size_t)file.st_size + 1) : NULL;
    if (lines) lines[ *size = fread(lines, 1, (size_t)file.st_size, from)] = 0;
    fclose(from);
    return lines;
}

static void enter_lines(char *lines)
{
    HistEvent event;
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        history(past, &event, H_ENTER, line);
}

/* Keeps only the newest lines, if there are too many. */
static void shorten(const char *lines, size_t size)
{
    int count = 0;
    const char *from = lines + size;
    while (from > lines && count <= KEPT)
        if (*--from == '\n') count++;
    if (from > lines) from++;
    char *path = printed("%s.new", history_path);
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    const ssize_t left = lines + size - from;
    const bool written = file >= 0 && write(file, from, (size_t)left) == left;
    if (file >= 0 && !close(file) && written) rename(path, history_path);
    free(path);
}

static void load_history(void)
{
    size_t size;
    HistEvent event;
    past = history_init();
    if (!past) return;
    history(past, &event, H_SETSIZE, KEPT);
    history(past, &event, H_SETUNIQUE, 1);
    history_path = find_history_path();
    char *lines = read_history(&size);
    if (!lines) return;
    int count = 0;
    for (size_t i = 0; i < size; i++) count += lines[i] == '\n';
    if (count > 2 * KEPT) shorten(lines, size);
    enter_lines(lines);
    free(lines);
}

static void append(const char *line)
{
    int file = open(history_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    char *entry = printed("%s\n", line);
    ssize_t written = entry ? write(file, entry, strlen(entry)) : 0;
    (void)written; /* a history that can't be written is not an error */
    free(entry);
    close(file);
}

static void remember(const char *line)
{
    HistEvent event;
    if (!*line) return;
    history(past, &event, H_ENTER, line);
    if (history_path) append(line);
}

/* A statement of several lines is joined to one, unless its newlines have a meaning. */
void line_remember(const char *statement)
{
    if (!past) return;
    bool one = !strstr(statement, "--") && !strstr(statement, "[[") && !strstr(statement, "[=") &&
               !strstr(statement, "\\\n");
    char *rest = NULL, *lines = strdup(statement);
    if (lines && one)
        for (char *c = lines; *c; c++)
            if (*c == '\n') *c = ' ';
    for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        remember(line);
    free(lines);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static const char *prompt_text;

static char *give_prompt(EditLine *e)
{
    (void)e;
    return (char *)prompt_text;
}

static bool can_edit(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0 && fits_screen();
}

void line_open(lua_State *L)
{
    state = L;
    if (!can_edit()) return;
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    editor = el_init("eddy", stdin, stdout, stderr);
    if (!editor) return;
    load_history();
    el_set(editor, EL_PROMPT_ESC, give_prompt, '\1');
    el_set(editor, EL_EDITOR, "emacs");
    /* at Ctrl-C we drop what was typed before: if the terminal did, a byte that was there could be
     * gone when it is read, and the read would wait with signals blocked */
    el_set(editor, EL_SETTY, "-d", "+noflsh", NULL);
    if (past) el_set(editor, EL_HIST, history, past);
    el_set(editor, EL_GETCFN, next_character);
    /* el_set would leak copies of the two strings */
    el_wset(editor, EL_ADDFN, L"eddy-complete", L"completes the word before the cursor", on_tab);
    el_set(editor, EL_BIND, "^I", "eddy-complete", NULL);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(editor, EL_BIND, "\033[3~", "ed-delete-next-char", NULL);
    el_set(editor, EL_BIND, "\033[1;5C", "em-next-word", NULL);
    el_set(editor, EL_BIND, "\033[1;5D", "ed-prev-word", NULL);
    el_source(editor, NULL); /* ~/.editrc */
    ed_clear_error();
}

void line_close(void)
{
    if (editor) el_end(editor);
    if (past) history_end(past);
    free(history_path);
    editor = NULL;
    past = NULL;
    history_path = NULL;
}

/* Whether Ctrl-C was pressed; what was typed before is dropped then, also behind the line's end. */
static bool given_up(void)
{
    if (!repl_interrupted()) return false;
    tcflush(STDIN_FILENO, TCIFLUSH);
    return true;
}

static line_result read_edited(lua_State *L, const char *prompt)
{
    int size = 0;
    prompt_text = prompt;
    watch_signals();
    el_set(editor, EL_PREP_TERM, 1); /* before the prompt is visible and can be answered */
    const char *line = el_gets(editor, &size);
    leave_signals();
    if (given_up()) {
        fputs("^C\n", stdout);
        return LINE_INTERRUPTED;
    }
    if (!line || size <= 0) return LINE_END;
    lua_pushlstring(L, line, (size_t)size - (line[size - 1] == '\n'));
    return LINE_READ;
}

/* A line of any length. */
static line_result read_plain(lua_State *L, const char *prompt)
{
    char piece[512];
    luaL_Buffer line;
    fputs(prompt, stdout);
    fflush(stdout);
    luaL_buffinit(L, &line);
    bool any = false;
    while (fgets(piece, sizeof piece, stdin)) {
        size_t n = strlen(piece);
        bool whole = n && piece[n - 1] == '\n';
        luaL_addlstring(&line, piece, n - whole);
        any = true;
        if (whole) break;
    }
    luaL_pushresult(&line);
    bool interrupted = repl_interrupted();
    if (any && !interrupted) return LINE_READ;
    lua_pop(L, 1);
    clearerr(stdin);
    putchar('\n');
    return interrupted ? LINE_INTERRUPTED : LINE_END;
}

line_result line_read(lua_State *L, const char *prompt)
{
    fflush(stdout);
    given_up(); /* a Ctrl-C while nothing was running is ignored */
    return editor && fits_screen() ? read_edited(L, prompt) : read_plain(L, prompt);
}

bool line_is_last(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return isatty(STDIN_FILENO) && poll(&input, 1, 0) == 0;
}

int line_width(void)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
    return known ? size.ws_col : 80;
}
