/* first_news.h - until the controller has told this broker of the cluster for the first time, it
 * knows of no topic and no broker. What it would say of them then is no answer, it is held back for
 * a while. (Kafka does not: its tools show an empty cluster right after a start.) */
#ifndef SERVER_FIRST_NEWS_H
#define SERVER_FIRST_NEWS_H

#include "server/request.h"

/* false: go on. true: the row's handler is called when there is news, or in 10 s all the same.
 * @thread the connection's reactor */
bool first_news_awaited(struct request *req);

#endif
