/* The checkpoint manager: call by call as TensorFlow's did it, state files of all kinds, the best
 * one, what is passed over; and the state file's text. */
#include "io/file.h"
#include "tests/folders.h"
#include "tests/json.h"
#include "tests/program.h"
#include "train/manager.h"
#include <math.h>
#include <sys/time.h>
#include <sys/wait.h>

static double the_time;

static double set_clock(void)
{
    return the_time;
}

/* Each test has the real clock. */
static int begin_test(void **unused)
{
    static double (*real)(void);
    (void)unused;
    if (!real) real = manager_clock;
    manager_clock = real;
    ed_clear_error();
    return 0;
}

/* Leaves no error behind. */
static int end_test(void **unused)
{
    (void)unused;
    assert_fine();
    return 0;
}

/* A new program, and an empty folder for its manager: its path. */
static void begin_in(program *p, char folder[512], const char *name)
{
    program_begin(p);
    strcpy(folder, fresh_folder(name));
}

/* ---- Runs of TensorFlow's manager ------------------------------------------------------------ */

typedef struct run {
    const json *log;
    int64_t at; /* in the log */
    const char *folder, *name;
    program p;
    ed_checkpoint_manager *m;
} run;

static void run_new(run *r, const json *o)
{
    ed_release(r->m);
    ED_SCOPE;
    const json *hours = json_get(o, "keep_checkpoint_every_n_hours"),
               *name = json_get(o, "checkpoint_name"), *every = json_get(o, "checkpoint_interval"),
               *most = json_get(o, "max_to_keep");
    r->m = managing(r->p.checkpoint, r->folder,
                    .max_to_keep = json_kind_of(most) == JSON_NULL ? 0 : json_int(most),
                    .keep_checkpoint_every_n_hours = hours ? json_number(hours) : 0,
                    .checkpoint_name = name ? json_text(name) : NULL,
                    .checkpoint_interval = every ? json_int(every) : 0,
                    .step_counter = json_get(o, "step_counter") ? ed_counter(&r->p.step) : NULL);
}

static const char *run_save(run *r, const json *o)
{
    const json *number = json_get(o, "checkpoint_number"), *check = json_get(o, "check_interval");
    return ed_manager_save(r->m, .number = number ? json_int(number) : -1,
                           .any_step = check && !json_bool(check));
}

/* A path in the folder, or nothing, as the log has it. */
static void same_path(const run *r, const char *path, const json *expected)
{
    if (json_kind_of(expected) == JSON_NULL) {
        assert_true(!path || !*path);
        return;
    }
    assert_non_null(path);
    size_t n = strlen(r->folder);
    assert_int_equal(strncmp(path, r->folder, n), 0);
    assert_string_equal(path + n + 1, json_text(expected));
}

static void same_files(const run *r, const json *files)
{
    char expected[4096] = "";
    for (int64_t i = 0; i < json_count(files); i++) {
        if (i) strcat(expected, " ");
        strcat(expected, json_text(json_at(files, i)));
    }
    assert_string_equal(names_in(r->folder), expected);
}

static void compare(run *r, const char *returned)
{
    ED_SCOPE;
    assert_fine();
    const json *entry = json_at(r->log, r->at++), *listed = json_get(entry, "checkpoints"),
               *v = json_get(entry, "v"), *counter = json_get(entry, "save_counter"),
               *file = json_get(entry, "state_file");
    if (json_get(entry, "returned")) same_path(r, returned, json_get(entry, "returned"));
    assert_true(program_value(&r->p) == json_number(json_at(v, 0)));
    assert_int_equal(r->p.step, json_int(json_get(entry, "step")));
    assert_int_equal(ed_checkpoint_save_counter(r->p.checkpoint),
                     json_kind_of(counter) == JSON_NULL ? 0 : json_int(counter));
    assert_int_equal(ed_manager_count(r->m), json_count(listed));
    for (int64_t i = 0; i < json_count(listed); i++)
        same_path(r, ed_manager_checkpoint(r->m, i), json_at(listed, i));
    same_path(r, ed_manager_latest(r->m), json_get(entry, "latest_checkpoint"));
    same_files(r, json_get(entry, "files"));
    char *content = read_text(in_folder("run/checkpoint"));
    if (json_kind_of(file) == JSON_NULL)
        assert_null(content);
    else
        assert_string_equal(content, json_text(file));
    free(content);
    assert_fine();
}

static void run_call(run *r, const json *call)
{
    ED_SCOPE;
    const char *op = json_text(json_at(call, 0)), *returned = NULL;
    const json *argument = json_at(call, 1);
    if (!strcmp(op, "advance"))
        the_time += json_number(argument);
    else if (!strcmp(op, "set"))
        program_set(&r->p, program_value(&r->p) + json_number(argument));
    else if (!strcmp(op, "step"))
        r->p.step += json_int(argument);
    else {
        if (!strcmp(op, "new"))
            run_new(r, argument);
        else if (!strcmp(op, "save"))
            returned = run_save(r, argument);
        else {
            assert_string_equal(op, "restore_or_initialize");
            returned = ed_manager_restore_or_initialize(r->m);
        }
        compare(r, returned);
    }
}

