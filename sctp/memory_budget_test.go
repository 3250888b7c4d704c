package sctp

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// carrier is a link that leads to one peer.
type carrier struct{ *muted }

// Features implements rawio.Featurer.
func (carrier) Features() rawio.Features { return rawio.PointToPoint }

// ReceiveBuffer implements rawio.Featurer.
func (carrier) ReceiveBuffer() int { return 0 }

// sharers are Transports with a peer each, of one budget.
type sharers struct {
	budget *MemoryBudget
	peers  []*attacker
}

func newSharers(t *testing.T, n int, octets int64) *sharers {
	s := &sharers{budget: NewMemoryBudget(octets)}
	s.budget.reclaimer.isRunning.Store(true) // it comes when it is called by hand
	for range n {
		b := newBesiegedLink(t, func(l *muted) rawio.Link { return carrier{l} },
			TransportConfig{MemoryBudget: s.budget, MaxMemory: 1}, &Config{Backlog: 10, RecvBuffer: 1 << 20})
		a := b.newAttacker(netconn.PeerAddr, 1)
		must.That(t, a != nil, "an association is refused")
		s.peers = append(s.peers, a)
	}
	return s
}

// sendMessages has a peer send messages that nobody reads, each in a buffer of 64 KiB.
func (a *attacker) sendMessages(n int) {
	for i := range n {
		a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
	}
}

// statsWriter is the program's log, which looks at an association for each line.
type statsWriter struct {
	c     *Conn
	lines []string
}

func (w *statsWriter) Write(b []byte) (int, error) {
	w.c.Stats()
	w.lines = append(w.lines, string(b))
	return len(b), nil
}

// Peers of several Transports have one budget. Each may have half of it, whatever address it has.
// When it is nearly used up, the one that has more than its share goes, although its Transport is
// not the one that needs memory.
func TestTransportsShareABudget(t *testing.T) {
	s := newSharers(t, 4, 1<<20)
	greedy, others := s.peers[0], s.peers[1:]
	greedy.sendMessages(5)
	others[0].sendMessages(3)
	others[1].sendMessages(2)
	s.budget.reclaimMemory()
	for i, p := range s.peers {
		check.That(t, !p.c.memory.underPressure.Load() && p.b.Memory() == s.budget.Memory(),
			"with %+v in use, peer %d is squeezed, or its Transport says %+v", s.budget.Memory(), i, p.b.Memory())
	}
	others[1].sendMessages(1)
	others[2].sendMessages(3)
	check.That(t, greedy.c.memory.account.ExceedsShare(greedy.c.drawnOctets()), "5 of 14 messages are a fair share")
	log := &statsWriter{c: greedy.c}
	greedy.b.eventLog = newEventLog(slog.New(slog.NewTextHandler(log, nil)), true)
	s.budget.reclaimMemory()
	check.That(t, slices.ContainsFunc(log.lines, func(l string) bool { return strings.Contains(l, "MaxMemory") }),
		"the log has %q", log.lines)
	check.That(t, isClosed(greedy.c.Done()) && errors.As(greedy.c.Err(), new(*assoc.MemoryError)) &&
		greedy.b.Stats().MemoryAborted == 1, "the greediest lives: %v", greedy.c.Err())
	for i, p := range others {
		check.That(t, !isClosed(p.c.Done()) && p.b.Stats().MemoryAborted == 0, "peer %d has gone: %v", i+1, p.c.Err())
	}
}

// A Transport is in the budget as long as something of it can be reclaimed. What an association has
// left unread when its Transport was closed is that.
func TestBudgetOfClosedTransports(t *testing.T) {
	s := newSharers(t, 3, 1<<20)
	late := s.peers[0]
	late.sendMessages(5)
	late.sendChunks(wire.AppendAbort(nil, false))
	<-late.c.Done()
	for _, p := range s.peers {
		must.OK(t, p.b.Close())
	}
	must.That(t, len(s.budget.sharers()) == 1 && s.budget.Memory().Used >= 5*60_000,
		"%d Transports are left, with %+v", len(s.budget.sharers()), s.budget.Memory())
	late.c.Close()
	check.That(t, len(s.budget.sharers()) == 0 && s.budget.Memory().Used == 0, "%d Transports are left, with %+v",
		len(s.budget.sharers()), s.budget.Memory())
}
