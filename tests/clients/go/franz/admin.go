package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kafkad/clients/common"
)

var theAdmin *kadm.Client

func admin() *kadm.Client {
	if theAdmin == nil {
		theAdmin = kadm.NewClient(open())
	}
	return theAdmin
}

func create(topic string, partitions int, configs map[string]string) error {
	conf := map[string]*string{}
	for k, v := range configs {
		conf[k] = kadm.StringPtr(v)
	}
	_, err := admin().CreateTopic(ctx, int32(partitions), 1, conf, topic)
	return err
}

func fill(topic string, n int) error {
	records := make([]common.Record, n)
	for i := range records {
		records[i].Value = []byte(fmt.Sprint(i))
	}
	return adapter{}.Send(topic, records, common.SendOptions{Acks: -1, Idempotent: true})
}

func offset(l kadm.ListedOffsets, err error) func(topic string, partition int32) (int64, error) {
	return func(topic string, partition int32) (int64, error) {
		o, ok := l.Lookup(topic, partition)
		if !ok && err == nil {
			err = fmt.Errorf("no offset of %s-%d", topic, partition)
		}
		return o.Offset, common.First(err, o.Err)
	}
}

func (adapter) Bounds(topic string, partition int32) (int64, int64, error) {
	first, err := offset(admin().ListStartOffsets(ctx, topic))(topic, partition)
	end, err2 := offset(admin().ListEndOffsets(ctx, topic))(topic, partition)
	return first, end, common.First(err, err2)
}

func (adapter) ByTime(topic string, partition int32, timestamp int64) (int64, error) {
	l, err := admin().ListOffsetsAfterMilli(ctx, timestamp, topic)
	o, _ := l.Lookup(topic, partition)
	if o.Timestamp < 0 {
		return -1, err // kadm gives the end instead
	}
	return o.Offset, common.First(err, o.Err)
}

func topics() error {
	topic, a := common.Topic("admin-topic"), admin()
	made, err := a.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("123456")}, topic)
	if err != nil {
		return err
	}
	conf := made.Configs["retention.ms"]
	_, again := a.CreateTopic(ctx, 3, 1, nil, topic)
	_, bad := a.CreateTopic(ctx, 1, 1, nil, "bad name")
	_, two := a.CreateTopic(ctx, 1, 2, nil, topic+"-x")
	_, soon := a.CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": kadm.StringPtr("soon")}, topic+"-x")
	_, dry := a.ValidateCreateTopics(ctx, 1, 1, nil, topic+"-dry")
	listed, err := a.ListTopics(ctx)
	if err := common.First(err, dry, common.Same(made.NumPartitions, int32(3), "partitions answered"),
		common.Same(conf.MaybeValue(), "123456", "config answered"), common.Fails(again, kerr.TopicAlreadyExists),
		common.Fails(bad, kerr.InvalidTopicException), common.Fails(two, kerr.InvalidReplicationFactor),
		common.Fails(soon, kerr.InvalidConfig), common.Same(listed.Has(topic), true, "listed"),
		common.Same(listed.Has(topic+"-dry"), false, "listed"),
		common.Same(listed[topic].Partitions.Numbers(), []int32{0, 1, 2}, "partitions")); err != nil {
		return err
	}
	if _, err := a.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	if err := common.Until("the topic is gone", func() (bool, error) {
		l, err := a.ListTopics(ctx)
		return !l.Has(topic), err
	}); err != nil {
		return err
	}
	_, err = a.DeleteTopic(ctx, topic)
	return common.Fails(err, kerr.UnknownTopicOrPartition)
}

func partitions() error {
	topic := common.Topic("admin-partitions")
	if err := create(topic, 2, nil); err != nil {
		return err
	}
	r, err := admin().UpdatePartitions(ctx, 5, topic)
	if err = common.First(err, r.Error()); err != nil {
		return err
	}
	if err := common.Until("five partitions", func() (bool, error) {
		l, err := admin().ListTopics(ctx, topic)
		return len(l[topic].Partitions) == 5, err
	}); err != nil {
		return err
	}
	r, err = admin().UpdatePartitions(ctx, 3, topic)
	return common.First(err, common.Fails(r.Error(), kerr.InvalidPartitions))
}

func config(resources kadm.ResourceConfigs, err error, key string) (string, string, error) {
	if err != nil || len(resources) != 1 {
		return "", "", fmt.Errorf("%d resources, %v", len(resources), err)
	}
	for _, c := range resources[0].Configs {
		if c.Key == key {
			return c.MaybeValue(), c.Source.String(), resources[0].Err
		}
	}
	return "", "", fmt.Errorf("no %s", key)
}

