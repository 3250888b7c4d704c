package sctptest

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// CookieLab is a Lab whose association is made without an endpoint, so that the test can open its
// cookies, and seal some.
type CookieLab struct {
	*Lab
	*assoc.Jar
	env *assoc.Env
	cfg assoc.Config
}

// NewCookieLab has no association.
func NewCookieLab(t testing.TB, cfg *assoc.Config) *CookieLab {
	t.Helper()
	c := must.Get(cfg.Complete())(t)
	rnd := rand.New(rand.NewSource(11))
	j := &CookieLab{Lab: NewLab(t), Jar: assoc.NewJar(rnd), cfg: c}
	j.env = &assoc.Env{Rand: rnd, MTU: func(_, _ netip.Addr) int { return MTU }, Cookies: j.Jar}
	return j
}

// cookieIn opens the cookie of the only INIT ACK among the packets.
func (j *CookieLab) cookieIn(out []wire.Packet) (ack wire.Init, c assoc.Cookie) {
	j.Helper()
	if len(out) != 1 || !Has(out[0], wire.ChunkInitAck) {
		j.Fatalf("sent %q, want INIT ACK", Describe(out))
	}
	ack = j.NoteInitAck(out[0])
	if !j.Open(j.Now, j.Cookie, &c) {
		j.Fatal("the cookie does not open")
	}
	return ack, c
}

// Answer has an INIT answered with no association in place.
func (j *CookieLab) Answer(init []byte) (wire.Init, assoc.Cookie) {
	j.Helper()
	pkt := Packet(PortA, PortB, 0, init)
	cs := wire.Packet(pkt).Chunks()
	c, _ := cs.Next()
	var o assoc.Outbox
	p := rawio.Packet{Data: pkt, Local: j.Host.Addr, Remote: j.Peer}
	assoc.AnswerInit(j.Now, &o, &p, c, &j.cfg, j.env)
	o.PollTransmit(j.Host.Batch)
	var out []wire.Packet
	for _, q := range j.Host.Batch.Pkts {
		out = append(out, slices.Concat(q.Vec...))
	}
	j.Host.Batch.Reset()
	return j.cookieIn(out)
}

// Connect starts the association under test.
func (j *CookieLab) Connect() {
	j.Helper()
	a, err := assoc.Connect(j.Now, &j.cfg, j.env, assoc.Peer{LocalPort: PortB, PeerPort: PortA, Local: j.Host.Addr,
		Remotes: []netip.AddrPort{j.Peer}})
	if err != nil {
		j.Fatal(err)
	}
	j.A, j.Host.Assocs = a, []*assoc.Assoc{a}
	j.ReadInit()
}

// Accept makes it from the last cookie.
func (j *CookieLab) Accept(c *assoc.Cookie) {
	j.Helper()
	p := rawio.Packet{Data: Packet(PortA, PortB, c.LocalTag, wire.AppendCookieEcho(nil, j.Cookie)),
		Local: j.Host.Addr, Remote: j.Peer}
	j.A = assoc.Accept(j.Now, &j.cfg, j.env, c, &p)
	j.Host.Assocs = []*assoc.Assoc{j.A}
	j.Pass(p.Data)
	j.Expect(j.Flush(), "COOKIE ACK")
	j.InState(assoc.Established)
}

// Pass gives a packet of the script to the association.
func (j *CookieLab) Pass(pkt []byte) {
	p := rawio.Packet{Data: pkt, Local: j.Host.Addr, Remote: j.Peer}
	j.Host.known.notePacket(&p)
	j.A.HandlePacket(j.Now, &p)
}

// SendInit has the association answer an INIT.
func (j *CookieLab) SendInit(init []byte) (wire.Init, assoc.Cookie) {
	j.Helper()
	j.Pass(Packet(PortA, PortB, 0, init))
	return j.cookieIn(j.Flush())
}
