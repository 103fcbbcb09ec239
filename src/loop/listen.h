/* loop/listen.h - a listening socket from "host:port". */
#ifndef PL_LOOP_LISTEN_H
#define PL_LOOP_LISTEN_H

#include "base/error.h"

/* ":8443", "127.0.0.1:0", "[::1]:9090"; without a host all addresses, of IPv6 and IPv4. A descriptor that does not
 * block, and the port it got; or -1 with an error such as "listen on :8443: address already in use". */
int pl__listen_open(const char *text, uint16_t *port, struct pl_arena *arena,
                    struct pl_error **err);

/* Whether only this machine can reach it: a loopback address or "localhost". */
bool pl__listen_is_loopback(const char *text);

/* The same for what a client thinks it talks to, the value of its Host header: the port may be missing. */
bool pl__host_is_loopback(const char *host);

#endif
