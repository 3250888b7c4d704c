package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// StatusOptions say which clients may look.
type StatusOptions struct {
	// Remote answers other hosts too. The default is this host only, since peers and their traffic
	// are private.
	Remote bool
	// Hosts are names of this host under which the pages may be asked for, besides localhost and
	// addresses. The name of a proxy in front of it is an example. Any other name is refused, as a
	// foreign page may lead it here (DNS rebinding).
	Hosts []string
	// Pprof serves profiles of the process too, for go tool pprof: /pprof/heap, /pprof/goroutine,
	// /pprof/profile?seconds=10 and so on. They reveal what the program is made of, and cost it
	// time. No page of another site can ask for one.
	Pprof bool
}

// Status serves what each association, path, QP and region of the Collector's Transports and
// Devices is doing. / is a page that refreshes itself until stopped, /json has durations in
// nanoseconds, and /text looks like ss -i. It answers GET only, contains no STags, keys or cookies,
// and changes nothing. It registers itself nowhere: mount it anywhere, under a prefix by
// http.StripPrefix. opts may be nil.
func Status(c *Collector, opts *StatusOptions) http.Handler {
	mux := http.NewServeMux()
	var o StatusOptions
	if opts != nil {
		o = *opts
	}
	handle := func(path string, h http.HandlerFunc) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if from, err := netip.ParseAddrPort(r.RemoteAddr); !o.Remote &&
				(err != nil || !from.Addr().Unmap().IsLoopback()) {
				http.Error(w, "this page is for the host itself", http.StatusForbidden)
				return
			}
			if refuseRequest(w, r, o.Hosts, false) {
				return
			}
			w.Header().Set("Cache-Control", "no-store")
			h(w, r)
		})
	}
	serve := func(path, kind string, write func(http.ResponseWriter, *http.Request, map[string]rdma.Snapshot)) {
		handle(path, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", kind+"; charset=utf-8")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
			write(w, r, c.takeSnapshots())
		})
	}
	serve("/{$}", "text/html", writeHTML)
	serve("/json", "application/json", func(w http.ResponseWriter, _ *http.Request, s map[string]rdma.Snapshot) {
		_ = json.NewEncoder(w).Encode(s)
	})
	serve("/text", "text/plain", func(w http.ResponseWriter, _ *http.Request, s map[string]rdma.Snapshot) {
		fmt.Fprint(w, statusText(s))
	})
	if o.Pprof {
		handle("/pprof/{profile}", serveProfile)
	}
	return mux
}

// takeSnapshots returns what each source is doing, by its name.
func (c *Collector) takeSnapshots() map[string]rdma.Snapshot {
	names, sources := c.sortedSources()
	all := make(map[string]rdma.Snapshot)
	for _, name := range names {
		switch s := sources[name]; {
		case s.device != nil:
			all[name] = s.device.Snapshot()
		case s.transport != nil:
			all[name] = rdma.Snapshot{Associations: s.transport.Snapshot()}
		}
	}
	return all
}

