package keymgmt

import (
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// The client opens what the server seals before its Finished leaves, and seals only when the server
// says that protection is established.
func TestClientEstablishesKeys(t *testing.T) {
	// req dtlskeys-6.1-1, dtlskeys-6.1-2
	// req dtlskeys-6.1-5
	// req dtlskeys-4.1.1-3
	// req dtlskeys-5.3-2
	// req dtlskeys-5.4-2
	// req dtlschunk-6-4
	l := newLab(t, Config{IsClient: true})
	a := l.expect(StartSession)[0]
	check.That(t, a.IsClient && a.Epoch == 3, "%+v", a)
	l.m.SessionWrote(l.now, a.Session, hello(1))
	check.Slice(t, "message", l.expect(SendMessage)[0].Data, append([]byte{3}, hello(1)...))
	l.tell(3, serverHello(1))
	fed := l.expect(FeedSession)[0]
	check.That(t, fed.Session == a.Session, "%+v", fed)
	check.Slice(t, "records", fed.Data, serverHello(1))
	server := peerKeys(t, 3, false, 7)
	check.That(t, !opens(t, server, l.keys), "a key is there too early")

	l.m.SessionDone(l.now, a.Session, Outcome{Secrets: secretsOf(7, true), Output: finished(1)})
	check.That(t, opens(t, server, l.keys), "when the Finished leaves the server's key is not there")
	check.Slice(t, "message", l.expect(SendMessage)[0].Data, append([]byte{3}, finished(1)...))
	check.That(t, !l.keys.CanSeal() && !l.m.IsProtected(), "the client seals before the server can open")
	check.Equal(t, "epoch", l.m.Epoch(), seal.FirstEpoch-1)

	l.tellEstablished(3)
	l.expect(Protect, StoreRestart, CloseSession)
	check.That(t, opens(t, l.keys, server), "the server does not open what the client seals")
	check.That(t, l.m.IsProtected() && l.m.Epoch() == 3 && l.m.Stats() == Stats{Established: 1}, "%+v", l.m.Stats())

	l.m.SessionWrote(l.now, a.Session, []byte{21, 3, 3, 0, 2, 1, 0})
	check.Slice(t, "its close_notify", l.expect(SendMessage)[0].Data, []byte{3, 21, 3, 3, 0, 2, 1, 0})
	l.tell(3, []byte{21, 3, 3, 0, 2, 1, 0})
	l.tellEstablished(3) // once more
	l.expect()
	check.Equal(t, "messages of no session", l.m.Stats().Ignored, 2)
}

// The server has all keys when the client's Finished is there. What it sends from then on,
// Protection Established first, is sealed.
func TestServerEstablishesKeys(t *testing.T) {
	// req dtlskeys-6.1-3, dtlskeys-6.1-4
	// req dtlschunk-3.1-1
	// req dtlskeys-4.1.1-1
	// req dtlskeys-6.1-7
	// req dtlskeys-5.3-2
	l := newLab(t, Config{})
	a := l.expect(StartSession)[0]
	check.That(t, !a.IsClient && a.Epoch == 3, "%+v", a)
	l.tell(3, hello(1))
	l.expect(FeedSession)
	l.m.SessionWrote(l.now, a.Session, serverHello(1))
	check.Slice(t, "message", l.expect(SendMessage)[0].Data, append([]byte{3}, serverHello(1)...))
	l.tell(3, finished(1))
	l.expect(FeedSession)
	check.That(t, !l.keys.CanSeal(), "the server seals before its client is known")
	l.m.SessionDone(l.now, a.Session, Outcome{Secrets: secretsOf(7, false)})
	list := l.expect(Protect, SendMessage, CloseSession)
	check.Slice(t, "message", list[1].Data, []byte{0x83, 1})
	client := peerKeys(t, 3, true, 7)
	check.That(t, opens(t, l.keys, client) && opens(t, client, l.keys), "the two ends have different keys")
	check.Equal(t, "epoch", l.m.Epoch(), 3)
}

// Restart keys are installed for both directions, and given to the owner to store.
func TestRestartKeysOfTheFirstHandshake(t *testing.T) {
	// req dtlskeys-5.4-4
	for _, c := range []struct {
		name string
		of   func(t testing.TB) *lab
	}{{"client", establishedClient}, {"server", establishedServer}} {
		t.Run(c.name, func(t *testing.T) {
			l := c.of(t)
			must.OK(t, l.keys.UseRestart(l.now, 3))
			peer := seal.NewKeyring(seal.Limits{}, 0)
			s := secretsOf(3, true)
			if c.name == "client" {
				must.OK(t, peer.InstallRestart(0, 3, &s.Restart[ByServer], &s.Restart[ByClient]))
			} else {
				must.OK(t, peer.InstallRestart(0, 3, &s.Restart[ByClient], &s.Restart[ByServer]))
			}
			must.OK(t, peer.UseRestart(0, 3))
			check.That(t, opens(t, peer, l.keys) && opens(t, l.keys, peer), "restart keys of the two ends differ")
		})
	}
}

func TestHelloRetryRequest(t *testing.T) {
	l := newLab(t, Config{})
	id := l.expect(StartSession)[0].Session
	l.tell(3, hello(1))
	l.m.SessionWrote(l.now, id, retry())
	l.tell(3, hello(2))
	check.Equal(t, "session of the second ClientHello", l.expect(FeedSession, SendMessage, FeedSession)[2].Session, id)
	l.tell(3, hello(3)) // not asked for: the client begins anew
	list := l.expect(CloseSession, StartSession, FeedSession)
	check.That(t, list[0].Session == id && list[2].Session == list[1].Session && list[1].Session != id, "%+v", list)
}

// What goes wrong in the first handshake ends the association. An alert has its time to arrive.
func TestFirstHandshakeFails(t *testing.T) {
	// req dtlskeys-6.1-6
	// req dtlskeys-7-1
	alert := []byte{21, 3, 3, 0, 2, 2, 42}
	for _, c := range []struct {
		name     string
		isClient bool
		happens  func(l *lab, id uint64)
		want     Reason
		err      error
		hasAlert bool
	}{
		{"TLS of the client", true, func(l *lab, id uint64) { l.m.SessionFailed(l.now, id, errTLS, alert) }, HandshakeFailed, errTLS, true},
		{"TLS of the server", false, func(l *lab, id uint64) { l.m.SessionFailed(l.now, id, errTLS, alert) }, HandshakeFailed, errTLS, true},
		{"an alert of the server, after the client's Finished", true, func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(1, false), Output: finished(1)})
			l.expect(SendMessage)
			l.m.SessionFailed(l.now, id, errTLS, nil)
		}, HandshakeFailed, errTLS, false},
		{"no ServerHello", true, func(l *lab, id uint64) { l.wait(30 * time.Second) }, HandshakeTimeout, nil, false},
		{"no ClientHello", false, func(l *lab, id uint64) { l.wait(30 * time.Second) }, HandshakeTimeout, nil, false},
		{"no Protection Established", true, func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(1, false), Output: finished(1)})
			l.expect(SendMessage)
			l.wait(30 * time.Second)
		}, HandshakeTimeout, nil, false},
		{"Protection Established too early", true, func(l *lab, id uint64) { l.tellEstablished(3) }, HandshakeFailed, errEarlyEstablished, false},
		{"no message", true, func(l *lab, id uint64) { l.m.HandleMessage(l.now, []byte{3}) }, MalformedMessage, nil, false},
		{"keys of a suite that there is not", false, func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: &Secrets{}})
		}, KeyingFailed, seal.ErrSuite, false},
		{"the same for the client", true, func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: &Secrets{}})
		}, KeyingFailed, seal.ErrSuite, false},
		{"half a suite", false, func(l *lab, id uint64) {
			s := secretsOf(1, true)
			s.Primary[ByServer].Suite = 0
			l.m.SessionDone(l.now, id, Outcome{Secrets: s})
		}, KeyingFailed, seal.ErrSuite, false},
		{"restart keys of no suite", true, func(l *lab, id uint64) {
			s := secretsOf(1, true)
			s.Restart[ByServer].Suite = 0
			l.m.SessionDone(l.now, id, Outcome{Secrets: s})
		}, KeyingFailed, seal.ErrSuite, false},
		{"half a suite of the client, found at last", true, func(l *lab, id uint64) {
			s := secretsOf(1, false)
			s.Primary[ByClient].Suite = 0
			l.m.SessionDone(l.now, id, Outcome{Secrets: s})
			l.tellEstablished(3)
		}, KeyingFailed, seal.ErrSuite, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{IsClient: c.isClient})
			id := l.expect(StartSession)[0].Session
			l.m.MessagesAcked(l.now, 0)
			c.happens(l, id)
			if c.hasAlert {
				list := l.expect(SendMessage, CloseSession)
				check.Slice(t, "alert", list[0].Data, append([]byte{3}, alert...))
				l.m.MessagesAcked(l.now, 1)
				l.wait(alertReadTime - 1)
				l.m.MessagesAcked(l.now, 1)
				l.expect() // the peer reads it
				l.wait(1)
				check.Equal(t, "failure", l.expect(Abort)[0].Failure.Why, c.want)
			} else {
				check.Equal(t, "failure", l.expect(CloseSession, Abort)[1].Failure.Why, c.want)
			}
			f := l.m.failure
			check.That(t, c.err == nil && f.Err == nil || c.err != nil && errors.Is(f, c.err), "%v, want %v", f, c.err)
			// Nothing comes after the end.
			l.tell(3, hello(1))
			l.tellEstablished(3)
			l.m.SessionWrote(l.now, id, hello(1))
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(1, false)})
			l.m.SessionFailed(l.now, id, errTLS, alert)
			l.m.SetBlocked(l.now, true)
			l.wait(time.Hour)
			l.expect()
		})
	}
}

