/* The checkpoint manager when things go wrong: every call of the system failing once or from then
 * on (which to the disk is the same as being killed there), memory refused, several processes,
 * saves in the background. */
#include "io/file.h"
#include "tests/folders.h"
#include "tests/program.h"
#include "train/manager.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

static int begin_test(void **unused)
{
    (void)unused;
    io_fault(IO_CALL_ANY, -1, 0, false);
    ed_clear_error();
    return 0;
}

static int end_test(void **unused)
{
    (void)unused;
    io_fault(IO_CALL_ANY, -1, 0, false);
    assert_fine();
    return 0;
}

/* What a child that doesn't hang ends with. */
static int ended_with(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("the child was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static pid_t fork_with_alarm(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) alarm(60);
    return child;
}

/* ---- Every call of the system ---------------------------------------------------------------- */

enum { SAVED = 10, REFUSED, NOT_HIT, WRONG };

#ifdef EDDY_SANITIZED
enum { STRIDE = 4 }; /* fork takes its time there */
#else
enum { STRIDE = 1 };
#endif

typedef struct fault {
    io_call call;
    int error;
    bool repeat;
    bool opening;  /* it comes when the manager is made, else when it saves */
    int64_t most;  /* max_to_keep */
    bool going_on; /* the process saves once more when it is over */
    int64_t n;
} fault;

/* Two checkpoints of 1 and 2, and things that the next manager removes. */
static void base_folder(void)
{
    ED_SCOPE;
    program p;
    program_begin(&p);
    ed_checkpoint_manager *m = managing(p.checkpoint, fresh_folder("base"), .max_to_keep = 2);
    for (int i = 1; i <= 2; i++) {
        program_set(&p, i);
        assert_non_null(ed_manager_save(m));
    }
    ed_release(m);
    write_text(in_folder("base/ckpt-9.data-00000-of-00001"), "x");
    write_text(in_folder("base/checkpoint.tmp.999999999.0"), "x");
}

static void copy_base(void)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s/f' && cp -rp '%s/base' '%s/f'", folder_root,
             folder_root, folder_root);
    assert_int_equal(system(command), 0);
}

/* The life of a process with a fault: it restores 2 and saves 3, and perhaps 4. */
static int faulty_process(const fault *f)
{
    program p;
    program_begin(&p);
    if (f->opening) io_fault(f->call, f->n, f->error, f->repeat);
    ed_checkpoint_manager *m =
        ed_checkpoint_manager(p.checkpoint, in_folder("f"), .max_to_keep = f->most);
    const char *path = m ? ed_manager_restore_or_initialize(m) : NULL;
    bool restored = path && program_value(&p) == 2;
    if (f->opening && !restored && io_fault_count() <= f->n) return WRONG;
    if (f->opening && path && !restored) return WRONG; /* begun anew, or with 1 */
    if (!f->opening && !restored) return WRONG;
    if (path) program_set(&p, 3);
    if (!f->opening) io_fault(f->call, f->n, f->error, f->repeat);
    const char *saved = path ? ed_manager_save(m) : NULL;
    bool hit = io_fault_count() > f->n;
    io_fault(IO_CALL_ANY, -1, 0, false);
    if (!saved != ed_failed()) return WRONG;
    if (!saved && !hit) return WRONG;
    if (!saved && ed_error_kind() != ED_IO) return WRONG;
    ed_clear_error();
    if (f->going_on && m) {
        if (!path && !ed_manager_restore_or_initialize(m)) return WRONG;
        program_set(&p, 4);
        if (!ed_manager_save(m)) return WRONG;
    }
    return !hit ? NOT_HIT : saved ? SAVED : REFUSED;
}

/* The folder holds what its manager lists, and nothing else. */
static void is_clean(const ed_checkpoint_manager *m)
{
    char expected[2048] = "checkpoint";
    for (int64_t i = 0; i < ed_manager_count(m); i++) {
        ED_SCOPE;
        const char *name = io_name_of(ed_manager_checkpoint(m, i));
        bundle *b = bundle_open("test", ed_manager_checkpoint(m, i));
        assert_non_null(b);
        for (int shard = 0; shard < bundle_shards(b); shard++) {
            size_t n = strlen(expected);
            snprintf(expected + n, sizeof expected - n, " %s.data-%05d-of-%05d", name, shard,
                     bundle_shards(b));
        }
        strcat(strcat(strcat(expected, " "), name), ".index");
        ed_release(b);
    }
    assert_string_equal(names_in(m->folder), expected);
}

/* Whoever believes the state file alone, as TensorFlow does, finds files too. */
static void state_is_true(void)
{
    state s;
    assert_int_equal(state_read(in_folder("f"), &s), STATE_READ);
    bundle *b = bundle_open("test", s.latest);
    assert_true(b && bundle_is_complete(b));
    ed_release(b);
    state_free(&s);
}

