#include <vips/vips.h>

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

/// `vips_init` behind the check that headers and library agree.
static inline int cvips_start(const char *name) { return VIPS_INIT(name); }

/// Whether libvips translates vector code at run time, with Orc. Since 8.15 it has it built in, with Highway, on most
/// systems.
#if VIPS_MAJOR_VERSION > 8 || VIPS_MINOR_VERSION >= 15
#include <vips/vector.h>
static inline int cvips_translates_at_run_time(void) { return vips_vector_get_builtin_targets() == 0; }
#else
static inline int cvips_translates_at_run_time(void) { return 1; }
#endif