func wantConfig(topic, key, value, source string) error {
	r, err := admin().DescribeTopicConfigs(ctx, topic)
	got, from, err := config(r, err, key)
	return common.First(err, common.Same(got, value, key), common.Same(from, source, "source of "+key))
}

func configs() error {
	topic := common.Topic("admin-configs")
	alter := func(op kadm.IncrementalOp, key, value string) error {
		r, err := admin().AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: key, Value: kadm.StringPtr(value)}}, topic)
		if err != nil {
			return err
		}
		return r[0].Err
	}
	const dynamic, usual = "DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"
	for _, step := range []func() error{
		func() error { return create(topic, 1, nil) },
		func() error { return wantConfig(topic, "retention.ms", "604800000", usual) },
		func() error { return alter(kadm.SetConfig, "retention.ms", "5000") },
		func() error { return wantConfig(topic, "retention.ms", "5000", dynamic) },
		func() error { return alter(kadm.AppendConfig, "cleanup.policy", "compact") },
		func() error { return wantConfig(topic, "cleanup.policy", "delete,compact", dynamic) },
		func() error { return alter(kadm.SubtractConfig, "cleanup.policy", "delete") },
		func() error { return wantConfig(topic, "cleanup.policy", "compact", dynamic) },
		func() error { return alter(kadm.DeleteConfig, "retention.ms", "") },
		func() error { return wantConfig(topic, "retention.ms", "604800000", usual) },
		func() error { return common.Fails(alter(kadm.SetConfig, "retention.ms", "soon"), kerr.InvalidRequest) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	r, err := admin().DescribeBrokerConfigs(ctx, 0)
	if err != nil || len(r) != 1 || len(r[0].Configs) < 200 {
		return fmt.Errorf("broker settings: %v", err)
	}
	return nil
}

func configsLegacy() error {
	topic := common.Topic("admin-configs-legacy")
	if err := create(topic, 1, nil); err != nil {
		return err
	}
	for _, conf := range []map[string]string{{"retention.ms": "5000", "segment.bytes": "1048576"}, {"retention.ms": "6000"}} {
		var entries []kadm.AlterConfig
		for k, v := range conf {
			entries = append(entries, kadm.AlterConfig{Name: k, Value: kadm.StringPtr(v)})
		}
		r, err := admin().AlterTopicConfigsState(ctx, entries, topic)
		if err != nil || r[0].Err != nil {
			return fmt.Errorf("%v, %v", err, r)
		}
	}
	return common.First(wantConfig(topic, "retention.ms", "6000", "DYNAMIC_TOPIC_CONFIG"),
		wantConfig(topic, "segment.bytes", "1073741824", "DEFAULT_CONFIG"))
}

func deleteRecords() error {
	topic := common.Topic("admin-delete-records")
	if err := common.First(create(topic, 1, nil), fill(topic, 10)); err != nil {
		return err
	}
	remove := func(at int64) (kadm.DeleteRecordsResponse, error) {
		o := kadm.Offsets{}
		o.AddOffset(topic, 0, at, -1)
		r, err := admin().DeleteRecords(ctx, o)
		one, _ := r.Lookup(topic, 0)
		return one, err
	}
	done, err := remove(4)
	far, err2 := remove(11)
	first, end, err3 := adapter{}.Bounds(topic, 0)
	return common.First(err, err2, err3, done.Err, common.Same(done.LowWatermark, int64(4), "low watermark"),
		common.Fails(far.Err, kerr.OffsetOutOfRange), common.Same([]int64{first, end}, []int64{4, 10}, "bounds"))
}

func logDirs() error {
	topic := common.Topic("admin-log-dirs")
	if err := common.First(create(topic, 2, nil), fill(topic, 100)); err != nil {
		return err
	}
	all, err := admin().DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return err
	}
	dirs := all[0]
	zero, ok := dirs.LookupPartition(topic, 0)
	one, ok1 := dirs.LookupPartition(topic, 1)
	if !ok || !ok1 || zero.Size < 500 || one.Size != 0 || dirs.Sorted()[0].UsableBytes <= 0 {
		return fmt.Errorf("log dirs %+v", dirs)
	}
	return dirs.Error()
}

