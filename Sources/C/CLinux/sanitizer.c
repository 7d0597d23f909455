#include "clinux.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif

bool clinux_has_sanitizer(void)
{
    return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
}
