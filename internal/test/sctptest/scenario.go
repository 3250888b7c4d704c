package sctptest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Scenario is a script of what happens to two hosts, a and b, with all that they say and report
// behind each line: packets with their times and contents, events, timers, and at the end counters
// and paths. A scenario is a text file; RunScenario plays its script and returns it with what
// happens now. Lines of the script begin at the margin, what happened is indented:
//
//	hosts 2                     two networks (none, or "ipv6", "udp" or "dual"), or "2 far"; "link=1300": the MTU of the hosts' links
//	                            "pmtud": they can search for path MTUs; "ecn": they see marks
//	config a RTOMin=200ms       of assoc.Config; LocalAddrs=all
//	listen b
//	connect a 0,1               to these addresses of the other host; local=0: from that port, or from any
//	send a 3000 5 stream=1      5 messages of 3000 octets; unordered, life=1s, path=1
//	run 1s
//	lose a 2 DATA 1             the next two packets of a's with DATA, but for the first one; also dup, "delay a 1 DATA 0 300ms"; let ends it
//	path a mtu=1280 quote=28    from a to the other, of network 0 or net=1: loss, mark, delay, rate, queue
//	cut 0, heal 0               a network
//	link a 1300                 the MTU of a's link falls, without a word to a
//	port a 9899                 the UDP port that a's packets seem to come from changes
//	shutdown a, abort a why 3   three times why
//	heartbeat a 1, interval a 1 -1s, primary a 1     of the path to the other's address 1
//	read b, squeeze b on, renew b, norand b          renew: b forgets everything; norand: there is no randomness left
//	forge b 0 tag=own 06000008 000c0004              b gets these octets as a packet from a's address 0; tag: own, peer, cookie, given, 0x1;
//	                            also from=10.9.0.1:9899, to=224.0.0.1, src=1, dst=2: the ports; times=9 every=1ms; wrong: the checksum; burst: all at once
//	                            z40: 40 times 00; T5: the sixth TSN of the other; U5: the sixth of b; C: a COOKIE ECHO with the last cookie of b
//	pull a 500 3 stream=1       a's Source has such messages, as they can be sent. The Placers consume what comes on stream 3, drop every
//	                            other chunk of stream 4, and abort for stream 5.
//	late                        before forge and report: past the endpoint, to the last association
//	timeout a, break a          its timers are looked at; it has contradicted itself
//	expire a                    its next timer goes off, and is looked at twice
//	report b toobig 1280 28     an ICMP report that quotes so much of b's last packet; also proto, host; src=1, dst=1, chunk=1: of another port or chunk
//	endpoint b MaxAnswers=5     b forgets everything, and is configured so; Admits=10.1.0.1 alone
//	unlisten b, remove b        the port is not listened on; the endpoint is told that the last association is over
//	state a, stats a, steps a, tables a  what a tells of itself
type Scenario struct {
	*World
	out     strings.Builder
	configs [2]assoc.Config
	told    int    // packets
	events  [2]int // told
	tags    map[uint32]string
	tsns    [2]wire.TSN
	cookies [2][]byte // the last that each has given away
	given   [2]uint32 // and the tag with it
	pulls   [2]*pullSource
	rules   []*packetRule
	start   rawio.Time
	token   uint64
	late    *assoc.Assoc // who gets what is forged
	links   rawio.Features
	tune    []func(*Host)
}

// packetRule is what becomes of some packets of a host.
type packetRule struct {
	from, skip, n, copies int
	of                    string // type of a chunk in it, "" any
	later                 time.Duration
}

// CheckScenarios compares the stories in a directory with what happens now. With update it writes
// that down.
func CheckScenarios(t *testing.T, dir string, update bool) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			told, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := RunScenario(t, string(told))
			if update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Error(err)
				}
				return
			}
			g, w := strings.Split(got, "\n"), strings.Split(string(told), "\n")
			for i := range max(len(g), len(w)) {
				if i >= len(g) || i >= len(w) || g[i] != w[i] {
					t.Fatalf("line %d is otherwise (-update writes down what happens now):\n got %s\nwant %s", i+1,
						g[min(i, len(g)-1)], w[min(i, len(w)-1)])
				}
			}
		})
	}
	if len(files) == 0 {
		t.Error("there are no stories")
	}
}

