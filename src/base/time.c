#include "base/time.h"

enum {
    SECOND_MS = 1000,
    MINUTE_S = 60,
    HOUR_S = 60 * MINUTE_S,
    DAY_S = 24 * HOUR_S,
};

/* The first instant of year 1 and the last millisecond of year 9999. */
static const int64_t ms_min = INT64_C(-62135596800) * SECOND_MS;
static const int64_t ms_max = INT64_C(253402300800) * SECOND_MS - 1;

/* --- the calendar ------------------------------------------------------------------------------ */

/* Both ways count in years that begin in March, so that the leap day is the last of its year, and
 * in eras of 400 years, which are all alike: 146,097 days. Day 0 is 1970-01-01, which is 719,468
 * days behind 0000-03-01. Years are from 0 on, so divisions are of what is not negative. */
enum { ERA_DAYS = 146097, EPOCH_DAYS = 719468 };

struct date {
    int64_t year;
    int64_t month; /* from 1 */
    int64_t day;   /* from 1 */
};

static int64_t days_from_date(struct date d)
{
    int64_t year = d.month > 2 ? d.year : d.year - 1;
    int64_t month = d.month > 2 ? d.month - 3 : d.month + 9; /* from March, 0 */

    year += 400; /* January of year 0 lies in year -1 */
    int64_t era = year / 400;
    int64_t year_of_era = year % 400;
    int64_t day_of_year = (153 * month + 2) / 5 + d.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (era - 1) * ERA_DAYS + day_of_era - EPOCH_DAYS;
}