func cluster() error {
	m, err := admin().BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	v, err := admin().ApiVersions(ctx)
	return common.First(err, common.Same(len(m.Cluster), 22, "cluster id"), common.Same(m.Controller, int32(0), "controller"),
		common.Same(fmt.Sprintf("%s:%d", m.Brokers[0].Host, m.Brokers[0].Port), common.Broker, "broker"),
		common.Same(len(v), 1, "brokers that tell their versions"))
}

func producers() error {
	topic := common.Topic("admin-producers")
	if err := common.First(create(topic, 1, nil), fill(topic, 5)); err != nil {
		return err
	}
	var set kadm.TopicsSet
	set.Add(topic, 0)
	d, err := admin().DescribeProducers(ctx, set)
	if err != nil {
		return err
	}
	found := d.SortedProducers()
	if len(found) != 1 || found[0].LastSequence != 4 || found[0].ProducerEpoch != 0 {
		return fmt.Errorf("producers %+v", found)
	}
	return nil
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
	largest, err := offset(admin().ListMaxTimestampOffsets(ctx, topic))(topic, 0)
	byTime, err2 := adapter{}.ByTime(topic, 0, 1600000002000)
	return common.First(err, err2, common.Same(largest, int64(1), "offset of the largest timestamp"),
		common.Same(byTime, int64(1), "offset by time"))
}

func quotas() error {
	name := common.Topic("client")
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: &name}}
	alter := func(remove bool) error {
		r, err := admin().AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{
			{Key: "producer_byte_rate", Value: 1e6, Remove: remove}, {Key: "request_percentage", Value: 50, Remove: remove}}}})
		if err != nil {
			return err
		}
		return r[0].Err
	}
	count := func(want int) error {
		return common.Until(fmt.Sprint(want, " quotas"), func() (bool, error) {
			d, err := admin().DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{
				{Type: "client-id", MatchName: &name, MatchType: 0}})
			if err != nil || len(d) == 0 {
				return want == 0, err
			}
			return len(d[0].Values) == want, nil
		})
	}
	return common.First(alter(false), count(2), alter(true), count(0))
}

func reassignments() error {
	r, err := admin().ListPartitionReassignments(ctx, nil)
	return common.First(err, common.Same(len(r), 0, "reassignments"))
}

// login: an admin client on the listener with SASL.
func login(mechanism sasl.Mechanism) *kadm.Client {
	return kadm.NewClient(open(kgo.SeedBrokers(os.Getenv("KAFKAD_SASL")), kgo.SASL(mechanism)))
}

// tokens: made by one user, renewed by another, ended; whoever has it logs in, and may not ask for tokens.
func tokens() error {
	alice := login(plain.Auth{User: "alice", Pass: "alice-pw"}.AsMechanism())
	defer alice.Close()
	bob := login(plain.Auth{User: "bob", Pass: "bob-pw"}.AsMechanism())
	defer bob.Close()
	t, err := alice.CreateDelegationToken(ctx, kadm.CreateDelegationToken{Renewers: []kadm.Principal{{Type: "User", Name: "bob"}},
		MaxLifetime: time.Hour})
	if err != nil {
		return err
	}
	told, err := bob.DescribeDelegationTokens(ctx, t.Owner)
	if err := common.First(err, common.Same(len(told), 1, "tokens")); err != nil {
		return err
	}
	if err := common.Same(fmt.Sprint(told[0]), fmt.Sprint(t), "token"); err != nil {
		return err
	}
	auth := scram.Auth{User: t.TokenID, Pass: base64.StdEncoding.EncodeToString(t.HMAC), IsToken: true}
	for _, m := range []sasl.Mechanism{auth.AsSha256Mechanism(), auth.AsSha512Mechanism()} {
		by := login(m)
		defer by.Close()
		brokers, err := by.ListBrokers(ctx)
		_, again := by.CreateDelegationToken(ctx, kadm.CreateDelegationToken{})
		if err := common.First(err, common.Same(len(brokers), 1, "brokers"),
			common.Fails(again, kerr.DelegationTokenRequestNotAllowed)); err != nil {
			return err
		}
	}
	until, err := bob.RenewDelegationToken(ctx, t.HMAC, time.Minute)
	if err := common.First(err, common.Same(until.Before(t.ExpiryTimestamp), true, "renewed")); err != nil {
		return err
	}
	_, err = alice.ExpireDelegationToken(ctx, t.HMAC, -time.Millisecond)
	_, gone := alice.RenewDelegationToken(ctx, t.HMAC, time.Minute)
	return common.First(err, common.Fails(gone, kerr.DelegationTokenNotFound))
}