/* What the next process finds: everything whole, the newest value no older than it should be. */
static void next_process(const fault *f, int outcome)
{
    ED_SCOPE;
    program p;
    program_begin(&p);
    double least = f->going_on && !f->opening ? 4 : outcome == REFUSED ? 2 : 3;
    state_is_true();
    const char *latest = ed_latest_checkpoint(in_folder("f"));
    assert_non_null(latest);
    assert_non_null(ed_checkpoint_restore(p.checkpoint, latest));
    assert_true(program_value(&p) >= least);
    program_set(&p, 99);
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("f"), .max_to_keep = 2);
    assert_non_null(ed_manager_restore_or_initialize(m));
    assert_fine();
    assert_string_equal(ed_manager_skipped(m), "");
    assert_true(program_value(&p) >= least && program_value(&p) <= 4);
    program_set(&p, 5);
    const char *path = ed_manager_save(m);
    assert_non_null(path);
    assert_int_equal(ed_manager_count(m), 2);
    is_clean(m);
    program_set(&p, 6);
    assert_non_null(ed_checkpoint_restore(p.checkpoint, path));
    assert_true(program_value(&p) == 5);
    ed_release(m);
}

static bool survives(const fault *f)
{
    copy_base();
    pid_t child = fork_with_alarm();
    if (!child) _exit(faulty_process(f));
    int outcome = ended_with(child);
    if (outcome < SAVED || outcome >= WRONG)
        fail_msg("call %d number %lld error %d%s: %d", f->call, (long long)f->n, f->error,
                 f->repeat ? " from then on" : "", outcome);
    next_process(f, outcome);
    return outcome != NOT_HIT;
}

static void every_call_fails(void **unused)
{
    (void)unused;
    static const int errors[] = {EIO, ENOSPC};
    int64_t hits = 0;
    base_folder();
    for (int way = 0; way < 8; way++)
        for (io_call call = IO_CALL_OPEN; call <= IO_CALL_ANY; call++) {
            fault f = {.call = call,
                       .error = errors[way & 1],
                       .most = 2 - (way & 1),
                       .repeat = way & 2,
                       .going_on = way & 4};
            while (survives(&f)) f.n += STRIDE;
            hits += f.n;
        }
    assert_true(hits > 600);
    print_message("%lld faults while saving\n", (long long)hits);
}

static void every_call_fails_at_first(void **unused)
{
    (void)unused;
    int64_t hits = 0;
    base_folder();
    for (int way = 0; way < 4; way++)
        for (io_call call = IO_CALL_OPEN; call <= IO_CALL_ANY; call++) {
            fault f = {.call = call,
                       .error = EIO,
                       .most = 2,
                       .repeat = way & 1,
                       .going_on = way & 2,
                       .opening = true};
            while (survives(&f)) f.n += STRIDE;
            hits += f.n;
        }
    assert_true(hits > 700);
    print_message("%lld faults while opening and saving\n", (long long)hits);
}

/* The new one is there, but an old one can't be removed: an error, and all that was to go stays
 * listed until it goes. */
static void old_one_stays(void **unused)
{
    (void)unused;
    ED_SCOPE;
    base_folder();
    copy_base();
    program p;
    program_begin(&p);
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("f"), .max_to_keep = 1);
    assert_non_null(ed_manager_restore_or_initialize(m));
    io_fault(IO_CALL_UNLINK, 0, EIO, false);
    assert_null(ed_manager_save(m));
    assert_int_equal(ed_error_kind(), ED_IO);
    assert_error("ckpt-1.index");
    assert_int_equal(ed_checkpoint_save_counter(p.checkpoint), 3);
    assert_int_equal(ed_manager_count(m), 3);
    assert_string_equal(io_name_of(ed_manager_latest(m)), "ckpt-3");
    assert_non_null(ed_manager_save(m));
    assert_int_equal(ed_manager_count(m), 1);
    is_clean(m);
    ed_release(m);
}

/* Writes that do half of what they should are gone on from. */
static void short_writes(void **unused)
{
    (void)unused;
    base_folder();
    fault f = {.call = IO_CALL_WRITE, .repeat = true, .most = 2};
    assert_true(survives(&f));
}

