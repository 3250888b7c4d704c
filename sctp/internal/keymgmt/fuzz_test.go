package keymgmt

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// FuzzManager is a Manager whose peer, whose TLS and whose clock do anything. There is one session
// at a time, and there are keys of two epochs at most. Protection never ends, and the epoch grows
// by one. Deadlines come to an end, and nothing follows the end.
func FuzzManager(f *testing.F) {
	for seed := range 300 {
		f.Add(fuzzinput.Random(seed, 200))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 400 {
			return
		}
		z := fuzzinput.Script(in)
		l := newLab(t, Config{IsClient: z.Next()%2 == 0})
		open := make(map[uint64]bool)
		epoch, protected, over := l.m.Epoch(), false, false
		seed := uint64(0)
		for len(z) > 0 {
			id, bits := l.m.lastID-uint64(z.Next()%5/4), l.m.Epoch()+uint64(z.Next()%7/5)+1
			seed++
			switch op := z.Next() % 16; op {
			case 0, 1:
				l.tell(bits, hello(z.Byte()))
			case 2:
				l.tell(bits, serverHello(z.Byte()))
			case 3:
				l.tell(bits, finished(z.Byte()))
			case 4, 5:
				l.tellEstablished(bits)
			case 6:
				if z.Next()%8 == 0 {
					l.m.HandleMessage(l.now, z.Take(z.Next()%10))
				}
			case 7, 8, 9:
				l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(seed, true), Output: finished(1),
					ExpiresIn: time.Duration(z.Next()%3) * time.Hour})
			case 10:
				l.m.SessionWrote(l.now, id, [][]byte{hello(1), serverHello(1), retry()}[z.Next()%3])
			case 11:
				if l.m.IsProtected() || z.Next()%8 == 0 {
					l.m.SessionFailed(l.now, id, errTLS, []byte{21, 3, 3, 0, 2, 2, 42}[:z.Next()%2*7])
				}
			case 12:
				l.m.Rekey()
			case 13:
				l.m.SetBlocked(l.now, z.Next()%2 == 0)
			case 14:
				l.m.MessagesAcked(l.now, l.m.sent-min(l.m.sent, uint64(z.Next()%3)))
			}
			l.wait(time.Duration(z.Next()*z.Next()) * 10 * time.Millisecond)
			for a, ok := l.m.Next(); ok; a, ok = l.m.Next() {
				must.That(t, !over, "%+v after the end", a)
				switch a.Kind {
				case StartSession:
					must.That(t, len(open) == 0, "%+v, while others are open: %v", a, open)
					open[a.Session] = true
				case CloseSession:
					must.That(t, open[a.Session], "%+v was not open", a)
					delete(open, a.Session)
				case FeedSession:
					must.That(t, open[a.Session], "%+v is not open", a)
				case Protect:
					must.That(t, !protected, "protection begins twice")
					protected = true
				case Abort:
					over = true
				}
				must.That(t, len(open) <= 1, "sessions %v", open)
			}
			must.That(t, l.m.IsProtected() == protected, "protected: %v", protected)
			must.That(t, l.m.Epoch()-epoch <= 1, "from epoch %d to %d", epoch, l.m.Epoch())
			epoch = l.m.Epoch()
			must.That(t, l.m.failure != nil || l.m.session == nil == (len(open) == 0), "sessions %v, %+v", open, l.m.session)
			if s := l.keys.Sealer(); s != nil {
				must.That(t, protected && s.Epoch() == epoch, "seals with epoch %d of %d", s.Epoch(), epoch)
			}
			must.That(t, l.m.failure != nil || l.m.Deadline(l.now) > l.now, "a deadline does not pass")
			if epoch >= seal.FirstEpoch && l.m.failure == nil {
				must.That(t, l.keys.RekeyDueAt() != rawio.Never, "no key")
			}
		}
	})
}
