package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/pion/sctp"

	"github.com/rddp-go/rddp/test/interop/internal/pattern"
)

// transfer is the life of an established association.
type transfer struct {
	*options
	a    *sctp.Association
	conn *carrier

	readers sync.WaitGroup
	writing sync.Mutex // held while a message is written, and while a stream is closed

	mu        sync.Mutex
	changed   *sync.Cond
	streams   map[uint16]*sctp.Stream // guarded by mu; so is all below
	resetting map[uint16]bool         // until both directions are reset
	closings  map[uint16]int          // how often we have closed a stream
	seen      []bool                  // which messages came
	last      []int                   // per stream: 1 + index of the last ordered message
	received  int
	important int
	gotLast   bool // the last of them, which is not given up
	wrong     int
	sentAll   bool
	ended     bool // we have asked for the end
	over      bool
	octetsIn  int
	octetsOut int
	told      sync.Once // how it ended
}

func newTransfer(o *options, a *sctp.Association, conn *carrier) *transfer {
	t := &transfer{options: o, a: a, conn: conn, streams: map[uint16]*sctp.Stream{}, resetting: map[uint16]bool{},
		closings: map[uint16]int{}, seen: make([]bool, o.expect), last: make([]int, o.incoming.Streams)}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// run sends and receives until the association is over and says whether all went well.
func (t *transfer) run() bool {
	start := time.Now()
	sender := make(chan struct{})
	go func() {
		defer close(sender)
		t.sendAll()
	}()
	for {
		s, err := t.a.AcceptStream()
		if err != nil {
			break
		}
		t.mu.Lock()
		t.adopt(s)
		t.mu.Unlock()
	}
	t.mu.Lock()
	t.over = true
	t.changed.Broadcast()
	t.mu.Unlock()
	<-sender
	t.readers.Wait()
	printLine("received %d of %d", t.received, t.expect)
	if t.interleave || t.abandon >= 0 {
		printLine("extensions important=%d", t.important)
	}
	printLine("stats seconds=%.3f octets-in=%d octets-out=%d", time.Since(start).Seconds(), t.octetsIn, t.octetsOut)
	return t.wrong == 0 && (t.received == t.expect || t.partial)
}

// adopt reads from a stream from now on. Called with the lock held.
func (t *transfer) adopt(s *sctp.Stream) {
	id := s.StreamIdentifier()
	if t.streams[id] == s {
		return
	}
	t.streams[id] = s
	t.readers.Go(func() { t.readStream(s) })
}

// readStream reads until the peer resets the stream, which is then closed on this side too, as data
// channels are (RFC 8831 section 6.7), or until the end.
func (t *transfer) readStream(s *sctp.Stream) {
	b := make([]byte, pattern.MaxSize+1)
	for {
		n, ppid, err := s.ReadSCTP(b)
		if err == nil {
			t.checkMessage(b[:n], s.StreamIdentifier(), uint32(ppid))
			continue
		}
		if !errors.Is(err, io.EOF) || t.conn.isClosed() {
			t.told.Do(func() { reportEnd(err) })
			return
		}
		break
	}
	id := s.StreamIdentifier()
	printLine("streams-reset in stream=%d", id)
	t.mu.Lock()
	if t.streams[id] == s {
		delete(t.streams, id)
	}
	isOurs := t.resetting[id]
	t.resetting[id] = true
	t.mu.Unlock()
	if !isOurs {
		t.closeStream(s)
	}
	t.mu.Lock()
	n := t.closings[id]
	t.mu.Unlock()
	t.conn.awaitReset(id, n)
	printLine("streams-reset out stream=%d", id)
	t.mu.Lock()
	delete(t.resetting, id)
	t.changed.Broadcast()
	t.mu.Unlock()
}

// closeStream resets our side of a stream. Nothing is sent on it until both sides are reset.
func (t *transfer) closeStream(s *sctp.Stream) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	t.resetting[s.StreamIdentifier()] = true
	t.closings[s.StreamIdentifier()]++
	t.mu.Unlock()
	if err := s.Close(); err != nil {
		printLine("error close: %v", err)
	}
}

