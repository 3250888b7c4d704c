//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// friend is the honest client: one SCTP association with messages that the victim checks and
// answers, and one RDMA session with Writes. One of them is under load at a time, the other goes on
// slowly.
type friend struct {
	*family
	dev    *rdma.Device
	load   atomic.Pointer[string]
	octets map[string]*atomic.Uint64 // that the victim has confirmed, by flow

	mu   sync.Mutex
	errs []string
	stop []func()
	rtts []time.Duration // of pings, since they were asked for last
}

// Flows of the honest client.
const (
	flowSCTP = "sctp"
	flowRDMA = "rdma"
	flowNone = ""
	silence  = "silence" // none of them says anything
)

// SCTP ports of the honest client. Attackers know them: ports can be guessed.
const (
	friendSCTP = 40000
	friendRDMA = 40001
)

// friendStats is what the honest client tells.
type friendStats struct {
	Octets map[string]uint64
	Errs   []string // of flows that ended
}

const (
	slowPace = 5 * time.Millisecond // between messages of a flow that is not under load
	depth    = 16                   // messages under way
)

func runFriend(at *family, kind string) error {
	link, err := openLink(kind)
	if err != nil {
		return err
	}
	f := &friend{family: at, octets: map[string]*atomic.Uint64{flowSCTP: {}, flowRDMA: {}}}
	if f.dev, err = rdma.NewDevice(link,
		&rdma.Config{SCTP: sctp.Config{LocalPort: friendRDMA, LocalAddrs: []netip.Addr{f.friendAddr}}}); err != nil {
		return err
	}
	defer f.dev.Close()
	f.setLoad(flowNone)
	return serveAgent(map[string]func(json.RawMessage) (any, error){
		"start": func(json.RawMessage) (any, error) { return nil, f.start() },
		"load": func(arg json.RawMessage) (any, error) {
			var flow string
			err := json.Unmarshal(arg, &flow)
			f.setLoad(flow)
			return nil, err
		},
		"stats": func(json.RawMessage) (any, error) { return f.stats(), nil },
		"ping":  func(json.RawMessage) (any, error) { return nil, f.ping() },
		"pings": func(json.RawMessage) (any, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			rtts := f.rtts
			f.rtts = nil
			return rtts, nil
		},
		"dial": func(arg json.RawMessage) (any, error) {
			var d dialing
			if err := json.Unmarshal(arg, &d); err != nil {
				return nil, err
			}
			return nil, f.dial(d)
		},
	})
}

func (f *friend) setLoad(flow string) { f.load.Store(&flow) }

func (f *friend) stats() friendStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := friendStats{Octets: make(map[string]uint64), Errs: f.errs}
	for flow, n := range f.octets {
		s.Octets[flow] = n.Load()
	}
	return s
}

// fail notes that a flow has ended, unless that was wanted.
func (f *friend) fail(ctx context.Context, flow string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() == nil {
		f.errs = append(f.errs, fmt.Sprintf("%s: %v", flow, err))
	}
}

