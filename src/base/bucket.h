/* bucket.h - a token bucket: so many tokens a second come in, at most `burst` are kept, and more
 * may be taken than are there, which the next ones then wait for. As Kafka counts topic changes.
 *
 * Times are any clock's, in ms; one that goes back is treated as standing still.
 *
 * THREADS  the caller's lock. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    double tokens; /* below 0: owed */
    int64_t filled_ms;
    bool begun; /* else it is full */
};
#define BUCKET_INIT ((struct bucket){0})

/* Tokens there, after what has come in. */
double bucket_fill(struct bucket *b, double rate, double burst, int64_t now_ms);
/* Takes some (a negative number gives them back), fewer there or not. */
void bucket_take(struct bucket *b, double rate, double burst, double tokens, int64_t now_ms);
/* Until none is owed any more; 0 when none is. */
int64_t bucket_wait_ms(struct bucket *b, double rate, double burst, int64_t now_ms);

#endif
