#include "promise_version.h"

const char *promise_version(void)
{
    return PROMISEFS_VERSION;
}
