/* Date-times and durations in ISO 8601. */
#include "tools/tool_when.h"

#include "unit.h"

static void datetimes(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"1970-01-01T00:00:00.000", 0},
                {"1970-01-01T00:00:00.001Z", 1},
                {"2023-11-14T22:13:20.000", 1700000000000},
                {"2023-11-14T22:13:20", 1700000000000},
                {"2023-11-14T22:13", 1699999980000},
                {"2023-11-14T22:13:20.5", 1700000000500},
                {"2023-11-14T23:43:20.000+01:30", 1700000000000},
                {"2023-11-14T23:43:20.000+0130", 1700000000000},
                {"2023-11-14T20:13:20.000-02", 1700000000000},
                {"2024-02-29T00:00:00.000", 1709164800000},
                {"2000-02-29T00:00:00.000", 951782400000},
                {"1969-12-31T23:59:59.999", -1},
                {"1960-02-29T00:00:00.000", -310521600000}};
    static const char *const bad[] = {"",
                                      "2023-11-14",
                                      "2023-11-14 22:13:20.000",
                                      "2023-11-14T",
                                      "2023-13-14T22:13:20.000",
                                      "2023-02-29T22:13:20.000",
                                      "1900-02-29T00:00:00.000",
                                      "2023-11-00T22:13:20.000",
                                      "2023-11-14T24:00:00.000",
                                      "2023-11-14T22:60:00.000",
                                      "2023-11-14T22:13:20.",
                                      "2023-11-14T22:13:20.0000",
                                      "2023-11-14T22:13:20.000X",
                                      "2023-11-14T22:13:20.000Zx",
                                      "2023-11-14T22:13:20.000+1",
                                      "2023-11-14T22:13:20.000+01:3",
                                      "23-11-14T22:13:20.000"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(tool_when_datetime(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tool_when_datetime(bad[i], &ms));
}

static void durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"PT0S", 0},         {"P1D", 86400000}, {"P1DT2H3M4S", 93784000}, {"pt1h", 3600000},
        {"PT1.5S", 1500},    {"PT0.0005S", 0},  {"PT-6H3M", -21420000},   {"-PT6H+3M", -21780000},
        {"-P1D", -86400000}, {"PT1.S", 1000}};
    static const char *const bad[] = {"",
                                      "P",
                                      "PT",
                                      "P1DT",
                                      "1D",
                                      "P1H",
                                      "PT1D",
                                      "PT1",
                                      "PT1M1H",
                                      "P1W",
                                      "PT1.5H",
                                      "P1D ",
                                      "PTS",
                                      "P1DT1HT",
                                      "PT9223372036854775807S",
                                      "PT99999999999999999999S"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(tool_when_duration(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tool_when_duration(bad[i], &ms));
}

UNIT_MAIN(unit_test(datetimes), unit_test(durations))
