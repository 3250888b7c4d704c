package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// reporter prints what ping prints, or JSON.
type reporter struct {
	*options
	out  io.Writer
	addr netip.Addr
	name string

	started               time.Time
	transmitted, received int
	errors, bad           int
	retransmits           uint64
	min, max, sum, sum2   float64 // ms
	paths                 []rdma.PathStats
	carried               map[netip.Addr]int // replies

	quietSince time.Time // no ping has been answered since; zero: all is well
	outages    int       // that are over, or not
	without    time.Duration
}

// reply is an answer.
type reply struct {
	seq         uint64
	op          operation
	rtt         time.Duration
	good        bool
	retransmits uint64
	paths       []netip.Addr // of the peer, that it came from
}

func newReporter(o *options, addr netip.Addr, out io.Writer) *reporter {
	r := &reporter{options: o, out: out, addr: addr, name: addr.String(), min: math.Inf(1), carried: make(map[netip.Addr]int)}
	if !o.numeric && !o.self {
		if names, _ := net.LookupAddr(r.name); len(names) > 0 {
			r.name = fmt.Sprintf("%s (%s)", cli.Printable(strings.TrimSuffix(names[0], ".")), r.name)
		}
	}
	return r
}

func timestamp(t time.Time) string {
	return fmt.Sprintf("[%d.%06d] ", t.Unix(), t.Nanosecond()/1000)
}

func (r *reporter) line(format string, args ...any) {
	if r.stamp {
		fmt.Fprint(r.out, timestamp(time.Now()))
	}
	fmt.Fprintf(r.out, format+"\n", args...)
}

func (r *reporter) object(v map[string]any) {
	if r.stamp {
		v["time"] = float64(time.Now().UnixMicro()) / 1e6
	}
	b, _ := json.Marshal(v) // maps of numbers, strings and booleans always marshal
	fmt.Fprintf(r.out, "%s\n", b)
}

func (r *reporter) begin(port uint16) {
	if r.json {
		r.object(map[string]any{"type": "start", "host": r.host, "addr": r.addr.String(), "port": port, "size": r.size, "op": r.op, "link": r.transport})
		return
	}
	fmt.Fprintf(r.out, "DDPPING %s (%s) %d bytes of data by %s over %s, SCTP port %d\n", r.host, r.addr, r.size, r.op, r.transport, port)
}

func (r *reporter) sent() {
	r.transmitted++
	if r.flood && !r.json && !r.quiet {
		fmt.Fprint(r.out, ".")
	}
}

func (r *reporter) reply(p reply) {
	ms := float64(p.rtt) / 1e6
	r.received++
	if !p.good {
		r.bad++
	}
	r.min, r.max = min(r.min, ms), max(r.max, ms)
	r.sum += ms
	r.sum2 += ms * ms
	for _, a := range p.paths {
		r.carried[a]++
	}
	r.answering()
	if r.quiet {
		return
	}
	if r.audible {
		fmt.Fprint(r.out, "\a")
	}
	switch {
	case r.json:
		r.object(map[string]any{"type": "reply", "seq": p.seq, "op": p.op.String(), "bytes": r.size, "rtt_ms": ms, "good": p.good,
			"retransmissions": p.retransmits, "paths": p.paths})
	case r.flood && p.good:
		fmt.Fprint(r.out, "\b \b")
	default:
		r.line("%d bytes from %s: seq=%d op=%s time=%s ms%s", r.size, r.name, p.seq, p.op, r.short(ms), r.remarks(p))
	}
}

