/* sim_model.h - what must be true of the cluster: the committed records as they were first seen,
 * and the invariants, looked at after every step.
 *
 * COMMITTED  a record below the high watermark of a leader, or that a consumer was given. The model
 *            keeps (offsets, epoch, checksum) of each batch; of topics that elect cleanly it never
 *            changes, and grows only at its end.
 * COMPACTED  of internal topics the same, record by record (sim_keyed.h): M4 and M5 hold for the
 *            latest of each key.
 * CHECKED    after each step, on brokers where something ran:
 *   M1 one leader for a partition and an epoch, over brokers and the store
 *   M2 a leader's high watermark never goes back in its epoch
 *   M3 a leader, by the store in force, begins with all that is committed
 *   M4 below its high watermark every replica has the committed records, same bytes, same epochs
 *   M5 no replica drops what lies below a high watermark that it knew in this life
 *   M6 members of the ISR that follow in the leader's epoch have all below its high watermark
 *   M7 batches of an idempotent producer are committed in order, each once
 *   M8 epochs of partitions and of the controller never go back in the store; a new leader comes
 *      from the ISR; only live epochs write
 *   M9 what was acknowledged (acks=all) is committed when the answer comes
 *   M10 a consumer is given what is committed, and no more
 *   M11 at the end all logs pass log_check.h, and replicas are equal from start to end */
#ifndef TESTS_SIM_SIM_MODEL_H
#define TESTS_SIM_SIM_MODEL_H

#include "base/str.h"
#include "protocol/record_batch.h"
#include "sim.h"

/* After each step. */
void sim_model_look(void);
/* A topic whose records may vanish (unclean elections); by name, before it is made. */
void sim_model_unclean(const char *topic);
/* The answer to acks=all: the batch of this producer is in there. */
void sim_model_acked(const char *topic, int32_t partition, int broker, int64_t producer,
                     int32_t sequence, int64_t base_offset);
/* Does this broker lead it, as the store has it? The epoch; -1: it does not. */
int32_t sim_model_leads(const char *topic, int32_t partition, int broker);
/* How many partitions the topic of this name has by the store, and its id. */
int sim_model_partitions(const char *topic);
struct uuid sim_model_topic_id(const char *topic);
/* A consumer was given these bytes, from this offset on. Returns where it goes on. */
int64_t sim_model_consumed(const char *topic, int32_t partition, int64_t from, const uint8_t *p,
                           size_t n);
/* Where what is committed ends. */
int64_t sim_model_end(const char *topic, int32_t partition);
/* What is committed at the end of the partition, and of the producer, to standard error. */
void sim_model_tell(const char *topic, int32_t partition, int64_t producer);
/* A topic is being deleted: what its name stands for changes. */
void sim_model_deleting(const char *topic);
/* At rest: why the cluster is not whole (static text, or filled in); NULL when it is. */
const char *sim_model_unhealed(void);
/* At rest: M11, over all brokers. */
void sim_model_check_end(void);
uint64_t sim_model_records(void);

#endif
