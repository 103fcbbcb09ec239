#include "loop/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 1024, HOST_BYTES_MAX = 80 };

/* Splits "host:port", "[v6]:port" or ":port" into copies. */
static bool listen_split(struct pl_arena *arena, const char *listen, const char **host,
                         const char **port)
{
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t)(colon - listen) : 0;
    uint64_t number;

    if (!colon || !pl__str_to_u64(pl__str(colon + 1), &number) || number > 65535)
        return false;
    *port = pl__str_copy(arena, pl__str(colon + 1)).ptr;
    if (len >= 2 && listen[0] == '[' && listen[len - 1] == ']') {
        listen++;
        len -= 2;
    }
    *host = len ? pl__str_copy(arena, (struct pl_str){ listen, len }).ptr : NULL;
    return true;
}

static int socket_listen(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* ":8443" means both */
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* The first address that can be listened on; without a host, IPv6 first, since it takes IPv4, too. */
static int addresses_listen(const struct addrinfo *addresses)
{
    int reason = EADDRNOTAVAIL;

    for (int family = 0; family < 2; family++) {
        for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
            if ((a->ai_family == AF_INET6) != (family == 0))
                continue;
            int fd = socket_listen(a);
            if (fd >= 0)
                return fd;
            if (errno != EAFNOSUPPORT)
                reason = errno;
        }
    }
    errno = reason;
    return -1;
}

int pl__listen_open(const char *text, uint16_t *port_number, struct pl_arena *arena,
                    struct pl_error **err)
{
    const char *host = NULL, *port = NULL;
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *addresses = NULL;

    if (!listen_split(arena, text, &host, &port))
        return pl__error(arena, err, PL_USAGE, "listen on %s: not HOST:PORT", text);
    if (getaddrinfo(host, port, &hints, &addresses) != 0)
        return pl__error(arena, err, PL_USAGE, "listen on %s: no such address", text);
    int fd = addresses_listen(addresses);
    int reason = errno;
    freeaddrinfo(addresses);
    if (fd < 0)
        return pl__error(arena, err, PL_IO, "listen on %s: %s", text, strerror(reason));
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0)
        *port_number =
            ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

bool pl__listen_is_loopback(const char *text)
{
    const char *host = NULL, *port = NULL;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 1024);
    bool loopback = listen_split(&arena, text, &host, &port) && host && is_loopback(host);
    pl__arena_release(&arena);
    return loopback;
}

bool pl__host_is_loopback(const char *host)
{
    char text[HOST_BYTES_MAX];
    size_t len = strlen(host);
    bool has_port = len > 0 && host[len - 1] != ']' && strchr(host, ':');

    return snprintf(text, sizeof text, "%s%s", host, has_port ? "" : ":80") < (int)sizeof text &&
           pl__listen_is_loopback(text);
}
