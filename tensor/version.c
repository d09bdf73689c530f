#include "tensor/version.h"

const char *ed_version(void)
{
    return ED_VERSION;
}
