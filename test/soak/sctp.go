//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

const (
	sctpWindow     = 16 // messages without an answer
	sctpEvents     = 1024
	sctpStreams    = 8
	sctpRecvBuffer = 256 << 10 // shorter than the longest messages, which come in pieces
	sctpSendBuffer = 2 << 20
	sctpLongest    = 600 << 10
)

// plainAssoc is what both ends of a plain association have.
type plainAssoc struct {
	*child
	conn *sctp.Conn
	buf  []byte // a piece of a message
	out  []byte // a message
	last [sctpStreams]int
}

func (c *child) newTalk(conn *sctp.Conn) *plainAssoc {
	t := &plainAssoc{child: c, conn: conn, buf: make([]byte, 64<<10)}
	t.resetSeqs()
	return t
}

func (t *plainAssoc) resetSeqs() {
	for i := range t.last {
		t.last[i] = -1
	}
}

// inOrder notes an arrival on its stream.
func (t *plainAssoc) inOrder(e *entry, h *head) {
	if h.lane == unordered {
		return
	}
	if last := &t.last[h.lane]; int(h.seq) <= *last {
		e.disorder++
		t.logFault(e, "message %d on stream %d came after %d", h.seq, h.lane, *last)
	} else {
		*last = int(h.seq)
	}
}

// writeMessage sends a message: a head, and n octets of content.
func (t *plainAssoc) writeMessage(e *entry, h head, use, n int) error {
	h.n = uint32(n)
	t.out = append(t.out[:0], make([]byte, headLen)...)
	h.encodeTo(t.out)
	t.out = append(t.out, contentPiece(h.id, int(h.seq), use, n)...)
	info := sctp.SendInfo{Stream: h.lane, PPID: uint32(use) + 1}
	if h.lane == unordered {
		info.Stream, info.Unordered = uint16(h.seq%sctpStreams), true
	}
	e.notePosted(int(h.seq), byte(h.lane))
	_, err := t.conn.WriteMsg(t.out, info)
	if err != nil {
		e.undoPost(int(h.seq))
	}
	return err
}

// message is one that was read. The content was compared.
type message struct {
	head
	good bool
}

// readMessage reads one message in as many pieces as it comes, without ever having it whole. A
// message that is cut off is passed over.
func (t *plainAssoc) readMessage(use int) (message, error) {
	for {
		n, info, err := t.conn.ReadMsg(t.buf)
		var m message
		if err == nil {
			m.good = m.decodeFrom(t.buf[:n])
		}
		if m.good {
			m.good = info.PPID == uint32(use)+1 && (m.lane == unordered) == info.Unordered &&
				(info.Unordered || info.Stream == m.lane) && m.lane < 16
		}
		var want []byte
		if m.good {
			want = contentPiece(m.id, int(m.seq), use, int(m.n))
		}
		at, from := 0, headLen
		for err == nil {
			got := t.buf[min(from, n):n]
			if at+len(got) > len(want) || !bytes.Equal(got, want[at:at+len(got)]) {
				m.good = false
			} else {
				at += len(got)
			}
			if !info.More {
				m.good = m.good && at == len(want)
				return m, nil
			}
			from = 0
			n, info, err = t.conn.ReadMsg(t.buf)
		}
		if !errors.Is(err, sctp.ErrCutOff) {
			return m, err
		}
	}
}

// settleWritten settles what was written in the session, after the association has ended or was
// restarted: what no event names as failed has been acknowledged.
func (t *plainAssoc) settleWritten(e *entry) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		ev, err := t.conn.NextEvent(now)
		if err != nil {
			break
		}
		if ev.Lost > 0 {
			e.stuck++
			t.logFault(e, "%d events were lost", ev.Lost)
		}
		var h head
		if ev.Kind == sctp.EventSendFailed && h.decodeFrom(ev.Message) && h.id == e.id {
			e.noteOutcome(int(h.seq), failed)
		}
	}
	e.settleRest(completed)
}

// sctpSession runs one association to its end.
func (l *lane) sctpSession() {
	e, err := l.beginEntry(kindSCTP, sctpWindow)
	if err != nil {
		return
	}
	cfg := l.plainConfig(l.to)
	cfg.LocalPort = l.port
	ctx, cancel := context.WithTimeout(l.ctx, stuckFor)
	conn, err := l.dev.Transport().Dial(ctx, l.peerAddr(l.to.SCTPPort), &cfg)
	cancel()
	if err != nil {
		e.noteReason("%v", err)
		l.endRefused(e)
		return
	}
	c := &sctpClient{plainAssoc: l.newTalk(conn), lane: l, e: e, room: make(chan struct{}, sctpWindow)}
	l.book.endEntry(e, c.runSession())
}

