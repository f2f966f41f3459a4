/* tool_java.c - see tool_java.h. */
#include "tools/tool_java.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Digits and decimal exponent of the shortest text that reads as v (> 0): 0.d1d2d3... * 10^exp. */
static void shortest(double v, char digits[24], int *exp)
{
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t n = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (isdigit((unsigned char)*p))
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = 0;
    *exp = atoi(p + 1) + 1;
}

/* "12.5": the point stands behind `whole` digits, which may be none, or more than there are. */
static void put_plain(char *out, size_t out_n, const char *digits, int whole)
{
    int n = (int)strlen(digits);
    char before[32] = "0", after[48] = "0";
    if (whole > 0) {
        memset(before, '0', (size_t)whole);
        memcpy(before, digits, (size_t)(whole < n ? whole : n));
        before[whole] = 0;
    }
    if (whole < n)
        snprintf(after, sizeof after, "%.*s%s", whole < 0 ? -whole : 0, "00000",
                 digits + (whole > 0 ? whole : 0));
    snprintf(out, out_n, "%s.%s", before, after);
}

const char *tool_java_double(double v, char out[48])
{
    char digits[24], text[40];
    int exp;
    if (isnan(v) || isinf(v) || v == 0) {
        snprintf(out, 48, "%s",
                 isnan(v) ? "NaN"
                 : v == 0 ? "0.0"
                 : v > 0  ? "Infinity"
                          : "-Infinity");
        return out;
    }
    double size = fabs(v);
    shortest(size, digits, &exp);
    if (size >= 1e-3 && size < 1e7)
        put_plain(text, sizeof text, digits, exp);
    else
        snprintf(text, sizeof text, "%c.%sE%d", digits[0], digits[1] ? digits + 1 : "0", exp - 1);
    snprintf(out, 48, "%s%s", v < 0 ? "-" : "", text);
    return out;
}

/* ---- exceptions ---- */

/* Those whose name is not made of the code's. */
static const char *special(const char *code)
{
    static const char *const names[][2] = {
        {"CORRUPT_MESSAGE", "CorruptRecord"},
        {"MESSAGE_TOO_LARGE", "RecordTooLarge"},
        {"RECORD_LIST_TOO_LARGE", "RecordBatchTooLarge"},
        {"OFFSET_METADATA_TOO_LARGE", "OffsetMetadataTooLarge"},
        {"COORDINATOR_LOAD_IN_PROGRESS", "CoordinatorLoadInProgress"},
        {"REQUEST_TIMED_OUT", "Timeout"},
        {"TIMED_OUT", "Timeout"},
        {"ALL_BROKERS_DOWN", "Timeout"},
        {"TRANSPORT", "Disconnect"},
        {"UNSUPPORTED", "UnsupportedVersion"},
        {"UNKNOWN_SERVER_ERROR", "UnknownServer"},
        {"INVALID_CONFIG", "InvalidConfiguration"},
        {"TOPIC_ALREADY_EXISTS", "TopicExists"},
        {"NON_EMPTY_GROUP", "GroupNotEmpty"},
        {"OUT_OF_ORDER_SEQUENCE_NUMBER", "OutOfOrderSequence"},
        {"DUPLICATE_SEQUENCE_NUMBER", "DuplicateSequence"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(code, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

const char *tool_java_exception(kafka_err_t err, char out[128])
{
    char camel[64] = "";
    const char *code = kafka_err_name(err), *name = special(code);
    size_t n = strlen(code), at = 0;
    static const char *const tails[] = {"_ERROR", "_EXCEPTION", "_FAILED"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (n > strlen(tails[i]) && strcmp(code + n - strlen(tails[i]), tails[i]) == 0)
            n -= strlen(tails[i]);
    for (size_t i = 0; i < n && at + 1 < sizeof camel; i++)
        if (code[i] != '_')
            camel[at++] =
                i == 0 || code[i - 1] == '_' ? code[i] : (char)tolower((unsigned char)code[i]);
    camel[at] = 0;
    snprintf(out, 128, "org.apache.kafka.common.errors.%sException", name ? name : camel);
    return out;
}
