/*
 * Results recorded by Keras (tests/reference/, whose README.md says how), and Eddy's beside them.
 *
 * A file holds the cases of one kind: a JSON text, and for each dtype one array that all tensors of
 * the cases are parts of. What is compared and differs is printed and counted, so that a run says
 * all of it.
 */
#ifndef EDDY_TESTS_REFERENCE_H
#define EDDY_TESTS_REFERENCE_H

#include "tensor/tensor.h"
#include "tests/json.h"

typedef struct reference_file reference_file;

/* One case. */
typedef struct reference_case {
    const json *json;
    const reference_file *file;
    const char *name;            /* "layer dense: Dense(units=3) of [2, 4], float32" */
    double tolerance, magnitude; /* |a - b| <= tolerance max(max |b|, magnitude) */
    double worst;                /* the largest |a - b| / max(max |b|, magnitude) */
    int64_t differences;         /* so far */
    bool quiet;                  /* they are counted, not said */
} reference_case;

/* The file of a kind; NULL if it is not there. To be closed. */
reference_file *reference_open(const char *folder, const char *family, const char *kind);
void reference_close(reference_file *file);
int64_t reference_count(const reference_file *file);
void reference_get(const reference_file *file, int64_t i, reference_case *c);

/* Whether a case of the file sets the option. */
bool reference_touches(const reference_file *file, const char *option);

/* The tensor of an array in the JSON; NULL of null, and of NULL: not recorded. */
ed_tensor *reference_tensor(const reference_case *c, const json *array);

/* Those of a list; NULL entries are allowed. NULL if there is no list of that name. */
ed_list *reference_tensors(const reference_case *c, const char *name);

/*
 * The object of the case, from its options as Keras has them: in lists of integers a number stands
 * for a list of one, words may be in lower case. NULL, with a difference said, if there is none.
 */
void *reference_object(reference_case *c);

/* Says what is wrong, and the kept error if there is one, which is cleared. */
void reference_differs(reference_case *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether `got` is what Keras has, to the tolerance, integers exactly; else says which element
 * is not. Where Keras has no gradient (null), NULL and zeros are right. */
bool reference_compare(reference_case *c, const char *what, ed_tensor *got, const json *expected);

/* A family: what is done with a case of it. The last one has no name. */
typedef struct reference_family {
    const char *name;
    void (*run)(reference_case *c);
} reference_family;
extern const reference_family reference_families[];

#endif
