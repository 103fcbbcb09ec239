/* proto/sha1.h - SHA-1, which the WebSocket handshake asks for (RFC 6455, 1.3) to show that the server
 * read the request. Nothing here rests on it being secure, and proto/ does without OpenSSL. */
#ifndef PL_PROTO_SHA1_H
#define PL_PROTO_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20, SHA1_INPUT_MAX = 119 };

/* Of at most SHA1_INPUT_MAX bytes: two blocks with their padding. */
void pl__sha1(const void *bytes, size_t size, uint8_t digest[SHA1_BYTES]);

#endif
