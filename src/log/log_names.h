/* log_names.h - names on disk: files inside a partition's folder, and the folders themselves.
 *
 * FILES    <20 digits>.log .index .timeindex .txnindex .snapshot, each perhaps followed by
 *          .deleted (doomed), .cleaned (being written) or .swap (complete, taking its place).
 * FOLDERS  <topic>-<partition>, or <topic>-<partition>.<32 hex>-delete / -stray / -future. In the
 *          -delete form the topic is cut so that the name fits into 255 bytes; it then names
 *          another topic and is good only for deletion. */
#ifndef LOG_LOG_NAMES_H
#define LOG_LOG_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define LOG_PATH_MAX 4096
#define FOLDER_NAME_MAX 256 /* with the NUL */

/* Offsets of records and segments are below: so relative offsets cannot overflow, nor the offset
 * behind the last one. Nobody gets there by writing; a damaged or hostile leader may say so. */
#define LOG_OFFSET_LIMIT (INT64_MAX - INT32_MAX)

enum log_file_kind {
    LOG_FILE_DATA,
    LOG_FILE_INDEX,
    LOG_FILE_TIME,
    LOG_FILE_TXN,
    LOG_FILE_SNAPSHOT,
    LOG_FILE_KINDS
};
enum log_file_stage {
    LOG_STAGE_LIVE,
    LOG_STAGE_DELETED,
    LOG_STAGE_CLEANED,
    LOG_STAGE_SWAP,
    LOG_STAGES
};

struct log_file_name {
    int64_t base; /* the number: first offset of a segment, end of a snapshot */
    enum log_file_kind kind;
    enum log_file_stage stage;
};

/* false: not a file of ours (checkpoints, temporary files, strangers). */
bool log_file_name_parse(const char *name, struct log_file_name *out);
/* "<dir>/<base><kind><stage>"; the caller's dir is short enough (log_dir.c sees to that). */
void log_file_path(char out[LOG_PATH_MAX], const char *dir, int64_t base, enum log_file_kind kind,
                   enum log_file_stage stage);
/* "<dir>/<name>" */
void log_path_join(char out[LOG_PATH_MAX], const char *dir, const char *name);

enum folder_kind { FOLDER_BAD, FOLDER_LOG, FOLDER_DELETE, FOLDER_STRAY, FOLDER_FUTURE };

/* Topic and partition as the name says; *topic borrowed from `name`. */
enum folder_kind folder_name_parse(const char *name, struct str *topic, int32_t *partition);
void folder_name(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition);
/* The -delete form with a random part; at most 255 bytes. */
void folder_name_delete(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition,
                        struct uuid id);
/* The -future form with a random part. false: longer than 255 bytes (it is not cut). */
bool folder_name_future(char out[FOLDER_NAME_MAX], struct str topic, int32_t partition,
                        struct uuid id);

#endif
