/* eddy-ckpt verify: reads all tensors and reports the damage of each damaged one. */
#include "programs/ckpt.h"

/* The error names the file. */
static void print_damage(const char *name)
{
    if (name) {
        ckpt_print_name(stdout, name);
        fputs(": ", stdout);
    }
    ckpt_print_word(stdout, ed_error());
    putchar('\n');
    ed_clear_error();
}

/* Exit code 1 for a damaged file; 2 for one that does not exist or can't be read. */
static int opening_failed(void)
{
    if (ed_error_kind() != ED_DATA_LOSS) {
        ckpt_complain();
        return EXIT_TROUBLE;
    }
    print_damage(NULL);
    return EXIT_DIFFERENT;
}

static int verify(const char *given)
{
    ED_SCOPE;
    ckpt_file file;
    int64_t damaged = 0;
    int code = ckpt_open(&file, given) ? EXIT_SAME : opening_failed();
    for (int64_t i = 0; i < file.count; i++) {
        ED_SCOPE;
        if (ed_archive_verify(file.archive, i)) continue;
        print_damage(ed_archive_name(file.archive, i));
        damaged++;
    }
    if (damaged)
        printf("%s: %lld of %lld tensors %s damaged\n", given, (long long)damaged,
               (long long)file.count, damaged == 1 ? "is" : "are");
    else if (!code)
        printf("%s: %lld tensor%s, all sound\n", given, (long long)file.count,
               file.count == 1 ? "" : "s");
    ckpt_close(&file);
    return damaged ? EXIT_DIFFERENT : code;
}

int ckpt_verify(const ckpt_options *options, char **words, int count)
{
    (void)options;
    int worst = EXIT_SAME;
    for (int i = 0; i < count; i++) {
        int code = verify(words[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}
