#include "cli/etcd_options.h"

/* Three calls and the way there have to end before the controller takes silence for an answer. */
enum { TIMEOUT_S_MAX = 60 };

static int take_ms(struct pl_cli *cli, enum pl_option_id id, uint32_t *ms)
{
    uint32_t seconds = 0;

    if (pl__cli_seconds(cli, id, TIMEOUT_S_MAX, "1m", &seconds) < 0)
        return -1;
    *ms = seconds * 1000;
    return 0;
}

int pl__etcd_options_take(struct pl_cli *cli, struct pl_etcd_options *etcd)
{
    struct pl_error *cause = NULL;

    etcd->direct = cli->args.value[OPT_ETCD_ENDPOINTS];
    if (take_ms(cli, OPT_ETCD_DIAL_TIMEOUT, &etcd->dial_timeout_ms) < 0 ||
        take_ms(cli, OPT_ETCD_CALL_TIMEOUT, &etcd->call_timeout_ms) < 0)
        return -1;
    if (etcd->direct && pl__etcd_template_check(&cli->arena, etcd->direct, &cause) < 0)
        return pl__cli_usage(cli, "--etcd-endpoints \"%s\": %.*s", etcd->direct,
                             PL_STR_ARG(pl__error_text(&cli->arena, cause)));
    return 0;
}