// RunScenario plays the script of a story, with hosts as tune makes them.
func RunScenario(t testing.TB, text string, tune ...func(*Host)) string {
	s := &Scenario{tags: make(map[uint32]string), tune: tune}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if err := s.playLine(t, f); err != nil {
			t.Fatalf("line %d, %q: %v", i+1, line, err)
		}
		s.writeHappened()
	}
	return s.out.String()
}

// lineArgs are the arguments of a line, named ones apart.
type lineArgs struct {
	list  []string
	named map[string]string
}

func parseWords(f []string) lineArgs {
	w := lineArgs{named: make(map[string]string)}
	for _, x := range f {
		if k, v, ok := strings.Cut(x, "="); ok {
			w.named[k] = v
		} else {
			w.list = append(w.list, x)
		}
	}
	return w
}

func (w lineArgs) stringArg(i int) string {
	if i < len(w.list) {
		return w.list[i]
	}
	return ""
}

func (w lineArgs) intArg(i, or int) int {
	if n, err := strconv.Atoi(w.stringArg(i)); err == nil {
		return n
	}
	return or
}

func (w lineArgs) hasWord(word string) bool { return slices.Contains(w.list, word) }

func (w lineArgs) numberArg(name string, or float64) float64 {
	if n, err := strconv.ParseFloat(w.named[name], 64); err == nil {
		return n
	}
	return or
}

func (w lineArgs) durationArg(name string) time.Duration {
	d, _ := time.ParseDuration(w.named[name])
	return d
}

// makeHosts makes the hosts.
func (s *Scenario) makeHosts(t testing.TB, w lineArgs) {
	var addrs [2][]netip.AddrPort
	switch n := w.intArg(0, 0); {
	case n > 0:
		for i := range addrs {
			for k := range n {
				a := [4]byte{10, byte(1 + k), 0, byte(1 + i)}
				if i == 1 && w.hasWord("far") { // no two addresses have a prefix in common
					a = [4]byte{byte(60 + 60*k), 1, 0, 1}
				}
				addrs[i] = append(addrs[i], netip.AddrPortFrom(netip.AddrFrom4(a), 0))
			}
		}
	case w.hasWord("dual"):
		addrs = [2][]netip.AddrPort{{IPv4[0], IPv6[0]}, {IPv4[1], IPv6[1]}}
	case w.hasWord("ipv6"):
		addrs = [2][]netip.AddrPort{{IPv6[0]}, {IPv6[1]}}
	case w.hasWord("udp"):
		addrs = [2][]netip.AddrPort{{UDP[0]}, {UDP[1]}}
	default:
		addrs = [2][]netip.AddrPort{{IPv4[0]}, {IPv4[1]}}
	}
	var features rawio.Features
	if w.hasWord("pmtud") {
		features |= rawio.DontFragment
	}
	if w.hasWord("ecn") {
		features |= rawio.ECNField
	}
	s.World = newWorld(t, int(w.numberArg("link", 1500)), features, addrs, simnet.Params{})
	s.onSend = func(*Host, *Capture) {}
	s.World.Filter = s.applyRules
	s.start = s.Now
	s.links = features
	for i, h := range s.Hosts {
		s.pulls[i] = new(pullSource)
		h.Source, h.Placer = s.pulls[i], s.pulls[i]
		for _, f := range s.tune {
			f(h)
		}
	}
}

// applyRules applies the first rule that a packet meets.
func (s *Scenario) applyRules(from int, pkt wire.Packet) (int, time.Duration) {
	for _, r := range s.rules {
		if r.from != from || r.n == 0 || r.of != "" &&
			!slices.ContainsFunc(ChunkTypes(pkt), func(t wire.ChunkType) bool { return chunkWord(t) == r.of }) {
			continue
		}
		if r.skip > 0 {
			r.skip--
			break
		}
		r.n--
		return r.copies, r.later
	}
	return 1, 0
}

