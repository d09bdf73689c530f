#include "fuzz/fuzz.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TARGETS = 32 };

/* The factors are those of the smallest entries to what readers keep of them. */
static fuzz_target targets[MAX_TARGETS] = {
    {"fuzz_bundle", fuzz_bundle, NULL, 192, 500},
    {"fuzz_csv", fuzz_csv, NULL, 64, 500},
    {"fuzz_idx", fuzz_idx, NULL, 16, 500},
    {"fuzz_keras", fuzz_keras, NULL, 192, 60}, /* inputs of this one and the next take ms */
    {"fuzz_lua", fuzz_lua, NULL, 64, 30},
    {"fuzz_npy", fuzz_npy, NULL, 16, 500},
    {"fuzz_objects", fuzz_objects, NULL, 192, 500},
    {"fuzz_state", fuzz_state, NULL, 64, 500},
};

static const fuzz_target *target_named(const char *name, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(targets[i].name, name)) return &targets[i];
    return NULL;
}

/* Adds a target for each archive format that has none of its own. */
static int add_formats(int count)
{
    static char names[MAX_TARGETS][32];
    int n;
    const archive_format *const *formats = archive_formats(&n);
    for (int i = 0; i < n; i++) {
        fuzz_claim(count < MAX_TARGETS, "more targets than MAX_TARGETS");
        snprintf(names[count], sizeof names[count], "fuzz_%s", formats[i]->name);
        if (target_named(names[count], count)) continue;
        targets[count] = (fuzz_target){names[count], NULL, formats[i], 64, 500};
        count++;
    }
    return count;
}

const fuzz_target *fuzz_targets(int *count)
{
    static int found;
    if (!found) {
        while (targets[found].name) found++;
        found = add_formats(found);
    }
    *count = found;
    return targets;
}

/* For any input: a decompressor's own memory (bzip2's is 3.7 MB) and its output's first block. */
enum { BASE = 6 << 20 };

static int64_t allowed;

void fuzz_claim(bool holds, const char *format, ...)
{
    if (holds) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("fuzz: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, " [%s]\n", ed_error());
    abort();
}

bool fuzz_given(const void *something, const char *call)
{
    fuzz_claim(!something == ed_failed(), "%s gave %s", call,
               something ? "something and kept an error" : "nothing without an error");
    ed_clear_error();
    return something;
}

void fuzz_allow(int64_t bytes)
{
    if (bytes > allowed) allowed = bytes;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static char folder[64];

static void remove_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command)) fputs("fuzz: the folder is left\n", stderr);
}

const char *fuzz_folder(void)
{
    if (*folder) return folder;
    strcpy(folder, "/dev/shm/eddy_fuzz_XXXXXX"); /* where fsync takes no time */
    if (!mkdtemp(folder)) fuzz_claim(mkdtemp(strcpy(folder, "/tmp/eddy_fuzz_XXXXXX")), "no folder");
    atexit(remove_files);
    return folder;
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_claim(file >= 0 && write(file, data, size) == (ssize_t)size && !close(file),
               "%s can't be written", path);
    return path;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void run(const fuzz_target *target, const uint8_t *data, size_t size)
{
    if (target->format)
        fuzz_format(target->format, data, size);
    else
        target->run(data, size);
}

/* The thread's own stacks grow once, and a target may make something at first; afterwards every
 * byte must come back. */
static void warm_up(const fuzz_target *target)
{
    static const fuzz_target *warm;
    if (warm == target) return;
    ED_SCOPE;
    for (int i = 0; i < 5000; i++) ed_number(i);
    run(target, (const uint8_t *)"", 0);
    warm = target;
}

/* What one run leaves behind and the most that it took. */
static ed_memory measure(const fuzz_target *target, const uint8_t *data, size_t size)
{
    ed_clear_error();
    allowed = 0;
    ed_memory before = ed_memory_stats();
    ed_memory_reset_peak();
    {
        ED_SCOPE;
        run(target, data, size);
    }
    fuzz_claim(!ed_failed(), "%s: an error is left", target->name);
    ed_memory taken = ed_memory_stats();
    taken.live_tensors -= before.live_tensors;
    taken.live_bytes -= before.live_bytes;
    taken.peak_bytes -= before.live_bytes;
    return taken;
}

void fuzz_run(const fuzz_target *target, const uint8_t *data, size_t size)
{
    warm_up(target);
    ed_memory taken = measure(target, data, size);
    if (taken.live_bytes) taken = measure(target, data, size); /* a stack may have grown at first */
    long long tensors = taken.live_tensors, bytes = taken.live_bytes, peak = taken.peak_bytes,
              limit = BASE + target->factor * (int64_t)size + allowed;
    fuzz_claim(!tensors && !bytes, "%s: %lld tensors, %lld bytes are left", target->name, tensors,
               bytes);
    fuzz_claim(peak <= limit, "%s: %zu bytes of input took %lld bytes of memory, more than %lld",
               target->name, size, peak, limit);
}
