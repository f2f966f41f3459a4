package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"kafkad/clients/common"
)

var (
	theClient sarama.Client
	theAdmin  sarama.ClusterAdmin
)

func client() sarama.Client {
	if theClient == nil {
		c, err := sarama.NewClient([]string{common.Broker}, settings())
		if err != nil {
			panic(err)
		}
		theClient = c
	}
	return theClient
}

func admin() sarama.ClusterAdmin {
	if theAdmin == nil {
		a, err := sarama.NewClusterAdminFromClient(client())
		if err != nil {
			panic(err)
		}
		theAdmin = a
	}
	return theAdmin
}

func create(topic string, partitions int, configs map[string]string) error {
	d := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for k, v := range configs {
		d.ConfigEntries[k] = &v
	}
	return admin().CreateTopic(topic, d, false)
}

func (adapter) Create(topic string, partitions int, configs map[string]string) error {
	return create(topic, partitions, configs)
}

func (adapter) Bounds(topic string, partition int32) (int64, int64, error) {
	first, err := client().GetOffset(topic, partition, sarama.OffsetOldest)
	end, err2 := client().GetOffset(topic, partition, sarama.OffsetNewest)
	return first, end, common.First(err, err2)
}

func (adapter) ByTime(topic string, partition int32, timestamp int64) (int64, error) {
	return client().GetOffset(topic, partition, timestamp)
}

func fill(topic string, n int) error {
	records := make([]common.Record, n)
	for i := range records {
		records[i].Value = []byte(fmt.Sprint(i))
	}
	return adapter{}.Send(topic, records, common.SendOptions{Acks: -1, Idempotent: true})
}

func isListed(topic string) (bool, error) {
	l, err := admin().ListTopics()
	_, ok := l[topic]
	return ok, err
}

func topics() error {
	topic, a := common.Topic("admin-topic"), admin()
	soon := "soon"
	if err := create(topic, 3, map[string]string{"retention.ms": "123456"}); err != nil {
		return err
	}
	two := a.CreateTopic(topic+"-x", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 2}, false)
	bad := a.CreateTopic(topic+"-x", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"retention.ms": &soon}}, false)
	dry := a.CreateTopic(topic+"-dry", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, true)
	listed, err := a.ListTopics()
	described, err2 := a.DescribeTopics([]string{topic})
	_, isDry := listed[topic+"-dry"]
	if err := common.First(err, err2, dry, common.Fails(create(topic, 3, nil), sarama.ErrTopicAlreadyExists),
		common.Fails(create("bad name", 1, nil), sarama.ErrInvalidTopic), common.Fails(two, sarama.ErrInvalidReplicationFactor),
		common.Fails(bad, sarama.ErrInvalidConfig), common.Same(listed[topic].NumPartitions, int32(3), "partitions listed"),
		common.Same(*listed[topic].ConfigEntries["retention.ms"], "123456", "setting listed"), common.Same(isDry, false, "dry run"),
		common.Same(len(described[0].Partitions), 3, "partitions described")); err != nil {
		return err
	}
	if err := a.DeleteTopic(topic); err != nil {
		return err
	}
	if err := common.Until("the topic is gone", func() (bool, error) {
		ok, err := isListed(topic)
		return !ok, err
	}); err != nil {
		return err
	}
	return common.Fails(a.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition)
}

func partitions() error {
	topic := common.Topic("admin-partitions")
	if err := common.First(create(topic, 2, nil), admin().CreatePartitions(topic, 5, nil, false)); err != nil {
		return err
	}
	if err := common.Until("five partitions", func() (bool, error) {
		l, err := admin().ListTopics()
		return l[topic].NumPartitions == 5, err
	}); err != nil {
		return err
	}
	return common.Fails(admin().CreatePartitions(topic, 3, nil, false), sarama.ErrInvalidPartitions)
}

func wantConfig(topic, key, value string, source sarama.ConfigSource) error {
	entries, err := admin().DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key}})
	if err != nil || len(entries) != 1 {
		return fmt.Errorf("%d entries, %v", len(entries), err)
	}
	return common.First(common.Same(entries[0].Value, value, key), common.Same(entries[0].Source, source, "source of "+key))
}

