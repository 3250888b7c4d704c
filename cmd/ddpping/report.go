package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"
)

// reporter prints what ping prints, or JSON.
type reporter struct {
	*options
	out  io.Writer
	addr netip.Addr
	name string

	transmitted, received int
	bad, missed           int
	min, max, sum, sum2   float64 // ms
}

func newReporter(o *options, addr netip.Addr, out io.Writer) *reporter {
	r := &reporter{options: o, out: out, addr: addr, name: addr.String(), min: math.Inf(1)}
	if !o.numeric && !o.self {
		if names, err := net.LookupAddr(r.name); err == nil && len(names) > 0 {
			r.name = fmt.Sprintf("%s (%s)", strings.TrimSuffix(names[0], "."), r.name)
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
	fmt.Fprintf(r.out, "DDPPING %s (%s) %d data octets by %s over %s, SCTP port %d\n", r.host, r.addr, r.size, r.op, r.transport, port)
}

func (r *reporter) sent() {
	r.transmitted++
	if r.flood && !r.json && !r.quiet {
		fmt.Fprint(r.out, ".")
	}
}

func (r *reporter) reply(seq uint64, op operation, rtt time.Duration, good bool) {
	ms := float64(rtt) / 1e6
	r.received++
	if !good {
		r.bad++
	}
	r.min, r.max = min(r.min, ms), max(r.max, ms)
	r.sum += ms
	r.sum2 += ms * ms
	if r.quiet {
		return
	}
	switch {
	case r.json:
		r.object(map[string]any{"type": "reply", "seq": seq, "op": op.String(), "octets": r.size, "rtt_ms": ms, "good": good})
	case r.flood && good:
		fmt.Fprint(r.out, "\b \b")
	default:
		verdict := ""
		if !good {
			verdict = " BAD CONTENT"
		}
		r.line("%d octets from %s: seq=%d op=%s time=%s ms%s", r.size, r.name, seq, op, short(ms), verdict)
	}
}

// short prints a time as ping does: three significant digits.
func short(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.3f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func (r *reporter) missing(seq uint64, op operation, waited time.Duration) {
	r.missed++
	if r.quiet {
		return
	}
	if r.json {
		r.object(map[string]any{"type": "missing", "seq": seq, "op": op.String()})
		return
	}
	r.line("no reply within %v: seq=%d op=%s", waited, seq, op)
}

// end prints the summary and returns the exit code.
func (r *reporter) end(took time.Duration) int {
	code := exitWell
	if r.bad > 0 || r.missed > 0 || r.received == 0 { // the ping that ^C cut off is not a lost one
		code = exitLost
	}
	lost := r.transmitted - r.received
	percent := 0.0
	if r.transmitted > 0 {
		percent = float64(lost) * 100 / float64(r.transmitted)
	}
	n := float64(r.received)
	avg, mdev := 0.0, 0.0
	if r.received > 0 {
		avg = r.sum / n
		mdev = math.Sqrt(max(0, r.sum2/n-avg*avg))
	} else {
		r.min = 0
	}
	if r.json {
		r.object(map[string]any{
			"type": "summary", "transmitted": r.transmitted, "received": r.received, "bad": r.bad, "loss_percent": percent,
			"time_ms": took.Milliseconds(), "rtt_min_ms": r.min, "rtt_avg_ms": avg, "rtt_max_ms": r.max, "rtt_mdev_ms": mdev,
		})
		return code
	}
	fmt.Fprintf(r.out, "\n--- %s ddpping statistics ---\n", r.host)
	bad := ""
	if r.bad > 0 {
		bad = fmt.Sprintf(", %d with bad content", r.bad)
	}
	fmt.Fprintf(r.out, "%d pings transmitted, %d received%s, %.4g%% loss, time %dms\n", r.transmitted, r.received, bad, percent, took.Milliseconds())
	if r.received > 0 {
		fmt.Fprintf(r.out, "rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", r.min, avg, r.max, mdev)
	}
	return code
}
