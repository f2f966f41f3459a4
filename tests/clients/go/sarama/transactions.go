package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	"kafkad/clients/common"
)

type txn struct{ sarama.SyncProducer }

func (adapter) Open(id string) (common.Txn, error) {
	c := settings()
	c.Producer.Transaction.ID = id
	c.Producer.Transaction.Retry.Backoff = 10 * time.Millisecond // a marker is still on its way
	c.Producer.Idempotent = true
	c.Producer.Retry.Max = 3 // it tries that it is fenced, too
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Net.MaxOpenRequests = 1
	p, err := sarama.NewSyncProducer([]string{common.Broker}, c)
	return txn{p}, err
}

func (t txn) Begin() error { return t.BeginTxn() }

func (t txn) Send(topic string, partition int32, values ...string) error {
	var messages []*sarama.ProducerMessage
	for _, v := range values {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.StringEncoder(v)})
	}
	err := t.SendMessages(messages)
	var some sarama.ProducerErrors
	if errors.As(err, &some) {
		return some[0].Err
	}
	return err
}

func (t txn) End(commit bool) error {
	if commit {
		return t.CommitTxn()
	}
	return t.AbortTxn()
}

func (t txn) Close() { t.SyncProducer.Close() }

func (adapter) Fenced(err error) bool {
	return errors.Is(err, sarama.ErrProducerFenced) || errors.Is(err, sarama.ErrInvalidProducerEpoch)
}

func (adapter) Committed(topic string, partition int32, n int) ([]common.Record, error) {
	c := settings()
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	return read(c, topic, partition, 0, n)
}

// Where the group stands; without an offset at the beginning.
func positions(group, topic string) (map[int32]int64, int64, error) {
	found, err := admin().ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2}})
	if err != nil {
		return nil, 0, err
	}
	at, sum := map[int32]int64{}, int64(0)
	for partition := int32(0); partition < 3; partition++ {
		if b := found.GetBlock(topic, partition); b != nil && b.Offset > 0 {
			at[partition] = b.Offset
			sum += b.Offset
		}
	}
	return at, sum, nil
}

func (a adapter) Copy(from, to string, n int) error {
	p, err := a.Open(to)
	if err != nil {
		return err
	}
	defer p.Close()
	const piece = 20
	for round := 0; ; round++ {
		at, done, err := positions(to, from)
		if err != nil || done == int64(n) {
			return err
		}
		partition := int32(round % 3)
		if at[partition] == int64(n/3) {
			continue
		}
		got, err := a.Read(from, partition, at[partition], piece, 1<<20)
		if err != nil {
			return err
		}
		got = got[:piece] // it may have read more
		var values []string
		for _, r := range got {
			values = append(values, string(r.Value))
		}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{from: {{Partition: partition, Offset: at[partition] + piece, LeaderEpoch: -1}}}
		if err := common.First(p.Begin(), p.Send(to, partition, values...), p.(txn).AddOffsetsToTxn(offsets, to), p.End(round%4 != 2)); err != nil {
			return err
		}
	}
}
