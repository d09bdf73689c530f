#include "fuzz/fuzz.h"
#include "io/checksum.h"
#include "io/io.h"
#include "tensor/core.h"
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
}
