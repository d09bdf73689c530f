/*
 * The elementwise functions of floats, each with its true value, where it is measured, and how far
 * it may be off; tests/test_accuracy.c measures, tools/coverage.c prints the bounds.
 *
 * The error of a result is its distance to the true value in units of the last place (ULP) that the
 * true value has in the result's type: a correctly rounded result has at most 0.5.
 */
#ifndef EDDY_TESTS_ACCURACY_H
#define EDDY_TESTS_ACCURACY_H

#include <stdbool.h>
#include <stddef.h>

enum { ACCURACY_OPERANDS = 3 };

/* Of an op's operands; there are always as many numbers as operands may be. */
typedef double accuracy_truth32(const double *operands);
typedef long double accuracy_truth64(const long double *operands);

typedef struct accuracy_rule {
    const char *name; /* the op's */
    struct {
        double low, high;
    } range[ACCURACY_OPERANDS];  /* of interest; {0, 0}: as the operand before */
    double bound32, bound64;     /* the most ULP allowed */
    double unfused;              /* on sets without fused multiply-add; 0: the same */
    accuracy_truth32 *truth32;   /* in double; NULL: truth64 is asked */
    accuracy_truth64 *truth64;   /* in long double */
    accuracy_truth64 *magnitude; /* errors are in ULP of at least this number; NULL: of the value */
    bool within;                 /* measured in the range only */
    bool whole;                  /* the first operand is an integer */
    const char *remark;          /* about the points or the unit, for the page */
} accuracy_rule;

/* Every rule; the last has no name. An op may have several, for ranges of their own. */
extern const accuracy_rule accuracy_rules[];
extern const accuracy_rule accuracy_special_rules[];

/* The n-th of all rules; NULL behind the last. */
const accuracy_rule *accuracy_rule_at(int n);

/* SLEEF's bounds; on machines without it libm takes its place, whose functions have some more. */
#if defined(__x86_64__) || defined(__aarch64__)
#define ACCURACY_MARGIN 0
#else
#define ACCURACY_MARGIN 2
#endif

/* A rule of one range; further fields may follow. */
#define ACCURACY_RULE(op, low, high, most32, most64, ...)                                          \
    {                                                                                              \
        .name = #op, .range = {{low, high}}, .bound32 = (most32) + ACCURACY_MARGIN,                \
        .bound64 = (most64) + ACCURACY_MARGIN, .truth64 = op##_true64, __VA_ARGS__                 \
    }

/* The same with a true value in double, which is faster. */
#define ACCURACY_RULE_TWICE(op, low, high, most32, most64, ...)                                    \
    ACCURACY_RULE(op, low, high, most32, most64, .truth32 = op##_true32, __VA_ARGS__)

/* The true value, an expression of x, y and z. */
#define ACCURACY_TRUTH(type, name, expression)                                                     \
    static type name(const type *operands)                                                         \
    {                                                                                              \
        const type x = operands[0], y = operands[1], z = operands[2];                              \
        (void)x, (void)y, (void)z;                                                                 \
        return expression;                                                                         \
    }                                                                                              \
    static type name(const type *operands)
#define ACCURACY_TRUE(name, expression) ACCURACY_TRUTH(long double, name##_true64, expression)
#define ACCURACY_TRUE_TWICE(name, expression32, expression64)                                      \
    ACCURACY_TRUTH(double, name##_true32, expression32);                                           \
    ACCURACY_TRUTH(long double, name##_true64, expression64)

#endif
