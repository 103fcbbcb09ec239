#include "base/yaml_scalar.h"

#include <inttypes.h>

#include "base/buf.h"

/* What Go's encoder prints without an exponent: 1e-6 to 1e21. */
enum { POINT_MIN = -5, POINT_MAX = 21 };

/* Words, told apart from text by their first byte before anything is compared. */
static enum pl_yaml_resolved resolve_word(struct pl_str text, struct pl_yaml_scalar *s)
{
    /* clang-format off */
    static const struct { struct pl_str word; enum pl_yaml_kind kind; } words[] = {
        { PL_STR_INIT("~"),     PL_YAML_NULL },
        { PL_STR_INIT("null"),  PL_YAML_NULL },  { PL_STR_INIT("Null"),  PL_YAML_NULL },
        { PL_STR_INIT("NULL"),  PL_YAML_NULL },
        { PL_STR_INIT("true"),  PL_YAML_TRUE },  { PL_STR_INIT("True"),  PL_YAML_TRUE },
        { PL_STR_INIT("TRUE"),  PL_YAML_TRUE },
        { PL_STR_INIT("yes"),   PL_YAML_TRUE },  { PL_STR_INIT("Yes"),   PL_YAML_TRUE },
        { PL_STR_INIT("YES"),   PL_YAML_TRUE },
        { PL_STR_INIT("on"),    PL_YAML_TRUE },  { PL_STR_INIT("On"),    PL_YAML_TRUE },
        { PL_STR_INIT("ON"),    PL_YAML_TRUE },
        { PL_STR_INIT("y"),     PL_YAML_TRUE },  { PL_STR_INIT("Y"),     PL_YAML_TRUE },
        { PL_STR_INIT("false"), PL_YAML_FALSE }, { PL_STR_INIT("False"), PL_YAML_FALSE },
        { PL_STR_INIT("FALSE"), PL_YAML_FALSE },
        { PL_STR_INIT("no"),    PL_YAML_FALSE }, { PL_STR_INIT("No"),    PL_YAML_FALSE },
        { PL_STR_INIT("NO"),    PL_YAML_FALSE },
        { PL_STR_INIT("off"),   PL_YAML_FALSE }, { PL_STR_INIT("Off"),   PL_YAML_FALSE },
        { PL_STR_INIT("OFF"),   PL_YAML_FALSE },
        { PL_STR_INIT("n"),     PL_YAML_FALSE }, { PL_STR_INIT("N"),     PL_YAML_FALSE },
        { PL_STR_INIT(".nan"),  PL_YAML_FLOAT }, { PL_STR_INIT(".NaN"),  PL_YAML_FLOAT },
        { PL_STR_INIT(".NAN"),  PL_YAML_FLOAT },
        { PL_STR_INIT(".inf"),  PL_YAML_FLOAT }, { PL_STR_INIT(".Inf"),  PL_YAML_FLOAT },
        { PL_STR_INIT(".INF"),  PL_YAML_FLOAT },
        { PL_STR_INIT("+.inf"), PL_YAML_FLOAT }, { PL_STR_INIT("+.Inf"), PL_YAML_FLOAT },
        { PL_STR_INIT("+.INF"), PL_YAML_FLOAT },
        { PL_STR_INIT("-.inf"), PL_YAML_FLOAT }, { PL_STR_INIT("-.Inf"), PL_YAML_FLOAT },
        { PL_STR_INIT("-.INF"), PL_YAML_FLOAT },
    };
    /* clang-format on */
    enum { WORD_BYTES_MAX = 5 };

    if (text.len > WORD_BYTES_MAX || !strchr("~nNtTyYoOfF.+-", text.ptr[0]))
        return PL_YAML_IS_TEXT;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (pl__str_equal(text, words[i].word)) {
            s->kind = words[i].kind;
            return s->kind == PL_YAML_FLOAT ? PL_YAML_IS_NOT_JSON : PL_YAML_IS_SCALAR;
        }
    }
    return PL_YAML_IS_TEXT;
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static unsigned digit_value(char ch)
{
    if (is_digit(ch))
        return (unsigned)(ch - '0');
    if (ch >= 'a' && ch <= 'f')
        return (unsigned)(ch - 'a') + 10;
    if (ch >= 'A' && ch <= 'F')
        return (unsigned)(ch - 'A') + 10;
    return UINT32_MAX;
}

/* 0x1F, 0o17, 017 and 0b11, without sign and underscores. */
static enum pl_yaml_resolved resolve_based(struct pl_str digits, uint64_t *value)
{
    unsigned base = 8;
    uint64_t sum = 0;
    bool overflow = false;
    size_t at = 2;