// remarks are what is not ordinary about a reply.
func (r *reporter) remarks(p reply) (s string) {
	if len(r.paths) > 1 {
		for i, a := range p.paths {
			s += []string{" via ", " and "}[min(i, 1)] + a.String()
		}
	}
	if p.retransmits > 0 {
		s += ", " + plural(int(p.retransmits), "retransmission")
	}
	if !p.good {
		s += " BAD CONTENT"
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// short prints a time as ping does: three significant digits.
func (r *reporter) short(ms float64) string {
	switch {
	case r.precise:
		return fmt.Sprintf("%.3f", ms)
	case ms < 10:
		return fmt.Sprintf("%.3f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// unanswered names a ping that has no answer yet.
func (r *reporter) unanswered(seq uint64) {
	switch {
	case r.quiet || r.flood && !r.json:
	case r.json:
		r.object(map[string]any{"type": "no_answer", "seq": seq})
	default:
		r.line("no answer yet for seq=%d", seq)
	}
}

// silent begins an outage, unless there is one.
func (r *reporter) silent(since time.Time) {
	if r.quietSince.IsZero() {
		r.quietSince = since
		r.outages++
	}
}

// answering ends an outage.
func (r *reporter) answering() {
	if r.quietSince.IsZero() {
		return
	}
	took := time.Since(r.quietSince)
	r.quietSince = time.Time{}
	r.without += took
	r.note("outage", fmt.Sprintf("answers again after %.2f s without", took.Seconds()), map[string]any{"seconds": took.Seconds()})
}

// note prints a line about something that is no answer to one ping.
func (r *reporter) note(kind, text string, more map[string]any) {
	switch {
	case r.quiet:
	case r.json:
		v := map[string]any{"type": kind, "text": text}
		maps.Copy(v, more)
		r.object(v)
	default:
		r.line("%s", text)
	}
}

// refused says why a ping did not get away.
func (r *reporter) refused(seq uint64, why string) {
	r.errors++
	text := why
	if !r.json {
		text = fmt.Sprintf("From %s seq=%d: %s", r.addr, seq, why)
	}
	r.note("error", text, map[string]any{"seq": seq})
}

func pathState(p rdma.PathStats) string {
	state := map[sctp.PathState]string{sctp.PathUnconfirmed: "unconfirmed", sctp.PathActive: "active",
		sctp.PathPotentiallyFailed: "does not answer", sctp.PathInactive: "down"}[p.State]
	if p.Primary {
		state += ", primary"
	}
	return state
}

func between(p rdma.PathStats) string {
	return fmt.Sprintf("path %v -> %v: %s", p.Local.Addr(), p.Remote.Addr(), pathState(p))
}

// path shows a path that has changed.
func (r *reporter) path(p rdma.PathStats) {
	r.note("path", between(p), map[string]any{"local": p.Local.Addr(), "remote": p.Remote.Addr(), "state": pathState(p)})
}

// end prints the summary and returns the exit code, that of ping.
func (r *reporter) end() int {
	took := time.Since(r.started)
	code := exitWell
	if r.bad > 0 || r.received == 0 || r.deadline > 0 && r.received < r.count {
		code = exitLost
	}
	percent := 0.0
	if r.transmitted > 0 {
		percent = float64(r.transmitted-r.received) * 100 / float64(r.transmitted)
	}
	n := float64(r.received)
	avg, mdev := 0.0, 0.0
	if r.received > 0 {
		avg = r.sum / n
		mdev = math.Sqrt(max(0, r.sum2/n-avg*avg))
	} else {
		r.min = 0
	}
	if !r.quietSince.IsZero() {
		r.without += time.Since(r.quietSince)
	}
	if r.json {
		r.object(map[string]any{
			"type": "summary", "transmitted": r.transmitted, "received": r.received, "errors": r.errors, "bad": r.bad, "loss_percent": percent,
			"time_ms": took.Milliseconds(), "rtt_min_ms": r.min, "rtt_avg_ms": avg, "rtt_max_ms": r.max, "rtt_mdev_ms": mdev,
			"retransmissions": r.retransmits, "outages": r.outages, "outage_seconds": r.without.Seconds(),
		})
		return code
	}
	fmt.Fprintf(r.out, "\n--- %s ddpping statistics ---\n", r.host)
	also := ""
	if r.errors > 0 {
		also += fmt.Sprintf(", +%d errors", r.errors)
	}
	if r.bad > 0 {
		also += fmt.Sprintf(", %d with bad content", r.bad)
	}
	fmt.Fprintf(r.out, "%d pings transmitted, %d received%s, %.4g%% packet loss, time %dms\n", r.transmitted, r.received, also, percent, took.Milliseconds())
	if r.received > 0 {
		fmt.Fprintf(r.out, "rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", r.min, avg, r.max, mdev)
	}
	if r.retransmits > 0 {
		fmt.Fprintln(r.out, plural(int(r.retransmits), "retransmission"))
	}
	if r.outages > 0 && r.received > 0 {
		still := ""
		if !r.quietSince.IsZero() {
			still = ", not over"
		}
		fmt.Fprintf(r.out, "%s, %.2f s in all%s\n", plural(r.outages, "outage"), r.without.Seconds(), still)
	}
	for _, p := range r.paths {
		if len(r.paths) > 1 || r.verbose {
			fmt.Fprintf(r.out, "%s, %s, srtt %.3f ms, rto %v, mtu %d bytes, cwnd %d bytes\n", between(p), plural(r.carried[p.Remote.Addr()], "answer"),
				p.SRTT.Seconds()*1e3, p.RTO, p.MTU, p.Cwnd)
		}
	}
	return code
}
