/*
 * Eddy's side of `make interop`: a program whose subcommands write and read what Python's side
 * (interop.py) reads and writes.
 *
 * Both sides know every tensor by its seed: the bits of element k are a mixed form of seed and k.
 * So neither has to believe what the other wrote, and all bits occur, NaNs' among them. Which
 * tensors there are says a list, a file of records that end in byte 30, of fields that end in byte
 * 31: seed, dtype, extents with commas between them, layout, name; in a tree of objects a name for
 * each edge from the root. A record of a tree whose dtype is "same" is another way (all but its
 * last fields name the old one) to an object that was named before.
 *
 * Exits with 0 if all was as it should be; else says on stderr what was not.
 */
#include "io/archive.h"
#include "io/bundle.h"
#include "model/model.h"
#include "tests/interop/kinds.h"
#include "train/train.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

_Noreturn __attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* Everything of the library passes here: an error of it ends the program. */
static void *made(const void *result)
{
    if (!result || ed_failed()) wrong("%s", ed_failed() ? ed_error() : "NULL without an error");
    return (void *)result;
}

static void done(bool result)
{
    if (!result || ed_failed()) wrong("%s", ed_failed() ? ed_error() : "false without an error");
}

/* ---- Lists of tensors ------------------------------------------------------------------------ */

enum { MAX_LIST = 1 << 24, MAX_SPECIMENS = 1 << 14, MAX_NAMES = 16 };

typedef struct specimen {
    uint64_t seed;
    ed_dtype dtype; /* ED_DTYPE_NONE: another way to an object */
    int64_t shape[ED_MAX_RANK];
    int rank;
    const char *layout;
    char *names[MAX_NAMES];
    int n_names;
} specimen;

typedef struct specimens {
    specimen at[MAX_SPECIMENS];
    int count;
} specimens;

static ed_dtype dtype_called(const char *name)
{
    for (ed_dtype dtype = ED_FLOAT32; dtype < ED_DTYPE_COUNT; dtype++)
        if (!strcmp(ed_dtype_name(dtype), name)) return dtype;
    return ED_DTYPE_NONE;
}

static ed_ints shape_of(const specimen *s)
{
    return (ed_ints){s->shape, s->rank};
}

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) wrong("%s can't be opened", path);
    char *content = calloc(1, MAX_LIST);
    size_t size = fread(content, 1, MAX_LIST - 1, file);
    fclose(file);
    if (size == MAX_LIST - 1) wrong("%s is too long for a list", path);
    return content;
}

/* The field that begins at *at, which goes past it. */
static char *field_at(char **at)
{
    char *field = *at;
    *at = strchr(field, 31);
    if (!*at) wrong("a list without an end");
    *(*at)++ = 0;
    return field;
}

static void parse_shape(specimen *s, char *extents)
{
    for (char *extent = strtok(extents, ","); extent; extent = strtok(NULL, ","))
        s->shape[s->rank++] = strtoll(extent, NULL, 10);
}

static specimens *read_list(const char *path)
{
    specimens *list = calloc(1, sizeof *list);
    for (char *at = whole_file(path); *at; at++) {
        if (list->count == MAX_SPECIMENS) wrong("%s lists too many", path);
        specimen *s = &list->at[list->count++];
        s->seed = strtoull(field_at(&at), NULL, 10);
        s->dtype = dtype_called(field_at(&at));
        parse_shape(s, field_at(&at));
        s->layout = field_at(&at);
        while (*at != 30) s->names[s->n_names++] = field_at(&at);
    }
    return list;
}

/* ---- Elements -------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t n)
{
    n += 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

/* The first n elements. */
static char *elements(const specimen *s, int64_t n)
{
    size_t size = ed_dtype_size(s->dtype);
    char *data = malloc(n * size + 1);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = mixed((s->seed << 40) + (uint64_t)i);
        if (s->dtype == ED_BOOL) bits &= 1;
        memcpy(data + i * size, &bits, size);
    }
    return data;
}

static int64_t product(ed_ints shape)
{
    int64_t n = 1;
    for (int64_t i = 0; i < shape.count; i++) n *= shape.values[i];
    return n;
}

static bool is_repeated(const specimen *s)
{
    return !strcmp(s->layout, "repeated");
}

