/* stop_signals.c - see stop_signals.h. */
#include "server/stop_signals.h"

enum stop_verdict stop_signals_take(struct stop_signals *s, int64_t now_ms)
{
    if (!s->any) {
        s->any = true;
        s->first_ms = now_ms;
        return STOP_CLEANLY;
    }
    if (now_ms - s->first_ms >= STOP_AT_ONCE_AFTER_MS)
        return STOP_AT_ONCE;
    bool told = s->ignored;
    s->ignored = true;
    return told ? STOP_IGNORE : STOP_IGNORE_FIRST;
}
