/* tests/unit/controller/finish.h - how every test of the controller ends: it asked for nothing that it must
 * not, and gave all its memory back. */
#ifndef PL_TEST_CONTROLLER_FINISH_H
#define PL_TEST_CONTROLLER_FINISH_H

#include "test.h"

#include "fake_api.h"

static inline void fake_finish(struct fake_api *api)
{
    CHECK_INT(api->offences, 0);
    if (api->offences)
        printf("    %s\n", api->offence);
    CHECK_INT(fake_end(api), 0);
    fake_free(api);
}

#endif
