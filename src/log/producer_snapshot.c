#include "log/producer_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log/log_names.h"

enum { FILE_MAX_BYTES = 1 << 30 };

int producer_snapshot_write(const struct producer_state *ps, struct fs *fs, const char *dir,
                            int64_t offset, bool sync)
{
    char path[LOG_PATH_MAX];
    struct buf bytes = BUF_INIT;
    struct file *f;
    producer_snapshot_encode(ps, &bytes);
    if (bytes.failed) {
        buf_free(&bytes);
        return -ENOMEM;
    }
    log_file_path(path, dir, offset, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE);
    int err = fs_open(fs, path, O_RDWR | O_CREAT | O_TRUNC, &f);
    if (!err) {
        err = file_pwrite_all(f, bytes.p, bytes.len, 0);
        if (!err && sync)
            err = file_sync(f);
        file_unref(f);
        if (err) /* half a snapshot would only be refused later */
            (void)fs_unlink(fs, path);
    }
    buf_free(&bytes);
    return err;
}

int producer_snapshot_read(struct producer_state *ps, struct fs *fs, const char *dir,
                           int64_t offset, int64_t now_ms, int64_t expiration_ms)
{
    char path[LOG_PATH_MAX];
    char *bytes;
    size_t n;
    log_file_path(path, dir, offset, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE);
    int err = fs_read_all(fs, path, FILE_MAX_BYTES, &bytes, &n);
    if (err)
        return err == -EFBIG ? -EBADMSG : err;
    err = producer_snapshot_decode(ps, bytes, n, now_ms, expiration_ms);
    free(bytes);
    return err;
}
