package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/test/interop/internal/pattern"
)

// graceTime is how long after the last message another may come, where some are given up.
const graceTime = 300 * time.Millisecond

// transfer is the life of an established association.
type transfer struct {
	*options
	c       *sctp.Conn
	check   checker
	changed *sync.Cond // of what follows

	run       int  // the run being sent
	sentAll   bool // of that run
	received  int  // messages of the run that is expected
	important int  // of those
	gotRest   bool // all that was not given up of them
	pieces    int  // reads that were not the end of a message
	cutOff    int  // messages of which only a part came
	ended     bool // we have asked for the end
	over      bool // the association is no more
	octetsOut int
	closed    bool // we have closed the first stream
}

// runTransfer sends and receives until the association is over and says whether all went well.
func (o *options) runTransfer(c *sctp.Conn) bool {
	t := &transfer{options: o, c: c, run: o.run, changed: sync.NewCond(new(sync.Mutex)),
		check: checker{Pattern: o.incoming, lastSSN: map[uint16]uint16{}}}
	if o.scheduler == "prio" {
		t.rankStreams()
	}
	start := time.Now()
	var rest sync.WaitGroup
	rest.Go(t.sendAll)
	rest.Go(t.reportEvents)
	octetsIn := t.receiveAll()
	<-c.Done()
	seconds := time.Since(start).Seconds()
	t.changed.L.Lock()
	t.over = true
	t.changed.Broadcast()
	t.changed.L.Unlock()
	rest.Wait()
	printLine("received %d of %d", t.received, o.expect)
	if o.interleave || o.abandon >= 0 || o.zeroChecksum {
		abandoned := c.Abandoned()
		ext := c.Extensions()
		printLine("extensions pr=%v i-data=%v zero-checksum=%v pieces=%d cut-off=%d abandoned=%d important=%d",
			ext.Has(sctp.PartialReliability), ext.Has(sctp.Interleaving), ext.Has(sctp.ZeroChecksum),
			t.pieces, t.cutOff,
			sumOf(abandoned.Sent[:])+sumOf(abandoned.Unsent[:]), t.important)
	}
	if o.resets != "" {
		printLine("numbers-again %d", t.check.numbersAgain)
	}
	s := c.Stats()
	printLine("stats seconds=%.3f octets-in=%d octets-out=%d chunks-out=%d retransmitted=%d fast=%d timeouts=%d "+
		"duplicates=%d beyond-window=%d wrong-tag=%d malformed=%d",
		seconds, octetsIn, t.octetsOut, s.DataOut, s.Retransmits, s.FastRetransmits, s.Timeouts, s.DuplicatesIn,
		s.OutOfWindow, s.WrongTag, s.Malformed)
	if o.abandon >= 0 && o.policy == "priority" && t.important != (o.expect+2)/3 {
		return false
	}
	return t.check.wrong == 0 && (t.received == o.expect || o.partial)
}

