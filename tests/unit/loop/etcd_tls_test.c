/* TLS with a server of OpenSSL in the same process: the good way, every refusal, and bytes that are
 * something else. */
#include "test.h"

#include <malloc.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "etcd_pki.h"
#include "loop/etcd_tls.h"

enum { DAY = 24 * 60 * 60, ROUNDS_MAX = 64 };

static struct pl_arena arena;
static struct pki_cert ca, other_ca;
static struct pl_etcd_cert *ours, *strangers; /* minted by the one and by the other */

/* --- the server --------------------------------------------------------------------------------- */

struct server {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    bool open;
    struct pl_etcd_tls *client;
};

struct server_options {
    const struct pki_cert *cert;
    const struct pki_cert *clients; /* their CA; NULL: `ca` */
    int version;                    /* 0: the newest */
    const char *alpn;               /* NULL: "h2"; "": says nothing */
    const char *name;               /* that we ask for; NULL: "node-1" */
    const struct pl_etcd_cert *with;
};

static int alpn_choose(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                       const unsigned char *in, unsigned int in_size, void *user)
{
    const char *want = user;
    size_t size = strlen(want);

    (void)ssl;
    for (unsigned int at = 0; at < in_size; at += in[at] + 1U) {
        if (in[at] == size && memcmp(in + at + 1, want, size) == 0) {
            *out = in + at + 1;
            *out_size = (unsigned char)size;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return size ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

static void server_new(struct server *s, const struct server_options *options)
{
    *s = (struct server){ .ctx = SSL_CTX_new(TLS_server_method()) };
    SSL_CTX_use_certificate(s->ctx, options->cert->cert);
    SSL_CTX_use_PrivateKey(s->ctx, options->cert->key);
    SSL_CTX_set_verify(s->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(s->ctx),
                        options->clients ? options->clients->cert : ca.cert);
    SSL_CTX_set_alpn_select_cb(s->ctx, alpn_choose,
                               (void *)(uintptr_t)(options->alpn ? options->alpn : "h2"));
    if (options->version)
        SSL_CTX_set_max_proto_version(s->ctx, options->version);
    s->ssl = SSL_new(s->ctx);
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(s->in, -1);
    SSL_set_bio(s->ssl, s->in, s->out);
    SSL_set_accept_state(s->ssl);
    s->client = pl__etcd_tls_new(options->with ? options->with : ours,
                                 options->name ? options->name : "node-1");
}

static void server_free(struct server *s)
{
    pl__etcd_tls_free(s->client);
    SSL_free(s->ssl);
    SSL_CTX_free(s->ctx);
    ERR_clear_error();
}

/* Bytes of the client to the server; true when there were any. */
static bool carry_out(struct server *s)
{
    const uint8_t *bytes;
    size_t size = pl__etcd_tls_send(s->client, &bytes);

    if (size)
        BIO_write(s->in, bytes, (int)size);
    return size > 0;
}

/* Bytes of the server to the client, in pieces of `step`. */
static bool carry_in(struct server *s, size_t step)
{
    char piece[16 * 1024];
    int size;
    bool any = false;

    while ((size = BIO_read(s->out, piece, step < sizeof piece ? (int)step : (int)sizeof piece)) >
           0) {
        pl__etcd_tls_receive(s->client, piece, (size_t)size);
        any = true;
    }
    return any;
}

static void run_handshake(struct server *s, size_t step)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool moved = carry_out(s);
        if (!s->open)
            s->open = SSL_do_handshake(s->ssl) == 1;
        ERR_clear_error();
        if (!carry_in(s, step) && !moved)
            return;
    }
}

/* What the client reads, up to a NUL. */
static const char *read_all(struct server *s)
{
    static char room[64 * 1024];
    size_t size = 0, got;

    while ((got = pl__etcd_tls_read(s->client, room + size, sizeof room - 1 - size)) > 0)
        size += got;
    room[size] = '\0';
    return room;
}

/* --- the good way ------------------------------------------------------------------------------- */

static void test_good(const struct server_options *options, size_t step)
{
    struct server s;
    char got[64] = "";

    server_new(&s, options);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_HANDSHAKING);
    CHECK_INT(pl__etcd_tls_write(s.client, "early", 5), -1);
    run_handshake(&s, step);
    CHECK(s.open);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_OPEN);
    CHECK_INT(pl__etcd_tls_write(s.client, "hello", 5), 0);
    CHECK_INT(pl__etcd_tls_write(s.client, ", etcd", 6), 0);
    carry_out(&s);
    int size = SSL_read(s.ssl, got, 5);
    size += SSL_read(s.ssl, got + 5, 6);
    CHECK_INT(size, 11);
    CHECK_STR(pl__str(got), "hello, etcd");
    CHECK(!carry_out(&s));

    static char large[40000]; /* three records */
    memset(large, 'L', sizeof large);
    SSL_write(s.ssl, large, sizeof large);
    SSL_write(s.ssl, "end", 3);
    carry_in(&s, step);
    const char *text = read_all(&s);
    CHECK_INT(strlen(text), sizeof large + 3);
    CHECK_STR(pl__str(text + sizeof large), "end");

    SSL_shutdown(s.ssl);
    carry_in(&s, step);
    CHECK_STR(pl__str(read_all(&s)), "");
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    CHECK_INT(pl__etcd_tls_failure(s.client), ETCD_TLS_FINE);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), "");
    CHECK_INT(pl__etcd_tls_write(s.client, "late", 4), -1);
    CHECK_INT(pl__etcd_tls_receive(s.client, "late", 4), -1);
    server_free(&s);
}

