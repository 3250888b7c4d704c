package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/pcap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
)

// attackerLink sends an attacker's packets over a link and shows it the answers.
type attackerLink struct {
	*options
	link    rawio.Link
	remote  netip.AddrPort
	in      chan []byte // packets of the other side's
	gone    chan struct{}
	refused error // the other side's host says that nobody is there
	log     ring
	sent    uint64
	taken   uint64
	lives   uint64
	ups     uint64 // associations that were set up
	slowest time.Duration
}

const batch = 8 // packets between two looks at the answers

func newGun(link rawio.Link, o *options) *attackerLink {
	g := &attackerLink{options: o, link: link, remote: netip.AddrPortFrom(o.target.Addr(), 0),
		in:   make(chan []byte, 4096),
		gone: make(chan struct{})}
	if o.link.Kind == "udp" {
		g.remote = netip.AddrPortFrom(o.target.Addr(), o.link.EncapPort)
	}
	go g.readLoop()
	return g
}

func (g *attackerLink) closeLink() {
	g.link.Close()
	<-g.gone
}

// readLoop hands on what comes from the other side, as far as there is room.
func (g *attackerLink) readLoop() {
	defer close(g.gone)
	pkts := make([]rawio.Packet, 64)
	for {
		n, err := g.link.ReadBatch(pkts)
		for i := range pkts[:n] {
			p := &pkts[i]
			if p.Remote.Addr().Unmap() == g.target.Addr() {
				var b []byte // empty: nobody is there
				if p.Kind == rawio.KindSCTP {
					b = append(b, p.Data...)
				}
				if p.Kind != rawio.KindPacketTooBig {
					select {
					case g.in <- b:
					default:
					}
				}
			}
			p.Release()
		}
		if err != nil {
			return
		}
	}
}

var errRefused = errors.New("the other side's host says that nobody is there")

// showAnswers shows the peer what has come, and waits up to so long for the first of it.
func (g *attackerLink) showAnswers(p *attacker.Peer, wait time.Duration) (any bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case b := <-g.in:
			if len(b) == 0 {
				g.refused = errRefused
				continue
			}
			any = true
			g.taken++
			g.log.addRecord(record{at: time.Now(), data: b})
			up := p.Up()
			if p.Take(b); !up && p.Up() {
				g.ups++
			}
			timer.Reset(100 * time.Microsecond)
		case <-timer.C:
			return any
		}
	}
}

func (g *attackerLink) sendPacket(b []byte) {
	g.sent++
	g.log.addRecord(record{at: time.Now(), data: b, sent: true})
	vec := [][]byte{b}
	g.link.WriteBatch([]rawio.Packet{{Vec: vec, Remote: g.remote}}) // a packet that is lost is one less
}

// checkAlive sends INITs until one is answered, for as long as the patience lasts.
func (g *attackerLink) checkAlive(ctx context.Context) bool {
	start := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		asked := newInit(uint16(1024+rand.IntN(60000)), g.target.Port())
		g.sendPacket(asked.packet)
		for until := time.Now().Add(wait); time.Now().Before(until); {
			select {
			case b := <-g.in:
				if asked.answeredBy(b) {
					g.slowest = max(g.slowest, time.Since(start))
					return true
				}
				if len(b) == 0 {
					g.refused = errRefused
				}
			case <-time.After(time.Until(until)):
			}
		}
		if time.Since(start) > g.patience || ctx.Err() != nil && time.Since(start) > g.patience {
			return false
		}
	}
}

// initRequest is an INIT of a host that knows nothing.
type initRequest struct {
	port   uint16
	packet []byte
}

func newInit(local, remote uint16) initRequest {
	b := wire.AppendHeader(nil, local, remote, 0)
	b = wire.AppendInit(b, wire.ChunkInit, wire.InitFields{Tag: rand.Uint32() | 1, ARwnd: 1 << 17, OutStreams: 10,
		InStreams: 10, TSN: wire.TSN(rand.Uint32())})
	wire.PutPacketChecksum([][]byte{b})
	return initRequest{local, b}
}

// answeredBy says whether b is an INIT ACK, or a refusal: that answers too.
func (a initRequest) answeredBy(b []byte) bool {
	p, err := wire.ParsePacket(b)
	if err != nil || p.DstPort() != a.port {
		return false
	}
	cs := p.Chunks()
	c, ok := cs.Next()
	return ok && (c.Type() == wire.ChunkInitAck || c.Type() == wire.ChunkAbort)
}

