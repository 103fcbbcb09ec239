#include "proto/upgrade.h"

#include "base/base64.h"
#include "base/json.h"
#include "proto/sha1.h"

struct pl_str pl__upgrade_accept(struct pl_arena *arena, struct pl_str key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */
    struct pl_str both = pl__str_format(arena, "%.*s%s", PL_STR_ARG(key), guid);
    uint8_t digest[SHA1_BYTES];

    pl__sha1(both.ptr, both.len, digest);
    return pl__base64_encode(arena, (struct pl_str){ (char *)digest, sizeof digest });
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_nocase(struct pl_str a, struct pl_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    return true;
}

static bool list_has(struct pl_str list, struct pl_str token)
{
    while (list.len > 0)
        if (equal_nocase(pl__str_trim(pl__str_cut(&list, ',')), token))
            return true;
    return false;
}

static void header_read(struct pl_str accept, struct pl_str name, struct pl_str value,
                        struct pl_upgrade_answer *a)
{
    if (equal_nocase(name, PL_STR("upgrade")))
        a->upgrade = equal_nocase(value, PL_STR("websocket"));
    else if (equal_nocase(name, PL_STR("connection")))
        a->connection |= list_has(value, PL_STR("upgrade"));
    else if (equal_nocase(name, PL_STR("sec-websocket-accept")))
        a->accept = pl__str_equal(value, accept);
    else if (equal_nocase(name, PL_STR("sec-websocket-protocol")))
        a->protocol = pl__str_equal(value, PL_STR(UPGRADE_PROTOCOL));
    else if (equal_nocase(name, PL_STR("sec-websocket-extensions")))
        a->extensions = true;
    else if (equal_nocase(name, PL_STR("transfer-encoding")))
        a->chunked = list_has(value, PL_STR("chunked"));
    else if (equal_nocase(name, PL_STR("content-length")))
        a->has_length = pl__str_to_u64(value, &a->length);
}

/* "HTTP/1.1 404 Not Found"; 0 when it is no such thing. */
static int status_read(struct pl_str line)
{
    int status = 0;

    if (line.len < 12 || !pl__str_starts_with(line, PL_STR("HTTP/1.")) || line.ptr[8] != ' ' ||
        (line.len > 12 && line.ptr[12] != ' '))
        return 0;
    for (size_t i = 9; i < 12; i++) {
        if (line.ptr[i] < '0' || line.ptr[i] > '9')
            return 0;
        status = status * 10 + (line.ptr[i] - '0');
    }
    return status >= 100 && status <= 599 ? status : 0;
}

static struct pl_str line_cut(struct pl_str *from)
{
    struct pl_str line = pl__str_cut(from, '\n');

    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

struct pl_upgrade_answer pl__upgrade_answer_read(struct pl_str headers, struct pl_str accept)
{
    struct pl_upgrade_answer a = { .status = status_read(line_cut(&headers)) };

    while (headers.len > 0) {
        struct pl_str value = line_cut(&headers);
        struct pl_str name = pl__str_cut(&value, ':');
        header_read(accept, name, pl__str_trim(value), &a);
    }
    return a;
}

bool pl__upgrade_chunks_join(struct pl_str raw, struct pl_buf *body)
{
    while (raw.len > 0 && memchr(raw.ptr, '\n', raw.len)) {
        struct pl_str size_line = line_cut(&raw);
        struct pl_str digits = pl__str_trim(pl__str_cut(&size_line, ';'));
        size_t size = 0;
        for (size_t i = 0; i < digits.len; i++) {
            char c = lower(digits.ptr[i]);
            bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'f';
            if ((!is_digit && !is_letter) || size > body->max)
                return true; /* not chunks: more of it makes it no better */
            size = size * 16 + (size_t)(is_digit ? c - '0' : c - 'a' + 10);
        }
        if (size == 0)
            return digits.len > 0;
        struct pl_str chunk = { raw.ptr, size < raw.len ? size : raw.len };
        pl__buf_add(body, chunk);
        raw.ptr += chunk.len;
        raw.len -= chunk.len;
        (void)line_cut(&raw);
    }
    return false;
}

struct refusal {
    struct pl_str kind, message;
};

struct pl_str pl__upgrade_refusal_message(struct pl_arena *arena, struct pl_str body)
{
    static const struct pl_field fields[] = {
        PL_FIELD("kind", F_STR, struct refusal, kind),
        PL_FIELD("message", F_STR, struct refusal, message),
    };
    static PL_SHAPE(shape, struct refusal, fields);
    struct refusal refusal = { 0 };
    struct pl_error *err = NULL;
    struct pl_json j;

    pl__json_init(&j, body, PL_STR("Status"), arena, 0, &err);
    if (pl__json_decode(&j, &shape, &refusal) == 0 && refusal.message.len > 0)
        return refusal.message;
    return body;
}
