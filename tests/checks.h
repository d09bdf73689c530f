/*
 * The machine that checks an op by its definition alone: one call of check_op, for a built-in op or
 * a user's own.
 *
 * A trial is one concrete call: an op, the attributes of one of its samples, and operands made for
 * it. Each check makes trials in its own way (other layouts, shapes, dtypes, values, attributes,
 * failing memory) and notes in the findings whatever does not hold. Every check leaves the library
 * as it found it: no error kept, nothing alive that was not before; that is itself checked.
 */
#ifndef EDDY_TESTS_CHECKS_H
#define EDDY_TESTS_CHECKS_H

#include "autodiff/autodiff.h"
#include "ops/execute.h"

/* What was found out about one op. */
typedef struct findings {
    const ed_op *op;
    const char *check;       /* the one at work */
    int sample;              /* the one at work, -1: none */
    int64_t samples, checks; /* how many were looked at */
    int failures;
    const char *last_check; /* that failed ... */
    int of_check;           /* ... so often */
    size_t used;
    char text[6000]; /* a line for each of the first failures */
} findings;

/* Notes a failure, printf-like; always false. */
bool found(findings *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts a check that holds, or notes its failure. */
#define EXPECT(f, condition, ...) ((f)->checks++, (condition) || found(f, __VA_ARGS__))

/* All of the checks below. true if nothing was found. */
bool check_op(const ed_op *op, findings *f);

/* Has samples, a reference and either a gradient or a reason for none. */
void check_definition(findings *f);
/* float64, float32 and every other dtype it takes against the reference;
 * other dtypes are refused. */
void check_forward(findings *f);
void check_dtypes(findings *f);
/* Strides of any kind change no bit, nor does the number of threads; other extents; every ISA. */
void check_layouts(findings *f);
void check_shapes(findings *f);
void check_extremes(findings *f);
/* The tape against differences in both orders, or the refusal where there is no gradient. */
void check_gradient(findings *f);
/* Wrong operands, shapes and attributes are errors or work; memory that fails is an error. */
void check_misuse(findings *f);
void check_attributes(findings *f);
void check_memory(findings *f);
/* Operands that nobody would give: indices outside, numbers that are none, singular matrices, empty
 * tensors of 2^40 rows. */
void check_hostile(findings *f);
/* Operands without elements, as in the description of a model: no element is read. */
void check_hollow(findings *f);
/* Many calls as one: what `batch` makes of them is what they make one after the other. */
void check_batch(findings *f);

/* Damaged copies of the definition, which check_forward and check_gradient must not let pass. */
void check_checks(findings *f);

/* ---- Trials ---------------------------------------------------------------------------------- */

typedef struct trial {
    const ed_op *op;
    const ed_sample *sample;
    const void *attrs; /* never NULL for an op that has attributes */
    int n;
    ed_dtype dtype[ED_MAX_OPERANDS];
    int rank[ED_MAX_OPERANDS];
    int64_t shape[ED_MAX_OPERANDS][ED_MAX_RANK];
    ed_tensor *x[ED_MAX_OPERANDS]; /* belong to the scope */
} trial;

/* The operand that stands at place i. */
const ed_operand *check_operand(const ed_op *op, int i);

/* Whether a gradient flows to operand i of a call. */
struct trial;
bool check_differentiates(const struct trial *t, int i);

/* Whether the op's attributes hold objects, which no sample can make. */
bool check_is_closed(const ed_op *op);

/*
 * Sample `s` of f's op, without operands yet; false behind the last. Every operand has the dtype
 * wanted where its type letter allows it, else the first it takes.
 */
bool trial_begin(findings *f, trial *t, int s, ed_dtype wanted);

/* Makes a call's outputs as the shape rule does; those of a composition, which has none, by running
 * it. */
bool trial_infer(ed_call *call);

/* Makes the operands, with values as the sample says; false without memory. */
bool trial_fill(trial *t);

/* Sorts the lines of those contiguous operands that the sample says are sorted. */
void trial_sort(trial *t);

/* Runs it: the outputs; NULL with an error. */
ed_list *trial_run(const trial *t);

/* Those outputs that are of floats; NULL without an error if there are none, and for NULL. */
ed_list *trial_floats(const ed_list *y);

/* The reference's outputs, float64. */
ed_list *trial_reference(const trial *t);

/* Runs it and compares with the reference; notes the failures, naming `what`. */
bool trial_compare(findings *f, const trial *t, const char *what);

/* The same under every instruction set of the machine. */
void trial_compare_isas(findings *f, const trial *t, const char *what);

/*
 * Runs it there and back, which takes at most a second: either it works, or an error is kept that
 * has words; notes what else happens, naming `what`. Whether it worked.
 */
bool trial_survives(findings *f, const trial *t, const char *what);

/* Element i of a contiguous tensor. */
double element_of(const ed_tensor *x, int64_t i);

/* A contiguous copy in the scope. */
ed_tensor *copy_of(const ed_tensor *x);

/* Whether both have the same dtype, shape and bits. */
bool same_bits(const ed_tensor *a, const ed_tensor *b);

/* Numbers from 0 up to 1. */
double random_unit(uint64_t *state);

#ifdef EDDY_SANITIZED
enum { CHECK_THOROUGH = 0 };
#else
enum { CHECK_THOROUGH = 1 };
#endif

#endif
