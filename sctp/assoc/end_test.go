package assoc_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ending is a way in which an association can end.
type ending struct {
	doc   string // what the package comment calls it
	match func(error) bool
	drive func(l *lab.Lab)
	lab   func() *lab.Lab // nil: established by the peer
}

// endings are all that there are.
func endings(t *testing.T) []ending {
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	aborted := func(byPeer bool, code wire.CauseCode) func(error) bool {
		return func(err error) bool {
			var e *assoc.AbortError
			return errors.As(err, &e) && e.ByPeer == byPeer && (byPeer || (e.Causes[0].Code == wire.CauseUserAbort) == (code == wire.CauseUserAbort))
		}
	}
	adaptation := uint32(1)
	return []ending{
		{"[ErrShutdown]", is(assoc.ErrShutdown), func(l *lab.Lab) {
			l.A.Shutdown(l.Now)
			l.Flush()
			l.Send(l.Tag, wire.AppendShutdownAck(nil))
		}, nil},
		{"[ErrInitTimeout]", is(assoc.ErrInitTimeout), func(l *lab.Lab) { l.Wait(time.Hour) }, func() *lab.Lab { return lab.Active(t, nil) }},
		{"[ErrTimeout]", is(assoc.ErrTimeout), func(l *lab.Lab) {
			l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("never acknowledged")}})
			l.Wait(time.Hour)
		}, nil},
		{"[ErrShutdownTimeout]", is(assoc.ErrShutdownTimeout), func(l *lab.Lab) {
			l.A.Shutdown(l.Now)
			l.Wait(time.Hour)
		}, func() *lab.Lab { return lab.Passive(t, &assoc.Config{AssocMaxRetrans: 1000, RTOMax: time.Second}) }},
		{"[ErrProtoUnreachable]", is(assoc.ErrProtoUnreachable), func(l *lab.Lab) {
			l.Report(rawio.KindProtoUnreachable, 0, lab.Packet(lab.PortB, lab.PortA, 0, lab.InitChunk(l.Tag, 1)))
		}, func() *lab.Lab { return lab.Active(t, nil) }},
		{"[ErrOvertaken]", is(assoc.ErrOvertaken), func(l *lab.Lab) {
			l.A.OnAnswer(func() bool { return false })
			l.Send(l.Tag, lab.InitAckChunk(1, 1, []byte("cookie")))
			out := l.Flush()
			check.That(t, len(out) == 0, "the peer hears of it: %v", out)
		}, func() *lab.Lab { return lab.Active(t, nil) }},
		{"[NoRouteError]", func(err error) bool { return errors.As(err, new(*assoc.NoRouteError)) }, func(l *lab.Lab) {
			l.Report(rawio.KindHostUnreachable, 0, lab.Packet(lab.PortB, lab.PortA, 0, lab.InitChunk(l.Tag, 1)))
		}, func() *lab.Lab { return lab.Active(t, nil) }},
		{"[AbortError] with ByPeer", aborted(true, 0), func(l *lab.Lab) { l.Send(l.Tag, wire.AppendAbort(nil, false)) }, nil},
		{"[AbortError] with cause 12", aborted(false, wire.CauseUserAbort), func(l *lab.Lab) { l.A.Abort(l.Now, nil) }, nil},
		{"[AbortError] with any other cause", aborted(false, 0), func(l *lab.Lab) { l.Send(l.Tag, l.Sack(l.HostTSN+9)) }, nil},
		{"[AdaptationError]", func(err error) bool { return errors.As(err, new(*assoc.AdaptationError)) }, func(l *lab.Lab) {
			l.Send(l.Tag, lab.InitAckChunk(1, 1, []byte("cookie")))
		}, func() *lab.Lab { return lab.Active(t, &assoc.Config{Adaptation: &adaptation, RequireAdaptation: true}) }},
		{"[MemoryError]", func(err error) bool { return errors.As(err, new(*assoc.MemoryError)) }, func(l *lab.Lab) { l.A.AbortForMemory(2, 1) }, nil},
		{"[InternalError]", func(err error) bool { return errors.As(err, new(*assoc.InternalError)) }, func(l *lab.Lab) {
			defer invariant.Tolerate()()
			l.A.Break(invariant.Broken("a test", "nothing"))
		}, nil},
	}
}

// Each way in which an association can end has an error that no other has, and the package comment lists it. (That there are no others,
// TestEverythingInEachState looks at.)
func TestEveryEndHasAnErrorOfItsOwn(t *testing.T) {
	ends := endings(t)
	doc := must.Get(os.ReadFile("doc.go"))(t)
	for i, end := range ends {
		t.Run(end.doc, func(t *testing.T) {
			var l *lab.Lab
			if end.lab != nil {
				l = end.lab()
			} else {
				l = lab.Passive(t, nil)
			}
			end.drive(l)
			l.Flush()
			err, down := l.Host.DownErr()
			must.That(t, down, "in %v", l.A.State())
			for j, other := range ends {
				check.That(t, other.match(err) == (i == j), "%v taken for %s: %v", err, other.doc, i != j)
			}
			check.That(t, strings.Contains(string(doc), "//   - "+end.doc), "the package comment does not list it")
		})
	}
}
