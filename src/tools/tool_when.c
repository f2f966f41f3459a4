#include "tools/tool_when.h"

#include <ctype.h>
#include <string.h>

/* ---- date and time ---- */

/* Exactly n digits; moves past them. */
static bool digits(const char **at, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (!isdigit((unsigned char)**at))
            return false;
        *out = *out * 10 + *(*at)++ - '0';
    }
    return true;
}

static bool past(const char **at, char c)
{
    bool there = **at == c;
    *at += there;
    return there;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

static int64_t days_since_1970(int year, int month, int day)
{
    int64_t days = day - 1;
    for (int m = 1; m < month; m++)
        days += days_of(year, m);
    for (int y = 1970; y < year; y++)
        days += 365 + is_leap(y);
    for (int y = year; y < 1970; y++)
        days -= 365 + is_leap(y);
    return days;
}

static bool date(const char **at, int64_t *days)
{
    int year, month, day;
    if (!digits(at, 4, &year) || !past(at, '-') || !digits(at, 2, &month) || !past(at, '-') ||
        !digits(at, 2, &day) || month < 1 || month > 12 || day < 1 || day > days_of(year, month))
        return false;
    *days = days_since_1970(year, month, day);
    return true;
}

static bool fraction(const char **at, int *ms)
{
    int scale = 100;
    *ms = 0;
    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at) && scale; scale /= 10)
        *ms += (*(*at)++ - '0') * scale;
    return !isdigit((unsigned char)**at);
}

static bool time_of_day(const char **at, int64_t *ms)
{
    int hour, minute, second = 0, milli = 0;
    if (!digits(at, 2, &hour) || !past(at, ':') || !digits(at, 2, &minute))
        return false;
    if (**at == ':') {
        (*at)++;
        if (!digits(at, 2, &second))
            return false;
        if (**at == '.') {
            (*at)++;
            if (!fraction(at, &milli))
                return false;
        }
    }
    *ms = ((hour * 60LL + minute) * 60 + second) * 1000 + milli;
    return hour < 24 && minute < 60 && second < 60;
}

/* What is to be taken off to come to UTC. */
static bool zone(const char **at, int64_t *ms)
{
    int hour, minute = 0;
    *ms = 0;
    if (**at == 0)
        return true;
    if (**at == 'Z')
        return *++*at == 0;
    int sign = **at == '+' ? 1 : **at == '-' ? -1 : 0;
    (*at)++;
    if (!sign || !digits(at, 2, &hour))
        return false;
    if (**at) {
        *at += **at == ':';
        if (!digits(at, 2, &minute))
            return false;
    }
    *ms = sign * (hour * 60LL + minute) * 60000;
    return **at == 0 && hour < 24 && minute < 60;
}

bool tool_when_datetime(const char *text, int64_t *ms)
{
    const char *at = text;
    int64_t days, day_ms, zone_ms;
    if (!date(&at, &days) || !past(&at, 'T') || !time_of_day(&at, &day_ms) || !zone(&at, &zone_ms))
        return false;
    *ms = days * 86400000 + day_ms - zone_ms;
    return true;
}

/* ---- duration ---- */

/* [+-]digits[.digits]UNIT at *at, where the unit is one of those left in *units. Adds it, and
 * takes it and those in front of it off. */
static bool part(const char **at, const char **units, int64_t *sum)
{
    static const struct {
        char unit;
        int64_t ms;
    } sizes[] = {{'D', 86400000}, {'H', 3600000}, {'M', 60000}, {'S', 1000}};
    const char *p = *at;
    int sign = *p == '-' ? -1 : 1, ms = 0;
    int64_t n = 0, size = 0;
    p += *p == '-' || *p == '+';
    const char *first = p;
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return false;
    if (p == first)
        return false;
    bool dot = *p == '.';
    if (dot) {
        p++;
        if (isdigit((unsigned char)*p) && !fraction(&p, &ms))
            while (isdigit((unsigned char)*p)) /* below a millisecond */
                p++;
    }
    char unit = (char)toupper((unsigned char)*p);
    const char *found = unit ? strchr(*units, unit) : NULL;
    if (!found || (dot && unit != 'S'))
        return false;
    for (int i = 0; i < 4; i++)
        if (sizes[i].unit == unit)
            size = sizes[i].ms;
    *units = found + 1;
    *at = p + 1;
    return !__builtin_mul_overflow(n, size, &n) && !__builtin_add_overflow(n, ms, &n) &&
           !__builtin_add_overflow(*sum, sign * n, sum);
}

static bool parts(const char **at, const char *units, int64_t *sum, bool *any)
{
    while (**at && toupper((unsigned char)**at) != 'T') {
        if (!part(at, &units, sum))
            return false;
        *any = true;
    }
    return true;
}

bool tool_when_duration(const char *text, int64_t *ms)
{
    const char *at = text;
    int sign = *at == '-' ? -1 : 1;
    bool any = false, in_time = false;
    *ms = 0;
    at += *at == '-' || *at == '+';
    if (toupper((unsigned char)*at) != 'P')
        return false;
    at++;
    if (!parts(&at, "D", ms, &any))
        return false;
    if (*at) { /* T, and something behind it */
        at++;
        if (!parts(&at, "HMS", ms, &in_time) || *at || !in_time)
            return false;
    }
    *ms *= sign;
    return any || in_time;
}