func configs() error {
	topic := common.Topic("admin-configs")
	alter := func(op sarama.IncrementalAlterConfigsOperation, key, value string) error {
		return admin().IncrementalAlterConfig(sarama.TopicResource, topic,
			map[string]sarama.IncrementalAlterConfigsEntry{key: {Operation: op, Value: &value}}, false)
	}
	for _, step := range []func() error{
		func() error { return create(topic, 1, nil) },
		func() error { return wantConfig(topic, "retention.ms", "604800000", sarama.SourceDefault) },
		func() error { return alter(sarama.IncrementalAlterConfigsOperationSet, "retention.ms", "5000") },
		func() error { return wantConfig(topic, "retention.ms", "5000", sarama.SourceTopic) },
		func() error { return alter(sarama.IncrementalAlterConfigsOperationAppend, "cleanup.policy", "compact") },
		func() error { return wantConfig(topic, "cleanup.policy", "delete,compact", sarama.SourceTopic) },
		func() error { return alter(sarama.IncrementalAlterConfigsOperationDelete, "retention.ms", "") },
		func() error { return wantConfig(topic, "retention.ms", "604800000", sarama.SourceDefault) },
		func() error {
			return common.Fails(alter(sarama.IncrementalAlterConfigsOperationSet, "retention.ms", "soon"), sarama.ErrInvalidRequest)
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	entries, err := admin().DescribeConfig(sarama.ConfigResource{Type: sarama.BrokerResource, Name: "0"})
	return common.First(err, common.Same(len(entries) > 200, true, fmt.Sprint(len(entries), " broker settings")))
}

func configsLegacy() error {
	topic := common.Topic("admin-configs-legacy")
	first, second, size := "5000", "6000", "1048576"
	return common.First(create(topic, 1, nil),
		admin().AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &first, "segment.bytes": &size}, false),
		admin().AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &second}, false),
		wantConfig(topic, "retention.ms", "6000", sarama.SourceTopic),
		wantConfig(topic, "segment.bytes", "1073741824", sarama.SourceDefault))
}

func deleteRecords() error {
	topic := common.Topic("admin-delete-records")
	if err := common.First(create(topic, 1, nil), fill(topic, 10), admin().DeleteRecords(topic, map[int32]int64{0: 4})); err != nil {
		return err
	}
	first, end, err := adapter{}.Bounds(topic, 0)
	far := admin().DeleteRecords(topic, map[int32]int64{0: 11})
	return common.First(err, common.Same([]int64{first, end}, []int64{4, 10}, "bounds"),
		common.Same(far != nil, true, "behind the end is refused"))
}

func logDirs() error {
	topic := common.Topic("admin-log-dirs")
	if err := common.First(create(topic, 2, nil), fill(topic, 100)); err != nil {
		return err
	}
	all, err := admin().DescribeLogDirs([]int32{0})
	if err != nil {
		return err
	}
	sizes := map[int32]int64{}
	for _, d := range all[0] {
		if d.ErrorCode != sarama.ErrNoError || d.UsableBytes <= 0 {
			return fmt.Errorf("log dir %+v", d)
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				if t.Topic == topic {
					sizes[p.PartitionID] = p.Size
				}
			}
		}
	}
	if len(sizes) != 2 || sizes[0] < 500 || sizes[1] != 0 {
		return fmt.Errorf("sizes %v", sizes)
	}
	return nil
}

func cluster() error {
	brokers, controller, err := admin().DescribeCluster()
	if err != nil {
		return err
	}
	return common.First(common.Same(controller, int32(0), "controller"), common.Same(len(brokers), 1, "brokers"),
		common.Same(brokers[0].Addr(), common.Broker, "address"))
}

func listOffsets() error {
	topic := common.Topic("admin-list-offsets")
	if err := create(topic, 1, nil); err != nil {
		return err
	}
	for _, t := range []int64{1000, 5000, 3000} {
		if err := (adapter{}).Send(topic, []common.Record{{Value: []byte("x"), Timestamp: 1600000000000 + t}},
			common.SendOptions{Acks: -1}); err != nil {
			return err
		}
	}
	for at, want := range map[int64]int64{-1: 3, -2: 0, 1600000002000: 1} {
		r, err := admin().ListOffsets(map[string]map[int32]int64{topic: {0: at}}, nil)
		if err = common.First(err, common.Same(r[topic][0].Offset, want, fmt.Sprint("offset at ", at))); err != nil {
			return err
		}
	}
	return nil
}

