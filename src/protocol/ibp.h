/* ibp.h - inter.broker.protocol.version as a number, and what it decides: the versions in which a
 * broker sends requests to others. What it reads does not depend on it. */
#ifndef PROTOCOL_IBP_H
#define PROTOCOL_IBP_H

#include <stdbool.h>

/* 2.7-IV2 is IBP(2, 7, 2). */
#define IBP(major, minor, iv) ((major)*10000 + (minor)*100 + (iv))
#define IBP_DEFAULT IBP(3, 9, 0)

static inline int ibp_leader_and_isr_version(int ibp)
{
    return ibp >= IBP(3, 4, 0)   ? 7
           : ibp >= IBP(3, 2, 0) ? 6
           : ibp >= IBP(2, 8, 1) ? 5
           : ibp >= IBP(2, 4, 1) ? 4
           : ibp >= IBP(2, 4, 0) ? 3
                                 : 2;
}
static inline int ibp_update_metadata_version(int ibp)
{
    return ibp >= IBP(3, 4, 0) ? 8 : ibp >= IBP(2, 8, 1) ? 7 : ibp >= IBP(2, 4, 1) ? 6 : 5;
}
static inline int ibp_stop_replica_version(int ibp)
{
    return ibp >= IBP(3, 4, 0) ? 4 : ibp >= IBP(2, 6, 0) ? 3 : ibp >= IBP(2, 4, 1) ? 2 : 1;
}
/* With ids for every partition; without them it is at most IBP_FETCH_BY_NAME. */
enum { IBP_FETCH_BY_NAME = 12 };
static inline int ibp_fetch_version(int ibp)
{
    return ibp >= IBP(3, 9, 0)   ? 17
           : ibp >= IBP(3, 7, 4) ? 16
           : ibp >= IBP(3, 5, 1) ? 15
           : ibp >= IBP(3, 5, 0) ? 14
           : ibp >= IBP(3, 1, 0) ? 13
           : ibp >= IBP(2, 7, 1) ? 12
           : ibp >= IBP(2, 3, 1) ? 11
                                 : 10;
}
static inline int ibp_list_offsets_version(int ibp)
{
    return ibp >= IBP(3, 9, 0)   ? 9
           : ibp >= IBP(3, 5, 0) ? 8
           : ibp >= IBP(3, 0, 1) ? 7
           : ibp >= IBP(2, 8, 0) ? 6
                                 : 5;
}
static inline int ibp_epoch_version(int ibp) /* OffsetForLeaderEpoch */
{
    return ibp >= IBP(2, 8, 0) ? 4 : ibp >= IBP(2, 3, 1) ? 3 : 2;
}
/* Followers are told by the fetch answer where their log diverges; else they ask. */
static inline bool ibp_truncates_on_fetch(int ibp)
{
    return ibp >= IBP(2, 7, 1);
}
/* Leaders have the controller write ISR changes; else they write them to the store. */
static inline bool ibp_has_alter_partition(int ibp)
{
    return ibp >= IBP(2, 7, 2);
}
static inline bool ibp_has_topic_ids(int ibp)
{
    return ibp >= IBP(2, 8, 0);
}
static inline bool ibp_has_recovery_state(int ibp)
{
    return ibp >= IBP(3, 2, 0);
}
/* Blocks of producer ids come from the controller; else from the store. */
static inline bool ibp_has_producer_id_blocks(int ibp)
{
    return ibp >= IBP(3, 0, 0);
}

#endif
