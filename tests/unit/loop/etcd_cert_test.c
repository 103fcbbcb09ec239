/* Client certificates for etcd, minted from authorities as they come: RSA and EC, several in one file,
 * renewed, expired, wrong. */
#include "test.h"

#include <openssl/ssl.h>

#include "etcd_pki.h"
#include "loop/etcd_cert.h"

static struct pl_arena arena;

enum { DAY = 24 * 60 * 60, MINUTE = 60 };

static int64_t now_ms(void)
{
    return (int64_t)time(NULL) * 1000;
}

static struct pl_etcd_cert *mint(struct pl_str ca_pem, struct pl_str key_pem)
{
    struct pl_etcd_cert *cert = NULL;
    struct pl_error *err = NULL;

    CHECK_INT(pl__etcd_cert_mint(ca_pem, key_pem, now_ms(), &arena, &cert, &err), 0);
    if (err)
        CHECK_STR(pl__error_text(&arena, err), "");
    return cert;
}

static void expect_error(struct pl_str ca_pem, struct pl_str key_pem, const char *text)
{
    struct pl_etcd_cert *cert = NULL;
    struct pl_error *err = NULL;

    CHECK_INT(pl__etcd_cert_mint(ca_pem, key_pem, now_ms(), &arena, &cert, &err), -1);
    CHECK(cert == NULL);
    CHECK_STR(err ? pl__error_text(&arena, err) : PL_STR(""), text);
}

static X509 *leaf(const struct pl_etcd_cert *cert)
{
    return SSL_CTX_get0_certificate(pl__etcd_cert_ssl_ctx(cert));
}

/* Seconds from now to a time of a certificate. */
static long seconds_to(const ASN1_TIME *time)
{
    int days = 0, seconds = 0;

    ASN1_TIME_diff(&days, &seconds, NULL, time);
    return (long)days * DAY + seconds;
}

static bool near(long got, long want)
{
    return got >= want - 5 && got <= want + 5;
}

static void test_contents(const struct pki_cert *ca)
{
    char name[64] = "";

    CASE("what it says")
    struct pl_etcd_cert *cert = mint(pki_cert_pem(&arena, ca), pki_key_pem(&arena, ca, true));
    if (!cert)
        return;
    X509 *x = leaf(cert);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof name);
    CHECK_STR(pl__str(name), "cluster-api.x-k8s.io");
    CHECK_INT(X509_NAME_entry_count(X509_get_subject_name(x)), 1);
    CHECK(X509_NAME_cmp(X509_get_issuer_name(x), X509_get_subject_name(ca->cert)) == 0);
    CHECK_INT(X509_verify(x, ca->key), 1);
    CHECK_INT(X509_get_extended_key_usage(x), XKU_SSL_CLIENT);
    CHECK_INT(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    CHECK_INT(EVP_PKEY_get_base_id(X509_get0_pubkey(x)), EVP_PKEY_EC);
    CHECK_INT(EVP_PKEY_get_bits(X509_get0_pubkey(x)), 256);
    CHECK(X509_get_ext_by_NID(x, NID_subject_alt_name, -1) < 0);
    CHECK(X509_get0_authority_key_id(x) != NULL);
    CHECK(near(seconds_to(X509_get0_notBefore(x)), -5 * MINUTE));
    CHECK(near(seconds_to(X509_get0_notAfter(x)), DAY));
    CHECK(near((long)((pl__etcd_cert_renew_at_ms(cert) - now_ms()) / 1000), DAY / 2));
    uint64_t serial = 0;
    CHECK(ASN1_INTEGER_get_uint64(&serial, X509_get0_serialNumber(x)) == 1 && serial > 1);

    CASE("each has a key and a number of its own")
    struct pl_etcd_cert *other = mint(pki_cert_pem(&arena, ca), pki_key_pem(&arena, ca, true));
    if (other) {
        CHECK(ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(leaf(other))) !=
              0);
        CHECK(EVP_PKEY_eq(X509_get0_pubkey(x), X509_get0_pubkey(leaf(other))) == 0);
    }
    pl__etcd_cert_free(other);
    pl__etcd_cert_free(cert);
}

static void test_keys(const struct pki_cert *rsa, const struct pki_cert *ec)
{
    static const char parameters[] =
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    struct pl_str rsa_pem = pki_cert_pem(&arena, rsa), ec_pem = pki_cert_pem(&arena, ec);

    CASE("RSA, PKCS#1 and PKCS#8")
    CHECK(pl__str_contains(pki_key_pem(&arena, rsa, true), PL_STR("BEGIN RSA PRIVATE")));
    pl__etcd_cert_free(mint(rsa_pem, pki_key_pem(&arena, rsa, true)));
    pl__etcd_cert_free(mint(rsa_pem, pki_key_pem(&arena, rsa, false)));
    CASE("EC, SEC1 and PKCS#8, and as openssl ecparam writes it")
    CHECK(pl__str_contains(pki_key_pem(&arena, ec, true), PL_STR("BEGIN EC PRIVATE")));
    pl__etcd_cert_free(mint(ec_pem, pki_key_pem(&arena, ec, true)));
    pl__etcd_cert_free(mint(ec_pem, pki_key_pem(&arena, ec, false)));
    pl__etcd_cert_free(
        mint(ec_pem, pki_join(&arena, pl__str(parameters), pki_key_pem(&arena, ec, true))));
    CASE("several authorities: the one that has the key signs, wherever it stands")
    struct pl_str both = pki_join(&arena, rsa_pem, ec_pem);
    struct pl_etcd_cert *cert = mint(both, pki_key_pem(&arena, ec, false));
    if (cert)
        CHECK_INT(X509_verify(leaf(cert), ec->key), 1);
    CHECK_INT(cert ? sk_X509_OBJECT_num(X509_STORE_get0_objects(
                         SSL_CTX_get_cert_store(pl__etcd_cert_ssl_ctx(cert))))
                   : 0,
              2);
    pl__etcd_cert_free(cert);
}