/* Killed at any moment, by the clock. */
static void killed(void **unused)
{
    (void)unused;
    base_folder();
    copy_base();
    double before = 2;
    for (int i = 0; i < 300; i++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork_with_alarm();
        if (!child) {
            program p;
            program_begin(&p);
            ed_checkpoint_manager *m =
                ed_checkpoint_manager(p.checkpoint, in_folder("f"), .max_to_keep = 2);
            if (!ed_manager_restore_or_initialize(m)) _exit(WRONG);
            for (;;) {
                ED_SCOPE;
                double v = program_value(&p) + 1;
                program_set(&p, v);
                if (!ed_manager_save(m, .in_background = i % 2) || !ed_manager_wait(m))
                    _exit(WRONG);
                if (write(pipes[1], &v, sizeof v) != sizeof v) _exit(WRONG);
            }
        }
        close(pipes[1]);
        double acknowledged = before, v;
        if (read(pipes[0], &v, sizeof v) == sizeof v) acknowledged = v;
        usleep((unsigned)(i * 137 % 1000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        while (read(pipes[0], &v, sizeof v) == sizeof v) acknowledged = v;
        close(pipes[0]);
        ED_SCOPE;
        program p;
        program_begin(&p);
        ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("f"), .max_to_keep = 2);
        assert_non_null(ed_manager_restore_or_initialize(m));
        assert_string_equal(ed_manager_skipped(m), "");
        assert_true(program_value(&p) >= acknowledged && acknowledged > before);
        before = program_value(&p);
        ed_release(m);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Any allocation refused: an error, nothing left behind, the folder as before or with the new
 * one. */
static void refused_memory(void **unused)
{
    (void)unused;
    base_folder();
    ed_memory before = ed_memory_stats();
    int64_t n = 0;
    for (bool whole = false; !whole; n++) {
        ED_SCOPE;
        copy_base();
        program p;
        program_begin(&p);
        ed_memory_fail_at(n, false);
        ed_checkpoint_manager *m =
            ed_checkpoint_manager(p.checkpoint, in_folder("f"), .max_to_keep = 2);
        bool made = m, restored = m && ed_manager_restore_or_initialize(m);
        bool saved = restored && ed_manager_save(m, .in_background = n % 2) && ed_manager_wait(m);
        whole = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        if (!whole && saved) /* what only tidies up may do without */
            assert_true(restored);
        else if (!whole) {
            assert_true(ed_failed());
            assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
        } else
            assert_true(saved);
        ed_clear_error();
        assert_true(!restored || program_value(&p) == 2);
        if (!made) m = ed_checkpoint_manager(p.checkpoint, in_folder("f"), .max_to_keep = 2);
        assert_non_null(ed_manager_restore_or_initialize(m));
        assert_true(program_value(&p) == 2);
        program_set(&p, 3);
        assert_non_null(ed_manager_save(m));
    }
    assert_true(n > 60);
    assert_int_equal(ed_memory_stats().live_tensors, before.live_tensors);
    assert_int_equal(ed_memory_stats().live_bytes, before.live_bytes);
}

/* ---- Several processes ----------------------------------------------------------------------- */

static bool is_refused(const program *p)
{
    ED_SCOPE;
    bool refused = !ed_checkpoint_manager(p->checkpoint, in_folder("shared")) &&
                   ed_error_kind() == ED_FAILED_PRECONDITION && strstr(ed_error(), "shared");
    ed_clear_error();
    return refused;
}

static void one_manager_a_folder(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    fresh_folder("shared");
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("shared"));
    assert_true(is_refused(&p));
    pid_t child = fork_with_alarm();
    if (!child) {
        /* Neither by a manager of its own nor by its parent's, which it releases and leaves. */
        bool good =
            is_refused(&p) && !ed_manager_save(m) && ed_error_kind() == ED_FAILED_PRECONDITION;
        ed_clear_error();
        good = good && !ed_manager_wait(m) && ed_failed();
        ed_clear_error();
        good = good && !ed_manager_restore_or_initialize(m) && ed_failed();
        ed_clear_error();
        ed_release(m);
        exit(good && is_refused(&p) ? SAVED : WRONG);
    }
    assert_int_equal(ended_with(child), SAVED);
    child = fork_with_alarm();
    if (!child) exit(is_refused(&p) ? SAVED : WRONG);
    assert_int_equal(ended_with(child), SAVED);
    assert_non_null(ed_manager_save(m));
    ed_release(m);
    ed_release(managing(p.checkpoint, in_folder("shared")));
}

/* ---- In the background ----------------------------------------------------------------------- */

static void values_of_the_moment(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    fresh_folder("background");
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("background"), .max_to_keep = 3);
    for (int i = 1; i <= 20; i++) {
        program_set(&p, i);
        p.step = i;
        assert_non_null(ed_manager_save(m, .in_background = true));
        program_set(&p, -i);
        p.step = -i;
    }
    assert_true(ed_manager_wait(m) && ed_manager_wait(m));
    assert_int_equal(ed_manager_count(m), 3);
    is_clean(m);
    for (int i = 18; i <= 20; i++) {
        assert_non_null(ed_checkpoint_restore(p.checkpoint, in_folder("background/ckpt-%d", i)));
        assert_true(program_value(&p) == i && p.step == i);
        assert_int_equal(ed_checkpoint_save_counter(p.checkpoint), i);
    }
    program_set(&p, 21);
    assert_non_null(ed_manager_save(m, .in_background = true));
    ed_release(m); /* waits */
    assert_non_null(ed_checkpoint_restore(p.checkpoint, in_folder("background/ckpt-21")));
    m = managing(p.checkpoint, in_folder("background"), .max_to_keep = 3);
    is_clean(m);
    ed_release(m);
}

static void errors_of_the_background(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    fresh_folder("background");
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("background"));
    for (int way = 0; way < 2; way++) {
        int64_t counter = ed_checkpoint_save_counter(p.checkpoint);
        io_fault(IO_CALL_WRITE, 0, ENOSPC, true);
        assert_non_null(ed_manager_save(m, .in_background = true));
        if (way) {
            assert_null(ed_manager_save(m));
        } else
            assert_false(ed_manager_wait(m));
        assert_int_equal(ed_error_kind(), ED_IO);
        assert_error("No space left on device");
        io_fault(IO_CALL_ANY, -1, 0, false);
        assert_int_equal(ed_checkpoint_save_counter(p.checkpoint), counter);
        assert_int_equal(ed_manager_count(m), way);
        assert_true(ed_manager_wait(m));
        assert_non_null(ed_manager_save(m));
        is_clean(m);
    }
    ed_release(m);
}

