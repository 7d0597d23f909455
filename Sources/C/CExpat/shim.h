#include <expat.h>

/// The line at which a parser stopped. Expat 2.9 deprecates the function that older versions have.
static inline unsigned long long cexpat_line(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
    return XML_GetCurrentLineNumber64(parser);
#else
    return XML_GetCurrentLineNumber(parser);
#endif
}
