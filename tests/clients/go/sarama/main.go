// sarama as driver.py wants it.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"kafkad/clients/common"
)

func settings() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V3_9_0_0
	c.Metadata.Retry.Backoff = 100 * time.Millisecond
	c.Metadata.Retry.Max = 100
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.Retry.Backoff = 100 * time.Millisecond
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Producer.Return.Successes = true
	c.Producer.Retry.Max = 30
	return c
}

type adapter struct{}

var codecs = map[string]sarama.CompressionCodec{"": sarama.CompressionNone, "none": sarama.CompressionNone,
	"gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}

func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func (adapter) Send(topic string, records []common.Record, o common.SendOptions) error {
	c := settings()
	c.Producer.Compression = codecs[o.Codec]
	c.Producer.RequiredAcks = sarama.RequiredAcks(o.Acks)
	c.Producer.Idempotent = o.Idempotent
	c.Net.MaxOpenRequests = 1
	if o.MaxRequest > 0 {
		c.Producer.MaxMessageBytes = o.MaxRequest
	}
	if records[0].Partition >= 0 {
		c.Producer.Partitioner = sarama.NewManualPartitioner
	}
	p, err := sarama.NewSyncProducer([]string{common.Broker}, c)
	if err != nil {
		return err
	}
	var messages []*sarama.ProducerMessage
	for _, r := range records {
		m := &sarama.ProducerMessage{Topic: topic, Key: encoder(r.Key), Value: encoder(r.Value), Partition: r.Partition}
		if r.Timestamp != 0 {
			m.Timestamp = time.UnixMilli(r.Timestamp)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		messages = append(messages, m)
	}
	err = p.SendMessages(messages)
	if closed := p.Close(); err == nil {
		err = closed
	}
	var some sarama.ProducerErrors
	if errors.As(err, &some) {
		return some[0].Err
	}
	for i, m := range messages {
		records[i].Partition, records[i].Offset = m.Partition, m.Offset
	}
	return err
}

func (adapter) Read(topic string, partition int32, start int64, n int, fetch int32) ([]common.Record, error) {
	c := settings()
	c.Consumer.Fetch.Default = fetch
	return read(c, topic, partition, start, n)
}

func read(c *sarama.Config, topic string, partition int32, start int64, n int) ([]common.Record, error) {
	consumer, err := sarama.NewConsumer([]string{common.Broker}, c)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	part, err := consumer.ConsumePartition(topic, partition, start)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	late := time.After(30 * time.Second)
	var got []common.Record
	for len(got) < n {
		select {
		case m := <-part.Messages():
			r := common.Record{Key: m.Key, Value: m.Value, Timestamp: m.Timestamp.UnixMilli(), Partition: m.Partition, Offset: m.Offset}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, common.Header{Key: string(h.Key), Value: h.Value})
			}
			got = append(got, r)
		case <-late:
			return nil, fmt.Errorf("%d of %d records within 30 s", len(got), n)
		}
	}
	return got, nil
}

func (adapter) TooLarge(err error) bool { return errors.Is(err, sarama.ErrMessageSizeTooLarge) }

// handler of a member's sessions. A claim is what is assigned: in a cooperative session they come and go.
type handler struct {
	mu      sync.Mutex
	session sarama.ConsumerGroupSession
	claims  map[string]map[int32]bool
	said    common.Assigned
}

func (h *handler) Setup(s sarama.ConsumerGroupSession) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = s
	return nil
}

func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *handler) claim(topic string, partition int32, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims[topic] == nil {
		h.claims[topic] = map[int32]bool{}
	}
	h.claims[topic][partition] = is
	parts := map[string][]int32{}
	for topic, numbers := range h.claims {
		for p, is := range numbers {
			if is {
				parts[topic] = append(parts[topic], p)
			}
		}
	}
	h.said.Tell(parts)
}

func (h *handler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	h.claim(claim.Topic(), claim.Partition(), true)
	defer h.claim(claim.Topic(), claim.Partition(), false)
	for m := range claim.Messages() {
		h.mu.Lock()
		common.Say("RECORD %s %d %d %s", m.Topic, m.Partition, m.Offset, m.Value)
		s.MarkMessage(m, "")
		h.mu.Unlock()
	}
	return nil
}

func member(args map[string]string) error {
	ms := func(key string) time.Duration {
		n, _ := strconv.Atoi(args[key])
		return time.Duration(n) * time.Millisecond
	}
	c := settings()
	c.Metadata.RefreshFrequency = 500 * time.Millisecond
	c.Consumer.Group.Session.Timeout = ms("session")
	c.Consumer.Group.Heartbeat.Interval = ms("heartbeat")
	c.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	c.Consumer.Group.Rebalance.Retry.Max = 100
	c.Consumer.Group.InstanceId = args["instance"]
	c.Consumer.Offsets.AutoCommit.Enable = args["autocommit"] == "true"
	c.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	strategy := sarama.NewBalanceStrategyRange()
	if args["assignor"] == "cooperative" {
		strategy = sarama.NewBalanceStrategyCooperativeSticky()
	}
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	group, err := sarama.NewConsumerGroup([]string{common.Broker}, args["group"], c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &handler{claims: map[string]map[int32]bool{}}
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, strings.Split(args["topics"], ","), h); err != nil {
				fmt.Println("SAYS", err)
				time.Sleep(100 * time.Millisecond)
			}
		}
		ended <- nil
	}()
	for command := range common.Commands() {
		if command == "close" {
			break
		}
		h.mu.Lock()
		h.session.Commit()
		h.mu.Unlock()
		common.Say("COMMITTED")
	}
	cancel()
	<-ended
	return group.Close()
}

func main() {
	common.AppendTimeKnown = false
	common.Main(func() common.Adapter { return adapter{} }, adminChecks, member)
}