// sctpClient is one association of a client.
type sctpClient struct {
	*plainAssoc
	lane *lane
	e    *entry
	room chan struct{} // holds a token for each message without an answer
	sent int
}

func (c *sctpClient) runSession() uint32 {
	var reader sync.WaitGroup
	reader.Go(c.readAnswers)
	total, cut := 1+c.lane.rng.IntN(200), -1
	if c.lane.rng.IntN(8) == 0 {
		cut = c.lane.rng.IntN(total)
	}
	state, err := uint32(stateGraceful), error(nil)
	for ; c.sent < total && c.sent != cut && err == nil; c.sent++ {
		c.lane.keepRate()
		if err = c.acquireRoom(); err == nil {
			err = c.sendRequest()
		}
	}
	switch {
	case err != nil:
	case c.sent == cut:
		state = stateCut
		c.conn.Abort("on purpose")
	default:
		for i := 0; i < sctpWindow && err == nil; i++ { // until every answer has come
			err = c.acquireRoom()
		}
		if err == nil {
			err = c.conn.Close()
		}
	}
	if err != nil {
		state = stateFailed
		c.e.noteReason("%v; %v", err, c.conn.Err())
		c.conn.Abort("broken")
	}
	<-c.conn.Done()
	reader.Wait()
	c.settleWritten(c.e)
	return state
}

// acquireRoom waits for room in the window.
func (c *sctpClient) acquireRoom() error {
	select {
	case c.room <- struct{}{}:
		return nil
	case <-c.conn.Done():
		return errors.Join(io.ErrUnexpectedEOF, c.conn.Err())
	case <-time.After(stuckFor):
		c.e.stuck++
		c.logFault(c.e, "no answer after %v", stuckFor)
		return context.DeadlineExceeded
	}
}

func (c *sctpClient) sendRequest() error {
	h := head{id: c.e.id, seq: uint32(c.sent), lane: uint16(c.lane.rng.IntN(sctpStreams))}
	if c.lane.rng.IntN(3) == 0 {
		h.lane = unordered
	}
	n := c.lane.drawSize()
	if c.lane.rng.IntN(150) == 0 {
		n = c.lane.rng.IntN(sctpLongest)
	}
	return c.writeMessage(c.e, h, forRequest, n)
}

func (c *sctpClient) readAnswers() {
	for {
		m, err := c.readMessage(forReply)
		if err != nil {
			return
		}
		if !m.good {
			c.e.wrong++
			c.logFault(c.e, "answer %+v", m.head)
			continue
		}
		if m.id != c.e.id {
			continue // to what was on this port before
		}
		c.inOrder(c.e, &m.head)
		c.e.noteArrival(int(m.seq))
		select {
		case <-c.room:
		default: // more answers than requests, as the books will show
		}
	}
}

// serveConn answers the messages of one association, and of those that the peer's restarts put in
// its place.
func (c *child) serveConn(conn *sctp.Conn) {
	t := c.newTalk(conn)
	var e *entry
	finish := func(state uint32) {
		if e != nil {
			t.settleWritten(e)
			c.book.endEntry(e, state)
		}
		e = nil
	}
	for {
		m, err := t.readMessage(forRequest)
		if err != nil {
			state := uint32(stateFailed)
			if err == io.EOF {
				state = stateGraceful
			} else if e != nil {
				e.noteReason("%v", err)
			}
			conn.Close()
			<-conn.Done()
			finish(state)
			return
		}
		if e == nil || m.good && m.id != e.id {
			finish(stateFailed)
			if e, err = c.book.beginEntry(m.id, kindSCTP, sctpWindow); err != nil {
				conn.Abort(err.Error())
				return
			}
			t.resetSeqs()
		}
		if !m.good {
			e.wrong++
			c.logFault(e, "message %+v", m.head)
			continue
		}
		t.inOrder(e, &m.head)
		e.noteArrival(int(m.seq))
		// What cannot be written does not matter: reading goes on until nothing is left.
		t.writeMessage(e, m.head, forReply, int(m.seq)%3000)
	}
}
