/* fuzz_producer_snapshot.c - snapshots of producers: refused or read, never a crash; what is read,
 * written again, reads the same.
 *
 * INPUT  byte 0: bit 0: put the checksum right first, so that what lies behind it is reached. Then
 *        the file.
 *
 * Rooms: log */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "log/producer_state.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct producer_state ps, again;
    struct buf out = BUF_INIT;
    if (n < 1)
        return 0;
    size_t len = n - 1;
    uint8_t *file = malloc(len + 1);
    must(file != NULL);
    memcpy(file, p + 1, len);
    if ((p[0] & 1) && len >= 6)
        put_be32(file + 2, crc32c(file + 6, len - 6));
    producer_state_init(&ps);
    producer_state_init(&again);
    int err = producer_snapshot_decode(&ps, file, len, INT64_C(1700000000000), INT64_MAX);
    must(err == 0 || err == -EBADMSG);
    must(!err || producer_state_count(&ps) == 0);
    producer_snapshot_encode(&ps, &out);
    must(producer_snapshot_decode(&again, out.p, out.len, 0, INT64_MAX) == 0);
    must(producer_state_count(&again) == producer_state_count(&ps));
    must(producer_first_unstable(&again) == producer_first_unstable(&ps));
    producer_expire(&ps, INT64_C(1700000000000), 1000);
    producer_state_free(&again);
    producer_state_free(&ps);
    buf_free(&out);
    free(file);
    return 0;
}
