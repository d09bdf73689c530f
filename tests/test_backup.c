/*
 * Trainings that end in their midst and are gone on with, by a new model in the same process or by
 * another process, come to the same bits as one that never ended: weights, history, and where an
 * early stop falls. Ended by Ctrl-C behind any batch, by SIGKILL at any moment, by a time limit.
 *
 * The program that is killed is this one with other arguments: test_backup FOLDER SAVE_FREQ.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/children.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 60, BATCH = 8, EPOCHS = 6, STEPS = 6 }; /* 45 rows of tensors are trained */

/* ---- The training ---------------------------------------------------------------------------- */

typedef struct plan {
    const char *folder; /* of the backup; NULL: none */
    int64_t save_freq, epochs;
    bool dataset, best; /* data; early stopping with the best weights */
    int64_t ends_at;    /* Ctrl-C behind that batch of the training; 0: never */
    useconds_t pause;   /* behind each batch */
    ed_callback *more;  /* NULL: none */
} plan;

static bool disturb(void *user, ed_training *t)
{
    const plan *p = user;
    if (t->event != ED_BATCH_END) return true;
    if (p->pause) usleep(p->pause);
    if (t->global_step == p->ends_at) raise(SIGINT);
    return true;
}

static ed_layer *model_of(void)
{
    return ed_layer_sequential("m", ed_layer_dense(8, .activation = "tanh"),
                               ed_layer_batch_normalization(), ed_layer_dropout(0.3),
                               ed_layer_dense(2));
}

/* What a program does from its first line on. */
static ed_history *train(const plan *p, ed_layer **model)
{
    ed_set_seed(5);
    ed_tensor *x = ed_random_normal(ED_SHAPE(ROWS, 4), .generator = ed_generator_from_seed(1));
    ed_tensor *y = ed_cast(ed_greater(ed_reduce_sum(x, .axis = ED_AXES(1)), 0), ED_INT32);
    ed_tensor *vx = ed_slice(x, .begin = ED_INTS(45)), *vy = ed_slice(y, .begin = ED_INTS(45));
    x = ed_slice(x, .end = ED_INTS(45));
    y = ed_slice(y, .end = ED_INTS(45));
    *model = model_of();
    ed_model_compile(
        *model, .optimizer = ed_optimizer_adam(.learning_rate = 0.1),
        .loss = ed_loss_sparse_categorical_crossentropy(.from_logits = true),
        .metrics = ED_OBJECTS(ed_metric_sparse_categorical_accuracy(),
                              ed_metric_sparse_categorical_crossentropy(.from_logits = true)));
    ed_callback *none = ed_callback_terminate_on_nan(), *more = p->more;
    ed_callback *backup =
        p->folder ? ed_callback_backup_and_restore(p->folder, .save_freq = p->save_freq) : none;
    return ed_model_fit(
        *model,
        p->dataset ? (void *)ed_dataset_from_tensors(x, y, .batch = BATCH, .shuffle = true)
                   : (void *)x,
        p->dataset ? NULL : y, .epochs = p->epochs ? p->epochs : EPOCHS,
        .batch_size = p->dataset ? 0 : BATCH, .validation_x = vx, .validation_y = vy,
        .callbacks = ED_OBJECTS(
            backup, ed_callback_from(disturb, (void *)p, NULL),
            ed_callback_early_stopping(.patience = p->best ? 1 : 100,
                                       .restore_best_weights = p->best),
            ed_callback_reduce_lr_on_plateau(.patience = 1, .factor = 0.3, .min_delta = 0.01),
            more ? more : none));
}

/* Everything that training made, as text. The caller frees it. */
static char *results(ed_layer *model, const ed_history *h)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    for (int64_t i = 0; i < ed_history_count(h); i++) {
        const double *values = ed_data(ed_history_values(h, ed_history_name(h, i)));
        fprintf(to, "%s", ed_history_name(h, i));
        for (int64_t e = 0; e < ed_history_epochs(h); e++) fprintf(to, " %a", values[e]);
        fprintf(to, "\n");
    }
    ed_list *all = ed_layer_variables(model);
    for (int64_t i = 0; i < ed_list_size(all); i++) {
        ed_tensor *v = ed_cast(ed_list_get(all, i), ED_FLOAT64);
        const double *values = ed_data(v);
        for (int64_t k = 0; k < ed_size(v); k++) fprintf(to, "%a ", values[k]);
        fprintf(to, "\n");
    }
    fprintf(to, "%a\n", ed_optimizer_learning_rate(ed_model_optimizer(model)));
    fclose(to);
    return text;
}

/* Trains once; the results, or NULL with the error. */
static char *trained(const plan *p)
{
    ED_SCOPE;
    ed_layer *model;
    ed_history *h = train(p, &model);
    return h ? results(model, h) : NULL;
}

static int child(const char *folder, const char *freq)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/result", folder);
    char *text = trained(&(plan){.folder = folder, .save_freq = atoi(freq), .pause = 1500});
    if (!text) return fprintf(stderr, "%s\n", ed_error()), ed_error_kind() == ED_CANCELLED ? 3 : 1;
    FILE *to = fopen(path, "w");
    if (!to || fputs(text, to) < 0 || fclose(to)) return 1;
    free(text);
    return 0;
}

