#include "clinux.h"

/// Of gperftools. Null in programs that are not linked with tcmalloc.
extern void MallocExtension_ReleaseFreeMemory(void) __attribute__((weak));

void clinux_release_free_memory(void) {
    if (MallocExtension_ReleaseFreeMemory) MallocExtension_ReleaseFreeMemory();
}
