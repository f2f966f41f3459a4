import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A member of a group: member.py tells what it says and reads. */
final class Member {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private Member() {
    }

    private static KafkaConsumer<byte[], byte[]> open(Map<String, String> args) {
        List<Object> conf = new ArrayList<>();
        Map<String, String> keys = Map.of("group", "group.id", "session", "session.timeout.ms", "heartbeat",
            "heartbeat.interval.ms", "autocommit", "enable.auto.commit", "instance", "group.instance.id", "protocol",
            "group.protocol");
        args.forEach((k, v) -> {
            if (keys.containsKey(k)) {
                conf.add(keys.get(k));
                conf.add(v);
            }
        });
        if (args.containsKey("assignor")) {
            conf.add("partition.assignment.strategy");
            conf.add(ASSIGNORS.get(args.get("assignor")));
        }
        conf.addAll(List.of("auto.commit.interval.ms", 100, "metadata.max.age.ms", 500, "reconnect.backoff.max.ms", 200));
        KafkaConsumer<byte[], byte[]> c = RecordChecks.consumer(conf.toArray());
        if (args.containsKey("pattern") && "consumer".equals(args.get("protocol")))
            subscribeByBroker(c, args.get("pattern"));
        else if (args.containsKey("pattern"))
            c.subscribe(Pattern.compile(args.get("pattern")));
        else
            c.subscribe(List.of(args.get("topics").split(",")));
        return c;
    }

    /** A pattern that the broker resolves: 3.9 has no such call. */
    private static void subscribeByBroker(KafkaConsumer<byte[], byte[]> c, String pattern) {
        try {
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            KafkaConsumer.class.getMethod("subscribe", type).invoke(c, type.getConstructor(String.class).newInstance(pattern));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void listen(ConcurrentLinkedQueue<String> commands) {
        Thread t = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = in.readLine(); line != null; line = in.readLine())
                    commands.add(line);
            } catch (java.io.IOException e) {
                e.printStackTrace();
            }
            commands.add("close");
        });
        t.setDaemon(true);
        t.start();
    }

    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static void run(String[] words) {
        Map<String, String> args = new HashMap<>();
        for (String word : words)
            args.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
        listen(commands);
        try (KafkaConsumer<byte[], byte[]> c = open(args)) {
            Set<TopicPartition> last = null;
            for (;;) {
                for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(100)))
                    say("RECORD " + r.topic() + " " + r.partition() + " " + r.offset() + " " + RecordChecks.string(r.value()));
                Set<TopicPartition> now = Set.copyOf(c.assignment());
                if (!now.equals(last))
                    say("ASSIGNED " + now.stream().map(p -> p.topic() + ":" + p.partition()).collect(Collectors.joining(",")));
                last = now;
                String command = commands.poll();
                if ("close".equals(command))
                    break;
                if ("commit".equals(command)) {
                    c.commitSync();
                    say("COMMITTED");
                }
            }
        }
        say("CLOSED");
    }
}