func sumOf(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// rankStreams gives each stream its priority.
func (t *transfer) rankStreams() {
	for i := range t.streams {
		if err := t.c.SetStreamValue(i, i%3); err != nil {
			printLine("error priority of stream %d: %v", i, err)
		}
	}
}

// letGo says when message i is given up.
func (t *transfer) letGo(info *sctp.SendInfo, i int) {
	n := uint32(t.abandon)
	switch t.policy {
	case "resent":
		info.Abandon, info.Limit = sctp.AbandonResent, n
	case "timed":
		info.Abandon, info.Lifetime = sctp.AbandonExpired, time.Duration(n)*time.Millisecond
	case "priority":
		info.Abandon, info.Limit = sctp.AbandonForRoom, n
		if pattern.IsImportant(i) {
			info.Limit = 0
		}
	}
}

func reportEnd(err error) {
	var abort *assoc.AbortError
	switch {
	case err == assoc.ErrShutdown:
		printLine("end shutdown")
	case errors.As(err, &abort) && abort.ByPeer && abort.Reason() != nil:
		printLine("end abort by=peer reason=%q", abort.Reason())
	case errors.As(err, &abort) && !abort.ByPeer:
		printLine("end abort by=self")
	default:
		printLine("end error %v", err)
	}
}

// sendAll sends the run's messages, and again as the next run when the peer restarts.
func (t *transfer) sendAll() {
	buf := make([]byte, pattern.MaxSize)
	l := t.changed.L
	l.Lock()
	defer l.Unlock()
	run, i := t.run, 0
	begun := map[uint16]bool{} // streams
	for !t.over {
		if run != t.run {
			run, i = t.run, 0
		}
		if i < t.send {
			s := t.outgoing.ShapeOf(run, i)
			l.Unlock()
			t.askIfDue(i)
			info := sctp.SendInfo{Stream: s.Stream, PPID: s.PPID, Unordered: s.Unordered}
			if t.abandon >= 0 && i < t.send-1 && !(t.keepFirst && !begun[s.Stream]) {
				t.letGo(&info, i)
			}
			begun[s.Stream] = true
			n, err := t.c.WriteMsg(s.FillOctets(buf), info)
			l.Lock()
			if err != nil {
				printLine("send-failed index=%d: %v", i, err)
				return
			}
			t.octetsOut += n
			i++
			continue
		}
		if !t.sentAll {
			printLine("sent %d run=%d", i, run)
			t.sentAll = true
			t.maybeEnd()
		}
		t.changed.Wait()
	}
}

// maybeEnd ends the association once everything is sent and received. Called with the lock held.
func (t *transfer) maybeEnd() {
	if t.ended || t.over || !t.sentAll || !t.hasReceivedAll() || t.ending == "wait" {
		return
	}
	t.ended = true
	if t.ending == "abort" {
		t.c.Abort(t.reason)
		return
	}
	printLine("shutdown")
	go func() {
		if err := t.c.Close(); err != nil {
			printLine("error close: %v", err)
		}
	}()
}

// hasReceivedAll says whether all has come that was not given up. Called with the lock held.
func (t *transfer) hasReceivedAll() bool {
	return t.received >= t.expect || t.gotRest
}

// receiveAll runs until nothing more can be read and returns how many octets came.
func (t *transfer) receiveAll() (octets int) {
	buf := make([]byte, pattern.MaxSize+1)
	pieces := map[uint16][]byte{} // what has come of the message of a stream
	for {
		n, info, err := t.c.ReadMsg(buf)
		b := append(pieces[info.Stream], buf[:n]...)
		pieces[info.Stream] = b
		switch {
		case err == sctp.ErrCutOff:
			t.cutOff++
			delete(pieces, info.Stream)
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.changed.L.Lock()
			t.gotRest = true
			t.maybeEnd()
			t.changed.L.Unlock()
			_ = t.c.SetReadDeadline(time.Time{})
			continue
		case err != nil:
			return octets
		}
		octets += n
		if info.More && len(b) <= pattern.MaxSize {
			t.pieces++
			continue
		}
		pieces[info.Stream] = b[:0]
		if run, index := t.check.checkMessage(b, info); run == t.peerRun {
			t.changed.L.Lock()
			t.received++
			if pattern.IsImportant(index) {
				t.important++
			}
			t.maybeEnd()
			t.changed.L.Unlock()
			if t.abandon >= 0 && index == t.expect-1 { // what is not given up comes soon
				_ = t.c.SetReadDeadline(time.Now().Add(graceTime))
			}
		}
	}
}

// reportEvents reports what happens, up to the end.
func (t *transfer) reportEvents() {
	for {
		ev, err := t.c.NextEvent(context.Background())
		if err != nil {
			return
		}
		switch ev.Kind {
		case sctp.EventUp, sctp.EventRestart:
			s := t.c.Stats()
			printLine("%v in=%d out=%d to=%v", ev.Kind, s.InStreams, s.OutStreams, ev.Path)
		case sctp.EventAdaptation:
			printLine("adaptation 0x%08x", ev.Adaptation)
		case sctp.EventPathUp:
			printLine("address %v available", ev.Path)
		case sctp.EventPathPotentiallyFailed:
			printLine("address %v potentially failed", ev.Path)
		case sctp.EventPathDown:
			printLine("address %v unreachable", ev.Path)
		case sctp.EventPeerShutdown:
			printLine("peer-shutdown")
		case sctp.EventStreamsReset, sctp.EventTSNsReset, sctp.EventStreamsAdded:
			reportChange(ev)
			t.closeToo(ev)
		case sctp.EventPeerError:
			printLine("peer-error %v", ev.Err)
		case sctp.EventDown:
			reportEnd(ev.Err)
		}
		if ev.Kind == sctp.EventRestart {
			t.changed.L.Lock()
			t.run++
			t.sentAll = false
			t.changed.Broadcast()
			t.changed.L.Unlock()
		}
	}
}
