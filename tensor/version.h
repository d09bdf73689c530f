/* The version of Eddy, said here alone: make, eddy.pc and the programs read it. */
#ifndef EDDY_VERSION_H
#define EDDY_VERSION_H

#pragma GCC visibility push(default)

/* The version of the headers, for #if: major.minor.patch, as semver.org has it. */
#define ED_VERSION_MAJOR 0
#define ED_VERSION_MINOR 1
#define ED_VERSION_PATCH 0

/* The same as a string: "0.1.0". */
#define ED_VERSION                                                                                 \
    ED_STRING_OF_(ED_VERSION_MAJOR)                                                                \
    "." ED_STRING_OF_(ED_VERSION_MINOR) "." ED_STRING_OF_(ED_VERSION_PATCH)
#define ED_STRING_OF_(number)  ED_STRING_OF2_(number)
#define ED_STRING_OF2_(number) #number

/* The version of the library that the program runs with; ED_VERSION is that of the headers it was
 * compiled with. */
const char *ed_version(void);

#pragma GCC visibility pop
#endif
