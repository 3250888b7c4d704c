package rdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Whoever waits for completions reads the link, and still stops when its context ends, whichever of
// several contexts that is.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t, nil)
		a, b := x.join(nil)
		go func() { // answers every message
			for i := uint64(0); ; i++ {
				var wcs [1]WC
				for n := 0; n == 0; n, _ = b.cq.Poll(wcs[:]) {
					if b.cq.Wait(t.Context()) != nil {
						return
					}
				}
				if wcs[0].Opcode != rdmap.WCRecv || wcs[0].Status != rdmap.StatusSuccess {
					return
				}
				b.recv(i, 0, 64)
				b.post(SendWR{Op: OpSend, Inline: []byte("pong"), Flags: Unsignaled})
			}
		}()
		b.recv(0, 0, 64)
		for i := range uint64(64) {
			a.recv(i, 0, 64)
			a.post(SendWR{Op: OpSend, Inline: []byte("ping"), Flags: Unsignaled})
			if wc := a.good(); wc.Opcode != rdmap.WCRecv {
				t.Fatalf("%v", wc.Opcode)
			}
			synctest.Wait()
		}
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			end := make(chan error)
			go func() { end <- a.cq.Wait(ctx) }()
			synctest.Wait()
			cancel()
			if err := <-end; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}
