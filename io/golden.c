#include "io/io.h"
#include "tensor/core.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Golden files: what a test expects is what an earlier run gave, a file under version control. */

static bool is_to_write(void)
{
    const char *golden = getenv("EDDY_GOLDEN");
    return golden && !strcmp(golden, "write");
}

bool ed_golden_check(const char *path, ed_tensor *x, double rtol, double atol,
                     ed_close_report *report)
{
    if (report) *report = (ed_close_report){.worst = -1};
    if (NULL_GIVEN("golden_check", path, x)) return false;
    if (is_to_write()) return ed_write_npy(path, x);
    if (access(path, F_OK) && errno == ENOENT)
        return ed_fail(ED_NOT_FOUND,
                       "golden_check: %s does not exist; a run with EDDY_GOLDEN=write in the "
                       "environment writes it",
                       path);
    ED_SCOPE;
    ed_tensor *expected = ed_read_npy(path);
    return expected && ed_all_close(x, expected, rtol, atol, report);
}