static void runs(void **unused)
{
    static const char *const names[] = {"keep3",   "hours",     "interval",
                                        "recover", "unlimited", "dotted_name"};
    (void)unused;
    data_folder(); /* or it is skipped */
    manager_clock = set_clock;
    for (int i = 0; i < 6; i++) {
        ED_SCOPE;
        json *file = json_read_file(in_data("tf/made/manager/run_%s/log.json", names[i]));
        const json *script = json_get(file, "script");
        char folder[512];
        run r = {.log = json_get(file, "log"), .folder = strcpy(folder, fresh_folder("run"))};
        the_time = json_number(json_get(file, "start"));
        program_begin(&r.p);
        for (int64_t c = 0; c < json_count(script); c++) run_call(&r, json_at(script, c));
        assert_int_equal(r.at, json_count(r.log));
        ed_release(r.m);
        json_free(file);
    }
}

/* ---- State files of all kinds ---------------------------------------------------------------- */

/* Where we do better than to answer nothing, fail, or name what can't be read: the newest that the
 * file lists, or that the folder has. */
static const struct {
    const char *name, *latest;
} kinder[] = {
    {"absolute_gone", "ü-5"}, {"deleted_checkpoint", "ckpt-2"},
    {"empty_file", "ü-5"},    {"only_all_paths", "ü-5"},
    {"empty_path", "ü-5"},    {"garbage", "ü-5"},
    {"unknown_field", "ü-5"}, {"no_colon", "ü-5"},
    {"data_only", "ü-5"},     {"index_only", "ü-5"},
};

static const char *kinder_latest(const char *name)
{
    for (size_t i = 0; i < sizeof kinder / sizeof *kinder; i++)
        if (!strcmp(kinder[i].name, name)) return kinder[i].latest;
    return NULL;
}

/* Whether TensorFlow's answer is nothing, or an error. */
static bool is_nothing(const json *answer)
{
    return json_kind_of(answer) == JSON_NULL ||
           (json_kind_of(answer) == JSON_OBJECT && json_get(answer, "error"));
}

static void same_name(const char *path, const char *folder, const char *name)
{
    char *expected = state_join(folder, name);
    assert_non_null(path);
    assert_string_equal(path, expected);
    memory_free(expected);
}

static void judge_latest(const char *folder, const char *name, const json *answer)
{
    ED_SCOPE;
    const char *latest = ed_latest_checkpoint(folder), *ours = kinder_latest(name);
    assert_fine();
    assert_true(ours ? is_nothing(answer) || !strcmp(name, "index_only") : !is_nothing(answer));
    same_name(latest, folder, ours ? ours : json_text(answer));
}

static void judge_state(const char *folder, const json *answer)
{
    state s;
    state_found found = state_read(folder, &s);
    assert_int_equal(found, is_nothing(answer) ? STATE_DAMAGED : STATE_READ);
    if (found == STATE_READ) {
        const json *paths = json_get(answer, "all_model_checkpoint_paths"),
                   *times = json_get(answer, "all_model_checkpoint_timestamps");
        same_name(s.latest, folder, json_text(json_get(answer, "model_checkpoint_path")));
        assert_int_equal(s.count, json_count(paths));
        for (int64_t i = 0; i < s.count; i++) {
            same_name(s.entries[i].path, folder, json_text(json_at(paths, i)));
            const json *time = json_at(times, i);
            assert_true(s.entries[i].timestamp == (time ? json_number(time) : 0));
        }
        assert_true(s.last_preserved == json_number(json_get(answer, "last_preserved_timestamp")));
    }
    state_free(&s);
}

/* A damaged file is to TensorFlow's manager as if there were none; ours takes what the folder has
 * of its name. */
static void judge_manager(const char *folder, const json *answer)
{
    ED_SCOPE;
    program p;
    program_begin(&p);
    ed_checkpoint_manager *m = ed_checkpoint_manager(p.checkpoint, folder, .max_to_keep = 3);
    assert_fine();
    const json *latest = is_nothing(answer) ? NULL : json_get(answer, "latest_checkpoint");
    if (!latest || json_kind_of(latest) == JSON_NULL) {
        assert_int_equal(ed_manager_count(m), 2);
        same_name(ed_manager_checkpoint(m, 0), folder, "ckpt-1");
        same_name(ed_manager_latest(m), folder, "ckpt-2");
        return;
    }
    const json *listed = json_get(answer, "checkpoints");
    same_name(ed_manager_latest(m), folder, json_text(latest));
    assert_int_equal(ed_manager_count(m), json_count(listed));
    for (int64_t i = 0; i < json_count(listed); i++)
        same_name(ed_manager_checkpoint(m, i), folder, json_text(json_at(listed, i)));
    assert_true(m->state.last_preserved ==
                json_number(json_get(answer, "last_preserved_timestamp")));
}

static void odd_state_files(void **unused)
{
    (void)unused;
    char command[4096], folder[512];
    const char *odd = in_data("tf/made/manager/odd");
    json *file = json_read_file(in_data("tf/made/manager/odd/answers.json"));
    const json *answers = json_get(file, "answers");
    manager_clock = set_clock;
    the_time = json_number(json_get(file, "clock"));
    assert_int_equal(json_count(answers), 22);
    for (int64_t i = 0; i < json_count(answers); i++) {
        const char *name = json_key(answers, i);
        const json *answer = json_at(answers, i);
        strcpy(folder, fresh_folder("odd"));
        snprintf(command, sizeof command,
                 "cp -rp '%s'/. '%s' && chmod -R u+w '%s' && rm -f '%s'/checkpoint.* && "
                 "cp '%s/checkpoint.%s' '%s/checkpoint'",
                 odd, folder, folder, folder, odd, name, folder);
        assert_int_equal(system(command), 0);
        judge_latest(folder, name, json_get(answer, "latest_checkpoint"));
        judge_state(folder, json_get(answer, "get_checkpoint_state"));
        judge_manager(folder, json_get(answer, "manager"));
    }
    json_free(file);
}

