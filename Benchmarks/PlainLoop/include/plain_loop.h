#ifndef PLAIN_LOOP_H
#define PLAIN_LOOP_H

#include <stddef.h>

// What a picture costs when nothing stands around libvips: decode, cover a size, JPEG at quality 80, memory to memory.
enum plain_mode {
    // vips_thumbnail_buffer: it keeps a spare factor of 2 when it shrinks on load.
    PLAIN_THUMBNAIL,
    // The largest JPEG shrink on load that does not undershoot, then the resize: the least that such an output costs.
    PLAIN_FAST,
};

// Runs once over all files. Returns the number of bytes written in all, or -1 with libvips' words on standard error.
long plain_loop(
    enum plain_mode mode, const void *const *files, const size_t *lengths, int count, int width, int height);

#endif
