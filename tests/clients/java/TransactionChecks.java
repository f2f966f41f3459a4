import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions: what is committed is seen, what is aborted is not; copies with offsets in transactions. */
final class TransactionChecks {
    private TransactionChecks() {
    }

    private static KafkaProducer<byte[], byte[]> producer(String id) {
        KafkaProducer<byte[], byte[]> p = RecordChecks.producer("transactional.id", id, "transaction.timeout.ms", 60000);
        p.initTransactions();
        return p;
    }

    /** Values of a partition that is read to its end. */
    private static List<String> values(String topic, int partition, String isolation) throws Exception {
        List<String> got = new ArrayList<>();
        TopicPartition tp = new TopicPartition(topic, partition);
        try (KafkaConsumer<byte[], byte[]> c = RecordChecks.consumer("isolation.level", isolation)) {
            c.assign(List.of(tp));
            c.seekToBeginning(List.of(tp));
            long end = c.endOffsets(List.of(tp)).get(tp);
            Main.until("the end of " + tp, () -> {
                c.poll(Duration.ofMillis(100)).forEach(r -> got.add(RecordChecks.string(r.value())));
                return c.position(tp) >= end;
            });
        }
        return got;
    }

    private static void transactions() throws Exception {
        String topic = Main.topic("transactions");
        AdminChecks.create(topic, 2);
        List<String> committed = new ArrayList<>();
        List<String> all = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> p = producer(topic)) {
            for (int i = 0; i < 20; i++) {
                List<String> part = List.of("a" + i, "b" + i, "c" + i);
                p.beginTransaction();
                for (int partition = 0; partition < 2; partition++)
                    for (String v : part)
                        p.send(new ProducerRecord<>(topic, partition, null, RecordChecks.bytes(v)));
                if (i % 4 == 3) {
                    p.flush();
                    p.abortTransaction();
                } else {
                    p.commitTransaction();
                    committed.addAll(part);
                }
                all.addAll(part);
            }
            p.beginTransaction();
            p.send(new ProducerRecord<>(topic, 0, null, RecordChecks.bytes("open"))).get();
            Main.same(values(topic, 0, "read_committed"), committed, "while one is open");
            fence(topic, p);
        }
        Main.until("the marker of the fenced one", () -> values(topic, 0, "read_uncommitted").contains("open"));
        for (int partition = 0; partition < 2; partition++) {
            Main.same(values(topic, partition, "read_committed"), committed, "committed, partition " + partition);
            all.remove("open");
            if (partition == 0)
                all.add("open");
            Main.same(values(topic, partition, "read_uncommitted"), all, "all, partition " + partition);
        }
    }

    /** Another producer of the id: the first one is refused. */
    private static void fence(String id, KafkaProducer<byte[], byte[]> first) {
        try (KafkaProducer<byte[], byte[]> second = producer(id)) {
            try {
                first.send(new ProducerRecord<>(id, 1, null, RecordChecks.bytes("late")));
                first.commitTransaction();
            } catch (ProducerFencedException | InvalidProducerEpochException e) {
                return;
            }
            throw new AssertionError("the fenced producer has committed");
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> positions(ConsumerRecords<byte[], byte[]> records) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : records)
            next.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        return next;
    }

    private static void rewind(KafkaConsumer<byte[], byte[]> c) {
        Map<TopicPartition, OffsetAndMetadata> committed = c.committed(c.assignment());
        for (TopicPartition tp : c.assignment())
            if (committed.get(tp) == null)
                c.seekToBeginning(List.of(tp));
            else
                c.seek(tp, committed.get(tp));
    }

    /** Reads one topic in a group, writes another, and its offsets: each record once, whatever is aborted. */
    private static void copy() throws Exception {
        String from = Main.topic("transactions-from");
        String to = Main.topic("transactions-to");
        AdminChecks.create(from, 3);
        AdminChecks.create(to, 3);
        List<String> want = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> p = RecordChecks.producer()) {
            for (int i = 0; i < 1000; i++) {
                p.send(new ProducerRecord<>(from, i % 3, null, RecordChecks.bytes("v" + i)));
                want.add("v" + i);
            }
        }
        try (KafkaProducer<byte[], byte[]> p = producer(to);
             KafkaConsumer<byte[], byte[]> c = RecordChecks.consumer("group.id", to, "max.poll.records", 50)) {
            c.subscribe(List.of(from));
            int[] done = {0, 0};
            Main.until("a copy of 1000 records", () -> {
                ConsumerRecords<byte[], byte[]> records = c.poll(Duration.ofMillis(100));
                if (records.isEmpty())
                    return false;
                p.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> r : records)
                    p.send(new ProducerRecord<>(to, r.partition(), null, r.value()));
                p.sendOffsetsToTransaction(positions(records), c.groupMetadata());
                if (done[1]++ % 3 == 2) {
                    p.abortTransaction();
                    rewind(c);
                    return false;
                }
                p.commitTransaction();
                done[0] += records.count();
                return done[0] >= 1000;
            });
        }
        List<String> got = new ArrayList<>();
        for (int partition = 0; partition < 3; partition++)
            got.addAll(values(to, partition, "read_committed"));
        Collections.sort(got);
        Collections.sort(want);
        Main.same(got, want, "copied");
    }

    private static void admin() throws Exception {
        String id = Main.topic("transactions-admin");
        AdminChecks.create(id, 1);
        Admin a = AdminChecks.admin();
        try (KafkaProducer<byte[], byte[]> p = producer(id)) {
            p.beginTransaction();
            p.send(new ProducerRecord<>(id, 0, null, RecordChecks.bytes("v"))).get();
            TransactionDescription d = a.describeTransactions(List.of(id)).description(id).get();
            Main.same(d.state(), TransactionState.ONGOING, "state");
            Main.same(d.topicPartitions(), Collections.singleton(new TopicPartition(id, 0)), "partitions");
            Collection<TransactionListing> all = a.listTransactions().all().get();
            Main.require(all.stream().anyMatch(t -> t.transactionalId().equals(id) && t.producerId() == d.producerId()),
                "listed: " + all);
            a.fenceProducers(List.of(id)).all().get();
            try {
                p.commitTransaction();
                throw new AssertionError("the fenced producer has committed");
            } catch (ProducerFencedException | InvalidProducerEpochException e) {
                Main.same(values(id, 0, "read_committed"), List.of(), "committed");
            }
        }
    }

    static void register() {
        Main.add("transactions", TransactionChecks::transactions);
        Main.add("transactions-copy", TransactionChecks::copy);
        Main.add("transactions-admin", TransactionChecks::admin);
    }
}