/* ---- In one process -------------------------------------------------------------------------- */

/* Ended behind each `every`th batch, and gone on with until it is done. */
static void goes_on(plan p, int64_t every, const char *whole)
{
    int ends = 0;
    char *text = NULL;
    p.folder = fresh_folder("backup");
    while (!text) {
        p.ends_at += every;
        text = trained(&p);
        if (text) break;
        if (ed_error_kind() != ED_CANCELLED) fail_msg("%s", ed_error());
        assert_non_null(strstr(ed_error(), "when the program is run again"));
        ed_clear_error();
        assert_true(++ends < 100);
    }
    assert_true(ends > 0);
    if (strcmp(text, whole)) fail_msg("every %d:\n%s\ninstead of\n%s", (int)every, text, whole);
    free(text);
    ED_SCOPE;
    assert_null(ed_latest_checkpoint(p.folder)); /* the end removes them */
}

static void ctrl_c_behind_any_batch(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        plan p = {.dataset = i & 1, .best = i & 2, .epochs = i & 2 ? 30 : EPOCHS};
        char *whole = trained(&p);
        assert_non_null(whole);
        const char *first = strchr(whole, '\n'); /* a value for each epoch */
        int epochs = 0;
        for (const char *s = whole; s < first; s++) epochs += *s == ' ';
        assert_true(p.best ? epochs < 30 : epochs == EPOCHS);
        for (int64_t every = 1; every <= (i & 2 ? 7 : 13); every += 3) goes_on(p, every, whole);
        free(whole);
    }
}

static void what_does_not_belong_is_refused(void **state)
{
    (void)state;
    const char *folder = fresh_folder("backup");
    assert_null(trained(&(plan){.folder = folder, .ends_at = 8}));
    ed_clear_error();
    assert_null(trained(&(plan){.folder = folder, .dataset = true}));
    if (!strstr(ed_error(), "batch_size differs") || !strstr(ed_error(), "to start the training"))
        fail_msg("%s", ed_error());
    ed_clear_error();
    assert_null(trained(&(plan){.folder = NULL, .more = ed_callback_backup_and_restore(NULL)}));
    assert_non_null(strstr(ed_error(), "backup_and_restore: the folder is NULL"));
    ed_clear_error();
    /* Other callbacks than before. */
    assert_null(
        trained(&(plan){.folder = folder, .more = ed_callback_model_checkpoint(in_folder("x"))}));
    assert_non_null(strstr(ed_error(), "missing from the file: training/callback_5/best"));
    ed_clear_error();
    /* Two callbacks, or two programs, can't have one folder. */
    const char *other = fresh_folder("other");
    assert_null(trained(&(plan){.folder = other, .more = ed_callback_model_checkpoint(other)}));
    if (ed_error_kind() != ED_FAILED_PRECONDITION) fail_msg("%s", ed_error());
    ed_clear_error();
    char *text = trained(&(plan){.folder = folder}), *whole = trained(&(plan){.folder = NULL});
    assert_string_equal(text, whole);
    free(text);
    free(whole);
}

/* The lines of a log are those of a training that never ended, also where the process was killed
 * between an epoch's line and its save. */
static void logs_go_on(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        char *texts[2];
        for (int ended = 0; ended < 2; ended++) {
            const char *folder = fresh_folder("backup"), *log = in_folder("log_%d_%d", json, ended);
            char *text = NULL;
            for (int64_t at = ended ? 8 : 0; !text; at += 9) {
                plan p = {.folder = folder, .ends_at = at};
                p.more = json ? ed_callback_json_logger(log) : ed_callback_csv_logger(log);
                text = trained(&p);
                ed_clear_error();
                FILE *f = at == 17 ? fopen(log, "a") : NULL;
                if (f) fputs(json ? "{\"epoch\": 2, \"loss\": 1}\n" : "2,0.5\n", f);
                if (f) fclose(f);
            }
            free(text);
            texts[ended] = read_text(log);
        }
        assert_string_equal(texts[0], texts[1]);
        free(texts[0]);
        free(texts[1]);
    }
}

/* ---- By processes ---------------------------------------------------------------------------- */

