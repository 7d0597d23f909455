#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/// Lets the first member of a group start without waiting for others, where librdkafka can do so: 2.0 always waits 3 s.
static inline void crdkafka_mock_join_at_once(rd_kafka_mock_cluster_t *cluster)
{
#if RD_KAFKA_VERSION >= 0x02080000
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
#else
    (void)cluster;
#endif
}

/// Ends the listening of this process on a port of 127.0.0.1. A mock broker that goes down closes its listening socket and binds the port anew, and
/// aborts the process where that fails; and it fails while a child that is being started holds a copy that listens. Shut down, no copy does. Its
/// thread, which aborts at a socket that is shut down too, is given something silent to watch first.
static inline void crdkafka_mock_unlisten(in_port_t port)
{
    DIR *descriptors = opendir("/proc/self/fd");
    if (!descriptors)
        return;
    for (struct dirent *entry; (entry = readdir(descriptors));) {
        int fd = atoi(entry->d_name), listens = 0;
        struct sockaddr_in address = {0};
        socklen_t length = sizeof address, size = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens
            && getsockname(fd, (struct sockaddr *)&address, &length) == 0 && address.sin_family == AF_INET
            && address.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && address.sin_port == htons(port)) {
            int listening = fcntl(fd, F_DUPFD_CLOEXEC, 0), silent = eventfd(0, EFD_CLOEXEC);
            dup3(silent, fd, O_CLOEXEC);
            shutdown(listening, SHUT_RDWR);
            close(listening);
            close(silent);
        }
    }
    closedir(descriptors);
}
