/* records_rebuild.h - appends whose bytes cannot stay as they are, inside the room: another codec,
 * offsets that do not count up, formats of old clients. The result is one magic 2 batch. */
#ifndef PROTOCOL_RECORDS_REBUILD_H
#define PROTOCOL_RECORDS_REBUILD_H

#include "protocol/record_check.h"

/* out->batches holds the entries as they came, checked as batches but not yet by record; on
 * KERR_NONE out->rebuilt has the new batch, complete but for offset and leader epoch. */
enum kerr records_rebuild_v2(struct record_check *c, enum codec target);
enum kerr records_rebuild_legacy(struct record_check *c, enum codec target);

#endif
