package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// transfer is the life of an established association.
type transfer struct {
	*options
	c       *sctp.Conn
	check   checker
	changed *sync.Cond // of what follows

	run       int  // the run being sent
	sentAll   bool // of that run
	received  int  // messages of the run that is expected
	ended     bool // we have asked for the end
	over      bool // the association is no more
	octetsOut int
}

// runTransfer sends and receives until the association is over and says whether all went well.
func (o *options) runTransfer(c *sctp.Conn) bool {
	t := &transfer{options: o, c: c, run: o.run, changed: sync.NewCond(new(sync.Mutex)),
		check: checker{pattern: o.incoming, lastSSN: map[uint16]uint16{}}}
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
	if o.resets != "" {
		printLine("numbers-again %d", t.check.numbersAgain)
	}
	s := c.Stats()
	printLine("stats seconds=%.3f octets-in=%d octets-out=%d chunks-out=%d retransmitted=%d fast=%d timeouts=%d "+
		"duplicates=%d beyond-window=%d wrong-tag=%d malformed=%d",
		seconds, octetsIn, t.octetsOut, s.DataOut, s.Retransmits, s.FastRetransmits, s.Timeouts, s.DuplicatesIn,
		s.OutOfWindow, s.WrongTag, s.Malformed)
	return t.check.wrong == 0 && (t.received == o.expect || o.partial)
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
	buf := make([]byte, maxSize)
	l := t.changed.L
	l.Lock()
	defer l.Unlock()
	run, i := t.run, 0
	for !t.over {
		if run != t.run {
			run, i = t.run, 0
		}
		if i < t.send {
			s := t.outgoing.shapeOf(run, i)
			l.Unlock()
			t.askIfDue(i)
			n, err := t.c.WriteMsg(s.fillOctets(buf),
				sctp.SendInfo{Stream: s.stream, PPID: s.ppid, Unordered: s.unordered})
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
	if t.ended || t.over || !t.sentAll || t.received < t.expect || t.ending == "wait" {
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

// receiveAll runs until nothing more can be read and returns how many octets came.
func (t *transfer) receiveAll() (octets int) {
	buf := make([]byte, maxSize+1)
	for {
		n, info, err := t.c.ReadMsg(buf)
		if err != nil {
			return octets
		}
		octets += n
		if t.check.checkMessage(buf[:n], info) == t.peerRun {
			t.changed.L.Lock()
			t.received++
			t.maybeEnd()
			t.changed.L.Unlock()
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
