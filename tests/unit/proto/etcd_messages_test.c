/* etcd's messages against bytes that real members sent and took, and against nonsense. */
#include "test.h"

#include "proto/etcd_messages.h"

static struct pl_arena arena;

/* Bytes from hex digits; spaces are for the reader. */
static struct pl_str hex(const char *digits)
{
    uint8_t *bytes = pl__arena_alloc(&arena, strlen(digits) / 2 + 1);
    size_t count = 0;

    for (const char *at = digits; *at; at++) {
        int value = *at >= 'a' ? *at - 'a' + 10 : *at - '0';
        if (*at == ' ')
            continue;
        bytes[count / 2] = (uint8_t)(bytes[count / 2] << 4 | value);
        count++;
    }
    return (struct pl_str){ (const char *)bytes, count / 2 };
}

static struct pl_str encode(enum pl_etcd_method method, uint64_t id, const char *url)
{
    return pl__etcd_request_encode(&arena, method, &(struct pl_etcd_arguments){ id, pl__str(url) });
}

static int decode(enum pl_etcd_method method, struct pl_str bytes, struct pl_etcd_answer *answer,
                  struct pl_str *error)
{
    struct pl_error *err = NULL;
    int result = pl__etcd_reply_decode(&arena, method, bytes, answer, &err);

    *error = err ? pl__error_text(&arena, err) : PL_STR("");
    return result;
}

#define SAME(got, want) CHECK(pl__str_equal((got), (want)))

static void test_requests(void)
{
    uint64_t id = 0xfa32e32a395fac2a;

    CASE("requests are the reference's bytes")
    SAME(encode(ETCD_METHOD_STATUS, 0, ""), PL_STR(""));
    SAME(encode(ETCD_METHOD_ALARM_LIST, 0, ""), PL_STR(""));
    SAME(encode(ETCD_METHOD_MEMBER_LIST, 0, ""), hex("08 01"));
    SAME(encode(ETCD_METHOD_MOVE_LEADER, id, ""), hex("08 aad8fecaa3e5b899fa01"));
    SAME(encode(ETCD_METHOD_MEMBER_REMOVE, id, ""), hex("08 aad8fecaa3e5b899fa01"));
    SAME(encode(ETCD_METHOD_MEMBER_PROMOTE, 1, ""), hex("08 01"));
    SAME(encode(ETCD_METHOD_MEMBER_ADD, 0, "http://a:1"), hex("0a0a 687474703a2f2f613a31"));
    SAME(encode(ETCD_METHOD_MEMBER_ADD_LEARNER, 0, "http://a:1"),
         hex("0a0a 687474703a2f2f613a31 1001"));
    SAME(encode(ETCD_METHOD_NOSPACE_RAISE, 5, ""), hex("0801 1005 1801"));
    SAME(encode(ETCD_METHOD_NOSPACE_CLEAR, 5, ""), hex("0802 1005 1801"));

    CASE("paths, and what may be sent twice")
    for (int i = 0; i < ETCD_METHOD_COUNT; i++) {
        const char *path = pl__etcd_method_path((enum pl_etcd_method)i);
        CHECK(pl__str_starts_with(pl__str(path), PL_STR("/etcdserverpb.")));
        CHECK_INT(pl__etcd_method_is_idempotent((enum pl_etcd_method)i),
                  i == ETCD_METHOD_STATUS || i == ETCD_METHOD_MEMBER_LIST ||
                      i == ETCD_METHOD_ALARM_LIST);
    }
    CHECK_STR(pl__str(pl__etcd_method_path(ETCD_METHOD_MEMBER_ADD_LEARNER)),
              "/etcdserverpb.Cluster/MemberAdd");
}

