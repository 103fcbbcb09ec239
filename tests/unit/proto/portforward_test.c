/* The port-forward against servers that do it right, do it oddly, and do it wrong: a table of answers, each
 * fed whole and byte by byte. */
#include "test.h"

#include <stdlib.h>

#include "base/arena.h"
#include "proto/portforward.h"
#include "proto/sha1.h"

/* The key is base64 of 16 zero bytes, so the right answer is always this one. */
#define ACCEPT "ICX+Yqv66kxgM0FcWaLWlFLwTAI="
#define SWITCH "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
#define UPGRADED \
    SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"
#define PORTS "\x82\x03\x00\x4b\x09\x82\x03\x01\x4b\x09" /* 2379 on both channels */

static void no_random(void *user, uint8_t *bytes, size_t size)
{
    (void)user;
    memset(bytes, 0, size);
}

static struct pl_portforward *make(void)
{
    struct pl_portforward_options options = {
        .host = PL_STR("api:6443"),
        .path = PL_STR("/p/api/v1/namespaces/kube-system/pods/etcd-n1/portforward?ports=2379"),
        .authorization = PL_STR("Bearer hunter2"),
        .user_agent = PL_STR("test"),
        .headers = PL_STR("Impersonate-User: me\r\n"),
        .port = 2379,
        .random = no_random,
    };

    return pl__portforward_new(&options);
}

static struct pl_str take_out(struct pl_portforward *p)
{
    const uint8_t *bytes = NULL;
    size_t size = pl__portforward_send(p, &bytes);

    return (struct pl_str){ size ? (const char *)bytes : "", size };
}

static struct pl_str take_pod(struct pl_portforward *p)
{
    const uint8_t *bytes = NULL;
    size_t size = pl__portforward_read(p, &bytes);

    return (struct pl_str){ size ? (const char *)bytes : "", size };
}

/* --- answers --------------------------------------------------------------------------------------- */

struct answer {
    const char *name;
    const char *bytes;
    size_t size;
    enum pl_portforward_state state;
    int status;
    const char *error, *pod; /* what is known of them afterwards */
    bool lost;               /* the connection ends behind it */
};

#define BYTES(text) text, sizeof(text) - 1