// streamFor returns the stream to send on, which is opened anew after a reset. It returns nil at the end.
func (t *transfer) streamFor(id uint16) *sctp.Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.resetting[id] && !t.over {
		t.changed.Wait()
	}
	if s := t.streams[id]; s != nil || t.over {
		return s
	}
	s, err := t.a.OpenStream(id, 0)
	if err != nil {
		printLine("error open: %v", err)
		return nil
	}
	t.adopt(s)
	return s
}

func (t *transfer) sendAll() {
	b := make([]byte, pattern.MaxSize+8)
	for i := range t.send {
		if last := t.outgoing.Streams - 1; t.resets == "last" && i == t.send/2 {
			if s := t.streamFor(last); s != nil {
				t.closeStream(s)
			}
			if t.streamFor(last) != nil {
				printLine("asked last performed")
			}
		}
		if err := t.sendMessage(i, b); err != nil {
			printLine("send-failed index=%d: %v", i, err)
			return
		}
	}
	printLine("sent %d run=0", t.send)
	t.mu.Lock()
	t.sentAll = true
	t.maybeEnd()
	t.mu.Unlock()
}

func (t *transfer) sendMessage(i int, b []byte) error {
	shape := t.outgoing.ShapeOf(0, i)
	kind := sctp.ReliabilityTypeReliable
	if t.abandon >= 0 && i < t.send-1 {
		kind = sctp.ReliabilityTypeRexmit
		if t.policy == "timed" {
			kind = sctp.ReliabilityTypeTimed
		}
	}
	for {
		s := t.streamFor(shape.Stream)
		if s == nil {
			return sctp.ErrStreamClosed
		}
		t.writing.Lock()
		s.SetReliabilityParams(shape.Unordered, kind, uint32(max(t.abandon, 0)))
		n, err := s.WriteSCTP(shape.FillOctets(b), sctp.PayloadProtocolIdentifier(shape.PPID))
		t.writing.Unlock()
		t.octetsOut += n
		if errors.Is(err, sctp.ErrStreamClosed) && !t.conn.isClosed() { // it is being reset
			continue
		}
		return err
	}
}

// checkMessage compares a message with what it has to be.
func (t *transfer) checkMessage(b []byte, stream uint16, ppid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, index, ok := pattern.RunAndIndex(ppid)
	if !ok || index >= t.expect {
		t.reportWrong("payload protocol identifier", ppid)
		return
	}
	want := make([]byte, pattern.MaxSize+8)
	shape := t.incoming.ShapeOf(0, index)
	switch {
	case stream != shape.Stream:
		t.reportWrong("stream", ppid)
	case !bytes.Equal(b, shape.FillOctets(want)):
		t.reportWrong("content", ppid)
	case t.seen[index]:
		t.reportWrong("came twice", ppid)
	case !shape.Unordered && t.last[stream] > index:
		t.reportWrong("out of order", ppid)
	}
	if !shape.Unordered {
		t.last[stream] = index + 1
	}
	t.seen[index] = true
	t.octetsIn += len(b)
	t.received++
	if pattern.IsImportant(index) {
		t.important++
	}
	t.gotLast = t.gotLast || index == t.expect-1
	t.maybeEnd()
}

// reportWrong counts a wrong message. Called with the lock held.
func (t *transfer) reportWrong(what string, ppid uint32) {
	if t.wrong++; t.wrong <= 5 {
		printLine("wrong message 0x%08x: %s", ppid, what)
	}
}

// maybeEnd ends the association once everything is sent and received. Called with the lock held.
func (t *transfer) maybeEnd() {
	hasAll := t.received >= t.expect || t.abandon >= 0 && t.gotLast
	if t.ended || !t.sentAll || !hasAll || t.ending != "shutdown" {
		return
	}
	t.ended = true
	printLine("shutdown")
	go func() {
		if err := t.a.Shutdown(context.Background()); err != nil {
			printLine("error shutdown: %v", err)
		}
	}()
}