/* ---- The state file's text ------------------------------------------------------------------- */

static state_found read_as_state(const char *content, state *s)
{
    write_text(in_folder("checkpoint"), content);
    return state_read(folder_root, s);
}

static void texts_read(void **unused)
{
    (void)unused;
    static const char *const good[] = {
        "model_checkpoint_path: 'a' \"-\" '1'",
        "model_checkpoint_path:\n\n# why\n\"a-1\",",
        "model_checkpoint_path: \"a-1\"; all_model_checkpoint_paths: [ 'x', \"a-1\" ];",
        "model_checkpoint_path: \"old\" model_checkpoint_path: \"a-1\"",
        "all_model_checkpoint_paths: [] model_checkpoint_path: \"\\x61\\055\\61\"",
        "model_checkpoint_path: \"\\u0061-\\U00000031\"",
        "last_preserved_timestamp: inf model_checkpoint_path: \"a-1\" #",
        "all_model_checkpoint_timestamps: [1, -2.5e3, .5, nan, 1.5f] model_checkpoint_path: 'a-1'",
    };
    static const char *const bad[] = {
        "model_checkpoint_path: a-1",
        "model_checkpoint_path: \"a-1",
        "model_checkpoint_path: \"a-1'",
        "model_checkpoint_path: \"a\n-1\"",
        "model_checkpoint_path: \"a-1\\q\"",
        "model_checkpoint_path: \"a-1\\x\"",
        "model_checkpoint_path: \"a-1\\777\"",
        "model_checkpoint_path: \"a-1\\u12\"",
        "model_checkpoint_path: \"a-1\\u0000\"",
        "model_checkpoint_path: \"a-1\\ud800\"",
        "model_checkpoint_path: \"a-1\\ud800\\u0041\"",
        "model_checkpoint_path: \"a-1\\U00110000\"",
        "model_checkpoint_path: \"a-1\\0\"",
        "model_checkpoint_path: [\"a-1\"]",
        "model_checkpoint_path { }",
        "model_checkpoint_paths: \"a-1\"",
        "model_checkpoint_path: \"a-1\" last_preserved_timestamp: \"1\"",
        "model_checkpoint_path: \"a-1\" last_preserved_timestamp: 0x1p3",
        "model_checkpoint_path: \"a-1\" last_preserved_timestamp: 1,5",
        "model_checkpoint_path: \"a-1\" last_preserved_timestamp: 1_0",
        "model_checkpoint_path: \"a-1\" all_model_checkpoint_paths: [\"a-1\"",
        "model_checkpoint_path: \"a-1\" all_model_checkpoint_paths: [\"a-1\",]",
        "model_checkpoint_path: \"a-1\" all_model_checkpoint_paths: \"\"",
        "model_checkpoint_path: \"a-1\" }",
        "1: \"a-1\"",
    };
    state s;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (read_as_state(good[i], &s) != STATE_READ) fail_msg("refused: %s", good[i]);
        same_name(s.latest, folder_root, "a-1");
        state_free(&s);
    }
    assert_int_equal(read_as_state("model_checkpoint_path: '\\u00fc\\u20ac\\ud83d\\ude00-1'", &s),
                     STATE_READ);
    same_name(s.latest, folder_root, "\u00fc\u20ac\U0001f600-1");
    state_free(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_as_state(bad[i], &s) != STATE_DAMAGED) fail_msg("taken: %s", bad[i]);
    assert_fine();
}

/* No byte and no cut makes it anything but read or damaged; nothing stays behind. */
static void texts_damaged(void **unused)
{
    (void)unused;
    static const char content[] = "# best \"a-1\" highest 0.5\n"
                                  "model_checkpoint_path: \"a\\055\\x32\"\n"
                                  "all_model_checkpoint_paths: [\"a-1\", 'a-2']\n"
                                  "all_model_checkpoint_timestamps: [1.25e9, 17] # end\n"
                                  "last_preserved_timestamp: 1e9";
    enum { SIZE = sizeof content - 1 };
    ed_memory before = ed_memory_stats();
    static const char bytes[] = " \t\n\"'\\#:;,[]{-07aefx_\x80\xff"; /* and 0 */
    int64_t read = 0, all = 0;
    state s;
    for (size_t i = 0; i < SIZE; i++)
        for (size_t b = 0; b <= sizeof bytes; b++, all++) {
            bool cut = b == sizeof bytes;
            FILE *f = fopen(in_folder("checkpoint"), "w");
            assert_non_null(f);
            fwrite(content, 1, i, f);
            if (!cut) fputc(bytes[b], f);
            if (!cut) fwrite(content + i + 1, 1, SIZE - i - 1, f);
            fclose(f);
            state_found found = state_read(folder_root, &s);
            assert_true(found == STATE_READ || found == STATE_DAMAGED);
            read += found == STATE_READ;
            state_free(&s);
        }
    assert_in_range(read, all / 10, all - all / 10);
    assert_fine();
    assert_true(ed_memory_stats().live_bytes == before.live_bytes);
}

