/*
 * eddy-ckpt verify: reads every tensor and says of each damaged one what is wrong, and which ones
 * it can't verify.
 */
#include "programs/ckpt.h"
#include <string.h>

static void print_begin(const char *name)
{
    ckpt_print_name(stdout, name);
    fputs(": ", stdout);
}

static void print_unverified(const char *name, const char *why)
{
    print_begin(*name ? name : "the array");
    puts(why);
}

/* The error names the file. */
static void print_damage(const char *name)
{
    if (name) print_begin(name);
    ckpt_print_word(stdout, ed_error());
    putchar('\n');
    ed_clear_error();
}

/* What can't be verified of a tensor; NULL: nothing. */
static const char *unverified(const ckpt_file *file, int64_t i)
{
    const char *dtype = ed_archive_dtype(file->archive, i);
    if (!strcmp(dtype, "object")) return "pickled objects, which are never loaded: not verified";
    if (!strcmp(dtype, "bytes")) return "not an array: only the checksum of its bytes was verified";
    return NULL;
}

/* Exit code 1 for a damaged file; 2 for one that does not exist or cannot be read. */
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
    int64_t damaged = 0, passed_over = 0;
    int code = ckpt_open(&file, given) ? EXIT_SAME : opening_failed();
    for (int64_t i = 0; i < file.count; i++) {
        ED_SCOPE;
        const char *name = ed_archive_name(file.archive, i), *why = unverified(&file, i);
        bool sound = ed_archive_verify(file.archive, i);
        if (why && (sound || ed_error_kind() == ED_UNIMPLEMENTED)) {
            ed_clear_error();
            print_unverified(name, why);
            passed_over++;
        } else if (!sound) {
            print_damage(name);
            damaged++;
        }
    }
    if (damaged)
        printf("%s: %lld of %lld tensors %s damaged\n", given, (long long)damaged,
               (long long)file.count, damaged == 1 ? "is" : "are");
    else if (passed_over)
        printf("%s: %lld of %lld tensors %s not verified\n", given, (long long)passed_over,
               (long long)file.count, passed_over == 1 ? "is" : "are");
    else if (!code)
        printf("%s: %lld tensor%s, all sound\n", given, (long long)file.count,
               file.count == 1 ? "" : "s");
    ckpt_close(&file);
    return damaged ? EXIT_DIFFERENT : passed_over ? EXIT_TROUBLE : code;
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
