#ifndef PLAIN_LOOP_H
#define PLAIN_LOOP_H

#include <stddef.h>

// What a picture costs when nothing stands around libvips: decode, cover a size, encode, memory to memory.
enum plain_mode {
    // vips_thumbnail_buffer: it keeps a spare factor of 2 when it shrinks on load.
    PLAIN_THUMBNAIL,
    // The largest shrink on load that does not undershoot (JPEG by 2, 4 or 8, WebP by anything, PNG not at all), then the
    // resize: the least that such an output costs.
    PLAIN_FAST,
};

struct plain_output {
    int width;
    int height;
    // libvips' name of a file with the saver's options: ".jpg[Q=80,strip]".
    const char *suffix;
};

// Runs once over all files: JPEG, PNG or WebP. libvips must have been started. Returns the number of bytes written in all,
// or -1 with libvips' words on standard error.
long plain_loop(
    enum plain_mode mode, const struct plain_output *output, const void *const *files, const size_t *lengths, int count);

// The least that jobs cost whose results are cached: consume a message, look a key up, produce an event.
struct plain_hits {
    const char *brokers;
    // Read from the end of each of its partitions backwards.
    const char *jobs;
    int partitions;
    // Messages to read, at most as many as the topic has; the same number of each partition.
    long count;
    const char *events;
    int redis_port;
    // Looked up by turns: HMGET key facts expiresAt.
    const char *const *keys;
    int key_count;
    // The value of each event.
    const void *event;
    size_t event_length;
};

// Returns the number of events that the brokers have, or -1 with what went wrong on standard error. It consumes up to 256 messages at a time, looks
// them up in one pipeline, and produces without waiting.
long plain_hits_loop(const struct plain_hits *run);

#endif
