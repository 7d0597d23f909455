#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

// Without CURL_STRICTER: curl 8 has dropped it, so handles are void pointers in all versions alike.
#include <curl/curl.h>

/// The version that runs: Swift does not see CURLVERSION_NOW.
static inline const char *ccurl_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version;
}

// Variadic functions are not imported: one inline function for each type of argument. The parentheses keep curl's own
// type-checking macros out, which want to see a constant option.

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode ccurl_set_on_body(CURL *easy, curl_write_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_WRITEFUNCTION, call);
}

static inline CURLcode ccurl_set_on_header(CURL *easy, curl_write_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_HEADERFUNCTION, call);
}

static inline CURLcode ccurl_set_on_upload(CURL *easy, curl_read_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_READFUNCTION, call);
}

static inline CURLcode ccurl_set_on_rewind(CURL *easy, curl_seek_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, call);
}

static inline CURLcode ccurl_set_on_progress(CURL *easy, curl_xferinfo_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_XFERINFOFUNCTION, call);
}

static inline CURLcode ccurl_set_on_dial(CURL *easy, curl_opensocket_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, call);
}

static inline CURLcode ccurl_set_on_connected(CURL *easy, curl_prereq_callback call) {
    return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, call);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLcode ccurl_get_string(CURL *easy, CURLINFO info, const char **value) {
    return (curl_easy_getinfo)(easy, info, value);
}

/// The socket address in curl's own wrapper: `addrlen` bytes, which may be more than the member's declared type.
static inline const void *ccurl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

/// The result of a finished transfer (a union, which Swift would have to pick apart).
static inline CURLcode ccurl_result(const CURLMsg *message) {
    return message->data.result;
}

#endif
