// Package monitor shows what a tool is doing: over HTTP while it runs (--metrics), and on a
// terminal (--stat).
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/metrics"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma"
)

// Metrics serves the counters of a tool's devices while it runs, if --metrics asks for it. Without
// that flag its methods do nothing.
type Metrics struct {
	addr            string
	connIdleTimeout time.Duration // how long a connection may be silent; 0: idleTimeout
	collector       *metrics.Collector
	server          *http.Server
	serverDone      chan struct{} // closed when the server has stopped
}

// These bound what clients of --metrics can hold. A scrape takes a connection for a moment. Or a
// client keeps one for all its scrapes, which are more frequent than this.
const (
	idleTimeout     = 2 * time.Minute
	writeTimeout    = time.Minute
	maxHeaderOctets = 16 << 10
	maxConns        = 100
)

// Add defines the flag.
func (m *Metrics) Add(fs *pflag.FlagSet) {
	fs.StringVar(&m.addr, "metrics", "",
		"serve the counters over HTTP on `host:port` meanwhile: /metrics for Prometheus, /debug/vars as JSON, "+
			"/status/ for people on this host; :port is every address of this host, and a name that stands here is "+
			"one that browsers on this host may ask for")
}

// Open begins to serve and says on w where.
func (m *Metrics) Open(w io.Writer) error {
	if m.addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(m.addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return cli.Usagef("--metrics %s: it is an address and a TCP port, such as localhost:9100, or :9100 for "+
			"every address of this host", m.addr)
	}
	l, err := net.Listen("tcp", m.addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--metrics %s: the TCP port is in use by another program: stop it or choose another", m.addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("--metrics %s: this host does not have the address", m.addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("--metrics %s: ports below 1024 need a privilege: choose another", m.addr)
	case err != nil:
		return fmt.Errorf("--metrics %s: %v", m.addr, err)
	}
	m.collector = metrics.NewCollector()
	hosts := []string{host}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	mux := http.NewServeMux()
	mux.Handle("/", metrics.Handler(m.collector, hosts...))
	mux.Handle("/status/", http.StripPrefix("/status",
		metrics.Status(m.collector, &metrics.StatusOptions{Hosts: hosts})))
	idle := cmp.Or(m.connIdleTimeout, idleTimeout)
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: min(idle, 10*time.Second), ReadTimeout: idle,
		IdleTimeout: idle, WriteTimeout: writeTimeout, MaxHeaderBytes: maxHeaderOctets,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)} // mistakes of clients are not for the terminal
	m.serverDone = make(chan struct{})
	go func() {
		defer close(m.serverDone)
		_ = m.server.Serve(&limitedListener{Listener: l, slots: make(chan struct{}, maxConns)}) // until Close
	}()
	fmt.Fprintf(w, "metrics: http://%s/metrics\n", l.Addr())
	return nil
}

// limitedListener is a Listener with a limited number of connections. It closes one more at once,
// so that new clients do not wait for those that stay.
type limitedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a connection that gets a place.
func (f *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case f.slots <- struct{}{}:
			return &slotConn{Conn: c, freeSlot: sync.OnceFunc(func() { <-f.slots })}, nil
		default:
			c.Close()
		}
	}
}

// slotConn is a connection that holds a place.
type slotConn struct {
	net.Conn
	freeSlot func()
}

// Close gives the place back.
func (p *slotConn) Close() error {
	defer p.freeSlot()
	return p.Conn.Close()
}

// maxStatusOctets is how much of an answer PrintStatus reads.
const maxStatusOctets = 64 << 20

// PrintStatus prints what the tool that serves its metrics at addr is doing.
func PrintStatus(ctx context.Context, addr string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/status/text", nil)
	if err != nil {
		return cli.Usagef("--stat %s: it is the address that --metrics of a running tool has, such as localhost:9100",
			addr)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("--stat %s: nobody serves there: start ddpping or ddpbench with --metrics %s (%v)", addr,
			addr, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("--stat %s: the answer is %s: it is for the host itself, and for tools of this release",
			addr, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxStatusOctets))
	if _, wrote := io.WriteString(w, cli.PrintableLines(string(b))); err == nil {
		err = wrote
	}
	return err
}

// Device serves a device and its link under a name. l may be nil.
func (m *Metrics) Device(name string, d *rdma.Device, l rawio.Link) {
	if m.collector == nil {
		return
	}
	m.collector.AddDevice(name, d)
	if l != nil {
		m.collector.AddLink(name, l)
	}
}

// Close stops serving.
func (m *Metrics) Close() {
	if m.server != nil {
		m.server.Close()
		<-m.serverDone
	}
}
