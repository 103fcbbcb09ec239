/* No bytes of a client break the server's side of a port-forward, and none make it hold more than it says. The
 * first byte decides how the rest is fed: the size of the pieces, and whether the pod writes, and takes, in
 * between. */
#include <stdlib.h>

#include "proto/portserve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void look(struct pl_portserve *p, bool take)
{
    const uint8_t *bytes = NULL;
    size_t size = pl__portserve_send(p, &bytes);

    require(size <= PORTSERVE_BUFFER_MAX && pl__portserve_room(p) <= PORTSERVE_BUFFER_MAX - size);
    if (take)
        pl__portserve_sent(p, size);
    size = pl__portserve_read(p, &bytes);
    require(size <= PORTSERVE_BUFFER_MAX);
    if (take)
        pl__portserve_took(p, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char pod[40 * 1000];

    if (size < 1)
        return 0;
    size_t step = (size_t)1 << (data[0] & 0x0f);
    bool busy = data[0] & 0x10, take = data[0] & 0x20;
    struct pl_portserve *p = pl__portserve_new(2379);
    int result = 0;
    for (size_t at = 1; at < size && result == 0; at += step) {
        result = pl__portserve_receive(p, data + at, size - at < step ? size - at : step);
        if (busy && pl__portserve_room(p) >= sizeof pod)
            pl__portserve_write(p, pod, sizeof pod);
        look(p, take);
    }
    pl__portserve_end(p, PL_STR("over"));
    look(p, true);
    require(pl__portserve_room(p) == 0 && pl__portserve_receive(p, "", 0) < 0);
    pl__portserve_free(p);
    return 0;
}