func chunkWord(t wire.ChunkType) string { return strings.ReplaceAll(t.String(), " ", "-") }

// playLine does what a line says.
func (s *Scenario) playLine(t testing.TB, f []string) error {
	w := parseWords(f[1:])
	if f[0] == "hosts" {
		s.makeHosts(t, w)
		return nil
	}
	if s.World == nil {
		return errors.New("there are no hosts yet")
	}
	switch f[0] {
	case "run":
		d, err := time.ParseDuration(w.stringArg(0))
		s.Run(d)
		return err
	case "let": // what was to be lost and delayed
		s.rules = nil
		return nil
	case "cut":
		s.Net.Partition(s.Hosts[0].Addrs[w.intArg(0, 0)], s.Hosts[1].Addrs[w.intArg(0, 0)])
		return nil
	case "heal":
		s.Net.Heal(s.Hosts[0].Addrs[w.intArg(0, 0)], s.Hosts[1].Addrs[w.intArg(0, 0)])
		return nil
	}
	who := w.stringArg(0)
	if f[0] == "late" && len(f) > 2 {
		who = f[2]
	}
	id := strings.Index("ab", who)
	if id < 0 || who == "" {
		return errors.New("whose?")
	}
	h, peer := s.Hosts[id], s.Hosts[1-id]
	var a *assoc.Assoc
	if n := len(h.Assocs); n > 0 {
		a = h.Assocs[n-1]
	}
	addr := peer.Addrs[min(w.intArg(1, 0), len(peer.Addrs)-1)]
	if f[0] == "late" {
		if a == nil || len(f) < 2 {
			return s.noteError(errors.New("there is no association"))
		}
		s.late = a
		defer func() { s.late = nil }()
		f, w = f[1:], parseWords(f[2:])
	}
	switch f[0] {
	case "config":
		return s.setConfig(&s.configs[id], h, w)
	case "listen":
		port := uint16(PortB)
		if id == 0 {
			port = PortA
		}
		return s.noteError(h.Endpoint.Listen(port, &s.configs[id]))
	case "connect":
		var to []netip.AddrPort
		for _, k := range strings.Split(w.stringArg(1), ",") {
			k, _ := strconv.Atoi(k)
			to = append(to, netip.AddrPortFrom(peer.Addrs[k], peer.Addr.Port()))
		}
		local, remote := uint16(PortA), uint16(PortB)
		if id == 1 {
			local, remote = PortB, PortA
		}
		local = uint16(w.numberArg("local", float64(local)))
		from := h.Addr
		if len(h.Addrs) > 1 {
			from = netip.AddrPort{}
		}
		a, err := h.Endpoint.Connect(s.Now, &s.configs[id], local, from, to, remote)
		if err == nil {
			h.Adopt(a)
		}
		return s.noteError(err)
	case "lose", "dup", "delay":
		r := &packetRule{from: id, n: w.intArg(1, 1), of: w.stringArg(2), skip: w.intArg(3, 0)}
		if f[0] == "dup" {
			r.copies = 2
		}
		if f[0] == "delay" {
			r.copies = 1
			r.later, _ = time.ParseDuration(w.stringArg(4))
		}
		s.rules = append(s.rules, r)
	case "path":
		k := int(w.numberArg("net", 0))
		p, _ := s.Net.Link(h.Addrs[k], peer.Addrs[k])
		p.Loss, p.Mark = w.numberArg("loss", p.Loss), w.numberArg("mark", p.Mark)
		p.MTU, p.Quote = int(w.numberArg("mtu", float64(p.MTU))), int(w.numberArg("quote", float64(p.Quote)))
		p.Rate, p.Queue = int64(w.numberArg("rate", float64(p.Rate))), int(w.numberArg("queue", float64(p.Queue)))
		if d := w.durationArg("delay"); d > 0 {
			p.Delay = d
		}
		s.Net.SetLink(h.Addrs[k], peer.Addrs[k], p)
	case "link":
		h.Link = w.intArg(1, h.Link)
	case "port":
		h.Addr = netip.AddrPortFrom(h.Addr.Addr(), uint16(w.intArg(1, 0)))
	case "renew":
		h.Reboot(int64(w.intArg(1, 9)), s.links)
		h.Assocs = nil
	case "norand":
		h.Rand.Over = w.stringArg(1) != "off"
	case "read":
		h.Reads = true
		s.Flush()
		if n := h.Received.Len(); n > 0 {
			fmt.Fprintf(&s.out, "\treads %d octets, %08x\n", n, crc32.ChecksumIEEE(h.Received.Bytes()))
			h.Received.Reset()
		}
		h.Reads = false
	case "forge":
		return s.deliverForged(id, w)
	case "report":
		return s.reportICMP(id, w)
	case "unlisten":
		h.Endpoint.Unlisten(PortB)
	case "endpoint":
		cfg := endpoint.Config{Rand: h.Rand, Features: s.links, MTU: h.pathMTU}
		if err := setFields(&cfg, w.named); err != nil {
			return err
		}
		h.Assocs, h.Endpoint = nil, endpoint.New(cfg)
	case "tables":
		s.describeCounters(h.Endpoint.Stats())
		fmt.Fprintf(&s.out, "\t%d associations, %d octets\n", h.Endpoint.Len(), h.Endpoint.Held())
	default:
		if a == nil {
			return s.noteError(errors.New("there is no association"))
		}
		return s.actOnAssoc(f[0], a, addr, w)
	}
	return nil
}

