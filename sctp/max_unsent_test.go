package sctp

import (
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/sched"
)

// Writes wait while too much was not sent, although the send buffer has room, and go on when the
// peer reads. Their deadline ends the wait.
func TestWritesWaitForWhatIsUnsent(t *testing.T) {
	for _, row := range []struct {
		name         string
		newScheduler func() sched.Scheduler
		maxUnsent    int
		window       int
		most         int // writes of 1000 octets that do not wait
	}{
		{"no bound", nil, 0, 1500, 20},
		{"a bound", nil, 4000, 1500, 6},
		{"a bound under a scheduler", sched.WeightedFairQueueing, 4000, 1500, 6},
		{"less than a message", nil, 1, 1500, 3},
		{"a window that takes all", nil, 1, 1 << 20, 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := &Config{MaxUnsent: row.maxUnsent, NewScheduler: row.newScheduler}
				c, s := newPair(t).connect(t, cfg, &Config{RecvBuffer: row.window})
				var written atomic.Int32
				done := make(chan bool)
				go func() {
					defer close(done)
					for range 20 {
						must.Do(c.WriteMsg(make([]byte, 1000), SendInfo{Stream: 1}))(t)
						written.Add(1)
					}
				}()
				synctest.Wait()
				got := int(written.Load())
				check.That(t, got <= row.most && (got == 20) == (row.most == 20), "%d writes did not wait, of %d", got, row.most)
				if got < 20 {
					st := c.Stream(2)
					must.OK(t, st.SetWriteDeadline(time.Now().Add(time.Second)))
					_, err := st.WriteMsg([]byte("x"), SendInfo{})
					check.Error(t, "a write that waits too long", err, os.ErrDeadlineExceeded)
				}
				for range 20 {
					must.Do(readOneMessage(s))(t)
				}
				<-done
			})
		})
	}
}

func readOneMessage(c *Conn) (n int, err error) {
	for more := true; more && err == nil; {
		var info RecvInfo
		_, info, err = c.ReadMsg(make([]byte, 1000))
		more = info.More
		n++
	}
	return n, err
}
