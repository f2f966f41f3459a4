// Package common is what the Go clients share: the frame of the program that driver.py runs, and the checks of records,
// over an Adapter that each client fills in.
package common

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"
)

// Record is one to send, or one that was read. Nil keys and values are null. Partition -1: by key.
type Record struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  int64 // ms; 0: now
	Partition  int32
	Offset     int64
	AppendTime bool
}

// Header of a record.
type Header struct {
	Key   string
	Value []byte
}

// SendOptions of a producer. Acks: 0, 1, -1.
type SendOptions struct {
	Codec      string
	Acks       int
	Idempotent bool
	MaxRequest int
}

// Adapter is what the checks want of a client.
type Adapter interface {
	Create(topic string, partitions int, configs map[string]string) error
	// Send sends them by one producer; partitions and offsets are filled in.
	Send(topic string, records []Record, o SendOptions) error
	Read(topic string, partition int32, start int64, n int, fetch int32) ([]Record, error)
	Bounds(topic string, partition int32) (first, end int64, err error)
	// ByTime answers -1 if no record is as late.
	ByTime(topic string, partition int32, timestamp int64) (int64, error)
	TooLarge(err error) bool
}

// Broker, Prefix and Text are what the program was given.
var (
	Broker string
	Prefix string
	Text   [][]byte
	// AppendTimeKnown: does the client tell whether a timestamp is the broker's?
	AppendTimeKnown = true
)

// Check is one named check.
type Check func() error

// Topic is a topic name of a check's own.
func Topic(stem string) string { return Prefix + "-" + stem }

// Same is an error if they differ.
func Same(got, want any, what string) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}

// Fails is an error unless err is the wanted one.
func Fails(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("want %v, got %v", want, err)
}

// Until asks until it is so, or there is an error.
func Until(what string, question func() (bool, error)) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok, err := question(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("not within 30 s: %s", what)
}

// First is the first error.
func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func sendValues(a Adapter, topic string, values [][]byte, o SendOptions) ([]Record, error) {
	records := make([]Record, len(values))
	for i, v := range values {
		records[i] = Record{Key: []byte("k"), Value: v}
	}
	err := a.Send(topic, records, o)
	return records, err
}

func readAll(a Adapter, topic string, partition int32, n int, fetch int32) ([]Record, error) {
	first, end, err := a.Bounds(topic, partition)
	if err = First(err, Same([]int64{first, end}, []int64{0, int64(n)}, "first and end offset")); err != nil || n == 0 {
		return nil, err
	}
	got, err := a.Read(topic, partition, 0, n, fetch)
	if err != nil {
		return nil, err
	}
	for i, r := range got {
		if r.Offset != int64(i) {
			return nil, fmt.Errorf("offset %d where %d belongs", r.Offset, i)
		}
	}
	return got, Same(len(got), n, "records")
}

// sendAndRead checks the offsets answered, and that the values come back.
func sendAndRead(a Adapter, topic string, values [][]byte, o SendOptions, fetch int32) error {
	sent, err := sendValues(a, topic, values, o)
	if err != nil {
		return err
	}
	for i, r := range sent {
		if r.Offset != int64(i) {
			return fmt.Errorf("offset %d answered for record %d", r.Offset, i)
		}
	}
	return wantValues(a, topic, values, fetch)
}

func wantValues(a Adapter, topic string, values [][]byte, fetch int32) error {
	got, err := readAll(a, topic, 0, len(values), fetch)
	if err != nil {
		return err
	}
	for i, r := range got {
		if !bytes.Equal(r.Value, values[i]) {
			return fmt.Errorf("value %d is another", i)
		}
	}
	return nil
}

func roundtrip(a Adapter) error {
	topic, t := Topic("roundtrip"), int64(1600000000000)
	cases := []Record{
		{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{"h", []byte("1")}, {"h", []byte("2")}}, Timestamp: t},
		{Value: []byte("v"), Timestamp: t + 1},
		{Key: []byte("k"), Headers: []Header{{"empty", []byte{}}}, Timestamp: t + 2},
		{Key: []byte{}, Value: []byte{}, Timestamp: t + 3},
		{Timestamp: t - 5},
	}
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	for i := range cases {
		if err := a.Send(topic, cases[i:i+1], SendOptions{Acks: -1}); err != nil {
			return err
		}
	}
	got, err := readAll(a, topic, 0, len(cases), 1<<20)
	if err != nil {
		return err
	}
	for i, r := range got {
		want := cases[i]
		if !bytes.Equal(r.Key, want.Key) || (r.Key == nil) != (want.Key == nil) || !bytes.Equal(r.Value, want.Value) ||
			(r.Value == nil) != (want.Value == nil) || r.Timestamp != want.Timestamp || r.AppendTime {
			return fmt.Errorf("record %d: got %+v, want %+v", i, r, want)
		}
		if len(r.Headers) != len(want.Headers) {
			return fmt.Errorf("record %d has %d headers", i, len(r.Headers))
		}
		for j, h := range r.Headers {
			if h.Key != want.Headers[j].Key || !bytes.Equal(h.Value, want.Headers[j].Value) {
				return fmt.Errorf("record %d: header %d is %+v", i, j, h)
			}
		}
	}
	return nil
}

