package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kafkad/clients/common"
)

type txn struct{ cl *kgo.Client }

func (adapter) Open(id string) (common.Txn, error) {
	cl := open(kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	_, _, err := cl.ProducerID(ctx) // takes the id
	return txn{cl}, err
}

func (t txn) Begin() error { return t.cl.BeginTransaction() }

func records(topic string, partition int32, values ...string) []*kgo.Record {
	out := make([]*kgo.Record, len(values))
	for i, v := range values {
		out[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	return out
}

func (t txn) Send(topic string, partition int32, values ...string) error {
	return t.cl.ProduceSync(ctx, records(topic, partition, values...)...).FirstErr()
}

func (t txn) End(commit bool) error { return t.cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)) }

func (t txn) Close() { t.cl.Close() }

func (adapter) Fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

func (adapter) Committed(topic string, partition int32, n int) ([]common.Record, error) {
	return read(topic, partition, 0, n, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

func (adapter) Copy(from, to string, n int) error {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(common.Broker), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.TransactionalID(to), kgo.ConsumerGroup(to), kgo.ConsumeTopics(from), kgo.RequireStableFetchOffsets(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer s.Close()
	timed, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for done, round := 0, 0; done < n; round++ {
		fetches := s.PollRecords(timed, 50)
		if err := common.First(fetches.Err(), s.Begin()); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if err := s.ProduceSync(timed, records(to, r.Partition, string(r.Value))...).FirstErr(); err != nil {
				return err
			}
		}
		committed, err := s.End(timed, kgo.TransactionEndTry(round%3 != 2))
		if err != nil {
			return err
		}
		if committed {
			done += fetches.NumRecords()
		}
	}
	return nil
}
