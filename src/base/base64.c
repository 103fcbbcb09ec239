#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The six bits that a character stands for, or -1. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

int pl__base64_decode(struct pl_arena *arena, struct pl_str text, struct pl_str *bytes)
{
    char *out = PL_NEW(arena, char, text.len / 4 * 3 + 4);
    size_t len = 0;
    uint32_t bits = 0;
    unsigned digit_count = 0, padding_count = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\n' || c == '\r')
            continue;
        if (c == '=') {
            padding_count++;
            continue;
        }
        int value = digit_value(c);
        if (value < 0 || padding_count)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        if (++digit_count == 4) {
            out[len++] = (char)(bits >> 16);
            out[len++] = (char)(bits >> 8 & 0xff);
            out[len++] = (char)(bits & 0xff);
            digit_count = 0;
            bits = 0;
        }
    }
    if (digit_count == 1 || padding_count != (4 - digit_count) % 4)
        return -1;
    if ((digit_count == 2 && bits & 0xf) || (digit_count == 3 && bits & 0x3))
        return -1; /* bits that belong to no byte */
    if (digit_count == 2)
        out[len++] = (char)(bits >> 4);
    if (digit_count == 3) {
        out[len++] = (char)(bits >> 10);
        out[len++] = (char)(bits >> 2 & 0xff);
    }
    *bytes = (struct pl_str){ out, len };
    return 0;
}

struct pl_str pl__base64_encode(struct pl_arena *arena, struct pl_str bytes)
{
    char *out = PL_NEW(arena, char, (bytes.len + 2) / 3 * 4 + 1);
    size_t len = 0;

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t bits = (uint32_t)(unsigned char)bytes.ptr[i] << 16;
        if (left > 1)
            bits |= (uint32_t)(unsigned char)bytes.ptr[i + 1] << 8;
        if (left > 2)
            bits |= (uint32_t)(unsigned char)bytes.ptr[i + 2];
        out[len++] = alphabet[bits >> 18];
        out[len++] = alphabet[bits >> 12 & 63];
        out[len++] = left > 1 ? alphabet[bits >> 6 & 63] : '=';
        out[len++] = left > 2 ? alphabet[bits & 63] : '=';
    }
    return (struct pl_str){ out, len };
}
