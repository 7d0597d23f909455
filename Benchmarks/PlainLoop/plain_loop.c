#include "plain_loop.h"

#include <stdio.h>
#include <vips/vips.h>

static VipsImage *thumbnail(const void *file, size_t length, const struct plain_output *output)
{
    VipsImage *out = NULL;
    vips_thumbnail_buffer(
        (void *) file, length, &out, output->width, "height", output->height, "crop", VIPS_INTERESTING_CENTRE, NULL);
    return out;
}

// Pixels of the source for each pixel of the output, along the side where they are fewer.
static double spare(VipsImage *header, const struct plain_output *output)
{
    double across = (double) vips_image_get_width(header) / output->width;
    double down = (double) vips_image_get_height(header) / output->height;
    return VIPS_MIN(across, down);
}

static VipsImage *load_jpeg(const void *file, size_t length, const struct plain_output *output)
{
    VipsImage *header = NULL, *shrunk = NULL;
    if (vips_jpegload_buffer((void *) file, length, &header, "access", VIPS_ACCESS_SEQUENTIAL, NULL))
        return NULL;
    int shrink = 8;
    while (shrink > 1 && shrink > spare(header, output))
        shrink /= 2;
    if (shrink == 1)
        return header;
    g_object_unref(header);
    vips_jpegload_buffer((void *) file, length, &shrunk, "shrink", shrink, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
    return shrunk;
}

static VipsImage *load_webp(const void *file, size_t length, const struct plain_output *output)
{
    VipsImage *header = NULL, *scaled = NULL;
    if (vips_webpload_buffer((void *) file, length, &header, "access", VIPS_ACCESS_SEQUENTIAL, NULL))
        return NULL;
    double scale = 1 / spare(header, output);
    if (scale >= 1)
        return header;
    g_object_unref(header);
    vips_webpload_buffer((void *) file, length, &scaled, "scale", scale, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
    return scaled;
}

static VipsImage *load(const void *file, size_t length, const struct plain_output *output)
{
    VipsImage *whole = NULL;
    switch (*(const unsigned char *) file) {
    case 0xff:
        return load_jpeg(file, length, output);
    case 'R':
        return load_webp(file, length, output);
    default:
        vips_pngload_buffer((void *) file, length, &whole, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
        return whole;
    }
}

static VipsImage *fast(const void *file, size_t length, const struct plain_output *output)
{
    VipsImage *in = load(file, length, output), *out = NULL;
    if (in == NULL)
        return NULL;
    vips_thumbnail_image(in, &out, output->width, "height", output->height, "crop", VIPS_INTERESTING_CENTRE, NULL);
    g_object_unref(in);
    return out;
}

long plain_loop(
    enum plain_mode mode, const struct plain_output *output, const void *const *files, const size_t *lengths, int count)
{
    long written = 0;
    for (int i = 0; i < count; i++) {
        VipsImage *image = (mode == PLAIN_FAST ? fast : thumbnail)(files[i], lengths[i], output);
        void *encoded = NULL;
        size_t size = 0;
        int failed = image == NULL || vips_image_write_to_buffer(image, output->suffix, &encoded, &size, NULL);
        if (image)
            g_object_unref(image);
        g_free(encoded);
        if (failed) {
            fprintf(stderr, "picture %d: %s", i, vips_error_buffer());
            return -1;
        }
        written += size;
    }
    return written;
}
