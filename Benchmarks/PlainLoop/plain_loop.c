#include "plain_loop.h"

#include <stdio.h>
#include <vips/vips.h>

static VipsImage *thumbnail(const void *file, size_t length, int width, int height)
{
    VipsImage *out = NULL;
    vips_thumbnail_buffer((void *) file, length, &out, width, "height", height, "crop", VIPS_INTERESTING_CENTRE, NULL);
    return out;
}

static VipsImage *fast(const void *file, size_t length, int width, int height)
{
    VipsImage *header = NULL, *shrunk = NULL, *out = NULL;
    if (vips_jpegload_buffer((void *) file, length, &header, NULL))
        return NULL;
    double across = (double) vips_image_get_width(header) / width;
    double down = (double) vips_image_get_height(header) / height;
    int shrink = 8;
    while (shrink > 1 && shrink > VIPS_MIN(across, down))
        shrink /= 2;
    g_object_unref(header);
    if (vips_jpegload_buffer(
            (void *) file, length, &shrunk, "shrink", shrink, "access", VIPS_ACCESS_SEQUENTIAL, NULL))
        return NULL;
    vips_thumbnail_image(shrunk, &out, width, "height", height, "crop", VIPS_INTERESTING_CENTRE, NULL);
    g_object_unref(shrunk);
    return out;
}

long plain_loop(enum plain_mode mode, const void *const *files, const size_t *lengths, int count, int width, int height)
{
    long written = 0;
    for (int i = 0; i < count; i++) {
        VipsImage *image = (mode == PLAIN_FAST ? fast : thumbnail)(files[i], lengths[i], width, height);
        void *jpeg = NULL;
        size_t size = 0;
        int failed = image == NULL || vips_jpegsave_buffer(image, &jpeg, &size, "Q", 80, "strip", TRUE, NULL);
        if (image)
            g_object_unref(image);
        g_free(jpeg);
        if (failed) {
            fprintf(stderr, "picture %d: %s", i, vips_error_buffer());
            return -1;
        }
        written += size;
    }
    return written;
}
