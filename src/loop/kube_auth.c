#include "loop/kube_auth.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/secret.h"
#include "loop/kube_config.h"

enum {
    TOKEN_BYTES_MAX = 256 * 1024,
    TOKEN_AGE_MS_MAX = 50 * 1000,
    FILES_AGE_MS_MAX = 50 * 1000,
    EXEC_TIMEOUT_MS = 60 * 1000,
    EXEC_AGAIN_MS_MIN =
        1000, /* a plugin that fails, or whose tokens are refused, is not run in a loop */
};

static void text_free(char *text)
{
    if (text)
        pl__secret_wipe(text, strlen(text));
    free(text);
}

/* A header must stay one line, and these come from files and programs. */
static bool header_safe(struct pl_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return false;
    return true;
}

static void header_set(struct pl_kube_auth *auth, const char *scheme, struct pl_str value)
{
    static const char start[] = "Authorization: ";
    size_t size = sizeof start + strlen(scheme) + value.len + 1;

    text_free(auth->header);
    auth->header = malloc(size);
    if (!auth->header)
        abort();
    snprintf(auth->header, size, "%s%s %.*s", start, scheme, PL_STR_ARG(value));
}

/* --- tokens and passwords ----------------------------------------------------------------------- */

static void basic_set(struct pl_kube_auth *auth)
{
    const struct pl_kube_config *config = auth->config;
    struct pl_arena scratch;

    pl__arena_init(&scratch, &pl__secret_allocator, 4096);
    struct pl_str pair = pl__str_format(&scratch, "%.*s:%.*s", PL_STR_ARG(config->username),
                                        PL_STR_ARG(config->password));
    header_set(auth, "Basic", pl__base64_encode(&scratch, pair));
    pl__arena_release(&scratch);
}

static struct pl_str trimmed(struct pl_str s)
{
    while (s.len > 0 && (unsigned char)s.ptr[s.len - 1] <= ' ')
        s.len--;
    while (s.len > 0 && (unsigned char)s.ptr[0] <= ' ') {
        s.ptr++;
        s.len--;
    }
    return s;
}

/* The token in the file, as the new header. On failure `error` is set and the header stays. */
static int token_file_read(struct pl_kube_auth *auth)
{
    struct pl_str path = auth->config->token_file, token;
    struct pl_error *err = NULL;
    struct pl_arena scratch;
    int result = -1;

    pl__arena_init(&scratch, &pl__secret_allocator, 8192);
    if (pl__file_read(&scratch, path.ptr, TOKEN_BYTES_MAX, &token, &err) < 0)
        snprintf(auth->error, sizeof auth->error, "token file %s",
                 pl__error_text(&scratch, err).ptr);
    else if ((token = trimmed(token)).len == 0)
        snprintf(auth->error, sizeof auth->error, "token file %s is empty", path.ptr);
    else if (!header_safe(token))
        snprintf(auth->error, sizeof auth->error, "token file %s holds more than one line",
                 path.ptr);
    else
        result = 0;
    if (result == 0)
        header_set(auth, "Bearer", token);
    pl__arena_release(&scratch);
    return result;
}

static enum pl_kube_auth_state token_file_prepare(struct pl_kube_auth *auth, uint64_t now_ms)
{
    if (auth->token_read && !auth->stale && now_ms - auth->token_read_ms < TOKEN_AGE_MS_MAX)
        return KUBE_AUTH_READY;
    if (token_file_read(auth) == 0) {
        auth->token_read = true;
        auth->token_read_ms = now_ms;
        auth->stale = false;
        auth->generation++;
        return KUBE_AUTH_READY;
    }
    /* An old token is better than none: the kubelet may be just swapping the files. */
    return auth->header ? KUBE_AUTH_READY : KUBE_AUTH_FAILED;
}

/* --- certificates in files ------------------------------------------------------------------------ */