static void test_status(void)
{
    struct pl_etcd_answer answer = { 0 };
    struct pl_str error;

    CASE("a real Status of 3.4.23")
    struct pl_str bytes = hex("0a19 08c48ad4afafd8b1f637 10aad8fecaa3e5b899fa01 1801 2002"
                              "1206332e342e3233 1880e001 20aad8fecaa3e5b899fa01 2808 3002 3808"
                              "48808001");
    CHECK_INT(bytes.len, 0x3c);
    CHECK_INT(decode(ETCD_METHOD_STATUS, bytes, &answer, &error), 0);
    CHECK(answer.cluster_id == 0x37ecc6c2f5f50544);
    CHECK(answer.member_id == 0xfa32e32a395fac2a);
    CHECK(answer.leader == 0xfa32e32a395fac2a);
    CHECK_STR(answer.version, "3.4.23");
    CHECK_INT(answer.db_size, 28672);
    CHECK_INT(answer.db_size_in_use, 16384);
    CHECK_INT(answer.raft_index, 8);
    CHECK_INT(answer.raft_term, 2);
    CHECK(!answer.is_learner);
    CHECK_INT(answer.error_count, 0);

    CASE("a learner of 3.6 without leader: errors, fields 11 to 13, one nobody knows")
    answer = (struct pl_etcd_answer){ 0 };
    CHECK_INT(decode(ETCD_METHOD_STATUS,
                     hex("4202 6162 4203 630064 5001 5a03332e36 6080808008 6a02 0801 a20601ff"),
                     &answer, &error),
              0);
    CHECK_INT(answer.leader, 0);
    CHECK(answer.is_learner);
    CHECK_INT(answer.error_count, 2);
    CHECK_STR(answer.errors[0], "ab");
    CHECK(pl__str_equal(answer.errors[1], (struct pl_str){ "c\0d", 3 }));

    CASE("the last of several wins, an empty reply is one")
    CHECK_INT(decode(ETCD_METHOD_STATUS, hex("2001 2002"), &answer, &error), 0);
    CHECK_INT(answer.leader, 2);
    CHECK_INT(decode(ETCD_METHOD_STATUS, PL_STR(""), &answer, &error), 0);
    CHECK_INT(answer.leader, 0);
    CHECK_INT(answer.error_count, 0);
}

static void test_lists(void)
{
    struct pl_etcd_answer answer = { 0 };
    struct pl_str error;
    /* Two members, ids out of order, the second one new: no name, no client URL. */
    const char *members = "0a04 08011002"
                          "121a 08ffffffffffffffffff01 1202 6370 1a0268 31 1a0268 32 2201 63"
                          "1208 0802 1a0268 33 2801";
    const char *added = "0a04 08011002 1202 0802"
                        "1a1a 08ffffffffffffffffff01 1202 6370 1a0268 31 1a0268 32 2201 63"
                        "1a08 0802 1a0268 33 2801";

    for (int i = 0; i < ETCD_METHOD_COUNT; i++) {
        bool is_add = i == ETCD_METHOD_MEMBER_ADD || i == ETCD_METHOD_MEMBER_ADD_LEARNER;
        if (i == ETCD_METHOD_STATUS || i == ETCD_METHOD_ALARM_LIST ||
            i == ETCD_METHOD_MOVE_LEADER || i >= ETCD_METHOD_NOSPACE_RAISE)
            continue;
        CASE("members, method %d", i)
        answer = (struct pl_etcd_answer){ .version = PL_STR_INIT("kept") };
        CHECK_INT(decode((enum pl_etcd_method)i, hex(is_add ? added : members), &answer, &error),
                  0);
        CHECK_STR(error, "");
        CHECK_INT(answer.member_count, 2);
        if (answer.member_count != 2)
            continue;
        CHECK_INT(answer.members[0].id, 2);
        CHECK_STR(answer.members[0].name, "");
        CHECK_STR(answer.members[0].peer_url, "h3");
        CHECK_STR(answer.members[0].client_url, "");
        CHECK(answer.members[0].is_learner);
        CHECK(answer.members[1].id == UINT64_MAX);
        CHECK_STR(answer.members[1].name, "cp");
        CHECK_STR(answer.members[1].peer_url, "h1");
        CHECK_STR(answer.members[1].client_url, "c");
        CHECK(!answer.members[1].is_learner);
        CHECK_INT(answer.cluster_id, 1);
        CHECK_INT(answer.member_id, 2);
        CHECK_STR(answer.version, "kept");
    }

    CASE("a real alarm of 3.4, which has no header")
    answer = (struct pl_etcd_answer){ .cluster_id = 7 };
    CHECK_INT(
        decode(ETCD_METHOD_ALARM_LIST, hex("120d 08f9d4b4c7c3e2d284ac01 1001"), &answer, &error),
        0);
    CHECK_INT(answer.alarm_count, 1);
    CHECK(answer.alarms[0].member_id == 0xac094b1438ed2a79);
    CHECK_INT(answer.alarms[0].alarm, 1);
    CHECK_INT(answer.cluster_id, 7);

    CASE("alarms are sorted; none is an answer")
    CHECK_INT(decode(ETCD_METHOD_ALARM_LIST, hex("1204 08021002 1204 08021001 1204 08011063"),
                     &answer, &error),
              0);
    CHECK_INT(answer.alarm_count, 3);
    CHECK_INT(answer.alarms[0].alarm, 99);
    CHECK_INT(answer.alarms[1].alarm, 1);
    CHECK_INT(answer.alarms[2].alarm, 2);
    CHECK_INT(decode(ETCD_METHOD_NOSPACE_RAISE, hex("1204 08021001"), &answer, &error), 0);
    CHECK_INT(answer.alarm_count, 1);
    CHECK_INT(decode(ETCD_METHOD_ALARM_LIST, PL_STR(""), &answer, &error), 0);
    CHECK_INT(answer.alarm_count, 0);

    CASE("MoveLeader says nothing")
    CHECK_INT(decode(ETCD_METHOD_MOVE_LEADER, PL_STR(""), &answer, &error), 0);
}

