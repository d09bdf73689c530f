#include "fuzz/fuzz.h"
#include "io/archive.h"
#include "tensor/core.h"
#include <stdio.h>
#include <string.h>

/* A tensor's elements are those that were digested. But for bools, which tensors hold as 0 and 1
 * and some files as any numbers. */
static void look_at_elements(const ed_tensor *t, const char *digest)
{
    if (ed_dtype_of(t) == ED_BOOL) return;
    char digits[33];
    size_t bytes = (size_t)ed_size(t) * ed_dtype_size(ed_dtype_of(t));
    uint8_t *packed = memory_alloc(bytes);
    fuzz_claim(packed, "no memory");
    tensor_pack(t, packed);
    io_digest_text(io_digest_of(packed, bytes), digits);
    memory_free(packed);
    fuzz_claim(!strcmp(digits, digest), "a tensor's digest is %s, that of its elements %s", digest,
               digits);
}

static bool count_bytes(void *user, const void *data, size_t size)
{
    (void)data;
    *(int64_t *)user += (int64_t)size;
    return true;
}

/* The bytes of a tensor that are there, which a damaged one claims more of: compressed, they are
 * many times the input, and are held while they are read. */
static int64_t stored_bytes(ed_archive *archive, int64_t i)
{
    int64_t bytes = 0;
    archive_item item = archive_item_of(archive, i);
    archive_stream(&item, count_bytes, &bytes);
    ed_clear_error();
    return bytes;
}

static void look_at_tensor(ed_archive *archive, int64_t i)
{
    ED_SCOPE;
    const char *name = ed_archive_name(archive, i);
    int64_t found = ed_archive_find(archive, name), bytes = ed_archive_bytes(archive, i);
    ed_ints shape = ed_archive_shape(archive, i);
    fuzz_claim(name && ed_archive_dtype(archive, i), "tensor %lld has no name or dtype",
               (long long)i);
    fuzz_claim(found >= 0 && !strcmp(ed_archive_name(archive, found), name),
               "tensor '%s' is not found", name);
    fuzz_claim(bytes >= 0, "tensor '%s' has %lld bytes", name, (long long)bytes);

    fuzz_allow(4 * stored_bytes(archive, i));
    const bool whole = fuzz_given(ed_archive_verify(archive, i) ? archive : NULL, "verify");
    const char *digest = ed_archive_digest(archive, i);
    fuzz_given(digest, "digest");
    ed_tensor *t = ed_archive_tensor(archive, i);
    if (!fuzz_given(t, "tensor")) return;
    fuzz_allow(4 * bytes);
    fuzz_claim(whole && digest, "tensor '%s' was read, but not verified", name);
    fuzz_claim(shape.count == ed_rank(t) &&
                   !memcmp(shape.values, ed_shape(t).values, (size_t)shape.count * sizeof(int64_t)),
               "tensor '%s' has another shape than it was said to have", name);
    look_at_elements(t, digest);
}

/* ---- Written again --------------------------------------------------------------------------- */

enum { MOST_ITEMS = 64 };

/* Tensor i of one archive and what it became in another. */
static void compare(ed_archive *from, ed_archive *to, int64_t i, const archive_format *written_as)
{
    const char *format = written_as->name;
    ED_SCOPE;
    const char *name = ed_archive_name(from, i), *digest = ed_archive_digest(from, i);
    int64_t place = written_as->single ? 0 : ed_archive_find(to, name);
    fuzz_claim(place >= 0, "%s: '%s' was written and is not there", format, name);
    const char *written = ed_archive_digest(to, place);
    fuzz_claim(digest && written, "%s: '%s' was written and can't be read", format, name);
    ed_ints a = ed_archive_shape(from, i), b = ed_archive_shape(to, place);
    fuzz_claim(a.count == b.count &&
                   !memcmp(a.values, b.values, (size_t)a.count * sizeof *a.values),
               "%s: '%s' was written and has another shape", format, name);
    /* Bools become 0 and 1; what is stored of strings has lengths and a checksum in it. */
    const char *dtype = ed_archive_dtype(from, i);
    bool settled = !strcmp(dtype, "bool") || !strcmp(dtype, "string");
    fuzz_claim(settled || !strcmp(digest, written), "%s: '%s' was written and is another", format,
               name);
}

/* What can be written in another format is the same there; what can't is refused. */
static void convert(ed_archive *archive, int64_t n)
{
    int count;
    const archive_format *const *formats = archive_formats(&count);
    archive_item items[MOST_ITEMS];
    if (n > MOST_ITEMS) n = MOST_ITEMS;
    for (int64_t i = 0; i < n; i++) items[i] = archive_item_of(archive, i);
    for (int f = 0; f < count; f++) {
        ED_SCOPE;
        char path[128];
        snprintf(path, sizeof path, "%s/written", fuzz_folder());
        bool written = archive_write_items("fuzz", formats[f], path, items, n);
        if (!fuzz_given(written ? archive : NULL, "write")) continue;
        ed_archive *again = ed_archive_open(path);
        fuzz_claim(again, "%s: what was written can't be opened", formats[f]->name);
        for (int64_t i = 0; i < n; i++) compare(archive, again, i, formats[f]);
        remove(path);
    }
}

void fuzz_archive(const char *path)
{
    ed_archive *archive = ed_archive_open(path);
    if (!fuzz_given(archive, "open")) return;
    int64_t n = ed_archive_count(archive);
    for (int64_t i = 0; i < n; i++) look_at_tensor(archive, i);
    fuzz_claim(!ed_archive_tensor(archive, n) && ed_error_kind() == ED_OUT_OF_RANGE,
               "there is a tensor behind the last");
    ed_clear_error();
    ed_archive_metadata(archive, "format");
    fuzz_claim(!ed_failed(), "metadata failed");
    convert(archive, n);
}

void fuzz_format(const archive_format *format, const uint8_t *data, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "x%s", format->ending);
    fuzz_archive(fuzz_file(name, data, size));
}
