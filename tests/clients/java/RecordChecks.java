import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What goes in comes out: producer, and consumer without a group. */
final class RecordChecks {
    private RecordChecks() {
    }

    static KafkaProducer<byte[], byte[]> producer(Object... settings) {
        Map<String, Object> conf = new HashMap<>();
        conf.put("bootstrap.servers", Main.broker);
        for (int i = 0; i < settings.length; i += 2)
            conf.put((String) settings[i], settings[i + 1]);
        return new KafkaProducer<>(conf, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Object... settings) {
        Map<String, Object> conf = new HashMap<>();
        conf.put("bootstrap.servers", Main.broker);
        conf.put("auto.offset.reset", "earliest");
        conf.put("enable.auto.commit", "false");
        for (int i = 0; i < settings.length; i += 2)
            conf.put((String) settings[i], settings[i + 1]);
        return new KafkaConsumer<>(conf, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static byte[] bytes(String s) {
        return s == null ? null : s.getBytes(StandardCharsets.UTF_8);
    }

    static String string(byte[] b) {
        return b == null ? null : new String(b, StandardCharsets.UTF_8);
    }

    /** The first n records of a partition, and that no more follow. */
    static List<ConsumerRecord<byte[], byte[]>> read(String topic, int partition, int n, Object... settings) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> c = consumer(settings)) {
            TopicPartition tp = new TopicPartition(topic, partition);
            c.assign(List.of(tp));
            c.seekToBeginning(List.of(tp));
            Main.same(c.endOffsets(List.of(tp)).get(tp), (long) n, "end offset");
            Main.until(n + " records", () -> {
                c.poll(Duration.ofMillis(200)).forEach(got::add);
                return got.size() >= n;
            });
        }
        Main.same(got.size(), n, "records");
        for (int i = 0; i < n; i++)
            Main.same(got.get(i).offset(), (long) i, "offset");
        return got;
    }

    static List<String> values(List<ConsumerRecord<byte[], byte[]>> records) {
        List<String> values = new ArrayList<>();
        records.forEach(r -> values.add(string(r.value())));
        return values;
    }

    /** Sends to partition 0, waits, and looks at the offsets that were answered. */
    static void send(KafkaProducer<byte[], byte[]> p, String topic, List<String> values, long first) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String v : values)
            sent.add(p.send(new ProducerRecord<>(topic, 0, bytes("k"), bytes(v))));
        p.flush();
        for (int i = 0; i < sent.size(); i++)
            Main.same(sent.get(i).get().offset(), first + i, "offset answered");
    }

    private static void roundtrip() throws Exception {
        String topic = Main.topic("roundtrip");
        long t = 1600000000000L;
        List<ProducerRecord<byte[], byte[]>> cases = List.of(
            new ProducerRecord<>(topic, 0, t, bytes("k"), bytes("v"),
                List.of(new RecordHeader("h", bytes("1")), new RecordHeader("h", bytes("2")))),
            new ProducerRecord<>(topic, 0, t + 1, null, bytes("v")),
            new ProducerRecord<>(topic, 0, t + 2, bytes("k"), null, List.of(new RecordHeader("null", (byte[]) null))),
            new ProducerRecord<>(topic, 0, t + 3, bytes(""), bytes(""), List.of(new RecordHeader("", bytes("")))),
            new ProducerRecord<>(topic, 0, t - 5, null, null, null));
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            for (ProducerRecord<byte[], byte[]> r : cases)
                p.send(r).get();
        }
        List<ConsumerRecord<byte[], byte[]>> got = read(topic, 0, cases.size());
        for (int i = 0; i < cases.size(); i++) {
            ProducerRecord<byte[], byte[]> want = cases.get(i);
            ConsumerRecord<byte[], byte[]> r = got.get(i);
            Main.require(Arrays.equals(r.key(), want.key()), "key of record " + i);
            Main.require(Arrays.equals(r.value(), want.value()), "value of record " + i);
            Main.same(r.timestamp(), want.timestamp(), "timestamp");
            Main.same(r.timestampType(), TimestampType.CREATE_TIME, "timestamp type");
            Main.require(Arrays.equals(r.headers().toArray(), want.headers().toArray()), "headers of record " + i);
        }
    }

    private static void codec(String codec) throws Exception {
        String topic = Main.topic("codec-" + codec);
        try (KafkaProducer<byte[], byte[]> p = producer("compression.type", codec, "linger.ms", 50)) {
            send(p, topic, Main.text, 0);
        }
        Main.same(values(read(topic, 0, Main.text.size())), Main.text, "values");
    }

    private static void acks() throws Exception {
        String topic = Main.topic("acks");
        AdminChecks.create(topic, 1);
        List<String> all = new ArrayList<>();
        for (String acks : List.of("0", "1", "all")) {
            try (KafkaProducer<byte[], byte[]> p = producer("acks", acks, "enable.idempotence", false)) {
                RecordMetadata m = p.send(new ProducerRecord<>(topic, 0, null, bytes("acks " + acks))).get();
                Main.same(m.hasOffset(), !acks.equals("0"), "acks " + acks + ": has an offset");
            }
            all.add("acks " + acks);
        }
        Main.same(values(read(topic, 0, 3)), all, "values");
    }

    private static void idempotence() throws Exception {
        String topic = Main.topic("idempotence");
        List<String> want = new ArrayList<>();
        for (int life = 0; life < 2; life++) {
            try (KafkaProducer<byte[], byte[]> p = producer("enable.idempotence", true, "batch.size", 1000)) {
                List<String> part = new ArrayList<>();
                for (int i = 0; i < 2000; i++)
                    part.add(life + "-" + i);
                send(p, topic, part, life * 2000L);
                want.addAll(part);
            }
        }
        Main.same(values(read(topic, 0, 4000)), want, "values");
    }

    /** Records of a key stay together and in order. */
    private static void keyedPartitions() throws Exception {
        String topic = Main.topic("keyed");
        AdminChecks.create(topic, 5);
        Map<Integer, Integer> counts = new HashMap<>();
        try (KafkaProducer<byte[], byte[]> p = producer("linger.ms", 20)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 1000; i++)
                sent.add(p.send(new ProducerRecord<>(topic, bytes("key" + i % 50), bytes("" + i))));
            for (Future<RecordMetadata> f : sent)
                counts.merge(f.get().partition(), 1, Integer::sum);
        }
        Set<String> seen = new HashSet<>();
        for (Map.Entry<Integer, Integer> e : counts.entrySet()) {
            Map<String, Integer> last = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> r : read(topic, e.getKey(), e.getValue())) {
                int number = Integer.parseInt(string(r.value()));
                Main.require(number > last.getOrDefault(string(r.key()), -1), "order of a key's records");
                last.put(string(r.key()), number);
            }
            last.keySet().forEach(k -> Main.require(seen.add(k), k + " is in two partitions"));
        }
        Main.same(seen.size(), 50, "keys");
        Main.same(counts.keySet(), Set.of(0, 1, 2, 3, 4), "partitions used");
    }

    private static void largeRecords() throws Exception {
        String topic = Main.topic("large");
        Random random = new Random(1);
        List<byte[]> values = new ArrayList<>();
        for (int size : new int[] {1_000_000, 3_500_000, 1, 4_000_000}) {
            byte[] v = new byte[size];
            random.nextBytes(v);
            values.add(v);
        }
        try (KafkaProducer<byte[], byte[]> p = producer("max.request.size", 8 << 20)) {
            for (byte[] v : values)
                p.send(new ProducerRecord<>(topic, 0, null, v)).get();
        }
        // the last ones are larger than what is asked for a partition: they come all the same
        List<ConsumerRecord<byte[], byte[]>> got = read(topic, 0, values.size());
        for (int i = 0; i < values.size(); i++)
            Main.require(Arrays.equals(got.get(i).value(), values.get(i)), "value " + i);
    }

    private static void tooLargeRecord() throws Exception {
        String topic = Main.topic("too-large");
        try (KafkaProducer<byte[], byte[]> p = producer("max.request.size", 16 << 20)) {
            Throwable cause = null;
            try {
                p.send(new ProducerRecord<>(topic, 0, null, new byte[5_000_000])).get();
            } catch (ExecutionException e) {
                cause = e.getCause();
            }
            Main.require(cause instanceof RecordTooLargeException, "5 MB: " + cause);
            Main.same(p.send(new ProducerRecord<>(topic, 0, null, bytes("small"))).get().offset(), 0L, "offset behind it");
        }
    }

    private static void offsetsByTime() throws Exception {
        String topic = Main.topic("times");
        TopicPartition tp = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> p = producer(); KafkaConsumer<byte[], byte[]> c = consumer()) {
            for (int i = 0; i < 10; i++)
                p.send(new ProducerRecord<>(topic, 0, 1600000000000L + 1000 * i, null, bytes("" + i))).get();
            Main.same(c.beginningOffsets(List.of(tp)).get(tp), 0L, "beginning");
            Main.same(c.endOffsets(List.of(tp)).get(tp), 10L, "end");
            OffsetAndTimestamp found = c.offsetsForTimes(Map.of(tp, 1600000003500L)).get(tp);
            Main.same(found.offset(), 4L, "offset by time");
            Main.same(found.timestamp(), 1600000004000L, "its timestamp");
            Main.require(c.offsetsForTimes(Map.of(tp, 1700000000000L)).get(tp) == null, "nothing is as late");
            c.assign(List.of(tp));
            c.seek(tp, 7);
            List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
            Main.until("a record", () -> {
                c.poll(Duration.ofMillis(200)).forEach(got::add);
                return !got.isEmpty();
            });
            Main.same(got.get(0).offset(), 7L, "offset after a seek");
        }
    }

    private static void logAppendTime() throws Exception {
        String topic = Main.topic("append-time");
        AdminChecks.admin().createTopics(List.of(new NewTopic(topic, 1, (short) 1)
            .configs(Map.of("message.timestamp.type", "LogAppendTime")))).all().get();
        long answered;
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            answered = p.send(new ProducerRecord<>(topic, 0, 1000L, null, bytes("x"))).get().timestamp();
        }
        ConsumerRecord<byte[], byte[]> r = read(topic, 0, 1).get(0);
        Main.require(r.timestamp() > 1600000000000L, "the broker's time, not " + r.timestamp());
        Main.same(r.timestampType(), TimestampType.LOG_APPEND_TIME, "timestamp type");
        Main.same(answered, r.timestamp(), "timestamp answered");
    }

    private static void manyBatches() throws Exception {
        String topic = Main.topic("many");
        List<String> values = new ArrayList<>();
        for (int i = 0; i < 50_000; i++)
            values.add("value number " + i);
        try (KafkaProducer<byte[], byte[]> p = producer("compression.type", "lz4", "linger.ms", 5)) {
            send(p, topic, values, 0);
        }
        Main.same(values(read(topic, 0, values.size(), "max.partition.fetch.bytes", 65536)), values, "values");
        List<String> some = values(read(topic, 0, values.size(), "max.poll.records", 10_000, "fetch.min.bytes", 500_000,
            "fetch.max.wait.ms", 100));
        Main.same(some, values, "values");
        Main.same(Collections.max(values(read(topic, 0, values.size(), "check.crcs", true))), "value number 9999", "largest");
    }

    static void register() {
        Main.add("roundtrip", RecordChecks::roundtrip);
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
            Main.add("codec-" + codec, () -> codec(codec));
        Main.add("acks", RecordChecks::acks);
        Main.add("idempotence", RecordChecks::idempotence);
        Main.add("keyed-partitions", RecordChecks::keyedPartitions);
        Main.add("large-records", RecordChecks::largeRecords);
        Main.add("too-large-record", RecordChecks::tooLargeRecord);
        Main.add("offsets-by-time", RecordChecks::offsetsByTime);
        Main.add("log-append-time", RecordChecks::logAppendTime);
        Main.add("many-batches", RecordChecks::manyBatches);
    }
}
