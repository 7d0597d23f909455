#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_accept(int listener, void *address, unsigned int *size)
{
    return accept4(listener, address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static bool listens_on(int fd, uint16_t port)
{
    int listens = 0;
    struct sockaddr_in address = {0}, wanted = loopback(port);
    socklen_t length = sizeof address, size = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens
        && getsockname(fd, (struct sockaddr *)&address, &length) == 0 && memcmp(&address, &wanted, sizeof wanted) == 0;
}

/// A second socket on the port of one that listens. It does not listen.
static int beside(int listener, uint16_t port)
{
    const int yes = 1;
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

int clinux_end_listening(uint16_t port)
{
    DIR *descriptors = opendir("/proc/self/fd");
    if (!descriptors)
        return -1;
    int kept = -1;
    for (struct dirent *entry; kept < 0 && (entry = readdir(descriptors));) {
        int fd = atoi(entry->d_name); // 0 for . and ..
        if (fd <= STDERR_FILENO || !listens_on(fd, port))
            continue;
        kept = beside(fd, port);
        int listening = fcntl(fd, F_DUPFD_CLOEXEC, 0), silent = eventfd(0, EFD_CLOEXEC);
        dup3(silent, fd, O_CLOEXEC);
        shutdown(listening, SHUT_RDWR);
        close(listening);
        close(silent);
    }
    closedir(descriptors);
    return kept;
}