/* tls.crt may have a CA that another one signed, without that other one. */
static void test_intermediate(void)
{
    struct pki_cert middle = pki_make(EVP_EC_gen("P-256"), &ca, "middle", NULL, -DAY, 3650L * DAY);
    struct pki_cert leaf =
        pki_make(EVP_EC_gen("P-256"), &middle, "node-1", "DNS:node-1", -DAY, DAY);
    struct pl_etcd_cert *cert = NULL;
    struct server s;

    CASE("a CA that did not sign itself")
    pl__etcd_cert_mint(pki_cert_pem(&arena, &middle), pki_key_pem(&arena, &middle, false),
                       (int64_t)time(NULL) * 1000, &arena, &cert, NULL);
    server_new(&s, &(struct server_options){ .cert = &leaf, .clients = &middle, .with = cert });
    X509_STORE_set_flags(SSL_CTX_get_cert_store(s.ctx), X509_V_FLAG_PARTIAL_CHAIN);
    run_handshake(&s, SIZE_MAX);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_OPEN);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), "");
    server_free(&s);
    pl__etcd_cert_free(cert);
    pki_free(&leaf);
    pki_free(&middle);
}

static void test_our_end(const struct server_options *options)
{
    struct server s;
    char byte;

    CASE("we say goodbye")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    pl__etcd_tls_close(s.client);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    CHECK_INT(pl__etcd_tls_failure(s.client), ETCD_TLS_FINE);
    CHECK(carry_out(&s));
    CHECK(SSL_read(s.ssl, &byte, 1) <= 0);
    CHECK_INT(SSL_get_shutdown(s.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    server_free(&s);
}

/* --- refusals ----------------------------------------------------------------------------------- */

static void expect_failure(const char *name, const struct server_options *options,
                           enum pl_etcd_tls_failure failure, const char *error)
{
    struct server s;

    CASE("%s", name)
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    read_all(&s);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    CHECK_INT(pl__etcd_tls_failure(s.client), failure);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), error);
    /* The first reason stays. */
    pl__etcd_tls_receive_end(s.client);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), error);
    server_free(&s);
}

