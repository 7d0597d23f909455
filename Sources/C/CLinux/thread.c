#define _GNU_SOURCE
#include "clinux.h"

#include <sched.h>
#include <unistd.h>

void clinux_name_thread(const char *name)
{
    prctl(PR_SET_NAME, name);
}

int clinux_bound_processors(void)
{
    cpu_set_t set;
    // It fails where there are more processors than a set has room for.
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}
