#include "clinux.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif

bool clinux_has_sanitizer(void)
{
    return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
}

// The runtimes of the sanitizers call these functions (sanitizer/lsan_interface.h, sanitizer/tsan_interface.h). Nothing calls them in other builds.
const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);
const char *__tsan_default_suppressions(void);

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
    return
        // Objects store the address of their side table for weak references shifted, so the leak checker cannot follow it and reports the table of
        // each object that is alive at exit.
        "leak:formWeakReference\n"
        // An enumeration of several classes keeps its case in the bits of the pointer, so the leak checker cannot follow it and reports the series of
        // each registry of metrics that is alive at exit.
        "leak:s9Telemetry7MetricsC6series\n"
        "leak:s9Telemetry7ReadingC7replace\n"
        // fontconfig caches information about system fonts until the process exits.
        "leak:libfontconfig\n"
        // libxml2 leaks a partially read entity if the document ends inside it. SVG is parsed in child processes, which are replaced before this adds
        // up.
        "leak:libxml2\n"
        // poppler does not release the cairo surface of a page whose content is damaged, a few kilobytes each.
        "leak:libcairo\n";
}

const char *__tsan_default_suppressions(void)
{
    return
        // The state of this operation is created on the thread of a job and used on threads of libvips. libvips hands it over under locks of GLib,
        // which is not instrumented, so the sanitizer sees no ordering between the two.
        "race:s4Vips6narrow\n"
        // All empty arrays share this object, and the standard library writes its count of zero again.
        "race:_swiftEmptyArrayStorage\n";
}
