package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestErrorCounterOfTheAssociation(t *testing.T) {
	// Two errors in a row are allowed. T3-rtx and unanswered HEARTBEATs on the path of the data
	// count.
	cfg := &assoc.Config{AssocMaxRetrans: 2, PathMaxRetrans: 100, HeartbeatInterval: time.Hour}
	expire := func(l *sctptest.Lab, n int) {
		for range n {
			l.Now = l.A.NextTimeout()
			l.A.HandleTimeout(l.Now)
			l.Flush()
		}
	}
	t.Run("acknowledged DATA clears it", func(t *testing.T) {
		l := sctptest.Passive(t, cfg)
		cum := l.HostTSN - 1
		for range 4 {
			must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}}))
			l.Flush()
			expire(l, 2)
			cum++
			l.Send(l.Tag, l.Sack(cum)) // req 9260-8.1-5
			l.InState(assoc.Established)
		}
	})
	t.Run("a SACK that acknowledges nothing does not", func(t *testing.T) {
		l := sctptest.Passive(t, cfg)
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}}))
		l.Flush()
		expire(l, 2)
		l.Send(l.Tag, l.Sack(l.HostTSN-1))
		expire(l, 1)
		l.InState(assoc.Closed)
		err, _ := l.Host.DownErr()
		e, failed := l.Host.Event(assoc.EventSendFailed)
		// req 9260-8.1-4
		check.That(t, err == assoc.ErrTimeout && failed && !e.Unsent, "ended by %v, message reported %v", err, failed)
	})
	t.Run("a HEARTBEAT ACK clears it", func(t *testing.T) {
		l := sctptest.Passive(t, &assoc.Config{AssocMaxRetrans: 2, PathMaxRetrans: 100, HeartbeatInterval: time.Second})
		beats := 0
		for range 4 {
			var last wire.Packet
			for n := 0; n < 3; { // the third is sent after two errors
				for _, p := range l.Flush() {
					if sctptest.Has(p, wire.ChunkHeartbeat) {
						last = p
						n, beats = n+1, beats+1
					}
				}
				if n < 3 {
					l.Now = l.A.NextTimeout()
					l.A.HandleTimeout(l.Now)
				}
			}
			l.InState(assoc.Established)
			// req 9260-8.1-6
			l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0,
				sctptest.ChunkOf(last, wire.ChunkHeartbeat).Value()))
		}
		check.Equal(t, "HEARTBEATs", beats, 12)
	})
}
