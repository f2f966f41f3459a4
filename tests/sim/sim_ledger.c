/* sim_ledger.c - see sim_ledger.h. */
#include "sim_ledger.h"

#include <stdlib.h>

enum { PARTITIONS = 8, WRITES = 16 };

enum fate { OPEN, ASKED, COMMITTED, ABORTED };
static const char *const fate_names[] = {"open", "in doubt", "committed", "aborted"};

struct write {
    int32_t partition;
    int seen; /* in the reading from end to end */
};

struct entry {
    int seat;
    int64_t input;
    enum fate fate;
    struct write writes[WRITES];
    int n;
};

static struct {
    struct entry *v;
    int64_t n, cap;
    int64_t last[LEDGER_SEATS][PARTITIONS]; /* transaction and write that were read last */
} L;

static struct entry *at(int64_t txn, const char *why)
{
    if (txn < 0 || txn >= L.n)
        sim_violation("T1: transaction %lld is %s, and does not exist", (long long)txn, why);
    return &L.v[txn];
}

int64_t ledger_begin(int seat, int64_t input)
{
    if (L.n == L.cap) {
        L.cap = L.cap ? 2 * L.cap : 256;
        L.v = realloc(L.v, (size_t)L.cap * sizeof(*L.v));
    }
    L.v[L.n] = (struct entry){.seat = seat, .input = input};
    return L.n++;
}

int ledger_write(int64_t txn, int32_t partition)
{
    struct entry *e = at(txn, "written");
    if (e->n == WRITES || partition >= PARTITIONS)
        sim_violation("the model: transaction %lld has too many writes", (long long)txn);
    e->writes[e->n] = (struct write){.partition = partition};
    return e->n++;
}

void ledger_commit_asked(int64_t txn)
{
    at(txn, "committed")->fate = ASKED;
}

void ledger_committed(int64_t txn)
{
    at(txn, "committed")->fate = COMMITTED;
}

void ledger_aborted(int64_t txn)
{
    at(txn, "aborted")->fate = ABORTED;
}

void ledger_seen(int64_t txn, int write, int32_t partition, int64_t offset)
{
    const struct entry *e = at(txn, "read");
    if (e->fate == OPEN || e->fate == ABORTED)
        sim_violation("T1: a reader of committed records is given write %d of transaction %lld at "
                      "%lld of partition %d, which is %s",
                      write, (long long)txn, (long long)offset, partition, fate_names[e->fate]);
    if (write < 0 || write >= e->n || e->writes[write].partition != partition)
        sim_violation("T1: transaction %lld has no write %d in partition %d, and it is read at "
                      "%lld",
                      (long long)txn, write, partition, (long long)offset);
}

void ledger_read(int64_t txn, int write, int32_t partition, int64_t offset)
{
    ledger_seen(txn, write, partition, offset);
    struct entry *e = at(txn, "read");
    int64_t *last = &L.last[e->seat][partition];
    int64_t now = txn * WRITES + write + 1;
    if (e->writes[write].seen++)
        sim_violation("T2: write %d of transaction %lld is read twice, now at %lld of partition %d",
                      write, (long long)txn, (long long)offset, partition);
    if (now <= *last)
        sim_violation("T2: write %d of transaction %lld is read at %lld of partition %d, behind "
                      "write %lld of transaction %lld",
                      write, (long long)txn, (long long)offset, partition,
                      (long long)((*last - 1) % WRITES), (long long)((*last - 1) / WRITES));
    *last = now;
}

/* T2, T3. How many of its writes were seen. */
static int judge_one(int64_t txn)
{
    const struct entry *e = &L.v[txn];
    int seen = 0;
    for (int i = 0; i < e->n; i++)
        seen += e->writes[i].seen;
    if (e->fate == COMMITTED && seen != e->n)
        sim_violation("T2: the commit of transaction %lld was acknowledged, %d of %d writes are "
                      "there",
                      (long long)txn, seen, e->n);
    if (e->fate == ASKED && seen != 0 && seen != e->n)
        sim_violation("T3: transaction %lld, whose commit got no answer, has %d of %d writes",
                      (long long)txn, seen, e->n);
    return seen;
}

void ledger_judge(const int64_t committed[LEDGER_SEATS])
{
    int64_t next[LEDGER_SEATS] = {0};
    for (int64_t txn = 0; txn < L.n; txn++) {
        const struct entry *e = &L.v[txn];
        if (judge_one(txn) == 0)
            continue;
        if (e->input != next[e->seat])
            sim_violation("T6: transaction %lld counts for input %lld of pipeline %d, the next was "
                          "%lld",
                          (long long)txn, (long long)e->input, e->seat, (long long)next[e->seat]);
        next[e->seat]++;
    }
    for (int i = 0; i < LEDGER_SEATS; i++)
        if (next[i] != (committed[i] < 0 ? 0 : committed[i]))
            sim_violation("T6: pipeline %d has committed %lld inputs, %lld count", i,
                          (long long)committed[i], (long long)next[i]);
}
