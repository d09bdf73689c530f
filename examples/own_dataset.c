/*
 * A dataset of one's own: it reads its batches from a file that need not fit into memory, and its
 * position is part of a checkpoint. own_dataset [FILE]: lines of three numbers, x1 x2 y; a file
 * that is not there is written first. The program trains, saves in the middle of an epoch, goes on,
 * and then does the same steps again from what it saved.
 */
#include <eddy.h>

enum { BATCH = 32, LINES = 1000, STEPS = 60 };

/* ---- The dataset ----------------------------------------------------------------------------- */

typedef struct lines {
    FILE *file;
    int64_t offset, epoch; /* what a checkpoint saves: where the next batch begins */
} lines;

/* Names what a checkpoint saves, and sets when it restores. */
static void lines_track(void *self, ed_tracker *tracker)
{
    lines *l = self;
    ed_track_int64(tracker, "offset", &l->offset);
    ed_track_int64(tracker, "epoch", &l->epoch);
}

static const ed_trackable_class lines_class = {.name = "lines", .track = lines_track};

/*
 * The next batch, x [n, 2] and y [n, 1], which belong to the scope. false at the end of an epoch,
 * of which the next call begins another one, and on failure.
 */
static bool lines_next(lines *l, ed_tensor **x, ed_tensor **y)
{
    float rows[BATCH][2], targets[BATCH];
    int n = 0, read = 3;
    if (fseek(l->file, (long)l->offset, SEEK_SET))
        return ed_fail(ED_IO, "lines: can't seek"), false;
    while (n < BATCH &&
           (read = fscanf(l->file, "%f %f %f", &rows[n][0], &rows[n][1], &targets[n])) == 3)
        n++;
    if (read != 3 && read != EOF)
        return ed_fail(ED_DATA_LOSS, "lines: near byte %ld: three numbers are expected",
                       ftell(l->file)),
               false;
    if (n == 0) {
        l->offset = 0;
        l->epoch++;
        return false;
    }
    l->offset = ftell(l->file);
    *x = ed_constant_of(ED_FLOAT32, rows, ED_SHAPE(n, 2));
    *y = ed_constant_of(ED_FLOAT32, targets, ED_SHAPE(n, 1));
    return *x && *y;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* y = 3 x1 - 2 x2 + 1. */
static bool write_lines(const char *path)
{
    ED_SCOPE;
    FILE *f = fopen(path, "w");
    ed_tensor *x = ed_random_normal(ED_SHAPE(LINES, 2));
    const float *rows = ed_data(x);
    if (!f || !rows) return ed_fail(ED_IO, "%s can't be written", path), false;
    for (int i = 0; i < LINES; i++) {
        const double a = rows[2 * i], b = rows[2 * i + 1];
        fprintf(f, "%g %g %g\n", a, b, 3 * a - 2 * b + 1);
    }
    return fclose(f) == 0 || (ed_fail(ED_IO, "%s can't be written", path), false);
}

/* So many steps from where the dataset is; the last loss. */
static double train(ed_layer *model, ed_optimizer *optimizer, lines *data, int steps)
{
    double last = 0;
    for (int step = 0; step < steps && !ed_failed(); step++) {
        ED_SCOPE;
        ed_tensor *x, *y;
        while (!lines_next(data, &x, &y))
            if (ed_failed()) return last;
        ed_tape *tape = ed_tape_begin();
        ed_tensor *loss = ed_reduce_mean(ed_squared_difference(ed_forward(model, x), y));
        ed_minimize(optimizer, tape, loss, model);
        last = ed_item(loss);
    }
    return last;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "lines.txt";
    ed_set_seed(1);
    lines data = {.file = fopen(path, "r")};
    if (!data.file && write_lines(path)) data.file = fopen(path, "r");
    if (!data.file) return fprintf(stderr, "own_dataset: can't read %s\n", path), 1;

    ed_layer *model = ed_layer_dense(1);
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.1);
    ed_checkpoint *checkpoint = ed_checkpoint("model", model, "optimizer", adam, "lines",
                                              ed_trackable_new(&lines_class, &data));
    train(model, adam, &data, STEPS / 2);
    const char *saved = ed_checkpoint_save(checkpoint, "save/lines");
    printf("saved at epoch %lld, byte %lld\n", (long long)data.epoch, (long long)data.offset);

    const double loss = train(model, adam, &data, STEPS);
    printf("epoch %lld, byte %lld: loss %.9g\n", (long long)data.epoch, (long long)data.offset,
           loss);
    ed_checkpoint_restore(checkpoint, saved);
    const double again = train(model, adam, &data, STEPS);
    printf("epoch %lld, byte %lld: loss %.9g, %s\n", (long long)data.epoch, (long long)data.offset,
           again, again == loss ? "the same" : "another one");
    fclose(data.file);
    if (ed_failed()) fprintf(stderr, "own_dataset: %s\n", ed_error());
    return ed_failed();
}