// An alert that is not acknowledged delays the end for a second.
func TestAlertIsNotWaitedForLong(t *testing.T) {
	l := newLab(t, Config{})
	id := l.expect(StartSession)[0].Session
	l.m.SessionFailed(l.now, id, errTLS, []byte{21, 3, 3, 0, 2, 2, 42})
	l.expect(SendMessage, CloseSession)
	l.wait(time.Second - 1)
	l.expect()
	l.wait(1)
	l.expect(Abort)
}

// While the peer takes no messages a handshake cannot go on, and is not timed.
func TestClosedWindowStopsTheClock(t *testing.T) {
	l := newLab(t, Config{IsClient: true, HandshakeTimeout: 10 * time.Second})
	l.expect(StartSession)
	l.wait(9 * time.Second)
	l.m.SetBlocked(l.now, true)
	l.m.SetBlocked(l.now, true)
	l.wait(time.Hour)
	l.m.SetBlocked(l.now, false)
	l.wait(time.Second - 1)
	l.expect()
	l.m.SetBlocked(l.now, true)
	l.wait(time.Hour)
	l.m.SetBlocked(l.now, false)
	l.wait(1)
	l.expect(CloseSession, Abort)
}

func TestFailuresSayWhatHasFailed(t *testing.T) {
	for why := HandshakeFailed; why <= KeyingFailed; why++ {
		f := &Failure{why, errTLS}
		check.That(t, len(f.Error()) > 60 && errors.Is(f, errTLS), "%d: %v", why, f)
	}
	check.Equal(t, "without TLS", (&Failure{Why: HandshakeTimeout}).Error(),
		"sctp: key management: the TLS handshake has not ended in time")
	check.Equal(t, "unknown", (&Failure{Why: 77}).Error(), "sctp: key management: failure 77")
}

