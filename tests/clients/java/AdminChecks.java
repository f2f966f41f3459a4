import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.DelegationTokenNotFoundException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.UnsupportedByAuthenticationException;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/** The Admin client. */
final class AdminChecks {
    private static Admin admin;

    private AdminChecks() {
    }

    static Admin admin() {
        if (admin == null)
            admin = Admin.create(Map.of("bootstrap.servers", Main.broker, "default.api.timeout.ms", 30000));
        return admin;
    }

    static void close() {
        if (admin != null)
            admin.close();
    }

    static void create(String topic, int partitions) throws Exception {
        admin().createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    static void fill(String topic, int n) throws Exception {
        try (KafkaProducer<byte[], byte[]> p = RecordChecks.producer("linger.ms", 5)) {
            List<String> values = new ArrayList<>();
            for (int i = 0; i < n; i++)
                values.add("v" + i);
            RecordChecks.send(p, topic, values, 0);
        }
    }

    static void fails(KafkaFuture<?> future, Class<? extends Throwable> want) throws Exception {
        try {
            future.get();
        } catch (ExecutionException e) {
            Main.require(want.isInstance(e.getCause()), "want " + want.getSimpleName() + ", got " + e.getCause());
            return;
        }
        throw new AssertionError("want " + want.getSimpleName() + ", but it was done");
    }

    private static TopicDescription describe(String topic) throws Exception {
        return admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private static void topics() throws Exception {
        String topic = Main.topic("admin-topic");
        Admin a = admin();
        CreateTopicsResult made = a.createTopics(List.of(new NewTopic(topic, 3, (short) 1)
            .configs(Map.of("retention.ms", "123456"))));
        made.all().get();
        Main.same(made.numPartitions(topic).get(), 3, "partitions answered");
        Main.same(made.config(topic).get().get("retention.ms").value(), "123456", "config answered");
        fails(a.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all(), TopicExistsException.class);
        fails(a.createTopics(List.of(new NewTopic("bad name", 1, (short) 1))).all(), InvalidTopicException.class);
        fails(a.createTopics(List.of(new NewTopic(topic + "-x", 0, (short) 1))).all(), InvalidPartitionsException.class);
        fails(a.createTopics(List.of(new NewTopic(topic + "-x", 1, (short) 2))).all(),
            InvalidReplicationFactorException.class);
        fails(a.createTopics(List.of(new NewTopic(topic + "-x", 1, (short) 1)
            .configs(Map.of("retention.ms", "soon")))).all(), InvalidConfigurationException.class);
        a.createTopics(List.of(new NewTopic(topic + "-dry", 1, (short) 1)),
            new CreateTopicsOptions().validateOnly(true)).all().get();
        Set<String> names = a.listTopics().names().get();
        Main.require(names.contains(topic) && !names.contains(topic + "-dry") && !names.contains(topic + "-x"), "names " + names);
        TopicDescription d = describe(topic);
        Main.same(d.partitions().size(), 3, "partitions");
        Main.require(!d.isInternal() && !d.topicId().toString().equals("AAAAAAAAAAAAAAAAAAAAAA"), "topic id " + d.topicId());
        d.partitions().forEach(p -> Main.require(p.leader() != null && p.isr().size() == 1, "leader and isr of " + p));
        Main.same(a.describeTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(d.topicId())))
            .allTopicIds().get().get(d.topicId()).name(), topic, "name by id");
        fails(a.describeTopics(List.of(topic + "-x")).allTopicNames(), UnknownTopicOrPartitionException.class);
        a.deleteTopics(List.of(topic)).all().get();
        Main.until("the topic is gone", () -> !a.listTopics().names().get().contains(topic));
        fails(a.deleteTopics(List.of(topic)).all(), UnknownTopicOrPartitionException.class);
    }