static bool has_tls_files(const struct pl_kube_config *config)
{
    return config->ca_file.len || config->client_cert_file.len || config->client_key_file.len;
}

static bool marks_update(struct pl_kube_auth *auth)
{
    const struct pl_str files[] = { auth->config->ca_file, auth->config->client_cert_file,
                                    auth->config->client_key_file };
    bool changed = false;

    for (size_t i = 0; i < 3; i++) {
        if (files[i].len == 0)
            continue;
        struct pl_file_mark seen = pl__file_mark(files[i].ptr);
        if (seen.device != auth->marks[i].device || seen.inode != auth->marks[i].inode ||
            seen.size != auth->marks[i].size || seen.modified_ns != auth->marks[i].modified_ns)
            changed = true;
        auth->marks[i] = seen;
    }
    return changed;
}

static bool tls_differs(const struct pl_kube_tls *a, const struct pl_kube_tls *b)
{
    return !pl__str_equal(a->ca_pem, b->ca_pem) || !pl__str_equal(a->cert_pem, b->cert_pem) ||
           !pl__str_equal(a->key_pem, b->key_pem);
}

static void tls_replace(struct pl_kube_auth *auth, struct pl_kube_tls *tls)
{
    if (!tls_differs(auth->tls, tls)) {
        pl__kube_tls_unref(tls);
        return;
    }
    pl__kube_tls_unref(auth->tls);
    auth->tls = tls;
    auth->generation++;
}

/* Takes over renewed files. Half a renewal (the certificate is new, the key not yet) does not fit
 * together and is left for the next look. */
static void files_prepare(struct pl_kube_auth *auth, uint64_t now_ms)
{
    struct pl_kube_config config;
    struct pl_error *err = NULL;
    struct pl_arena scratch;

    if (now_ms - auth->files_checked_ms < FILES_AGE_MS_MAX && !auth->stale && !auth->recheck)
        return;
    auth->recheck = false;
    auth->files_checked_ms = now_ms;
    if (!marks_update(auth))
        return;
    pl__arena_init(&scratch, &pl__secret_allocator, 0);
    config = *auth->config;
    struct pl_kube_tls *tls = NULL;
    if (pl__kube_config_read_files(&scratch, &config, &err) == 0)
        tls = pl__kube_tls_new(config.ca_pem, config.client_cert_pem, config.client_key_pem,
                               &scratch, &err);
    pl__arena_release(&scratch);
    if (tls)
        tls_replace(auth, tls);
    else
        memset(auth->marks, 0, sizeof auth->marks); /* look again next time */
}

/* --- plugins -------------------------------------------------------------------------------------- */

static const char *credential_take(struct pl_kube_auth *auth,
                                   const struct pl_exec_credential *credential)
{
    const struct pl_kube_config *config = auth->config;
    struct pl_kube_tls *tls = NULL;
    struct pl_error *err = NULL;
    struct pl_arena scratch;

    if (!header_safe(credential->token))
        return "credential plugin gave a token with control characters in it";
    if (credential->client_cert_pem.len) {
        pl__arena_init(&scratch, &pl__secret_allocator, 4096);
        tls = pl__kube_tls_new(config->ca_pem, credential->client_cert_pem,
                               credential->client_key_pem, &scratch, &err);
        pl__arena_release(&scratch);
        if (!tls)
            return "credential plugin gave a client certificate and key that cannot be used";
    }
    if (credential->token.len)
        header_set(auth, "Bearer", credential->token);
    if (tls)
        tls_replace(auth, tls);
    auth->exec_expires_ms = credential->expires_ms;
    auth->exec_have = true;
    auth->generation++;
    return NULL;
}

static void plugin_done(void *user, const struct pl_exec_credential *credential, const char *error)
{
    struct pl_kube_auth *auth = user;

    auth->run = NULL;
    auth->stale = false;
    auth->exec_ended_ms = pl__loop_mono_ms(auth->loop);
    if (credential)
        error = credential_take(auth, credential);
    auth->exec_failed = error != NULL;
    if (error)
        snprintf(auth->error, sizeof auth->error, "%s", error);
    auth->changed(auth->user);
}

