/* cli/etcd_trace.h - the connection doctor: the way to every etcd member, hop by hop. */
#ifndef PL_CLI_ETCD_TRACE_H
#define PL_CLI_ETCD_TRACE_H

#include "cli/live.h"

/* Walks and prints as it goes. 0 with the outcome noted, or -1 with cli->err. */
int pl__etcd_trace(struct pl_cli *cli, const struct pl_live_wanted *wanted);

#endif
