/*
 * The way out of a maze, learned by trial and error: a network estimates what each move is worth
 * (deep Q-learning, Mnih et al., 2015). It learns from moves that it remembers, and its aims come
 * from a second network, a copy that is renewed from time to time. dqn [MOVES]
 */
#include <eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, REMEMBERED = 5000, LONGEST = 60, RENEW = 100, WIDTH = 10, WAYS = 4 };

static const char maze[] = "##########"
                           "#........#"
                           "#.##.###.#"
                           "#..#...#.#"
                           "##.#.#.#.#"
                           "#....#.#.#"
                           "#.####.#.#"
                           "#......#X#"
                           "##########";
enum { FIELDS = sizeof maze - 1, EXIT = 78 };
static const int ways[WAYS] = {-1, 1, -WIDTH, WIDTH};

static ed_layer *network(void)
{
    ed_layer *net =
        ed_layer_sequential(NULL, ed_layer_dense(64, .activation = "relu"), ed_layer_dense(WAYS));
    ed_layer_build(net, ED_SHAPE(-1, FIELDS));
    return net;
}

/* Where a move leads: not into a wall. */
static int move(int field, int way)
{
    const int to = field + ways[way];
    return maze[to] == '#' ? field : to;
}

static int somewhere(void)
{
    int field;
    do field = rand() % FIELDS;
    while (maze[field] != '.');
    return field;
}

/* Fields [n] as the network sees them: [n, FIELDS]. */
static ed_tensor *seen(const int32_t *fields, int64_t n)
{
    return ed_one_hot(ed_constant_of(ED_INT32, fields, ED_SHAPE(n)), FIELDS);
}

/* The best move from each field, int64 [FIELDS]. */
static ed_tensor *best_ways(ed_layer *net)
{
    return ed_argmax(ed_forward(net, ed_eye(FIELDS)), .axis = 1);
}

static int best(ed_layer *net, int32_t field)
{
    ED_SCOPE;
    return (int)ed_item(ed_argmax(ed_forward(net, seen(&field, 1)), .axis = 1));
}

/* Moves made, the last REMEMBERED of them. */
static struct {
    int32_t from, way, to;
} memory[REMEMBERED];

/* One step of training, with moves from memory. The exit is worth 1, a field before it less. */
static void learn(ed_layer *net, ed_layer *aims, ed_optimizer *adam, int remembered)
{
    ED_SCOPE;
    int32_t from[BATCH], way[BATCH], to[BATCH];
    float out[BATCH];
    for (int i = 0; i < BATCH; i++) {
        const int m = rand() % remembered;
        from[i] = memory[m].from, way[i] = memory[m].way, to[i] = memory[m].to;
        out[i] = to[i] == EXIT;
    }
    ed_tensor *end = ed_constant(out, ED_SHAPE(BATCH));
    ed_tensor *later = ed_reduce_max(ed_forward(aims, seen(to, BATCH)), .axis = ED_AXES(1));
    ed_tensor *aim = ed_where(ed_greater(end, 0), end, ed_mul(later, 0.95));
    ed_tensor *made = ed_one_hot(ed_constant(way, ED_SHAPE(BATCH)), WAYS);
    ed_tape *tape = ed_tape_begin();
    ed_tensor *worth = ed_mul(ed_forward(net, seen(from, BATCH)), made);
    ed_tensor *wrong = ed_sub(aim, ed_reduce_sum(worth, .axis = ED_AXES(1)));
    ed_minimize(adam, tape, ed_reduce_mean(ed_square(wrong)), net);
}

/* The length of the shortest way from each field, found from the exit on. */
static void measure(int distance[FIELDS])
{
    int queue[FIELDS] = {EXIT}, n = 1;
    for (int i = 0; i < FIELDS; i++) distance[i] = i == EXIT ? 0 : -1;
    for (int i = 0; i < n; i++)
        for (int way = 0; way < WAYS; way++) {
            const int to = move(queue[i], way);
            if (distance[to] < 0) distance[to] = distance[queue[i]] + 1, queue[n++] = to;
        }
}

/* From what share of the fields the network takes the shortest way, in percent. */
static double shortest(ed_layer *net, const int *distance)
{
    ED_SCOPE;
    const int64_t *way = ed_data(best_ways(net));
    int good = 0, all = 0;
    for (int start = 0; way && start < FIELDS; start++) {
        if (maze[start] != '.') continue;
        int field = start;
        for (int i = 0; i < distance[start]; i++) field = move(field, (int)way[field]);
        good += field == EXIT, all++;
    }
    return 100.0 * good / all;
}

int main(int argc, char **argv)
{
    const int moves = argc > 1 ? atoi(argv[1]) : 12000;
    srand(1);
    ed_set_seed(1);
    int distance[FIELDS];
    measure(distance);
    ed_layer *net = network(), *aims = network();
    ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 2e-3);
    int field = somewhere(), walked = 0;
    for (int i = 0; i < moves && !ed_failed(); i++) {
        /* At first any move, later the best one nine times in ten. */
        const bool explores = rand() % 1000 < fmax(100, 1000 - 2000.0 * i / moves);
        const int way = explores ? rand() % WAYS : best(net, field), to = move(field, way);
        memory[i % REMEMBERED].from = field, memory[i % REMEMBERED].way = way;
        memory[i % REMEMBERED].to = field = to;
        if (to == EXIT || ++walked == LONGEST) field = somewhere(), walked = 0;
        if (i >= BATCH) learn(net, aims, adam, i < REMEMBERED ? i : REMEMBERED);
        if (i % RENEW == 0) ed_layer_set_weights(aims, ed_layer_get_weights(net));
        if ((i + 1) % (moves < 5 ? 1 : moves / 5) == 0)
            printf("move %d: the shortest way from %.0f %% of the fields\n", i + 1,
                   shortest(net, distance));
    }

    const int64_t *way = ed_data(best_ways(net));
    for (int i = 0; way && i < FIELDS; i++)
        printf("%c%s", maze[i] == '.' ? "<>^v"[way[i]] : maze[i],
               i % WIDTH == WIDTH - 1 ? "\n" : "");
    if (ed_failed()) return fprintf(stderr, "dqn: %s\n", ed_error()), 1;
    return 0;
}