    if (digits.len < 2 || digits.ptr[0] != '0')
        return PL_YAML_IS_TEXT;
    if (digits.ptr[1] == 'x' || digits.ptr[1] == 'X')
        base = 16;
    else if (digits.ptr[1] == 'b' || digits.ptr[1] == 'B')
        base = 2;
    else if (digits.ptr[1] != 'o' && digits.ptr[1] != 'O')
        at = 1;
    if (at == digits.len)
        return PL_YAML_IS_TEXT;
    for (; at < digits.len; at++) {
        unsigned digit = digit_value(digits.ptr[at]);
        if (digit >= base)
            return PL_YAML_IS_TEXT;
        overflow = overflow || sum > (UINT64_MAX - digit) / base;
        sum = sum * base + digit;
    }
    *value = sum;
    return overflow ? PL_YAML_IS_TOO_LARGE : PL_YAML_IS_SCALAR;
}

/* A decimal number taken apart: its digits, and where among them the point stands. */
struct decimal {
    struct pl_str digits;
    int64_t point; /* digits before it; negative: zeros behind it */
    bool negative;
    bool whole_as_written; /* no point, no exponent */
};

/* A view of the digits at `*at`, which moves behind them. */
static struct pl_str take_digits(struct pl_str text, size_t *at)
{
    size_t start = *at;

    while (*at < text.len && is_digit(text.ptr[*at]))
        (*at)++;
    return (struct pl_str){ text.ptr + start, *at - start };
}

/* Steps over a sign. True when it was a minus. */
static bool take_sign(struct pl_str text, size_t *at)
{
    if (*at == text.len || (text.ptr[*at] != '-' && text.ptr[*at] != '+'))
        return false;
    return text.ptr[(*at)++] == '-';
}

/* The exponent's value. Past the bound it no longer matters how far: the number is infinite or 0. */
static int64_t exponent_value(struct pl_str digits)
{
    enum { EXPONENT_MAX = 100000000 };
    int64_t value = 0;

    for (size_t i = 0; i < digits.len && value < EXPONENT_MAX; i++)
        value = value * 10 + (digits.ptr[i] - '0');
    return value;
}

/* Reads [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?; false when it is something else. */
static bool decimal_parse(struct pl_arena *a, struct pl_str text, struct decimal *d)
{
    size_t at = 0;
    struct pl_str fraction = { "", 0 };
    int64_t exponent = 0;

    d->negative = take_sign(text, &at);
    struct pl_str whole = take_digits(text, &at);
    d->whole_as_written = at == text.len;
    if (at < text.len && text.ptr[at] == '.') {
        at++;
        fraction = take_digits(text, &at);
    }
    if (whole.len + fraction.len == 0)
        return false;
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        bool negative = take_sign(text, &at);
        struct pl_str digits = take_digits(text, &at);
        if (digits.len == 0)
            return false;
        exponent = negative ? -exponent_value(digits) : exponent_value(digits);
    }
    if (at != text.len)
        return false;
    d->digits = fraction.len == 0
                    ? whole
                    : pl__str_format(a, "%.*s%.*s", PL_STR_ARG(whole), PL_STR_ARG(fraction));
    d->point = (int64_t)whole.len + exponent;
    return true;
}

/* Drops the zeros around the digits. */
static void decimal_trim(struct decimal *d)
{
    while (d->digits.len && d->digits.ptr[0] == '0') {
        d->digits = (struct pl_str){ d->digits.ptr + 1, d->digits.len - 1 };
        d->point--;
    }
    while (d->digits.len && d->digits.ptr[d->digits.len - 1] == '0')
        d->digits.len--;
}

/* True when a double cannot hold it. Such a thing is text to Kubernetes' reader. */
static bool decimal_overflows(const struct decimal *d)
{
    /* Half a step above the largest double, 1.797...e308: from here on rounding gives infinity. */
    static const char limit[] = "17976931348623158079372897140530341507993413271003782693617377";
    enum { POINT = 309 };

    if (d->point != POINT)
        return d->point > POINT;
    return pl__str_compare(d->digits, (struct pl_str){ limit, sizeof limit - 1 }) >= 0;
}

static void add_zeros(struct pl_buf *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        pl__buf_add_char(b, '0');
}

/* Laid out as Go's JSON encoder does it, but with all the digits there were. */
static struct pl_str decimal_text(struct pl_arena *a, const struct decimal *d)
{
    struct pl_buf b;
    int64_t count = (int64_t)d->digits.len;

