package rdma

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// losing is a link that loses what it is to send, while it is told to.
type losing struct {
	*mem.Link
	lose atomic.Bool
	lost atomic.Int32
}

func (l *losing) WriteBatch(pkts []rawio.Packet) (int, error) {
	if !l.lose.Load() {
		return l.Link.WriteBatch(pkts)
	}
	l.lost.Add(int32(len(pkts)))
	return len(pkts), nil
}

// When the end of a region returns, its memory is the program's: what was sent from it and is lost is sent again as it
// was, whatever is written there now.
func TestLostWriteIsSentAgainAsItWas(t *testing.T) {
	const rto = 20 * time.Millisecond
	for _, row := range []struct {
		name string
		end  func(mr *MR) error
	}{
		{"Invalidate", func(mr *MR) error { mr.Invalidate(); return nil }},
		{"Reregister", func(mr *MR) error { return mr.Reregister(make([]byte, 10), LocalWrite, 0) }},
		{"Deregister", (*MR).Deregister},
	} {
		t.Run(row.name, func(t *testing.T) {
			la, lb, err := mem.Pair(mem.Options{MTU: 1500})
			if err != nil {
				t.Fatal(err)
			}
			link := &losing{Link: la}
			cfg := &Config{SCTP: sctp.Config{Config: assoc.Config{RTOInitial: rto, RTOMin: rto}}}
			x := &lab{t: t, addr: netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), DefaultPort)}
			if x.a, err = NewDevice(link, cfg); err != nil {
				t.Fatal(err)
			}
			defer x.a.Close()
			if x.b, err = NewDevice(lb, cfg); err != nil {
				t.Fatal(err)
			}
			defer x.b.Close()
			if x.l, err = x.b.Listen(DefaultPort); err != nil {
				t.Fatal(err)
			}
			a, b := x.join(nil)
			source := fill(make([]byte, 1000), 5)
			want := bytes.Clone(source)
			mr, err := a.pd.Register(source, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			link.lose.Store(true)
			a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{mr.SGE(0, len(source))}, RemoteSTag: b.mr.STag()})
			if err := row.end(mr); err != nil {
				t.Fatal(err)
			}
			clear(source)
			if link.lost.Load() == 0 {
				t.Fatal("nothing was sent before")
			}
			link.lose.Store(false)
			if a.good(); !bytes.Equal(b.buf[:len(want)], want) {
				t.Error("the peer has got what was written afterwards")
			}
		})
	}
}