static const struct answer answers[] = {
    { "upgraded", BYTES(UPGRADED), PORTFORWARD_OPEN, 0, "", "", false },
    { "upgraded, then cut", BYTES(UPGRADED), PORTFORWARD_CLOSED, 0,
      "the API server cut the connection", "", true },
    { "header names in any case, values with blanks",
      BYTES("HTTP/1.1 101 x\r\nUPGRADE:  WebSocket \r\nconnection: keep-alive, upgrade\r\n"
            "sec-websocket-accept:" ACCEPT "\r\nSEC-WEBSOCKET-PROTOCOL: v4.channel.k8s.io\r\n\r\n"),
      PORTFORWARD_OPEN, 0, "", "", false },
    { "ports and data behind the headers", BYTES(UPGRADED PORTS "\x82\x06\x00hello"),
      PORTFORWARD_OPEN, 0, "", "hello", false },
    { "the port in two messages",
      BYTES(UPGRADED "\x82\x02\x00\x4b\x82\x04\x00\x09hi\x82\x02\x01\x4b\x82\x02\x01\x09"),
      PORTFORWARD_OPEN, 0, "", "hi", false },
    { "a fragmented message with a ping in between",
      BYTES(UPGRADED PORTS "\x02\x03\x00he\x89\x01x\x00\x01l\x80\x02lo"), PORTFORWARD_OPEN, 0, "",
      "hello", false },
    { "the channel in a fragment of its own",
      BYTES(UPGRADED PORTS "\x02\x00\x00\x01\x00\x80\x02hi"), PORTFORWARD_OPEN, 0, "", "hi",
      false },
    { "empty messages and unknown channels",
      BYTES(UPGRADED PORTS "\x82\x00\x82\x01\x00\x82\x03\x07xy\x82\x03\xffzz"), PORTFORWARD_OPEN, 0,
      "", "", false },
    { "the error channel",
      BYTES(UPGRADED PORTS "\x82\x1e\x01"
                           "dial tcp: connection\n\trefused"),
      PORTFORWARD_CLOSED, 0, "dial tcp: connection refused", "", false },
    { "data, then the error channel: data can still be read",
      BYTES(UPGRADED PORTS "\x82\x03\x00hi\x82\x05\x01gone"), PORTFORWARD_CLOSED, 0, "gone", "hi",
      false },
    { "an error of blanks", BYTES(UPGRADED PORTS "\x82\x03\x01\x01\x02"), PORTFORWARD_CLOSED, 0,
      "the error channel says nothing readable", "", false },
    { "closed normally", BYTES(UPGRADED PORTS "\x82\x03\x00hi\x88\x02\x03\xe8"), PORTFORWARD_CLOSED,
      0, "", "hi", false },
    { "closed without a code", BYTES(UPGRADED PORTS "\x88\x00"), PORTFORWARD_CLOSED, 0, "", "",
      false },
    { "closed for a reason",
      BYTES(UPGRADED PORTS "\x88\x08\x03\xea"
                           "framed"),
      PORTFORWARD_CLOSED, 0, "closed by the server with code 1002: framed", "", false },
    { "closed with a code alone", BYTES(UPGRADED PORTS "\x88\x02\x03\xf3"), PORTFORWARD_CLOSED, 0,
      "closed by the server with code 1011", "", false },

    { "another port", BYTES(UPGRADED "\x82\x03\x00\x4c\x09"), PORTFORWARD_CLOSED, 0,
      "the server forwards port 2380 where 2379 was asked for", "", false },
    { "text", BYTES(UPGRADED "\x81\x03\x00\x4b\x09"), PORTFORWARD_CLOSED, 0,
      "the server sent a frame that is not binary", "", false },
    { "masked", BYTES(UPGRADED "\x82\x83\x00\x00\x00\x00\x00\x4b\x09"), PORTFORWARD_CLOSED, 0,
      "the server sent a frame that no client may be sent", "", false },
    { "reserved bits", BYTES(UPGRADED "\xc2\x03\x00\x4b\x09"), PORTFORWARD_CLOSED, 0,
      "the server sent a frame that no client may be sent", "", false },
    { "an unknown control frame", BYTES(UPGRADED "\x8b\x00"), PORTFORWARD_CLOSED, 0,
      "the server sent a frame of an unknown kind", "", false },
    { "an unknown data frame", BYTES(UPGRADED "\x83\x01\x00"), PORTFORWARD_CLOSED, 0,
      "the server sent a frame that is not binary", "", false },
    { "a control frame that is too long", BYTES(UPGRADED "\x89\x7e\x00\x80"), PORTFORWARD_CLOSED, 0,
      "what the server sent is not WebSocket", "", false },
    { "a length that is not the shortest", BYTES(UPGRADED "\x82\x7e\x00\x05"), PORTFORWARD_CLOSED,
      0, "what the server sent is not WebSocket", "", false },
    { "continues nothing", BYTES(UPGRADED "\x80\x01\x00"), PORTFORWARD_CLOSED, 0,
      "the server continues a message that never began", "", false },
    { "a message inside of another", BYTES(UPGRADED "\x02\x01\x00\x82\x01\x00"), PORTFORWARD_CLOSED,
      0, "the server begins a message inside of another", "", false },

    { "a wrong answer to the key",
      BYTES(SWITCH
            "Sec-WebSocket-Accept: AAAA\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"),
      PORTFORWARD_CLOSED, 0, "the server's Sec-WebSocket-Accept does not answer our key", "",
      false },
    { "no protocol", BYTES(SWITCH "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n"), PORTFORWARD_CLOSED,
      0, "the server does not speak v4.channel.k8s.io", "", false },
    { "an extension",
      BYTES(SWITCH "Sec-WebSocket-Accept: " ACCEPT
                   "\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
                   "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
      PORTFORWARD_CLOSED, 0, "the server uses a WebSocket extension that nobody asked for", "",
      false },
    { "not WebSocket", BYTES("HTTP/1.1 101 x\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n"),
      PORTFORWARD_CLOSED, 0, "the server switched to something other than WebSocket", "", false },
    { "not HTTP", BYTES("220 mail ready\r\n\r\n"), PORTFORWARD_CLOSED, 0,
      "what the server sent is not HTTP", "", false },
    { "a strange status", BYTES("HTTP/1.1 1x1 ?\r\n\r\n"), PORTFORWARD_CLOSED, 0,
      "what the server sent is not HTTP", "", false },
    { "HTTP/2", BYTES("HTTP/2 200\r\n\r\n"), PORTFORWARD_CLOSED, 0,
      "what the server sent is not HTTP", "", false },
    { "asked to continue", BYTES("HTTP/1.1 100 Continue\r\n\r\n"), PORTFORWARD_CLOSED, 0,
      "the server answers an upgrade with HTTP 100", "", false },

    { "refused with a Status",
      BYTES("HTTP/1.1 404 Not Found\r\nContent-Length: 62\r\n\r\n"
            "{\"kind\":\"Status\",\"message\":\"pods \\\"etcd-n1\\\" not found\",\"x\":1}"),
      PORTFORWARD_CLOSED, 404, "HTTP 404: pods \"etcd-n1\" not found", "", false },
    { "refused in words, ended by the connection",
      BYTES("HTTP/1.1 500 x\r\n\r\nerror dialing backend:\r\n  no route\n"), PORTFORWARD_CLOSED,
      500, "HTTP 500: error dialing backend: no route", "", true },
    { "refused in chunks",
      BYTES("HTTP/1.1 403 x\r\nTransfer-Encoding: "
            "chunked\r\n\r\n5;a=b\r\nforbi\r\n3\r\ndde\r\n0\r\n\r\n"),
      PORTFORWARD_CLOSED, 403, "HTTP 403: forbidde", "", false },
    { "refused in what are no chunks",
      BYTES("HTTP/1.1 403 x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"), PORTFORWARD_CLOSED, 403,
      "HTTP 403", "", false },
    { "refused without a word", BYTES("HTTP/1.1 401 x\r\nContent-Length: 0\r\n\r\n"),
      PORTFORWARD_CLOSED, 401, "HTTP 401", "", false },
    { "success that is none", BYTES("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
      PORTFORWARD_CLOSED, 200, "HTTP 200: ok", "", false },
    { "half of a body, then cut", BYTES("HTTP/1.1 503 x\r\nContent-Length: 99\r\n\r\nbusy"),
      PORTFORWARD_CLOSED, 503, "HTTP 503: busy", "", true },
    { "cut in the headers", BYTES("HTTP/1.1 101 Swit"), PORTFORWARD_CLOSED, 0,
      "the API server cut the connection without an answer", "", true },
};

/* In pieces of `step` bytes; what the pod said is collected. */
static void feed(struct pl_portforward *p, const struct answer *a, size_t step, char *pod,
                 size_t pod_size)
{
    size_t pod_len = 0;

    for (size_t at = 0; at < a->size; at += step) {
        size_t now = a->size - at < step ? a->size - at : step;
        bool ok = pl__portforward_receive(p, a->bytes + at, now) == 0;
        CHECK(ok == (pl__portforward_state(p) != PORTFORWARD_CLOSED));
        struct pl_str got = take_pod(p);
        if (pod_len + got.len < pod_size)
            memcpy(pod + pod_len, got.ptr, got.len);
        pod_len += got.len;
    }
    pod[pod_len < pod_size ? pod_len : 0] = '\0';
    if (a->lost)
        pl__portforward_lost(p);
}

static void check_answers(void)
{
    static const size_t steps[] = { 1, 2, 7, 4096 };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const struct answer *a = &answers[i];
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
            char pod[256];
            CASE("%s, by %zu", a->name, steps[s])
            struct pl_portforward *p = make();
            feed(p, a, steps[s], pod, sizeof pod);
            CHECK_INT(pl__portforward_state(p), a->state);
            CHECK_INT(pl__portforward_status(p), a->status);
            CHECK_STR(pl__str(pl__portforward_error(p)), a->error);
            CHECK_STR(pl__str(pod), a->pod);
            pl__portforward_free(p);
        }
    }
}

