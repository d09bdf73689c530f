/* A subcommand of Eddy's side of `make interop`. */
#ifndef EDDY_TESTS_INTEROP_KINDS_H
#define EDDY_TESTS_INTEROP_KINDS_H

/* kinds FOLDER NAME: each case of FOLDER/interop/NAME.npz, which kinds.py wrote. */
void kinds(char **args);

#endif
