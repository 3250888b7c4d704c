package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// maxCopies bounds what clients can make a server do at a time. One address, whose copies may be
// slow, has half of them.
const maxCopies = 16

// server stores what clients send.
type server struct {
	dev      *rdma.Device
	root     *os.Root
	maxSize  uint64
	patience time.Duration // without anything coming
	say      func(format string, args ...any)
	places   quota.Semaphore // one for each copy under way
	disk     *disk
	lines    *quota.LogLimiter
}

// accept serves until ctx ends or the listener closes, and returns when nothing unfinished is left.
func (s *server) accept(ctx context.Context, l *rdma.Listener) {
	var running sync.WaitGroup
	defer running.Wait()
	s.places.Max, s.lines = maxCopies, quota.NewServerLimiter()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		from := req.RemoteAddr().Addr()
		if !s.places.TryAcquire(from, 1) {
			s.refuse(req, fmt.Errorf("%d copies are under way, or half of them from your address, which is the "+
				"most; try again", maxCopies))
			continue
		}
		running.Go(func() {
			defer s.places.Release(from, 1)
			s.serve(ctx, req)
		})
	}
}

// tell writes a line about a client.
func (s *server) tell(from netip.AddrPort, format string, args ...any) {
	if left, ok := s.lines.Allow(time.Now(), from.Addr()); ok {
		s.say("%v: %s", from, quota.WithLeftOut(fmt.Sprintf(format, args...), left))
	}
}

func (s *server) refuse(req *rdma.Request, why error) {
	s.tell(req.RemoteAddr(), "refused: %v", why)
	req.Reject([]byte(clip(why.Error())))
}

// serve handles one client.
func (s *server) serve(ctx context.Context, req *rdma.Request) {
	var what offer
	err := what.decode(req.PrivateData())
	if err == nil {
		err = checkName(what.name)
	}
	if err == nil && what.size > s.maxSize {
		err = fmt.Errorf("%d octets are more than the server takes, which is %d", what.size, s.maxSize)
	}
	if err != nil {
		s.refuse(req, err)
		return
	}
	from := req.RemoteAddr().Addr()
	in, err := s.disk.create(s.root, from, what.size)
	if err != nil {
		s.refuse(req, fmt.Errorf("it cannot be stored: %w", err))
		return
	}
	defer s.disk.give(from, what.size) // once it is stored or gone
	defer in.discard()
	e, err := newEnd(s.dev, 1)
	if err != nil {
		s.refuse(req, err)
		return
	}
	d := &download{offer: what, from: req.RemoteAddr(), patience: s.patience,
		full: func() bool { return s.places.IsFullFor(from) || s.disk.wanted(time.Now().Add(-s.patience)) }, in: in,
		e: e}
	defer d.closeWindow() // once the client knows why, lest its Writes hit a closed window
	defer e.close()
	began := time.Now()
	err = d.run(ctx, req)
	if err != nil && ctx.Err() != nil {
		err = errors.New("the server is being stopped")
	}
	if err != nil {
		s.tell(d.from, "%s: not stored: %s", what.name, cli.Explain(err))
		d.answer(verdict{text: err.Error()})
		return
	}
	s.tell(d.from, "%s: stored, %s", what.name, rate(what.size, time.Since(began)))
	d.answer(verdict{stored: true})
}

// download is one copy from a client.
type download struct {
	offer
	from     netip.AddrPort
	patience time.Duration
	full     func() bool // no place or no space is left for another copy
	in       *incoming
	e        *end
	window   *rdma.MR
}

// run receives the file and stores it.
func (d *download) run(ctx context.Context, req *rdma.Request) error {
	var where grant
	if d.size > 0 {
		var err error
		d.window, err = d.e.pd.RegisterDevice(d.in, d.size, rdma.RemoteWrite, &rdma.RegionOptions{QP: d.e.qp})
		if err != nil {
			return err
		}
		where = grant{stag: uint32(d.window.STag()), to: d.window.Base()}
	}
	if err := req.Accept(d.e.qp, where.encode()); err != nil {
		return err
	}
	final, err := d.receive(ctx)
	if err != nil {
		return err
	}
	d.closeWindow() // from here on the client cannot change the file
	if final.size != d.size {
		return fmt.Errorf("it was announced with %d octets and sealed with %d", d.size, final.size)
	}
	if left := d.in.left.Load(); left > 0 { // reserved space that was not used need not be read
		return fmt.Errorf("%d of its octets never came", left)
	}
	sum, err := d.in.sum(ctx, d.size)
	if err != nil {
		return err
	}
	if sum != final.sum {
		return errors.New("what has arrived is not what was sent: its SHA-256 is another one")
	}
	select {
	case <-d.e.qp.Done():
		return d.e.reason(errGone)
	default:
		return d.in.keep(d.name)
	}
}

// closeWindow ends the client's access. It may be called again.
func (d *download) closeWindow() {
	if d.window != nil {
		d.window.Deregister()
		d.window = nil
	}
}

// receive waits for the seal. Writes go into the file by themselves.
func (d *download) receive(ctx context.Context) (s seal, err error) {
	for was := int64(d.size); ; was = d.in.left.Load() { // some may have come since Accept
		wc, err := d.e.next(ctx, d.patience)
		switch {
		case err == nil && wc.Opcode == rdmap.WCRecv:
			return s, s.decode(d.e.received(wc))
		case d.in.err() != nil:
			return s, d.in.err()
		case err == nil:
			continue
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return s, err
		}
		if err := d.pace(was - d.in.left.Load()); err != nil {
			return s, err
		}
	}
}

// slow is how many octets a second a copy must move if it keeps others out.
const slow = 64 << 10

// pace judges the octets that have come within patience.
func (d *download) pace(n int64) error {
	switch {
	case n == 0:
		return fmt.Errorf("nothing has come for %v", d.patience)
	case d.full() && n < int64(d.patience.Seconds()*slow):
		return fmt.Errorf("%d octets have come in %v, and there is no place for others", n, d.patience)
	}
	return nil
}

// answer sends the verdict if the client is still there, and waits for it to leave.
func (d *download) answer(v verdict) {
	if d.e.say(v.encode()) != nil {
		return
	}
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-d.e.qp.Done():
	case <-t.C:
	}
}
