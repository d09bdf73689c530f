/*
 * A trainer that saves after every step is killed at random moments, hundreds of times, each time
 * gone on with by a new process. After every kill the newest checkpoint is whole; every loss that
 * any of the processes computed is, bit for bit, the one of a training that was never interrupted.
 *
 * And a program that writes one name again and again is killed: the name is always a whole
 * checkpoint, no older than the last one that was told of.
 *
 * The program that is killed is this one with other arguments: test_kill FOLDER KIND writes
 * (step, loss) to its standard output, one record at a time. EDDY_TEST_KILLS is the number of kills
 * of each test, where it is to be another than the usual one.
 */
#include "io/bundle.h"
#include "tests/folders.h"
#include "tests/training.h"
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitized programs take long to start and are not what is measured. */
#ifdef EDDY_SANITIZED
enum { STEPS = 60, KILLS = 12, OVERWRITING_KILLS = 5, READ_SAVES = 20, LONGEST = 1500000 };
#else
enum { STEPS = 60, KILLS = 500, OVERWRITING_KILLS = 150, READ_SAVES = 1000, LONGEST = 60000 };
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

static int64_t kills(int64_t usual)
{
    const char *number = getenv("EDDY_TEST_KILLS");
    return number ? atoll(number) : usual;
}

static pid_t start(const char *folder, const char *kind, int *output)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        const char *words[] = {"test_kill", folder, kind, NULL};
        execute(built("tests/test_kill"), (char *const *)words);
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

/* A checkpoint, every byte of it, and the step it holds. */
static int64_t check_whole(const char *path)
{
    ED_SCOPE;
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

/* The step of the newest checkpoint; 0 if there is none yet. */
static int64_t check_newest(const char *folder)
{
    ED_SCOPE;
    const char *path = ed_latest_checkpoint(folder);
    assert_false(ed_failed());
    return path ? check_whole(path) : 0;
}

static int count_names(const char *folder, const char *part)
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
    const int64_t count = kills(KILLS);
    for (int64_t kill_number = 0; kill_number < count;) {
        int output, status;
        pid_t child = start(folder, "train", &output);
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
            assert_int_equal(count_names(folder, ".tmp."), 0);
            assert_int_equal(count_names(folder, ".index"), 2);
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
        "%lld kills, %lld of them before the first step; %lld trainings came to their end\n",
        (long long)count, (long long)none, (long long)trainings);
    assert_true(none < count / 2);
}

/* ---- One name, again and again --------------------------------------------------------------- */

/* Goes on from the step that is there, for ever: "write" by ed_checkpoint_write, "number" by a
 * manager that gives all checkpoints one number, "keep" by one that keeps one. Every tensor holds
 * the step. */
static int overwriter(const char *folder, const char *kind)
{
    const bool managed = *kind != 'w';
    int64_t step = 0;
    char path[128], index[128];
    snprintf(path, sizeof path, "%s/x", folder);
    snprintf(index, sizeof index, "%s/x.index", folder);
    ed_tensor *a = ed_variable(ed_zeros(ED_SHAPE(3000))), *b = ed_variable(ed_zeros(ED_SHAPE(7)));
    ed_checkpoint *c = ed_checkpoint("a", a, "b", b, "step", ed_counter(&step));
    ed_checkpoint_manager *m = managed ? ed_checkpoint_manager(c, folder, .max_to_keep = 1) : NULL;
    if (managed)
        ed_manager_restore_or_initialize(m);
    else if (io_exists(index))
        ed_checkpoint_read(c, path);
    while (!ed_failed()) {
        ED_SCOPE;
        step++;
        ed_assign(a, ed_full(ED_SHAPE(3000), step));
        ed_assign(b, ed_full(ED_SHAPE(7), step));
        if (managed)
            ed_manager_save(m, .number = *kind == 'n' ? 7 : -1);
        else
            ed_checkpoint_write(c, path);
        if (write(STDOUT_FILENO, &(record){.step = step}, sizeof(record)) != sizeof(record)) break;
    }
    fprintf(stderr, "overwriter: %s\n", ed_error());
    return 1;
}