/* --- what we send ---------------------------------------------------------------------------------- */

static struct pl_portforward *make_open(void)
{
    struct pl_portforward *p = make();

    (void)take_out(p);
    CHECK_INT(pl__portforward_receive(p, BYTES(UPGRADED PORTS)), 0);
    return p;
}

static void check_request(void)
{
    CASE("the request")
    struct pl_portforward *p = make();
    CHECK_STR(
        take_out(p),
        "GET /p/api/v1/namespaces/kube-system/pods/etcd-n1/portforward?ports=2379 HTTP/1.1\r\n"
        "Host: api:6443\r\nUser-Agent: test\r\nAuthorization: Bearer hunter2\r\n"
        "Impersonate-User: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n");
    CHECK_INT(take_out(p).len, 0);
    CHECK_INT(pl__portforward_state(p), PORTFORWARD_UPGRADING);
    CHECK(pl__portforward_write(p, "x", 1) < 0);
    pl__portforward_free(p);

    CASE("the token is overwritten once it is sent")
    p = make();
    struct pl_str request = take_out(p);
    size_t at = 0;
    while (at + 7 < request.len && memcmp(request.ptr + at, "hunter2", 7) != 0)
        at++;
    CHECK(at + 7 < request.len);
    CHECK_INT(take_out(p).len, 0);
    CHECK(request.ptr[at] == '\0'); /* the block stays: it is small */
    pl__portforward_free(p);
}

