package ddp

import (
	"math"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func postBuffers(t *testing.T, q *Queue, tokens ...uint64) {
	t.Helper()
	for _, k := range tokens {
		must.OK(t, q.Post(RecvBuffer{Token: k}))
	}
}

func checkLookup(t *testing.T, q *Queue, msn uint32, token uint64, code uint8) {
	t.Helper()
	b, c := q.Lookup(msn)
	check.That(t, c == code && (b != nil) == (code == 0) && (b == nil || b.Token == token),
		"MSN %#x: buffer %+v code %#02x, want token %d code %#02x", msn, b, c, token, code)
}

func TestQueueGivesTheNthBufferToMSNn(t *testing.T) {
	// req 5042-2.3.5-1
	q := NewQueue(3)
	checkLookup(t, q, 1, 0, CodeNoBuffer)
	postBuffers(t, q, 101, 102, 103) // req 5041-5.1.2-1, 5041-4.3-7
	check.Equal(t, "fourth buffer in a queue of three", q.Post(RecvBuffer{}), ErrQueueFull)
	checkLookup(t, q, 0, 0, CodeMSNRange)
	checkLookup(t, q, 1, 101, 0)
	checkLookup(t, q, 3, 103, 0)
	checkLookup(t, q, 4, 0, CodeNoBuffer)
	check.That(t, q.InProcess() == 2 && q.Len() == 3, "%d in process of %d", q.InProcess(), q.Len())
	if b, ok := q.Pop(); !ok || b.Token != 101 || q.InProcess() != 1 || q.First() != 2 || q.Free() != 1 ||
		q.Len() != 2 {
		t.Errorf("popped %+v %t, first %d free %d len %d", b, ok, q.First(), q.Free(), q.Len())
	}
	postBuffers(t, q, 104)
	checkLookup(t, q, 1, 0, CodeMSNRange) // req 5041-7.1-5
	checkLookup(t, q, 4, 104, 0)
	for _, want := range []uint64{102, 103, 104} {
		b, ok := q.Flush()
		check.That(t, ok && b.Token == want, "flushed %+v %t, want %d", b, ok, want)
	}
	b, ok := q.Flush()
	check.That(t, !ok, "flushed %+v from an empty queue", b)
	_, ok = q.Pop()
	check.That(t, !ok, "popped from an empty queue")
}

func TestQueueComparesMSNsSerially(t *testing.T) {
	q := NewQueue(4)
	q.nextMSN = math.MaxUint32 - 1
	postBuffers(t, q, 1, 2, 3, 4)
	// req 5041-7.1-5, 5041-4.3-8
	checkLookup(t, q, math.MaxUint32-2, 0, CodeMSNRange)
	checkLookup(t, q, math.MaxUint32-1, 1, 0)
	checkLookup(t, q, math.MaxUint32, 2, 0)
	checkLookup(t, q, 0, 3, 0)
	checkLookup(t, q, 1, 4, 0)
	checkLookup(t, q, 2, 0, CodeNoBuffer)
	checkLookup(t, q, 1<<31-3, 0, CodeNoBuffer)
	checkLookup(t, q, 1<<31-2, 0, CodeMSNRange) // half the number space away
	for want := range uint32(4) {
		check.Equal(t, "first MSN", q.First(), math.MaxUint32-1+want)
		q.Pop()
	}
}

// Each buffer counts until it is gone, and as in process from the first segment of its message on.
func TestQueueCounts(t *testing.T) {
	shared := NewSharedQueue(&pool{left: 4}, 4)
	own := NewQueue(4)
	for i := range uint64(4) {
		own.Post(RecvBuffer{Token: i + 1})
		checkLookup(t, shared, uint32(i+1), i+1, 0)
	}
	checkLookup(t, own, 1, 1, 0)
	checkLookup(t, own, 3, 3, 0)
	counts := func(when string, q *Queue, n, begun int) {
		t.Helper()
		check.That(t, q.Len() == n && q.InProcess() == begun,
			"%s: %d buffers, %d of them in process, want %d and %d", when, q.Len(), q.InProcess(), n, begun)
	}
	counts("begun", own, 4, 2)
	counts("begun", shared, 4, 4)
	for _, q := range []*Queue{own, shared} {
		q.Pop()
		q.Flush()
	}
	counts("the first delivered, one without a message flushed", own, 2, 1)
	counts("the first delivered, one flushed", shared, 2, 2)
	for _, q := range []*Queue{own, shared} {
		q.Flush()
		q.Flush()
		counts("all flushed", q, 0, 0)
	}
}

func TestQueueWithoutRoom(t *testing.T) {
	q := NewQueue(0)
	checkLookup(t, q, 1, 0, CodeNoBuffer)
	_, ok := q.Pop()
	check.That(t, !ok, "popped")
	_, ok = q.Flush()
	check.That(t, !ok, "flushed")
	check.Equal(t, "a buffer for a full queue", q.Post(RecvBuffer{}), ErrQueueFull)
}

// pool lends buffers with ascending tokens.
type pool struct{ next, left uint64 }

func (p *pool) TakeBuffer() (RecvBuffer, bool) {
	if p.left == 0 {
		return RecvBuffer{}, false
	}
	p.left--
	p.next++
	return RecvBuffer{Token: p.next}, true
}

func TestSharedQueueKeepsAPeerToItsShare(t *testing.T) {
	src := &pool{left: 100}
	a, b := NewSharedQueue(src, 3), NewSharedQueue(src, 3)
	err := a.Post(RecvBuffer{})
	check.That(t, err == ErrQueueFull && a.Free() == 0, "buffer posted to a shared queue: %v", err)
	// req 5041-8.3.2-6: a peer with many messages begun and none complete holds three buffers at
	// most.
	checkLookup(t, a, 3, 1, 0)
	checkLookup(t, a, 1, 2, 0)
	checkLookup(t, b, 1, 3, 0)
	checkLookup(t, a, 3, 1, 0) // the answer for a message does not change
	checkLookup(t, a, 4, 0, CodeNoBuffer)
	checkLookup(t, a, math.MaxUint32, 0, CodeMSNRange)
	check.That(t, src.left == 97 && a.Len() == 2 && b.Len() == 1, "%d left, queues hold %d and %d", src.left, a.Len(),
		b.Len())
	got, ok := a.Pop()
	check.That(t, ok && got.Token == 2, "popped %+v", got)
	_, ok = a.Pop()
	check.That(t, !ok, "message 2 has no buffer yet")
	checkLookup(t, a, 4, 4, 0) // a place is free again
	for _, want := range []uint64{1, 4} {
		got, ok := a.Flush()
		check.That(t, ok && got.Token == want, "flushed %+v, want %d", got, want)
	}
	_, ok = a.Flush()
	check.That(t, !ok && a.Len() == 0, "flushed more than was taken")
	src.left = 0
	checkLookup(t, b, 2, 0, CodeNoBuffer)
}

func TestMakeRecvBuffer(t *testing.T) {
	mem := Bytes(make([]byte, 10))
	b, err := MakeRecvBuffer(Gather{{Mem: mem, Len: 10}, {Mem: mem, Off: 10}}, 7)
	check.That(t, err == nil && b.Len == 10 && b.Token == 7, "buffer %+v, %v", b, err)
	_, err = MakeRecvBuffer(Gather{{Mem: mem, Off: 1, Len: 10}}, 0)
	check.That(t, err == ErrRange, "piece beyond its memory: %v", err)
	_, err = MakeRecvBuffer(Gather{{Mem: Device(new(disk), 1<<32), Len: 1 << 32}}, 0)
	check.That(t, err == ErrMessageTooLong, "2^32 octets: %v", err)
	b, err = MakeRecvBuffer(Gather{{Mem: Device(new(disk), 1<<32), Len: 1<<32 - 1}}, 0)
	check.That(t, err == nil && b.Len == math.MaxUint32, "2^32-1 octets: %+v, %v", b, err)
}
