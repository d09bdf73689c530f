/*
 * A loop that answers requests: server [FOLDER] < requests. A request is a line of points,
 * two numbers each, "0.1 0.2  3 -1"; its answer a line that says of each whether it is in a circle.
 * What can't be answered gets a line that begins with "error:", and the loop goes on. The request
 * "memory" is answered with what is live.
 *
 * The model comes from the newest checkpoint in the folder; if there is none, it is trained and
 * saved there first.
 */
#include <eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, STEPS = 400 }; /* numbers of a request */

/* ---- The model ------------------------------------------------------------------------------- */

/* 1 in the circle around 0 with radius 1, 0 around it. */
static ed_tensor *labels_of(ed_tensor *points)
{
    ED_SCOPE;
    ed_tensor *squares = ed_reduce_sum(ed_square(points), .axis = ED_AXES(1));
    return ed_keep(ed_cast(ed_less(squares, 1), ED_INT32));
}

static bool train(void *user)
{
    ed_layer *model = user;
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.02);
    for (int step = 0; step < STEPS; step++) {
        ED_SCOPE;
        ed_tensor *points = ed_random_uniform(ED_SHAPE(256, 2), .low = -2, .high = 2);
        ed_tape *tape = ed_tape_begin();
        ed_tensor *logits = ed_forward(model, points, .training = true);
        ed_tensor *losses = ed_sparse_softmax_cross_entropy(labels_of(points), logits);
        ed_minimize(adam, tape, ed_reduce_mean(losses), model);
    }
    return !ed_failed();
}

/* Restored from the folder, or trained and saved there. The manager goes with the scope, so that
 * another process can use the folder. */
static ed_layer *make_model(const char *folder)
{
    ED_SCOPE;
    ed_layer *model =
        ed_layer_sequential("circle", ed_layer_dense(32, .activation = "tanh"), ed_layer_dense(2));
    ed_checkpoint *checkpoint = ed_checkpoint("model", model);
    ed_checkpoint_manager *manager =
        ed_checkpoint_manager(checkpoint, folder, .initialize = train, .user = model);
    const char *restored = ed_manager_restore_or_initialize(manager);
    if (restored && !*restored) ed_manager_save(manager);
    ed_forward(model, ed_zeros(ED_SHAPE(1, 2))); /* builds it before the first request */
    return ed_keep(model);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The points of a line, [n, 2]. */
static ed_tensor *parse(const char *line)
{
    float numbers[MOST];
    int64_t count = 0;
    for (char *end; *(line += strspn(line, " \t\r")); line = end) {
        const float number = strtof(line, &end);
        if (end == line || !isfinite(number))
            return ed_fail(ED_INVALID_ARGUMENT, "no number: %.20s", line);
        if (count == MOST) return ed_fail(ED_INVALID_ARGUMENT, "more than %d numbers", MOST);
        numbers[count++] = number;
    }
    ed_tensor *all = ed_constant_of(ED_FLOAT32, numbers, ED_SHAPE(count));
    return ed_reshape(all, ED_SHAPE(-1, 2)); /* an odd number of them is its error */
}

/* All that an answer takes goes with the scope; an error is answered and cleared. */
static void answer(ed_layer *model, const char *line)
{
    ED_SCOPE;
    ed_tensor *chances = ed_softmax(ed_forward(model, parse(line)));
    const float *chance = ed_data(chances);
    for (int64_t i = 0; chance && i < ed_dim(chances, 0); i++) {
        const float inside = chance[2 * i + 1];
        printf("%s%s %.3f", i ? ", " : "", inside > 0.5f ? "inside" : "outside", (double)inside);
    }
    if (ed_failed()) printf("error: %s", ed_error());
    printf("\n");
    ed_clear_error();
}

/* The next line without its end; of one that is too long only the beginning, with an error. false
 * at the end of the input. */
static bool read_line(char *line, int room)
{
    if (!fgets(line, room, stdin)) return false;
    const size_t length = strcspn(line, "\n");
    const bool whole = line[length] || feof(stdin);
    line[length] = 0;
    if (whole) return true;
    for (int c; (c = getchar()) != '\n' && c != EOF;) continue;
    ed_fail(ED_INVALID_ARGUMENT, "the line is longer than %d bytes", room - 2);
    return true;
}

int main(int argc, char **argv)
{
    static char line[8192];
    ed_set_seed(1);
    ed_layer *model = make_model(argc > 1 ? argv[1] : "save/circle");
    if (ed_failed()) return fprintf(stderr, "server: %s\n", ed_error()), 1;
    while (read_line(line, sizeof line)) {
        if (!strcmp(line, "memory")) {
            const ed_memory memory = ed_memory_stats();
            printf("%lld tensors, %lld bytes\n", (long long)memory.live_tensors,
                   (long long)memory.live_bytes);
        } else {
            answer(model, line);
        }
        fflush(stdout);
    }
    return 0;
}