    private static void partitions() throws Exception {
        String topic = Main.topic("admin-partitions");
        create(topic, 2);
        admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        Main.until("five partitions", () -> describe(topic).partitions().size() == 5);
        admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(6, List.of(List.of(0))))).all().get();
        fails(admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all(), InvalidPartitionsException.class);
        fails(admin().createPartitions(Map.of(topic + "-x", NewPartitions.increaseTo(3))).all(),
            UnknownTopicOrPartitionException.class);
    }

    private static Config config(ConfigResource r) throws Exception {
        return admin().describeConfigs(List.of(r), new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true))
            .all().get().get(r);
    }

    private static void alter(ConfigResource r, String key, String value, AlterConfigOp.OpType op) throws Exception {
        admin().incrementalAlterConfigs(Map.of(r, List.of(new AlterConfigOp(new ConfigEntry(key, value), op)))).all().get();
    }

    private static void configs() throws Exception {
        String topic = Main.topic("admin-configs");
        create(topic, 1);
        ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry before = config(r).get("retention.ms");
        Main.same(before.source(), ConfigEntry.ConfigSource.DEFAULT_CONFIG, "source");
        Main.same(before.type(), ConfigEntry.ConfigType.LONG, "type");
        Main.require(before.documentation() != null && !before.documentation().isEmpty(), "documentation");
        alter(r, "retention.ms", "5000", AlterConfigOp.OpType.SET);
        ConfigEntry after = config(r).get("retention.ms");
        Main.same(after.value(), "5000", "value");
        Main.same(after.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, "source");
        Main.require(after.synonyms().size() >= 2, "synonyms " + after.synonyms());
        alter(r, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
        Main.same(config(r).get("cleanup.policy").value(), "delete,compact", "appended");
        alter(r, "cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT);
        Main.same(config(r).get("cleanup.policy").value(), "compact", "subtracted");
        alter(r, "retention.ms", "", AlterConfigOp.OpType.DELETE);
        Main.same(config(r).get("retention.ms").value(), before.value(), "value after the delete");
        // a broker of a ZooKeeper-mode cluster says so of a bad value
        fails(admin().incrementalAlterConfigs(Map.of(r, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "soon"),
            AlterConfigOp.OpType.SET)))).all(), InvalidRequestException.class);

        ConfigResource b = new ConfigResource(ConfigResource.Type.BROKER, "0");
        Config broker = config(b);
        Main.require(broker.entries().size() > 200, "broker settings: " + broker.entries().size());
        Main.require(broker.get("log.dirs").isReadOnly(), "log.dirs is read only");
        Main.same(broker.get("message.max.bytes").source(), ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG, "source");
        alter(b, "log.cleaner.threads", "2", AlterConfigOp.OpType.SET);
        Main.until("the broker's own setting", () -> config(b).get("log.cleaner.threads").value().equals("2"));
        alter(b, "log.cleaner.threads", "", AlterConfigOp.OpType.DELETE);
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        alter(all, "log.retention.ms", "77777777", AlterConfigOp.OpType.SET);
        Main.until("the cluster's setting", () -> config(b).get("log.retention.ms").source()
            == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
        Main.until("the topic's setting", () -> config(r).get("retention.ms").value().equals("77777777"));
        alter(all, "log.retention.ms", "", AlterConfigOp.OpType.DELETE);
        Main.require(admin().listTopics().names().get().contains(topic), "topic");
    }

    /** AlterConfigs, which replaces all of a resource's settings: the Admin of 4.x has it no more. */
    private static void configsLegacy() throws Exception {
        String topic = Main.topic("admin-configs-legacy");
        create(topic, 1);
        ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Method alter = Admin.class.getMethod("alterConfigs", Map.class);
        Object done = alter.invoke(admin(), Map.of(r, new Config(List.of(new ConfigEntry("retention.ms", "5000"),
            new ConfigEntry("segment.bytes", "1048576")))));
        ((KafkaFuture<?>) done.getClass().getMethod("all").invoke(done)).get();
        Main.same(config(r).get("segment.bytes").value(), "1048576", "value");
        done = alter.invoke(admin(), Map.of(r, new Config(List.of(new ConfigEntry("retention.ms", "6000")))));
        ((KafkaFuture<?>) done.getClass().getMethod("all").invoke(done)).get();
        Main.same(config(r).get("retention.ms").value(), "6000", "value");
        Main.same(config(r).get("segment.bytes").source(), ConfigEntry.ConfigSource.DEFAULT_CONFIG, "source of what was left out");
    }

    private static void deleteRecords() throws Exception {
        String topic = Main.topic("admin-delete-records");
        create(topic, 1);
        fill(topic, 10);
        TopicPartition tp = new TopicPartition(topic, 0);
        Main.same(admin().deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(4))).lowWatermarks().get(tp).get().lowWatermark(),
            4L, "low watermark");
        try (KafkaConsumer<byte[], byte[]> c = RecordChecks.consumer()) {
            Main.same(c.beginningOffsets(List.of(tp)).get(tp), 4L, "beginning");
            c.assign(List.of(tp));
            c.seekToBeginning(List.of(tp));
            Main.until("a record", () -> {
                for (var r : c.poll(Duration.ofMillis(200)))
                    return r.offset() == 4;
                return false;
            });
        }
        fails(admin().deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(11))).all(), OffsetOutOfRangeException.class);
        admin().deleteRecords(Map.of(tp, RecordsToDelete.beforeOffset(-1))).all().get();
        Main.same(offset(tp, OffsetSpec.earliest()).offset(), 10L, "beginning");
    }

    private static void logDirs() throws Exception {
        String topic = Main.topic("admin-log-dirs");
        create(topic, 2);
        fill(topic, 100);
        Map<String, LogDirDescription> dirs = admin().describeLogDirs(List.of(0)).allDescriptions().get().get(0);
        Main.require(!dirs.isEmpty(), "log dirs");
        long size = 0;
        for (LogDirDescription d : dirs.values()) {
            Main.require(d.error() == null && d.totalBytes().isPresent() && d.usableBytes().getAsLong() > 0, "dir " + d);
            for (var e : d.replicaInfos().entrySet())
                if (e.getKey().topic().equals(topic))
                    size += e.getValue().size();
        }
        Main.require(size > 100 * 5, "size " + size);
        var replica = new org.apache.kafka.common.TopicPartitionReplica(topic, 1, 0);
        Main.require(dirs.containsKey(admin().describeReplicaLogDirs(List.of(replica)).all().get().get(replica)
            .getCurrentReplicaLogDir()), "the replica's dir");
    }

    private static void cluster() throws Exception {
        DescribeClusterResult d = admin().describeCluster();
        Main.require(d.clusterId().get().length() == 22, "cluster id " + d.clusterId().get());
        Main.same(d.controller().get().id(), 0, "controller");
        Main.same(d.nodes().get().stream().map(n -> n.host() + ":" + n.port()).collect(Collectors.toList()),
            List.of(Main.broker), "nodes");
    }

    private static void reassignments() throws Exception {
        Main.require(admin().listPartitionReassignments().reassignments().get().isEmpty(), "reassignments");
    }

    /** A topic that everybody may use but for writing; then it may be written again. */
    private static void acls() throws Exception {
        String topic = Main.topic("admin-acls");
        create(topic, 1);
        ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL);
        Set<AclBinding> acls = Set.of(
            new AclBinding(pattern, new AccessControlEntry("User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.ALLOW)),
            new AclBinding(pattern, new AccessControlEntry("User:ANONYMOUS", "*", AclOperation.WRITE, AclPermissionType.DENY)));
        AclBindingFilter all = new AclBindingFilter(pattern.toFilter(), AccessControlEntryFilter.ANY);
        admin().createAcls(acls).all().get();
        Main.same(Set.copyOf(admin().describeAcls(all).values().get()), acls, "ACLs");
        try {
            fill(topic, 1);
            throw new AssertionError("written in spite of the ACL");
        } catch (ExecutionException e) {
            Main.require(e.getCause() instanceof TopicAuthorizationException, "error " + e.getCause());
        }
        Main.same(Set.copyOf(admin().deleteAcls(List.of(all)).all().get()), acls, "deleted");
        Main.same(admin().describeAcls(all).values().get().size(), 0, "left");
        fill(topic, 1);
    }

    /** An admin client on the listener with SASL. */
    private static Admin login(String mechanism, String module, String user, String password, String more) {
        return Admin.create(Map.of("bootstrap.servers", System.getenv("KAFKAD_SASL"), "default.api.timeout.ms", 30000,
            "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism, "sasl.jaas.config",
            "org.apache.kafka.common.security." + module + " required username=\"" + user + "\" password=\"" + password + "\"" + more + ";"));
    }

    private static Admin plain(String user) {
        return login("PLAIN", "plain.PlainLoginModule", user, user + "-pw", "");
    }

    private static Admin by(DelegationToken t, String mechanism) {
        return login(mechanism, "scram.ScramLoginModule", t.tokenInfo().tokenId(), t.hmacAsBase64String(), " tokenauth=\"true\"");
    }

    /** Made by one user, renewed by another, ended; whoever has it logs in, and may not ask for tokens. */
    private static void tokens() throws Exception {
        KafkaPrincipal alice = new KafkaPrincipal("User", "alice"), bob = new KafkaPrincipal("User", "bob");
        try (Admin a = plain("alice"); Admin b = plain("bob")) {
            DelegationToken t = a.createDelegationToken(new CreateDelegationTokenOptions().renewers(List.of(bob))).delegationToken().get();
            Main.same(t.tokenInfo().owner(), alice, "owner");
            Main.same(t.tokenInfo().tokenRequester(), alice, "requester");
            Main.same(a.describeDelegationToken().delegationTokens().get(), List.of(t), "tokens");
            Main.same(b.describeDelegationToken(new DescribeDelegationTokenOptions().owners(List.of(alice))).delegationTokens().get(),
                List.of(t), "tokens of alice");
            for (String mechanism : List.of("SCRAM-SHA-256", "SCRAM-SHA-512")) {
                try (Admin c = by(t, mechanism)) {
                    Main.same(c.describeCluster().nodes().get().size(), 1, "brokers");
                    fails(c.createDelegationToken().delegationToken(), UnsupportedByAuthenticationException.class);
                }
            }
            fails(admin().createDelegationToken().delegationToken(), UnsupportedByAuthenticationException.class);
            long until = b.renewDelegationToken(t.hmac(), new RenewDelegationTokenOptions().renewTimePeriodMs(60000)).expiryTimestamp().get();
            Main.require(until < t.tokenInfo().expiryTimestamp(), "renewed until " + until);
            a.expireDelegationToken(t.hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();
            fails(a.renewDelegationToken(t.hmac()).expiryTimestamp(), DelegationTokenNotFoundException.class);
            try (Admin c = by(t, "SCRAM-SHA-256")) {
                fails(c.describeCluster().nodes(), SaslAuthenticationException.class);
            }
        }
    }

    private static void features() throws Exception {
        FeatureMetadata f = admin().describeFeatures().featureMetadata().get();
        Main.require(f.finalizedFeatures() != null && f.supportedFeatures() != null, "features " + f);
    }

    private static void producers() throws Exception {
        String topic = Main.topic("admin-producers");
        create(topic, 1);
        fill(topic, 5);
        TopicPartition tp = new TopicPartition(topic, 0);
        List<ProducerState> active = admin().describeProducers(List.of(tp)).partitionResult(tp).get().activeProducers();
        Main.same(active.size(), 1, "producers");
        Main.same(active.get(0).lastSequence(), 4, "last sequence");
        Main.require(active.get(0).producerEpoch() == 0 && active.get(0).lastTimestamp() > 0, "state " + active);
    }

    private static ListOffsetsResultInfo offset(TopicPartition tp, OffsetSpec spec) throws Exception {
        return admin().listOffsets(Map.of(tp, spec)).partitionResult(tp).get();
    }

    private static void listOffsets() throws Exception {
        String topic = Main.topic("admin-list-offsets");
        create(topic, 1);
        TopicPartition tp = new TopicPartition(topic, 0);
        Main.same(offset(tp, OffsetSpec.maxTimestamp()).offset(), -1L, "of an empty log");
        try (KafkaProducer<byte[], byte[]> p = RecordChecks.producer()) {
            for (long t : new long[] {1000, 5000, 3000})
                p.send(new org.apache.kafka.clients.producer.ProducerRecord<>(topic, 0, 1600000000000L + t, null, new byte[1])).get();
        }
        Main.same(offset(tp, OffsetSpec.earliest()).offset(), 0L, "earliest");
        Main.same(offset(tp, OffsetSpec.latest()).offset(), 3L, "latest");
        Main.same(offset(tp, OffsetSpec.forTimestamp(1600000002000L)).offset(), 1L, "by time");
        Main.same(offset(tp, OffsetSpec.maxTimestamp()).offset(), 1L, "largest timestamp");
        Main.same(offset(tp, OffsetSpec.maxTimestamp()).timestamp(), 1600000005000L, "largest timestamp");
    }

    private static void quotas() throws Exception {
        String user = Main.topic("user");
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, user));
        ClientQuotaFilter filter = ClientQuotaFilter.contains(List.of(
            ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, user)));
        admin().alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", 1e6), new ClientQuotaAlteration.Op("consumer_byte_rate", 2e6)))))
            .all().get();
        Main.until("the quotas", () -> Map.of(entity, Map.of("producer_byte_rate", 1e6, "consumer_byte_rate", 2e6))
            .equals(admin().describeClientQuotas(filter).entities().get()));
        admin().alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", null), new ClientQuotaAlteration.Op("consumer_byte_rate", null)))))
            .all().get();
        Main.until("no quotas", () -> admin().describeClientQuotas(filter).entities().get().isEmpty());
    }

    private static void groups() throws Exception {
        String topic = Main.topic("admin-groups");
        String group = Main.topic("group");
        create(topic, 2);
        fill(topic, 10);
        TopicPartition tp = new TopicPartition(topic, 0);
        Collection<String> one = List.of(group);
        Admin a = admin();
        try (KafkaConsumer<byte[], byte[]> c = RecordChecks.consumer("group.id", group)) {
            c.subscribe(List.of(topic));
            Main.until("ten records", () -> {
                c.poll(Duration.ofMillis(100));
                return c.assignment().size() == 2 && c.position(tp) == 10;
            });
            c.commitSync(Map.of(tp, new OffsetAndMetadata(7, "note"), new TopicPartition(topic, 1), new OffsetAndMetadata(0)));
            ConsumerGroupDescription d = a.describeConsumerGroups(one).all().get().get(group);
            Main.same(d.state().toString(), "Stable", "state");
            Main.same(d.members().size(), 1, "members");
            Main.same(d.members().iterator().next().assignment().topicPartitions().size(), 2, "partitions of the member");
            Main.same(d.partitionAssignor(), "range", "assignor");
            fails(a.deleteConsumerGroups(one).all(), GroupNotEmptyException.class);
        }
        Main.require(a.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), "listed");
        Map<TopicPartition, OffsetAndMetadata> offsets = a.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Main.same(offsets.get(tp).offset(), 7L, "committed");
        Main.same(offsets.get(tp).metadata(), "note", "metadata");
        a.alterConsumerGroupOffsets(group, Map.of(tp, new OffsetAndMetadata(3))).all().get();
        Main.same(a.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(tp).offset(), 3L, "altered");
        a.deleteConsumerGroupOffsets(group, Set.of(tp)).all().get();
        Main.require(!a.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().containsKey(tp), "deleted offset");
        a.deleteConsumerGroups(one).all().get();
        Main.require(a.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)), "deleted");
        fails(a.deleteConsumerGroups(one).all(), GroupIdNotFoundException.class);
    }

    static void register() {
        Main.add("admin-topics", AdminChecks::topics);
        Main.add("admin-partitions", AdminChecks::partitions);
        Main.add("admin-configs", AdminChecks::configs);
        Main.add("admin-configs-legacy", AdminChecks::configsLegacy);
        Main.add("admin-delete-records", AdminChecks::deleteRecords);
        Main.add("admin-log-dirs", AdminChecks::logDirs);
        Main.add("admin-cluster", AdminChecks::cluster);
        Main.add("admin-reassignments", AdminChecks::reassignments);
        Main.add("admin-acls", AdminChecks::acls);
        Main.add("admin-tokens", AdminChecks::tokens);
        Main.add("admin-features", AdminChecks::features);
        Main.add("admin-producers", AdminChecks::producers);
        Main.add("admin-list-offsets", AdminChecks::listOffsets);
        Main.add("admin-quotas", AdminChecks::quotas);
        Main.add("admin-groups", AdminChecks::groups);
    }
}