static void test_nonsense(void)
{
    static const char *const broken[] = {
        "0a",                       /* no length */
        "0a05 0801",                /* a length past the end */
        "0affffffffffffffffff01",   /* one of 64 bits */
        "20ffffffffffffffffffff01", /* a varint of eleven bytes */
        "2080",                     /* one that does not end */
        "12028080",                 /* fine as text, broken as a Member or an alarm */
        "0b0c",                     /* groups are gone */
        "00",                       /* field 0 */
        "0801",                     /* a number where the header should be */
    };
    struct pl_str error;

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        CASE("broken bytes %s", broken[i])
        struct pl_etcd_answer answer = { .leader = 42 };
        CHECK_INT(decode(ETCD_METHOD_MEMBER_LIST, hex(broken[i]), &answer, &error), -1);
        CHECK_STR(error, "MemberList reply: not the protobuf message it should be");
        CHECK_INT(answer.leader, 42);
    }

    CASE("two bytes a part do not become a hundred times their size")
    static const struct {
        enum pl_etcd_method method;
        char tag;
    } bombs[] = {
        { ETCD_METHOD_MEMBER_LIST, 0x12 }, /* empty members */
        { ETCD_METHOD_STATUS, 0x42 },      /* empty errors */
        { ETCD_METHOD_STATUS, 0x7a },      /* unknown fields */
    };
    enum { BOMB_BYTES = 1024 * 1024 };
    char *bomb = pl__arena_alloc(&arena, BOMB_BYTES);
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        struct pl_arena small;
        struct pl_error *err = NULL;
        struct pl_etcd_answer answer = { 0 };

        pl__arena_init(&small, NULL, 4096);
        for (size_t at = 0; at < BOMB_BYTES; at += 2)
            bomb[at] = bombs[i].tag;
        int result = pl__etcd_reply_decode(&small, bombs[i].method,
                                           (struct pl_str){ bomb, BOMB_BYTES }, &answer, &err);
        CHECK_INT(result, -1);
        CHECK(small.held_bytes < 24 * (size_t)BOMB_BYTES);
        if (err)
            CHECK(pl__str_ends_with(err->message, PL_STR("reply: too many parts for its size")));
        pl__arena_release(&small);
    }
}

static void test_alarm_names(void)
{
    CASE("names of alarms")
    CHECK_STR(pl__etcd_alarm_name(&arena, 0), "NONE");
    CHECK_STR(pl__etcd_alarm_name(&arena, 1), "NOSPACE");
    CHECK_STR(pl__etcd_alarm_name(&arena, 2), "CORRUPT");
    CHECK_STR(pl__etcd_alarm_name(&arena, 3), "3");
    CHECK_STR(pl__etcd_alarm_name(&arena, UINT32_MAX), "4294967295");
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_requests();
    test_status();
    test_lists();
    test_nonsense();
    test_alarm_names();
    pl__arena_release(&arena);
    return test_end("etcd messages");
}
