//go:build linux

package main

import (
	"fmt"
	"time"
)

// ledgerCopy is the ledger of one process as the auditor sees it.
type ledgerCopy struct {
	name     string // of the process
	server   bool
	killedAt int64 // Unix time in nanoseconds, 0 while it lives
	entries  []entry
}

// kill is one kill -9. Sessions that lived between at and until, when the successor served and the
// peers had had the time to notice, may have failed by it. Unix time in nanoseconds.
type kill struct {
	name      string
	at, until int64
}

// outage is a time in which a network had no route: no session can begin then, and who asks for one
// hears so at once. Unix time in nanoseconds.
type outage struct{ from, until int64 }

// auditResult is what the books say.
type auditResult struct {
	sessions, graceful, cut, broken, refused uint64

	messages  uint64 // posted, both ways
	delivered uint64
	oneSided  uint64 // Reads and atomics that completed
	uncertain uint64 // outstanding when a session was cut or a process killed: they may have arrived or not
	arrived   uint64 // of these, those that did
	untaken   uint64 // in the stack of a process when it was killed or aborted, before its program took them

	lost, wrong, twice, disorder, invented, stuck, unexplained uint64
	faults                                                     []string // the first few, in words
}

func (t *auditResult) addResult(u *auditResult) {
	for _, p := range []struct{ to, from *uint64 }{
		{&t.sessions, &u.sessions}, {&t.graceful, &u.graceful}, {&t.cut, &u.cut}, {&t.broken, &u.broken}, {&t.refused, &u.refused},
		{&t.messages, &u.messages}, {&t.delivered, &u.delivered}, {&t.oneSided, &u.oneSided},
		{&t.uncertain, &u.uncertain}, {&t.arrived, &u.arrived}, {&t.untaken, &u.untaken},
		{&t.lost, &u.lost}, {&t.wrong, &u.wrong}, {&t.twice, &u.twice}, {&t.disorder, &u.disorder},
		{&t.invented, &u.invented}, {&t.stuck, &u.stuck}, {&t.unexplained, &u.unexplained},
	} {
		*p.to += *p.from
	}
	t.faults = append(t.faults, u.faults...)
}

func (t *auditResult) numViolations() uint64 {
	return t.lost + t.wrong + t.twice + t.disorder + t.invented + t.stuck + t.unexplained
}

func (t *auditResult) countFault(n *uint64, by int, format string, args ...any) {
	if by <= 0 {
		return
	}
	*n += uint64(by)
	if len(t.faults) < 20 {
		t.faults = append(t.faults, fmt.Sprintf(format, args...))
	}
}

// auditBooks compares the books of all processes. It is called while nothing is under way.
func auditBooks(books []ledgerCopy, kills []kill, outages []outage, serverNames []string) *auditResult {
	t := &auditResult{}
	servers := make(map[uint64][]*end)
	for i := range books {
		b := &books[i]
		t.addDefects(b)
		for k := range b.entries {
			if e := &b.entries[k]; b.server && e.id != 0 {
				servers[e.id] = append(servers[e.id], &end{e, b})
			}
		}
	}
	for i := range books {
		b := &books[i]
		if b.server {
			continue
		}
		for k := range b.entries {
			e := &b.entries[k]
			if e.id == 0 {
				continue
			}
			t.checkSession(&end{e, b}, servers[e.id], kills, outages, serverNames[e.server])
			delete(servers, e.id)
		}
	}
	for id := range servers {
		t.countFault(&t.invented, 1, "session %#x is known to a server and to no client", id)
	}
	return t
}

// addDefects adds up what the processes have noticed themselves.
func (t *auditResult) addDefects(b *ledgerCopy) {
	for k := range b.entries {
		e := &b.entries[k]
		t.countFault(&t.wrong, int(e.wrong), "%s: session %#x: %d contents are wrong", b.name, e.id, e.wrong)
		t.countFault(&t.disorder, int(e.disorder), "%s: session %#x: %d arrivals out of order", b.name, e.id,
			e.disorder)
		t.countFault(&t.twice, int(e.twice), "%s: session %#x: %d completed twice", b.name, e.id, e.twice)
		t.countFault(&t.stuck, int(e.stuck), "%s: session %#x: stuck", b.name, e.id)
	}
}

// end is one end of a session.
type end struct {
	*entry
	book *ledgerCopy
}

// wasKilled reports whether the process was killed before the session ended.
func (e *end) wasKilled() bool { return e.state == stateOpen && e.book.killedAt != 0 }

// missedClientKill reports whether the client was killed before the server's end came to its own.
// The client considered the session done. Its last word may have been lost, and no process is left
// to repeat it.
func (e *end) missedClientKill(client *end) bool {
	return client.state == stateGraceful && client.book.killedAt != 0 && client.book.killedAt <= e.ended
}

// discardsArrived reports whether the end has thrown away what had arrived and its program had not
// taken: Conn.Abort and QP.Close do so.
func (e *end) discardsArrived() bool { return e.state == stateCut }

