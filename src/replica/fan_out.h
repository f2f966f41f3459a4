/* fan_out.h - work of one caller done by several threads: itself and what workers are free. For
 * things that mostly wait for a disk: a hundred fsyncs at a time cost little more than one. */
#ifndef REPLICA_FAN_OUT_H
#define REPLICA_FAN_OUT_H

#include "base/workers.h"

/* Calls each(arg, lane) once for every lane below `lanes`, from several threads at once, and
 * returns when all have ended. Never waits for a worker to become free: the caller does what is
 * left. So it may itself run on a worker. Without memory the caller does all. @blocks */
void fan_out(struct workers *w, int lanes, void (*each)(void *arg, int lane), void *arg);

#endif
