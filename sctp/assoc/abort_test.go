package assoc_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestAbortTellsBothSidesTheReason(t *testing.T) {
	w, a, b := pair(t, nil, nil)
	w.send(a, 0, make([]byte, 5000))
	a.Abort(w.now, []byte("gone fishing"))
	w.run(time.Second)
	if a.State() != assoc.Closed || b.State() != assoc.Closed {
		t.Fatalf("states %v, %v", a.State(), b.State())
	}
	pkts := w.seen(0, wire.ChunkAbort)
	if len(pkts) != 1 || describe([]wire.Packet{pkts[0].pkt}) != "ABORT" { // req 9260-9.1-1, 9260-3.3.7-2
		t.Fatalf("%d ABORT packets", len(pkts))
	}
	if pkts[0].pkt.VTag() != b.LocalTag() { // req 9260-8.5.1-3
		t.Error("the ABORT has not the peer's tag")
	}
	err, _ := w.hosts[0].downErr()
	var local *assoc.AbortError
	if !errors.As(err, &local) || local.ByPeer || !errors.Is(err, syscall.ECONNABORTED) {
		t.Errorf("own side: %v", err)
	}
	err, _ = w.hosts[1].downErr()
	var remote *assoc.AbortError
	if !errors.As(err, &remote) || !remote.ByPeer || string(remote.Reason()) != "gone fishing" || !errors.Is(err, syscall.ECONNRESET) { // req 9260-9.1-2, 9260-9.1-5
		t.Errorf("peer's side: %v", err)
	}
	if e, ok := w.hosts[0].event(assoc.EventSendFailed); !ok || !e.Unsent {
		t.Errorf("the queued message: %+v %v", e, ok)
	}
	if len(w.seen(1, wire.ChunkAbort)) != 0 { // req 9260-9.1-3
		t.Error("an ABORT was answered")
	}
	if a.NextTimeout() != rawio.Never || b.NextTimeout() != rawio.Never {
		t.Error("a timer of a dead association runs")
	}
	if w.hosts[0].ep.Len() != 0 || w.hosts[1].ep.Len() != 0 {
		t.Error("an endpoint still holds the association")
	}
}

func TestLongAbortReasonFitsThePacket(t *testing.T) {
	l := passiveLab(t, nil)
	l.a.Abort(l.now, []byte(strings.Repeat("x", 3000)))
	out := l.flush()
	l.expect(out, "ABORT")
	if code, _ := causeOf(out[0]); len(out[0]) > testMTU || code != wire.CauseUserAbort {
		t.Errorf("packet of %d octets, cause %v", len(out[0]), code)
	}
}

func TestProtocolViolationsAbort(t *testing.T) {
	for _, row := range []struct {
		name  string
		chunk func(l *lab) []byte
		code  wire.CauseCode
	}{
		{"DATA without user data", func(l *lab) []byte { return dataChunk(l.tsn, 0, 0, "") }, wire.CauseNoUserData},  // req 9260-6.2-27
		{"SACK for a TSN never sent", func(l *lab) []byte { return l.sack(l.hostTSN) }, wire.CauseProtocolViolation}, // req 9260-12.4-3
		{"gap block for a TSN never sent", func(l *lab) []byte {
			return wire.AppendSack(nil, wire.SackFields{CumTSN: l.hostTSN - 1, ARwnd: 9999, Gaps: []wire.GapBlock{{Start: 2, End: 3}}})
		}, wire.CauseProtocolViolation},
		{"SHUTDOWN for a TSN never sent", func(l *lab) []byte { return wire.AppendShutdown(nil, l.hostTSN+7) }, wire.CauseProtocolViolation},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := passiveLab(t, nil)
			out := l.send(l.tag, row.chunk(l), wire.AppendHeartbeat(nil, []byte("x")))
			l.expect(out, "ABORT")
			code, cause := causeOf(out[0])
			if code != row.code || out[0].VTag() != l.peerTag {
				t.Errorf("cause %v, tag %#x", code, out[0].VTag())
			}
			if tsn, err := cause.NoUserData(); code == wire.CauseNoUserData && (err != nil || tsn != l.tsn) {
				t.Errorf("No User Data names TSN %d, want %d", tsn, l.tsn)
			}
			l.inState(assoc.Closed)
		})
	}
}

func TestAbortInEachState(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
		want string
	}{
		{"COOKIE-WAIT: the peer's tag is unknown, nothing is sent", func(t *testing.T) *lab { return activeLab(t, nil) }, ""},
		{"COOKIE-ECHOED", func(t *testing.T) *lab { return echoedLab(t, nil) }, "ABORT"},
		{"ESTABLISHED", func(t *testing.T) *lab { return passiveLab(t, nil) }, "ABORT"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			l.a.Abort(l.now, nil)
			l.expect(l.flush(), row.want)
			l.inState(assoc.Closed) // req 9260-4-1
			l.a.Abort(l.now, nil)
			l.expect(l.flush(), "")
		})
	}
}
