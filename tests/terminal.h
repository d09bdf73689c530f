/* The program eddy as a user meets it: at a terminal, which is a pty here, and by the shell. */
#ifndef EDDY_TESTS_TERMINAL_H
#define EDDY_TESTS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* To be called first: it runs in this folder, which is its home too. False if it is not built
 * beside the tests. */
bool terminal_begin(const char *folder);

extern char program[4096]; /* its path */

/* ---- At a terminal --------------------------------------------------------------------------- */

extern struct terminal {
    int fd;
    pid_t child;
    char raw[1 << 20];   /* all that was printed */
    char plain[1 << 20]; /* without what moves the cursor and sets colours */
    size_t raw_size, plain_size;
    size_t seen;  /* of plain, by `expect` */
    int skipping; /* within an escape sequence: 1 behind ESC, 2 behind ESC [ */
} terminal;

/* Starts it with these words and variables, or with none, and waits for its prompt. */
void start_with(const char *const *words, const char *const *variables);
void start(void);

/* The same on a screen of that size; others have 24 rows of 100 columns. */
void start_on(unsigned short rows, unsigned short columns);

/* Waits for its end; what waitpid says. */
int await_end(void);

/* Ends it by Ctrl-D. */
void leave(void);

/* Lets it run for a while. */
void rest(void);

/* Waits until the program has printed the text, behind what was expected before. */
void expect(const char *what);

void type(const char *keys);

/* A line, and what comes of it; then the prompt is there again. */
void enter(const char *line, const char *what);

/* A line that is given up by Ctrl-C once the text is shown; what was typed behind a Ctrl-C, or is
 * not yet read when it comes, is lost. */
void give_up(const char *keys, const char *what);

/* ---- By the shell ---------------------------------------------------------------------------- */

/* Runs it with these words; they end with a redirection perhaps. The exit code, and what it
 * printed to either stream. */
int run(const char *words);
extern char printed[1 << 18], complained[1 << 16];

/* The same: it ends with the code and prints just this, and complains of
 * nothing if the code is 0. */
void runs(const char *words, int code, const char *prints);

/* It fails, and says this among others. */
void complains(const char *words, const char *what);

#endif