/* What is written is Python's shortest form, and read back the same. */
static void numbers(void **unused)
{
    (void)unused;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {1, "1.0"},
        {1700002700, "1700002700.0"},
        {1784015299.2607172, "1784015299.2607172"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {0.05, "0.05"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {1e-05, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1e15, "1000000000000000.0"},
        {9999999999999998, "9999999999999998.0"},
        {1e16, "1e+16"},
        {123456789012345680, "1.2345678901234568e+17"},
        {-2.5, "-2.5"},
        {1.0 / 3, "0.3333333333333333"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    state s = {.latest = text_copy("a-1")}, back;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[128];
        snprintf(expected, sizeof expected,
                 "model_checkpoint_path: \"a-1\"\nlast_preserved_timestamp: %s\n", rows[i].text);
        s.last_preserved = rows[i].value;
        assert_true(state_write("test", folder_root, &s));
        char *content = read_text(in_folder("checkpoint"));
        assert_string_equal(content, expected);
        free(content);
    }
    uint64_t bits = 0x9e3779b97f4a7c15;
    for (int i = 0; i < 200; i++) {
        bits = bits * 6364136223846793005 + 1442695040888963407;
        memcpy(&s.last_preserved, &bits, sizeof bits);
        if (!isfinite(s.last_preserved)) continue;
        assert_true(state_write("test", folder_root, &s));
        assert_int_equal(state_read(folder_root, &back), STATE_READ);
        assert_memory_equal(&back.last_preserved, &s.last_preserved, sizeof bits);
        state_free(&back);
    }
    state_free(&s);
}

/* Any path that a file can have comes back, and lies inside the folder as before. */
static void names_survive(void **unused)
{
    (void)unused;
    static const char *const names[] = {"plain-1",    "a b-2",       "quote\"'-3", "back\\n-4",
                                        "line\n\t-5", "\x01\x7f-6",  "\xff\xfe-7", "ü-8",
                                        "sub/x-9",    "/absolute-1", "#-1"};
    enum { COUNT = sizeof names / sizeof *names };
    state s = {0}, back;
    for (int i = 0; i < COUNT; i++) {
        char *path = state_join(folder_root, names[i]);
        assert_true(state_add(&s, path, 1.5 + i));
        memory_free(path);
    }
    s.latest = text_copy(s.entries[COUNT - 1].path);
    s.best = text_copy(s.entries[2].path);
    s.metric = -0.125;
    assert_true(state_write("test", folder_root, &s));
    assert_int_equal(state_read(folder_root, &back), STATE_READ);
    assert_int_equal(back.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        same_name(back.entries[i].path, folder_root, names[i]);
        assert_true(back.entries[i].timestamp == 1.5 + i);
    }
    assert_string_equal(back.best, s.best);
    assert_true(back.metric == -0.125 && !back.highest);
    state_free(&s);
    state_free(&back);
    char *content = read_text(in_folder("checkpoint"));
    assert_non_null(strstr(content, "\"\\377\\376-7\"\n"));
    assert_non_null(strstr(content, "\"quote\\\"\\'-3\"\n"));
    free(content);
}

/* ---- The best one ---------------------------------------------------------------------------- */

static ed_checkpoint_manager *keeping(const program *p, const char *folder, ed_best best)
{
    ED_SCOPE;
    return managing(p->checkpoint, folder, .max_to_keep = 2, .best = best);
}

static void is_best(const ed_checkpoint_manager *m, const char *name)
{
    ED_SCOPE;
    const char *best = ed_manager_best(m);
    assert_fine();
    if (!name)
        assert_null(best);
    else
        same_name(best, m->folder, name);
}

static void keeps_the_best(void **unused)
{
    (void)unused;
    static const double metrics[] = {0.5, 0.9, 0.7, 0.9, 0.8, 0.1};
    ED_SCOPE;
    program p;
    program_begin(&p);
    const char *folder = fresh_folder("best");
    ed_checkpoint_manager *m = keeping(&p, folder, ED_BEST_HIGHEST);
    is_best(m, NULL);
    assert_null(ed_manager_save(m));
    assert_error("metric is NaN");
    assert_null(ed_manager_save(m, .metric = NAN));
    assert_error("metric is NaN");
    assert_int_equal(ed_checkpoint_save_counter(p.checkpoint), 0);
    for (int i = 0; i < 6; i++) {
        assert_non_null(ed_manager_save(m, .metric = metrics[i]));
        is_best(m, i ? "ckpt-2" : "ckpt-1");
        ed_release(m);
        m = keeping(&p, folder, ED_BEST_HIGHEST);
        is_best(m, i ? "ckpt-2" : "ckpt-1");
    }
    assert_int_equal(ed_manager_count(m), 3);
    assert_string_equal(names_in(folder),
                        "checkpoint ckpt-2.data-00000-of-00001 ckpt-2.index "
                        "ckpt-5.data-00000-of-00001 ckpt-5.index ckpt-6.data-00000-of-00001 "
                        "ckpt-6.index");
    assert_non_null(ed_manager_save(m, .metric = 0.95));
    is_best(m, "ckpt-7");
    assert_string_equal(names_in(folder), "checkpoint ckpt-6.data-00000-of-00001 ckpt-6.index "
                                          "ckpt-7.data-00000-of-00001 ckpt-7.index");
    ed_release(m);
    m = keeping(&p, folder, ED_BEST_LOWEST); /* another measure: the old best is none */
    assert_non_null(ed_manager_save(m, .metric = 3));
    is_best(m, "ckpt-8");
    assert_non_null(ed_manager_save(m, .metric = -INFINITY));
    is_best(m, "ckpt-9");
    assert_non_null(ed_manager_save(m, .metric = 1e9, .number = 9)); /* the best is no more */
    is_best(m, "ckpt-9");
    assert_non_null(ed_manager_save(m, .metric = 1e8));
    is_best(m, "ckpt-11");
    ed_release(m);
    m = keeping(&p, folder, ED_BEST_NONE);
    assert_non_null(ed_manager_save(m, .metric = 5));
    is_best(m, NULL);
    ed_release(m);
}

/* One that is kept for ever moves the limit beyond which TensorFlow believes in the list. */
static void keeps_the_best_beyond_hours(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    const char *folder = fresh_folder("hours");
    manager_clock = set_clock;
    the_time = 1e9;
    ed_checkpoint_manager *m = NULL;
    for (int i = 0; i < 6; i++) {
        ed_release(m);
        m = managing(p.checkpoint, folder, .max_to_keep = 1, .keep_checkpoint_every_n_hours = 1,
                     .best = ED_BEST_HIGHEST);
        the_time += 3000;
        assert_non_null(ed_manager_save(m, .metric = -i));
    }
    is_best(m, "ckpt-1");
    assert_int_equal(ed_manager_count(m), 2);
    assert_string_equal(names_in(folder),
                        "checkpoint ckpt-1.data-00000-of-00001 ckpt-1.index "
                        "ckpt-2.data-00000-of-00001 ckpt-2.index ckpt-4.data-00000-of-00001 "
                        "ckpt-4.index ckpt-6.data-00000-of-00001 ckpt-6.index");
    ed_release(m);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

static bool fill_by_one(void *user)
{
    program_set(user, 1);
    return true;
}

static bool refuse(void *user)
{
    ++*(int *)user;
    return false;
}

static void damage(const char *path)
{
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fputc(getc(f) ^ 0x10, (rewind(f), f));
    fclose(f);
}

static ed_checkpoint_manager *manager_in(const program *p, const char *folder)
{
    ED_SCOPE;
    return managing(p->checkpoint, folder);
}

/* Five checkpoints of the values 1 to 5; the first two no longer listed, as if kept for ever. */
static ed_checkpoint_manager *five(program *p, const char *folder)
{
    ed_checkpoint_manager *m = manager_in(p, folder);
    for (int i = 1; i <= 5; i++) {
        ED_SCOPE;
        program_set(p, i);
        assert_non_null(ed_manager_save(m));
    }
    ed_release(m);
    state s;
    assert_int_equal(state_read(folder, &s), STATE_READ);
    for (int i = 0; i < 2; i++) memory_free(s.entries[i].path);
    memmove(s.entries, s.entries + 2, 3 * sizeof *s.entries);
    s.count = 3;
    assert_true(state_write("test", folder, &s));
    state_free(&s);
    program_set(p, 99);
    return manager_in(p, folder);
}

static void begins_anew(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    int asked = 0;
    const char *folder = in_folder("made/by/it");
    ed_checkpoint_manager *m = manager_in(&p, folder);
    assert_string_equal(ed_manager_restore_or_initialize(m), "");
    assert_null(ed_manager_restoration(m));
    assert_null(ed_manager_latest(m));
    assert_string_equal(ed_manager_skipped(m), "");
    assert_fine();
    ed_release(m);
    m = managing(p.checkpoint, folder, .initialize = fill_by_one, .user = &p);
    assert_string_equal(ed_manager_restore_or_initialize(m), "");
    assert_true(program_value(&p) == 1);
    assert_non_null(ed_manager_save(m));
    program_set(&p, 2);
    same_name(ed_manager_restore_or_initialize(m), folder, "ckpt-1");
    assert_true(program_value(&p) == 1);
    assert_true(ed_restoration_assert_consumed(ed_manager_restoration(m)));
    ed_release(m);
    m = managing(p.checkpoint, in_folder("refusing"), .initialize = refuse, .user = &asked);
    assert_null(ed_manager_restore_or_initialize(m));
    assert_error("initialize returned false");
    assert_int_equal(asked, 1);
    ed_release(m);
}

static void passes_over_damage(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "damage");
    ed_checkpoint_manager *m = five(&p, folder);
    damage(in_folder("damage/ckpt-5.data-00000-of-00001"));
    assert_int_equal(unlink(in_folder("damage/ckpt-4.index")), 0);
    same_name(ed_manager_restore_or_initialize(m), folder, "ckpt-3");
    assert_fine();
    assert_true(program_value(&p) == 3);
    const char *skipped = ed_manager_skipped(m), *four = strstr(skipped, "ckpt-4: ");
    assert_true(strstr(skipped, "ckpt-5: ") && four && strstr(skipped, "ckpt-5: ") < four);
    assert_int_equal(ed_checkpoint_save_counter(p.checkpoint), 3);

    damage(in_folder("damage/ckpt-3.index"));
    same_name(ed_manager_restore_or_initialize(m), folder, "ckpt-2"); /* not listed, but there */
    assert_true(program_value(&p) == 2);

    damage(in_folder("damage/ckpt-2.index"));
    damage(in_folder("damage/ckpt-1.data-00000-of-00001"));
    program_set(&p, 77);
    ed_fail(ED_OUT_OF_RANGE, "something earlier");
    assert_null(ed_manager_restore_or_initialize(m));
    assert_error("something earlier");
    assert_null(ed_manager_restore_or_initialize(m));
    assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
    assert_error("every checkpoint in the folder is damaged");
    assert_true(program_value(&p) == 77);
    ed_release(m);
}

/* What does not fit is no damage: nobody goes back to something older for it. */
static void does_not_pass_over_misfits(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "misfit");
    ed_release(five(&p, folder));
    ed_checkpoint_manager *m =
        managing(ed_checkpoint("v", ed_variable(ed_zeros(ED_SHAPE(3)))), folder);
    assert_null(ed_manager_restore_or_initialize(m));
    assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
    assert_error("ckpt-5");
    assert_string_equal(ed_manager_skipped(m), "");
    ed_release(m);
}

/* ---- What else is in the folder -------------------------------------------------------------- */

static void folder_without_state_file(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "bare");
    ed_release(five(&p, folder));
    assert_non_null(ed_checkpoint_write(p.checkpoint, in_folder("bare/other-9")));
    assert_non_null(ed_checkpoint_write(p.checkpoint, in_folder("bare/ckpt-007")));
    assert_int_equal(unlink(in_folder("bare/checkpoint")), 0);
    assert_int_equal(unlink(in_folder("bare/ckpt-5.data-00000-of-00001")), 0);
    ed_checkpoint_manager *m = managing(p.checkpoint, folder, .max_to_keep = 2);
    assert_int_equal(ed_manager_count(m), 4);
    same_name(ed_manager_latest(m), folder, "ckpt-4");
    same_name(ed_manager_restore_or_initialize(m), folder, "ckpt-4");
    assert_non_null(ed_manager_save(m));
    assert_string_equal(names_in(folder),
                        "checkpoint ckpt-007.data-00000-of-00001 ckpt-007.index "
                        "ckpt-4.data-00000-of-00001 ckpt-4.index ckpt-5.data-00000-of-00001 "
                        "ckpt-5.index other-9.data-00000-of-00001 other-9.index");
    same_name(ed_latest_checkpoint(folder), folder, "ckpt-5");
    assert_int_equal(unlink(in_folder("bare/checkpoint")), 0);
    same_name(ed_latest_checkpoint(folder), folder, "other-9");
    ed_release(m);
    assert_null(ed_latest_checkpoint(fresh_folder("empty")));
    assert_null(ed_latest_checkpoint(in_folder("no such folder")));
    assert_fine();
}