// actOnAssoc does what a line says to an association.
func (s *Scenario) actOnAssoc(verb string, a *assoc.Assoc, addr netip.Addr, w lineArgs) error {
	switch verb {
	case "send":
		m := assoc.Message{Stream: wire.StreamID(w.numberArg("stream", 0)), PPID: 7, Unordered: w.hasWord("unordered"),
			Path: uint8(w.numberArg("path", 0))}
		if d := w.durationArg("life"); d > 0 {
			m.Expires = s.Now.Add(d)
		}
		for i := range w.intArg(2, 1) {
			s.token++
			m.Token = s.token
			m.Body[0] = bytes.Repeat([]byte{byte(i + 1)}, w.intArg(1, 0))
			if err := a.Send(s.Now, &m); err != nil {
				return s.noteError(err)
			}
		}
	case "pull":
		s.pulls[strings.Index("ab", w.stringArg(0))].addMessages(w)
	case "timeout":
		a.HandleTimeout(s.Now)
	case "expire": // twice, as nothing forbids that
		if next := a.NextTimeout(); next != rawio.Never {
			s.Now = max(s.Now, next)
		}
		a.HandleTimeout(s.Now)
		a.HandleTimeout(s.Now)
	case "break":
		defer invariant.TolerateInTest()()
		a.Break(invariant.Violation("a story", "nothing"))
		s.Flush()
	case "shutdown":
		return s.noteError(a.Shutdown(s.Now))
	case "abort":
		a.Abort(s.Now, bytes.Repeat([]byte(w.stringArg(1)), w.intArg(2, 1)))
	case "heartbeat":
		return s.noteError(a.RequestHeartbeat(s.Now, addr))
	case "interval":
		d, err := time.ParseDuration(w.stringArg(2))
		return errors.Join(err, s.noteError(a.SetHeartbeat(s.Now, addr, d)))
	case "primary":
		return s.noteError(a.SetPrimary(addr))
	case "squeeze":
		a.SetMemoryPressure(w.stringArg(1) == "on")
	case "state":
		fmt.Fprintf(&s.out, "\t%v, timer %s, payload %d, sack now %v\n", a.State(), s.formatTime(a.NextTimeout()),
			a.MaxPayload(), a.SackNow())
	case "stats":
		s.describeStats(a)
	case "steps":
		fmt.Fprintf(&s.out, "\t%d steps, a cookie until %v\n", a.Steps(), time.Duration(a.CookieUntil()))
	default:
		return errors.New("nobody knows how")
	}
	return nil
}

