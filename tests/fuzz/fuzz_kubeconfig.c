/* Any kubeconfig, and any answer of a credential plugin: the first byte says which, and which context is wanted.
 *
 * Holds for all input: nothing is read out of bounds; what is accepted has a server that a client may go to, and
 * of data and file only one. */
#include <stdlib.h>

#include "base/secret.h"
#include "proto/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_config(struct pl_arena *a, struct pl_str text, struct pl_str context)
{
    struct pl_kube_config config = { .server = { "", 0 } };
    struct pl_error *err = NULL;

    if (pl__kubeconfig_parse(a, text, PL_STR("input"), PL_STR("/folder"), context, &config, &err) <
        0) {
        require(err && pl__error_text(a, err).len > 0);
        return;
    }
    require(pl__str_starts_with(config.server, PL_STR("http")));
    require(!pl__str_ends_with(config.server, PL_STR("/")));
    require(config.namespace_.len > 0);
    require(!config.ca_pem.len || !config.ca_file.len);
    require(!config.client_cert_pem.len || !config.client_cert_file.len);
    require(!config.client_key_pem.len || !config.client_key_file.len);
    require(pl__exec_info(a, &config).len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_exec_credential credential = { .token = { "", 0 } };
    struct pl_error *err = NULL;
    struct pl_arena a;

    if (size < 1)
        return 0;
    struct pl_str text = { (const char *)data + 1, size - 1 };
    pl__arena_init(&a, &pl__secret_allocator, 4096);
    if (data[0] == 'x') {
        if (pl__exec_credential_parse(&a, text, PL_STR("plugin"),
                                      PL_STR("client.authentication.k8s.io/v1"), &credential,
                                      &err) == 0)
            require(credential.token.len > 0 || credential.client_cert_pem.len > 0);
        else
            require(err != NULL);
    } else {
        check_config(&a, text, data[0] == 'o' ? PL_STR("other") : PL_STR(""));
    }
    pl__arena_release(&a);
    return 0;
}
