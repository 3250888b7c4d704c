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

// honestClient is the honest client: one SCTP association with messages that the victim checks and
// answers, and one RDMA session with Writes. One of them is under load at a time, the other goes on
// slowly.
type honestClient struct {
	*family
	dev    *rdma.Device
	load   atomic.Pointer[string]
	octets map[string]*atomic.Uint64 // that the victim has confirmed, by flow

	sealedTag atomic.Uint32 // of its encrypted association

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

// honestStats is what the honest client tells.
type honestStats struct {
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
	f := &honestClient{family: at, octets: map[string]*atomic.Uint64{flowSCTP: {}, flowRDMA: {}, flowSealed: {}}}
	if f.dev, err = rdma.NewDevice(link,
		&rdma.Config{SCTP: sctp.Config{LocalPort: friendRDMA, LocalAddrs: []netip.Addr{f.friendAddr}}}); err != nil {
		return err
	}
	defer f.dev.Close()
	f.setLoad(flowNone)
	return serveAgent(map[string]func(json.RawMessage) (any, error){
		"start": func(json.RawMessage) (any, error) { return nil, f.startFlows() },
		"load": func(arg json.RawMessage) (any, error) {
			var flow string
			err := json.Unmarshal(arg, &flow)
			f.setLoad(flow)
			return nil, err
		},
		"stats":  func(json.RawMessage) (any, error) { return f.snapshotStats(), nil },
		"sealed": f.answerSealed,
		"ping":   func(json.RawMessage) (any, error) { return nil, f.pingVictim() },
		"pings": func(json.RawMessage) (any, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			rtts := f.rtts
			f.rtts = nil
			return rtts, nil
		},
		"dial": func(arg json.RawMessage) (any, error) {
			var d dialRequest
			if err := json.Unmarshal(arg, &d); err != nil {
				return nil, err
			}
			return nil, f.dialAssoc(d)
		},
	})
}

func (f *honestClient) setLoad(flow string) { f.load.Store(&flow) }

func (f *honestClient) snapshotStats() honestStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := honestStats{Octets: make(map[string]uint64), Errs: f.errs}
	for flow, n := range f.octets {
		s.Octets[flow] = n.Load()
	}
	return s
}

// noteFailure notes that a flow has ended, unless that was wanted.
func (f *honestClient) noteFailure(ctx context.Context, flow string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() == nil {
		f.errs = append(f.errs, fmt.Sprintf("%s: %v", flow, err))
	}
}

// startFlows begins both flows, anew if need be.
func (f *honestClient) startFlows() error {
	f.mu.Lock()
	for _, stop := range f.stop {
		stop()
	}
	f.stop, f.errs = nil, nil
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := f.dev.Transport().Dial(ctx, f.victimPort(portSCTP),
		&sctp.Config{LocalPort: friendSCTP, LocalAddrs: []netip.Addr{f.friendAddr}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	f.stop = append(f.stop, stop, func() { conn.Abort("") })
	if _, err := conn.WriteMsg([]byte(askFriend), sctp.SendInfo{}); err != nil {
		return err
	}
	endSealed, err := f.startSealed(ctx, running)
	if err != nil {
		return err
	}
	f.stop = append(f.stop, endSealed)
	w, err := newWriter(ctx, f)
	if err != nil {
		return err
	}
	f.stop = append(f.stop, func() { w.qp.Close() })
	go func() { f.noteFailure(running, flowSCTP, f.sendMessages(conn)) }()
	go func() { f.noteFailure(running, flowRDMA, w.writeLoop(running)) }()
	return nil
}

// waitForLoad waits while a flow is not under load.
func (f *honestClient) waitForLoad(flow string) {
	for now := *f.load.Load(); now != flow; now = *f.load.Load() {
		if time.Sleep(slowPace); now != silence {
			return
		}
	}
}

// sendMessages sends over SCTP and counts what the victim confirms.
func (f *honestClient) sendMessages(c *sctp.Conn) error {
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
	b := flowPattern(messageLen)
	for seq := uint64(0); ; seq++ {
		f.waitForLoad(flowSCTP)
		select {
		case room <- struct{}{}:
		case err := <-done:
			return err
		}
		stampSeq(b, seq)
		if _, err := c.WriteMsg(b, sctp.SendInfo{}); err != nil {
			return err
		}
	}
}

// pingVictim has a third association, on which a short message goes to and fro every millisecond.
func (f *honestClient) pingVictim() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := f.dev.Transport().Dial(ctx, f.victimPort(portSCTP), &sctp.Config{LocalAddrs: []netip.Addr{f.friendAddr}})
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
				f.noteFailure(context.Background(), flowSCTP, err)
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
	f    *honestClient
	qp   *rdma.QP
	cq   *rdma.CQ
	sge  []rdma.SGE
	stag rdma.STag
}

func newWriter(ctx context.Context, f *honestClient) (*writer, error) {
	w := &writer{f: f}
	pd := f.dev.AllocPD()
	mr, err := pd.Register(flowPattern(messageLen), 0, nil)
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
	reply, err := w.qp.Connect(ctx, f.victimPort(portRDMA), []byte(askFriend))
	if err != nil {
		return nil, err
	}
	if len(reply) != 4 {
		return nil, fmt.Errorf("the victim advertises %x", reply)
	}
	w.stag = rdma.STag(uint32(reply[0])<<24 | uint32(reply[1])<<16 | uint32(reply[2])<<8 | uint32(reply[3]))
	return w, nil
}

func (w *writer) writeLoop(ctx context.Context) error {
	wcs := make([]rdma.WC, depth)
	for under := 0; ; {
		for w.f.waitForLoad(flowRDMA); under < depth; under++ {
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

// dialRequest asks for an association of the honest client from a port that an attacker has
// guessed.
type dialRequest struct {
	Port    uint16
	To      uint16 // port of the victim
	Both    bool   // with both of the host's addresses, and else with the second alone
	Timeout time.Duration
}

func (f *honestClient) dialAssoc(d dialRequest) error {
	cfg := &sctp.Config{LocalPort: d.Port, LocalAddrs: []netip.Addr{f.friendOther}}
	if d.Both {
		cfg.LocalAddrs = append(cfg.LocalAddrs, f.friendAddr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	c, err := f.dev.Transport().Dial(ctx, f.victimPort(d.To), cfg)
	if err != nil {
		return err
	}
	c.Abort("")
	return nil
}