static void test_server_certificates(const struct pki_cert *good)
{
    struct pki_cert foreign =
        pki_make(EVP_EC_gen("P-256"), &other_ca, "node-1", "DNS:node-1", -DAY, DAY);
    struct pki_cert alone = pki_make(EVP_EC_gen("P-256"), NULL, "node-1", NULL, -DAY, DAY);
    struct pki_cert expired =
        pki_make(EVP_EC_gen("P-256"), &ca, "node-1", "DNS:node-1", -2L * DAY, -DAY);
    struct pki_cert early =
        pki_make(EVP_EC_gen("P-256"), &ca, "node-1", "DNS:node-1", DAY, 2L * DAY);

    expect_failure("their certificate is another CA's",
                   &(struct server_options){ .cert = &foreign }, ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not signed by the cluster's etcd CA");
    expect_failure("their certificate is its own", &(struct server_options){ .cert = &alone },
                   ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not signed by the cluster's etcd CA");
    expect_failure("their certificate has expired", &(struct server_options){ .cert = &expired },
                   ETCD_TLS_UNTRUSTED, "the server's certificate, or its CA's, has expired");
    expect_failure("their certificate begins tomorrow", &(struct server_options){ .cert = &early },
                   ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not good: certificate is not yet valid");
    expect_failure("the name of the pod is not in it",
                   &(struct server_options){ .cert = good, .name = "etcd-node-1" },
                   ETCD_TLS_UNTRUSTED, "the server's certificate is not for etcd-node-1");
    expect_failure("nor is this address",
                   &(struct server_options){ .cert = good, .name = "10.0.0.9" }, ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not for 10.0.0.9");
    pki_free(&foreign);
    pki_free(&alone);
    pki_free(&expired);
    pki_free(&early);
}

static void test_our_certificate(const struct pki_cert *good)
{
    expect_failure("ours is refused, TLS 1.3: after our handshake",
                   &(struct server_options){ .cert = good, .clients = &other_ca },
                   ETCD_TLS_UNTRUSTED, "the server refused our client certificate: unknown CA");
    expect_failure(
        "ours is refused, TLS 1.2: within it",
        &(struct server_options){ .cert = good, .clients = &other_ca, .version = TLS1_2_VERSION },
        ETCD_TLS_UNTRUSTED, "the server refused our client certificate: unknown CA");
    expect_failure("a stranger's CA does not trust the server, either",
                   &(struct server_options){ .cert = good, .with = strangers }, ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not signed by the cluster's etcd CA");
}

static void test_protocol(const struct pki_cert *good)
{
    expect_failure("a server that knows no ALPN",
                   &(struct server_options){ .cert = good, .alpn = "" }, ETCD_TLS_BROKEN,
                   "the server does not speak HTTP/2");
    expect_failure("a server that refuses h2",
                   &(struct server_options){ .cert = good, .alpn = "http/1.1" }, ETCD_TLS_BROKEN,
                   "the server does not speak HTTP/2");
    expect_failure("a name that is none", &(struct server_options){ .cert = good, .name = "" },
                   ETCD_TLS_BROKEN, "the name of the server is empty, or no name at all");
}

/* --- other bytes -------------------------------------------------------------------------------- */

static void test_alerts(void)
{
    static const struct {
        uint8_t alert;
        enum pl_etcd_tls_failure failure;
        const char *error;
    } alerts[] = {
        { 42, ETCD_TLS_UNTRUSTED, "the server refused our client certificate: bad certificate" },
        { 48, ETCD_TLS_UNTRUSTED, "the server refused our client certificate: unknown CA" },
        { 116, ETCD_TLS_UNTRUSTED, "the server refused our client certificate: unknown" },
        { 40, ETCD_TLS_BROKEN, "the server ended TLS: handshake failure" },
        { 120, ETCD_TLS_BROKEN, "the server does not speak HTTP/2" },
    };

    for (size_t i = 0; i < sizeof alerts / sizeof alerts[0]; i++) {
        CASE("alert %d", alerts[i].alert)
        struct pl_etcd_tls *tls = pl__etcd_tls_new(ours, "node-1");
        uint8_t record[] = { 21, 3, 3, 0, 2, 2, alerts[i].alert };
        CHECK_INT(pl__etcd_tls_receive(tls, record, sizeof record), -1);
        CHECK_INT(pl__etcd_tls_failure(tls), alerts[i].failure);
        CHECK_STR(pl__str(pl__etcd_tls_error(tls)), alerts[i].error);
        pl__etcd_tls_free(tls);
    }
}

static void test_not_tls(void)
{
    static const struct pl_str answers[] = {
        PL_STR_INIT("HTTP/1.1 400 Bad Request\r\n\r\n"),
        PL_STR_INIT("\0\0\0\4\0\0\0\0\0"), /* HTTP/2 without TLS */
        PL_STR_INIT("x"),
    };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        CASE("not TLS, %zu", i)
        struct pl_etcd_tls *tls = pl__etcd_tls_new(ours, "node-1");
        CHECK_INT(pl__etcd_tls_receive(tls, answers[i].ptr, answers[i].len), -1);
        CHECK_INT(pl__etcd_tls_failure(tls), ETCD_TLS_BROKEN);
        CHECK_STR(pl__str(pl__etcd_tls_error(tls)), "what answers is not TLS");
        pl__etcd_tls_free(tls);
    }

    CASE("a record of rubbish")
    struct pl_etcd_tls *tls = pl__etcd_tls_new(ours, "node-1");
    CHECK_INT(pl__etcd_tls_receive(tls, "\x16\x03\x03\x00\x04zzzz", 9), -1);
    CHECK_INT(pl__etcd_tls_failure(tls), ETCD_TLS_BROKEN);
    CHECK(pl__str_starts_with(pl__str(pl__etcd_tls_error(tls)), PL_STR("TLS: ")));
    const uint8_t *bytes;
    CHECK(pl__etcd_tls_send(tls, &bytes) > 0); /* what is left, and the alert */
    CHECK_INT(pl__etcd_tls_send(tls, &bytes), 0);
    pl__etcd_tls_free(tls);

    CASE("closed in the handshake: at once, and half way")
    tls = pl__etcd_tls_new(ours, "node-1");
    pl__etcd_tls_receive_end(tls);
    CHECK_INT(pl__etcd_tls_failure(tls), ETCD_TLS_BROKEN);
    CHECK_STR(pl__str(pl__etcd_tls_error(tls)),
              "the connection was closed during the TLS handshake");
    pl__etcd_tls_free(tls);
    tls = pl__etcd_tls_new(ours, "node-1");
    CHECK_INT(pl__etcd_tls_receive(tls, "\x16\x03", 2), 0);
    pl__etcd_tls_receive_end(tls);
    CHECK_INT(pl__etcd_tls_state(tls), ETCD_TLS_CLOSED);
    pl__etcd_tls_free(tls);
}

static void test_cut(const struct server_options *options)
{
    struct server s;
    char buffer[4096] = "";

    CASE("cut right after the handshake")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    read_all(&s);
    pl__etcd_tls_receive_end(s.client);
    read_all(&s);
    CHECK_STR(
        pl__str(pl__etcd_tls_error(s.client)),
        "the connection was closed right after the TLS handshake: the server may have refused "
        "our client certificate");
    CHECK_INT(pl__etcd_tls_failure(s.client), ETCD_TLS_BROKEN);
    server_free(&s);

    CASE("cut later: what had come is read first")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    SSL_write(s.ssl, "data", 4);
    carry_in(&s, SIZE_MAX);
    pl__etcd_tls_receive_end(s.client);
    CHECK_STR(pl__str(read_all(&s)), "data");
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), "the connection was closed");
    server_free(&s);

    CASE("a record that was changed on the way")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    SSL_write(s.ssl, "data", 4);
    int size = BIO_read(s.out, buffer, sizeof buffer);
    buffer[size - 1] ^= 1;
    pl__etcd_tls_receive(s.client, buffer, (size_t)size);
    CHECK_STR(pl__str(read_all(&s)), "");
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    CHECK_INT(pl__etcd_tls_failure(s.client), ETCD_TLS_BROKEN);
    server_free(&s);
}

static void test_bounds(const struct server_options *options)
{
    static char zeros[ETCD_TLS_BUFFER_MAX + 1];
    struct server s;

    CASE("more is not taken than is read")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    int result = 0;
    for (int i = 0; i < 64 && result == 0; i++) {
        SSL_write(s.ssl, zeros, 16384);
        char *bytes = NULL;
        long size = BIO_get_mem_data(s.out, &bytes);
        result = pl__etcd_tls_receive(s.client, bytes, (size_t)size);
        (void)BIO_reset(s.out);
    }
    CHECK_INT(result, -1);
    CHECK_STR(pl__str(pl__etcd_tls_error(s.client)), "more came than was read");
    server_free(&s);

    CASE("nor written than is sent")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    CHECK_INT(pl__etcd_tls_write(s.client, zeros, sizeof zeros), -1);
    CHECK_INT(pl__etcd_tls_write(s.client, zeros, 200000), 0);
    CHECK_INT(pl__etcd_tls_write(s.client, zeros, 100000), -1);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_OPEN);
    carry_out(&s);
    CHECK_INT(pl__etcd_tls_write(s.client, zeros, 100000), 0);
    server_free(&s);
}

/* A server that asks for new keys again and again, and would have each answered. */
static void test_key_updates(const struct server_options *options)
{
    struct server s;
    size_t most = 0;

    CASE("endless changes of keys")
    server_new(&s, options);
    run_handshake(&s, SIZE_MAX);
    read_all(&s);
    for (int i = 0; i < 20000 && pl__etcd_tls_state(s.client) == ETCD_TLS_OPEN; i++) {
        SSL_key_update(s.ssl, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(s.ssl);
        carry_in(&s, SIZE_MAX);
        read_all(&s);
    }
    const uint8_t *bytes;
    most = pl__etcd_tls_send(s.client, &bytes);
    CHECK(most <= ETCD_TLS_BUFFER_MAX + 1024);
    CHECK_INT(pl__etcd_tls_state(s.client), ETCD_TLS_CLOSED);
    server_free(&s);
}

/* A remark: what an open connection costs while nothing is said. */
static void measure(const struct server_options *options)
{
    enum { CONNECTIONS = 100 };
    static struct server servers[CONNECTIONS];
    static char large[40000];

    for (int i = 0; i < CONNECTIONS; i++) {
        server_new(&servers[i], options);
        run_handshake(&servers[i], SIZE_MAX);
        SSL_write(servers[i].ssl, large, sizeof large);
        carry_in(&servers[i], SIZE_MAX);
        read_all(&servers[i]);
        pl__etcd_tls_write(servers[i].client, large, 1000);
        carry_out(&servers[i]);
        carry_out(&servers[i]);
    }
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < CONNECTIONS; i++)
        pl__etcd_tls_free(servers[i].client);
    size_t held = before - mallinfo2().uordblks;
    for (int i = 0; i < CONNECTIONS; i++) {
        servers[i].client = NULL;
        server_free(&servers[i]);
    }
    before = mallinfo2().uordblks;
    struct pl_etcd_cert *certs[8] = { 0 };
    for (int i = 0; i < 8; i++)
        pl__etcd_cert_mint(pki_cert_pem(&arena, &ca), pki_key_pem(&arena, &ca, false),
                           (int64_t)time(NULL) * 1000, &arena, &certs[i], NULL);
    size_t minted = mallinfo2().uordblks - before;
    for (int i = 0; i < 8; i++)
        pl__etcd_cert_free(certs[i]);
    if (held)
        printf(
            "remark: an idle connection holds %zu bytes of heap, a certificate with its CA %zu\n",
            held / CONNECTIONS, minted / 8);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    ca = pki_make(EVP_EC_gen("P-256"), NULL, "kubernetes", NULL, -DAY, 3650L * DAY);
    other_ca = pki_make(EVP_EC_gen("P-256"), NULL, "kubernetes", NULL, -DAY, 3650L * DAY);
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    pl__etcd_cert_mint(pki_cert_pem(&arena, &ca), pki_key_pem(&arena, &ca, false), now_ms, &arena,
                       &ours, NULL);
    pl__etcd_cert_mint(pki_cert_pem(&arena, &other_ca), pki_key_pem(&arena, &other_ca, false),
                       now_ms, &arena, &strangers, NULL);
    struct pki_cert good = pki_make(EVP_EC_gen("P-256"), &ca, "node-1",
                                    "DNS:node-1,DNS:localhost,IP:127.0.0.1,IP:::1", -DAY, DAY);
    struct server_options options = { .cert = &good };

    CASE("TLS 1.3")
    test_good(&options, SIZE_MAX);
    CASE("TLS 1.3, a byte at a time")
    test_good(&options, 1);
    CASE("TLS 1.2")
    test_good(&(struct server_options){ .cert = &good, .version = TLS1_2_VERSION }, SIZE_MAX);
    CASE("an address in place of a name")
    test_good(&(struct server_options){ .cert = &good, .name = "127.0.0.1" }, SIZE_MAX);
    CASE("an address of IPv6")
    test_good(&(struct server_options){ .cert = &good, .name = "::1" }, SIZE_MAX);
    test_intermediate();
    test_our_end(&options);
    test_server_certificates(&good);
    test_our_certificate(&good);
    test_protocol(&good);
    test_alerts();
    test_not_tls();
    test_cut(&options);
    test_bounds(&options);
    test_key_updates(&options);
    measure(&options);

    pl__etcd_cert_free(ours);
    pl__etcd_cert_free(strangers);
    pki_free(&good);
    pki_free(&ca);
    pki_free(&other_ca);
    pl__arena_release(&arena);
    return test_end("etcd tls");
}
