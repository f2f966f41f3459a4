package common

import (
	"fmt"
	"sort"
)

// Txn is a transactional producer.
type Txn interface {
	Begin() error
	// Send returns when all of them are written.
	Send(topic string, partition int32, values ...string) error
	End(commit bool) error
	Close()
}

// Transactional is what the checks of transactions want of a client.
type Transactional interface {
	Adapter
	// Open takes the id from whoever has it.
	Open(id string) (Txn, error)
	Fenced(err error) bool
	// Committed reads n records as read_committed has them.
	Committed(topic string, partition int32, n int) ([]Record, error)
	// Copy takes n records from one topic to the other, which is the group and the transactional id, too. Offsets are in
	// the transactions, every third of which is aborted.
	Copy(from, to string, n int) error
}

func wantRecords(read func() ([]Record, error), want []string, what string) error {
	got, err := read()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	values := make([]string, len(got))
	for i, r := range got {
		values[i] = string(r.Value)
	}
	return Same(values, want, what)
}

// transactions: what is committed is seen, what is aborted or open is not; the second producer of an id is the one.
func transactions(a Transactional) error {
	topic := Topic("transactions")
	if err := a.Create(topic, 2, nil); err != nil {
		return err
	}
	p, err := a.Open(topic)
	if err != nil {
		return err
	}
	defer p.Close()
	var committed, all []string
	for i := 0; i < 12; i++ {
		part := []string{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}
		commit := i%4 != 3
		if err := First(p.Begin(), p.Send(topic, 0, part...), p.Send(topic, 1, part...), p.End(commit)); err != nil {
			return err
		}
		if commit {
			committed = append(committed, part...)
		}
		all = append(all, part...)
	}
	if err := First(p.Begin(), p.Send(topic, 0, "open"), wantRecords(func() ([]Record, error) {
		return a.Committed(topic, 0, len(committed))
	}, committed, "while one is open")); err != nil {
		return err
	}
	second, err := a.Open(topic)
	if err != nil {
		return err
	}
	defer second.Close()
	err = p.Send(topic, 1, "late")
	if err == nil {
		err = p.End(true)
	}
	if !a.Fenced(err) {
		return fmt.Errorf("the fenced producer: %v", err)
	}
	// The last record tells that there is none in front of it that should not be.
	if err := First(second.Begin(), second.Send(topic, 0, "end"), second.Send(topic, 1, "end"), second.End(true)); err != nil {
		return err
	}
	committed = append(committed, "end")
	for partition := int32(0); partition < 2; partition++ {
		every := append([]string{}, all...)
		if partition == 0 {
			every = append(every, "open")
		}
		every = append(every, "end")
		if err := First(wantRecords(func() ([]Record, error) { return a.Committed(topic, partition, len(committed)) }, committed, "committed"),
			wantRecords(func() ([]Record, error) { return a.Read(topic, partition, 0, len(every), 1<<20) }, every, "all")); err != nil {
			return err
		}
	}
	return nil
}

// transactionsCopy: each record once, whatever is aborted.
func transactionsCopy(a Transactional) error {
	const n = 180
	from, to := Topic("transactions-from"), Topic("transactions-to")
	if err := First(a.Create(from, 3, nil), a.Create(to, 3, nil)); err != nil {
		return err
	}
	var want, got []string
	for partition := int32(0); partition < 3; partition++ {
		records := make([]Record, n/3)
		for i := range records {
			v := fmt.Sprint("v", partition, "-", i)
			records[i] = Record{Value: []byte(v), Partition: partition}
			want = append(want, v)
		}
		if err := a.Send(from, records, SendOptions{Acks: -1}); err != nil {
			return err
		}
	}
	if err := a.Copy(from, to, n); err != nil {
		return err
	}
	for partition := int32(0); partition < 3; partition++ {
		records, err := a.Committed(to, partition, n/3)
		if err != nil {
			return err
		}
		for _, r := range records {
			got = append(got, string(r.Value))
		}
	}
	sort.Strings(got)
	sort.Strings(want)
	return Same(got, want, "copied")
}

func transactionChecks(a Adapter) map[string]Check {
	t, ok := a.(Transactional)
	if !ok {
		return nil
	}
	return map[string]Check{
		"transactions":      func() error { return transactions(t) },
		"transactions-copy": func() error { return transactionsCopy(t) },
	}
}
