package mmsg

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// The reader looks into the error queues when it has slept and nothing else has come, or a sender
// has told of something there, once, and not when it has looked on.
func TestErrorQueuesAreReadAfterASleep(t *testing.T) {
	for i, pauses := range [][]rawio.Pause{{rawio.Yield, rawio.Cede}, {rawio.Block, rawio.Yield}, {rawio.Sleep},
		{rawio.Park}, nil} {
		_, b := newPair(t, 0)
		b.sockets[0].icmpPending.Store(i == 4)
		looks := 0
		b.drainErrorsFunc = func(uintptr) { looks++ }
		for _, p := range pauses {
			b.Interrupt()
			must.Equal(t, "error", b.Wait(p), rawio.ErrInterrupted)
		}
		b.PollBatch(make([]rawio.Packet, 1))
		b.PollBatch(make([]rawio.Packet, 1))
		must.Equal(t, "looks into an error queue", looks, min(i, 1))
	}
}

// An interrupted reader comes back, whether it blocks, polls or is yet to begin, and afterwards
// reads on.
func TestInterruptedReaderComesBackAndReadsOn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spin   time.Duration
		before bool
	}{{"blocking", 0, false}, {"polling", time.Hour, false}, {"before a read that blocks", 0, true},
		{"before a read that polls", time.Hour, true}} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newPair(t, tt.spin)
			in := make([]rawio.Packet, 1)
			end := make(chan error, 1)
			read := func() {
				_, err := b.ReadBatch(in)
				end <- err
			}
			if tt.before {
				b.Interrupt()
				go read()
			} else {
				go read()
				b.Interrupt() // perhaps before as well: that must do no harm
			}
			must.Equal(t, "error", <-end, rawio.ErrInterrupted)
			go read()
			must.Do(a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: anywhere}}))(t)
			err := <-end
			must.That(t, err == nil && in[0].Data[0] == 1, "%v", err)
			in[0].Release()
			go read()
			b.Interrupt() // and comes back again
			must.Equal(t, "error", <-end, rawio.ErrInterrupted)
		})
	}
}
