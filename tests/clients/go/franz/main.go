// franz-go as driver.py wants it.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kafkad/clients/common"
)

var ctx = context.Background()

func open(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(common.Broker), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		panic(err)
	}
	return cl
}

type adapter struct{}

func (adapter) Create(topic string, partitions int, configs map[string]string) error {
	return create(topic, partitions, configs)
}

var codecs = map[string]kgo.CompressionCodec{"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

func (adapter) Send(topic string, records []common.Record, o common.SendOptions) error {
	opts := []kgo.Opt{kgo.ProducerBatchCompression(codecs[o.Codec]), kgo.ProducerLinger(10 * time.Millisecond)}
	switch o.Acks {
	case 0:
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case 1:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	if !o.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if o.MaxRequest > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(int32(o.MaxRequest)))
	}
	if records[0].Partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	cl := open(opts...)
	defer cl.Close()
	var sent []*kgo.Record
	for _, r := range records {
		k := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Partition: r.Partition}
		if r.Timestamp != 0 {
			k.Timestamp = time.UnixMilli(r.Timestamp)
		}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		sent = append(sent, k)
	}
	if err := cl.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return err
	}
	for i, k := range sent {
		records[i].Partition, records[i].Offset = k.Partition, k.Offset
	}
	return nil
}

func (adapter) Read(topic string, partition int32, start int64, n int, fetch int32) ([]common.Record, error) {
	return read(topic, partition, start, n, kgo.FetchMaxPartitionBytes(fetch))
}

func read(topic string, partition int32, start int64, n int, more ...kgo.Opt) ([]common.Record, error) {
	cl := open(append(more, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().At(start)}}))...)
	defer cl.Close()
	timed, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var got []common.Record
	for len(got) < n {
		fetches := cl.PollFetches(timed)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			rec := common.Record{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli(), Partition: r.Partition,
				Offset: r.Offset, AppendTime: r.Attrs.TimestampType() == 1}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, common.Header{Key: h.Key, Value: h.Value})
			}
			got = append(got, rec)
		})
	}
	return got, nil
}

func (adapter) TooLarge(err error) bool { return errors.Is(err, kerr.MessageTooLarge) }

func member(args map[string]string) error {
	ms := func(key string) time.Duration {
		n, _ := strconv.Atoi(args[key])
		return time.Duration(n) * time.Millisecond
	}
	var mu sync.Mutex
	owned := map[string]map[int32]bool{}
	var said common.Assigned
	tell := func() {
		parts := map[string][]int32{}
		for topic, numbers := range owned {
			for p := range numbers {
				parts[topic] = append(parts[topic], p)
			}
		}
		said.Tell(parts)
	}
	move := func(to bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			for topic, numbers := range parts {
				if owned[topic] == nil {
					owned[topic] = map[int32]bool{}
				}
				for _, p := range numbers {
					if to {
						owned[topic][p] = true
					} else {
						delete(owned[topic], p)
					}
				}
			}
			tell()
		}
	}
	balancer := kgo.RangeBalancer()
	if args["assignor"] == "cooperative" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	revoked := move(false)
	opts := []kgo.Opt{kgo.ConsumerGroup(args["group"]), kgo.Balancers(balancer), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMaxAge(500 * time.Millisecond), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.AutoCommitInterval(100 * time.Millisecond), kgo.OnPartitionsAssigned(move(true)), kgo.OnPartitionsLost(revoked),
		kgo.BlockRebalanceOnPoll()}
	if args["session"] != "" {
		opts = append(opts, kgo.SessionTimeout(ms("session")), kgo.HeartbeatInterval(ms("heartbeat")))
	}
	if args["protocol"] == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	if args["instance"] != "" {
		opts = append(opts, kgo.InstanceID(args["instance"]))
	}
	if args["autocommit"] != "true" {
		opts = append(opts, kgo.DisableAutoCommit(), kgo.OnPartitionsRevoked(revoked))
	} else {
		opts = append(opts, kgo.OnPartitionsRevoked(func(c context.Context, cl *kgo.Client, parts map[string][]int32) {
			_ = cl.CommitUncommittedOffsets(c)
			revoked(c, cl, parts)
		}))
	}
	if args["pattern"] != "" {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+args["pattern"]+"$"))
	} else {
		opts = append(opts, kgo.ConsumeTopics(strings.Split(args["topics"], ",")...))
	}
	cl := open(opts...)
	commands := common.Commands()
	for {
		timed, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := cl.PollFetches(timed)
		cancel()
		mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			common.Say("RECORD %s %d %d %s", r.Topic, r.Partition, r.Offset, r.Value)
		})
		mu.Unlock()
		cl.AllowRebalance()
		select {
		case command := <-commands:
			if command == "close" {
				if args["autocommit"] == "true" {
					if err := cl.CommitUncommittedOffsets(ctx); err != nil {
						return fmt.Errorf("commit: %w", err)
					}
				}
				cl.Close()
				return nil
			}
			if err := cl.CommitUncommittedOffsets(ctx); err != nil {
				return fmt.Errorf("commit: %w", err)
			}
			common.Say("COMMITTED")
		default:
		}
	}
}

func main() {
	common.Main(func() common.Adapter { return adapter{} }, adminChecks, member)
}
