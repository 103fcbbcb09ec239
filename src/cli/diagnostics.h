/* cli/diagnostics.h - how others look at a running controller.
 *
 * /healthz and /readyz over plain HTTP, for the kubelet; /metrics over HTTPS to those whom the management
 * cluster lets: the bearer token is asked about with a TokenReview, its user with a SubjectAccessReview on
 * the path /metrics, and the answer is kept for a minute. Without TLS and questions when `insecure`. */
#ifndef PL_CLI_DIAGNOSTICS_H
#define PL_CLI_DIAGNOSTICS_H

#include "cli/driver.h"

struct pl_diagnostics;

struct pl_diagnostics_options {
    const char *health_address;  /* "HOST:PORT", ":PORT"; NULL: none */
    const char *metrics_address; /* the same */
    bool insecure;               /* /metrics in the clear and for everybody */
};

/* Whether it can be listened on as far as its form goes. */
bool pl__diagnostics_address_valid(const char *address);

/* Listens. 0, or -1 when an address is taken or not ours. */
int pl__diagnostics_open(struct pl_driver *driver, const struct pl_diagnostics_options *options,
                         struct pl_arena *arena, struct pl_diagnostics **diagnostics,
                         struct pl_error **err);

/* Stops listening; before pl__driver_free(). NULL is fine. */
void pl__diagnostics_close(struct pl_diagnostics *diagnostics);

/* Frees it; after pl__driver_free(), in which the last connections end. NULL is fine. */
void pl__diagnostics_free(struct pl_diagnostics *diagnostics);

/* All of /metrics. */
void pl__diagnostics_metrics(struct pl_driver *driver, struct pl_buf *out);

#endif
