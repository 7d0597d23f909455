// hiredis 0.14 (Debian 12) to 1.x (Debian 13), with one face.
#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

#include <stdbool.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#if __has_include(<hiredis/hiredis_ssl.h>) && __has_include(<openssl/ssl.h>)
#include <hiredis/hiredis_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
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

/// A TLS set-up that trusts the authorities of a PEM file, or the system's where that is null. Null where there is no TLS, or
/// where OpenSSL cannot read the file. OpenSSL is asked directly, for hiredis' own options check no host name.
static inline void *chiredis_tls_create(const char *authorities) {
#ifdef CHIREDIS_HAS_TLS
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    if (!tls) return NULL;
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    int known = authorities ? SSL_CTX_load_verify_locations(tls, authorities, NULL) : SSL_CTX_set_default_verify_paths(tls);
    if (known == 1) return tls;
    SSL_CTX_free(tls);
#else
    (void)authorities;
#endif
    return NULL;
}

static inline void chiredis_tls_free(void *tls) {
#ifdef CHIREDIS_HAS_TLS
    SSL_CTX_free((SSL_CTX *)tls);
#else
    (void)tls;
#endif
}

/// Speaks TLS on a connection from its first byte on, with a server whose certificate is good for `host`, a name or an IP
/// address. The session, which lives as long as the context does; null when it could not be made.
static inline void *chiredis_tls_start(redisAsyncContext *context, void *tls, const char *host) {
#ifdef CHIREDIS_HAS_TLS
    SSL *session = SSL_new((SSL_CTX *)tls);
    if (!session) return NULL;
    // An address is no server name (RFC 6066, 3), and is looked for in another place of the certificate.
    bool ready = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1
        || (SSL_set1_host(session, host) == 1 && SSL_set_tlsext_host_name(session, host) == 1);
    if (ready && redisInitiateSSL(&context->c, session) == REDIS_OK) return session;
    SSL_free(session);
#else
    (void)context, (void)tls, (void)host;
#endif
    return NULL;
}

/// What is wrong with the server's certificate, or null. hiredis itself says "Success" then.
static inline const char *chiredis_tls_complaint(void *session) {
#ifdef CHIREDIS_HAS_TLS
    long result = SSL_get_verify_result((SSL *)session);
    return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
#else
    (void)session;
    return NULL;
#endif
}

#endif
