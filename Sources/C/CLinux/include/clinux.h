// What Linux has and Swift's Glibc module map leaves out, and the one call that must happen between fork and exec.
#ifndef CLINUX_H
#define CLINUX_H

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>

/// One limit to set in a child before it runs (getrlimit(2)).
struct clinux_limit {
    int resource;
    rlim_t soft, hard;
};

/// How a child starts. Descriptors of -1 become /dev/null.
struct clinux_child {
    const char *path;
    char *const *argv;
    char *const *envp;
    int stdin_fd, stdout_fd, stderr_fd;
    /// Signal the child gets when the thread that spawned it ends; 0 for none.
    int death_signal;
    /// A terminal's Ctrl-C goes to the whole process group: true keeps it from the child, whose parent stops it.
    bool ignore_interrupt;
    const struct clinux_limit *limits;
    size_t limit_count;
};

/// Starts a child. Returns 0 and sets *pid, or the errno of what failed, also of the child's exec.
int clinux_spawn(const struct clinux_child *how, pid_t *pid);

/// Names the calling thread (prctl(2) is variadic, which Swift does not import).
void clinux_name_thread(const char *name);

/// How many processors the calling thread may run on (sched_getaffinity(2)).
int clinux_bound_processors(void);

/// Has tcmalloc return free memory to the system. No effect in programs with another allocator.
void clinux_release_free_memory(void);

/// O_PATH, which stands behind _GNU_SOURCE: a descriptor that only names a place.
extern const int clinux_o_path;

/// Opens a path that may not lead out of `folder` (openat2(2), which glibc has no function for). Returns -1 and sets errno.
int clinux_open_beneath(int folder, const char *path, int flags);

/// A file in memory, without a name in any folder and closed in programs that are run (memfd_create(2)). Returns -1 and sets
/// errno.
int clinux_memory_file(const char *name);

/// Takes a connection, which does not block and is closed in programs that are run (accept4(2), which stands behind
/// _GNU_SOURCE). `address` has room for `*size` bytes. Returns -1 and sets errno.
int clinux_accept(int listener, void *address, unsigned int *size);

/// Ends this process's listening on a port of 127.0.0.1, in every copy of the socket: also in that of a child that is being started, which would keep
/// the port taken. Whoever watches the descriptor sees nothing of it: it becomes one on which nothing happens, to be closed as before.
/// Returns a socket that keeps the port from strangers until somebody listens there again with SO_REUSEADDR, and is to be closed then; -1 where nobody
/// has listened.
int clinux_end_listening(uint16_t port);

/// Whether this was built with the address or the thread sanitizer: each reserves more memory than a limit allows.
bool clinux_has_sanitizer(void);

#endif
