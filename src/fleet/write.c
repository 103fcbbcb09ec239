/* Texts of objects, and the calls that carry them. Names come from API servers, which let only letters, digits, '-'
 * and '.' pass, so nothing has to be escaped. */
#include "fleet/internal.h"

#include "base/time.h"

struct pl_buf pl__text(struct pl_fleet *fleet)
{
    struct pl_buf b;

    pl__buf_init(&b, &fleet->scratch, TEXT_BYTES_MAX);
    return b;
}

void pl__object_open(struct pl_buf *b, struct pl_fleet *fleet, const char *api_version,
                     const char *kind, const char *name, bool ns)
{
    pl__buf_printf(b, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"",
                   api_version, kind, name);
    if (ns)
        pl__buf_printf(b, ",\"namespace\":\"%s\"", fleet->options.ns);
}

void pl__labels_add(struct pl_buf *b, struct pl_fleet *fleet, const char *cluster, const char *more)
{
    pl__buf_printf(b, ",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\"%s", cluster, more);
    if (fleet->options.watch_filter)
        pl__buf_printf(b, ",\"cluster.x-k8s.io/watch-filter\":\"%s\"", fleet->options.watch_filter);
    pl__buf_add_char(b, '}');
}

void pl__owner_add(struct pl_buf *b, const char *api_version, const char *kind, const char *name,
                   const char *uid)
{
    pl__buf_printf(b,
                   ",\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
                   "\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}]",
                   api_version, kind, name, uid);
}

struct pl_str pl__finalizers_text(struct pl_fleet *fleet, uint64_t version, const char *others,
                                  const char *ours)
{
    struct pl_buf b = pl__text(fleet);

    pl__buf_printf(&b, "{\"metadata\":{\"resourceVersion\":\"%llu\",\"finalizers\":[%s%s",
                   (unsigned long long)version, others ? others : "", others && ours ? "," : "");
    if (ours)
        pl__buf_printf(&b, "\"%s\"", ours);
    pl__buf_add_lit(&b, "]}}");
    return pl__buf_str(&b);
}

void pl__condition_add(struct pl_buf *b, const char *type, char status, const char *reason,
                       const char *message, int64_t since_ms)
{
    pl__buf_printf(b,
                   "%s{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"%s\","
                   "\"lastTransitionTime\":\"",
                   b->len && b->data[b->len - 1] == '}' ? "," : "", type,
                   status == 'T'   ? "True"
                   : status == 'F' ? "False"
                                   : "Unknown",
                   reason, message);
    pl__time_add(b, since_ms);
    pl__buf_add_lit(b, "\"}");
}

void pl__condition_show(struct pl_buf *b, struct shown *shown, const char *type, char status,
                        const char *reason, const char *message)
{
    if ((char)shown->status != status)
        *shown = (struct shown){ (uint8_t)status, pl__loop_wall_ms() };
    pl__condition_add(b, type, status, reason, message, shown->since_ms);
}

int pl__call(struct pl_fleet *fleet, const struct cluster *c, struct pl_fleet_call call)
{
    struct pl_str body = { "", 0 };

    if (fleet->stopping)
        return 0;
    call.cluster = c ? pl__str(c->name) : PL_STR("");
    int status = fleet->options.api.call(fleet->options.api.user, &call, &fleet->answer, &body);
    if (status < 300 && call.verb != FLEET_DELETE) {
        pl__fleet_see(fleet, call.cluster, body, false);
    } else if (status >= 400 && status != 404 && status != 409) {
        fleet->failed = true;
        pl__fleet_say(fleet, "%s %.*s: the API server says %d: %.*s", call.plural,
                      PL_STR_ARG(call.name), status, (int)(body.len < 300 ? body.len : 300),
                      body.ptr);
    }
    /* An API server needs a multiple of what it answers: not to be kept until the step is over. */
    pl__arena_reset(&fleet->answer);
    return status;
}

bool pl__call_changed(struct pl_fleet *fleet, const struct cluster *c, struct pl_fleet_call call,
                      uint64_t *hash)
{
    uint64_t now = pl__str_hash(PL_HASH_BEGIN, call.body);

    if (now == *hash)
        return true;
    if (pl__call(fleet, c, call) >= 300)
        return false;
    *hash = now;
    return true;
}

void pl__status_apply(struct pl_fleet *fleet, const char *group_version, const char *plural,
                      const char *name, const char *manager, struct pl_buf *body, uint64_t *hash)
{
    pl__call_changed(fleet, NULL,
                     (struct pl_fleet_call){ .verb = FLEET_APPLY,
                                             .group_version = group_version,
                                             .plural = plural,
                                             .ns = pl__str(fleet->options.ns),
                                             .name = pl__str(name),
                                             .subresource = "status",
                                             .manager = pl__str(manager),
                                             .body = pl__buf_str(body) },
                     hash);
}