static struct date date_from_days(int64_t days)
{
    int64_t since = days + EPOCH_DAYS + ERA_DAYS;
    int64_t era = since / ERA_DAYS - 1;
    int64_t day_of_era = since % ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct date d = {
        .year = era * 400 + year_of_era + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day_of_year - (153 * month + 2) / 5 + 1,
    };
    return d;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* --- instants ---------------------------------------------------------------------------------- */

/* What is left to read. */
struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* Exactly `width` digits. */
static bool take_number(struct cursor *c, int width, int64_t *value)
{
    *value = 0;
    for (int i = 0; i < width; i++) {
        if (!is_digit(c))
            return false;
        *value = *value * 10 + (*c->at++ - '0');
    }
    return true;
}

static bool take_char(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_date(struct cursor *c, struct date *d)
{
    return take_number(c, 4, &d->year) && take_char(c, '-') && take_number(c, 2, &d->month) &&
           take_char(c, '-') && take_number(c, 2, &d->day) && d->year >= 1 && d->month >= 1 &&
           d->month <= 12 && d->day >= 1 && d->day <= days_in_month(d->year, d->month);
}

static bool take_clock(struct cursor *c, int64_t *seconds)
{
    int64_t hour, minute, second;

    if (!take_number(c, 2, &hour) || !take_char(c, ':') || !take_number(c, 2, &minute) ||
        !take_char(c, ':') || !take_number(c, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *seconds = hour * HOUR_S + minute * MINUTE_S + second;
    return true;
}

/* A fraction, when there is one, cut to milliseconds. */
static bool take_fraction(struct cursor *c, int64_t *ms)
{
    int64_t unit = SECOND_MS / 10;

    *ms = 0;
    if (!take_char(c, '.'))
        return true;
    if (!is_digit(c))
        return false;
    for (; is_digit(c); c->at++, unit /= 10)
        *ms += unit * (*c->at - '0');
    return true;
}

/* "Z" or "+hh:mm": seconds ahead of UTC. */
static bool take_offset(struct cursor *c, int64_t *seconds)
{
    int64_t hour, minute;

    *seconds = 0;
    if (take_char(c, 'Z') || take_char(c, 'z'))
        return true;
    bool behind = c->at < c->end && *c->at == '-';
    if (!take_char(c, '-') && !take_char(c, '+'))
        return false;
    if (!take_number(c, 2, &hour) || !take_char(c, ':') || !take_number(c, 2, &minute))
        return false;
    if (hour > 23 || minute > 59)
        return false;
    *seconds = hour * HOUR_S + minute * MINUTE_S;
    if (behind)
        *seconds = -*seconds;
    return true;
}

bool pl__time_parse(struct pl_str text, int64_t *ms)
{
    struct cursor c = { text.ptr, text.ptr + text.len };
    struct date date;
    int64_t seconds, fraction_ms, offset;

    if (text.len == 0 || !take_date(&c, &date))
        return false;
    if (!take_char(&c, 'T') && !take_char(&c, 't'))
        return false;
    if (!take_clock(&c, &seconds) || !take_fraction(&c, &fraction_ms) || !take_offset(&c, &offset))
        return false;
    int64_t total = (days_from_date(date) * DAY_S + seconds - offset) * SECOND_MS + fraction_ms;
    /* An offset can push the first and last day out of the years we can print. */
    if (c.at != c.end || total < ms_min || total > ms_max)
        return false;
    *ms = total;
    return true;
}

/* A report has a time for every condition and every fact: printf would be most of the work. */
static void digits_put(char *to, int count, unsigned value)
{
    while (count--) {
        to[count] = (char)('0' + value % 10);
        value /= 10;
    }
}

void pl__time_add(struct pl_buf *b, int64_t ms)
{
    if (ms == 0)
        return;
    if (ms < ms_min)
        ms = ms_min;
    if (ms > ms_max)
        ms = ms_max;

    /* Counted from year 1, nothing is negative, and division rounds down. */
    int64_t since = (ms - ms_min) / SECOND_MS;
    struct date d = date_from_days(since / DAY_S + ms_min / SECOND_MS / DAY_S);
    unsigned clock = (unsigned)(since % DAY_S);
    char text[] = "0000-00-00T00:00:00Z";
    digits_put(text, 4, (unsigned)d.year);
    digits_put(text + 5, 2, (unsigned)d.month);
    digits_put(text + 8, 2, (unsigned)d.day);
    digits_put(text + 11, 2, clock / HOUR_S);
    digits_put(text + 14, 2, clock / MINUTE_S % 60);
    digits_put(text + 17, 2, clock % 60);
    pl__buf_add(b, (struct pl_str){ text, sizeof text - 1 });
}

/* --- durations --------------------------------------------------------------------------------- */

static void add_unit(struct pl_buf *b, uint64_t value, char unit)
{
    pl__buf_add_u64(b, value);
    pl__buf_add_char(b, unit);
}

void pl__duration_add(struct pl_buf *b, int64_t seconds)
{
    uint64_t left = seconds < 0 ? 0 - (uint64_t)seconds : (uint64_t)seconds;

    if (seconds < 0)
        pl__buf_add_char(b, '-');
    if (left >= HOUR_S)
        add_unit(b, left / HOUR_S, 'h');
    if (left >= MINUTE_S)
        add_unit(b, left / MINUTE_S % 60, 'm');
    add_unit(b, left % 60, 's');
}

/* Longer names first: "ms" is not minutes. Both spellings of micro are in use, U+00B5 and U+03BC. */
static const struct {
    struct pl_str name;
    uint64_t ns;
} units[] = {
    { PL_STR_INIT("ns"), 1 },
    { PL_STR_INIT("us"), 1000 },
    { PL_STR_INIT("\u00b5s"), 1000 },
    { PL_STR_INIT("\u03bcs"), 1000 },
    { PL_STR_INIT("ms"), 1000 * 1000 },
    { PL_STR_INIT("s"), 1000 * 1000 * 1000 },
    { PL_STR_INIT("m"), UINT64_C(60) * 1000 * 1000 * 1000 },
    { PL_STR_INIT("h"), UINT64_C(3600) * 1000 * 1000 * 1000 },
};

/* The unit at the cursor in nanoseconds, or 0. It ends where the next number begins. */
static uint64_t take_unit(struct cursor *c)
{
    struct pl_str name = { c->at, 0 };

    while (c->at < c->end && !is_digit(c) && *c->at != '.')
        c->at++;
    name.len = (size_t)(c->at - name.ptr);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (pl__str_equal(name, units[i].name))
            return units[i].ns;
    }
    return 0;
}

/* Go's limit: what an int64 of nanoseconds holds, about 292 years. */
static const uint64_t ns_max = INT64_MAX;

/* One "1.5h", added to `*ns`. */
static bool take_part(struct cursor *c, uint64_t *ns)
{
    const char *start = c->at;
    uint64_t whole = 0;

    for (; is_digit(c); c->at++) {
        if (whole > (ns_max - 9) / 10)
            return false;
        whole = whole * 10 + (uint64_t)(*c->at - '0');
    }
    struct cursor fraction = *c;
    size_t digit_count = (size_t)(c->at - start);
    if (take_char(c, '.')) {
        fraction = *c;
        for (; is_digit(c); c->at++)
            digit_count++;
    }
    if (digit_count == 0)
        return false;

    uint64_t unit = take_unit(c);
    if (unit == 0 || whole > ns_max / unit)
        return false;
    uint64_t part = whole * unit;
    for (uint64_t place = unit / 10; place && is_digit(&fraction); place /= 10)
        part += place * (uint64_t)(*fraction.at++ - '0');
    if (part > ns_max - *ns)
        return false;
    *ns += part;
    return true;
}

bool pl__duration_parse(struct pl_str text, int64_t *seconds)
{
    struct cursor c = { text.ptr, text.ptr + text.len };
    uint64_t ns = 0;

    if (text.len == 0)
        return false;
    bool negative = *c.at == '-';
    if (negative || *c.at == '+')
        c.at++;
    if (c.end - c.at == 1 && *c.at == '0') { /* the one number that needs no unit */
        *seconds = 0;
        return true;
    }
    if (c.at == c.end)
        return false;
    while (c.at < c.end) {
        if (!take_part(&c, &ns))
            return false;
    }
    int64_t whole = (int64_t)(ns / units[5].ns);
    *seconds = negative ? -whole : whole;
    return true;
}

/* --- ages -------------------------------------------------------------------------------------- */

/* "4m30s", or "4m" when there are no seconds. */
static void add_two_units(struct pl_buf *b, int64_t big, char big_unit, int64_t small,
                          char small_unit)
{
    add_unit(b, (uint64_t)big, big_unit);
    if (small)
        add_unit(b, (uint64_t)small, small_unit);
}

/* The steps are those of HumanDuration in k8s.io/apimachinery: about two digits that matter. */
void pl__age_add(struct pl_buf *b, int64_t ms)
{
    int64_t seconds = ms / SECOND_MS;
    int64_t minutes = seconds / MINUTE_S, hours = seconds / HOUR_S, days = hours / 24;

    if (seconds < -1) /* a clock that far off is no age; up to two seconds is skew */
        pl__buf_add_lit(b, "<invalid>");
    else if (seconds < 120)
        add_unit(b, seconds < 0 ? 0 : (uint64_t)seconds, 's');
    else if (minutes < 10)
        add_two_units(b, minutes, 'm', seconds % 60, 's');
    else if (minutes < 180)
        add_unit(b, (uint64_t)minutes, 'm');
    else if (hours < 8)
        add_two_units(b, hours, 'h', minutes % 60, 'm');
    else if (hours < 48)
        add_unit(b, (uint64_t)hours, 'h');
    else if (hours < 192)
        add_two_units(b, days, 'd', hours % 24, 'h');
    else if (days < 365 * 2)
        add_unit(b, (uint64_t)days, 'd');
    else if (days < 365 * 8)
        add_two_units(b, days / 365, 'y', days % 365, 'd');
    else
        add_unit(b, (uint64_t)days / 365, 'y');
}
