#include "csimdjson.h"

// Leaves simdjson's throwing interface out, so that none of it can be called by mistake.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

using namespace simdjson;

struct csj_parser {
    dom::parser parser;
};

namespace {

// simdjson's values and iterators are a pointer and an index, copied here as plain memory, which C++ allows for trivially
// copyable types.
template <typename To, typename From> To copied(const From &from) noexcept
{
    static_assert(std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(static_cast<void *>(&to), &from, sizeof to);
    return to;
}

dom::element element(csj_value value) noexcept { return copied<dom::element>(value); }
csj_value value(dom::element element) noexcept { return copied<csj_value>(element); }
csj_string string(std::string_view text) noexcept
{
    return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

template <typename Iterator> struct Range {
    Iterator next, end;
};

template <typename Container> csj_cursor cursor(simdjson_result<Container> result) noexcept
{
    Container container;
    if (std::move(result).get(container))
        return {};
    return copied<csj_cursor>(Range<typename Container::iterator>{container.begin(), container.end()});
}

// The walk of an empty cursor: its two halves are both zero.
bool is_empty(const csj_cursor &cursor) noexcept { return cursor.opaque[0] == 0; }

template <typename T> T got(simdjson_result<T> result) noexcept
{
    T value{};
    return std::move(result).get(value) ? T{} : value;
}

// Newer releases of simdjson tell integers past 64 bits from other bad numbers.
template <typename E, typename = void> struct Big {
    static bool is(E) noexcept { return false; }
};
template <typename E> struct Big<E, std::void_t<decltype(E::BIGINT_ERROR)>> {
    static bool is(E error) noexcept { return error == E::BIGINT_ERROR; }
};

csj_error code(error_code error) noexcept
{
    if (Big<error_code>::is(error))
        return CSJ_BAD_NUMBER;
    switch (error) {
    case SUCCESS: return CSJ_OK;
    case EMPTY: return CSJ_EMPTY;
    case DEPTH_ERROR: return CSJ_TOO_DEEP;
    case UTF8_ERROR: return CSJ_BAD_UTF8;
    case STRING_ERROR:
    case UNESCAPED_CHARS:
    case UNCLOSED_STRING: return CSJ_BAD_STRING;
    case NUMBER_ERROR: return CSJ_BAD_NUMBER;
    case T_ATOM_ERROR:
    case F_ATOM_ERROR:
    case N_ATOM_ERROR: return CSJ_BAD_LITERAL;
    case MEMALLOC:
    case CAPACITY: return CSJ_NO_MEMORY;
    default: return CSJ_BAD_STRUCTURE;
    }
}

} // namespace

csj_version csj_library_version(void)
{
    return {SIMDJSON_VERSION_MAJOR, SIMDJSON_VERSION_MINOR, SIMDJSON_VERSION_REVISION};
}

csj_parser *csj_parser_new(void) { return new (std::nothrow) csj_parser; }

void csj_parser_free(csj_parser *parser) { delete parser; }

size_t csj_parser_capacity(const csj_parser *parser) { return parser->parser.capacity(); }

csj_error csj_parse(csj_parser *parser, const uint8_t *bytes, size_t length, size_t max_depth, csj_value *root)
{
    // Old releases refuse a byte order mark and new ones skip it; here it is always refused.
    if (length >= 3 && std::memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        return CSJ_BYTE_ORDER_MARK;
    if (length == 0)
        return CSJ_EMPTY;
    dom::parser &dom = parser->parser;
    // simdjson's depth counts the document itself.
    if (dom.max_depth() != max_depth + 1)
        if (error_code error = dom.allocate(std::max(dom.capacity(), length), max_depth + 1))
            return code(error);
    // The last argument has the text copied behind the padding that simdjson reads past its end.
    dom::element element;
    if (error_code error = dom.parse(bytes, length, true).get(element))
        return code(error);
    *root = value(element);
    return CSJ_OK;
}

csj_kind csj_kind_of(csj_value value)
{
    switch (element(value).type()) {
    case dom::element_type::OBJECT: return CSJ_OBJECT;
    case dom::element_type::ARRAY: return CSJ_ARRAY;
    case dom::element_type::STRING: return CSJ_STRING;
    case dom::element_type::INT64: return CSJ_INT64;
    case dom::element_type::UINT64: return CSJ_UINT64;
    case dom::element_type::DOUBLE: return CSJ_DOUBLE;
    case dom::element_type::BOOL: return CSJ_BOOL;
    default: return CSJ_NULL;
    }
}

bool csj_bool(csj_value value) { return got(element(value).get_bool()); }
int64_t csj_int64(csj_value value) { return got(element(value).get_int64()); }
uint64_t csj_uint64(csj_value value) { return got(element(value).get_uint64()); }
double csj_double(csj_value value) { return got(element(value).get_double()); }
csj_string csj_string_of(csj_value value) { return string(got(element(value).get_string())); }

csj_cursor csj_members(csj_value object) { return cursor(element(object).get_object()); }

bool csj_next_member(csj_cursor *cursor, csj_string *name, csj_value *member)
{
    if (is_empty(*cursor))
        return false;
    auto range = copied<Range<dom::object::iterator>>(*cursor);
    if (!(range.next != range.end))
        return false;
    *name = string(range.next.key());
    *member = value(range.next.value());
    ++range.next;
    *cursor = copied<csj_cursor>(range);
    return true;
}

csj_cursor csj_elements(csj_value array) { return cursor(element(array).get_array()); }

bool csj_next_element(csj_cursor *cursor, csj_value *item)
{
    if (is_empty(*cursor))
        return false;
    auto range = copied<Range<dom::array::iterator>>(*cursor);
    if (!(range.next != range.end))
        return false;
    *item = value(*range.next);
    ++range.next;
    *cursor = copied<csj_cursor>(range);
    return true;
}

bool csj_member(csj_value object, const uint8_t *name, size_t length, csj_value *member)
{
    dom::object members;
    if (element(object).get_object().get(members))
        return false;
    std::string_view wanted(reinterpret_cast<const char *>(name), length);
    for (auto field = members.begin(); field != members.end(); ++field)
        if (field.key_equals(wanted)) {
            *member = value(field.value());
            return true;
        }
    return false;
}

bool csj_doubled_name(csj_value object, csj_string *name)
{
    dom::object members;
    if (element(object).get_object().get(members))
        return false;
    // Few names are compared each with each, without an allocation; many are sorted, so that nobody can make this slow.
    constexpr size_t few = 32;
    std::string_view seen[few];
    size_t count = 0;
    for (auto field = members.begin(); field != members.end(); ++field) {
        if (count == few)
            break;
        std::string_view key = field.key();
        if (std::find(seen, seen + count, key) != seen + count) {
            *name = string(key);
            return true;
        }
        seen[count++] = key;
    }
    if (count < few)
        return false;
    std::vector<std::string_view> all;
    for (auto field = members.begin(); field != members.end(); ++field)
        all.push_back(field.key());
    std::sort(all.begin(), all.end());
    auto twin = std::adjacent_find(all.begin(), all.end());
    if (twin == all.end())
        return false;
    *name = string(*twin);
    return true;
}