    pl__buf_init(&b, a, SIZE_MAX);
    if (d->negative)
        pl__buf_add_char(&b, '-');
    if (count <= d->point && (d->point <= POINT_MAX || d->whole_as_written)) {
        pl__buf_add(&b, d->digits);
        add_zeros(&b, d->point - count);
    } else if (d->point > 0 && d->point <= POINT_MAX) {
        pl__buf_printf(&b, "%.*s.%.*s", (int)d->point, d->digits.ptr, (int)(count - d->point),
                       d->digits.ptr + d->point);
    } else if (d->point <= 0 && d->point >= POINT_MIN) {
        pl__buf_add_lit(&b, "0.");
        add_zeros(&b, -d->point);
        pl__buf_add(&b, d->digits);
    } else {
        pl__buf_add_char(&b, d->digits.ptr[0]);
        if (count > 1) {
            pl__buf_add_char(&b, '.');
            pl__buf_add(&b, (struct pl_str){ d->digits.ptr + 1, d->digits.len - 1 });
        }
        pl__buf_printf(&b, "e%+" PRId64, d->point - 1);
    }
    return pl__buf_str(&b);
}

static enum pl_yaml_resolved resolve_decimal(struct pl_arena *a, struct pl_str text,
                                             struct pl_yaml_scalar *s)
{
    struct decimal d;

    if (!decimal_parse(a, text, &d))
        return PL_YAML_IS_TEXT;
    decimal_trim(&d);
    if (d.digits.len && decimal_overflows(&d))
        return PL_YAML_IS_TEXT;
    s->kind = d.whole_as_written ? PL_YAML_INT : PL_YAML_FLOAT;
    s->text = d.digits.len ? decimal_text(a, &d) : PL_STR("0");
    return PL_YAML_IS_SCALAR;
}

/* True when every underscore stands between two digits. */
static bool underscores_separate(struct pl_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '_' && (i == 0 || i + 1 == text.len || !is_digit(text.ptr[i - 1]) ||
                                   !is_digit(text.ptr[i + 1])))
            return false;
    }
    return true;
}

static struct pl_str without_underscores(struct pl_arena *a, struct pl_str text)
{
    if (!memchr(text.ptr, '_', text.len))
        return text;

    char *plain = pl__arena_alloc(a, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '_')
            plain[len++] = text.ptr[i];
    }
    return (struct pl_str){ plain, len };
}

static bool could_be_number(char first)
{
    return is_digit(first) || first == '-' || first == '+' || first == '.';
}

static enum pl_yaml_resolved resolve_number(struct pl_arena *a, struct pl_str text,
                                            struct pl_yaml_scalar *s)
{
    enum { DIGITS_SURE = 18 };
    size_t at = 0;
    uint64_t value;

    if (!could_be_number(text.ptr[0]))
        return PL_YAML_IS_TEXT;
    /* Most numbers are short, positive and decimal: JSON's text already. */
    if (text.ptr[0] != '0' && take_digits(text, &at).len == text.len && at <= DIGITS_SURE) {
        *s = (struct pl_yaml_scalar){ PL_YAML_INT, text };
        return PL_YAML_IS_SCALAR;
    }
    /* Kubernetes' reader drops underscores anywhere in a number, except in one like this. */
    if (text.ptr[0] == '.' && !underscores_separate(text))
        return PL_YAML_IS_TEXT;

    struct pl_str plain = without_underscores(a, text);
    size_t sign = 0;
    bool negative = take_sign(plain, &sign);
    struct pl_str digits = { plain.ptr + sign, plain.len - sign };
    enum pl_yaml_resolved based = resolve_based(digits, &value);
    if (based == PL_YAML_IS_SCALAR) {
        s->kind = PL_YAML_INT;
        s->text = pl__str_format(a, "%s%" PRIu64, negative && value ? "-" : "", value);
        return PL_YAML_IS_SCALAR;
    }
    /* An 8 among octal digits, or too many of them: then it is a decimal with zeros in front. */
    enum pl_yaml_resolved decimal = resolve_decimal(a, plain, s);
    return decimal == PL_YAML_IS_TEXT ? based : decimal;
}

enum pl_yaml_resolved pl__yaml_resolve(struct pl_arena *a, struct pl_str text,
                                       struct pl_yaml_scalar *s)
{
    if (text.len == 0) {
        s->kind = PL_YAML_NULL;
        return PL_YAML_IS_SCALAR;
    }
    enum pl_yaml_resolved word = resolve_word(text, s);
    return word == PL_YAML_IS_TEXT ? resolve_number(a, text, s) : word;
}
