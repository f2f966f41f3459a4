/* zookeeper_log.c - see zookeeper_log.h.
 *
 * FORM  the library's line: "2026-01-31 12:00:00,123:4711:ZOO_WARN@function@123: text". */
#include "metadata/zookeeper_log.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "base/clock.h"
#include "base/logline.h"

static const char component[] = "ZooKeeperClient";
enum { QUIET_MS = 10000 };

/* The library's callback has no context, so this is the process's. Monotonic; 0 = said nothing. */
static _Atomic int64_t last_said_ms;

static const struct {
    const char *name;
    enum logline_level level;
} levels[] = {
    {"ZOO_ERROR@", LOGLINE_WARN}, /* of a connection mostly, which is tried again */
    {"ZOO_WARN@", LOGLINE_WARN},
    {"ZOO_INFO@", LOGLINE_DEBUG},
};

static bool too_often(void)
{
    int64_t now = clock_mono_ms(clock_real()) + 1;
    int64_t last = atomic_load(&last_said_ms);
    if (last && now - last < QUIET_MS)
        return true;
    return !atomic_compare_exchange_strong(&last_said_ms, &last, now);
}

void zookeeper_log(const char *message)
{
    enum logline_level level = LOGLINE_DEBUG;
    const char *at = message;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        const char *found = strstr(message, levels[i].name);
        if (found) {
            level = levels[i].level;
            at = found;
            break;
        }
    }
    const char *text = strstr(at, ": ");
    if (level == LOGLINE_WARN && too_often())
        level = LOGLINE_DEBUG;
    if (logline_enabled(level))
        logline(level, component, "%s", text ? text + 2 : message);
}

void zookeeper_log_init(void)
{
    zoo_set_debug_level(logline_enabled(LOGLINE_DEBUG) ? ZOO_LOG_LEVEL_INFO : ZOO_LOG_LEVEL_WARN);
}
