/* api_table.h - what gen/msgc.py writes into the generated table.c. For api.c and codec.c only. */
#ifndef PROTOCOL_API_TABLE_H
#define PROTOCOL_API_TABLE_H

#include "protocol/api.h"

extern const struct api_desc api_rows[]; /* in order of key */
extern const int api_rows_n;
extern const struct msg_desc *const msg_rows[];
extern const int msg_rows_n;

#endif
