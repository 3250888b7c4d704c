package sctp

import (
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// What the peer has sent before it shut down can be read after that.
func TestMessagesOutliveTheAssociation(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	for i := range 3 {
		must.Do(fmt.Fprint(c.Stream(0), i))(t)
	}
	must.OK(t, c.Close())
	<-s.Done()
	buf := make([]byte, 10)
	for i := range 3 {
		n, _, err := s.ReadMsg(buf)
		check.That(t, err == nil && string(buf[:n]) == fmt.Sprint(i), "message %d: %q, %v", i, buf[:n], err)
	}
	_, _, err := s.ReadMsg(buf)
	check.That(t, err == io.EOF, "then %v", err)
}

// An association that nobody has accepted ends with its Listener.
func TestListenerCloseAbortsWhatNobodyAccepted(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, nil))(t)
	ctx := deadlineCtx(t)
	c := must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	until(t, "the COOKIE ECHO's arrival", func() bool { return l.waits() == 1 })
	must.OK(t, l.Close())
	select {
	case <-c.Done():
		check.Error(t, "ended", c.Err(), syscall.ECONNRESET)
	case <-ctx.Done():
		t.Error("the association lives on")
	}
}

// Dial succeeds also when the association has ended by the time it looks.
func TestDialSucceedsForAnAssociationThatEndsAtOnce(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, nil))(t)
	ctx := deadlineCtx(t)
	go func() {
		for c, err := l.Accept(ctx); err == nil; c, err = l.Accept(ctx) {
			c.Abort("at once")
		}
	}()
	for range 300 {
		must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	}
	must.OK(t, l.Close())
}