func (s *Scenario) noteError(err error) error {
	if err != nil {
		fmt.Fprintf(&s.out, "\t%v\n", err)
	}
	return nil
}

// setConfig sets fields of a Config.
func (s *Scenario) setConfig(c *assoc.Config, h *Host, w lineArgs) error {
	if value, ok := w.named["LocalAddrs"]; ok {
		delete(w.named, "LocalAddrs")
		c.LocalAddrs = nil
		for _, a := range strings.Split(value, ",") {
			if addr, err := netip.ParseAddr(a); err == nil {
				c.LocalAddrs = append(c.LocalAddrs, addr)
			} else if a == "all" {
				c.LocalAddrs = append(c.LocalAddrs, h.Addrs...)
			}
		}
	}
	return setFields(c, w.named)
}

// setFields sets fields of a struct.
func setFields(to any, fields map[string]string) error {
	for name, value := range fields {
		f := reflect.ValueOf(to).Elem().FieldByName(name)
		if !f.IsValid() {
			return fmt.Errorf("no field %s in Config", name)
		}
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		d, notDuration := time.ParseDuration(value)
		n, notNumber := strconv.ParseInt(value, 0, 64)
		switch {
		case f.Type() == reflect.TypeFor[func(netip.Addr) bool](): // says yes to one address
			f.Set(reflect.ValueOf(func(a netip.Addr) bool { return a.String() == value }))
		case f.Kind() == reflect.Bool:
			f.SetBool(value == "true")
		case f.Type() == reflect.TypeFor[time.Duration]() && notDuration == nil:
			f.SetInt(int64(d))
		case f.CanInt() && notNumber == nil:
			f.SetInt(n)
		case f.CanUint() && notNumber == nil:
			f.SetUint(uint64(n))
		default:
			return fmt.Errorf("%s is no %v", value, f.Type())
		}
	}
	return nil
}

// deliverForged hands a host packets that nobody has sent.
func (s *Scenario) deliverForged(id int, w lineArgs) error {
	h, peer := s.Hosts[id], s.Hosts[1-id]
	own, of := uint32(0), uint32(0)
	if n := len(h.Assocs); n > 0 {
		own, of = h.Assocs[n-1].LocalTag(), h.Assocs[n-1].PeerTag()
	}
	tag := own
	switch v := w.named["tag"]; v {
	case "", "own":
	case "peer":
		tag = of
	case "cookie":
		tag = s.given[id]
	case "given": // by the other
		tag = s.given[1-id]
	default:
		n, err := strconv.ParseUint(v, 0, 32)
		if err != nil {
			return err
		}
		tag = uint32(n)
	}
	digits := slices.DeleteFunc(slices.Clone(w.list[2:]), func(x string) bool { return x == "wrong" || x == "burst" })
	for i, x := range digits {
		n, _ := strconv.Atoi(x[1:])
		switch x[0] {
		case 'z':
			digits[i] = strings.Repeat("00", n)
		case 'T':
			digits[i] = fmt.Sprintf("%08x", s.tsns[1-id]+wire.TSN(n))
		case 'U':
			digits[i] = fmt.Sprintf("%08x", s.tsns[id]+wire.TSN(n))
		case 'C':
			digits[i] = hex.EncodeToString(wire.AppendCookieEcho(nil, s.cookies[id]))
		}
	}
	b, err := hex.DecodeString(strings.Join(digits, ""))
	if err != nil {
		return err
	}
	from, to := netip.AddrPortFrom(peer.Addrs[w.intArg(1, 0)], peer.Addr.Port()), h.Addr
	if v := w.named["from"]; v != "" {
		if from, err = netip.ParseAddrPort(v); err != nil {
			return err
		}
	}
	if v := w.named["to"]; v != "" {
		if to, err = netip.ParseAddrPort(v); err != nil {
			return err
		}
	}
	src, dst := uint16(PortA), uint16(PortB)
	if id == 0 {
		src, dst = PortB, PortA
	}
	src, dst = uint16(w.numberArg("src", float64(src))), uint16(w.numberArg("dst", float64(dst)))
	for range int(w.numberArg("times", 1)) {
		pkt := Packet(src, dst, tag, b)
		if w.hasWord("wrong") {
			pkt[8]++
		}
		s.deliverTo(h, rawio.Packet{Data: pkt, Remote: from, Local: to, ECN: uint8(w.numberArg("ecn", 0))})
		if !w.hasWord("burst") {
			s.Run(w.durationArg("every"))
		}
	}
	return nil
}

