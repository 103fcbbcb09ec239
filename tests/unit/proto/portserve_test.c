/* The server's side of a port-forward: frames of a client, byte by byte and whole, good and bad. */
#include "test.h"

#include "proto/portserve.h"

#define PORTS "\x82\x03\x00\x4b\x09\x82\x03\x01\x4b\x09" /* 2379 on both channels */
#define MASK "\0\0\0\0"                                  /* changes nothing */
#define BYTES(literal) literal, sizeof(literal) - 1
#define CHECK_BYTES(got, ...) \
    test_str(__FILE__, __LINE__, #got, (got), (struct pl_str){ __VA_ARGS__ })

static struct pl_str out_of(struct pl_portserve *p)
{
    const uint8_t *bytes = NULL;
    size_t size = pl__portserve_send(p, &bytes);

    return (struct pl_str){ size ? (const char *)bytes : "", size };
}

static struct pl_str pod_of(struct pl_portserve *p)
{
    const uint8_t *bytes = NULL;
    size_t size = pl__portserve_read(p, &bytes);

    return (struct pl_str){ size ? (const char *)bytes : "", size };
}

static void test_frames(void)
{
    static const struct {
        const char *name, *bytes;
        size_t size;
        int result;
        const char *pod, *out;
        size_t out_size;
    } cases[] = {
        { "data", BYTES("\x82\x86" MASK "\0hello"), 0, "hello", BYTES("") },
        { "masked data", BYTES("\x82\x83\x01\x02\x03\x04\x01\x6a\x6a"), 0, "hi", BYTES("") },
        { "two messages", BYTES("\x82\x83" MASK "\0ab\x82\x82" MASK "\0c"), 0, "abc", BYTES("") },
        { "text is data", BYTES("\x81\x82" MASK "\0t"), 0, "t", BYTES("") },
        { "another channel", BYTES("\x82\x83" MASK "\1ab"), 0, "", BYTES("") },
        { "an empty message", BYTES("\x82\x80" MASK), 0, "", BYTES("") },
        { "ping", BYTES("\x89\x82" MASK "ok"), 0, "", BYTES("\x8a\x02ok") },
        { "empty ping", BYTES("\x89\x80" MASK), 0, "", BYTES("\x8a\x00") },
        { "pong", BYTES("\x8a\x80" MASK), 0, "", BYTES("") },
        { "close", BYTES("\x88\x82" MASK "\x03\xe8"), -1, "", BYTES("\x88\x02\x03\xe8") },
        { "data, then close", BYTES("\x82\x82" MASK "\0x\x88\x80" MASK), -1, "x",
          BYTES("\x88\x02\x03\xe8") },
        { "not masked", BYTES("\x82\x02\0x"), -1, "", BYTES("\x88\x02\x03\xea") },
        { "reserved bits", BYTES("\xc2\x82" MASK "\0x"), -1, "", BYTES("\x88\x02\x03\xea") },
        { "a huge frame", BYTES("\x82\xff\0\0\0\0\x7f\xff\xff\xff" MASK "x"), -1, "",
          BYTES("\x88\x02\x03\xea") },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t step = 1; step <= cases[i].size; step += cases[i].size - 1) {
            struct pl_portserve *p = pl__portserve_new(2379);
            int result = 0;
            CASE("%s, %zu at a time", cases[i].name, step);
            CHECK_BYTES(out_of(p), PORTS, sizeof PORTS - 1);
            pl__portserve_sent(p, sizeof PORTS - 1);
            for (size_t at = 0; at < cases[i].size && result == 0; at += step)
                result = pl__portserve_receive(
                    p, cases[i].bytes + at, cases[i].size - at < step ? cases[i].size - at : step);
            CHECK_INT(result, cases[i].result);
            CHECK_STR(pod_of(p), cases[i].pod);
            CHECK_BYTES(out_of(p), cases[i].out, cases[i].out_size);
            if (result < 0)
                CHECK_INT(pl__portserve_receive(p, "x", 1), -1);
            pl__portserve_free(p);
        }
    }
}

static void test_pod(void)
{
    static char large[100 * 1000];
    struct pl_portserve *p = pl__portserve_new(2379);

    pl__portserve_sent(p, sizeof PORTS - 1);
    CASE("bytes of the pod");
    pl__portserve_write(p, "abc", 3);
    CHECK_BYTES(out_of(p), BYTES("\x82\x04\0abc"));
    pl__portserve_sent(p, 6);
    CASE("large ones are cut into frames");
    pl__portserve_write(p, large, sizeof large);
    CHECK(out_of(p).len > sizeof large && out_of(p).len < sizeof large + 4 * 16);
    CASE("no more than there is room for");
    int turns = 0;
    for (; pl__portserve_room(p) >= sizeof large && turns < 100; turns++)
        pl__portserve_write(p, large, sizeof large);
    CHECK(turns >= 8 && turns <= 10);
    pl__portserve_write(p, large, pl__portserve_room(p));
    CHECK(pl__portserve_room(p) < 64);
    CHECK(out_of(p).len <= PORTSERVE_BUFFER_MAX);
    CASE("the end fits all the same");
    size_t before = out_of(p).len;
    pl__portserve_end(p, PL_STR("connection refused"));
    CHECK_INT(out_of(p).len - before, 2 + 1 + 18 + 4);
    CHECK_INT(pl__portserve_room(p), 0);
    pl__portserve_end(p, PL_STR("again"));
    CHECK_INT(out_of(p).len - before, 2 + 1 + 18 + 4);
    pl__portserve_free(p);
    CASE("a pod that takes nothing");
    p = pl__portserve_new(1);
    static const char head[] = "\x82\xff\0\0\0\0\0\x01\0\0" MASK; /* 64 KiB */
    static char payload[65536];
    int result = 0;
    for (turns = 0; result == 0 && turns < 100; turns++)
        result = pl__portserve_receive(p, head, sizeof head - 1) < 0 ||
                 pl__portserve_receive(p, payload, sizeof payload) < 0;
    CHECK(result == 1 && turns <= 17);
    CHECK(pod_of(p).len <= PORTSERVE_BUFFER_MAX);
    pl__portserve_free(p);
}

int main(void)
{
    test_frames();
    test_pod();
    return test_end("portserve");
}