static void set_time(const char *path, time_t seconds)
{
    struct timeval both[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimes(path, both), 0);
}

/* Completed, but not named: taken up if younger than the state file. An older one was left there on
 * purpose by who wrote that file. */
static void unnamed_checkpoints(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "unnamed");
    ed_checkpoint_manager *m = five(&p, folder);
    same_name(ed_manager_latest(m), folder, "ckpt-5");
    assert_int_equal(ed_manager_count(m), 3);
    ed_release(m);
    write_text(in_folder("unnamed/checkpoint"), "model_checkpoint_path: \"ckpt-3\"\n");
    for (int i = 1; i <= 5; i++) set_time(in_folder("unnamed/ckpt-%d.index", i), 1000000000);
    m = manager_in(&p, folder);
    same_name(ed_manager_latest(m), folder, "ckpt-3");
    assert_int_equal(ed_manager_count(m), 0);
    ed_release(m);
    set_time(in_folder("unnamed/checkpoint"), 1000000000);
    m = manager_in(&p, folder);
    same_name(ed_manager_latest(m), folder, "ckpt-5");
    assert_int_equal(ed_manager_count(m), 2);
    ed_release(m);
}

/* A copied folder may list the original's files: they are not the copy's to remove. */
static void files_outside(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512], content[4096];
    begin_in(&p, folder, "original");
    ed_release(five(&p, folder));
    assert_string_equal(fresh_folder("copy"), in_folder("copy"));
    snprintf(content, sizeof content,
             "model_checkpoint_path: \"%s/ckpt-5\" all_model_checkpoint_paths: \"%s/ckpt-4\""
             "all_model_checkpoint_paths: \"../original/ckpt-3\""
             "all_model_checkpoint_paths: \"%s/ckpt-5\""
             "all_model_checkpoint_timestamps: [5, 6, 7]",
             folder, folder, folder);
    write_text(in_folder("copy/checkpoint"), content);
    ed_checkpoint_manager *m = managing(p.checkpoint, in_folder("copy"), .max_to_keep = 1);
    assert_int_equal(ed_manager_count(m), 3);
    assert_non_null(ed_manager_save(m));
    assert_int_equal(ed_manager_count(m), 1);
    ed_release(m);
    for (int i = 3; i <= 5; i++) assert_true(io_exists(in_folder("original/ckpt-%d.index", i)));
}

