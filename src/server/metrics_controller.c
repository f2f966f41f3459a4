/* metrics_controller.c - families of the controller. Who is not it has zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "server/broker_private.h"
#include "server/metrics_page_private.h"

/* ---- the look, on the controller's thread ---- */

struct awaited_look {
    struct controller_look look;
    struct broker *broker;
    bool over; /* under the broker's lock */
};

static void looked(struct controller_look *l)
{
    struct awaited_look *a = container_of(l, struct awaited_look, look);
    struct broker *b = a->broker;
    pthread_mutex_lock(&b->lock);
    a->over = true;
    pthread_cond_broadcast(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

void look_at_controller(struct page *p)
{
    struct broker *b = p->broker;
    struct controller *c = atomic_load(&b->controller);
    struct awaited_look a = {.look = {.done = looked}, .broker = b};
    if (!c)
        return;
    controller_look(c, &a.look);
    pthread_mutex_lock(&b->lock);
    while (!a.over)
        pthread_cond_wait(&b->cond, &b->lock);
    pthread_mutex_unlock(&b->lock);
    p->controller = a.look;
}

/* NULL: there is none (yet). */
static const struct controller_counts *counts_of(const struct page *p)
{
    struct controller *c = atomic_load(&p->broker->controller);
    return c ? controller_counts(c) : NULL;
}

static double active(const struct page *p)
{
    return (double)p->cluster.active;
}
static double offline(const struct page *p)
{
    return (double)p->cluster.offline;
}
static double imbalanced(const struct page *p)
{
    return (double)p->cluster.imbalanced;
}
static double topics(const struct page *p)
{
    return (double)p->cluster.topics;
}
static double partitions(const struct page *p)
{
    return (double)p->cluster.partitions;
}
static double brokers(const struct page *p)
{
    return (double)p->cluster.brokers;
}
static double topics_to_delete(const struct page *p)
{
    return (double)p->controller.topics_to_delete;
}
static double replicas_to_delete(const struct page *p)
{
    return (double)p->controller.replicas_to_delete;
}
static double topics_ineligible(const struct page *p)
{
    return (double)p->controller.topics_ineligible;
}
static double replicas_ineligible(const struct page *p)
{
    return (double)p->controller.replicas_ineligible;
}
static double events(const struct page *p)
{
    return (double)p->controller.events;
}
static double working_on(const struct page *p)
{
    const struct controller_counts *c = counts_of(p);
    return c ? atomic_load(&c->working_on) : CONTROLLER_IDLE;
}
static double unclean(const struct page *p)
{
    const struct controller_counts *c = counts_of(p);
    return c ? (double)metric_read(&c->unclean) : 0;
}

static void event_waits(const struct page *p, const struct family *f, struct tally *out)
{
    const struct controller_counts *c = counts_of(p);
    (void)f;
    if (c)
        tally_add(out, &c->waited_us);
}

/* `which`: an enum controller_work. */
static void event_times(const struct page *p, const struct family *f, struct tally *out)
{
    const struct controller_counts *c = counts_of(p);
    if (c)
        tally_add(out, &c->took_us[f->which]);
}

/* ---- requests to brokers ---- */

static double waiting_for_all(const struct page *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->controller.queues_n; i++)
        n += p->controller.queues[i].waiting;
    return (double)n;
}

static size_t queue_items(const struct page *p)
{
    return (size_t)p->controller.queues_n;
}

/* `which`: 0 the requests that wait, 1 how long those before them did. */
static void put_queue(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct controller_queue *q = &p->controller.queues[item];
    char id[16];
    snprintf(id, sizeof(id), "%d", (int)q->broker);
    struct metric_label l = {"broker_id", str_of(id)};
    if (f->which)
        metrics_summary(out, f->name, &l, 1, &q->waited, &q->waited, 1000);
    else
        metrics_sample(out, f->name, "", &l, 1, q->waiting);
}

/* clang-format off */
#define EVENTS(n, w, text) TIMES("kafka_controller_controllerstats_" n "rateandtimems", event_times, CONTROLLER_##w, text ", in ms.")

static const struct family families[] = {
    VALUE("kafka_controller_kafkacontroller_activecontrollercount", GAUGE, active, "1: this broker is the controller."),
    VALUE("kafka_controller_kafkacontroller_offlinepartitionscount", GAUGE, offline, "Partitions without leader (at the controller, like the next)."),
    VALUE("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", GAUGE, imbalanced, "Partitions that their preferred replica does not lead."),
    VALUE("kafka_controller_kafkacontroller_globaltopiccount", GAUGE, topics, "Topics of the cluster."),
    VALUE("kafka_controller_kafkacontroller_globalpartitioncount", GAUGE, partitions, "Partitions of the cluster."),
    VALUE("kafka_controller_kafkacontroller_activebrokercount", GAUGE, brokers, "Brokers alive."),
    VALUE("kafka_controller_kafkacontroller_controllerstate", GAUGE, working_on, "What it works on, by Kafka's numbers; 0: nothing."),
    VALUE("kafka_controller_kafkacontroller_topicstodeletecount", GAUGE, topics_to_delete, "Topics that are being deleted."),
    VALUE("kafka_controller_kafkacontroller_replicastodeletecount", GAUGE, replicas_to_delete, "Their replicas that are still there."),
    VALUE("kafka_controller_kafkacontroller_topicsineligibletodeletecount", GAUGE, topics_ineligible, "Of these topics, those that wait for a broker."),
    VALUE("kafka_controller_kafkacontroller_replicasineligibletodeletecount", GAUGE, replicas_ineligible, "Of these replicas, those that cannot be deleted now."),
    VALUE("kafka_controller_controllerstats_uncleanleaderelections_total", COUNTER, unclean, "Leaders elected that were not in sync: records may be lost."),
    EVENTS("leaderelection", BROKER_CHANGE, "Changes of brokers worked on, with the elections that follow"),
    EVENTS("autoleaderbalance", AUTO_BALANCE, "Leaders brought back to their preferred replicas"),
    EVENTS("manualleaderbalance", MANUAL_BALANCE, "Elections that were asked for"),
    EVENTS("controlledshutdown", CONTROLLED_SHUTDOWN, "Brokers relieved before they stop"),
    EVENTS("controllerchange", CHANGE, "Elections of the controller, and its first round"),
    EVENTS("topicchange", TOPIC_CHANGE, "Topics and partitions that came"),
    EVENTS("topicdeletion", TOPIC_DELETION, "Deletions of topics, step by step"),
    EVENTS("partitionreassignment", REASSIGNMENT, "Reassignments that were asked for"),
    EVENTS("listpartitionreassignment", LIST_REASSIGNMENTS, "Listings of reassignments"),
    EVENTS("isrchange", ISR_CHANGE, "Changes of ISRs"),
    EVENTS("logdirchange", LOG_DIR_CHANGE, "Failed log dirs that were told of"),
    EVENTS("leaderandisrresponsereceived", LEADER_AND_ISR_ANSWER, "Answers to LeaderAndIsr that told of errors or log dirs"),
    EVENTS("uncleanleaderelectionenable", UNCLEAN_ENABLE, "Unclean elections allowed for all topics"),
    EVENTS("topicuncleanleaderelectionenable", TOPIC_UNCLEAN_ENABLE, "Unclean elections allowed for a topic"),
    VALUE("kafka_controller_controllereventmanager_eventqueuesize", GAUGE, events, "Events that wait for the controller."),
    TIMES("kafka_controller_controllereventmanager_eventqueuetimems", event_waits, 0, "How long events waited, in ms."),
    VALUE("kafka_controller_controllerchannelmanager_totalqueuesize", GAUGE, waiting_for_all, "Control requests to all brokers without an answer yet."),
    ITEMS("kafka_controller_controllerchannelmanager_queuesize", GAUGE, queue_items, put_queue, 0, "The same to one broker."),
    ITEMS("kafka_controller_controllerchannelmanager_requestrateandqueuetimems", SUMMARY, queue_items, put_queue, 1, "How long control requests waited to be sent, in ms, since the connection's begin."),
};
/* clang-format on */
const struct family_set metrics_controller = {families, sizeof(families) / sizeof(*families)};
