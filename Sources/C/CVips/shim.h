#include <fontconfig/fontconfig.h>
#include <stdlib.h>
#include <vips/vips.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Swift does not see macros that cast: the type numbers of GLib and libvips, one function each.
static inline GType cvips_type_boolean(void) { return G_TYPE_BOOLEAN; }
static inline GType cvips_type_int(void) { return G_TYPE_INT; }
static inline GType cvips_type_double(void) { return G_TYPE_DOUBLE; }
static inline GType cvips_type_string(void) { return G_TYPE_STRING; }
static inline GType cvips_type_enum(void) { return G_TYPE_ENUM; }
static inline GType cvips_type_flags(void) { return G_TYPE_FLAGS; }
static inline GType cvips_type_object(void) { return G_TYPE_OBJECT; }
static inline GType cvips_type_image(void) { return VIPS_TYPE_IMAGE; }
static inline GType cvips_type_array_int(void) { return VIPS_TYPE_ARRAY_INT; }
static inline GType cvips_type_array_double(void) { return VIPS_TYPE_ARRAY_DOUBLE; }
static inline GType cvips_type_array_image(void) { return VIPS_TYPE_ARRAY_IMAGE; }
static inline GType cvips_type_blob(void) { return VIPS_TYPE_BLOB; }

/// Has glibc give pixels back when they are freed. By itself it keeps heaps for each thread, and takes ever larger blocks
/// from them rather than from the system, so that what the largest pictures needed stays, in holes. Now blocks from 1 MiB on
/// come from the system, and there is a heap for each processor. With two of them, after 10,000 mixed renderings on two
/// threads the process is as large as after 1000, and half as large as without (`RenderBenchmark FOLDER memory`, built with
/// HALCYON_SANITIZER=1, and so without tcmalloc).
/// It has no effect on tcmalloc, which the program uses (docs/deployment.md), and is for programs with Halcyon's modules
/// that keep glibc's allocator.
/// Of what is free at the end of a heap 1 MiB stays: by itself glibc, once it has been told of a threshold, gives back all but
/// 128 KiB, and a pipeline's buffers are taken from the system again for every few rows, which took up to a third of the
/// time of a small picture. With 8 MiB the process was a tenth larger after 10,000 renderings than after 1000.
/// An operator's MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ and MALLOC_ARENA_MAX win (mallopt(3)).
static inline void cvips_give_memory_back(void) {
#ifdef __GLIBC__
    if (getenv("MALLOC_MMAP_THRESHOLD_") == NULL) mallopt(M_MMAP_THRESHOLD, 1 << 20);
    if (getenv("MALLOC_TRIM_THRESHOLD_") == NULL) mallopt(M_TRIM_THRESHOLD, 1 << 20);
    if (getenv("MALLOC_ARENA_MAX") == NULL) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        mallopt(M_ARENA_MAX, processors < 2 ? 2 : (int)processors);
    }
#endif
}

/// `vips_init` behind the check that headers and library agree.
static inline int cvips_start(const char *name) { return VIPS_INIT(name); }

/// Has pictures decoded into memory, however large they are. By itself libvips puts those of more than 100 MB that must be whole (WebP,
/// HEIF) into a file, which fails where there is no place for one, and looks like a corrupt picture; whoever bounds what may be decoded
/// needs no file. libvips takes this from its command line or from VIPS_DISC_THRESHOLD, with which an operator wins; setenv(3) beside
/// other threads would be a race. Returns whether libvips took it.
static inline int cvips_keep_pictures_in_memory(void) {
    if (getenv("VIPS_DISC_THRESHOLD") != NULL) return 1;
    GOptionGroup *group = g_option_group_new("vips", "", "", NULL, NULL);
    vips_add_option_entries(group);
    GOptionContext *context = g_option_context_new(NULL);
    g_option_context_set_main_group(context, group);
    char *words[] = {(char *)"halcyon", (char *)"--vips-disc-threshold=1048576g", NULL};
    char **arguments = words;
    int count = 2;
    int taken = g_option_context_parse(context, &count, &arguments, NULL);
    g_option_context_free(context);
    return taken;
}

/// Whether libvips translates vector code at run time, with Orc. Since 8.15 it has it built in, with Highway, on most
/// systems.
#if VIPS_MAJOR_VERSION > 8 || VIPS_MINOR_VERSION >= 15
#include <vips/vector.h>
static inline int cvips_translates_at_run_time(void) { return vips_vector_get_builtin_targets() == 0; }
#else
static inline int cvips_translates_at_run_time(void) { return 1; }
#endif
