/*
 * A trainer that saves after every step is killed at random moments, hundreds of times, each time
 * gone on with by a new process. After every kill the newest checkpoint is whole; every loss that
 * any of the processes computed is, bit for bit, the one of a training that was never interrupted.
 *
 * The trainer is this program with other arguments: test_kill FOLDER writes (step, loss) to its
 * standard output, one record at a time.
 */
#include "io/bundle.h"
#include "tests/training.h"
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitized programs take long to start and are not what is measured. */
#ifdef EDDY_SANITIZED
enum { STEPS = 60, KILLS = 12, LONGEST = 1500000 };
#else
enum { STEPS = 60, KILLS = 500, LONGEST = 60000 };
#endif

typedef struct record {
    int64_t step;
    double loss;
} record;

/* ---- The training ---------------------------------------------------------------------------- */

/* Trains and saves to the end; every other save is in the background. */
static int trainer(const char *folder)
{
    training t;
    training_begin(&t, 0);
    ed_checkpoint_manager *m = ed_checkpoint_manager(t.checkpoint, folder, .max_to_keep = 2);
    ed_manager_restore_or_initialize(m);
    while (t.step < STEPS && !ed_failed()) {
        record r = {.loss = training_step(&t)};
        r.step = t.step;
        if (write(STDOUT_FILENO, &r, sizeof r) != (ssize_t)sizeof r) break;
        ed_manager_save(m, .in_background = t.step % 2);
    }
    ed_manager_wait(m);
    ed_manager_save(m); /* what killed ones could not remove any more, this one does */
    if (!ed_failed()) return 0;
    fprintf(stderr, "trainer: %s\n", ed_error());
    return 1;
}

/* ---- The killer ------------------------------------------------------------------------------ */

static pid_t start(const char *folder, int *output)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl("/proc/self/exe", "test_kill", folder, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *output = ends[0];
    return child;
}

/* Every loss is that of the whole training; the first and the last step. */
static int64_t check_losses(int output, const double *whole, int64_t *first)
{
    record r;
    int64_t last = 0;
    *first = 0;
    while (read(output, &r, sizeof r) == (ssize_t)sizeof r) {
        assert_in_range(r.step, 1, STEPS);
        if (memcmp(&r.loss, &whole[r.step], sizeof r.loss) != 0)
            fail_msg("step %lld: loss %.17g, not %.17g", (long long)r.step, r.loss, whole[r.step]);
        last = r.step;
        if (!*first) *first = last;
    }
    close(output);
    return last;
}

/* The newest checkpoint, every byte of it, and the step it holds; 0 if there is none yet. */
static int64_t check_newest(const char *folder)
{
    ED_SCOPE;
    const char *path = ed_latest_checkpoint(folder);
    assert_false(ed_failed());
    if (!path) return 0;
    bundle *b = bundle_open("test", path);
    if (!b) fail_msg("%s", ed_error());
    for (int64_t i = 0; i < bundle_count(b); i++)
        if (!bundle_verify(b, bundle_at(b, i))) fail_msg("%s", ed_error());
    ed_release(b);
    int64_t step = -1;
    ed_checkpoint_restore(ed_checkpoint("step", ed_counter(&step)), path, .partial = true);
    assert_fine();
    return step;
}

static int names_in(const char *folder, const char *part)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) n += strstr(e->d_name, part) != NULL;
    closedir(dir);
    return n;
}

static void remove_folder(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* On a busy machine a trainer needs longer to its first step: a third of the kills come before. */
static useconds_t next_longest(useconds_t longest, bool stepped)
{
    if (!stepped) return longest + longest / 20;
    longest -= longest / 40;
    return longest > LONGEST ? longest : LONGEST;
}

static void killed(void **state)
{
    (void)state;
    double whole[STEPS + 1];
    {
        ED_SCOPE;
        training t;
        training_begin(&t, 0);
        for (int i = 1; i <= STEPS; i++) whole[i] = training_step(&t);
        assert_false(ed_failed());
    }
    char folder[] = "/tmp/eddy_kill_XXXXXX";
    assert_non_null(mkdtemp(folder));
    unsigned seed = 1;
    int64_t trainings = 0, step = 0, none = 0;
    useconds_t longest = LONGEST;
    for (int kill_number = 0; kill_number < KILLS;) {
        int output, status;
        pid_t child = start(folder, &output);
        /* from the first instructions to a few saves on */
        usleep((useconds_t)rand_r(&seed) % longest); /* microseconds */
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        int64_t first, last = check_losses(output, whole, &first), saved = check_newest(folder);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_int_equal(saved, STEPS);
            trainings++;
            /* what killed ones left behind is gone, and only what is to be kept is there */
            assert_int_equal(names_in(folder, ".tmp."), 0);
            assert_int_equal(names_in(folder, ".index"), 2);
            remove_folder(folder);
            step = 0;
            continue;
        }
        kill_number++;
        /* Nothing that was there is lost: what was listed, and what was begun from. A step with an
         * even number was saved before the next one was made. */
        int64_t told = last > first ? (last - 1) & ~INT64_C(1) : 0;
        if (saved < step || (last && (saved > last || first - 1 < step)) ||
            (told >= first && saved < told))
            fail_msg("steps %lld to %lld were made, %lld was saved before, %lld is",
                     (long long)first, (long long)last, (long long)step, (long long)saved);
        none += !last;
        longest = next_longest(longest, last);
        step = saved;
    }
    remove_folder(folder);
    print_message(
        "%d kills, %lld of them before the first step; %lld trainings came to their end\n", KILLS,
        (long long)none, (long long)trainings);
    assert_true(none < KILLS / 2);
}

int main(int argc, char **argv)
{
    if (argc == 2) return trainer(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
