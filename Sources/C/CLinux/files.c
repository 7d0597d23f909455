#define _GNU_SOURCE
#include "clinux.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

const int clinux_o_path = O_PATH;

int clinux_open_beneath(int folder, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

int clinux_memory_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}
