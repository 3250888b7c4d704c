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
	out         io.Writer
	addr        netip.Addr
	displayName string

	startedAt                 time.Time
	transmitted, received     int
	sendErrors, badReplies    int
	retransmits               uint64
	min, max, sum, sumSquares float64 // ms
	paths                     []rdma.PathStats
	repliesByPath             map[netip.Addr]int // replies

	silentSince time.Time // no ping was answered since; zero: all is well
	outages     int       // ended or not
	outageTime  time.Duration
}

// pingReply is an answer.
type pingReply struct {
	seq         uint64
	op          operation
	rtt         time.Duration
	contentGood bool
	retransmits uint64
	paths       []netip.Addr // of the peer, from which it came
}

func newReporter(o *options, addr netip.Addr, out io.Writer) *reporter {
	r := &reporter{options: o, out: out, addr: addr, displayName: addr.String(), min: math.Inf(1),
		repliesByPath: make(map[netip.Addr]int)}
	if !o.numeric && !o.self {
		if names, _ := net.LookupAddr(r.displayName); len(names) > 0 {
			r.displayName = fmt.Sprintf("%s (%s)", cli.Printable(strings.TrimSuffix(names[0], ".")), r.displayName)
		}
	}
	return r
}

func formatTimestamp(t time.Time) string {
	return fmt.Sprintf("[%d.%06d] ", t.Unix(), t.Nanosecond()/1000)
}

func (r *reporter) printLine(format string, args ...any) {
	if r.timestamps {
		fmt.Fprint(r.out, formatTimestamp(time.Now()))
	}
	fmt.Fprintf(r.out, format+"\n", args...)
}

func (r *reporter) printObject(v map[string]any) {
	if r.timestamps {
		v["time"] = float64(time.Now().UnixMicro()) / 1e6
	}
	b, _ := json.Marshal(v) // maps of numbers, strings and booleans always marshal
	fmt.Fprintf(r.out, "%s\n", b)
}

func (r *reporter) printStart(port uint16) {
	if r.asJSON {
		r.printObject(map[string]any{"type": "start", "host": r.host, "addr": r.addr.String(), "port": port,
			"size": r.size, "op": r.opName, "link": r.linkName})
		return
	}
	fmt.Fprintf(r.out, "DDPPING %s (%s) %d bytes of data by %s over %s, %s port %d\n", r.host, r.addr, r.size,
		r.opName, r.linkName, r.link.Protocol(), port)
}

func (r *reporter) countSent() {
	r.transmitted++
	if r.flood && !r.asJSON && !r.quiet {
		fmt.Fprint(r.out, ".")
	}
}

func (r *reporter) printReply(p pingReply) {
	ms := float64(p.rtt) / 1e6
	r.received++
	if !p.contentGood {
		r.badReplies++
	}
	r.min, r.max = min(r.min, ms), max(r.max, ms)
	r.sum += ms
	r.sumSquares += ms * ms
	for _, a := range p.paths {
		r.repliesByPath[a]++
	}
	r.endOutage()
	if r.quiet {
		return
	}
	if r.ringBell {
		fmt.Fprint(r.out, "\a")
	}
	switch {
	case r.asJSON:
		r.printObject(map[string]any{"type": "reply", "seq": p.seq, "op": p.op.String(), "bytes": r.size,
			"rtt_ms": ms, "good": p.contentGood,
			"retransmissions": p.retransmits, "paths": p.paths})
	case r.flood && p.contentGood:
		fmt.Fprint(r.out, "\b \b")
	default:
		r.printLine("%d bytes from %s: seq=%d op=%s time=%s ms%s", r.size, r.displayName, p.seq, p.op,
			r.formatMillis(ms), r.replyRemarks(p))
	}
}

// replyRemarks returns what is unusual about a reply.
func (r *reporter) replyRemarks(p pingReply) (s string) {
	if len(r.paths) > 1 {
		for i, a := range p.paths {
			s += []string{" via ", " and "}[min(i, 1)] + a.String()
		}
	}
	if p.retransmits > 0 {
		s += ", " + pluralize(int(p.retransmits), "retransmission")
	}
	if !p.contentGood {
		s += " BAD CONTENT"
	}
	return s
}

