import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What Apache's clients write and only they can: every codec, keys over and over, transactions of every fate, offsets in
 *  and outside transactions. "Fill BROKER fill" leaves transactions open; "Fill BROKER finish" ends them; "Fill BROKER old" writes to topics of old formats. */
public final class Fill {
    private static String broker;

    private static KafkaProducer<String, String> producer(String codec, String transactionalId) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        p.put("compression.type", codec);
        p.put("linger.ms", "5");
        p.put("batch.size", "4000");
        p.put("acks", "all");
        p.put("enable.idempotence", "true");
        if (transactionalId != null) {
            p.put("transactional.id", transactionalId);
            p.put("transaction.timeout.ms", "600000");
        }
        return new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
    }

    private static void send(KafkaProducer<String, String> p, String topic, int from, int n, int keys) {
        for (int i = from; i < from + n; i++) {
            String value = i % 17 == 16 && keys > 0 ? null : "value " + i + " " + "x".repeat(i % 200);
            ProducerRecord<String, String> r = new ProducerRecord<>(topic, 0, keys > 0 ? "key-" + i % keys : null, value);
            r.headers().add("number", Integer.toString(i).getBytes());
            p.send(r);
        }
        p.flush();
    }

    private static void transaction(KafkaProducer<String, String> p, String topic, int from, int n, boolean commit) {
        p.beginTransaction();
        send(p, topic, from, n, 7);
        if (commit)
            p.commitTransaction();
        else
            p.abortTransaction();
    }

    private static void offsets(KafkaProducer<String, String> p, String group, long offset) {
        p.sendOffsetsToTransaction(Map.of(new TopicPartition("txn", 0), new OffsetAndMetadata(offset, "in a transaction")),
                                   new ConsumerGroupMetadata(group));
    }

    private static void fill() throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
            try (KafkaProducer<String, String> p = producer(codec, null)) {
                send(p, "codec-" + codec, 0, 300, 50);
            }
        try (KafkaProducer<String, String> p = producer("lz4", null)) {
            send(p, "compacted", 0, 3000, 20);
        }
        Properties c = new Properties();
        c.put("bootstrap.servers", broker);
        c.put("group.id", "plain");
        c.put("enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(c, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("codec-none"));
            while (consumer.assignment().isEmpty())
                consumer.poll(Duration.ofMillis(100));
            consumer.commitSync(Map.of(new TopicPartition("codec-none", 0), new OffsetAndMetadata(123, "as committed"),
                                       new TopicPartition("codec-gzip", 0), new OffsetAndMetadata(7)));
        }
        KafkaProducer<String, String> a = producer("none", "a");
        KafkaProducer<String, String> b = producer("zstd", "b");
        a.initTransactions();
        b.initTransactions();
        transaction(a, "txn", 0, 40, true);
        transaction(b, "txn", 100, 40, false);
        b.beginTransaction(); // one that others lie inside of, over several segments
        send(b, "txn", 200, 100, 7);
        transaction(a, "txn", 300, 100, false);
        transaction(a, "txn", 400, 100, true);
        send(b, "txn", 500, 100, 7);
        b.abortTransaction();
        a.beginTransaction();
        send(a, "txn", 600, 20, 7);
        offsets(a, "of-a", 11);
        a.commitTransaction();
        b.beginTransaction();
        send(b, "txn", 700, 20, 7);
        offsets(b, "of-b", 22);
        b.abortTransaction();
        b.beginTransaction(); // stays open
        offsets(b, "of-b", 33);
        send(b, "txn", 800, 20, 7);
        try (KafkaProducer<String, String> p = producer("none", null)) {
            send(p, "txn", 900, 20, 7);
        }
    }

    /** Without headers and idempotence: for topics whose message format is an old one. */
    private static void old() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4")) {
            Properties p = new Properties();
            p.put("bootstrap.servers", broker);
            p.put("compression.type", codec);
            p.put("batch.size", "4000");
            p.put("linger.ms", "5");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
                for (String form : List.of("0.9.0", "0.10.2"))
                    for (int i = 0; i < 300; i++)
                        producer.send(new ProducerRecord<>("format-" + form + "-" + codec, 0, "k" + i, "v" + "x".repeat(i % 200)));
            }
        }
    }

    private static void finish() {
        KafkaProducer<String, String> b = producer("none", "b");
        b.initTransactions(); // ends the open one
        b.beginTransaction();
        offsets(b, "of-b", 44);
        send(b, "txn", 1000, 10, 7);
        b.commitTransaction();
    }

    public static void main(String[] args) throws Exception {
        broker = args[0];
        if (args[1].equals("fill"))
            fill();
        else if (args[1].equals("old"))
            old();
        else
            finish();
        System.out.println("filled");
        Runtime.getRuntime().halt(0); // as a crash would: nothing is ended
    }
}