/* Starts the child, sends the signal after a while and returns how it ended. */
static int kill_child(const char *folder, const char *freq, int number, useconds_t after)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        freopen(in_folder("output"), "w", stderr);
        const char *words[] = {"test_backup", folder, freq, NULL};
        execute(built("tests/test_backup"), (char *const *)words);
        _exit(127);
    }
    usleep(after);
    kill(pid, number);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void killed_by(int number, const char *freq)
{
    char folder[512], path[600];
    char *whole = trained(&(plan){.folder = NULL});
    strcpy(folder, fresh_folder("backup"));
    unsigned seed = 3;
    int ends = 0, saved = 0, status = 1;
    useconds_t longest = 20000;
    while (!WIFEXITED(status) || WEXITSTATUS(status)) {
        status = kill_child(folder, freq, number, (useconds_t)rand_r(&seed) % longest);
        longest += longest / 10; /* on a busy machine a process takes long to begin */
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
            char *told = read_text(in_folder("output"));
            assert_non_null(strstr(told, "the training is saved in"));
            free(told);
            saved++;
        } else if (WIFEXITED(status) && WEXITSTATUS(status)) {
            fail_msg("%d: %s", WEXITSTATUS(status), read_text(in_folder("output")));
        }
        ends += !WIFEXITED(status) || WEXITSTATUS(status);
        assert_true(ends < 200);
    }
    print_message("%d ends, %d of them saved\n", ends, saved);
    snprintf(path, sizeof path, "%s/result", folder);
    char *text = read_text(path);
    assert_string_equal(text, whole);
    free(text);
    free(whole);
}

static void ctrl_c_at_any_moment(void **state)
{
    (void)state;
    killed_by(SIGINT, "0");
}

static void killed_at_any_moment(void **state)
{
    (void)state;
    killed_by(SIGKILL, "2");
}

/* ---- model_checkpoint ------------------------------------------------------------------------ */

static void checkpoints_are_saved(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *folder = fresh_folder("saved");
    ed_layer *model;
    ed_history *h =
        train(&(plan){.more = ed_callback_model_checkpoint(folder, .max_to_keep = 2)}, &model);
    if (!h) fail_msg("%s", ed_error());
    char wanted[4200];
    snprintf(wanted, sizeof wanted, "%s/ckpt-%d", folder, EPOCHS);
    assert_string_equal(ed_latest_checkpoint(folder), wanted);
    ed_layer *again = model_of();
    ed_forward(again, ed_zeros(ED_SHAPE(1, 4)));
    assert_non_null(ed_checkpoint_restore(ed_checkpoint("model", again), wanted, .partial = true));
    for (int64_t i = 0; i < ed_list_size(ed_layer_variables(model)); i++)
        assert_true(ed_all_close(ed_list_get(ed_layer_variables(model), i),
                                 ed_list_get(ed_layer_variables(again), i), 0, 0, NULL));

    /* Only the best, only the weights: a strict restore of the model alone. */
    folder = fresh_folder("best");
    ed_callback *best =
        ed_callback_model_checkpoint(folder, .save_best_only = true, .save_weights_only = true);
    h = train(&(plan){.more = best, .epochs = 20}, &model);
    assert_non_null(h);
    const double *losses = ed_data(ed_history_values(h, "val_loss"));
    int least = 0;
    for (int i = 1; i < 20; i++) least = losses[i] < losses[least] ? i : least;
    snprintf(wanted, sizeof wanted, "%s/ckpt-%d", folder, least + 1);
    assert_string_equal(ed_latest_checkpoint(folder), wanted);
    assert_non_null(ed_checkpoint_restore(ed_checkpoint("model", again), wanted));

    /* By batches. */
    folder = fresh_folder("batches");
    ed_callback *often = ed_callback_model_checkpoint(folder, .save_freq = 4, .max_to_keep = 0);
    assert_non_null(train(&(plan){.more = often}, &model));
    snprintf(wanted, sizeof wanted, "%s/ckpt-%d", folder, STEPS * EPOCHS);
    assert_string_equal(ed_latest_checkpoint(folder), wanted);
    assert_fine();
}

/* Allocations of a training that is saved, ended and gone on with, refused: an error, or the usual
 * result; nothing leaks, and what was saved before is still gone on with. */
static void without_memory(void **state)
{
    (void)state;
    const char *folder = fresh_folder("backup");
    plan whole_plan = {.epochs = 2};
    char *whole = trained(&whole_plan);
    const int64_t live = ed_memory_live();
    bool refused = true;
    int refusals = 0;
    for (int64_t i = 0; refused; i += 1 + i / 8) {
        plan p = {.folder = folder, .epochs = 2, .ends_at = 8};
        assert_null(trained(&p));
        ed_clear_error();
        p.ends_at = 0;
        ed_memory_fail_at(i, false);
        char *text = trained(&p);
        refused = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        refusals += !text;
        if (!text && ed_error_kind() != ED_OUT_OF_MEMORY) fail_msg("%d: %s", (int)i, ed_error());
        ed_clear_error();
        if (!text) text = trained(&p);
        if (!text) fail_msg("%d: %s", (int)i, ed_error());
        assert_string_equal(text, whole);
        free(text);
        if (ed_memory_live() != live)
            fail_msg("%d: %lld bytes more", (int)i, (long long)(ed_memory_live() - live));
    }
    assert_true(refusals > 20);
    free(whole);
}

int main(int argc, char **argv)
{
    if (argc == 3) return child(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctrl_c_behind_any_batch),
        cmocka_unit_test(what_does_not_belong_is_refused),
        cmocka_unit_test(logs_go_on),
        cmocka_unit_test(ctrl_c_at_any_moment),
        cmocka_unit_test(killed_at_any_moment),
        cmocka_unit_test(checkpoints_are_saved),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, folder_begin, children_end);
}
