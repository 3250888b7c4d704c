//go:build !rawio_portable

package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

// said is what a log says.
type said struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	line chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(b)
	if bytes.Contains(b, []byte("refuses to send")) {
		s.line <- struct{}{}
	}
	return len(b), nil
}

// What this host does not let go is in the log at once, and Dial returns it: when it has happened
// again and again, or when its time is over before.
func TestDialNamesWhatThisHostRefuses(t *testing.T) {
	for name, open := range map[string]func() (rawio.Link, error){
		"raw": func() (rawio.Link, error) { return raw.Open(raw.Config{}) },
		"UDP": func() (rawio.Link, error) { return udp.Open(udp.Config{}) },
	} {
		ns, other := testns.New(t), testns.New(t)
		from := netip.MustParsePrefix("10.77.0.1/24")
		testns.Veth(ns, other, "cable", 1500, from, netip.MustParsePrefix("10.77.0.2/24"))
		ns.Prohibit(from.Addr())
		log := &said{line: make(chan struct{}, 100)}
		var tr *sctp.Transport
		ns.Do(func() error {
			l, err := open()
			if err == nil {
				tr, err = sctp.NewTransport(l, &sctp.TransportConfig{Logger: slog.New(slog.NewTextHandler(log, nil))})
			}
			return err
		})
		to := netip.MustParseAddrPort("10.77.0.2:7")
		_, err := tr.Dial(t.Context(), to, &sctp.Config{LocalAddrs: []netip.Addr{from.Addr()},
			RTOInitial: 10 * time.Millisecond})
		var refused *sctp.RefusedError
		must.That(t, errors.As(err, &refused) && errors.Is(err, syscall.EACCES) && refused.Path.Addr() == to.Addr(),
			"%s: %v", name, err)
		<-log.line
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = tr.Dial(ctx, to, &sctp.Config{LocalAddrs: []netip.Addr{from.Addr()}})
		cancel()
		must.That(t, errors.As(err, &refused) && errors.Is(err, syscall.EACCES) &&
			errors.Is(err, context.DeadlineExceeded), "%s, given up: %v", name, err)
		must.OK(t, tr.Close())
		log.mu.Lock()
		text := log.buf.String()
		log.mu.Unlock()
		must.That(t, strings.Count(text, "refuses to send") == 1 && strings.Contains(text, "path=10.77.0.2") &&
			strings.Contains(text, "permission denied"), "%s: the log says %s", name, text)
	}
}
