/* client_error.c - names and texts of errors, and the library's log lines. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/logline.h"
#include "client/admin_private.h"
#include "client/client_conf.h"
#include "protocol/errors.h"

static const struct {
    kafka_err_t err;
    const char *name, *text;
    int retriable;
} local_errors[] = {
    {KAFKA_ERR_INVALID_ARG, "INVALID_ARG", "An argument or setting is not legal.", 0},
    {KAFKA_ERR_NO_MEMORY, "NO_MEMORY", "Out of memory.", 0},
    {KAFKA_ERR_TIMED_OUT, "TIMED_OUT", "The time given is over.", 1},
    {KAFKA_ERR_QUEUE_FULL, "QUEUE_FULL", "buffer.memory is used up and max.block.ms is over.", 1},
    {KAFKA_ERR_CLOSED, "CLOSED", "The client is being closed.", 0},
    {KAFKA_ERR_TRANSPORT, "TRANSPORT", "The connection failed or ended.", 1},
    {KAFKA_ERR_ALL_BROKERS_DOWN, "ALL_BROKERS_DOWN", "No broker can be reached.", 1},
    {KAFKA_ERR_BAD_RESPONSE, "BAD_RESPONSE", "The broker's answer made no sense.", 0},
    {KAFKA_ERR_UNSUPPORTED, "UNSUPPORTED", "The broker is too old for this.", 0},
    {KAFKA_ERR_WAKEUP, "WAKEUP", "The call was woken up.", 0},
    {KAFKA_ERR_NO_OFFSET, "NO_OFFSET", "No position, and auto.offset.reset is none.", 0},
    {KAFKA_ERR_FATAL, "FATAL", "The producer cannot go on: make a new one.", 0},
    {KAFKA_ERR_STATE, "STATE", "Not allowed in the present state.", 0},
    {KAFKA_ERR_COMMIT_FAILED, "COMMIT_FAILED",
     "The consumer is no member of its group any more, so its offsets were not committed.", 0},
    {KAFKA_ERR_LOG_TRUNCATION, "LOG_TRUNCATION",
     "The log was cut below the position: records that were read are gone.", 0},
    {KAFKA_ERR_TXN_ABORTED, "TXN_ABORTED",
     "The record's transaction was aborted before it was sent.", 0},
    {KAFKA_ERR_AUTHENTICATION, "AUTHENTICATION",
     "the broker does not let this client in, or is not the broker that it should be", false},
    /* before it is turned back, in lines about a request that failed */
    {ADMIN_UNKNOWN_TOPIC, "UNKNOWN_TOPIC_OR_PARTITION", "The topic or partition does not exist.",
     0},
};
#define LOCAL_ERRORS (sizeof local_errors / sizeof *local_errors)

static const char level_names[] = "DIWE";
static void (*_Atomic log_sink)(int, const char *, void *);
static void *_Atomic log_sink_arg;

const char *kafka_err_name(kafka_err_t err)
{
    for (size_t i = 0; i < LOCAL_ERRORS; i++)
        if (local_errors[i].err == err)
            return local_errors[i].name;
    return kerr_name((int16_t)err);
}

const char *kafka_err_text(kafka_err_t err)
{
    for (size_t i = 0; i < LOCAL_ERRORS; i++)
        if (local_errors[i].err == err)
            return local_errors[i].text;
    return kerr_text((int16_t)err);
}

int kafka_err_is_retriable(kafka_err_t err)
{
    for (size_t i = 0; i < LOCAL_ERRORS; i++)
        if (local_errors[i].err == err)
            return local_errors[i].retriable;
    return kerr_retriable((int16_t)err);
}

const char *client_words(kafka_err_t err, const char *topic, const char *id, char out[CLIENT_WORDS])
{
    if (err == KERR_TOPIC_AUTHORIZATION_FAILED && topic)
        snprintf(out, CLIENT_WORDS, "Not authorized to access topics: [%s]", topic);
    else if (err == KERR_GROUP_AUTHORIZATION_FAILED && id)
        snprintf(out, CLIENT_WORDS, "Not authorized to access group: %s", id);
    else if (err == KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED && id)
        snprintf(out, CLIENT_WORDS, "Not authorized to access transactional id: %s", id);
    else
        return kafka_err_text(err);
    return out;
}

static _Thread_local char last_error[512];

const char *kafka_last_error(void)
{
    return last_error;
}

kafka_err_t client_fail(kafka_err_t err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last_error, sizeof last_error, fmt, ap);
    va_end(ap);
    return err;
}

const char *kafka_version(void)
{
    return KAFKAD_VERSION;
}

void kafka_log_set_sink(void (*sink)(int level, const char *line, void *arg), void *arg)
{
    atomic_store(&log_sink_arg, arg);
    atomic_store(&log_sink, sink);
}

void client_log(int level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    void (*sink)(int, const char *, void *) = atomic_load(&log_sink);
    if (sink)
        sink(level, line, atomic_load(&log_sink_arg));
    else if (level >= 2)
        fprintf(stderr, "[%c] kafka client: %s\n", level_names[level & 3], line);
}

/* What the rooms below say, in their own form: "TIME LEVEL [component] text". */
static void on_line(enum logline_level level, const char *line, void *arg)
{
    const char *text = strchr(line, '[');
    client_log(level >= LOGLINE_ERROR  ? 3
               : level == LOGLINE_WARN ? 2
               : level == LOGLINE_INFO ? 1
                                       : 0,
               "%s", text ? text : line);
}

static void take_log(void)
{
    logline_set_sink(on_line, NULL);
}

void client_log_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_log);
}
