/* base/json_scan.h - looking at many bytes of JSON at once; for json_read.c and json_write.c only.
 *
 * Nothing here reads outside [p, end): a vector is loaded only when all of it lies inside, and the
 * tail goes byte by byte or through a padded copy. Each function comes twice, for SSE2 and for any
 * machine with 64-bit words; -DPL_NO_SIMD picks the second one everywhere, and tests run both. */
#ifndef PL_BASE_JSON_SCAN_H
#define PL_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(PL_NO_SIMD)
#define PL__SSE2 1
#include <emmintrin.h>
#else
#define PL__SSE2 0
#endif

#define PL__EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight bytes with the first one lowest, whatever the machine's order; compilers make one load of
 * it. */
static inline uint64_t pl__load_word(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

/* The lowest marked byte is exact: a borrow only ever travels upwards from a true hit. */
static inline uint64_t pl__mark_equal_first(uint64_t word, uint8_t byte)
{
    uint64_t zeroed = word ^ PL__EACH_BYTE(byte);

    return (zeroed - PL__EACH_BYTE(1)) & ~zeroed & PL__EACH_BYTE(0x80);
}

/* Every marked byte is exact. */
static inline uint64_t pl__mark_equal(uint64_t word, uint8_t byte)
{
    uint64_t zeroed = word ^ PL__EACH_BYTE(byte);

    return ~(((zeroed & PL__EACH_BYTE(0x7f)) + PL__EACH_BYTE(0x7f)) | zeroed | PL__EACH_BYTE(0x7f));
}

#if PL__SSE2
static inline __m128i pl__load_vector(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __m128i pl__equal_byte(__m128i v, char byte)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(byte));
}

static inline uint64_t pl__vector_bits(__m128i v)
{
    return (uint32_t)_mm_movemask_epi8(v);
}
#endif