/* As many elements as come before the first one comes again. */
static int64_t period(const specimen *s)
{
    return is_repeated(s) ? product((ed_ints){s->shape + 1, s->rank - 1}) : product(shape_of(s));
}

static ed_tensor *copied(const specimen *s, ed_ints shape)
{
    char *data = elements(s, period(s));
    ed_tensor *t = made(ed_constant_of(s->dtype, data, shape));
    free(data);
    return t;
}

/* Every second element, from the end, of rows that are twice as long: a stride of -2. */
static ed_tensor *backward(const specimen *s)
{
    int64_t wide[ED_MAX_RANK] = {0}, begin[ED_MAX_RANK] = {0}, end[ED_MAX_RANK], step[ED_MAX_RANK];
    int last = s->rank - 1;
    for (int i = 0; i < s->rank; i++) wide[i] = end[i] = s->shape[i], step[i] = 1;
    wide[last] *= 2;
    begin[last] = wide[last] - 1;
    end[last] = ED_END;
    step[last] = -2;
    int64_t n = product(shape_of(s)), columns = s->shape[last];
    size_t size = ed_dtype_size(s->dtype);
    char *data = elements(s, n), *rows = calloc(2 * n, size);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / columns, column = i % columns;
        memcpy(rows + (size_t)(2 * (row * columns + columns - column) - 1) * size, data + i * size,
               size);
    }
    ed_tensor *t = made(ed_slice(ed_constant_of(s->dtype, rows, (ed_ints){wide, s->rank}),
                                 .begin = (ed_ints){begin, s->rank}, .end = (ed_ints){end, s->rank},
                                 .step = (ed_ints){step, s->rank}));
    free(data);
    free(rows);
    return t;
}

/* A view of a tensor that holds the same in column order. */
static ed_tensor *transposed(const specimen *s)
{
    ed_tensor *columns = made(ed_transpose(copied(s, shape_of(s))));
    return made(ed_transpose(ed_constant_of(s->dtype, made(ed_data(columns)), ed_shape(columns))));
}

static ed_tensor *tensor_of(const specimen *s)
{
    if (!strcmp(s->layout, "transposed")) return transposed(s);
    if (!strcmp(s->layout, "backward")) return backward(s);
    if (is_repeated(s))
        return made(ed_broadcast_to(copied(s, (ed_ints){s->shape + 1, s->rank - 1}), shape_of(s)));
    return copied(s, shape_of(s));
}

static const char *full_name(const specimen *s)
{
    static char name[4096];
    size_t n = 0;
    name[0] = 0;
    for (int i = 0; i < s->n_names; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, i ? "/%s" : "%s", s->names[i]);
    return name;
}

/* Bit for bit, dtype and shape too. */
static void compare(const specimen *s, const ed_tensor *t)
{
    ed_ints shape = ed_shape(t), expected = shape_of(s);
    if (ed_dtype_of(t) != s->dtype)
        wrong("%s is %s, not %s", full_name(s), ed_dtype_name(ed_dtype_of(t)),
              ed_dtype_name(s->dtype));
    if (shape.count != expected.count ||
        memcmp(shape.values, expected.values, (size_t)shape.count * sizeof(int64_t)) != 0)
        wrong("%s has another shape", full_name(s));
    const char *data = made(ed_data(t));
    int64_t step = period(s), size = (int64_t)ed_dtype_size(s->dtype);
    char *same = elements(s, step);
    for (int64_t i = 0; i < ed_size(t); i += step)
        if (memcmp(data + i * size, same, (size_t)(step * size)) != 0)
            wrong("%s has other elements, from %lld on", full_name(s), (long long)i);
    free(same);
}

/* ---- Archives -------------------------------------------------------------------------------- */

/* Names and tensors in turn, as writers take them. */
static const void **pairs_of(const specimens *list)
{
    const void **pairs = calloc(MAX_SPECIMENS, 2 * sizeof *pairs);
    for (int i = 0; i < list->count; i++) {
        pairs[2 * i] = list->at[i].names[0];
        pairs[2 * i + 1] = tensor_of(&list->at[i]);
    }
    return pairs;
}