// attackLoop attacks until the time is over or the other side does not answer any more.
func (g *attackerLink) attackLoop(ctx context.Context, out io.Writer) (found bool, err error) {
	start, said := time.Now(), time.Now()
	ports := rand.New(rand.NewPCG(g.seed, 1))
	for ctx.Err() == nil {
		seed := g.seed + g.lives
		g.lives++
		p := attacker.New(attacker.Seeded(seed), attacker.Config{LocalPort: uint16(1024 + ports.IntN(60000)),
			RemotePort: g.target.Port(),
			RDMA:       g.rdma, Careful: g.careful || seed%3 == 0})
		g.refused = nil
		for n := 0; n < g.options.life && ctx.Err() == nil && g.refused == nil; n++ {
			b := p.Packet()
			if b == nil {
				g.showAnswers(p, 2*time.Millisecond)
				continue
			}
			g.sendPacket(b)
			switch {
			case !p.Up():
				g.showAnswers(p, 2*time.Millisecond)
			case n%batch == 0:
				g.showAnswers(p, 200*time.Microsecond)
			}
			if ahead := time.Duration(g.sent)*time.Second/time.Duration(max(g.rate, 1)) - time.Since(start); g.rate >
				0 && ahead > 0 {
				g.showAnswers(p, ahead)
			}
		}
		if !g.checkAlive(context.Background()) {
			return true, g.writeReport(out, seed, time.Since(start))
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			g.printStatus(out, time.Since(start))
		}
	}
	g.printStatus(out, time.Since(start))
	fmt.Fprintln(out, "the other side still answers")
	return false, nil
}

func (g *attackerLink) printStatus(out io.Writer, after time.Duration) {
	fmt.Fprintf(out, "%v: %d attackers, %d associations, %d packets sent, %d received; slowest answer to an INIT %v\n",
		after.Round(time.Second), g.lives, g.ups, g.sent, g.taken, g.slowest.Round(time.Microsecond))
}

// writeReport says what was found.
func (g *attackerLink) writeReport(out io.Writer, seed uint64, after time.Duration) error {
	g.printStatus(out, after)
	what := "hangs: it does not answer an INIT"
	if g.refused != nil {
		what = "died: " + g.refused.Error()
	}
	fmt.Fprintf(out, "FOUND: after %d packets the other side %s (--seed %d finds it sooner, perhaps)\n", g.sent, what,
		seed)
	list := g.log.listRecords()
	fmt.Fprintln(out, "the last packets before that:")
	for _, r := range lastRecords(list, 200) {
		if r.sent && !r.isProbe() {
			fmt.Fprintf(out, "  %s\n", r)
		}
	}
	f, err := os.Create(g.out)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := pcap.NewWriter(f)
	if err != nil {
		return err
	}
	for _, r := range list {
		p := &rawio.Packet{Remote: g.remote}
		if r.sent {
			p.Vec = [][]byte{r.data}
			err = w.Sent(r.at, p)
		} else {
			p.Data = r.data
			err = w.Received(r.at, p)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "the last %d packets are in %s\n", len(list), g.out)
	return w.Flush()
}

// record is one packet.
type record struct {
	at   time.Time
	data []byte
	sent bool
}

// isProbe says whether it is one of alive's INITs: alone, without parameters.
func (r record) isProbe() bool {
	return len(r.data) == wire.CommonHeaderLen+20 && wire.ChunkType(r.data[wire.CommonHeaderLen]) == wire.ChunkInit
}

func (r record) String() string {
	var types []string
	if p, err := wire.ParsePacket(r.data); err == nil {
		cs := p.Chunks()
		for c, ok := cs.Next(); ok && len(types) < 12; c, ok = cs.Next() {
			types = append(types, c.Type().String())
		}
		if cs.Err() != nil {
			types = append(types, "malformed")
		}
	}
	text := hex.EncodeToString(r.data[:min(len(r.data), 120)])
	if len(r.data) > 120 {
		text += "..."
	}
	return fmt.Sprintf("%4d octets %-30s %s", len(r.data), strings.Join(types, " "), text)
}

// ring keeps the last packets.
type ring struct {
	records []record
	next    int
}

const ringSize = 20000

func (r *ring) addRecord(v record) {
	if len(r.records) < ringSize {
		r.records = append(r.records, v)
		return
	}
	r.records[r.next] = v
	r.next = (r.next + 1) % ringSize
}

func (r *ring) listRecords() []record {
	return append(r.records[r.next:len(r.records):len(r.records)], r.records[:r.next]...)
}

func lastRecords(list []record, n int) []record { return list[max(len(list)-n, 0):] }
