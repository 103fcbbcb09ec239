#include "proto/etcd.h"

struct pl_str pl__etcd_alarm_name(struct pl_arena *arena, uint32_t alarm)
{
    static const struct pl_str names[] = {
        PL_STR_INIT("NONE"),
        PL_STR_INIT("NOSPACE"),
        PL_STR_INIT("CORRUPT"),
    };

    if (alarm < sizeof names / sizeof names[0])
        return names[alarm];
    return pl__str_format(arena, "%u", (unsigned)alarm);
}