func acks(a Adapter) error {
	topic := Topic("acks")
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	var values [][]byte
	for i, n := range []int{0, 1, -1} {
		values = append(values, []byte(fmt.Sprint("acks ", n)))
		if _, err := sendValues(a, topic, values[i:], SendOptions{Acks: n}); err != nil {
			return err
		}
		if err := Until("the record is there", func() (bool, error) {
			_, end, err := a.Bounds(topic, 0)
			return end == int64(i+1), err
		}); err != nil {
			return err
		}
	}
	return wantValues(a, topic, values, 1<<20)
}

func idempotence(a Adapter) error {
	topic := Topic("idempotence")
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	var all [][]byte
	for life := 0; life < 2; life++ {
		var part [][]byte
		for i := 0; i < 2000; i++ {
			part = append(part, []byte(fmt.Sprintf("%d-%d", life, i)))
		}
		sent, err := sendValues(a, topic, part, SendOptions{Acks: -1, Idempotent: true})
		if err != nil {
			return err
		}
		if sent[0].Offset != int64(len(all)) || sent[1999].Offset != int64(len(all)+1999) {
			return fmt.Errorf("offsets %d to %d answered", sent[0].Offset, sent[1999].Offset)
		}
		all = append(all, part...)
	}
	return wantValues(a, topic, all, 1<<20)
}

func keyedPartitions(a Adapter) error {
	topic := Topic("keyed")
	if err := a.Create(topic, 5, nil); err != nil {
		return err
	}
	records := make([]Record, 1000)
	for i := range records {
		records[i] = Record{Key: []byte(fmt.Sprint("key", i%50)), Value: []byte(fmt.Sprintf("%04d", i)), Partition: -1}
	}
	if err := a.Send(topic, records, SendOptions{Acks: -1}); err != nil {
		return err
	}
	homes := map[string]int32{}
	for p := int32(0); p < 5; p++ {
		n := 0
		for _, r := range records {
			if r.Partition == p {
				n++
			}
		}
		got, err := readAll(a, topic, p, n, 1<<20)
		if err != nil || n == 0 {
			return fmt.Errorf("partition %d: %d records, %v", p, n, err)
		}
		last := map[string]string{}
		for _, r := range got {
			if string(r.Value) <= last[string(r.Key)] {
				return fmt.Errorf("order of the records of %s", r.Key)
			}
			last[string(r.Key)] = string(r.Value)
		}
		for key := range last {
			if home, ok := homes[key]; ok {
				return fmt.Errorf("%s is in partitions %d and %d", key, home, p)
			}
			homes[key] = p
		}
	}
	return Same(len(homes), 50, "keys")
}

func largeRecords(a Adapter) error {
	topic := Topic("large")
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	random := rand.New(rand.NewSource(1))
	var values [][]byte
	for _, n := range []int{1000000, 3500000, 1, 4000000} {
		v := make([]byte, n)
		random.Read(v)
		values = append(values, v)
		if _, err := sendValues(a, topic, [][]byte{v}, SendOptions{Acks: -1, MaxRequest: 8 << 20}); err != nil {
			return err
		}
	}
	return wantValues(a, topic, values, 1<<20)
}

func tooLargeRecord(a Adapter) error {
	topic := Topic("too-large")
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	_, err := sendValues(a, topic, [][]byte{make([]byte, 5000000)}, SendOptions{Acks: -1, MaxRequest: 16 << 20})
	if !a.TooLarge(err) {
		return fmt.Errorf("5 MB: %v", err)
	}
	sent, err := sendValues(a, topic, [][]byte{[]byte("small")}, SendOptions{Acks: -1})
	return First(err, Same(sent[0].Offset, int64(0), "offset behind it"))
}