static void write_bundle(const specimens *list, const char *path)
{
    bundle_writer *w = made(bundle_create("interop", path));
    for (int i = 0; i < list->count; i++)
        done(bundle_add(w, list->at[i].names[0], tensor_of(&list->at[i])));
    done(bundle_finish(w));
}

static const char *npy_path(const specimen *s, const char *folder)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%llu.npy", folder, (unsigned long long)s->seed);
    return path;
}

/* write FORMAT LIST PATH; of npy PATH is a folder, a tensor's file is called by its seed. */
static void write_archive(char **args)
{
    specimens *list = read_list(args[1]);
    const char *format = args[0], *path = args[2];
    if (!strcmp(format, "bundle")) return write_bundle(list, path);
    const ed_named tensors = {pairs_of(list), 2 * list->count};
    if (strcmp(format, "npy") != 0) return done(ed_archive_write(path, tensors, .format = format));
    for (int i = 0; i < list->count; i++)
        done(ed_write_npy(npy_path(&list->at[i], path), tensor_of(&list->at[i])));
}

static bool is_extra(const char *name)
{
    return !strcmp(name, BUNDLE_GRAPH) || !strcmp(name, BUNDLE_DIGESTS);
}

/* compare FORMAT LIST PATH: the archive holds the tensors of the list and no others. */
static void compare_archive(char **args)
{
    specimens *list = read_list(args[1]);
    if (!strcmp(args[0], "npy")) {
        for (int i = 0; i < list->count; i++)
            compare(&list->at[i], made(ed_read_npy(npy_path(&list->at[i], args[2]))));
        return;
    }
    ed_archive *archive = made(ed_archive_open(args[2]));
    if (strcmp(ed_archive_format(archive), args[0]) != 0)
        wrong("%s is taken for %s", args[2], ed_archive_format(archive));
    int64_t count = 0;
    for (int64_t i = 0; i < ed_archive_count(archive); i++) {
        done(ed_archive_verify(archive, i));
        count += !is_extra(ed_archive_name(archive, i));
    }
    if (count != list->count) wrong("%lld tensors, not %d", (long long)count, list->count);
    for (int i = 0; i < list->count; i++) {
        ED_SCOPE;
        compare(&list->at[i], made(ed_archive_get(archive, list->at[i].names[0])));
    }
}

/* contents PATH: a line for each tensor, whatever its dtype. */
static void contents(char **args)
{
    ed_archive *archive = made(ed_archive_open(args[0]));
    for (int64_t i = 0; i < ed_archive_count(archive); i++) {
        done(ed_archive_verify(archive, i));
        if (is_extra(ed_archive_name(archive, i))) continue;
        ed_ints shape = ed_archive_shape(archive, i);
        printf("%s %s [", ed_archive_name(archive, i), ed_archive_dtype(archive, i));
        for (int64_t k = 0; k < shape.count; k++)
            printf(k ? ", %lld" : "%lld", (long long)shape.values[k]);
        puts("]");
    }
}

/* ---- Trees of objects ------------------------------------------------------------------------ */

enum { MAX_EDGES = 32 };

typedef struct branch {
    struct {
        const char *name;
        struct branch *to;
    } edges[MAX_EDGES];
    int count;
    void *object; /* a variable or what stands for the edges */
} branch;

static void track_branch(void *self, ed_tracker *tracker)
{
    const branch *b = self;
    for (int i = 0; i < b->count; i++) ed_track(tracker, b->edges[i].name, b->edges[i].to->object);
}

static branch *branch_new(void)
{
    static const ed_trackable_class kind = {.name = "branch", .track = track_branch};
    branch *b = calloc(1, sizeof *b);
    b->object = made(ed_trackable_new(&kind, b));
    return b;
}

/* Where an edge leads; a new object if it leads nowhere yet. */
static branch **follow(branch *from, const char *name)
{
    int i = 0;
    while (i < from->count && strcmp(from->edges[i].name, name) != 0) i++;
    if (i == from->count) from->edges[from->count++].name = name;
    return &from->edges[i].to;
}

/* The place the names (one at least) lead to; what is missing on the way is made. */
static branch **walk(branch *from, char **names, int count)
{
    branch **at = follow(from, names[0]);
    for (int i = 1; i < count; i++) {
        if (!*at) *at = branch_new();
        at = follow(*at, names[i]);
    }
    return at;
}