func (t *auditResult) checkSession(client *end, servers []*end, kills []kill, outages []outage, serverName string) {
	t.sessions++
	switch client.state {
	case stateGraceful:
		t.graceful++
	case stateCut:
		t.cut++
	case stateRefused:
		t.refused++
	default:
		t.broken++
	}
	server := &end{&entry{}, &ledgerCopy{name: serverName, server: true}} // it need not have heard of the session
	for _, k := range kills {
		if k.name == serverName && client.begun <= k.until && (client.ended == 0 || client.ended >= k.at) {
			server.book.killedAt = k.at
		}
	}
	excused := client.wasKilled() || client.state == stateCut || server.wasKilled()
	for _, o := range outages {
		excused = excused || client.state == stateRefused && client.begun <= o.until && client.ended >= o.from
	}
	if len(servers) > 0 {
		server = servers[0]
	}
	t.countFault(&t.invented, len(servers)-1, "session %#x: %d servers know it", client.id, len(servers))
	other := []*end{server, client}
	for i, e := range []*end{client, server} {
		if e.id != 0 && e.state == stateOpen && e.book.killedAt == 0 {
			t.countFault(&t.stuck, 1, "%s: session %#x never ended", e.book.name, e.id)
		}
		if !excused && !(e == server && server.missedClientKill(client)) &&
			(e.state == stateFailed || e.state == stateRefused) {
			t.countFault(&t.unexplained, 1, "%s: session %#x, kind %d, of %s ended in state %d without cause after "+
				"%v: %s; the other end: state %d, %q",
				e.book.name, e.id, e.kind, client.book.name, e.state, time.Duration(e.ended-e.begun), e.reasonText(),
				other[i].state, other[i].reasonText())
		}
	}
	t.checkDirection("request", client, server, excused)
	t.checkDirection("reply", server, client, excused)
	for i := range client.got {
		if client.got[i] > 0 && server.got[i] == 0 {
			t.countFault(&t.lost, 1, "session %#x: request %d was answered and not delivered", client.id, i)
		}
	}
	t.oneSided += uint64(client.readsDone) + uint64(client.addsDone)
	t.checkAtomics(client, server, excused)
}

// checkDirection compares what was sent one way with what arrived.
func (t *auditResult) checkDirection(what string, from, to *end, excused bool) {
	var uncertain, untaken int
	var gap [unordered + 1]bool // something of this order did not arrive
	for i, s := range from.sent {
		got, order := to.got[i], s>>orderShift
		if got > 0 {
			t.delivered++
		}
		t.countFault(&t.twice, int(got)-1, "session %#x: %s %d was delivered %d times", from.id, what, i, got)
		if s&posted == 0 {
			t.countFault(&t.invented, int(got), "session %#x: %s %d was delivered and never sent", from.id, what, i)
			continue
		}
		t.messages++
		if !from.wasKilled() && s&(completed|failed) == 0 {
			t.countFault(&t.stuck, 1, "%s: session %#x: %s %d never completed", from.book.name, from.id, what, i)
		}
		if s&completed == 0 && (got == 0 || !from.wasKilled()) {
			t.uncertain++
			if got > 0 {
				t.arrived++
			} else {
				uncertain++
			}
		}
		if got > 0 && gap[order] && order != unordered {
			t.countFault(&t.disorder, 1, "session %#x: %s %d was delivered, one before it was not", from.id, what, i)
		}
		if got > 0 {
			continue
		}
		gap[order] = true
		switch {
		case !excused:
			t.countFault(&t.lost, 1, "session %#x: %s %d is lost", from.id, what, i)
		case s&completed != 0 && !to.wasKilled() && !to.discardsArrived():
			t.countFault(&t.lost, 1, "session %#x: %s %d was completed and %s, which was not killed, never got it",
				from.id, what, i, to.book.name)
		case s&completed != 0:
			untaken++
			t.untaken++
		}
	}
	if window := int(from.window); from.id != 0 {
		t.countFault(&t.lost, uncertain-window, "session %#x: %d %ss are uncertain, at most %d were outstanding",
			from.id,
			uncertain, what, window)
		t.countFault(&t.lost, untaken-window,
			"session %#x: %d %ss were completed and not taken, at most %d were outstanding", from.id, untaken, what,
			window)
	}
}

// checkAtomics compares the memory with what was asked for: it survives the kill of its process.
func (t *auditResult) checkAtomics(client, server *end, excused bool) {
	n := server.counter
	if n > uint64(client.adds) {
		t.countFault(&t.twice, int(n-uint64(client.adds)), "session %#x: %d atomics and the counter is %d", client.id,
			client.adds, n)
	}
	least := client.addsDone
	if !excused {
		least = client.adds
		t.countFault(&t.lost, int(client.reads-client.readsDone), "session %#x: of %d Reads %d completed", client.id,
			client.reads, client.readsDone)
	}
	if n < uint64(least) {
		t.countFault(&t.lost, int(uint64(least)-n), "session %#x: %d atomics completed and the counter is %d",
			client.id,
			least, n)
	}
}
