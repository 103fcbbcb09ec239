/* No bytes of an API server break the port-forward, and none make it hold more than it says. The first
 * byte decides how the rest is fed: the size of the pieces, whether a good upgrade went before, and
 * whether we write and take what is there in between. */
#include <stdlib.h>

#include "proto/portforward.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char upgraded[] = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n"
                               "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n";

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void no_random(void *user, uint8_t *bytes, size_t size)
{
    (void)user;
    memset(bytes, 0, size);
}

static void take(struct pl_portforward *p)
{
    const uint8_t *bytes = NULL;
    uint8_t sum = 0;
    size_t size = pl__portforward_read(p, &bytes);

    require(size <= PORTFORWARD_BUFFER_MAX);
    for (size_t i = 0; i < size; i++)
        sum ^= bytes[i];
    size = pl__portforward_send(p, &bytes);
    require(size <= PORTFORWARD_BUFFER_MAX);
    for (size_t i = 0; i < size; i++)
        sum ^= bytes[i];
    *(volatile uint8_t *)&sum = sum;
}

static void check_error(const struct pl_portforward *p)
{
    for (const char *c = pl__portforward_error(p); *c; c++)
        require((unsigned char)*c >= ' ' && *c != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_portforward_options options = {
        .host = PL_STR("h"), .path = PL_STR("/"), .port = 2379, .random = no_random
    };

    if (size < 1)
        return 0;
    size_t step = (size_t)1 << (data[0] & 0x0f);
    bool open = data[0] & 0x10, busy = data[0] & 0x20, lost = data[0] & 0x40;
    struct pl_portforward *p = pl__portforward_new(&options);
    if (open)
        require(pl__portforward_receive(p, upgraded, sizeof upgraded - 1) == 0);
    for (size_t at = 1; at < size; at += step) {
        size_t now = size - at < step ? size - at : step;
        bool ok = pl__portforward_receive(p, data + at, now) == 0;
        require(ok == (pl__portforward_state(p) != PORTFORWARD_CLOSED));
        if (busy) {
            take(p);
            (void)pl__portforward_write(p, data, now);
        }
    }
    if (lost)
        pl__portforward_lost(p);
    else
        pl__portforward_close(p);
    require(pl__portforward_state(p) == PORTFORWARD_CLOSED);
    check_error(p);
    take(p);
    pl__portforward_free(p);
    return 0;
}
