/* Templates of direct endpoints: "https://{address}:2379". */
#include "loop/etcd_internal.h"

#include <ctype.h>
#include <stdio.h>

enum { TEMPLATE_BYTES_MAX = 255 };

/* Puts the endpoint's values in; `room` has sizeof etcd_target.host. NULL, or a fault. */
static const char *placeholders_fill(struct pl_str text, const struct pl_etcd_endpoint *endpoint,
                                     char *room, size_t room_size)
{
    static const struct pl_str node = PL_STR_INIT("{node}"), address = PL_STR_INIT("{address}");
    size_t len = 0;

    while (text.len > 0) {
        struct pl_str value = { text.ptr, 1 };
        size_t taken = 1;
        if (pl__str_starts_with(text, node)) {
            value = endpoint->node;
            taken = node.len;
        } else if (pl__str_starts_with(text, address)) {
            value = endpoint->address;
            taken = address.len;
            if (value.len == 0)
                return "the Node has no address";
        } else if (text.ptr[0] == '{' || text.ptr[0] == '}') {
            return "only {node} and {address} can be filled in";
        }
        if (value.len >= room_size - len)
            return "the name is too long";
        memcpy(room + len, value.ptr, value.len);
        len += value.len;
        text.ptr += taken;
        text.len -= taken;
    }
    room[len] = '\0';
    return NULL;
}

static bool is_host(const char *host)
{
    size_t len = strlen(host);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr(".-_:%", host[i]))
            return false;
    return len > 0;
}

/* "[fd00::1]" without its brackets. */
static void brackets_remove(char *host)
{
    size_t len = strlen(host);

    if (len < 2 || host[0] != '[' || host[len - 1] != ']')
        return;
    memmove(host, host + 1, len - 2);
    host[len - 2] = '\0';
}

const char *pl__etcd_template_expand(const char *direct, const struct pl_etcd_endpoint *endpoint,
                                     struct etcd_target *target)
{
    struct pl_str rest = pl__str(direct), scheme = PL_STR("https://");
    uint64_t port = 0;

    if (rest.len > TEMPLATE_BYTES_MAX)
        return "it is too long";
    if (!pl__str_starts_with(rest, scheme))
        return "it must begin with https://";
    rest.ptr += scheme.len;
    rest.len -= scheme.len;
    if (pl__str_ends_with(rest, PL_STR("/")))
        rest.len--;
    size_t colon = rest.len;
    while (colon > 0 && rest.ptr[colon - 1] != ':')
        colon--;
    if (colon == 0 ||
        !pl__str_to_u64((struct pl_str){ rest.ptr + colon, rest.len - colon }, &port) ||
        port == 0 || port > UINT16_MAX)
        return "it must end with a port, such as :2379";
    const char *fault = placeholders_fill((struct pl_str){ rest.ptr, colon - 1 }, endpoint,
                                          target->host, sizeof target->host);
    if (fault)
        return fault;
    brackets_remove(target->host);
    if (!is_host(target->host))
        return "there is no host in it";
    target->port = (uint16_t)port;
    return NULL;
}

int pl__etcd_template_check(struct pl_arena *arena, const char *direct, struct pl_error **err)
{
    static const struct pl_etcd_endpoint example = { .node = PL_STR_INIT("node"),
                                                     .address = PL_STR_INIT("192.0.2.1") };
    struct etcd_target target;
    const char *fault = pl__etcd_template_expand(direct, &example, &target);

    if (!fault)
        return 0;
    return pl__error(arena, err, PL_INVALID, "etcd endpoints \"%s\": %s", direct, fault);
}
