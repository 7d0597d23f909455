#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <unistd.h>

// posix_spawn has neither a death signal nor limits. vfork(2) does not copy the page tables of this process, which takes
// milliseconds for one that holds large images: the child runs in the memory of this thread, which waits until it calls
// exec. It makes only calls that are safe in a child of a threaded process (signal-safety(7)), and changes no memory that
// is used afterwards. The sanitizers see the accesses of such a child as those of this process, so they get a fork(2).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define create_child fork
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define create_child fork
#endif
#endif
#ifndef create_child
#define create_child vfork
#endif

static _Noreturn void fail(int report)
{
    int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(127);
}

static int opened(int fd, int flags)
{
    return fd >= 0 ? fd : open("/dev/null", flags);
}

// The handlers of this process must not run in a child that shares its memory. Ignored signals stay ignored.
static void reset_handlers(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL)
            continue;
        signal(number, SIG_DFL);
    }
}

static __attribute__((noinline)) _Noreturn void run_child(const struct clinux_child *how, pid_t parent, int report)
{
    reset_handlers();
    signal(SIGPIPE, SIG_DFL); // a parent that ignores it would pass that on
    sigset_t mask;
    sigemptyset(&mask);
    if (how->ignore_interrupt)
        sigaddset(&mask, SIGINT);
    sigprocmask(SIG_SETMASK, &mask, NULL);

    if (how->death_signal && prctl(PR_SET_PDEATHSIG, how->death_signal) != 0)
        fail(report);
    if (how->death_signal && getppid() != parent)
        _exit(127); // the parent was gone before the signal was asked for

    // Copies above 2 first, so that no source is overwritten before it is used.
    int wanted[3] = {opened(how->stdin_fd, O_RDONLY), opened(how->stdout_fd, O_WRONLY), opened(how->stderr_fd, O_WRONLY)};
    for (int i = 0; i < 3; i++)
        if ((wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 3)) < 0)
            fail(report);
    for (int i = 0; i < 3; i++)
        if (dup2(wanted[i], i) < 0)
            fail(report);

    // What another thread opened without close-on-exec is not the child's: it would keep pipes open that others wait for.
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) // Linux 5.11; old containers forbid it
        for (int fd = 3; fd < 65536; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);

    for (size_t i = 0; i < how->limit_count; i++) {
        struct rlimit limit = {how->limits[i].soft, how->limits[i].hard};
        if (setrlimit(how->limits[i].resource, &limit) != 0)
            fail(report);
    }
    execve(how->path, how->argv, how->envp);
    fail(report);
}

int clinux_spawn(const struct clinux_child *how, pid_t *pid)
{
    int report[2], error = 0;
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid(), child = create_child();
    if (child == 0)
        run_child(how, parent, report[1]);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child < 0) {
        error = failure;
    } else if (read(report[0], &error, sizeof error) == (ssize_t)sizeof error) {
        waitpid(child, NULL, 0); // never ran: reap it here
    } else {
        error = 0; // exec closed the pipe
        *pid = child;
    }
    close(report[0]);
    return error;
}
