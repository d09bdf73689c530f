#include "examples/progress.h"
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 10 }; /* a line of 80 columns has room for everything */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

progress progress_begin(const char *title, int64_t steps)
{
    progress p = {.steps = steps, .terminal = isatty(STDOUT_FILENO), .began = now()};
    snprintf(p.title, sizeof p.title, "%s", title);
    return p;
}

/* "7.5 s", "75 s" or "12:05" */
static void put_time(char *text, size_t size, double seconds)
{
    if (seconds < 100)
        snprintf(text, size, "%.*f s", seconds < 10, seconds);
    else
        snprintf(text, size, "%d:%02d", (int)(seconds / 60), (int)seconds % 60);
}

static double rate(const progress *p, double time)
{
    double passed = time - p->began;
    return passed > 0 ? (double)p->samples / passed : 0;
}

/* Draws the line over the old one, cut to the terminal's width: a line that wraps can't be drawn
 * over. */
static void draw(const progress *p, double loss, double accuracy)
{
    struct winsize window;
    char line[200], bar[BAR + 1], left[16];
    int columns = 80;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) && window.ws_col > 0) columns = window.ws_col;
    int full = p->steps > 0 ? (int)(BAR * p->step / p->steps) : BAR;
    for (int i = 0; i < BAR; i++) bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[BAR] = 0;
    double passed = p->shown - p->began;
    put_time(left, sizeof left, passed * (double)(p->steps - p->step) / (double)p->step);
    snprintf(line, sizeof line, "%s [%s] %lld/%lld  loss %.4f  acc %.4f  %.0f/s  %s left", p->title,
             bar, (long long)p->step, (long long)p->steps, loss, accuracy, rate(p, p->shown), left);
    printf("\r%.*s\x1b[K", columns - 1, line);
    fflush(stdout);
}

void progress_step(progress *p, int64_t samples, double loss, double accuracy)
{
    p->step++;
    p->samples += samples;
    if (!p->terminal) return;
    double time = now();
    if (time - p->shown < 0.1) return;
    p->shown = time;
    draw(p, loss, accuracy);
}

void progress_end(progress *p, double loss, double accuracy)
{
    char took[16];
    double time = now();
    put_time(took, sizeof took, time - p->began);
    printf("%s%s  %lld steps in %s  loss %.4f  accuracy %.4f  %.0f samples/s%s\n",
           p->terminal ? "\r" : "", p->title, (long long)p->step, took, loss, accuracy,
           rate(p, time), p->terminal ? "\x1b[K" : "");
    fflush(stdout);
}
