// simdjson's DOM as a C API: parse once, then walk values. Nothing here throws, and nothing allocates but csj_parser_new,
// csj_parse and csj_doubled_name.
#ifndef CSIMDJSON_H
#define CSIMDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A release of simdjson.
typedef struct csj_version {
    int major, minor, revision;
} csj_version;

/// The one that this was built with.
csj_version csj_library_version(void);

/// Holds one document at a time, and the memory to parse the next without asking for more.
typedef struct csj_parser csj_parser;

/// A value of a document; good until its parser parses again or is freed.
typedef struct csj_value {
    uintptr_t opaque[2];
} csj_value;

/// Walks the members of an object or the elements of an array.
typedef struct csj_cursor {
    uintptr_t opaque[4];
} csj_cursor;

/// UTF-8, not terminated; lives as long as its document.
typedef struct csj_string {
    const uint8_t *bytes;
    size_t length;
} csj_string;

typedef enum csj_error {
    CSJ_OK,
    CSJ_EMPTY,
    CSJ_BYTE_ORDER_MARK,
    CSJ_TOO_DEEP,
    CSJ_BAD_UTF8,
    CSJ_BAD_STRING,
    CSJ_BAD_NUMBER,
    CSJ_BAD_LITERAL,
    CSJ_BAD_STRUCTURE,
    CSJ_NO_MEMORY,
} csj_error;

typedef enum csj_kind {
    CSJ_NULL,
    CSJ_BOOL,
    CSJ_INT64,
    CSJ_UINT64, // past the range of INT64
    CSJ_DOUBLE,
    CSJ_STRING,
    CSJ_ARRAY,
    CSJ_OBJECT,
} csj_kind;

/// NULL when there is no memory.
csj_parser *csj_parser_new(void);
void csj_parser_free(csj_parser *parser);
/// Bytes of the longest text the parser can take without growing.
size_t csj_parser_capacity(const csj_parser *parser);

/// Parses one text, which may go away afterwards. max_depth counts nested arrays and objects.
csj_error csj_parse(csj_parser *parser, const uint8_t *bytes, size_t length, size_t max_depth, csj_value *root);

csj_kind csj_kind_of(csj_value value);

// Each of these is for values of its kind alone, and gives zero or nothing for others.
bool csj_bool(csj_value value);
int64_t csj_int64(csj_value value);
uint64_t csj_uint64(csj_value value);
double csj_double(csj_value value);
csj_string csj_string_of(csj_value value);

csj_cursor csj_members(csj_value object);
bool csj_next_member(csj_cursor *cursor, csj_string *name, csj_value *value);
csj_cursor csj_elements(csj_value array);
bool csj_next_element(csj_cursor *cursor, csj_value *value);

/// The first member of that name.
bool csj_member(csj_value object, const uint8_t *name, size_t length, csj_value *value);
/// Whether some name stands twice in the object, and which.
bool csj_doubled_name(csj_value object, csj_string *name);

#ifdef __cplusplus
}
#endif
#endif