/* A byte that can stand in a string as it is and needs no further look. */
static inline bool pl__byte_is_plain(char byte)
{
    unsigned char c = (unsigned char)byte;

    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte that is not plain, or `end`. */
static inline const char *pl__scan_plain(const char *p, const char *end)
{
#if PL__SSE2
    while (end - p >= 16) {
        __m128i v = pl__load_vector(p);
        /* As signed bytes, control characters and everything from 0x80 on are below a space. */
        __m128i odd = _mm_or_si128(_mm_or_si128(pl__equal_byte(v, '"'), pl__equal_byte(v, '\\')),
                                   _mm_cmplt_epi8(v, _mm_set1_epi8(' ')));
        uint64_t bits = pl__vector_bits(odd);
        if (bits)
            return p + __builtin_ctzll(bits);
        p += 16;
    }
#else
    while (end - p >= 8) {
        uint64_t word = pl__load_word(p);
        uint64_t low_or_high = ((word - PL__EACH_BYTE(0x20)) | word) & PL__EACH_BYTE(0x80);
        uint64_t odd =
            pl__mark_equal_first(word, '"') | pl__mark_equal_first(word, '\\') | low_or_high;
        if (odd)
            return p + __builtin_ctzll(odd) / 8;
        p += 8;
    }
#endif
    while (p < end && pl__byte_is_plain(*p))
        p++;
    return p;
}

static inline bool pl__byte_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The part of pl__skip_space() that is worth a call: indentation. */
static inline const char *pl__skip_space_run(const char *p, const char *end)
{
#if PL__SSE2
    while (end - p >= 16) {
        __m128i v = pl__load_vector(p);
        __m128i space =
            _mm_or_si128(_mm_or_si128(pl__equal_byte(v, ' '), pl__equal_byte(v, '\n')),
                         _mm_or_si128(pl__equal_byte(v, '\t'), pl__equal_byte(v, '\r')));
        uint64_t bits = pl__vector_bits(space) ^ 0xffff;
        if (bits)
            return p + __builtin_ctzll(bits);
        p += 16;
    }
#else
    while (end - p >= 8) {
        uint64_t other = pl__load_word(p) ^ PL__EACH_BYTE(' ');
        if (other == 0) {
            p += 8;
            continue;
        }
        p += __builtin_ctzll(other) / 8;
        if (!pl__byte_is_space(*p))
            return p;
        p++;
    }
#endif
    while (p < end && pl__byte_is_space(*p))
        p++;
    return p;
}

/* The first byte that is not white space, or `end`. */
static inline const char *pl__skip_space(const char *p, const char *end)
{
    if (p < end && (unsigned char)*p > ' ')
        return p;
    return pl__skip_space_run(p, end);
}

/* --- blocks of 64 bytes, a bit for each -------------------------------------------------------- */

enum { PL__BLOCK_BYTES = 64 };

struct pl__block {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t opens; /* of objects and arrays alike, also those inside strings */
    uint64_t closes;
};

#if PL__SSE2
static inline struct pl__block pl__block_load(const char *p)
{
    struct pl__block b = { 0, 0, 0, 0 };

    for (unsigned i = 0; i < PL__BLOCK_BYTES; i += 16) {
        __m128i v = pl__load_vector(p + i);
        /* Setting 0x20 turns '[' and ']' into '{' and '}', and no other byte into either. */
        __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));
        b.quotes |= pl__vector_bits(pl__equal_byte(v, '"')) << i;
        b.backslashes |= pl__vector_bits(pl__equal_byte(v, '\\')) << i;
        b.opens |= pl__vector_bits(pl__equal_byte(folded, '{')) << i;
        b.closes |= pl__vector_bits(pl__equal_byte(folded, '}')) << i;
    }
    return b;
}
#else
/* The eight marks of a word as eight bits. */
static inline uint64_t pl__marks_to_bits(uint64_t marks)
{
    return ((marks >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline struct pl__block pl__block_load(const char *p)
{
    struct pl__block b = { 0, 0, 0, 0 };

    for (unsigned i = 0; i < PL__BLOCK_BYTES; i += 8) {
        uint64_t word = pl__load_word(p + i);
        uint64_t folded = word | PL__EACH_BYTE(0x20);
        b.quotes |= pl__marks_to_bits(pl__mark_equal(word, '"')) << i;
        b.backslashes |= pl__marks_to_bits(pl__mark_equal(word, '\\')) << i;
        b.opens |= pl__marks_to_bits(pl__mark_equal(folded, '{')) << i;
        b.closes |= pl__marks_to_bits(pl__mark_equal(folded, '}')) << i;
    }
    return b;
}
#endif

/* Each bit becomes the xor of itself and all below: set from each opening quote up to, but not
 * including, its closing one. */
static inline uint64_t pl__prefix_xor(uint64_t bits)
{
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;
    return bits;
}

static inline uint32_t pl__bit_count(uint64_t bits)
{
#if defined(__POPCNT__)
    return (uint32_t)__builtin_popcountll(bits);
#else
    /* Without the instruction the builtin is a call that looks up bytes in a table. */
    bits -= (bits >> 1) & PL__EACH_BYTE(0x55);
    bits = (bits & PL__EACH_BYTE(0x33)) + ((bits >> 2) & PL__EACH_BYTE(0x33));
    bits = (bits + (bits >> 4)) & PL__EACH_BYTE(0x0f);
    return (uint32_t)((bits * PL__EACH_BYTE(1)) >> 56);
#endif
}

/* --- UTF-8 -------------------------------------------------------------------------------------- */

/* The length of the character at `p` (p < end): 1 to 4, 0 when it is not UTF-8, -1 when the bytes
 * end inside a character that was fine so far. Overlong forms, surrogates and what lies beyond
 * U+10FFFF are not UTF-8; all of these show in the first two bytes. */
static inline int pl__utf8_len(const char *p, const char *end)
{
    unsigned char first = (unsigned char)p[0];
    unsigned char low = 0x80, high = 0xbf; /* what the second byte may be */
    int len;

    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    if (first < 0xe0) {
        len = 2;
    } else if (first < 0xf0) {
        len = 3;
        low = first == 0xe0 ? 0xa0 : 0x80;
        high = first == 0xed ? 0x9f : 0xbf;
    } else {
        len = 4;
        low = first == 0xf0 ? 0x90 : 0x80;
        high = first == 0xf4 ? 0x8f : 0xbf;
    }
    for (int i = 1; i < len; i++) {
        if (p + i == end)
            return -1;
        unsigned char c = (unsigned char)p[i];
        if (c < low || c > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

#endif
