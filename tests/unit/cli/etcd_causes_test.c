/* tests/unit/cli/etcd_causes_test.c - the table of causes of plimsoll etcd --trace: every row can be met,
 * and every hop has an answer. */
#include "test.h"

#include "cli/etcd_causes.h"

int main(void)
{
    size_t count;
    const struct pl_trace_cause *rows = pl__trace_causes(&count);

    for (size_t i = 0; i < count; i++) {
        CASE("%s: no row before takes \"%s\"", pl__trace_hop_name(rows[i].hop), rows[i].sign)
        CHECK(pl__trace_cause(rows[i].hop, pl__str(rows[i].sign)) == &rows[i]);
    }
    for (int hop = 0; hop < TRACE_HOP_COUNT; hop++) {
        CASE("%s: an error that nobody foresaw", pl__trace_hop_name((enum pl_trace_hop)hop))
        const struct pl_trace_cause *row = pl__trace_cause((enum pl_trace_hop)hop, PL_STR("xyzzy"));
        CHECK(row && row->sign[0] == '\0');
    }
    CASE("case does not matter")
    const struct pl_trace_cause *row =
        pl__trace_cause(TRACE_TLS, PL_STR("Certificate has EXPIRED"));
    CHECK(row && strcmp(row->sign, "expired") == 0);
    return test_end("etcd_causes");
}