/* The way to the object that was there before ends in an empty name. */
static void join(branch *root, specimen *s)
{
    int old = 0;
    while (s->names[old][0]) old++;
    branch *there = *walk(root, s->names, old);
    *walk(root, s->names + old + 1, s->n_names - old - 1) = there;
}

/* Variables of zeros, named by their ways from the root. */
static branch *tree_of(specimens *list)
{
    branch *root = branch_new();
    for (int i = 0; i < list->count; i++) {
        specimen *s = &list->at[i];
        if (s->dtype == ED_DTYPE_NONE) {
            join(root, s);
            continue;
        }
        branch *leaf = calloc(1, sizeof *leaf);
        leaf->object =
            made(ed_variable(ed_zeros(shape_of(s), .dtype = s->dtype), .name = full_name(s)));
        *walk(root, s->names, s->n_names) = leaf;
    }
    return root;
}

static ed_tensor *variable_of(branch *root, specimen *s)
{
    return (*walk(root, s->names, s->n_names))->object;
}

/* All seeds moved by `round`: another set of values. */
static void fill_tree(branch *root, const specimens *list, int64_t round)
{
    for (int i = 0; i < list->count; i++) {
        specimen s = list->at[i];
        if (s.dtype == ED_DTYPE_NONE) continue;
        s.seed += (uint64_t)round;
        made(ed_assign(variable_of(root, &s), tensor_of(&s)));
    }
}

static void compare_tree(branch *root, const specimens *list, int64_t round)
{
    for (int i = 0; i < list->count; i++) {
        specimen s = list->at[i];
        if (s.dtype == ED_DTYPE_NONE) continue;
        s.seed += (uint64_t)round;
        compare(&s, variable_of(root, &s));
    }
}

/* `step`, unless NULL, is an object more. */
static ed_checkpoint *checkpoint_of(const branch *root, int64_t *step)
{
    const void *pairs[2 * MAX_EDGES + 2];
    int n = 0;
    for (int i = 0; i < root->count; i++) {
        pairs[n++] = root->edges[i].name;
        pairs[n++] = root->edges[i].to->object;
    }
    if (step) {
        pairs[n++] = "step";
        pairs[n++] = made(ed_counter(step));
    }
    return made(ed_checkpoint_of(pairs, n));
}

/* save LIST PREFIX / write-tree LIST PATH: prints the path. */
static void save_tree(char **args, bool counted)
{
    specimens *list = read_list(args[0]);
    branch *root = tree_of(list);
    fill_tree(root, list, 0);
    ed_checkpoint *checkpoint = checkpoint_of(root, NULL);
    puts(made(counted ? ed_checkpoint_save(checkpoint, args[1])
                      : ed_checkpoint_write(checkpoint, args[1])));
}

static void save(char **args)
{
    save_tree(args, true);
}

static void write_tree(char **args)
{
    save_tree(args, false);
}

/* rewrite LIST PATH TIMES: writes it so often under one name, the values of time n being those of
 * round n. */
static void rewrite(char **args)
{
    specimens *list = read_list(args[0]);
    branch *root = tree_of(list);
    ed_checkpoint *checkpoint = checkpoint_of(root, NULL);
    for (int i = 1; i <= atoi(args[2]); i++) {
        fill_tree(root, list, i);
        made(ed_checkpoint_write(checkpoint, args[1]));
    }
}

/* restore LIST PATH [name here, name there]... / read-tree the same; no objects may be left out. */
static void restore_tree(char **args, bool counted)
{
    specimens *list = read_list(args[0]);
    branch *root = tree_of(list);
    ed_checkpoint *checkpoint = checkpoint_of(root, NULL);
    ed_strings renames = {(const char *const *)args + 2, 0};
    while (args[2 + renames.count]) renames.count++;
    ed_restoration *report =
        made(counted ? ed_checkpoint_restore(checkpoint, args[1], .renames = renames)
                     : ed_checkpoint_read(checkpoint, args[1], .renames = renames));
    done(ed_restoration_assert_consumed(report));
    compare_tree(root, list, 0);
}

static void restore(char **args)
{
    restore_tree(args, true);
}

static void read_tree(char **args)
{
    restore_tree(args, false);
}

