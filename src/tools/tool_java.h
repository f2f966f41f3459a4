/* tool_java.h - what Kafka's tools print because they are Java: numbers and names of exceptions. */
#ifndef TOOLS_TOOL_JAVA_H
#define TOOLS_TOOL_JAVA_H

#include <kafka/common.h>

/* As Double.toString: 1024.0, 0.5, 1.048576E7. Returns `out`. */
const char *tool_java_double(double v, char out[48]);
/* "org.apache.kafka.common.errors.OffsetOutOfRangeException". Returns `out`. */
const char *tool_java_exception(kafka_err_t err, char out[128]);

#endif