// start begins both flows, anew if need be.
func (f *friend) start() error {
	f.mu.Lock()
	for _, stop := range f.stop {
		stop()
	}
	f.stop, f.errs = nil, nil
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := f.dev.Transport().Dial(ctx, f.to(portSCTP),
		&sctp.Config{LocalPort: friendSCTP, LocalAddrs: []netip.Addr{f.friendAddr}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	f.stop = append(f.stop, stop, func() { conn.Abort("") })
	if _, err := conn.WriteMsg([]byte(askFriend), sctp.SendInfo{}); err != nil {
		return err
	}
	w, err := newWriter(ctx, f)
	if err != nil {
		return err
	}
	f.stop = append(f.stop, func() { w.qp.Close() })
	go func() { f.fail(running, flowSCTP, f.messages(conn)) }()
	go func() { f.fail(running, flowRDMA, w.run(running)) }()
	return nil
}

// pace waits while a flow is not under load.
func (f *friend) pace(flow string) {
	for now := *f.load.Load(); now != flow; now = *f.load.Load() {
		if time.Sleep(slowPace); now != silence {
			return
		}
	}
}

// messages sends over SCTP and counts what the victim confirms.
func (f *friend) messages(c *sctp.Conn) error {
	room := make(chan struct{}, depth)
	done := make(chan error, 1)
	go func() {
		var b [8]byte
		for {
			if _, _, err := c.ReadMsg(b[:]); err != nil {
				done <- err
				return
			}
			f.octets[flowSCTP].Add(messageLen)
			<-room
		}
	}()
	b := pattern(messageLen)
	for seq := uint64(0); ; seq++ {
		f.pace(flowSCTP)
		select {
		case room <- struct{}{}:
		case err := <-done:
			return err
		}
		stamp(b, seq)
		if _, err := c.WriteMsg(b, sctp.SendInfo{}); err != nil {
			return err
		}
	}
}

// ping has a third association, on which a short message goes to and fro every millisecond.
func (f *friend) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := f.dev.Transport().Dial(ctx, f.to(portSCTP), &sctp.Config{LocalAddrs: []netip.Addr{f.friendAddr}})
	if err != nil {
		return err
	}
	if _, err := c.WriteMsg([]byte(askEcho), sctp.SendInfo{}); err != nil {
		return err
	}
	go func() {
		b := make([]byte, 64)
		for {
			start := time.Now()
			_, err := c.WriteMsg(b, sctp.SendInfo{})
			if err == nil {
				_, _, err = c.ReadMsg(b)
			}
			if err != nil {
				f.fail(context.Background(), flowSCTP, err)
				return
			}
			d := time.Since(start)
			f.mu.Lock()
			f.rtts = append(f.rtts, d)
			f.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	return nil
}

// writer writes to the victim's memory, the same octets again and again.
type writer struct {
	f    *friend
	qp   *rdma.QP
	cq   *rdma.CQ
	sge  []rdma.SGE
	stag rdma.STag
}

func newWriter(ctx context.Context, f *friend) (*writer, error) {
	w := &writer{f: f}
	pd := f.dev.AllocPD()
	mr, err := pd.Register(pattern(messageLen), 0, nil)
	if err != nil {
		return nil, err
	}
	w.sge = []rdma.SGE{mr.SGE(0, messageLen)}
	if w.cq, err = f.dev.CreateCQ(2 * depth); err != nil {
		return nil, err
	}
	if w.qp, err = f.dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: w.cq, RecvCQ: w.cq, MaxSend: depth, MaxRecv: 1,
		OwnAssociation: true}); err != nil {
		return nil, err
	}
	reply, err := w.qp.Connect(ctx, f.to(portRDMA), []byte(askFriend))
	if err != nil {
		return nil, err
	}
	if len(reply) != 4 {
		return nil, fmt.Errorf("the victim advertises %x", reply)
	}
	w.stag = rdma.STag(uint32(reply[0])<<24 | uint32(reply[1])<<16 | uint32(reply[2])<<8 | uint32(reply[3]))
	return w, nil
}

func (w *writer) run(ctx context.Context) error {
	wcs := make([]rdma.WC, depth)
	for under := 0; ; {
		for w.f.pace(flowRDMA); under < depth; under++ {
			if err := w.qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, SGL: w.sge, RemoteSTag: w.stag,
				RemoteTO: regionBase}); err != nil {
				return errors.Join(err, w.qp.Err())
			}
			if *w.f.load.Load() != flowRDMA {
				under++
				break
			}
		}
		if err := w.cq.Wait(ctx); err != nil {
			return err
		}
		n, err := w.cq.Poll(wcs)
		if err != nil {
			return err
		}
		for _, wc := range wcs[:n] {
			if wc.Status != rdmap.StatusSuccess {
				return errors.Join(fmt.Errorf("a Write ended with %v", wc.Status), w.qp.Err())
			}
		}
		under -= n
		w.f.octets[flowRDMA].Add(uint64(n) * messageLen)
	}
}

// dialing asks for an association of the honest client from a port that an attacker has guessed.
type dialing struct {
	Port    uint16
	To      uint16 // port of the victim
	Both    bool   // with both of the host's addresses, and else with the second alone
	Timeout time.Duration
}

func (f *friend) dial(d dialing) error {
	cfg := &sctp.Config{LocalPort: d.Port, LocalAddrs: []netip.Addr{f.friendOther}}
	if d.Both {
		cfg.LocalAddrs = append(cfg.LocalAddrs, f.friendAddr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	c, err := f.dev.Transport().Dial(ctx, f.to(d.To), cfg)
	if err != nil {
		return err
	}
	c.Abort("")
	return nil
}