// What comes in the clear and belongs to no handshake is somebody else's: the peer has sent nothing
// beside its flights. It is not passed over, as its TSN is one that the peer uses later.
func TestClearMessagesOfNoHandshake(t *testing.T) {
	// req dtlskeys-4-4
	for _, c := range []struct {
		name    string
		happens func(l *lab, id uint64)
		want    error
	}{
		{"behind the last flight", func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(1, false), Unread: 1})
		}, errUnread},
		{"of a later epoch", func(l *lab, id uint64) { l.tell(4, hello(1)) }, errStray},
		{"a control message", func(l *lab, id uint64) { l.m.HandleMessage(l.now, []byte{0x83, 2}) }, errStray},
		{"Protection Established for the server", func(l *lab, id uint64) { l.tellEstablished(3) }, errStray},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			id := l.expect(StartSession)[0].Session
			c.happens(l, id)
			check.Slice(t, "alert", l.expect(SendMessage, CloseSession)[0].Data, append([]byte{3}, canceledAlert...))
			check.That(t, errors.Is(l.m.Failure(), c.want) && !l.m.IsProtected(), "%v", l.m.Failure())
		})
	}
}

// An association that ends takes its session with it.
func TestClose(t *testing.T) {
	l := newLab(t, Config{IsClient: true})
	id := l.expect(StartSession)[0].Session
	l.m.Close()
	check.Equal(t, "session", l.expect(CloseSession)[0].Session, id)
	l.m.Close()
	l.tell(3, serverHello(1))
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(1, false)})
	l.wait(time.Hour)
	l.expect()
}
