/* kubeconfig text in, one context out; what plugins are told and answer; base64. */
#include "test.h"

#include <assert.h>

#include "base/base64.h"
#include "base/secret.h"
#include "proto/exec_credential.h"
#include "proto/kubeconfig.h"

static struct pl_arena arena;
static struct pl_kube_config config;

static const char basic[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: one\n"
                            "contexts:\n"
                            "- name: one\n"
                            "  context: {cluster: c1, user: u1, namespace: team-a}\n"
                            "- name: two\n"
                            "  context: {cluster: c2, user: u2}\n"
                            "- {name: nouser, context: {cluster: c1}}\n"
                            "- {name: nocluster, context: {cluster: gone, user: u1}}\n"
                            "- {name: lostuser, context: {cluster: c1, user: gone}}\n"
                            "clusters:\n"
                            "- name: c1\n"
                            "  cluster:\n"
                            "    server: https://127.0.0.1:6443/\n"
                            "    certificate-authority-data: Q0EgUEVN\n"
                            "    certificate-authority: ignored.pem\n"
                            "- name: c2\n"
                            "  cluster:\n"
                            "    server: https://example.test/k8s/c-1/?x=1#y\n"
                            "    certificate-authority: pki/ca.pem\n"
                            "    tls-server-name: kube.test\n"
                            "    proxy-url: socks5://127.0.0.1:1080\n"
                            "    disable-compression: true\n"
                            "users:\n"
                            "- name: u1\n"
                            "  user:\n"
                            "    client-certificate-data: Q0VSVA==\n"
                            "    client-key-data: S0VZ\n"
                            "    client-certificate: ignored.pem\n"
                            "    client-key: ignored.key\n"
                            "- name: u2\n"
                            "  user:\n"
                            "    client-certificate: /etc/cert.pem\n"
                            "    client-key: key.pem\n"
                            "    token: abc\n"
                            "    tokenFile: token\n"
                            "    as: jane\n"
                            "    as-uid: u-1\n"
                            "    as-groups: [g1, g2]\n"
                            "    as-user-extra: {scopes: [a, b], 'x/y': [c]}\n";

static int parse(const char *text, const char *context, struct pl_error **err)
{
    config = (struct pl_kube_config){ 0 };
    return pl__kubeconfig_parse(&arena, pl__str(text), PL_STR("kc"), PL_STR("/home/me/.kube"),
                                pl__str(context), &config, err);
}

static void parse_ok(const char *text, const char *context)
{
    struct pl_error *err = NULL;

    if (parse(text, context, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
}

static void parse_fails(const char *text, const char *context, const char *want)
{
    struct pl_error *err = NULL;

    CHECK(parse(text, context, &err) < 0);
    if (err)
        CHECK_STR(pl__error_text(&arena, err), want);
}

/* A kubeconfig with one cluster and one user, which are given as flow mappings. */
static const char *with(const char *cluster, const char *user)
{
    return pl__str_format(
               &arena,
               "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
               " clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}]}",
               cluster, user)
        .ptr;
}

static void test_contexts(void)
{
    CASE("the current context; embedded data wins over files");
    parse_ok(basic, NULL);
    CHECK_STR(config.server, "https://127.0.0.1:6443");
    CHECK_STR(config.namespace_, "team-a");
    CHECK_STR(config.ca_pem, "CA PEM");
    CHECK_STR(config.ca_file, "");
    CHECK_STR(config.client_cert_pem, "CERT");
    CHECK_STR(config.client_cert_file, "");
    CHECK_STR(config.client_key_pem, "KEY");
    CHECK_STR(config.client_key_file, "");
    CHECK(!config.insecure_skip_tls_verify && !config.disable_compression && !config.exec.present);
    CASE("another context; relative files; a path prefix without query and fragment");
    parse_ok(basic, "two");
    CHECK_STR(config.server, "https://example.test/k8s/c-1");
    CHECK_STR(config.namespace_, "default");
    CHECK_STR(config.ca_file, "/home/me/.kube/pki/ca.pem");
    CHECK_STR(config.client_cert_file, "/etc/cert.pem");
    CHECK_STR(config.client_key_file, "/home/me/.kube/key.pem");
    CHECK_STR(config.token, "abc");
    CHECK_STR(config.token_file, "/home/me/.kube/token");
    CHECK_STR(config.tls_server_name, "kube.test");
    CHECK_STR(config.proxy_url, "socks5://127.0.0.1:1080");
    CHECK(config.disable_compression);
    CASE("impersonation");
    CHECK_STR(config.as_user, "jane");
    CHECK_STR(config.as_uid, "u-1");
    CHECK_INT(config.as_groups.count, 2);
    CHECK_STR(config.as_groups.items[1], "g2");
    CHECK_INT(config.as_extra.count, 3);
    CHECK_STR(config.as_extra.items[1].key, "scopes");
    CHECK_STR(config.as_extra.items[1].value, "b");
    CHECK_STR(config.as_extra.items[2].key, "x/y");
    CASE("a context without user");
    parse_ok(basic, "nouser");
    CHECK_STR(config.token, "");

    CASE("contexts that lead nowhere");
    parse_fails(basic, "three", "kc: no context \"three\"");
    parse_fails(basic, "nocluster", "kc: context \"nocluster\": no cluster \"gone\"");
    parse_fails(basic, "lostuser", "kc: context \"lostuser\": no user \"gone\"");
    parse_fails("kind: Config\n", NULL,
                "kc: no current-context is set and no context was asked for");
    parse_fails("", NULL, "kc: no current-context is set and no context was asked for");
    CASE("not a kubeconfig");
    parse_fails("kind: Secret\n", NULL, "kc: not a kubeconfig: kind is Secret");
    struct pl_error *err = NULL;
    CHECK(parse("[1, 2]", NULL, &err) < 0);
    CHECK(parse("a: [", NULL, &err) < 0);
    CHECK(parse("kind: Config\n---\nkind: Config\n", NULL, &err) < 0);
    CASE("JSON");
    parse_ok(
        "{\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"c\"}}]"
        ","
        "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https://h:1\"}}],\"users\":null}",
        NULL);
    CHECK_STR(config.server, "https://h:1");
}

static void test_clusters(void)
{
    static const struct {
        const char *cluster, *server;
    } good[] = {
        { "server: 'https://a'", "https://a" },
        { "server: 'https://a///'", "https://a" },
        { "server: 'http://a:8080/p/'", "http://a:8080/p" },
        { "server: 'https://[::1]:6443'", "https://[::1]:6443" },
        { "server: 'a:8080'", "http://a:8080" },
        { "server: 'a:6443', insecure-skip-tls-verify: true", "https://a:6443" },
        { "server: 'a', certificate-authority: x", "https://a" },
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CASE("%s", good[i].cluster);
        parse_ok(with(good[i].cluster, ""), NULL);
        CHECK_STR(config.server, good[i].server);
    }
    static const struct {
        const char *cluster, *error;
    } bad[] = {
        { "", "no server" },
        { "server: ''", "no server" },
        { "server: 'ftp://a'", "server must start with https:// or http://" },
        { "server: 'https://'", "server must start with https:// or http://" },
        { "server: 'https:///x'", "server names no host" },
        { "server: 'https://:80'", "server names no host" },
        { "server: 'https://u:p@h'", "server must not carry a user name or password" },
        { "server: 'https://a b'", "server has white space or control characters in it" },
        { "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority: x",
          "insecure-skip-tls-verify and a certificate authority exclude each other" },
        { "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority-data: QQ==",
          "insecure-skip-tls-verify and a certificate authority exclude each other" },
        { "server: 'https://a', certificate-authority-data: '!'",
          "certificate-authority-data is not base64" },
        { "server: 'https://a', proxy-url: 'ftp://x'",
          "proxy-url must start with http://, https:// or socks5://" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("bad cluster: %s", bad[i].cluster);
        parse_fails(with(bad[i].cluster, ""), NULL,
                    pl__str_format(&arena, "kc: cluster \"c\": %s", bad[i].error).ptr);
    }
}

static void test_users(void)
{
    static const char server[] = "server: 'https://a'";

    CASE("bare numbers and booleans are still text");
    parse_ok(with(server, "username: 007, password: 123456"), NULL);
    CHECK_STR(config.password, "123456");
    parse_ok(with(server, "token: true"), NULL);
    CHECK_STR(config.token, "true");
    CASE("a plugin");
    parse_ok(with(server,
                  "exec: {command: ./bin/get, apiVersion: client.authentication.k8s.io/v1,"
                  " interactiveMode: IfAvailable, provideClusterInfo: true, installHint: hint,"
                  " args: [a, b], env: [{name: NAME, value: v=1}, {name: E, value: ''}]}"),
             NULL);
    CHECK(config.exec.present && config.exec.provide_cluster_info);
    CHECK_STR(config.exec.command, "/home/me/.kube/./bin/get");
    CHECK_INT(config.exec.args.count, 2);
    CHECK_INT(config.exec.env.count, 2);
    CHECK_STR(config.exec.env.items[0], "NAME=v=1");
    CHECK_STR(config.exec.env.items[1], "E=");
    CHECK_STR(config.exec.install_hint, "hint");
    CASE("a plugin in $PATH, v1beta1 without interactiveMode");
    parse_ok(with(server, "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1beta1}"),
             NULL);
    CHECK_STR(config.exec.command, "aws");

    static const struct {
        const char *user, *error;
    } bad[] = {
        { "token: s3cret, username: a",
          "a token and a user name with password exclude each other" },
        { "tokenFile: t, password: s3cret",
          "a token and a user name with password exclude each other" },
        { "client-certificate: a", "client-certificate without client-key" },
        { "client-key-data: QQ==", "client-key without client-certificate" },
        { "client-certificate-data: s3cret!, client-key-data: QQ==",
          "client-certificate-data is not base64" },
        { "client-certificate-data: QQ==, client-key-data: s3cret!",
          "client-key-data is not base64" },
        { "as-groups: [a]", "as-uid, as-groups and as-user-extra need as" },
        { "auth-provider: {name: gcp}", "auth-provider is gone from Kubernetes: use exec" },
        { "exec: {apiVersion: client.authentication.k8s.io/v1}", "exec has no command" },
        { "exec: {command: a}",
          "exec.apiVersion must be client.authentication.k8s.io/v1 or v1beta1" },
        { "exec: {command: a, apiVersion: client.authentication.k8s.io/v1}",
          "exec.interactiveMode is required with client.authentication.k8s.io/v1" },
        { "exec: {command: a, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
          "Always}",
          "exec.interactiveMode is Always, but plimsoll gives a plugin no terminal" },
        { "exec: {command: a, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Maybe}",
          "exec.interactiveMode must be Never, IfAvailable or Always" },
        { "exec: {command: a, env: [{name: 'a=b'}]}", "exec.env[0] has no usable name" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("bad user: %s", bad[i].user);
        parse_fails(with(server, bad[i].user), NULL,
                    pl__str_format(&arena, "kc: user \"u\": %s", bad[i].error).ptr);
    }
    static const char *const secrets[] = { "token: [s3cret]",
                                           "token: {s3cret: s3cret}",
                                           "as-groups: s3cret",
                                           "as-user-extra: {a: s3cret}",
                                           "client-key-data: ['s3cret']",
                                           "tokenFile: [s3cret" };
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct pl_error *err = NULL;
        CASE("no error quotes a credential: %s", secrets[i]);
        CHECK(parse(with(server, secrets[i]), NULL, &err) < 0);
        CHECK(err && !pl__str_contains(pl__error_text(&arena, err), PL_STR("s3cret")));
    }
}

static void test_merge(void)
{
    static const char first[] =
        "{current-context: b, clusters: [{name: c, cluster: {server: 'https://first'}}]}";
    static const char second[] =
        "{current-context: a, contexts: [{name: b, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://second'}}],"
        " users: [{name: u, user: {tokenFile: t}}]}";
    struct pl_kubeconfig *k = pl__kubeconfig_new(&arena);
    struct pl_error *err = NULL;

    CASE("several files: the first entry of a name stays, paths belong to their file");
    CHECK(pl__kubeconfig_empty(k));
    CHECK_INT(pl__kubeconfig_add(k, PL_STR(""), PL_STR("f0"), PL_STR("/0"), &err), 0);
    CHECK(pl__kubeconfig_empty(k));
    CHECK_INT(pl__kubeconfig_add(k, pl__str(first), PL_STR("f1"), PL_STR("/1"), &err), 0);
    CHECK_INT(pl__kubeconfig_add(k, pl__str(second), PL_STR("f2"), PL_STR("/2"), &err), 0);
    CHECK(!pl__kubeconfig_empty(k));
    CHECK_INT(pl__kubeconfig_resolve(k, PL_STR(""), &config, &err), 0);
    CHECK_STR(config.server, "https://first");
    CHECK_STR(config.token_file, "/2/t");
    CASE("errors name the files");
    CHECK(pl__kubeconfig_resolve(k, PL_STR("a"), &config, &err) < 0);
    CHECK_STR(pl__error_text(&arena, err), "f0:f1:f2: no context \"a\"");
    CASE("of entries with one name in one file the first stays, too");
    parse_ok(
        "{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: ["
        "{name: c, cluster: {server: 'https://1'}}, {name: c, cluster: {server: 'https://2'}}]}",
        NULL);
    CHECK_STR(config.server, "https://1");
}

static void test_copy(void)
{
    struct pl_kube_config copy;
    struct pl_arena other;

    CASE("a copy outlives the original");
    pl__arena_init(&other, &pl__secret_allocator, 0);
    struct pl_error *err = NULL;
    CHECK_INT(pl__kubeconfig_parse(&other, pl__str(basic), PL_STR("kc"), PL_STR("/d"),
                                   PL_STR("two"), &config, &err),
              0);
    pl__kube_config_copy(&arena, &config, &copy);
    pl__arena_release(&other);
    CHECK_STR(copy.token, "abc");
    CHECK_STR(copy.as_groups.items[0], "g1");
    CHECK_STR(copy.as_extra.items[2].value, "c");
    CHECK_STR(copy.namespace_, "default");
}

static void credential(const char *text, const char *want_error)
{
    struct pl_exec_credential c = { 0 };
    struct pl_error *err = NULL;
    int result = pl__exec_credential_parse(&arena, pl__str(text), PL_STR("plugin"),
                                           PL_STR("client.authentication.k8s.io/v1"), &c, &err);

    CHECK_INT(result, want_error ? -1 : 0);
    if (want_error && err)
        CHECK_STR(pl__error_text(&arena, err), want_error);
}

#define REPLY(status) \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"" status "}"

static void test_exec(void)
{
    struct pl_exec_credential c = { 0 };
    struct pl_error *err = NULL;

    CASE("what a plugin is told");
    parse_ok(
        with("server: 'https://a', certificate-authority-data: Q0E=, tls-server-name: kube.test",
             "exec: {command: x, apiVersion: client.authentication.k8s.io/v1beta1}"),
        NULL);
    CHECK_STR(
        pl__exec_info(&arena, &config),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
        "\"spec\":{\"interactive\":false}}");
    config.exec.provide_cluster_info = true;
    CHECK_STR(
        pl__exec_info(&arena, &config),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
        "\"spec\":{\"cluster\":{\"server\":\"https://a\",\"tls-server-name\":\"kube.test\","
        "\"certificate-authority-data\":\"Q0E=\",\"config\":null},\"interactive\":false}}");
    CASE("what it answers");
    CHECK_INT(pl__exec_credential_parse(
                  &arena,
                  PL_STR(REPLY(",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
                               "\"2030-01-02T03:04:05Z\",\"clientCertificateData\":\"C\\n\","
                               "\"clientKeyData\":\"K\"}") "\n"),
                  PL_STR("plugin"), PL_STR("client.authentication.k8s.io/v1"), &c, &err),
              0);
    CHECK_STR(c.token, "t");
    CHECK_STR(c.client_cert_pem, "C\n");
    CHECK_STR(c.client_key_pem, "K");
    CHECK_INT(c.expires_ms, 1893553445000);
    CASE("answers that cannot be used");
    credential(REPLY(",\"status\":{\"token\":\"t\"}"), NULL);
    credential("", "plugin printed something that is not JSON as expected");
    credential("s3cret", "plugin printed something that is not JSON as expected");
    credential(REPLY(",\"status\":{\"token\":\"t\"}") "x",
               "plugin printed something that is not JSON as expected");
    credential("{\"kind\":\"Secret\"}", "plugin printed something that is not an ExecCredential");
    credential(
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
        "plugin printed an ExecCredential of another apiVersion than the kubeconfig asks for");
    credential(REPLY(""), "plugin printed an ExecCredential without status");
    credential(REPLY(",\"status\":{}"), "plugin printed neither a token nor a client certificate");
    credential(
        REPLY(",\"status\":{\"token\":\"t\",\"clientKeyData\":\"k\"}"),
        "plugin printed a client certificate without its key, or a key without its certificate");
}

static void test_base64(void)
{
    static const struct {
        const char *bytes, *text;
    } pairs[] = { { "", "" },
                  { "f", "Zg==" },
                  { "fo", "Zm8=" },
                  { "foo", "Zm9v" },
                  { "foob", "Zm9vYg==" },
                  { "fooba", "Zm9vYmE=" },
                  { "foobar", "Zm9vYmFy" },
                  { "\xff\xfe\xfd", "//79" } };
    struct pl_str bytes;

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        CASE("base64 of \"%s\"", pairs[i].text);
        CHECK_INT(pl__base64_decode(&arena, pl__str(pairs[i].text), &bytes), 0);
        CHECK_STR(bytes, pairs[i].bytes);
        CHECK_STR(pl__base64_encode(&arena, pl__str(pairs[i].bytes)), pairs[i].text);
    }
    CASE("line breaks");
    CHECK_INT(pl__base64_decode(&arena, PL_STR("Zm\r\n9v\nYg=\n=\n"), &bytes), 0);
    CHECK_STR(bytes, "foob");
    static const char *const bad[] = { "Z",     "Zg",    "Zg=",  "Zg===", "=",
                                       "====",  "Zm9v=", "Zh==", "Zm9=",  "Zg==Zg==",
                                       "Zm 9v", "Zm9v!", "Zm9_", "Z===" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("not base64: %s", bad[i]);
        CHECK(pl__base64_decode(&arena, pl__str(bad[i]), &bytes) < 0);
    }
    CASE("every byte, every length");
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (size_t len = 0; len <= 256; len++) {
        struct pl_str in = { all, len };
        CHECK_INT(pl__base64_decode(&arena, pl__base64_encode(&arena, in), &bytes), 0);
        CHECK(pl__str_equal(bytes, in));
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_contexts();
    test_clusters();
    test_users();
    test_merge();
    test_copy();
    test_exec();
    test_base64();
    pl__arena_release(&arena);
    return test_end("kubeconfig");
}