static void check_frames(void)
{
    CASE("a small message: masked, with the channel")
    struct pl_portforward *p = make_open();
    CHECK_INT(pl__portforward_write(p, "hi", 2), 0);
    struct pl_str out = take_out(p);
    CHECK_INT(out.len, 9);
    CHECK(memcmp(out.ptr, "\x82\x83\0\0\0\0\0hi", 9) == 0);

    CASE("a ping is answered, a pong is not")
    CHECK_INT(pl__portforward_receive(p, BYTES("\x8a\x01y\x89\x02pi")), 0);
    out = take_out(p);
    CHECK(out.len == 8 && memcmp(out.ptr, "\x8a\x82\0\0\0\0pi", 8) == 0);

    CASE("closing says so, once")
    pl__portforward_close(p);
    pl__portforward_close(p);
    out = take_out(p);
    CHECK(out.len == 8 && memcmp(out.ptr, "\x88\x82\0\0\0\0\x03\xe8", 8) == 0);
    CHECK_INT(pl__portforward_state(p), PORTFORWARD_CLOSED);
    CHECK(pl__portforward_write(p, "x", 1) < 0);
    CHECK(pl__portforward_receive(p, "x", 1) < 0);
    pl__portforward_free(p);
}

static void check_large(void)
{
    enum { SIZE = 100 * 1000 };
    char *bytes = calloc(1, SIZE);
    uint64_t payload = 0;
    size_t frames = 0;

    CASE("a large message goes in frames of at most 32 KiB, each whole")
    struct pl_portforward *p = make_open();
    CHECK_INT(pl__portforward_write(p, bytes, SIZE), 0);
    struct pl_str out = take_out(p);
    for (size_t at = 0; at + 8 < out.len; frames++) {
        const uint8_t *head = (const uint8_t *)out.ptr + at;
        size_t size = head[1] & 0x7f, head_size = 6;
        if (size == 126) {
            size = (size_t)head[2] << 8 | head[3];
            head_size = 8;
        }
        CHECK_INT(head[0], 0x82);
        CHECK(size <= 32 * 1024);
        CHECK_INT(head[head_size], 0); /* the channel */
        payload += size - 1;
        at += head_size + size;
    }
    CHECK_INT(frames, 4);
    CHECK_INT(payload, SIZE);

    CASE("no more waits than the maximum")
    int written = 0;
    while (written < 100 && pl__portforward_write(p, bytes, SIZE) == 0)
        written++;
    CHECK_INT(written, PORTFORWARD_BUFFER_MAX / SIZE);
    CHECK(pl__portforward_write(p, bytes, 2 * PORTFORWARD_BUFFER_MAX) < 0);
    CHECK(take_out(p).len <= PORTFORWARD_BUFFER_MAX);
    pl__portforward_free(p);
    free(bytes);
}

