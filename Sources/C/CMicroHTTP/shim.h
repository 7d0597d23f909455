#ifndef CMICROHTTP_SHIM_H
#define CMICROHTTP_SHIM_H

#include <microhttpd.h>
#include <stdio.h>

/// What libmicrohttpd calls, with `context`. It must be there for as long as the server is.
struct cmicrohttp_callbacks {
    void *context;
    MHD_NotifyConnectionCallback on_connection;
    void *(*on_target)(void *context, const char *target, struct MHD_Connection *connection);
    MHD_AccessHandlerCallback on_request;
    MHD_RequestCompletedCallback on_end;
    void (*on_log)(void *context, const char *message);
};

/// A message of libmicrohttpd's (Swift has another type for va_list on each processor).
static void cmicrohttp_log(void *callbacks, const char *format, va_list arguments) {
    const struct cmicrohttp_callbacks *to = (const struct cmicrohttp_callbacks *) callbacks;
    char message[512];
    vsnprintf(message, sizeof message, format, arguments);
    to->on_log(to->context, message);
}

/// The target is left as it came: whoever reads it decodes it.
static size_t cmicrohttp_keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
    (void) context, (void) connection;
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

/// What a content reader returns at the end (macros that cast).
static const ssize_t cmicrohttp_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t cmicrohttp_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;

/// Starts a server for the connections that it is given (MHD_start_daemon is variadic). Null where it cannot; what it has to
/// say about that goes to `on_log`.
static inline struct MHD_Daemon *cmicrohttp_start(
    struct cmicrohttp_callbacks *callbacks, unsigned int threads, unsigned int connections, size_t memory) {
    void *context = callbacks->context;
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
        NULL, callbacks->on_request, context,
        MHD_OPTION_EXTERNAL_LOGGER, &cmicrohttp_log, callbacks,
        MHD_OPTION_NOTIFY_CONNECTION, callbacks->on_connection, context,
        MHD_OPTION_NOTIFY_COMPLETED, callbacks->on_end, context,
        MHD_OPTION_URI_LOG_CALLBACK, callbacks->on_target, context,
        MHD_OPTION_UNESCAPE_CALLBACK, &cmicrohttp_keep_escapes, NULL,
        MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u,
#if MHD_VERSION >= 0x01000000
        // Refuses folded headers, bare line feeds and zeros.
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#endif
        // A pool of one is none, and said to be a mistake.
        threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads,
        MHD_OPTION_END);
}

/// Has a response end with its connection in place of a last chunk (MHD_set_response_options is variadic).
static inline enum MHD_Result cmicrohttp_end_with_connection(struct MHD_Response *response) {
    return MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_OPTION_END);
}

/// What belongs to a connection (a union, behind a variadic function). Null for a connection that has nothing.
static inline void *cmicrohttp_connection_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/// The socket of a connection; -1 where there is none.
static inline MHD_socket cmicrohttp_connection_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/// How many bytes the head of the request has, from its method on; 0 where that is not known yet.
static inline size_t cmicrohttp_head_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

#endif
