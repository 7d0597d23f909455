// hiredis 0.14 (Debian 12) to 1.x (Debian 13), with one face.
#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

#include <stdbool.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#if __has_include(<hiredis/hiredis_ssl.h>)
#include <hiredis/hiredis_ssl.h>
#define CHIREDIS_HAS_TLS 1
#endif

/// What a reply holds, whatever the version of the protocol.
enum chiredis_kind {
    chiredis_nil,
    chiredis_integer,
    chiredis_string,
    chiredis_status,
    chiredis_error,
    chiredis_array,
    chiredis_double,
    chiredis_boolean,
};

/// Maps, sets, attributes and pushes of RESP3 are arrays of their elements, as RESP2 would have given them; big numbers and
/// verbatim strings are strings.
static inline enum chiredis_kind chiredis_kind_of(const redisReply *reply) {
    switch (reply->type) {
        case REDIS_REPLY_INTEGER: return chiredis_integer;
        case REDIS_REPLY_STRING: return chiredis_string;
        case REDIS_REPLY_STATUS: return chiredis_status;
        case REDIS_REPLY_ERROR: return chiredis_error;
        case REDIS_REPLY_ARRAY: return chiredis_array;
#ifdef REDIS_REPLY_DOUBLE
        case REDIS_REPLY_MAP:
        case REDIS_REPLY_SET:
        case REDIS_REPLY_ATTR:
        case REDIS_REPLY_PUSH: return chiredis_array;
        case REDIS_REPLY_DOUBLE: return chiredis_double;
        case REDIS_REPLY_BOOL: return chiredis_boolean;
        case REDIS_REPLY_BIGNUM:
        case REDIS_REPLY_VERB: return chiredis_string;
#endif
        default: return chiredis_nil;
    }
}

static inline double chiredis_double_of(const redisReply *reply) {
#ifdef REDIS_REPLY_DOUBLE
    return reply->dval;
#else
    (void)reply;
    return 0;
#endif
}

static inline bool chiredis_has_tls(void) {
#ifdef CHIREDIS_HAS_TLS
    return true;
#else
    return false;
#endif
}

/// A TLS set-up that trusts the system's authorities; null where there is no TLS or OpenSSL refuses.
static inline void *chiredis_tls_create(const char *server_name) {
#ifdef CHIREDIS_HAS_TLS
    redisInitOpenSSL();
    redisSSLContextError error = REDIS_SSL_CTX_NONE;
    redisSSLOptions options = {0};
    options.server_name = server_name;
    options.verify_mode = REDIS_SSL_VERIFY_PEER;
    // Debian's store; SSL_CERT_FILE and SSL_CERT_DIR of the environment are OpenSSL's own business.
    options.capath = "/etc/ssl/certs";
    return redisCreateSSLContextWithOptions(&options, &error);
#else
    (void)server_name;
    return NULL;
#endif
}

static inline void chiredis_tls_free(void *tls) {
#ifdef CHIREDIS_HAS_TLS
    redisFreeSSLContext((redisSSLContext *)tls);
#else
    (void)tls;
#endif
}

/// Speaks TLS on a connection from its first byte on.
static inline int chiredis_tls_start(redisAsyncContext *context, void *tls) {
#ifdef CHIREDIS_HAS_TLS
    return redisInitiateSSLWithContext(&context->c, (redisSSLContext *)tls);
#else
    (void)context, (void)tls;
    return REDIS_ERR;
#endif
}

#endif