// deliverTo hands a host a packet as if it had come.
func (s *Scenario) deliverTo(h *Host, p rawio.Packet) {
	p.Buf = rawio.NewBuf(p.Data)
	if s.late != nil {
		h.known.notePacket(&p)
		s.late.HandlePacket(s.Now, &p)
	} else {
		h.Receive(s.Now, &p)
	}
	p.Buf.Release()
}

// reportICMP hands a host what the network says of the last packet that it sent.
func (s *Scenario) reportICMP(id int, w lineArgs) error {
	for _, x := range slices.Backward(s.Sent) {
		if x.From != id || len(x.Pkt) < w.intArg(3, 28) {
			continue
		}
		p := rawio.Packet{Kind: rawio.KindPacketTooBig, MTU: w.intArg(2, 0),
			Data:   slices.Clone(x.Pkt[:w.intArg(3, 28)]),
			Remote: x.Remote}
		p.Data[0] += byte(w.numberArg("src", 0))
		p.Data[2] += byte(w.numberArg("dst", 0))
		p.Data[12%len(p.Data)] += byte(w.numberArg("chunk", 0))
		if w.hasWord("proto") {
			p.Kind = rawio.KindProtoUnreachable
		} else if w.hasWord("host") {
			p.Kind = rawio.KindHostUnreachable
		}
		s.deliverTo(s.Hosts[id], p)
		s.Flush()
		return nil
	}
	return s.noteError(errors.New("there is nothing to quote"))
}

// pullSource is a Source of messages that are made when they can be sent.
type pullSource struct {
	size, left, acked, placed int
	stream                    wire.StreamID
}

func (p *pullSource) addMessages(w lineArgs) {
	p.size, p.left, p.stream = w.intArg(1, 1), p.left+w.intArg(2, 1), wire.StreamID(w.numberArg("stream", 0))
}

// Next implements assoc.Source.
func (p *pullSource) Next(_ rawio.Time, _ int, m *assoc.Message) bool {
	if p.left == 0 {
		return false
	}
	p.left--
	*m = assoc.Message{Stream: p.stream, PPID: 9, Body: [2][]byte{bytes.Repeat([]byte{byte(p.left)}, p.size)}}
	return true
}

// Idle implements assoc.Source.
func (p *pullSource) Idle() bool { return p.left == 0 }

// Place implements assoc.Placer: streams 3, 4 and 5 belong to it.
func (p *pullSource) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	switch d.Stream() {
	case 3:
		if d.B() && d.E() {
			return assoc.Consumed
		}
	case 4:
		if p.placed++; p.placed%2 == 1 {
			return assoc.DropUnacked
		}
	case 5:
		return assoc.AbortAssoc
	}
	return assoc.Queue
}

// Acked implements assoc.Source.
func (p *pullSource) Acked(rawio.Time, wire.StreamID, uint64) { p.acked++ }

// EveryCounterCounts fails where no story in a directory has told of a counter.
func EveryCounterCounts[T any](t *testing.T, dir string, stats T, elsewhere ...string) {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	for _, name := range files {
		told, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(told)
	}
	counters.Each(stats, func(name string, _ uint64) {
		if !slices.Contains(elsewhere, name) && !strings.Contains(all.String(), "\t"+name+" ") {
			t.Errorf("in no story %s counts", name)
		}
	})
}