static void leftovers(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "leftovers");
    static const char *const gone[] = {"ckpt-3.index.tmp.999999999.0",
                                       "ckpt-3.data-00000-of-00001.tmp.999999999.7",
                                       "checkpoint.tmp.999999999.1", "ckpt-8.data-00001-of-00002",
                                       "ckpt-8.data-00000-of-00002"},
                             *const stay[] = {
                                 "mine.tmp.999999999.0",       "other-8.data-00000-of-00001",
                                 "ckpt-x.data-00000-of-00001", "ckpt-9.index",
                                 "ckpt-8.data-0-of-1",         "ckpt-5.data-00000-of-00001"};
    for (int i = 0; i < 5; i++) write_text(in_folder("leftovers/%s", gone[i]), "x");
    for (int i = 0; i < 6; i++) write_text(in_folder("leftovers/%s", stay[i]), "x");
    write_text(in_folder("leftovers/checkpoint"),
               "model_checkpoint_path: 'ckpt-5' all_model_checkpoint_paths: 'ckpt-5'"
               "all_model_checkpoint_timestamps: 5");
    ed_release(manager_in(&p, folder));
    for (int i = 0; i < 5; i++)
        if (io_exists(in_folder("leftovers/%s", gone[i]))) fail_msg("%s is there", gone[i]);
    for (int i = 0; i < 6; i++)
        if (!io_exists(in_folder("leftovers/%s", stay[i]))) fail_msg("%s is gone", stay[i]);
}

