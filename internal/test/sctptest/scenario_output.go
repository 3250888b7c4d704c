package sctptest

// What a story tells: packets, events, and what associations report.

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func (s *Scenario) formatTime(t rawio.Time) string {
	if t == rawio.Never {
		return "never"
	}
	return fmt.Sprintf("%.6f", t.Sub(s.start).Seconds())
}

// describeCounters tells of those that are not 0.
func (s *Scenario) describeCounters(all any) {
	counters.Each(all, func(name string, v uint64) {
		if v != 0 {
			fmt.Fprintf(&s.out, "\t%s %d\n", name, v)
		}
	})
}

// describeStats tells what an association counts and what it knows of its paths.
func (s *Scenario) describeStats(a *assoc.Assoc) {
	st := a.Stats()
	s.describeCounters(st.Counters)
	fmt.Fprintf(&s.out, "\tstreams %d %d, window %d, buffered %d, peer's %d, outstanding %d in %d, queued %d\n",
		st.OutStreams, st.InStreams,
		st.RecvWindow, st.Buffered, st.PeerWindow, st.Outstanding, st.Unacked, st.Queued)
	for i, h := range s.Hosts {
		if slices.Contains(h.Assocs, a) {
			fmt.Fprintf(&s.out, "\treported %d, placed %d, lost %d, at most %d packets at once\n", s.pulls[i].acked,
				s.pulls[i].placed, h.Lost, h.Most)
		}
	}
	for i, p := range Paths(a) {
		if a.Unverified(i) {
			fmt.Fprint(&s.out, "\tunverified")
		}
		fmt.Fprintf(&s.out, "\t%v>%v state %d", p.Local, p.Remote, p.State)
		if p.Primary {
			fmt.Fprint(&s.out, " primary")
		}
		fmt.Fprintf(&s.out, " mtu %d srtt %v var %v rto %v cwnd %d ssthresh %d flight %d errors %d\n", p.MaxPacket,
			p.SRTT,
			p.RTTVar, p.RTO, p.Cwnd, p.Ssthresh, p.Flight, p.Errors)
	}
}

