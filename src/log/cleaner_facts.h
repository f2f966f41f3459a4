/* cleaner_facts.h - a log as cleaner_choose.h wants to see it. */
#ifndef LOG_CLEANER_FACTS_H
#define LOG_CLEANER_FACTS_H

#include "log/cleaner_choose.h"
#include "log/log.h"

/* Looks at the log and decides. Reads files only where the log has a lag set. 0 or -errno. @blocks
 */
int cleaner_choose_log(struct log *log, int64_t now_ms, struct cleaner_choice *out);

#endif