// statusText is the text in the manner of ss -i.
func statusText(all map[string]rdma.Snapshot) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		fmt.Fprintf(&b, "%s: %d associations, %d QPs, %d regions\n", name, len(s.Associations), len(s.QPs),
			len(s.Regions))
		for _, a := range s.Associations {
			fmt.Fprintf(&b, "%-17v %6d queued  port %d  peer %v  %s, %v old\n", a.State, a.Queued, a.LocalPort,
				a.Remote, sideLabel(a), ageSince(a.Since))
			fmt.Fprintf(&b,
				"\t streams:%d/%d outstanding:%d unacked:%d rwnd:%d peer_rwnd:%d buffered:%d mem:%d retrans:%d fast:%d timeouts:%d data_out:%d data_in:%d bytes_in:%d\n",
				a.OutStreams, a.InStreams, a.Outstanding, a.Unacked, a.RecvWindow, a.PeerWindow, a.Buffered, a.Memory,
				a.Retransmits, a.FastRetransmits, a.Timeouts,
				a.DataOut, a.DataIn, a.DataOctetsIn)
			for _, p := range a.Paths {
				primary := ""
				if p.Primary {
					primary = " primary"
				}
				if p.Suspected {
					primary += " suspected"
				}
				fmt.Fprintf(&b,
					"\t path %s -> %s: %v%s %s cwnd:%d ssthresh:%s flight:%d rtt:%.3f/%.3f rto:%d mtu:%d errors:%d\n",
					addrLabel(p.Local), addrLabel(p.Remote), p.State, primary, strings.ToLower(p.Controller),
					p.Cwnd, ssthreshLabel(p), p.Flight, toMilliseconds(p.SRTT), toMilliseconds(p.RTTVar),
					p.RTO.Milliseconds(), p.MTU, p.Errors)
			}
			for _, s := range a.Streams {
				fmt.Fprintf(&b, "\t stream %d next_out:%d next_in:%d waiting:%d\n", s.ID, s.NextOut, s.NextIn,
					s.Waiting)
			}
		}
		for _, q := range s.QPs {
			fmt.Fprintf(&b,
				"QP %d %s  peer %s  %v old  pd:%d stream:%d ird:%d ord:%d mulpdu:%d in_process:%d in:%d out:%d\n",
				q.Num, q.State, peerLabel(q), ageSince(q.Since), q.PD, q.SCTP, q.IRD, q.ORD, q.MULPDU, q.InProcess,
				q.Stream.In, q.Stream.Out)
		}
		for _, r := range s.Regions {
			valid := ""
			if !r.Valid {
				valid = " invalidated"
			}
			fmt.Fprintf(&b, "region pd:%d %d bytes %s%s\n", r.PD, r.Octets, r.Access, valid)
		}
	}
	return b.String()
}

func peerLabel(q rdma.QPSnapshot) string {
	if !q.Remote.IsValid() {
		return "-"
	}
	return q.Remote.String()
}

// addrLabel is where a path ends; a link that is not over UDP has no port.
func addrLabel(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid():
		return "*" // the host has not chosen one yet
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}

func sideLabel(a *sctp.Snapshot) string {
	if a.Passive {
		return "set up by the peer"
	}
	return "set up here"
}

func ageSince(since time.Time) time.Duration { return time.Since(since).Truncate(time.Second) }

// ssthreshLabel is - as long as nothing was lost.
func ssthreshLabel(p sctp.PathStats) string {
	if p.Ssthresh >= math.MaxInt32 {
		return "-"
	}
	return strconv.Itoa(p.Ssthresh)
}

func toMilliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// writeHTML writes the page. The template escapes all that it is given. A slow reader can hold the
// page (WCAG 2.2.1).
func writeHTML(w http.ResponseWriter, r *http.Request, all map[string]rdma.Snapshot) {
	hold := r.URL.Query().Has("hold")
	if !hold {
		w.Header().Set("Refresh", "5")
	}
	// A client that has gone does not see the error.
	_ = statusPage.Execute(w, map[string]any{"All": all, "Hold": hold,
		"Now": time.Now().UTC().Format("2006-01-02 15:04:05 UTC")})
}