// writeHappened writes down what has happened since: packets, and behind those of the same time
// events.
func (s *Scenario) writeHappened() {
	if s.World == nil {
		return
	}
	type line struct {
		at   rawio.Time
		text string
	}
	var list []line
	for ; s.told < len(s.Sent); s.told++ {
		x := s.Sent[s.told]
		list = append(list, line{x.At, s.describePacket(&x)})
	}
	for i, h := range s.Hosts {
		for ; s.events[i] < len(h.Events); s.events[i]++ {
			e := h.Events[s.events[i]]
			text := fmt.Sprintf("%c: %v", "ab"[i], e.Kind)
			if e.Path.IsValid() {
				text += " " + e.Path.String()
			}
			if e.Kind == assoc.EventSendFailed {
				text += fmt.Sprintf(" %d on %d, unsent %v", e.Token, e.Stream, e.Unsent)
			}
			if e.Kind == assoc.EventAdaptation {
				text += fmt.Sprintf(" %#x", e.Adaptation)
			}
			if e.Err != nil {
				text += ": " + e.Err.Error()
			}
			var peer *assoc.PeerError
			var aborted *assoc.AbortError
			if errors.As(e.Err, &peer) {
				text += fmt.Sprintf(" %x", peer.Causes)
			} else if errors.As(e.Err, &aborted) {
				text += fmt.Sprintf(" %x", aborted.Causes)
			}
			list = append(list, line{e.At, text})
		}
	}
	for i, h := range s.Hosts {
		for _, a := range h.Assocs {
			if err := a.Audit(0); err != nil {
				s.Errorf("%c: %v", "ab"[i], err)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y line) int { return cmp.Compare(x.at, y.at) })
	for _, x := range list {
		fmt.Fprintf(&s.out, "\t%s %s\n", s.formatTime(x.at), x.text)
	}
}

// maxChunks is of how many chunks a packet's line tells.
const maxChunks = 80

// describePacket tells of a packet: tags are numbered as they come, TSNs count from the first of
// their host.
func (s *Scenario) describePacket(x *Capture) string {
	name := func(tag uint32) string {
		if tag == 0 {
			return "0"
		}
		if s.tags[tag] == "" {
			s.tags[tag] = fmt.Sprintf("t%d", len(s.tags)+1)
		}
		return s.tags[tag]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%c %v>%v %s %d", "ab"[x.From], x.Local, x.Remote, name(x.Pkt.VTag()), len(x.Pkt))
	if x.ECN != 0 {
		fmt.Fprintf(&b, " ecn %d", x.ECN)
	}
	if x.Fragment != 0 {
		fmt.Fprintf(&b, " fragments of %d", x.Fragment)
	}
	cs := x.Pkt.Chunks()
	n := 0
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if n++; n <= maxChunks {
			fmt.Fprintf(&b, " %s(%s)", chunkWord(c.Type()), s.describeChunk(x.From, c, name))
		}
	}
	if n > maxChunks {
		fmt.Fprintf(&b, " and %d more, %08x in all", n-maxChunks, crc32.ChecksumIEEE(x.Pkt))
	}
	return b.String()
}

// describeChunk tells what a chunk says.
func (s *Scenario) describeChunk(from int, c wire.Chunk, name func(uint32) string) string {
	own := func(t wire.TSN) int32 { return int32(t - s.tsns[from]) }
	peers := func(t wire.TSN) int32 { return int32(t - s.tsns[1-from]) }
	var f []string
	if c.Flags() != 0 {
		f = append(f, fmt.Sprintf("flags %x", c.Flags()))
	}
	add := func(format string, args ...any) { f = append(f, fmt.Sprintf(format, args...)) }
	switch c.Type() {
	case wire.ChunkInit, wire.ChunkInitAck:
		i, _ := wire.AsInit(c)
		s.tsns[from] = i.TSN()
		add("tag %s rwnd %d streams %d %d", name(i.Tag()), i.ARwnd(), i.OutStreams(), i.InStreams())
		ps := i.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			if p.Type() == wire.ParamStateCookie {
				s.cookies[from], s.given[from] = slices.Clone(p.Value()), i.Tag()
				add("cookie of %d", len(p.Value()))
			} else {
				add("%04x %x", uint16(p.Type()), p.Value())
			}
		}
	case wire.ChunkData:
		d, _ := wire.AsData(c)
		add("%d stream %d ssn %d, %d octets %08x", own(d.TSN()), d.Stream(), d.SSN(), len(d.Payload()),
			crc32.ChecksumIEEE(d.Payload()))
	case wire.ChunkSack:
		k, _ := wire.AsSack(c)
		add("%d rwnd %d", peers(k.CumTSN()), k.ARwnd())
		for i := range k.NumGaps() {
			start, end := k.Gap(i)
			add("%d-%d", start, end)
		}
		for i := range k.NumDups() {
			add("twice %d", peers(k.Dup(i)))
		}
	case wire.ChunkShutdown:
		d, _ := wire.AsShutdown(c)
		add("%d", peers(d.CumTSN()))
	case wire.ChunkECNE:
		e, _ := wire.AsECNE(c)
		add("%d", peers(e.TSN()))
	case wire.ChunkCWR:
		w, _ := wire.AsCWR(c)
		add("%d", own(w.TSN()))
	case wire.ChunkHeartbeat, wire.ChunkHeartbeatAck: // but for the nonce
		if h, err := wire.AsHeartbeat(c); err == nil && len(h.Info()) > 8 {
			add("%x", h.Info()[8:])
		} else {
			add("%d octets", len(c))
		}
	case wire.ChunkCookieEcho, wire.ChunkPad:
		add("%d octets", len(c))
	default:
		if v := c.Value(); len(v) > 0 {
			add("%x", v[:min(len(v), 64)])
		}
	}
	return strings.Join(f, ", ")
}
