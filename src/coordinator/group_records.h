/* group_records.h - the records of __consumer_offsets that the classic protocol writes: committed
 * offsets and group metadata, key and value.
 *
 *   key    int16 version; 0, 1: group, topic, partition (an offset); 2: group (its metadata)
 *   value  int16 version, then the fields of OffsetCommitValue or GroupMetadataValue; none at all
 *          (a tombstone) = removed
 *
 * All versions are read; the one that is written follows inter.broker.protocol.version, so that
 * every broker of the cluster can read it. Decoded text is borrowed from the bytes. */
#ifndef COORDINATOR_GROUP_RECORDS_H
#define COORDINATOR_GROUP_RECORDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "protocol/msg/group_metadata_record.h"
#include "protocol/msg/offset_commit_record.h"

struct group_record { /* borrowed */
    struct bytes key, value;
};

enum group_key_kind {
    GROUP_KEY_OFFSET,
    GROUP_KEY_GROUP,
    GROUP_KEY_OTHER, /* a kind that later coordinators write: only `version` is filled in */
};
struct group_key {
    enum group_key_kind kind;
    int16_t version;
    struct str group, topic;
    int32_t partition;
};
/* 0 or -EBADMSG. */
int group_key_decode(struct bytes key, struct group_key *out);
void group_key_put_offset(struct buf *out, struct str group, struct str topic, int32_t partition);
void group_key_put_group(struct buf *out, struct str group);

/* A committed offset. */
struct offset_value {
    int64_t offset;
    int32_t leader_epoch; /* -1 = none */
    struct str metadata;
    int64_t commit_ms, expire_ms; /* wall; expire_ms -1 = by the group's retention */
};
/* 0, -EBADMSG, or -ENOTSUP for a version that is not known. */
int offset_value_decode(struct bytes value, struct arena *a, struct offset_value *out);

/* What is written, by inter.broker.protocol.version (major * 100 + minor, and its step). */
struct group_record_versions {
    int16_t offset, group;
};
struct group_record_versions group_record_versions_of(int ibp, int ibp_iv);

/* An offset with an expiry is written as version 1 whatever `version` says: no other has it. */
void offset_value_put(struct buf *out, int16_t version, const struct offset_value *v);
int group_value_decode(struct bytes value, struct arena *a, struct group_metadata_value *out);
/* false when the value has text that does not fit the version. Failures of memory show in `out`. */
bool group_value_put(struct buf *out, int16_t version, const struct group_metadata_value *v);

#endif