func quotas() error {
	name := common.Topic("client")
	entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: name}}
	filter := []sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Match: name}}
	count := func(want int) error {
		return common.Until(fmt.Sprint(want, " quotas"), func() (bool, error) {
			d, err := admin().DescribeClientQuotas(filter, true)
			if err != nil || len(d) == 0 {
				return want == 0, err
			}
			return len(d[0].Values) == want, nil
		})
	}
	alter := func(remove bool) error {
		return admin().AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6, Remove: remove}, false)
	}
	return common.First(alter(false), count(1), alter(true), count(0))
}

func reassignments() error {
	topic := common.Topic("admin-reassignments")
	if err := create(topic, 1, nil); err != nil {
		return err
	}
	r, err := admin().ListPartitionReassignments(topic, []int32{0})
	return common.First(err, common.Same(len(r), 0, "reassignments"))
}

// acls: a topic that everybody may use but for writing; then it may be written again.
func acls() error {
	topic, a := common.Topic("admin-acls"), admin()
	any := sarama.AclFilter{ResourceType: sarama.AclResourceTopic, ResourceName: &topic, ResourcePatternTypeFilter: sarama.AclPatternAny,
		Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny}
	count := func(want int, what string) error {
		n := 0
		found, err := a.ListAcls(any)
		for _, r := range found {
			n += len(r.Acls)
		}
		return common.First(err, common.Same(n, want, what))
	}
	err := common.First(create(topic, 1, nil), a.CreateACLs([]*sarama.ResourceAcls{{
		Resource: sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: topic, ResourcePatternType: sarama.AclPatternLiteral},
		Acls: []*sarama.Acl{{Principal: "User:ANONYMOUS", Host: "*", Operation: sarama.AclOperationAll, PermissionType: sarama.AclPermissionAllow},
			{Principal: "User:ANONYMOUS", Host: "*", Operation: sarama.AclOperationWrite, PermissionType: sarama.AclPermissionDeny}}}}))
	if err != nil {
		return err
	}
	if err := common.First(count(2, "ACLs"), common.Fails(fill(topic, 1), sarama.ErrTopicAuthorizationFailed)); err != nil {
		return err
	}
	gone, err := a.DeleteACL(any, false)
	return common.First(err, common.Same(len(gone), 2, "deleted"), count(0, "left"), fill(topic, 1))
}

func groups() error {
	topic, group, a := common.Topic("admin-groups"), common.Topic("group"), admin()
	if err := common.First(create(topic, 2, nil), fill(topic, 10)); err != nil {
		return err
	}
	_, err := a.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{topic: {
		0: {Offset: 7, Metadata: "note", LeaderEpoch: -1}, 1: {LeaderEpoch: -1}}}, nil)
	if err != nil {
		return err
	}
	listed, err := a.ListConsumerGroups()
	_, isListed := listed[group]
	described, err2 := a.DescribeConsumerGroups([]string{group})
	offsets, err3 := a.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1}})
	if err := common.First(err, err2, err3, common.Same(isListed, true, "listed"), common.Same(described[0].State, "Empty", "state"),
		common.Same(offsets.GetBlock(topic, 0).Offset, int64(7), "committed"),
		common.Same(offsets.GetBlock(topic, 0).Metadata, "note", "metadata")); err != nil {
		return err
	}
	if err := a.DeleteConsumerGroupOffset(group, topic, 0); err != nil {
		return err
	}
	offsets, err = a.ListConsumerGroupOffsets(group, nil)
	if err := common.First(err, common.Same(offsets.GetBlock(topic, 0) == nil, true, "deleted offset"),
		a.DeleteConsumerGroup(group)); err != nil {
		return err
	}
	if err = a.DeleteConsumerGroup(group); !errors.Is(err, sarama.ErrGroupIDNotFound) {
		return fmt.Errorf("deleted again: %v", err)
	}
	return nil
}

func adminChecks() map[string]common.Check {
	return map[string]common.Check{
		"admin-topics": topics, "admin-partitions": partitions, "admin-configs": configs, "admin-configs-legacy": configsLegacy,
		"admin-delete-records": deleteRecords, "admin-log-dirs": logDirs, "admin-cluster": cluster,
		"admin-list-offsets": listOffsets, "admin-quotas": quotas, "admin-acls": acls, "admin-reassignments": reassignments,
		"admin-groups": groups}
}
