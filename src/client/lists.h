/* lists.h - lists of partitions and offsets in one block of memory each, as the public ones are. */
#ifndef CLIENT_LISTS_H
#define CLIENT_LISTS_H

#include <kafka/common.h>

/* Deep copies; NULL without memory. Returns owned: kafka_partition_list_free,
 * kafka_offset_list_free. */
kafka_partition_list_t *partition_list_copy(const kafka_topic_partition_t *v, size_t n);
kafka_offset_list_t *offset_list_copy(const kafka_offset_t *v, size_t n);
/* By topic, then partition. */
int topic_partition_cmp(const void *a, const void *b);

#endif
