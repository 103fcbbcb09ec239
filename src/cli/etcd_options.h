/* cli/etcd_options.h - what PL_OPTIONS_ETCD say, checked. */
#ifndef PL_CLI_ETCD_OPTIONS_H
#define PL_CLI_ETCD_OPTIONS_H

#include "cli/command.h"
#include "loop/etcd.h"

/* Contacts nothing; the template is borrowed from the command line. 0, or -1 with cli->err. */
int pl__etcd_options_take(struct pl_cli *cli, struct pl_etcd_options *etcd);

#endif