func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// formatMillis formats a time as ping does, with three significant digits.
func (r *reporter) formatMillis(ms float64) string {
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

// printUnanswered names a ping that has no answer yet.
func (r *reporter) printUnanswered(seq uint64) {
	switch {
	case r.quiet || r.flood && !r.asJSON:
	case r.asJSON:
		r.printObject(map[string]any{"type": "no_answer", "seq": seq})
	default:
		r.printLine("no answer yet for seq=%d", seq)
	}
}

// beginOutage begins an outage, unless there is one.
func (r *reporter) beginOutage(since time.Time) {
	if r.silentSince.IsZero() {
		r.silentSince = since
		r.outages++
	}
}

// endOutage ends an outage.
func (r *reporter) endOutage() {
	if r.silentSince.IsZero() {
		return
	}
	took := time.Since(r.silentSince)
	r.silentSince = time.Time{}
	r.outageTime += took
	r.printNote("outage", fmt.Sprintf("answers again after %.2f s without", took.Seconds()),
		map[string]any{"seconds": took.Seconds()})
}

// printNote prints a line about anything but an answer to one ping.
func (r *reporter) printNote(kind, text string, more map[string]any) {
	switch {
	case r.quiet:
	case r.asJSON:
		v := map[string]any{"type": kind, "text": text}
		maps.Copy(v, more)
		r.printObject(v)
	default:
		r.printLine("%s", text)
	}
}

// printSendError prints why a ping was not sent.
func (r *reporter) printSendError(seq uint64, why string) {
	r.sendErrors++
	text := why
	if !r.asJSON {
		text = fmt.Sprintf("From %s seq=%d: %s", r.addr, seq, why)
	}
	r.printNote("error", text, map[string]any{"seq": seq})
}

func pathState(p rdma.PathStats) string {
	state := map[sctp.PathState]string{sctp.PathUnconfirmed: "unconfirmed", sctp.PathActive: "active",
		sctp.PathPotentiallyFailed: "does not answer", sctp.PathInactive: "down"}[p.State]
	if p.Primary {
		state += ", primary"
	}
	return state
}

func describePath(p rdma.PathStats) string {
	return fmt.Sprintf("path %v -> %v: %s", p.Local.Addr(), p.Remote.Addr(), pathState(p))
}

// printPathChange prints a path that has changed.
func (r *reporter) printPathChange(p rdma.PathStats) {
	r.printNote("path", describePath(p), map[string]any{"local": p.Local.Addr(), "remote": p.Remote.Addr(),
		"state": pathState(p)})
}

// printSummary prints the summary. It returns the exit code of ping.
func (r *reporter) printSummary() int {
	took := time.Since(r.startedAt)
	code := exitOK
	if r.badReplies > 0 || r.received == 0 || r.deadline > 0 && r.received < r.count {
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
		mdev = math.Sqrt(max(0, r.sumSquares/n-avg*avg))
	} else {
		r.min = 0
	}
	if !r.silentSince.IsZero() {
		r.outageTime += time.Since(r.silentSince)
	}
	if r.asJSON {
		r.printObject(map[string]any{
			"type": "summary", "transmitted": r.transmitted, "received": r.received, "errors": r.sendErrors,
			"bad": r.badReplies, "loss_percent": percent,
			"time_ms": took.Milliseconds(), "rtt_min_ms": r.min, "rtt_avg_ms": avg, "rtt_max_ms": r.max,
			"rtt_mdev_ms":     mdev,
			"retransmissions": r.retransmits, "outages": r.outages, "outage_seconds": r.outageTime.Seconds(),
		})
		return code
	}
	fmt.Fprintf(r.out, "\n--- %s ddpping statistics ---\n", r.host)
	also := ""
	if r.sendErrors > 0 {
		also += fmt.Sprintf(", +%d errors", r.sendErrors)
	}
	if r.badReplies > 0 {
		also += fmt.Sprintf(", %d with bad content", r.badReplies)
	}
	fmt.Fprintf(r.out, "%d pings transmitted, %d received%s, %.4g%% packet loss, time %dms\n", r.transmitted,
		r.received, also, percent, took.Milliseconds())
	if r.received > 0 {
		fmt.Fprintf(r.out, "rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", r.min, avg, r.max, mdev)
	}
	if r.retransmits > 0 {
		fmt.Fprintln(r.out, pluralize(int(r.retransmits), "retransmission"))
	}
	if r.outages > 0 && r.received > 0 {
		still := ""
		if !r.silentSince.IsZero() {
			still = ", not over"
		}
		fmt.Fprintf(r.out, "%s, %.2f s in all%s\n", pluralize(r.outages, "outage"), r.outageTime.Seconds(), still)
	}
	for _, p := range r.paths {
		if len(r.paths) > 1 || r.verbose {
			fmt.Fprintf(r.out, "%s, %s, srtt %.3f ms, rto %v, mtu %d bytes, cwnd %d bytes\n", describePath(p),
				pluralize(r.repliesByPath[p.Remote.Addr()], "answer"),
				p.SRTT.Seconds()*1e3, p.RTO, p.MTU, p.Cwnd)
		}
	}
	return code
}