/* A number that was used before takes the place of the old one, and comes last. */
static void same_number_again(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "again");
    ed_checkpoint_manager *m = managing(p.checkpoint, folder, .max_to_keep = 2);
    assert_non_null(ed_manager_save(m, .number = 7));
    assert_non_null(ed_manager_save(m, .number = 0));
    program_set(&p, 3);
    assert_non_null(ed_manager_save(m, .number = 7));
    assert_int_equal(ed_manager_count(m), 2);
    same_name(ed_manager_checkpoint(m, 0), folder, "ckpt-0");
    same_name(ed_manager_checkpoint(m, 1), folder, "ckpt-7");
    program_set(&p, 0);
    same_name(ed_manager_restore_or_initialize(m), folder, "ckpt-7");
    assert_true(program_value(&p) == 3);
    assert_non_null(ed_manager_save(m));
    assert_string_equal(names_in(folder),
                        "checkpoint ckpt-4.data-00000-of-00001 ckpt-4.index "
                        "ckpt-7.data-00000-of-00002 ckpt-7.data-00001-of-00002 ckpt-7.index");
    ed_release(m);
}

/* A folder that was copied without its times: the newest is the one that the state file says, also
 * if others have higher numbers, are not listed any more, or are of a later save that was given
 * up. */
static void copied_without_times(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512], copy[512], command[5 * sizeof folder];
    begin_in(&p, folder, "numbers");
    strcpy(copy, fresh_folder("numbers_copy"));
    ed_checkpoint_manager *m = managing(p.checkpoint, folder, .max_to_keep = 2);
    program_set(&p, 7);
    assert_non_null(ed_manager_save(m, .number = 7));
    program_set(&p, 4);
    assert_non_null(ed_manager_save(m, .number = 4));
    snprintf(command, sizeof command, "cp '%s'/checkpoint '%s' && sleep 0.02 && cp '%s'/ckpt* '%s'",
             folder, copy, folder, copy);
    assert_int_equal(system(command), 0);
    ed_checkpoint_manager *again = manager_in(&p, copy);
    assert_int_equal(ed_manager_count(again), 2);
    same_name(ed_manager_latest(again), copy, "ckpt-4");
    same_name(ed_manager_restore_or_initialize(again), copy, "ckpt-4");
    assert_true(program_value(&p) == 4);
    ed_release(again);

    /* Not listed: as one that is kept for ever. */
    write_text(in_folder("numbers_copy/checkpoint"),
               "model_checkpoint_path: 'ckpt-4' all_model_checkpoint_paths: 'ckpt-4'"
               "all_model_checkpoint_timestamps: 5");
    snprintf(command, sizeof command, "touch '%s'/ckpt-7.index", copy);
    assert_int_equal(system(command), 0);
    again = manager_in(&p, copy);
    same_name(ed_manager_latest(again), copy, "ckpt-4");
    assert_int_equal(ed_manager_count(again), 1);
    ed_release(again);
    ed_release(m);
}

/* A name with a folder in it: the files are there, the state file is in the manager's folder. */
static void names_with_folders(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "parts");
    for (int i = 1; i <= 3; i++) {
        ed_checkpoint_manager *m =
            managing(p.checkpoint, folder, .max_to_keep = 2, .checkpoint_name = "part/ck");
        if (i > 1)
            same_name(ed_manager_restore_or_initialize(m), in_folder("parts/part"),
                      i == 2 ? "ck-1" : "ck-2");
        assert_true(i == 1 || program_value(&p) == i - 1);
        program_set(&p, i);
        assert_non_null(ed_manager_save(m));
        ed_release(m);
        program_set(&p, 0);
        write_text(in_folder("parts/part/ck-9.index.tmp.999999999.0"), "x");
    }
    char *content = read_text(in_folder("parts/checkpoint"));
    assert_non_null(strstr(content, "model_checkpoint_path: \"part/ck-3\""));
    assert_non_null(strstr(content, "all_model_checkpoint_paths: \"part/ck-2\""));
    free(content);
    unlink(in_folder("parts/checkpoint")); /* then the folder tells */
    ed_checkpoint_manager *m = managing(p.checkpoint, folder, .checkpoint_name = "part/ck");
    assert_int_equal(ed_manager_count(m), 2);
    same_name(ed_manager_restore_or_initialize(m), in_folder("parts/part"), "ck-3");
    ed_release(m);
    assert_string_equal(names_in(in_folder("parts/part")),
                        "ck-2.data-00000-of-00001 ck-2.index ck-3.data-00000-of-00001 ck-3.index");
}

/* The life of a process that may not write there. */
static int restore_only(const program *p, const char *folder)
{
    ED_SCOPE;
    if (!geteuid() && seteuid(65534)) return 1;
    ed_checkpoint_manager *m = managing(p->checkpoint, folder);
    if (!m || !ed_manager_restore_or_initialize(m) || program_value(p) != 5) return 2;
    if (ed_manager_save(m) || ed_error_kind() != ED_FAILED_PRECONDITION) return 3;
    return strstr(ed_error(), "read-only") ? 0 : 4;
}

static void read_only_folder(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "closed");
    ed_checkpoint_manager *m = manager_in(&p, folder);
    program_set(&p, 5);
    assert_non_null(ed_manager_save(m));
    program_set(&p, 0);
    ed_release(m);
    assert_int_equal(chmod(folder_root, 0755) | chmod(folder, 0555), 0);
    int status;
    pid_t child = fork();
    if (!child) _exit(restore_only(&p, folder));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(names_in(folder), "checkpoint ckpt-1.data-00000-of-00001 ckpt-1.index");
}

