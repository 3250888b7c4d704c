//go:build !rawio_portable

package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

// The far end of a cable takes no more than 1400 octets from one moment on, and nobody says so: the
// route still takes 1500. What is under way arrives in fragments, or the association ends by an
// error that says why.
func TestMTUFallsBelowTheRoutesWithoutAWord(t *testing.T) {
	for name, open := range map[string]func() (rawio.Link, error){
		"raw": func() (rawio.Link, error) { return raw.Open(raw.Config{}) },
		// a segmented packet passes whatever its length
		"UDP": func() (rawio.Link, error) { return udp.Open(udp.Config{NoOffload: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				end := func(ns *testns.NS) (tr *sctp.Transport) {
					ns.Do(func() error {
						l, err := open()
						if err == nil {
							tr, err = sctp.NewTransport(l, nil)
						}
						return err
					})
					t.Cleanup(func() { tr.Close() })
					return tr
				}
				a, b := end(nsA), end(nsB)
				l := must.Get(b.Listen(7, nil))(t)
				c := must.Get(a.Dial(ctx, netip.AddrPortFrom(pb, 7),
					&sctp.Config{RTOInitial: 200 * time.Millisecond, RTOMin: 200 * time.Millisecond,
						AssocMaxRetrans: 6}))(t)
				s := must.Get(l.Accept(ctx))(t)
				want := bytes.Repeat([]byte("0123456789abcdef"), 4000)
				const messages = 40
				done := make(chan error, 1)
				go func() {
					buf := make([]byte, len(want))
					for range messages {
						n, _, err := s.ReadMsg(buf)
						if err == nil && !bytes.Equal(buf[:n], want) {
							err = errors.New("a message differs")
						}
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
				var err error
				for i := 0; i < messages && err == nil; i++ {
					if i == messages/4 {
						nsB.SetMTU("cable", 1400)
					}
					_, err = c.WriteMsg(want, sctp.SendInfo{})
				}
				var stuck *sctp.StuckError
				if never := name == "UDP" && pa.Is4(); never {
					<-c.Done()
					must.That(t, errors.As(c.Err(), &stuck), "ended by %v", c.Err())
					return
				}
				must.OK(t, err)
				select {
				case err := <-done:
					must.OK(t, err)
				case <-ctx.Done():
					t.Fatalf("stalled: %+v, %+v", c.Stats(), c.Paths())
				}
			})
		})
	}
}
