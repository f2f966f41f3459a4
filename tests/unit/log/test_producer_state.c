/* What a log knows of its producers: every check, transactions, the snapshot's bytes. */
#include "log/producer_state.h"

#include "base/checksum.h"
#include "log_util.h"
#include "vectors.h"

/* A batch of `n` records at `offset`. */
static struct batch data(int64_t id, int16_t epoch, int32_t sequence, int64_t offset, int n,
                         bool transactional)
{
    return (struct batch){.magic = 2,
                          .attributes = transactional ? BATCH_TRANSACTIONAL : 0,
                          .producer_id = id,
                          .producer_epoch = epoch,
                          .base_sequence = sequence,
                          .last_sequence =
                              sequence < 0 ? NO_SEQUENCE : sequence_add(sequence, n - 1),
                          .base_offset = offset,
                          .last_offset = offset + n - 1,
                          .base_timestamp = T0,
                          .max_timestamp = T0 + offset,
                          .record_count = n};
}

static struct batch control(int64_t id, int16_t epoch, int64_t offset)
{
    struct batch b = data(id, epoch, -1, offset, 1, true);
    b.attributes |= BATCH_CONTROL;
    return b;
}

static enum kerr check_origin(struct producer_state *ps, struct batch b, enum append_origin origin)
{
    const struct producer_batch *dup;
    const char *why = NULL;
    enum kerr code = producer_check(ps, &b, NULL, origin, &dup, &why);
    assert_true(code == KERR_NONE || why);
    return dup ? KERR_DUPLICATE_SEQUENCE_NUMBER : code;
}

static enum kerr check_client(struct producer_state *ps, struct batch b)
{
    return check_origin(ps, b, APPEND_CLIENT);
}

static void apply(struct producer_state *ps, struct batch b)
{
    struct completed_txn done;
    assert_int_equal(producer_reserve(ps, &b, NULL), 0);
    assert_false(producer_apply(ps, &b, NULL, &done));
}

/* Checks, then applies. */
static enum kerr write_batch(struct producer_state *ps, struct batch b)
{
    enum kerr code = check_client(ps, b);
    if (!code)
        apply(ps, b);
    return code;
}

static bool end_txn(struct producer_state *ps, int64_t id, int16_t epoch, int64_t offset,
                    bool commit, int32_t coordinator_epoch, struct completed_txn *done)
{
    struct batch b = control(id, epoch, offset);
    struct txn_marker m = {.valid = true, .commit = commit, .coordinator_epoch = coordinator_epoch};
    assert_int_equal(producer_reserve(ps, &b, &m), 0);
    return producer_apply(ps, &b, &m, done);
}