/* The tensors are of one save: all hold the step. */
static void check_tensors(const char *path, int64_t step)
{
    ED_SCOPE;
    ed_tensor *a = ed_variable(ed_zeros(ED_SHAPE(3000))), *b = ed_variable(ed_zeros(ED_SHAPE(7)));
    ed_checkpoint_restore(ed_checkpoint("a", a, "b", b), path, .partial = true);
    assert_fine();
    assert_true(ed_item(ed_reduce_min(a)) == (double)step);
    assert_true(ed_item(ed_reduce_max(a)) == (double)step);
    assert_true(ed_item(ed_reduce_max(b)) == (double)step);
}

static int64_t last_told(int output)
{
    record r = {0}, next;
    while (read(output, &next, sizeof next) == (ssize_t)sizeof next) r = next;
    close(output);
    return r.step;
}

static void overwritten(const char *kind)
{
    char folder[] = "/tmp/eddy_kill_XXXXXX", path[128], index[160];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, *kind == 'w' ? "x" : "ckpt-7");
    snprintf(index, sizeof index, "%s.index", path);
    unsigned seed = 2;
    int64_t count = kills(OVERWRITING_KILLS), step = 0, none = 0;
    useconds_t longest = LONGEST;
    for (int64_t i = 0; i < count; i++) {
        int output, status;
        pid_t child = start(folder, kind, &output);
        usleep((useconds_t)rand_r(&seed) % longest); /* microseconds */
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        int64_t told = last_told(output), saved = access(index, F_OK) ? 0 : check_whole(path);
        if (saved) check_tensors(path, saved);
        if (saved < told || saved < step)
            fail_msg("%lld was saved before, %lld was told, %lld is there", (long long)step,
                     (long long)told, (long long)saved);
        none += !told;
        longest = next_longest(longest, told);
        step = saved;
    }
    assert_in_range(count_names(folder, ".tmp."), 0, 6); /* of the last ones that were killed */
    remove_folder(folder);
    print_message("%lld kills, %lld of them before the first save; %lld saves\n", (long long)count,
                  (long long)none, (long long)step);
    assert_true(none < count);
}

/* A reader beside the writer: of one name it reads a whole checkpoint each time, never an older one
 * than before; of a manager that keeps one, which may be gone in between, that or ED_NOT_FOUND. */
static void read_beside(const char *kind)
{
    char folder[] = "/dev/shm/eddy_kill_XXXXXX", path[128]; /* in memory: many saves */
    if (!mkdtemp(folder)) assert_non_null(mkdtemp(strcpy(folder, "/tmp/eddy_kill_XXXXXX")));
    snprintf(path, sizeof path, "%s/x", folder);
    int output, status, reads = 0, gone = 0;
    int64_t last = 0, step = 0;
    pid_t child = start(folder, kind, &output);
    record r;
    assert_int_equal(read(output, &r, sizeof r), (ssize_t)sizeof r); /* the first is there */
    while (last < READ_SAVES) {
        ED_SCOPE;
        const char *from = *kind == 'w' ? path : ed_latest_checkpoint(folder);
        ed_restoration *got = from ? ed_checkpoint_restore(ed_checkpoint("step", ed_counter(&step)),
                                                           from, .partial = true)
                                   : NULL;
        if (!got && (*kind == 'w' || (ed_failed() && ed_error_kind() != ED_NOT_FOUND)))
            fail_msg("read %d: %s", reads, ed_error());
        ed_clear_error();
        reads += got != NULL;
        gone += got == NULL;
        assert_true(*kind != 'w' || step >= last);
        last = step;
    }
    close(output);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    remove_folder(folder);
    print_message("%d read, %d gone; %lld saves\n", reads, gone, (long long)last);
}

static void read_while_written(void **state)
{
    (void)state;
    read_beside("write");
    read_beside("keep");
}

static void killed_while_one_name_is_written(void **state)
{
    (void)state;
    overwritten("write");
}

static void killed_while_one_number_is_saved(void **state)
{
    (void)state;
    overwritten("number");
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[2], "train")) return trainer(argv[1]);
    if (argc == 3) return overwriter(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(killed_while_one_name_is_written),
        cmocka_unit_test(killed_while_one_number_is_saved),
        cmocka_unit_test(read_while_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
