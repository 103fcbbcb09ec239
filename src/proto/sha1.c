#include "proto/sha1.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 64 };

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* FIPS 180-4, 6.1.2. */
static void block_add(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[80];
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (unsigned t = 0; t < 80; t++) {
        uint32_t f, k;
        if (t < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (t < 40) {
            f = b ^ c ^ d;
            k = 0x6ed9eba1;
        } else if (t < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        } else {
            f = b ^ c ^ d;
            k = 0xca62c1d6;
        }
        uint32_t next = rotate(a, 5) + f + e + k + w[t];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void pl__sha1(const void *bytes, size_t size, uint8_t digest[SHA1_BYTES])
{
    uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    uint8_t padded[2 * BLOCK] = { 0 };
    size_t padded_size = size + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

    assert(size <= SHA1_INPUT_MAX);
    memcpy(padded, bytes, size);
    padded[size] = 0x80;
    padded[padded_size - 2] = (uint8_t)(size * 8 >> 8);
    padded[padded_size - 1] = (uint8_t)(size * 8);
    for (size_t at = 0; at < padded_size; at += BLOCK)
        block_add(h, padded + at);
    for (unsigned i = 0; i < SHA1_BYTES; i++)
        digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
