#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_accept(int listener, void *address, unsigned int *size)
{
    return accept4(listener, address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static bool listens_on(int fd, in_port_t port)
{
    int listens = 0;
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address, size = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens
        && getsockname(fd, (struct sockaddr *)&address, &length) == 0 && address.sin_family == AF_INET
        && address.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && address.sin_port == htons(port);
}

void clinux_end_listening(uint16_t port)
{
    DIR *descriptors = opendir("/proc/self/fd");
    if (!descriptors)
        return;
    for (struct dirent *entry; (entry = readdir(descriptors));) {
        int fd = atoi(entry->d_name); // 0 for . and ..
        if (fd <= STDERR_FILENO || !listens_on(fd, port))
            continue;
        int listening = fcntl(fd, F_DUPFD_CLOEXEC, 0), silent = eventfd(0, EFD_CLOEXEC);
        dup3(silent, fd, O_CLOEXEC);
        shutdown(listening, SHUT_RDWR);
        close(listening);
        close(silent);
    }
    closedir(descriptors);
}
