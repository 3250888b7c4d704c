package mem_test

import (
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

func TestInterruptedReaderComesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, err := mem.Pair(mem.Options{})
		must.OK(t, err)
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
			if err := <-end; err != rawio.ErrInterrupted {
				t.Errorf("interrupted before: %v: %v", before, err)
			}
		}
		must.Do(a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: b.LocalAddrs()[0]}}))(t)
		b.Interrupt() // a packet comes first
		if n, err := b.ReadBatch(in); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		in[0].Release()
		if _, err := b.ReadBatch(in); err != rawio.ErrInterrupted {
			t.Error(err)
		}
		a.Close()
		b.Close()
	})
}
