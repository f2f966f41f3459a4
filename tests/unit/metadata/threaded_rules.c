/* threaded_rules.c - see threaded_rules.h. */
#include "metadata/threaded_rules.h"

#include "metadata/store_test.h"

static struct threaded_rules *threaded(struct store_rules *t)
{
    return container_of(t, struct threaded_rules, rules);
}

static void stay_busy(struct task *task)
{
    struct threaded_rules *t = container_of(task, struct threaded_rules, task);
    pthread_mutex_lock(&t->lock);
    while (!t->release)
        pthread_cond_wait(&t->changed, &t->lock);
    t->held = false;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void hold(struct store_rules *rules)
{
    struct threaded_rules *t = threaded(rules);
    t->held = true;
    t->release = false;
    task_init(&t->task, stay_busy);
    executor_post(rules->ex, &t->task);
}

static void let_go(struct threaded_rules *t)
{
    pthread_mutex_lock(&t->lock);
    t->release = true;
    pthread_cond_broadcast(&t->changed);
    while (t->held)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* A read is answered after all that was told before it; -ESTALE only lasts until it is heard. */
static void settle(struct store_rules *rules)
{
    struct threaded_rules *t = threaded(rules);
    struct store_stat st;
    if (t->held)
        let_go(t);
    while (stat_of(rules->s, "/", &st) == -ESTALE)
        ;
    hold(rules);
    let_go(t);
}

void threaded_rules_init(struct threaded_rules *t)
{
    *t = (struct threaded_rules){.rules = {.hold = hold, .settle = settle}};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    assert_int_equal(uv_executor_start("rules", &t->e), 0);
    t->rules.ex = uv_executor_ex(t->e);
}

void threaded_rules_end(struct threaded_rules *t)
{
    if (t->held)
        let_go(t);
    uv_executor_stop(t->e);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
}
