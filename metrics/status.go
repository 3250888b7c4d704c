package metrics

import (
	"bytes"
	_ "embed" // of the page
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
				"\t streams:%d/%d outstanding:%d unacked:%d rwnd:%d peer_rwnd:%d buffered:%d mem:%d "+
					"retrans:%d fast:%d timeouts:%d data_out:%d data_in:%d bytes_in:%d\n",
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

var (
	//go:embed status.html
	statusHTML string

	statusPage = template.Must(template.New("").Funcs(template.FuncMap{"side": sideLabel, "peer": peerLabel,
		"at": addrLabel, "age": ageSince, "ms": toMilliseconds}).Parse(statusHTML))
)
