/*
 * Functions of tensors in loops over the first axis of tensors. Gradients flow through all of them,
 * as they consist of ops. Each call of a function of the program's has a scope of its own, so what
 * it makes besides its results is released before the next one.
 */
#ifndef EDDY_CONTROL_H
#define EDDY_CONTROL_H

#include "autodiff/autodiff.h"

#pragma GCC visibility push(default)

/*
 * f of each slice, stacked: f gets a list of one slice of each of elems, which have the same size n
 * of their first axis, and returns a list of tensors, always as many and of the same shapes. The
 * result has as many, of shapes [n, ...]. Fails for n = 0, as nothing says what f returns.
 */
ed_list *ed_map_fn(ed_list_function f, ed_list *elems, void *user);

/*
 * The same, where a first axis of size 1 stands for any size: its one slice goes to all calls. f is
 * called once, with tensors that have the shape of a slice and no elements; each op that it calls
 * then runs for all slices at once, or, if the op does not know how (ed_op.batch), for one after
 * the other. Random numbers that do not depend on a slice are the same for all. If f reads elements
 * or writes variables, it is called again, for one slice after the other, as in ed_map_fn; in C it
 * must not take ed_data's NULL for elements.
 */
ed_list *ed_vectorized_map(ed_list_function f, ed_list *elems, void *user);

/*
 * Folds elems from the first slice to the last, or from the last to the first: f gets a list of the
 * accumulators and then one slice of each of elems, and returns the next accumulators. They begin
 * with the initializer; if that is NULL, with the slices that come first. The result: the last
 * accumulators.
 */
ed_list *ed_foldl(ed_list_function f, ed_list *elems, ed_list *initializer, void *user);
ed_list *ed_foldr(ed_list_function f, ed_list *elems, ed_list *initializer, void *user);

/* Options of a scan; zero: not given. */
typedef struct ed_scan_options {
    bool reverse; /* from the last slice to the first */
} ed_scan_options;

/* As ed_foldl, or ed_foldr with .reverse = true. The result: the accumulators after each slice, at
 * its place, of shapes [n, ...]. Fails for n = 0. */
ed_list *ed_scan_with(ed_list_function f, ed_list *elems, ed_list *initializer, void *user,
                      const ed_scan_options *options);
#define ed_scan(f, elems, initializer, user, ...)                                                  \
    ed_scan_with(f, elems, initializer, user,                                                      \
                 ED_GIVEN_(ed_scan_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__))

/* Whether a loop over such variables goes on. One that keeps an error has failed. */
typedef bool (*ed_condition)(ed_list *variables, void *user);

/* Options of a loop; zero: not given. */
typedef struct ed_while_loop_options {
    int64_t maximum_iterations; /* the loop ends after so many; 0: no limit */
} ed_while_loop_options;

/*
 * Calls body(variables) as long as condition(variables) holds: it returns the next variables, as
 * many and of the same dtypes. The result: the last ones.
 */
ed_list *ed_while_loop_with(ed_condition condition, ed_list_function body, ed_list *variables,
                            void *user, const ed_while_loop_options *options);
#define ed_while_loop(condition, body, variables, user, ...)                                       \
    ed_while_loop_with(condition, body, variables, user,                                           \
                       ED_GIVEN_(ed_while_loop_options, __VA_ARGS__)                               \
                           ED_OPTIONAL_(0, ##__VA_ARGS__))

#pragma GCC visibility pop
#endif