static void test_errors(const struct pki_cert *rsa, const struct pki_cert *ec)
{
    struct pl_str pem = pki_cert_pem(&arena, rsa), key = pki_key_pem(&arena, rsa, false);
    BIO *bio = BIO_new(BIO_s_mem());

    CASE("nothing, not PEM, each in the other's place")
    expect_error(PL_STR(""), key, "etcd CA: there is no certificate in the PEM of tls.crt");
    expect_error(PL_STR("rubbish"), key, "etcd CA: there is no certificate in the PEM of tls.crt");
    expect_error(key, pem, "etcd CA: there is no certificate in the PEM of tls.crt");
    expect_error(pem, PL_STR(""), "etcd CA: there is no private key in the PEM of tls.key");
    expect_error(pem, pem, "etcd CA: there is no private key in the PEM of tls.key");
    CASE("half a file")
    expect_error((struct pl_str){ pem.ptr, pem.len / 2 }, key,
                 "etcd CA: there is no certificate in the PEM of tls.crt");
    expect_error(pem, (struct pl_str){ key.ptr, key.len / 2 },
                 "etcd CA: there is no private key in the PEM of tls.key");
    CASE("an encrypted key")
    PEM_write_bio_PrivateKey(bio, rsa->key, EVP_aes_128_cbc(), (const unsigned char *)"pw", 2, NULL,
                             NULL);
    expect_error(pem, pki_text(&arena, bio),
                 "etcd CA: tls.key is encrypted, which is not supported");
    CASE("someone else's key")
    expect_error(pem, pki_key_pem(&arena, ec, false),
                 "etcd CA: tls.key belongs to no certificate of tls.crt");
}

static EVP_PKEY *shared(EVP_PKEY *key)
{
    EVP_PKEY_up_ref(key);
    return key;
}

static void test_times(const struct pki_cert *ec)
{
    struct pki_cert old =
        pki_make(shared(ec->key), NULL, "kubernetes", NULL, -10L * DAY, -1L * MINUTE);
    struct pki_cert brief =
        pki_make(shared(ec->key), NULL, "kubernetes", NULL, -10L * DAY, 60L * MINUTE);
    struct pl_str key = pki_key_pem(&arena, ec, false);

    CASE("a CA that has expired")
    expect_error(pki_cert_pem(&arena, &old), key, "etcd CA: the CA in tls.crt has expired");
    CASE("one that was renewed with its key stands behind the old one")
    pl__etcd_cert_free(
        mint(pki_join(&arena, pki_cert_pem(&arena, &old), pki_cert_pem(&arena, ec)), key));
    CASE("one that ends within the hour: so do we, and renew before")
    struct pl_etcd_cert *cert = mint(pki_cert_pem(&arena, &brief), key);
    if (cert) {
        CHECK(near(seconds_to(X509_get0_notAfter(leaf(cert))), 60L * MINUTE));
        CHECK(near((long)((pl__etcd_cert_renew_at_ms(cert) - now_ms()) / 1000), 30L * MINUTE));
    }
    pl__etcd_cert_free(cert);
    pki_free(&old);
    pki_free(&brief);
}

static void test_source(const struct pki_cert *ec)
{
    struct pl_str pem = pki_cert_pem(&arena, ec), key = pki_key_pem(&arena, ec, false);

    CASE("it knows what it was made from")
    struct pl_etcd_cert *cert = mint(pem, key);
    if (!cert)
        return;
    CHECK(pl__etcd_cert_is_from(cert, pem, key));
    CHECK(!pl__etcd_cert_is_from(cert, pem, pki_key_pem(&arena, ec, true)));
    CHECK(!pl__etcd_cert_is_from(cert, pki_join(&arena, pem, PL_STR("\n")), key));
    /* The same bytes in a row, cut at another place. */
    struct pl_str row = pki_join(&arena, pem, key);
    CHECK(!pl__etcd_cert_is_from(cert, (struct pl_str){ row.ptr, pem.len - 1 },
                                 (struct pl_str){ row.ptr + pem.len - 1, key.len + 1 }));
    pl__etcd_cert_free(cert);
    pl__etcd_cert_free(NULL);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    struct pki_cert rsa = pki_make(EVP_RSA_gen(2048), NULL, "kubernetes", NULL, -DAY, 3650L * DAY);
    struct pki_cert ec = pki_make(EVP_EC_gen("P-256"), NULL, "kubernetes", NULL, -DAY, 3650L * DAY);

    test_contents(&rsa);
    test_keys(&rsa, &ec);
    test_errors(&rsa, &ec);
    test_times(&ec);
    test_source(&ec);
    pki_free(&rsa);
    pki_free(&ec);
    pl__arena_release(&arena);
    return test_end("etcd certificate");
}
