// Package loadgen sets up many associations between two Transports, for programs that measure them.
package loadgen

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/rddp-go/rddp/sctp"
)

const (
	atOnce  = 64   // set-ups at a time
	backlog = 1024 // who accepts has to wait for a processor as all others do
)

// Limits are those of a Transport that takes that many from one peer: none.
func Limits() *sctp.TransportConfig {
	return &sctp.TransportConfig{MaxPerSource: -1, MaxSetups: -1, MaxAnswers: -1}
}

// Connect sets up n associations from a to a port of b, whose address that is with it. Each of b's,
// and of those that follow, is served by a goroutine.
func Connect(a, b *sctp.Transport, to netip.AddrPort, cfg *sctp.Config, n int, serve func(*sctp.Conn)) ([]*sctp.Conn,
	error) {
	c := *cfg
	c.Backlog = max(c.Backlog, backlog)
	l, err := b.Listen(to.Port(), &c)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	conns, errs := make([]*sctp.Conn, n), make([]error, atOnce)
	var wg sync.WaitGroup
	for g := range atOnce {
		wg.Go(func() {
			for i := g; i < n && errs[g] == nil; i += atOnce {
				conns[i], errs[g] = a.Dial(context.Background(), to, &c)
			}
		})
	}
	wg.Wait()
	return conns, errors.Join(errs...)
}
