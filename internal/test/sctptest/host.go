package sctptest

import (
	"bytes"
	"errors"
	"math/rand"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// Host is an endpoint with its associations, handled as a shell would.
type Host struct {
	ID       int
	Addr     netip.AddrPort       // the first; its port is that of UDP, 0 without
	Addrs    []netip.Addr         // all
	Down     []netip.Addr         // of them: nothing leaves from there
	Own      []netip.Addr         // addresses that it has beside them, or that it knows to be its own
	Refuses  map[netip.Addr]error // what its link says to packets that go there
	Refused  int                  // how often it has
	Link     int                  // IP-level MTU of its link
	CutFrom  int                  // what the link says as a rawio.Fragmenter, and does
	Detects  rawio.ErrorDetection // what it says as a rawio.ErrorDetector, from Reboot on
	Endpoint *endpoint.Endpoint
	Assocs   []*assoc.Assoc
	Events   []AssocEvent
	Placer   assoc.Placer
	Source   assoc.Source
	Batch    *assoc.TxBatch
	Rand     *RandSource
	head     int          // octets of headers below SCTP on the link
	Received bytes.Buffer // what arrived, if Reads
	Lost     int          // packets that the link refused for good
	Most     int          // packets in a batch
	known    knownAddrs

	Reads   bool                            // read whatever arrives
	OnAdopt func(*assoc.Assoc)              // in place of SetUpper
	OnPoll  func(*assoc.Assoc)              // when it has sent all that it has
	Work    func(rawio.Time) bool           // before it sends; true: it had something to do
	OnEvent func(*assoc.Assoc, assoc.Event) // as it happens
	OnRecv  func(rawio.Time, *assoc.Assoc)  // behind each packet
}

// RandSource is a host's source of randomness, which may run dry.
type RandSource struct {
	rand *rand.Rand
	Over bool
}

func (d *RandSource) Read(b []byte) (int, error) {
	if d.Over {
		return 0, errors.New("no randomness is left")
	}
	return d.rand.Read(b)
}

// AssocEvent is an event of an association.
type AssocEvent struct {
	At rawio.Time
	assoc.Event
}

// NewHost has an endpoint whose link carries link octets at IP level.
func NewHost(id int, seed int64, link int, features rawio.Features, addrs ...netip.AddrPort) *Host {
	h := &Host{ID: id, Addr: addrs[0], Link: link, Batch: assoc.NewTxBatch(4)}
	for _, a := range addrs {
		h.Addrs = append(h.Addrs, a.Addr())
	}
	h.Reboot(seed, features)
	return h
}

// countsUp fails where a counter of a host has gone below 0.
func countsUp(t testing.TB, hosts ...*Host) {
	for _, h := range hosts {
		h.known.TB = t
	}
	t.Cleanup(func() {
		check := func(name string, v uint64) {
			if v >= 1<<63 {
				t.Errorf("the counter %s is at %d", name, int64(v))
			}
		}
		for _, h := range hosts {
			counters.Each(h.Endpoint.Stats(), check)
			for _, a := range h.Assocs {
				counters.Each(a.Stats().Counters, check)
			}
		}
	})
}

// Reboot gives the host an endpoint that knows of nothing.
func (h *Host) Reboot(seed int64, features rawio.Features) {
	h.Rand = &RandSource{rand: rand.New(rand.NewSource(seed))}
	h.head = rawio.Overhead(h.Addr)
	h.Endpoint = endpoint.New(endpoint.Config{Rand: h.Rand, Features: features, MTU: h.pathMTU, CutFrom: h.cutFrom,
		ErrorDetection: h.Detects, Own: func(a netip.Addr) bool { return slices.Contains(h.Own, a) }})
}

func (h *Host) cutFrom(_, _ netip.Addr) int { return h.CutFrom }

// fragmentOut is what the link makes of a packet that it may send in fragments.
func (h *Host) fragmentOut(p *rawio.Packet) {
	if h.CutFrom < 0 || p.Len() < h.CutFrom {
		p.Fragment = 0
	}
}

// pathMTU is the longest SCTP packet that the link takes: none from here to here.
func (h *Host) pathMTU(_, remote netip.Addr) int {
	if slices.Contains(h.Addrs, remote) {
		return 0
	}
	return h.Link - h.head
}

// addrFacing is the address that packets of a peer come to: the first one of its family.
func (h *Host) addrFacing(peer netip.Addr) netip.AddrPort {
	of := func(a netip.Addr) bool { return a.Unmap().Is4() == peer.Unmap().Is4() }
	if i := slices.IndexFunc(h.Addrs, of); !of(h.Addr.Addr()) && i >= 0 {
		return netip.AddrPortFrom(h.Addrs[i], h.Addr.Port())
	} else if !of(h.Addr.Addr()) {
		return IPv6[0]
	}
	return h.Addr
}

// Adopt makes an association one of the host's.
func (h *Host) Adopt(a *assoc.Assoc) {
	h.Assocs = append(h.Assocs, a)
	if h.OnAdopt != nil {
		h.OnAdopt(a)
		return
	}
	a.SetUpper(h.Placer, h.Source)
}

// Receive hands a packet to the host.
func (h *Host) Receive(now rawio.Time, p *rawio.Packet) {
	h.known.notePacket(p)
	a, ok := h.Endpoint.Lookup(p)
	if ok && a == nil {
		var isNew bool
		if a, isNew = h.Endpoint.HandleUnmatched(now, p); isNew {
			h.Adopt(a)
		}
	}
	if a != nil {
		a.HandlePacket(now, p)
		if h.OnRecv != nil {
			h.OnRecv(now, a)
		}
		if next := a.Successor(); next != nil {
			h.Settle(now)
			h.Receive(now, next)
		}
	}
}

// Settle polls events.
func (h *Host) Settle(now rawio.Time) {
	for i := 0; i < len(h.Assocs); i++ {
		a := h.Assocs[i]
		for e, ok := a.PollEvent(); ok; e, ok = a.PollEvent() {
			h.Events = append(h.Events, AssocEvent{now, e})
			switch e.Kind {
			case assoc.EventUp, assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
				h.Endpoint.Refresh(a)
			case assoc.EventDown:
				h.Endpoint.Remove(now, a)
			}
			if h.OnEvent != nil {
				h.OnEvent(a, e)
			}
		}
	}
}

// Poll has send take all that the endpoint and its associations have to send; a is nil for what the
// endpoint answers itself.
func (h *Host) Poll(now rawio.Time, send func(a *assoc.Assoc, p *rawio.Packet)) {
	refused := false
	take := func(a *assoc.Assoc) {
		h.Most = max(h.Most, len(h.Batch.Pkts))
		for i := range h.Batch.Pkts {
			p := &h.Batch.Pkts[i]
			if a != nil && slices.Contains(h.Down, p.Local.Addr()) {
				refused = a.HandleUnroutable(now, p, syscall.ENETUNREACH) || refused
			} else if err := h.Refuses[p.Remote.Addr()]; a != nil && err != nil {
				h.Refused++
				refused = a.HandleUnroutable(now, p, err) || refused
			} else if a != nil && h.tooLong(p) {
				again := a.HandleTooLong(now, p)
				if refused = refused || again; !again {
					h.Lost++
				}
			} else {
				h.known.checkLeaving(a, p)
				send(a, p)
			}
		}
		h.Batch.Reset()
	}
	for h.Work != nil && h.Work(now) {
	}
	h.Settle(now)
	batches := 0
	poll := func(more bool) bool {
		if batches++; batches > 100_000 {
			panic("lab: there is no end of what a host has to send")
		}
		return more
	}
	for more := true; more; take(nil) {
		more = poll(h.Endpoint.PollTransmit(now, h.Batch))
	}
	for _, a := range h.Assocs {
		for more := true; more || refused; take(a) {
			refused, more = false, poll(a.PollTransmit(now, h.Batch))
		}
		if h.Reads {
			for _, m := range Drain(a) {
				h.Received.Write(m)
			}
		}
		if h.OnPoll != nil {
			h.OnPoll(a)
		}
	}
	h.Settle(now)
	if h.Work != nil && h.Work(now) {
		h.Poll(now, send)
	}
}

// tooLong says that the link refuses a packet, as real ones do when their MTU has fallen.
func (h *Host) tooLong(p *rawio.Packet) bool {
	n := rawio.Overhead(p.Remote)
	for _, v := range p.Vec {
		n += len(v)
	}
	if p.Fragment > 0 {
		n = min(n, p.Fragment)
	}
	return n > h.Link
}

// NextTimeout returns when the host has to do something by itself.
func (h *Host) NextTimeout() rawio.Time {
	next := rawio.Never
	for _, a := range h.Assocs {
		next = min(next, a.NextTimeout())
	}
	return next
}

// HandleTimeout lets the timers go off that are due.
func (h *Host) HandleTimeout(now rawio.Time) {
	for _, a := range h.Assocs {
		if a.NextTimeout() <= now {
			a.HandleTimeout(now)
		}
	}
}

// Event returns the first event of that kind.
func (h *Host) Event(k assoc.EventKind) (assoc.Event, bool) {
	for _, e := range h.Events {
		if e.Kind == k {
			return e.Event, true
		}
	}
	return assoc.Event{}, false
}

// Tokens are the events of that kind, by their tokens.
func (h *Host) Tokens(k assoc.EventKind) (list []uint64) {
	for _, e := range h.Events {
		if e.Kind == k {
			list = append(list, e.Token)
		}
	}
	return list
}

// DownErr returns the error that ended an association, and whether one ended.
func (h *Host) DownErr() (error, bool) {
	e, ok := h.Event(assoc.EventDown)
	return e.Err, ok
}

// Drain receives all complete messages.
func Drain(a *assoc.Assoc) (list [][]byte) {
	for r, ok := a.Receive(); ok; r, ok = a.Receive() {
		b := make([]byte, r.Size)
		r.CopyTo(b, 0)
		list = append(list, b)
		a.Release(r)
	}
	return list
}

// Paths returns the statistics of all paths.
func Paths(a *assoc.Assoc) (list []assoc.PathStats) {
	for i := range a.NumPaths() {
		list = append(list, a.PathStats(i))
	}
	return list
}