static void listed_twice(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "twice");
    ed_checkpoint_manager *m = managing(p.checkpoint, folder, .max_to_keep = 3);
    assert_non_null(ed_manager_save(m, .number = 7));
    assert_non_null(ed_manager_save(m, .number = 4));
    ed_release(m);
    write_text(in_folder("twice/checkpoint"),
               "model_checkpoint_path: 'ckpt-7' all_model_checkpoint_paths: ['ckpt-7', 'ckpt-4',"
               "'ckpt-7'] all_model_checkpoint_timestamps: [5, 6, 7]");
    m = managing(p.checkpoint, folder, .max_to_keep = 3);
    assert_int_equal(ed_manager_count(m), 2);
    same_name(ed_manager_checkpoint(m, 0), folder, "ckpt-7");
    assert_non_null(ed_manager_save(m, .number = 9));
    assert_int_equal(ed_manager_count(m), 3);
    for (int i = 0; i < 3; i++) {
        bundle *b = bundle_open("test", ed_manager_checkpoint(m, i));
        assert_true(b && bundle_is_complete(b));
        ed_release(b);
    }
    ed_release(m);
}

/* The clock was set back: what the file says of the future is taken as of now, and nothing is lost
 * by it. */
static void clock_set_back(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    char folder[512];
    begin_in(&p, folder, "back");
    manager_clock = set_clock;
    the_time = 2e9;
    ed_checkpoint_manager *m = managing(p.checkpoint, folder);
    the_time += 100;
    assert_non_null(ed_manager_save(m));
    ed_release(m);
    the_time = 1e9;
    m = managing(p.checkpoint, folder, .max_to_keep = 1, .keep_checkpoint_every_n_hours = 1);
    assert_int_equal(ed_manager_count(m), 0); /* no later than the last that was kept for ever */
    same_name(ed_manager_latest(m), folder, "ckpt-1");
    for (int i = 0; i < 3; i++) {
        the_time += 3600;
        assert_non_null(ed_manager_save(m));
    }
    assert_string_equal(names_in(folder),
                        "checkpoint ckpt-1.data-00000-of-00001 ckpt-1.index "
                        "ckpt-2.data-00000-of-00001 ckpt-2.index ckpt-3.data-00000-of-00001 "
                        "ckpt-3.index ckpt-4.data-00000-of-00001 ckpt-4.index");
    ed_release(m);
}

/* ---- Wrong calls ----------------------------------------------------------------------------- */

static void options(void **unused)
{
    (void)unused;
    ED_SCOPE;
    program p;
    program_begin(&p);
    const char *folder = in_folder("options");
#define refused(text, ...)                                                                         \
    do {                                                                                           \
        assert_null(ed_checkpoint_manager(p.checkpoint, folder, __VA_ARGS__));                     \
        assert_error(text);                                                                        \
    } while (0)
    refused("max_to_keep", .max_to_keep = -1);
    refused("hours", .keep_checkpoint_every_n_hours = -1);
    refused("hours", .keep_checkpoint_every_n_hours = NAN);
    refused("checkpoint_name", .checkpoint_name = "");
    refused("checkpoint_name", .checkpoint_name = "a//b");
    refused("checkpoint_name", .checkpoint_name = "/b");
    refused("checkpoint_name", .checkpoint_name = "b/");
    refused("checkpoint_name", .checkpoint_name = "../b");
    refused("checkpoint_name", .checkpoint_name = "a/./b");
    refused("requires a step_counter", .checkpoint_interval = 1);
    refused(">= 0", .checkpoint_interval = -1, .step_counter = ed_counter(&p.step));
    refused("step_counter must be", .step_counter = p.v);
    refused("can't be saved", .step_counter = p.checkpoint);
    refused("best", .best = 3);
    assert_false(io_exists(folder));
    assert_int_equal(access(folder, F_OK), -1);
    assert_null(ed_checkpoint_manager(p.checkpoint, ""));
    assert_error("empty");
    ed_tensor *counter = ed_variable(ed_full(ED_SHAPE(), 7, .dtype = ED_INT64));
    assert_fine();
    ed_checkpoint_manager *m = ed_checkpoint_manager(p.checkpoint, folder, .step_counter = counter,
                                                     .checkpoint_interval = 10);
    assert_non_null(m);
    assert_non_null(ed_manager_save(m));
    ed_assign(counter, ed_full(ED_SHAPE(), 16, .dtype = ED_INT64));
    assert_string_equal(ed_manager_save(m), "");
    assert_string_equal(ed_manager_save(m, .in_background = true), "");
    ed_assign(counter, ed_full(ED_SHAPE(), 17, .dtype = ED_INT64));
    assert_non_null(strstr(ed_manager_save(m), "ckpt-2"));
    assert_null(ed_manager_checkpoint(m, 2));
    assert_error("index 2 is out of bounds for 2 checkpoints");
    assert_null(ed_manager_checkpoint(m, -3));
    assert_error("index -3 is out of bounds");
    assert_non_null(strstr(ed_manager_checkpoint(m, -2), "ckpt-1"));
    assert_string_equal((ed_manager_save_with)(m, NULL), "");
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(runs),
        test(odd_state_files),
        test(texts_read),
        test(texts_damaged),
        test(numbers),
        test(names_survive),
        test(keeps_the_best),
        test(keeps_the_best_beyond_hours),
        test(begins_anew),
        test(passes_over_damage),
        test(does_not_pass_over_misfits),
        test(folder_without_state_file),
        test(unnamed_checkpoints),
        test(files_outside),
        test(leftovers),
        test(same_number_again),
        test(copied_without_times),
        test(listed_twice),
        test(names_with_folders),
        test(read_only_folder),
        test(clock_set_back),
        test(options),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