/* manage LIST FOLDER KEEP SAVES: restores the newest there is, then saves so often, the values of
 * save n being those of round n; prints what was restored and what is kept. */
static void manage(char **args)
{
    specimens *list = read_list(args[0]);
    branch *root = tree_of(list);
    int64_t step = 0;
    ed_checkpoint *checkpoint = checkpoint_of(root, &step);
    ed_checkpoint_manager *manager =
        made(ed_checkpoint_manager(checkpoint, args[1], .max_to_keep = atoi(args[2])));
    const char *restored = made(ed_manager_restore_or_initialize(manager));
    printf("restored %s\n", restored);
    if (*restored) compare_tree(root, list, step);
    for (int i = 0; i < atoi(args[3]); i++) {
        fill_tree(root, list, ++step);
        made(ed_manager_save(manager));
    }
    for (int64_t i = 0; i < ed_manager_count(manager); i++)
        printf("kept %s\n", (char *)made(ed_manager_checkpoint(manager, i)));
    printf("latest %s\n", (char *)made(ed_latest_checkpoint(args[1])));
}

/* ---- Trainings ------------------------------------------------------------------------------- */

typedef struct training {
    ed_layer *model;
    ed_optimizer *optimizer;
    bool labels; /* whole numbers, else what is to be met by the mean square */
    int64_t step;
    ed_checkpoint *checkpoint;
    ed_tensor *x, *y;
} training;

/* A layer that is called twice. */
static ed_layer *graph(void)
{
    ed_layer *shared = ed_layer_dense(6, .activation = "tanh");
    ed_tensor *x = ed_input(ED_SHAPE(10)), *h = ed_forward(ed_layer_dense(10), x);
    ed_tensor *both = ed_forward_one(ed_layer_concatenate(),
                                     ed_list_of(ed_forward(shared, x), ed_forward(shared, h)));
    ed_tensor *normal = ed_forward(ed_layer_batch_normalization(.momentum = 0.9), both);
    return made(ed_model(x, ed_forward(ed_layer_dense(4), normal), .name = "model"));
}

static void choose(training *t, const char *name)
{
    t->labels = true;
    if (!strcmp(name, "dense")) {
        t->model =
            ed_layer_sequential("model", ed_layer_dense(16, .activation = "relu"),
                                ed_layer_batch_normalization(.momentum = 0.9), ed_layer_dense(4));
        t->optimizer = ed_optimizer_adam(.learning_rate = 0.01);
    } else if (!strcmp(name, "amsgrad")) {
        t->model = ed_layer_sequential("model", ed_layer_dense(12, .activation = "tanh"),
                                       ed_layer_dense(4));
        t->optimizer = ed_optimizer_adam(.learning_rate = 0.01, .amsgrad = true);
    } else if (!strcmp(name, "conv")) {
        t->model = ed_layer_sequential("model",
                                       ed_layer_conv2d(6, ED_SHAPE(3, 3), .strides = ED_INTS(2, 2),
                                                       .padding = "SAME", .activation = "relu"),
                                       ed_layer_global_average_pooling2d(), ed_layer_dense(4));
        t->optimizer = ed_optimizer_sgd(.learning_rate = 0.05, .momentum = 0.9, .nesterov = true);
    } else if (!strcmp(name, "graph")) {
        t->model = graph();
        t->optimizer = ed_optimizer_adam(.learning_rate = 0.01);
    } else {
        t->labels = false;
        t->model =
            ed_layer_sequential("model", ed_layer_dense(8, .activation = "tanh", .name = "first"),
                                ed_layer_dense(2, .name = "second"));
        t->optimizer =
            ed_optimizer_rmsprop(.learning_rate = 0.003, .momentum = 0.5, .centered = true);
    }
}

/* `t` stays where it is: its counter is part of the checkpoint. */
static void prepare(training *t, const char *name, const char *batches)
{
    ed_archive *archive = made(ed_archive_open(batches));
    t->x = made(ed_archive_get(archive, "x"));
    t->y = made(ed_archive_get(archive, "y"));
    choose(t, name);
    t->checkpoint = made(
        ed_checkpoint("model", t->model, "optimizer", t->optimizer, "step", ed_counter(&t->step)));
}

