// Files of this repository that are a part of the program.
#ifndef EMBEDDED_FILES_H
#define EMBEDDED_FILES_H

#include <stddef.h>
#include <stdint.h>

struct embedded_file {
    /// The name without a folder, or null after the last file.
    const char *_Nullable name;
    const uint8_t *_Nullable bytes;
    size_t size;
};

/// Returns all files.
const struct embedded_file *_Nonnull embedded_files(void);

#endif
