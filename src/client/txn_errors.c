/* txn_errors.c - what an error of each request means for a transaction. A row per error; what has
 * none is the last row's. */
#include "client/txn.h"
#include "protocol/errors.h"

/* clang-format off */
#define RETRY     VERDICT_RETRY
#define FIND      VERDICT_FIND
#define ABORTABLE VERDICT_ABORTABLE
#define BUMP      VERDICT_BUMP
#define REFUSED   VERDICT_REFUSED
#define FENCED    VERDICT_FENCED
#define FATAL     VERDICT_FATAL
static const struct {
    kafka_err_t err;
    uint8_t of[TXN_REQUESTS];
} rows[] = {
    /*                                             nothing  init id    partitions add offsets commit     end */
    {KERR_COORDINATOR_NOT_AVAILABLE,              {0,       FIND,      FIND,      FIND,      FIND,      FIND}},
    {KERR_NOT_COORDINATOR,                        {0,       FIND,      FIND,      FIND,      FIND,      FIND}},
    {KERR_REQUEST_TIMED_OUT,                      {0,       RETRY,     RETRY,     RETRY,     FIND,      RETRY}},
    {KAFKA_ERR_TRANSPORT,                         {0,       FIND,      FIND,      FIND,      FIND,      FIND}},
    {KAFKA_ERR_TIMED_OUT,                         {0,       FIND,      FIND,      FIND,      FIND,      FIND}},
    {KAFKA_ERR_BAD_RESPONSE,                      {0,       FIND,      FIND,      FIND,      FIND,      FIND}},
    {KAFKA_ERR_NO_MEMORY,                         {0,       RETRY,     RETRY,     RETRY,     RETRY,     RETRY}},
    {KAFKA_ERR_UNSUPPORTED,                       {0,       FATAL,     FATAL,     FATAL,     FATAL,     FATAL}},
    {KAFKA_ERR_AUTHENTICATION,                    {0,       FATAL,     FATAL,     FATAL,     FATAL,     FATAL}},
    {KERR_INVALID_PRODUCER_EPOCH,                 {0,       FENCED,    FENCED,    FENCED,    FENCED,    FENCED}},
    {KERR_PRODUCER_FENCED,                        {0,       FENCED,    FENCED,    FENCED,    FENCED,    FENCED}},
    {KERR_INVALID_PRODUCER_ID_MAPPING,            {0,       FATAL,     BUMP,      BUMP,      FATAL,     BUMP}},
    {KERR_UNKNOWN_PRODUCER_ID,                    {0,       FATAL,     BUMP,      BUMP,      FATAL,     BUMP}},
    {KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,  {0,       REFUSED,   FATAL,     FATAL,     FATAL,     FATAL}},
    {KERR_CLUSTER_AUTHORIZATION_FAILED,           {0,       REFUSED,   ABORTABLE, FATAL,     FATAL,     FATAL}},
    {KERR_INVALID_TXN_STATE,                      {0,       FATAL,     FATAL,     FATAL,     FATAL,     FATAL}},
    {KERR_TOPIC_AUTHORIZATION_FAILED,             {0,       FATAL,     ABORTABLE, FATAL,     FATAL,     FATAL}},
    {KERR_OPERATION_NOT_ATTEMPTED,                {0,       FATAL,     ABORTABLE, FATAL,     FATAL,     FATAL}},
    {KERR_GROUP_AUTHORIZATION_FAILED,             {0,       FATAL,     ABORTABLE, ABORTABLE, ABORTABLE, FATAL}},
    {KERR_FENCED_INSTANCE_ID,                     {0,       FATAL,     ABORTABLE, FATAL,     ABORTABLE, FATAL}},
    {KERR_UNKNOWN_MEMBER_ID,                      {0,       FATAL,     ABORTABLE, FATAL,     ABORTABLE, FATAL}},
    {KERR_ILLEGAL_GENERATION,                     {0,       FATAL,     ABORTABLE, FATAL,     ABORTABLE, FATAL}},
    {KERR_TRANSACTION_ABORTABLE,                  {0,       ABORTABLE, ABORTABLE, ABORTABLE, ABORTABLE, ABORTABLE}},
    /* any other, that does not heal by itself */
    {KERR_UNKNOWN_SERVER_ERROR,                   {0,       FATAL,     ABORTABLE, FATAL,     FATAL,     FATAL}},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

enum txn_verdict txn_judge(enum txn_request r, kafka_err_t err)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].err == err)
            return rows[i].of[r];
    return kafka_err_is_retriable(err) ? VERDICT_RETRY : rows[ROWS - 1].of[r];
}

enum txn_verdict txn_judge_batch(kafka_err_t err)
{
    switch (err) {
    case KERR_INVALID_PRODUCER_EPOCH:
    case KERR_PRODUCER_FENCED:
        return VERDICT_FENCED;
    case KERR_CLUSTER_AUTHORIZATION_FAILED:
    case KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case KERR_UNSUPPORTED_VERSION:
    case KAFKA_ERR_UNSUPPORTED:
        return VERDICT_FATAL;
    default:
        return VERDICT_ABORTABLE;
    }
}
