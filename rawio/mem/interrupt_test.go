package mem_test

import (
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

func TestInterruptedReaderComesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := must.Two(mem.Pair(mem.Options{}))(t)
		in := make([]rawio.Packet, 1)
		end := make(chan error)
		for _, before := range []bool{true, false} {
			if before {
				b.Interrupt()
			}
			go func() {
				_, err := b.ReadBatch(in)
				end <- err
			}()
			synctest.Wait()
			if !before {
				b.Interrupt()
			}
			err := <-end
			check.That(t, err == rawio.ErrInterrupted, "interrupted before: %v: %v", before, err)
		}
		must.Do(a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: b.LocalAddrs()[0]}}))(t)
		b.Interrupt() // a packet comes first
		n, err := b.ReadBatch(in)
		must.That(t, n == 1 && err == nil, "%v, %v", n, err)
		in[0].Release()
		_, err = b.ReadBatch(in)
		check.That(t, err == rawio.ErrInterrupted, "%v", err)
		a.Close()
		b.Close()
	})
}
