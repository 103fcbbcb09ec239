#include "base/version.h"

/* --- reading ----------------------------------------------------------------------------------- */

static bool is_identifier_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Takes digits from the front. */
static bool number_take(struct pl_str *text, uint64_t *value)
{
    size_t len = 0;

    while (len < text->len && text->ptr[len] >= '0' && text->ptr[len] <= '9')
        len++;
    if (!pl__str_to_u64((struct pl_str){ text->ptr, len }, value))
        return false;
    *text = (struct pl_str){ text->ptr + len, text->len - len };
    return true;
}

static bool char_take(struct pl_str *text, char c)
{
    if (text->len == 0 || *text->ptr != c)
        return false;
    *text = (struct pl_str){ text->ptr + 1, text->len - 1 };
    return true;
}

/* Takes identifiers joined by dots from the front; none of them may be empty. */
static bool identifiers_take(struct pl_str *text, struct pl_str *value)
{
    size_t len = 0;
    bool dot_before = true;

    for (; len < text->len; len++) {
        char c = text->ptr[len];
        if (c == '.' ? dot_before : !is_identifier_char(c))
            break;
        dot_before = c == '.';
    }
    if (dot_before)
        return false;
    *value = (struct pl_str){ text->ptr, len };
    *text = (struct pl_str){ text->ptr + len, text->len - len };
    return true;
}

bool pl__version_parse(struct pl_str text, struct pl_version *v)
{
    *v = (struct pl_version){ 0 };
    char_take(&text, 'v');
    if (!number_take(&text, &v->major))
        return false;
    if (char_take(&text, '.') && !number_take(&text, &v->minor))
        return false;
    if (char_take(&text, '.') && !number_take(&text, &v->patch))
        return false;
    if (char_take(&text, '-') && !identifiers_take(&text, &v->prerelease))
        return false;
    if (char_take(&text, '+') && !identifiers_take(&text, &v->build))
        return false;
    return text.len == 0;
}

void pl__version_add(struct pl_buf *b, const struct pl_version *v)
{
    pl__buf_add_u64(b, v->major);
    pl__buf_add_char(b, '.');
    pl__buf_add_u64(b, v->minor);
    pl__buf_add_char(b, '.');
    pl__buf_add_u64(b, v->patch);
    if (v->prerelease.len)
        pl__buf_add_char(b, '-');
    pl__buf_add(b, v->prerelease);
    if (v->build.len)
        pl__buf_add_char(b, '+');
    pl__buf_add(b, v->build);
}

/* --- comparing --------------------------------------------------------------------------------- */

static int u64_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The first identifier, which is cut off the list. */
static struct pl_str identifier_next(struct pl_str *list)
{
    const char *dot = memchr(list->ptr, '.', list->len);
    struct pl_str first = { list->ptr, dot ? (size_t)(dot - list->ptr) : list->len };
    size_t used = first.len + (dot != NULL);

    *list = (struct pl_str){ list->ptr + used, list->len - used };
    return first;
}

/* Numbers come before words. In a build, words that differ have no order: `a` then counts as later. */
static int identifier_compare(struct pl_str a, struct pl_str b, bool is_build)
{
    uint64_t x = 0, y = 0;
    bool a_number = pl__str_to_u64(a, &x), b_number = pl__str_to_u64(b, &y);

    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number)
        return u64_compare(x, y);
    if (is_build)
        return pl__str_equal(a, b) ? 0 : 1;
    return pl__str_compare(a, b);
}

/* One by one; when one list ends, the longer is later. */
static int identifiers_compare(struct pl_str a, struct pl_str b, bool is_build)
{
    while (a.len && b.len) {
        int order = identifier_compare(identifier_next(&a), identifier_next(&b), is_build);
        if (order)
            return order;
    }
    return (a.len > 0) - (b.len > 0);
}

/* A version without a prerelease is later than its prereleases. */
static int prerelease_compare(struct pl_str a, struct pl_str b)
{
    if (a.len == 0 || b.len == 0)
        return (b.len > 0) - (a.len > 0);
    return identifiers_compare(a, b, false);
}

bool pl__version_upgrades(const struct pl_version *from, const struct pl_version *to)
{
    int order = u64_compare(to->major, from->major);

    if (!order)
        order = u64_compare(to->minor, from->minor);
    if (!order)
        order = u64_compare(to->patch, from->patch);
    if (!order)
        order = prerelease_compare(to->prerelease, from->prerelease);
    if (!order)
        order = identifiers_compare(to->build, from->build, true);
    return order > 0;
}
