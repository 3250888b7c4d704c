package sctp

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

func hasTransport(o *transportSet, t *Transport) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, has := o.list[t]
	return has
}

// A program that exits tells all its peers, whoever has dialled, and whoever reads: at once, and
// with the reason.
func TestAbortAllTellsEachPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		check.That(t, hasTransport(&openTransports, p.a) && hasTransport(&openTransports, p.b),
			"a Transport is not known to AbortAll")
		var o transportSet
		o.add(p.a)
		out, s1 := p.connect(t, nil, nil)
		in, s2 := func() (*Conn, *Conn) { // dialled by the other
			l := must.Get(p.a.Listen(0, nil))(t)
			c := must.Get(p.b.Dial(t.Context(), netip.AddrPortFrom(p.links[0].LocalAddrs()[0].Addr(), l.Port()),
				nil))(t)
			return must.Get(l.Accept(t.Context()))(t), c
		}()
		start := time.Now()
		check.That(t, o.abortAll("so long", time.Minute), "not all were told")
		for _, c := range []*Conn{s1, s2} {
			<-c.Done()
			var e *AbortError
			check.That(t, errors.As(c.Err(), &e) && e.ByPeer && len(e.Causes) == 1 &&
				string(e.Causes[0].Info) == "so long", "a peer hears %v", c.Err())
		}
		for _, c := range []*Conn{out, in} {
			_, _, err := c.ReadMsg(make([]byte, 9))
			check.That(t, err != nil, "a read goes on")
		}
		check.Equal(t, "took", time.Since(start), 0)
		_, err := p.a.Dial(t.Context(), netip.AddrPortFrom(p.bAddr, 1), nil)
		check.That(t, err != nil && !hasTransport(&openTransports, p.a) && hasTransport(&openTransports, p.b),
			"the Transport is open: %v", err)
	})
}

// stuck is a link that takes no packet once it is to.
type stuck struct {
	rawio.Link
	on, end chan struct{}
}

func (l *stuck) WriteBatch(pkts []rawio.Packet) (int, error) {
	if isClosed(l.on) {
		<-l.end
	}
	return l.Link.WriteBatch(pkts)
}

// A link that takes nothing does not keep a program from its exit, and neither does it keep the
// peers of other links from the word.
func TestAbortAllIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		s := &stuck{la, make(chan struct{}), make(chan struct{})}
		p, q := joinPair(t, la, lb, s, lb), newPair(t)
		p.connect(t, nil, nil)
		_, peer := q.connect(t, nil, nil)
		var o transportSet
		o.add(p.a)
		o.add(q.a)
		close(s.on)
		start := time.Now()
		check.That(t, !o.abortAll("", time.Second), "a link that takes nothing has told all")
		check.Equal(t, "took", time.Since(start), time.Second)
		check.That(t, isClosed(peer.Done()), "the peer of another link was not told")
		close(s.end)
		<-p.a.readerRole.Retired() // it goes on to be closed
		synctest.Wait()
	})
}