static enum pl_kube_auth_state plugin_prepare(struct pl_kube_auth *auth, uint64_t now_ms)
{
    bool expired = auth->exec_expires_ms && pl__loop_wall_ms() >= auth->exec_expires_ms;
    bool recent = auth->exec_ended_ms && now_ms - auth->exec_ended_ms < EXEC_AGAIN_MS_MIN;

    if (auth->run)
        return KUBE_AUTH_WAIT;
    if (auth->exec_have && !auth->exec_failed && !expired && !auth->stale)
        return KUBE_AUTH_READY;
    if (recent)
        return auth->exec_failed ? KUBE_AUTH_FAILED : KUBE_AUTH_READY;
    auth->run = pl__exec_start(auth->loop, auth->config, auth->exec_timeout_ms, auth, plugin_done,
                               auth->error, sizeof auth->error);
    if (auth->run)
        return KUBE_AUTH_WAIT;
    auth->exec_failed = true;
    auth->exec_ended_ms = now_ms;
    return KUBE_AUTH_FAILED;
}

/* --- all of it ---------------------------------------------------------------------------------- */

int pl__kube_auth_init(struct pl_kube_auth *auth, struct pl_loop *loop,
                       struct pl_kube_config *config, bool https, void *user,
                       void (*changed)(void *user), struct pl_arena *arena, struct pl_error **err)
{
    *auth = (struct pl_kube_auth){ .loop = loop,
                                   .config = config,
                                   .https = https,
                                   .user = user,
                                   .changed = changed,
                                   .exec_timeout_ms = EXEC_TIMEOUT_MS };
    if (!header_safe(config->token) || !header_safe(config->username) ||
        !header_safe(config->password))
        return pl__error(arena, err, PL_INVALID,
                         "token, user name or password with control characters in it");
    auth->tls = pl__kube_tls_new(config->ca_pem, config->client_cert_pem, config->client_key_pem,
                                 arena, err);
    if (!auth->tls)
        return -1;
    auth->given = pl__kube_tls_ref(auth->tls);
    config->ca_pem = auth->given->ca_pem;
    config->client_cert_pem = auth->given->cert_pem;
    config->client_key_pem = auth->given->key_pem;
    auth->files_checked_ms = pl__loop_mono_ms(loop);
    marks_update(auth);
    if (!https)
        return 0;
    if (config->token.len)
        header_set(auth, "Bearer", config->token);
    else if (config->username.len || config->password.len)
        basic_set(auth);
    return 0;
}

enum pl_kube_auth_state pl__kube_auth_prepare(struct pl_kube_auth *auth)
{
    uint64_t now_ms = pl__loop_mono_ms(auth->loop);

    if (!auth->https)
        return KUBE_AUTH_READY;
    if (auth->config->exec.present)
        return plugin_prepare(auth, now_ms);
    if (has_tls_files(auth->config))
        files_prepare(auth, now_ms);
    if (auth->config->token_file.len)
        return token_file_prepare(auth, now_ms);
    auth->stale = false;
    return KUBE_AUTH_READY;
}

void pl__kube_auth_refused(struct pl_kube_auth *auth, uint64_t generation)
{
    if (generation == auth->generation)
        auth->stale = true;
}

void pl__kube_auth_recheck(struct pl_kube_auth *auth)
{
    auth->recheck = true;
}

void pl__kube_auth_release(struct pl_kube_auth *auth)
{
    if (auth->run)
        pl__exec_cancel(auth->run);
    auth->run = NULL;
    text_free(auth->header);
    auth->header = NULL;
    pl__kube_tls_unref(auth->tls);
    pl__kube_tls_unref(auth->given);
    auth->tls = auth->given = NULL;
}