static void sequences_must_follow(void **state)
{
    struct producer_state ps;
    producer_state_init(&ps);
    /* a producer nobody knows may begin anywhere: its records may have been deleted */
    assert_int_equal(check_client(&ps, data(1, 0, 17, 0, 1, false)), KERR_NONE);
    assert_int_equal(write_batch(&ps, data(1, 0, 0, 0, 5, false)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(1, 0, 6, 5, 1, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&ps, data(1, 0, 4, 5, 1, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(write_batch(&ps, data(1, 0, 5, 5, 1, false)), KERR_NONE);
    /* a new epoch begins at 0; an old one is over */
    assert_int_equal(check_client(&ps, data(1, 1, 6, 6, 1, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(write_batch(&ps, data(1, 1, 0, 6, 1, false)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(1, 0, 6, 7, 1, false)), KERR_INVALID_PRODUCER_EPOCH);
    /* the leader has checked: a follower takes all */
    assert_int_equal(check_origin(&ps, data(1, 0, 77, 7, 1, false), APPEND_REPLICATION), KERR_NONE);
    /* producers are apart */
    assert_int_equal(write_batch(&ps, data(2, 0, 0, 7, 1, false)), KERR_NONE);
    assert_int_equal(write_batch(&ps, data(1, 1, 1, 8, 1, false)), KERR_NONE);
    producer_state_free(&ps);
}

static void sequences_wrap(void **state)
{
    struct producer_state ps;
    producer_state_init(&ps);
    apply(&ps, data(1, 0, INT32_MAX - 1, 0, 2, false)); /* ends with 2147483647 */
    assert_int_equal(write_batch(&ps, data(1, 0, 0, 2, 3, false)), KERR_NONE);
    producer_state_free(&ps);
    /* a batch that wraps in its middle, and its repetition */
    apply(&ps, data(1, 0, INT32_MAX, 0, 1, false));
    producer_state_free(&ps);
    apply(&ps, data(1, 0, INT32_MAX - 3, 0, 2, false));
    assert_int_equal(write_batch(&ps, data(1, 0, INT32_MAX - 1, 2, 4, false)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(1, 0, INT32_MAX - 1, 6, 4, false)),
                     KERR_DUPLICATE_SEQUENCE_NUMBER);
    assert_int_equal(write_batch(&ps, data(1, 0, 2, 6, 1, false)), KERR_NONE);
    producer_state_free(&ps);
}

static void the_last_five_batches_are_recognised(void **state)
{
    struct producer_state ps;
    const struct producer_batch *dup;
    producer_state_init(&ps);
    for (int i = 0; i < 7; i++)
        assert_int_equal(write_batch(&ps, data(1, 0, 10 * i, 100 * i, 10, false)), KERR_NONE);
    for (int i = 2; i < 7; i++) {
        struct batch b = data(1, 0, 10 * i, 9999, 10, false);
        assert_int_equal(producer_check(&ps, &b, NULL, APPEND_CLIENT, &dup, NULL), KERR_NONE);
        assert_non_null(dup);
        assert_int_equal(dup->last_offset - dup->offset_delta, 100 * i);
        assert_int_equal(dup->timestamp, T0 + 100 * i);
    }
    /* the sixth oldest is forgotten; part of a batch, or more than it, is not that batch */
    assert_int_equal(check_client(&ps, data(1, 0, 10, 9999, 10, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&ps, data(1, 0, 60, 9999, 9, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&ps, data(1, 0, 60, 9999, 11, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    /* another epoch's batch of the same sequences is no repetition */
    assert_int_equal(write_batch(&ps, data(1, 1, 0, 700, 10, false)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(1, 1, 60, 9999, 10, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    producer_state_free(&ps);
}

static void transactions_hold_back_the_stable_offset(void **state)
{
    struct producer_state ps;
    struct completed_txn done;
    producer_state_init(&ps);
    assert_int_equal(producer_first_unstable(&ps), INT64_MAX);
    apply(&ps, data(1, 0, 0, 10, 5, true));
    apply(&ps, data(2, 0, 0, 15, 5, true));
    apply(&ps, data(1, 0, 5, 20, 5, true));
    assert_int_equal(producer_first_unstable(&ps), 10);
    assert_true(end_txn(&ps, 1, 0, 25, false, 3, &done));
    assert_int_equal(done.producer_id, 1);
    assert_int_equal(done.first_offset, 10);
    assert_int_equal(done.last_offset, 25);
    assert_true(done.aborted);
    assert_int_equal(done.last_stable_offset, 15); /* the other one is open */
    /* complete, but a follower may not have the marker yet */
    assert_int_equal(producer_first_unstable(&ps), 10);
    assert_true(producer_has_unreplicated(&ps));
    producer_on_high_watermark(&ps, 25);
    assert_int_equal(producer_first_unstable(&ps), 10);
    producer_on_high_watermark(&ps, 26);
    assert_int_equal(producer_first_unstable(&ps), 15);
    assert_true(end_txn(&ps, 2, 0, 26, true, 3, &done));
    assert_false(done.aborted);
    assert_int_equal(done.last_stable_offset, 27);
    producer_on_high_watermark(&ps, 27);
    assert_int_equal(producer_first_unstable(&ps), INT64_MAX);
    /* an empty transaction leaves nothing behind */
    assert_false(end_txn(&ps, 2, 0, 27, false, 3, &done));
    assert_false(producer_has_unreplicated(&ps));
    producer_state_free(&ps);
}

static void transactional_rules(void **state)
{
    struct producer_state ps;
    struct completed_txn done;
    const struct producer_batch *dup;
    producer_state_init(&ps);
    assert_int_equal(write_batch(&ps, data(1, 2, 0, 0, 1, true)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(1, 2, 1, 1, 1, false)), KERR_INVALID_TXN_STATE);
    assert_int_equal(check_origin(&ps, data(1, 2, -1, 1, 1, false), APPEND_COORDINATOR),
                     KERR_INVALID_TXN_STATE);
    /* offsets committed inside a transaction have no sequence */
    assert_int_equal(check_origin(&ps, data(1, 2, -1, 1, 1, true), APPEND_COORDINATOR), KERR_NONE);
    assert_int_equal(check_origin(&ps, data(1, 1, -1, 1, 1, true), APPEND_COORDINATOR),
                     KERR_INVALID_PRODUCER_EPOCH);
    /* markers: producer epoch, then coordinator epoch */
    struct txn_marker m = {.valid = true, .commit = true, .coordinator_epoch = 5};
    struct batch b = control(1, 1, 1);
    assert_int_equal(producer_check(&ps, &b, &m, APPEND_COORDINATOR, &dup, NULL),
                     KERR_INVALID_PRODUCER_EPOCH);
    assert_true(end_txn(&ps, 1, 2, 1, true, 5, &done));
    m.coordinator_epoch = 4;
    b = control(1, 2, 2);
    assert_int_equal(producer_check(&ps, &b, &m, APPEND_COORDINATOR, &dup, NULL),
                     KERR_TRANSACTION_COORDINATOR_FENCED);
    m.coordinator_epoch = 5;
    assert_int_equal(producer_check(&ps, &b, &m, APPEND_COORDINATOR, &dup, NULL), KERR_NONE);
    /* a marker with a new epoch: the producer's next batch begins at 0 again */
    assert_false(end_txn(&ps, 1, 3, 2, false, 5, &done));
    assert_int_equal(check_client(&ps, data(1, 3, 1, 3, 1, true)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&ps, data(1, 3, 0, 3, 1, true)), KERR_NONE);
    /* an emptied control batch says nothing */
    struct txn_marker none = {.valid = false};
    b = control(1, 9, 3);
    assert_int_equal(producer_reserve(&ps, &b, &none), 0);
    assert_false(producer_apply(&ps, &b, &none, &done));
    assert_int_equal(check_client(&ps, data(1, 3, 0, 3, 1, true)), KERR_NONE);
    producer_state_free(&ps);
}

static void a_reservation_is_not_a_producer(void **state)
{
    struct producer_state ps;
    struct buf out = BUF_INIT;
    struct batch b = data(1, 3, 0, 0, 1, false);
    producer_state_init(&ps);
    assert_int_equal(producer_reserve(&ps, &b, NULL), 0); /* and then the write failed */
    assert_int_equal(check_client(&ps, data(1, 0, 44, 0, 1, false)), KERR_NONE);
    producer_snapshot_encode(&ps, &out);
    assert_int_equal(out.len, 10);
    buf_free(&out);
    producer_expire(&ps, T0, 1000);
    assert_int_equal(producer_state_count(&ps), 0);
    producer_state_free(&ps);
}

static void quiet_producers_are_forgotten(void **state)
{
    struct producer_state ps;
    producer_state_init(&ps);
    apply(&ps, data(1, 0, 0, 0, 1, false));
    apply(&ps, data(2, 0, 0, 1000, 1, false)); /* a second later */
    apply(&ps, data(3, 0, 0, 0, 1, true));     /* has a transaction open */
    struct batch wild = data(4, 0, 0, 0, 1, false);
    wild.max_timestamp = INT64_MIN; /* whatever a client sends */
    apply(&ps, wild);
    wild.producer_id = 5;
    wild.max_timestamp = INT64_MAX;
    apply(&ps, wild);
    producer_expire(&ps, T0 + 59999, 60000);
    assert_int_equal(producer_state_count(&ps), 4); /* the one of INT64_MIN */
    producer_expire(&ps, T0 + 60000, 60000);
    assert_int_equal(producer_state_count(&ps), 3);
    assert_int_equal(check_client(&ps, data(1, 0, 5, 0, 1, false)), KERR_NONE);
    producer_expire(&ps, INT64_MAX, 60000);
    assert_int_equal(producer_state_count(&ps), 2);
    assert_int_equal(producer_first_unstable(&ps), 0);
    producer_state_free(&ps);
}

/* ---- snapshots ---- */

static void snapshot_bytes_are_kafkas(void **state)
{
    struct producer_state ps;
    struct buf out = BUF_INIT;
    uint8_t bytes[128];
    producer_state_init(&ps);
    size_t n = vector("producer_snapshot", bytes, sizeof(bytes));
    assert_int_equal(producer_snapshot_decode(&ps, bytes, n, T0, INT64_MAX), 0);
    assert_int_equal(producer_state_count(&ps), 2);
    assert_int_equal(producer_first_unstable(&ps), 1061);
    /* 4000: sequences 20..24 at offsets 1056..1060; a repetition is known, the next one fits */
    assert_int_equal(check_client(&ps, data(4000, 3, 20, 0, 5, false)),
                     KERR_DUPLICATE_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&ps, data(4000, 3, 25, 0, 1, false)), KERR_NONE);
    assert_int_equal(check_client(&ps, data(4001, 0, 3, 0, 1, true)), KERR_NONE);
    /* its order is free; so one producer at a time for the bytes */
    producer_snapshot_encode(&ps, &out);
    assert_int_equal(out.len, n);
    bool swapped = memcmp(out.p + 10, bytes + 10, 46) != 0;
    assert_memory_equal(out.p + 10 + (swapped ? 46 : 0), bytes + 10, 46);
    assert_memory_equal(out.p + 56 - (swapped ? 46 : 0), bytes + 56, 46);
    if (!swapped)
        assert_memory_equal(out.p, bytes, n);
    buf_free(&out);
    producer_state_free(&ps);
}

static void seal_snapshot(uint8_t *p, size_t n)
{
    put_be32(p + 2, crc32c(p + 6, n - 6));
}

static void damaged_snapshots_are_refused(void **state)
{
    struct producer_state ps;
    uint8_t good[128], p[160];
    producer_state_init(&ps);
    size_t n = vector("producer_snapshot", good, sizeof(good));
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(producer_snapshot_decode(&ps, good, cut, T0, INT64_MAX), -EBADMSG);
    for (size_t at = 0; at < n; at++) {
        memcpy(p, good, n);
        p[at] ^= 0x10;
        assert_int_equal(producer_snapshot_decode(&ps, p, n, T0, INT64_MAX), -EBADMSG);
    }
    /* right checksums over wrong things */
    memcpy(p, good, n);
    put_be32(p + 6, 0x7fffffff);
    seal_snapshot(p, n);
    assert_int_equal(producer_snapshot_decode(&ps, p, n, T0, INT64_MAX), -EBADMSG);
    memcpy(p, good, n);
    p[n] = 0;
    seal_snapshot(p, n + 1); /* a byte too many */
    assert_int_equal(producer_snapshot_decode(&ps, p, n + 1, T0, INT64_MAX), -EBADMSG);
    memcpy(p, good, n);
    memcpy(p + 56, p + 10, 46); /* the same producer twice */
    seal_snapshot(p, n);
    assert_int_equal(producer_snapshot_decode(&ps, p, n, T0, INT64_MAX), -EBADMSG);
    assert_int_equal(producer_state_count(&ps), 0);
    producer_state_free(&ps);
}

static void snapshots_keep_one_batch_and_the_transaction(void **state)
{
    struct producer_state ps, back;
    struct buf out = BUF_INIT;
    struct completed_txn done;
    producer_state_init(&ps);
    producer_state_init(&back);
    for (int i = 0; i < 7; i++)
        apply(&ps, data(1, 0, 10 * i, 100 * i, 10, false));
    apply(&ps, data(2, 5, 0, 700, 3, true));
    apply(&ps, data(3, 5, 0, 710, 3, true));
    assert_true(end_txn(&ps, 2, 5, 720, true, 9, &done));
    producer_snapshot_encode(&ps, &out);
    assert_int_equal(out.len, 10 + 3 * 46);
    assert_int_equal(producer_snapshot_decode(&back, out.p, out.len, T0, 60000), 0);
    assert_int_equal(check_client(&back, data(1, 0, 60, 0, 10, false)),
                     KERR_DUPLICATE_SEQUENCE_NUMBER);
    assert_int_equal(check_client(&back, data(1, 0, 50, 0, 10, false)),
                     KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(producer_first_unstable(&back), 710);
    producer_state_free(&back);
    /* expired ones are left out, unless their transaction is open */
    assert_int_equal(producer_snapshot_decode(&back, out.p, out.len, T0 + 70000, 60000), 0);
    assert_int_equal(producer_state_count(&back), 1);
    assert_int_equal(producer_first_unstable(&back), 710);
    buf_free(&out);
    producer_state_free(&ps);
    producer_state_free(&back);
}

static void open_transactions_come_in_any_order(void **state)
{
    struct producer_state ps, back;
    struct buf out = BUF_INIT;
    struct completed_txn done;
    producer_state_init(&ps);
    producer_state_init(&back);
    for (int64_t id = 1; id <= 50; id++)
        apply(&ps, data(id, 0, 0, (id * 37) % 101 * 10, 1, true));
    producer_snapshot_encode(&ps, &out);
    assert_int_equal(producer_snapshot_decode(&back, out.p, out.len, T0, INT64_MAX), 0);
    for (int n = 50; n > 0; n--) { /* end them from the lowest up */
        int64_t first = INT64_MAX, who = 0;
        hmap_each (node, &back.by_id) {
            const struct producer *p = hmap_entry(node, struct producer, node);
            if (p->txn_first_offset >= 0 && p->txn_first_offset < first) {
                first = p->txn_first_offset;
                who = p->id;
            }
        }
        assert_int_equal(producer_first_unstable(&back), first);
        assert_true(end_txn(&back, who, 0, 5000 - n, false, 0, &done));
        producer_on_high_watermark(&back, 5000);
    }
    buf_free(&out);
    producer_state_free(&ps);
    producer_state_free(&back);
}

/* ---- markers ---- */

static int parse_marker(struct buf *bytes, struct txn_marker *m)
{
    struct batch b;
    assert_int_equal(batch_decode(bytes->p, bytes->len, bytes->len, &b), BATCH_OK);
    return txn_marker_parse(&b, m);
}

static void markers_read(void **state)
{
    struct txn_marker m;
    for (int commit = 0; commit < 2; commit++) {
        struct buf b = BUF_INIT;
        assert_int_equal(batch_build_marker(commit, 5, T0, 0, 4000, 3, 9, &b), 0);
        assert_int_equal(parse_marker(&b, &m), 0);
        assert_true(m.valid);
        assert_int_equal(m.commit, commit);
        assert_int_equal(m.coordinator_epoch, 9);
        buf_free(&b);
    }
}

static struct buf control_record(const uint8_t *key, int key_n, const uint8_t *value, int value_n)
{
    struct buf out = BUF_INIT;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.control = o.transactional = true;
    o.producer_id = 1;
    o.producer_epoch = 0;
    struct batch_builder *b = batch_builder_new(&o);
    assert_int_equal(batch_builder_add(b, 0, T0, (struct bytes){key, key_n},
                                       (struct bytes){value, value_n}, NULL, 0),
                     0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    batch_builder_free(b);
    return out;
}

static void strange_markers(void **state)
{
    static const struct {
        uint8_t key[6];
        int key_n;
        uint8_t value[8];
        int value_n;
        int rc;
        bool valid;
    } cases[] = {
        {{0, 0, 0, 1}, 4, {0, 0, 0, 0, 0, 7}, 6, 0, true},
        {{0, 9, 0, 1}, 4, {0, 9, 0, 0, 0, 7}, 6, 0, true},             /* later versions */
        {{0, 0, 0, 1, 5, 5}, 6, {0, 0, 0, 0, 0, 7, 5, 5}, 8, 0, true}, /* and more fields */
        {{0, 0, 0, 2}, 4, {0, 0}, 2, 0, false},                        /* a kind of KRaft */
        {{0, 0, 0, 99}, 4, {0}, 0, 0, false},
        {{0, 0, 0}, 3, {0, 0, 0, 0, 0, 7}, 6, -EBADMSG, false},
        {{0, 0, 0, 0}, 4, {0, 0, 0, 0, 0}, 5, -EBADMSG, false},
        {{0xff, 0xff, 0, 0}, 4, {0, 0, 0, 0, 0, 7}, 6, -EBADMSG, false},
        {{0, 0, 0, 0}, 4, {0xff, 0xff, 0, 0, 0, 7}, 6, -EBADMSG, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct txn_marker m;
        struct buf b =
            control_record(cases[i].key, cases[i].key_n, cases[i].value, cases[i].value_n);
        assert_int_equal(parse_marker(&b, &m), cases[i].rc);
        assert_int_equal(m.valid, cases[i].valid);
        buf_free(&b);
    }
    struct batch empty = {.magic = 2, .attributes = BATCH_CONTROL, .record_count = 0};
    struct txn_marker m;
    assert_int_equal(txn_marker_parse(&empty, &m), 0);
    assert_false(m.valid);
}

UNIT_MAIN(unit_test(sequences_must_follow), unit_test(sequences_wrap),
          unit_test(the_last_five_batches_are_recognised),
          unit_test(transactions_hold_back_the_stable_offset), unit_test(transactional_rules),
          unit_test(a_reservation_is_not_a_producer), unit_test(quiet_producers_are_forgotten),
          unit_test(snapshot_bytes_are_kafkas), unit_test(damaged_snapshots_are_refused),
          unit_test(snapshots_keep_one_batch_and_the_transaction),
          unit_test(open_transactions_come_in_any_order), unit_test(markers_read),
          unit_test(strange_markers))
