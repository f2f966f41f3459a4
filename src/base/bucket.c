/* bucket.c - see bucket.h. */
#include "base/bucket.h"

double bucket_fill(struct bucket *b, double rate, double burst, int64_t now_ms)
{
    if (!b->begun)
        *b = (struct bucket){burst, now_ms, true};
    if (now_ms > b->filled_ms) {
        b->tokens += rate * (double)(now_ms - b->filled_ms) / 1000;
        b->filled_ms = now_ms;
    }
    if (b->tokens > burst) /* also when the limit was lowered */
        b->tokens = burst;
    return b->tokens;
}

void bucket_take(struct bucket *b, double rate, double burst, double tokens, int64_t now_ms)
{
    double left = bucket_fill(b, rate, burst, now_ms) - tokens;
    b->tokens = left > burst ? burst : left;
}

int64_t bucket_wait_ms(struct bucket *b, double rate, double burst, int64_t now_ms)
{
    double tokens = bucket_fill(b, rate, burst, now_ms);
    if (!(tokens < 0))
        return 0;
    double ms = -tokens / rate * 1000 + 0.5;
    return ms < (double)INT32_MAX ? (int64_t)ms : INT32_MAX; /* a rate of 0, too */
}