/* A save of some time: 32 MiB. */
static ed_tensor *long_variable(double value)
{
    ED_SCOPE;
    return ed_keep(ed_variable(ed_full(ED_SHAPE(8 << 20), value, .dtype = ED_FLOAT32)));
}

static void step_within_a_save(void **unused)
{
    (void)unused;
    ED_SCOPE;
    int64_t step = 0;
    fresh_folder("steps");
    ed_checkpoint *c = ed_checkpoint("v", long_variable(1));
    ed_checkpoint_manager *m = managing(c, in_folder("steps"), .step_counter = ed_counter(&step),
                                        .checkpoint_interval = 10);
    int64_t saves = 0, passed = 0;
    for (; step < 40; step++) {
        const char *path = ed_manager_save(m, .in_background = true);
        assert_non_null(path);
        saves += *path != 0;
        passed += !*path && m->in_flight; /* it was too early to wait for */
    }
    assert_int_equal(saves, 4);
    assert_true(passed > 0);
    ed_release(m);
    assert_string_equal(io_name_of(ed_latest_checkpoint(in_folder("steps"))), "ckpt-4");
}

/* The end of the process waits for the managers that nobody released. */
static void process_ends_within_a_save(void **unused)
{
    (void)unused;
    fresh_folder("exit");
    pid_t child = fork_with_alarm();
    if (!child) {
        ed_checkpoint *c = ed_checkpoint("v", long_variable(7));
        ed_checkpoint_manager *m = ed_retain(ed_checkpoint_manager(c, in_folder("exit")));
        exit(ed_manager_save(m, .in_background = true) ? SAVED : WRONG);
    }
    assert_int_equal(ended_with(child), SAVED);
    ED_SCOPE;
    ed_tensor *v = long_variable(0);
    ed_checkpoint *c = ed_checkpoint("v", v);
    const char *latest = ed_latest_checkpoint(in_folder("exit"));
    assert_non_null(latest);
    assert_non_null(ed_checkpoint_restore(c, latest));
    assert_true(ed_item(ed_reduce_max(v)) == 7 && ed_item(ed_reduce_min(v)) == 7);
}

/* A child made meanwhile has no thread to wait for; the parent's goes on. */
static void fork_within_a_save(void **unused)
{
    (void)unused;
    ED_SCOPE;
    fresh_folder("fork");
    ed_checkpoint *c = ed_checkpoint("v", long_variable(3));
    ed_checkpoint_manager *m = managing(c, in_folder("fork"));
    for (int i = 0; i < 4; i++) {
        assert_non_null(ed_manager_save(m, .in_background = true));
        pid_t child = fork_with_alarm();
        if (!child) {
            bool refused = !ed_manager_wait(m) && ed_failed();
            ed_clear_error();
            ed_release(m);
            _exit(refused ? SAVED : WRONG);
        }
        assert_int_equal(ended_with(child), SAVED);
        assert_true(ed_manager_wait(m));
    }
    is_clean(m);
    assert_int_equal(ed_manager_count(m), 4);
    ed_release(m);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: their children start threads, before this process has some */
        test(killed),
        test(process_ends_within_a_save),
        test(every_call_fails),
        test(every_call_fails_at_first),
        test(old_one_stays),
        test(short_writes),
        test(refused_memory),
        test(one_manager_a_folder),
        test(values_of_the_moment),
        test(errors_of_the_background),
        test(step_within_a_save),
        test(fork_within_a_save),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