var statusPage = template.Must(template.New("").Funcs(template.FuncMap{"side": sideLabel, "peer": peerLabel, "at": addrLabel, "age": ageSince, "ms": toMilliseconds}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>rddp: associations</title>
<style>
:root { color-scheme: light dark }
body { font: 15px/1.4 system-ui, sans-serif; margin: 1em; color: CanvasText; background: Canvas }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin-bottom: 1.5em; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: bold; padding: .3em 0 }
th, td { border: 1px solid GrayText; padding: .2em .5em; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
</style></head><body><main>
<h1>What rddp is doing</h1>
<p>{{.Now}}. {{if .Hold}}<a href=".">Load this page anew every five seconds</a>{{else}}This page loads itself anew every five seconds: <a href="?hold">hold it</a>{{end}}; the same as <a href="json">JSON</a> and as <a href="text">text</a>.</p>
{{range $name, $s := .All}}<h2>{{$name}}</h2>
<div class="wide" tabindex="0" role="region" aria-label="associations of {{$name}}"><table><caption>{{len $s.Associations}} associations</caption>
<tr><th scope="col">peer</th><th scope="col">state</th><th scope="col">age</th><th scope="col">side</th><th scope="col">queued, bytes</th><th scope="col">outstanding, bytes</th><th scope="col">own window, bytes</th><th scope="col">peer's window, bytes</th><th scope="col">retransmissions</th><th scope="col">timeouts</th><th scope="col">streams out/in</th><th scope="col">memory, bytes</th></tr>
{{range $s.Associations}}<tr><td>{{.Remote}}</td><td>{{.State}}</td><td>{{age .Since}}</td><td>{{side .}}</td><td>{{.Queued}}</td><td>{{.Outstanding}}</td><td>{{.RecvWindow}}</td><td>{{.PeerWindow}}</td><td>{{.Retransmits}}</td><td>{{.Timeouts}}</td><td>{{.OutStreams}}/{{.InStreams}}</td><td>{{.Memory}}</td></tr>
{{end}}</table></div>
<div class="wide" tabindex="0" role="region" aria-label="paths of {{$name}}"><table><caption>Paths</caption>
<tr><th scope="col">path</th><th scope="col">state</th><th scope="col">congestion control</th><th scope="col">cwnd, bytes</th><th scope="col">in flight, bytes</th><th scope="col">round trip, ms</th><th scope="col">RTO, ms</th><th scope="col">MTU, bytes</th></tr>
{{range $s.Associations}}{{range .Paths}}<tr><td>{{at .Local}} to {{at .Remote}}</td><td>{{.State}}{{if .Suspected}}, suspected{{end}}{{if .Primary}}, primary{{end}}</td><td>{{.Controller}}</td><td>{{.Cwnd}}</td><td>{{.Flight}}</td><td>{{printf "%.3f" (ms .SRTT)}}</td><td>{{printf "%.0f" (ms .RTO)}}</td><td>{{.MTU}}</td></tr>
{{end}}{{end}}</table></div>
<div class="wide" tabindex="0" role="region" aria-label="streams of {{$name}}"><table><caption>Streams that ordered messages have used</caption>
<tr><th scope="col">stream</th><th scope="col">peer</th><th scope="col">next SSN out</th><th scope="col">next SSN in</th><th scope="col">messages that wait for an earlier one</th></tr>
{{range $a := $s.Associations}}{{range .Streams}}<tr><td>{{.ID}}</td><td>{{$a.Remote}}</td><td>{{.NextOut}}</td><td>{{.NextIn}}</td><td>{{.Waiting}}</td></tr>
{{end}}{{end}}</table></div>
{{with $s.QPs}}<div class="wide" tabindex="0" role="region" aria-label="queue pairs of {{$name}}"><table><caption>{{len .}} queue pairs</caption>
<tr><th scope="col">QP</th><th scope="col">state</th><th scope="col">peer</th><th scope="col">age</th><th scope="col">domain</th><th scope="col">SCTP stream</th><th scope="col">IRD/ORD</th><th scope="col">messages in</th><th scope="col">messages out</th></tr>
{{range .}}<tr><td>{{.Num}}</td><td>{{.State}}</td><td>{{peer .}}</td><td>{{age .Since}}</td><td>{{.PD}}</td><td>{{.SCTP}}</td><td>{{.IRD}}/{{.ORD}}</td><td>{{.Stream.In}}</td><td>{{.Stream.Out}}</td></tr>
{{end}}</table></div>{{end}}
{{with $s.Regions}}<div class="wide" tabindex="0" role="region" aria-label="regions of {{$name}}"><table><caption>{{len .}} regions</caption>
<tr><th scope="col">domain</th><th scope="col">bytes</th><th scope="col">rights</th><th scope="col">valid</th></tr>
{{range .}}<tr><td>{{.PD}}</td><td>{{.Octets}}</td><td>{{.Access}}</td><td>{{.Valid}}</td></tr>
{{end}}</table></div>{{end}}
{{end}}</main></body></html>
`))