/* --- servers that want to fill our memory --------------------------------------------------------------- */

static void check_floods(void)
{
    static const uint8_t huge[] = { 0x82, 0x7f, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00 };
    static uint8_t block[4096];
    int rounds = 0;

    CASE("headers without an end")
    struct pl_portforward *p = make();
    memset(block, 'a', sizeof block);
    while (rounds < 100 && pl__portforward_receive(p, block, sizeof block) == 0)
        rounds++;
    CHECK(rounds < 6);
    CHECK_STR(pl__str(pl__portforward_error(p)), "the server's answer has too many headers");
    pl__portforward_free(p);

    CASE("a refusal without an end")
    p = make();
    CHECK_INT(pl__portforward_receive(p, BYTES("HTTP/1.1 500 x\r\n\r\n")), 0);
    for (rounds = 0; rounds < 100 && pl__portforward_receive(p, block, sizeof block) == 0;)
        rounds++;
    CHECK(rounds < 6);
    CHECK(pl__str_starts_with(pl__str(pl__portforward_error(p)), PL_STR("HTTP 500: aaaa")));
    pl__portforward_free(p);

    CASE("more data than anybody takes")
    p = make_open();
    CHECK_INT(pl__portforward_receive(p, huge, sizeof huge), 0);
    for (rounds = 0; rounds < 1000 && pl__portforward_receive(p, block, sizeof block) == 0;)
        rounds++;
    CHECK_INT(rounds, PORTFORWARD_BUFFER_MAX / 4096);
    CHECK_STR(pl__str(pl__portforward_error(p)), "the pod sends more than anybody takes");
    pl__portforward_free(p);

    CASE("an error without an end")
    p = make_open();
    uint8_t endless[sizeof huge];
    memcpy(endless, huge, sizeof huge);
    endless[10] = 1;
    CHECK_INT(pl__portforward_receive(p, endless, sizeof endless), 0);
    for (rounds = 0; rounds < 1000 && pl__portforward_receive(p, block, sizeof block) == 0;)
        rounds++;
    CHECK_INT(rounds, 1000);
    CHECK_INT(pl__portforward_state(p), PORTFORWARD_OPEN);
    pl__portforward_free(p);

    CASE("pings that nobody takes the answers of")
    p = make_open();
    for (size_t i = 0; i + 2 <= sizeof block; i += 2)
        memcpy(block + i, "\x89\x00", 2);
    for (rounds = 0; rounds < 1000 && pl__portforward_receive(p, block, sizeof block) == 0;)
        rounds++;
    CHECK_INT(rounds, 1000);
    CHECK(take_out(p).len <= PORTFORWARD_BUFFER_MAX);
    pl__portforward_free(p);
}

static void check_sha1(void)
{
    static const struct {
        const char *text;
        uint8_t first, last;
    } rows[] = {
        { "", 0xda, 0x09 },
        { "abc", 0xa9, 0x9d },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0x84, 0xf1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t digest[SHA1_BYTES];
        CASE("SHA-1 of \"%s\"", rows[i].text)
        pl__sha1(rows[i].text, strlen(rows[i].text), digest);
        CHECK_INT(digest[0], rows[i].first);
        CHECK_INT(digest[SHA1_BYTES - 1], rows[i].last);
    }
}

int main(void)
{
    check_sha1();
    check_request();
    check_answers();
    check_frames();
    check_large();
    check_floods();
    return test_end("proto/portforward");
}