func offsetsByTime(a Adapter) error {
	topic, t := Topic("times"), int64(1600000000000)
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	for i := int64(0); i < 10; i++ {
		if err := a.Send(topic, []Record{{Value: []byte("x"), Timestamp: t + 1000*i}}, SendOptions{Acks: -1}); err != nil {
			return err
		}
	}
	for _, c := range []struct{ at, want int64 }{{t + 3500, 4}, {t, 0}, {t + 1e10, -1}} {
		got, err := a.ByTime(topic, 0, c.at)
		if err = First(err, Same(got, c.want, fmt.Sprint("offset by time ", c.at))); err != nil {
			return err
		}
	}
	first, end, err := a.Bounds(topic, 0)
	if err = First(err, Same([]int64{first, end}, []int64{0, 10}, "bounds")); err != nil {
		return err
	}
	got, err := a.Read(topic, 0, 7, 1, 1<<20)
	return First(err, Same(len(got) > 0 && got[0].Offset == 7, true, "the record at offset 7"))
}

func logAppendTime(a Adapter) error {
	topic := Topic("append-time")
	if err := a.Create(topic, 1, map[string]string{"message.timestamp.type": "LogAppendTime"}); err != nil {
		return err
	}
	if err := a.Send(topic, []Record{{Value: []byte("x"), Timestamp: 1000}}, SendOptions{Acks: -1}); err != nil {
		return err
	}
	got, err := readAll(a, topic, 0, 1, 1<<20)
	if err != nil {
		return err
	}
	if got[0].Timestamp < 1600000000000 || (AppendTimeKnown && !got[0].AppendTime) {
		return fmt.Errorf("the broker's time, not %+v", got[0])
	}
	return nil
}

func manyBatches(a Adapter) error {
	topic := Topic("many")
	if err := a.Create(topic, 1, nil); err != nil {
		return err
	}
	var values [][]byte
	for i := 0; i < 50000; i++ {
		values = append(values, []byte(fmt.Sprint("value number ", i)))
	}
	return sendAndRead(a, topic, values, SendOptions{Acks: -1, Codec: "lz4"}, 65536)
}

func recordChecks(a Adapter) map[string]Check {
	checks := map[string]Check{}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		checks["codec-"+codec] = func() error {
			topic := Topic("codec-" + codec)
			return First(a.Create(topic, 1, nil),
				sendAndRead(a, topic, Text, SendOptions{Acks: -1, Codec: codec}, 1<<20))
		}
	}
	for name, f := range map[string]func(Adapter) error{
		"roundtrip": roundtrip, "acks": acks, "idempotence": idempotence, "keyed-partitions": keyedPartitions,
		"large-records": largeRecords, "too-large-record": tooLargeRecord, "offsets-by-time": offsetsByTime,
		"log-append-time": logAppendTime, "many-batches": manyBatches} {
		checks[name] = func() error { return f(a) }
	}
	return checks
}

// Say prints one line.
func Say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Commands are the lines of standard input; "close" at its end.
func Commands() <-chan string {
	lines := make(chan string, 16)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		lines <- "close"
	}()
	return lines
}

// Assigned says an assignment, if it is another than the last.
type Assigned struct{ last string }

// Tell says it.
func (a *Assigned) Tell(parts map[string][]int32) {
	var words []string
	for topic, numbers := range parts {
		for _, p := range numbers {
			words = append(words, fmt.Sprintf("%s:%d", topic, p))
		}
	}
	sort.Strings(words)
	if now := strings.Join(words, ","); now != a.last {
		Say("ASSIGNED %s", now)
		a.last = now
	}
}

// Main runs the program: checks, or a member.
func Main(open func() Adapter, admin func() map[string]Check, member func(args map[string]string) error) {
	mode, rest := os.Args[1], os.Args[3:]
	Broker = os.Args[2]
	if mode == "member" {
		args := map[string]string{}
		for _, word := range rest {
			key, value, _ := strings.Cut(word, "=")
			args[key] = value
		}
		if err := member(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		Say("CLOSED")
		return
	}
	Prefix = rest[0]
	text, err := os.ReadFile(rest[1])
	if err != nil {
		panic(err)
	}
	Text = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	adapter := open()
	checks := recordChecks(adapter)
	for name, check := range transactionChecks(adapter) {
		checks[name] = check
	}
	for name, check := range admin() {
		checks[name] = check
	}
	status := 0
	for _, name := range rest[2:] {
		check, ok := checks[name]
		if !ok {
			check = func() error { return errors.New("this program has no such check") }
		}
		if err := check(); err != nil {
			Say("not ok %s: %s", name, strings.ReplaceAll(err.Error(), "\n", " "))
			status = 1
		} else {
			Say("ok %s", name)
		}
	}
	os.Exit(status)
}
