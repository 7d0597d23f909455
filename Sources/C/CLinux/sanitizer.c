#include "clinux.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif

bool clinux_has_address_sanitizer(void)
{
    return __has_feature(address_sanitizer);
}
