/*
 * Finds groups of points: each center moves to the mean of the points that are closest to it, until
 * nothing changes (k-means; Lloyd, 1957). The first centers are far from each other (k-means++,
 * Arthur and Vassilvitskii, 2007). kmeans [POINTS OF A GROUP]
 */
#include <eddy.h>
#include <math.h>
#include <stdlib.h>

enum { GROUPS = 6, TRIALS = 5 };

/* Squared distances of all points from all centers: [points, centers]. */
static ed_tensor *distances(ed_tensor *points, ed_tensor *centers)
{
    ed_tensor *apart = ed_sub(ed_expand_dims(points, 1), centers);
    return ed_reduce_sum(ed_square(apart), .axis = ED_AXES(-1));
}

static ed_tensor *to_nearest(ed_tensor *points, ed_tensor *centers)
{
    return ed_reduce_min(distances(points, centers), .axis = ED_AXES(1));
}

/* One center after the other is drawn, a point far from the others with more probability. */
static ed_tensor *first_centers(ed_tensor *points)
{
    ed_tensor *centers = ed_random_choice(points, NULL, ED_SHAPE(1));
    for (int i = 1; i < GROUPS; i++) {
        ed_tensor *far = ed_random_choice(points, to_nearest(points, centers), ED_SHAPE(1));
        centers = ed_concat(ed_list_of(centers, far), .axis = 0);
    }
    return centers;
}

/* The centers when nothing changes any more; how many points each has, in how many rounds. */
static ed_tensor *kmeans(ed_tensor *points, ed_tensor **sizes, int *rounds)
{
    ed_tensor *centers = first_centers(points), *groups = NULL, *before;
    *rounds = 0;
    do {
        before = groups;
        groups = ed_argmin(distances(points, centers), .axis = 1);
        centers = ed_unsorted_segment_mean(points, groups, GROUPS);
        ++*rounds;
    } while (!ed_failed() && (!before || !ed_item(ed_reduce_all(ed_equal(groups, before)))));
    *sizes = ed_bincount(groups, NULL, .minlength = GROUPS);
    return centers;
}

int main(int argc, char **argv)
{
    const int64_t each = argc > 1 ? atoi(argv[1]) : 20000;
    ed_set_seed(5);

    /* Points around places on a circle. */
    ed_tensor *angle = ed_mul(ed_range(0, GROUPS, .dtype = ED_FLOAT32), 2 * acos(-1) / GROUPS);
    ed_tensor *places = ed_stack(ed_list_of(ed_cos(angle), ed_sin(angle)), .axis = 1);
    ed_tensor *around = ed_random_normal(ED_SHAPE(GROUPS, each, 2), .stddev = 0.15);
    ed_tensor *points = ed_reshape(ed_add(ed_expand_dims(places, 1), around), ED_SHAPE(-1, 2));

    /* The first centers are drawn: the best of a few trials counts. */
    ed_tensor *centers = NULL, *sizes = NULL;
    double least = INFINITY;
    for (int i = 1; i <= TRIALS && !ed_failed(); i++) {
        int rounds;
        ed_tensor *n, *c = kmeans(points, &n, &rounds);
        const double distance = ed_item(ed_reduce_mean(to_nearest(points, c)));
        printf("trial %d: %d rounds, mean squared distance %.4f\n", i, rounds, distance);
        if (distance < least) least = distance, centers = c, sizes = n;
    }

    printf("\n  points      center\n");
    for (int i = 0; i < GROUPS && !ed_failed(); i++)
        printf("%8g  %6.3f %6.3f\n", ed_item_at(sizes, i), ed_item_at(centers, i, 0),
               ed_item_at(centers, i, 1));
    const double wrong = sqrt(ed_item(ed_reduce_max(to_nearest(places, centers))));
    printf("farthest from a place that the points were drawn around: %.4f\n", wrong);
    if (ed_failed()) return fprintf(stderr, "kmeans: %s\n", ed_error()), 1;
    return 0;
}