static ed_tensor *loss_of(const training *t, ed_tensor *y, ed_tensor *out)
{
    return ed_reduce_mean(t->labels ? ed_sparse_softmax_cross_entropy(y, out)
                                    : ed_square(ed_sub(out, y)));
}

/* A step for each batch up to `end`; prints the losses. */
static void train_until(training *t, int64_t end)
{
    while (t->step < end) {
        ED_SCOPE;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *out = ed_forward(t->model, ed_index(t->x, t->step), .training = true);
        ed_tensor *loss = loss_of(t, ed_index(t->y, t->step), out);
        done(ed_minimize(t->optimizer, tape, loss, t->model));
        printf("%.17g\n", ed_item(loss));
        t->step++;
    }
}

/* train MODEL BATCHES STEPS PATH: writes a checkpoint after so many steps and goes on. */
static void train(char **args)
{
    training t = {0};
    ed_set_seed(5);
    prepare(&t, args[0], args[1]);
    train_until(&t, atoi(args[2]));
    made(ed_checkpoint_write(t.checkpoint, args[3]));
    train_until(&t, ed_dim(t.x, 0));
}

/* go-on MODEL BATCHES PATH built|waiting: from a checkpoint, restored when the weights are there or
 * before. */
static void go_on(char **args)
{
    training t = {0};
    prepare(&t, args[0], args[1]);
    if (!strcmp(args[3], "built")) made(ed_forward(t.model, ed_index(t.x, 0)));
    ed_restoration *report = made(ed_checkpoint_read(t.checkpoint, args[2]));
    train_until(&t, ed_dim(t.x, 0));
    done(ed_restoration_assert_consumed(report));
}

/* ---- Models as files of Keras ---------------------------------------------------------------- */

static const char *in(const char *folder, const char *name, const char *ending)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s%s%s", folder, name, ending);
    return path;
}

/* Says of each model whether its file could be read, and be used. */
static void say(const char *name, bool good)
{
    printf("%s: %s\n", name, good && !ed_failed() ? "good" : ed_error());
    ed_clear_error();
}

/* FOLDER NAME...: the outputs of the models for their inputs, and the models again. */
static void keras_files(char **args)
{
    for (char **name = args + 1; *name; name++) {
        ED_SCOPE;
        ed_layer *model = ed_model_load(in(args[0], *name, ".keras"));
        ed_tensor *x = ed_read_npy(in(args[0], *name, ".x.npy"));
        ed_tensor *y = model && x ? ed_forward(model, x) : NULL;
        say(*name, y && ed_write_npy(in(args[0], *name, ".y.npy"), y) &&
                       ed_model_save(model, in(args[0], *name, ".eddy.keras")));
    }
}

/* FOLDER STEPS NAME...: the losses of so many further steps, and the models after them. */
static void keras_train(char **args)
{
    ed_tensor *x = made(ed_read_npy(in(args[0], "train", ".x.npy")));
    ed_tensor *y = made(ed_read_npy(in(args[0], "train", ".y.npy")));
    for (char **name = args + 2; *name; name++) {
        ED_SCOPE;
        ed_layer *model = ed_model_load(in(args[0], *name, ".keras"));
        ed_history *h = model ? ed_model_fit(model, x, y, .epochs = atoi(args[1]), .batch_size = 16,
                                             .shuffle = false)
                              : NULL;
        say(*name,
            h && ed_write_npy(in(args[0], *name, ".losses.npy"), ed_history_values(h, "loss")) &&
                ed_model_save(model, in(args[0], *name, ".eddy.keras")));
    }
}

/* ---- Subcommands ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(char **args);
    int args; /* at least */
} commands[] = {
    {"write", write_archive, 3},
    {"compare", compare_archive, 3},
    {"contents", contents, 1},
    {"save", save, 2},
    {"write-tree", write_tree, 2},
    {"rewrite", rewrite, 3},
    {"restore", restore, 2},
    {"read-tree", read_tree, 2},
    {"manage", manage, 4},
    {"train", train, 4},
    {"go-on", go_on, 4},
    {"keras-files", keras_files, 2},
    {"keras-train", keras_train, 3},
    {"kinds", kinds, 2},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (argc > 1 && !strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].args) {
            commands[i].run(argv + 2);
            return 0;
        }
    wrong("interop: no such subcommand, or too few arguments for it");
}
