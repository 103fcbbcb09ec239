/* Where the configuration is looked for: a given file, $KUBECONFIG, ~/.kube/config, the Pod we are in. */
#include "test.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/kube.h"
#include "loop/kube_config.h"

static struct pl_arena arena;
static struct pl_kube_config config;
static char root[] = "/tmp/plimsoll-kube-config.XXXXXX";
static char paths[16][256];
static size_t path_count;

static const char *put(const char *name, const char *text)
{
    char *path = paths[path_count++];

    assert(path_count <= 16);
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static const char *kubeconfig(const char *server, const char *user)
{
    return pl__str_format(
               &arena,
               "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
               " clusters: [{name: c, cluster: {server: '%s', certificate-authority: ca.pem}}],"
               " users: [{name: u, user: {%s}}]}",
               server, user)
        .ptr;
}

static void load_ok(const char *path, const char *context)
{
    struct pl_error *err = NULL;

    config = (struct pl_kube_config){ 0 };
    if (pl__kube_config_load(&arena, path, context, &config, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
}

/* `want` is a part of the message. */
static void load_fails(const char *path, const char *context, const char *want)
{
    struct pl_error *err = NULL;

    CHECK(pl__kube_config_load(&arena, path, context, &config, &err) < 0);
    struct pl_str text = err ? pl__error_text(&arena, err) : PL_STR("(no error)");
    if (!pl__str_contains(text, pl__str(want)))
        test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", want, text.ptr);
}

static void test_files(void)
{
    const char *one = put("one", kubeconfig("https://one", "token: t1"));
    const char *two = put("two", kubeconfig("https://two", "tokenFile: token"));

    CASE("the file that is given");
    load_ok(one, NULL);
    CHECK_STR(config.server, "https://one");
    CHECK_STR(config.ca_pem, "the CA");
    CHECK_STR(config.token, "t1");
    CASE("a file that is not there, a context that is not there");
    load_fails("/nonexistent/kc", NULL, "/nonexistent/kc: No such file or directory");
    load_fails(one, "nope", "one: no context \"nope\"");
    CASE("a file that it names and that is not there");
    const char *broken =
        put("broken", kubeconfig("https://b", "client-certificate: no.pem, client-key: no.key"));
    load_fails(broken, NULL, "client certificate: ");
    CASE("an empty one");
    load_fails(put("empty", ""), NULL, "no cluster in it");
    CASE("KUBECONFIG with several files, one of them missing");
    setenv("KUBECONFIG", pl__str_format(&arena, "/nonexistent/kc:%s:%s", two, one).ptr, 1);
    load_ok(NULL, NULL);
    CHECK_STR(config.server, "https://two");
    CHECK_STR(config.token_file, pl__str_format(&arena, "%s/token", root).ptr);
    CASE("the given file goes before KUBECONFIG");
    load_ok(one, NULL);
    CHECK_STR(config.server, "https://one");
    CASE("KUBECONFIG with a file that is wrong");
    setenv("KUBECONFIG", put("wrong", "{"), 1);
    load_fails(NULL, NULL, "wrong:2:1: not valid YAML");
    unsetenv("KUBECONFIG");
    CASE("~/.kube/config");
    char kube[300];
    snprintf(kube, sizeof kube, "%s/.kube", root);
    mkdir(kube, 0700);
    setenv("HOME", root, 1);
    put(".kube/ca.pem", "home CA");
    put(".kube/config", kubeconfig("https://home", ""));
    load_ok(NULL, "");
    CHECK_STR(config.server, "https://home");
    CHECK_STR(config.ca_pem, "home CA");
    snprintf(kube, sizeof kube, "%s/.kube/config", root);
    unlink(kube);
    CASE("nothing at all");
    load_fails(NULL, NULL, "no kubeconfig: looked at --kubeconfig, $KUBECONFIG and ~/.kube/config");
    CASE("nothing, but a context");
    load_fails(NULL, "ctx", "~/.kube/config: no cluster in it");
}

static void test_in_cluster(void)
{
    struct pl_error *err = NULL;

    CASE("not in a Pod");
    CHECK(pl__kube_config_in_cluster(&arena, root, &config, &err) < 0);
    CASE("in a Pod");
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    CHECK(pl__kube_config_in_cluster(&arena, root, &config, &err) < 0);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    CHECK(pl__kube_config_in_cluster(&arena, root, &config, &err) < 0); /* no token */
    CHECK(pl__str_contains(pl__error_text(&arena, err), PL_STR("token")));
    put("token", "abc\n");
    CHECK_INT(pl__kube_config_in_cluster(&arena, root, &config, &err), 0);
    CHECK_STR(config.server, "https://10.0.0.1:443");
    CHECK_STR(config.namespace_, "default");
    CHECK_STR(config.ca_pem, "");
    CHECK_STR(config.token, "");
    CHECK_STR(config.token_file, pl__str_format(&arena, "%s/token", root).ptr);
    CASE("with a CA, a namespace and IPv6");
    put("ca.crt", "pod CA");
    put("namespace", "capi-system\n");
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    CHECK_INT(pl__kube_config_in_cluster(&arena, root, &config, &err), 0);
    CHECK_STR(config.server, "https://[fd00::1]:443");
    CHECK_STR(config.namespace_, "capi-system");
    CHECK_STR(config.ca_pem, "pod CA");
    CASE("a Pod whose files are missing");
    load_fails(NULL, NULL, "in-cluster configuration: ");
}

int main(void)
{
    static const char *const names[] = { "KUBECONFIG", "KUBERNETES_SERVICE_HOST",
                                         "KUBERNETES_SERVICE_PORT", "HOME" };

    for (size_t i = 0; i < 4; i++)
        unsetenv(names[i]);
    if (!mkdtemp(root))
        return 2;
    pl__arena_init(&arena, NULL, 0);
    put("ca.pem", "the CA");
    test_files();
    test_in_cluster();
    for (size_t i = 0; i < path_count; i++)
        unlink(paths[i]);
    rmdir(pl__str_format(&arena, "%s/.kube", root).ptr);
    rmdir(root);
    pl__arena_release(&arena);
    return test_end("kube_config");
}