// acls: a topic that everybody may use but for writing; then it may be written again.
func acls() error {
	topic, a := common.Topic("admin-acls"), admin()
	if err := create(topic, 1, nil); err != nil {
		return err
	}
	builder := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral)
	}
	for _, b := range []*kadm.ACLBuilder{
		builder().Allow("User:ANONYMOUS").AllowHosts("*").Operations(kadm.OpAll),
		builder().Deny("User:ANONYMOUS").DenyHosts("*").Operations(kadm.OpWrite)} {
		r, err := a.CreateACLs(ctx, b)
		if err != nil {
			return err
		}
		if r[0].Err != nil {
			return r[0].Err
		}
	}
	all := func() *kadm.ACLBuilder {
		return builder().Allow().AllowHosts().Deny().DenyHosts().Operations(kadm.OpAny)
	}
	count := func(want int, what string) error {
		n := 0
		r, err := a.DescribeACLs(ctx, all())
		for _, one := range r {
			err = common.First(err, one.Err)
			n += len(one.Described)
		}
		return common.First(err, common.Same(n, want, what))
	}
	if err := common.First(count(2, "ACLs"), common.Fails(fill(topic, 1), kerr.TopicAuthorizationFailed)); err != nil {
		return err
	}
	gone, err := a.DeleteACLs(ctx, all())
	if err != nil {
		return err
	}
	n := 0
	for _, one := range gone {
		n += len(one.Deleted)
	}
	return common.First(common.Same(n, 2, "deleted"), count(0, "left"), fill(topic, 1))
}

func groups() error {
	topic, group, a := common.Topic("admin-groups"), common.Topic("group"), admin()
	if err := common.First(create(topic, 2, nil), fill(topic, 10)); err != nil {
		return err
	}
	cl := open(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	if err := cl.PollFetches(ctx).Err(); err != nil {
		return err
	}
	d, err := a.DescribeGroups(ctx, group)
	if err = common.First(err, d[group].Err, common.Same(d[group].State, "Stable", "state"),
		common.Same(d[group].Protocol, "range", "protocol"), common.Same(len(d[group].Members), 1, "members")); err != nil {
		return err
	}
	commit := kadm.Offsets{}
	commit.Add(kadm.Offset{Topic: topic, Partition: 0, At: 7, LeaderEpoch: -1, Metadata: "note"})
	commit.Add(kadm.Offset{Topic: topic, Partition: 1, At: 0, LeaderEpoch: -1}) // a group without offsets ends with its last one
	_, full := a.DeleteGroup(ctx, group)
	cl.LeaveGroup()
	if err := common.First(common.Fails(full, kerr.NonEmptyGroup), a.CommitAllOffsets(ctx, group, commit)); err != nil {
		return err
	}
	listed, err := a.ListGroups(ctx, "Empty")
	_, isListed := listed[group]
	offsets, err2 := a.FetchOffsets(ctx, group)
	o, _ := offsets.Lookup(topic, 0)
	lag, err3 := a.Lag(ctx, group)
	if err := common.First(err, err2, err3, common.Same(isListed, true, "listed"), common.Same(o.At, int64(7), "committed"),
		common.Same(o.Metadata, "note", "metadata"), common.Same(lag[group].Lag.Total(), int64(3), "lag")); err != nil {
		return err
	}
	var set kadm.TopicsSet
	set.Add(topic, 0)
	gone, err := a.DeleteOffsets(ctx, group, set)
	left, err2 := a.FetchOffsets(ctx, group)
	_, still := left.Lookup(topic, 0)
	if err := common.First(err, err2, gone.Error(), common.Same(still, false, "deleted offset")); err != nil {
		return err
	}
	_, err = a.DeleteGroup(ctx, group)
	_, err2 = a.DeleteGroup(ctx, group)
	return common.First(err, common.Fails(err2, kerr.GroupIDNotFound))
}

func adminChecks() map[string]common.Check {
	return map[string]common.Check{
		"admin-topics": topics, "admin-partitions": partitions, "admin-configs": configs, "admin-configs-legacy": configsLegacy,
		"admin-delete-records": deleteRecords, "admin-log-dirs": logDirs, "admin-cluster": cluster,
		"admin-producers": producers, "admin-list-offsets": listOffsets, "admin-quotas": quotas, "admin-acls": acls, "admin-tokens": tokens,
		"admin-reassignments": reassignments, "admin-groups": groups}
}
