/* eddy-ckpt: lists, shows, compares, verifies and converts files of named tensors;
 * docs/eddy-ckpt.md is the manual. Exit codes are those of diff: 0; 1 for a difference or damage
 * that was found; 2 for a failure. */
#include "programs/ckpt.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATCH = 1,
    SORT = 2,
    TO = 4,
    RTOL = 8,
    ATOL = 16,
    DIGEST = 32,
    GRAPH = 64,
    STRIP = 128,
    FORCE = 256,
    HELP = 512
};

static const struct option option_table[] = {{"match", required_argument, NULL, MATCH},
                                             {"sort", required_argument, NULL, SORT},
                                             {"to", required_argument, NULL, TO},
                                             {"rtol", required_argument, NULL, RTOL},
                                             {"atol", required_argument, NULL, ATOL},
                                             {"digest", no_argument, NULL, DIGEST},
                                             {"graph", no_argument, NULL, GRAPH},
                                             {"strip", no_argument, NULL, STRIP},
                                             {"force", no_argument, NULL, FORCE},
                                             {"help", no_argument, NULL, HELP},
                                             {NULL, 0, NULL, 0}};

static const struct command {
    const char *name;
    int (*run)(const ckpt_options *options, char **words, int count);
    int least, most; /* numbers of arguments */
    int takes;       /* options that the command takes */
    const char *usage, *purpose;
} commands[] = {
    {"ls", ckpt_ls, 1, 1, SORT | MATCH, "FILE [--sort=size|name] [--match=GLOB]",
     "the tensors: dtypes, shapes, sizes, names"},
    {"show", ckpt_show, 1, 1 << 20, DIGEST | GRAPH, "FILE [NAME|GLOB...] [--digest] [--graph]",
     "their contents: min, max, mean, zeros, NaN; the values of one given by name"},
    {"diff", ckpt_diff, 2, 2, RTOL | ATOL | MATCH, "A B [--rtol=R] [--atol=A] [--match=GLOB]",
     "the differences of two files; exit code 0: none, 1: some"},
    {"verify", ckpt_verify, 1, 1 << 20, 0, "FILE...",
     "reads all tensors and lists damaged ones; exit code 1: there are some"},
    {"convert", ckpt_convert, 2, 2, MATCH | TO | STRIP | FORCE,
     "IN OUT [--to=FORMAT] [--match=GLOB] [--strip] [--force]",
     "writes another format, that of OUT's ending"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int usage(FILE *to)
{
    char *formats = archive_format_names("|");
    fputs("usage: eddy-ckpt COMMAND ...\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n           %s\n", commands[i].name, commands[i].usage,
                commands[i].purpose);
    fprintf(to,
            "FORMAT is %s. A FILE's format is recognised by its content; a TensorFlow\n"
            "checkpoint is named by its prefix, its .index, or a folder that holds it.\n",
            formats ? formats : "?");
    memory_free(formats);
    return to == stdout ? EXIT_SAME : EXIT_TROUBLE;
}

static int misused(const char *what, const char *word)
{
    fprintf(stderr, "eddy-ckpt: %s%s%s\n", what, word ? " " : "", word ? word : "");
    return usage(stderr);
}

static const struct command *command_of(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

/* A tolerance: a non-negative number. */
static bool read_number(const char *value, double *number)
{
    char *end;
    *number = strtod(value, &end);
    return end != value && !*end && *number >= 0;
}

static bool read_option(ckpt_options *options, int option, const char *value)
{
    switch (option) {
    case MATCH: options->match = value; return true;
    case SORT: options->sort = value; return !strcmp(value, "size") || !strcmp(value, "name");
    case TO: options->to = value; return true;
    case RTOL: return read_number(value, &options->rtol);
    case ATOL: return read_number(value, &options->atol);
    case DIGEST: return options->digest = true;
    case GRAPH: return options->graph = true;
    case STRIP: return options->strip = true;
    default: return options->force = true;
    }
}

/* Output errors, a full disk for example, are a failure too. */
static int finish(int code)
{
    if (!ferror(stdout) && !fclose(stdout)) return code;
    fprintf(stderr, "eddy-ckpt: standard output: %s\n", strerror(errno));
    return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
    ckpt_options options = {.match = NULL};
    const struct command *command = argc > 1 ? command_of(argv[1]) : NULL;
    int word = argc > 1 && !command && *argv[1] != '-' ? 2 : 1;
    if (word == 2) return misused("unknown command", argv[1]);

    opterr = 0;
    for (int option, place; (option = getopt_long(argc, argv, "", option_table, &place)) != -1;) {
        if (option == HELP) return finish(usage(stdout));
        if (option == '?')
            return misused("unknown option, or its value is missing:", argv[optind - 1]);
        if (command && !(command->takes & option))
            return misused(command->name, "does not take this option");
        if (!read_option(&options, option, optarg))
            return misused("invalid value for the option:", optarg);
    }
    if (!command) return misused("no command given", NULL);
    char **words = argv + optind + 1;
    int count = argc - optind - 1;
    if (count < command->least || count > command->most)
        return misused(command->name,
                       count < command->least ? "needs more files" : "takes fewer files");
    return finish(command->run(&options, words, count));
}
