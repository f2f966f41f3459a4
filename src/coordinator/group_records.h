/* group_records.h - the records of __consumer_offsets, key and value: committed offsets and group
 * metadata here, those of the new protocol in cgroup_records.c.
 *
 *   key    int16 version; 0, 1: group, topic, partition (an offset); 2: group (its metadata);
 *          3 .. 8: group, and for 5, 7, 8 a member (the new protocol's)
 *   value  int16 version, then the fields of OffsetCommitValue, GroupMetadataValue ...; none at all
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
    GROUP_KEY_CONSUMERS, /* of the new protocol: `version` is an enum cgroup_key */
    GROUP_KEY_OTHER,     /* a kind that later coordinators write: only `version` is filled in */
};
struct group_key {
    enum group_key_kind kind;
    int16_t version;
    struct str group, topic, member;
    int32_t partition;
};
/* Keys of the new protocol by their version. */
enum cgroup_key {
    CGROUP_KEY_EPOCH = 3,
    CGROUP_KEY_TOPICS = 4,
    CGROUP_KEY_MEMBER = 5,
    CGROUP_KEY_TARGET_EPOCH = 6,
    CGROUP_KEY_TARGET = 7,
    CGROUP_KEY_CURRENT = 8,
};
/* 0 or -EBADMSG. */
int group_key_decode(struct bytes key, struct group_key *out);
void group_key_put_offset(struct buf *out, struct str group, struct str topic, int32_t partition);
void group_key_put_group(struct buf *out, struct str group);
/* member null: the key has none. */
void group_key_put_consumers(struct buf *out, enum cgroup_key kind, struct str group,
                             struct str member);

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
/* A value of any kind: version, then the message. Decoded: 0, -EBADMSG, -ENOTSUP, -ENOMEM; put:
 * false when something does not fit the version. */
int record_value_decode(const struct msg_desc *d, struct bytes value, struct arena *a, void *out);
bool record_value_put(const struct msg_desc *d, int16_t version, struct buf *out, const void *v);
int group_value_decode(struct bytes value, struct arena *a, struct group_metadata_value *out);
/* false when the value has text that does not fit the version. Failures of memory show in `out`. */
bool group_value_put(struct buf *out, int16_t version, const struct group_metadata_value *v);

#endif
