#include "model/signals.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM};
enum { COUNT = sizeof numbers / sizeof *numbers };

static struct {
    pthread_mutex_t lock;
    int users;
    struct sigaction before[COUNT];
} caught = {.lock = PTHREAD_MUTEX_INITIALIZER};

static volatile sig_atomic_t came;

static void note_signal(int number)
{
    (void)number;
    came = 1;
}

/* A signal that the program ignores stays ignored, as under nohup. */
static void catch_all(void)
{
    struct sigaction action = {.sa_handler = note_signal,
                               .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    came = 0;
    for (int i = 0; i < COUNT; i++) {
        sigaction(numbers[i], NULL, &caught.before[i]);
        if (caught.before[i].sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
}

void signals_catch(void)
{
    pthread_mutex_lock(&caught.lock);
    if (!caught.users++) catch_all();
    pthread_mutex_unlock(&caught.lock);
}

void signals_release(void)
{
    pthread_mutex_lock(&caught.lock);
    if (!--caught.users) {
        for (int i = 0; i < COUNT; i++) sigaction(numbers[i], &caught.before[i], NULL);
        came = 0;
    }
    pthread_mutex_unlock(&caught.lock);
}

bool signals_came(void)
{
    return came;
}
