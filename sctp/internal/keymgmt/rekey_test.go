package keymgmt

import (
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// The side that rekeys is the TLS client of that session, whatever role was negotiated.
func TestEitherSideRekeys(t *testing.T) {
	// req dtlskeys-6.2.2-1, dtlskeys-6.2.2-2
	// req dtlskeys-6.2.2-3
	// req dtlskeys-6.2.2-4
	// req dtlskeys-6.2.2-5
	// req dtlskeys-5.4-3
	// req dtlskeys-4-4
	for _, c := range []struct {
		name string
		of   func(t testing.TB) *lab
	}{{"the negotiated client", establishedClient}, {"the negotiated server", establishedServer}} {
		t.Run(c.name+" begins", func(t *testing.T) {
			l := c.of(t)
			id := l.beginRekey()
			l.tell(4, serverHello(1))
			l.expect(FeedSession)
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, true), Output: finished(1)})
			peer := peerKeys(t, 4, false, 4)
			check.That(t, opens(t, peer, l.keys), "the key of the server is not there when the Finished leaves")
			l.expect(SendMessage)
			check.Equal(t, "epoch that is sealed with", l.keys.Sealer().Epoch(), 3)
			l.tellEstablished(4)
			l.expect(StoreRestart, CloseSession)
			check.That(t, l.m.Epoch() == 4 && opens(t, l.keys, peer), "epoch %d", l.m.Epoch())
		})
		t.Run(c.name+" is asked", func(t *testing.T) {
			l := c.of(t)
			l.tell(4, hello(1))
			list := l.expect(StartSession, FeedSession)
			check.That(t, !list[0].IsClient && list[0].Epoch == 4 && list[1].Session == list[0].Session, "%+v", list)
			l.m.SessionWrote(l.now, list[0].Session, serverHello(1))
			l.expect(SendMessage)
			l.m.SessionDone(l.now, list[0].Session, Outcome{Secrets: secretsOf(4, true)})
			check.Slice(t, "message", l.expect(StoreRestart, SendMessage, CloseSession)[1].Data, []byte{0x84, 1})
			peer := peerKeys(t, 4, true, 4)
			check.That(t, opens(t, peer, l.keys) && opens(t, l.keys, peer), "the two ends have different keys")
		})
	}
}

// Where both begin, the negotiated client's ClientHello is the one that counts.
func TestBothRekeyAtOnce(t *testing.T) {
	// req dtlskeys-6.2.4-1
	// req dtlskeys-3.4-7
	client := establishedClient(t)
	id := client.beginRekey()
	client.tell(4, hello(2))
	client.expect()
	client.tell(4, serverHello(1))
	check.Equal(t, "session", client.expect(FeedSession)[0].Session, id)

	server := establishedServer(t)
	id = server.beginRekey()
	server.tell(4, hello(2))
	list := server.expect(CloseSession, StartSession, FeedSession)
	check.That(t, list[0].Session == id && !list[1].IsClient && list[2].Session == list[1].Session, "%+v", list)
	server.m.SessionFailed(server.now, id, errTLS, []byte{21, 3, 3, 0, 2, 2, 0}) // of the one that was closed
	server.m.SessionWrote(server.now, list[1].Session, serverHello(2))
	server.expect(SendMessage)
	check.Equal(t, "handshakes that failed", server.m.Stats().Failed, 0)
}

// A peer that has answered a ClientHello, and then sends one of its own, has given ours up.
func TestPeerGivesARekeyUp(t *testing.T) {
	l := establishedClient(t)
	id := l.beginRekey()
	l.tell(4, serverHello(1))
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(44, true), Output: finished(1)})
	l.expect(FeedSession, SendMessage)
	l.tell(4, hello(2))
	list := l.expect(CloseSession, StartSession, FeedSession)
	l.m.SessionDone(l.now, list[1].Session, Outcome{Secrets: secretsOf(4, true)})
	l.expect(StoreRestart, SendMessage, CloseSession)
	peer := peerKeys(t, 4, true, 4)
	check.That(t, opens(t, peer, l.keys) && opens(t, l.keys, peer), "the keys are of the wrong session")
}

// A rekey that fails leaves the keys in use, and is tried again after a time that grows.
func TestFailedRekeyIsTriedAgain(t *testing.T) {
	// req dtlskeys-7-2
	// req dtlskeys-6.2.5-2
	for _, c := range []struct {
		name    string
		happens func(l *lab, id uint64)
		then    []ActionKind
	}{
		{"TLS fails", func(l *lab, id uint64) { l.m.SessionFailed(l.now, id, errTLS, []byte{21, 3, 3, 0, 2, 2, 42}) },
			[]ActionKind{SendMessage, CloseSession}},
		{"the server sends an alert", func(l *lab, id uint64) { l.m.SessionFailed(l.now, id, errTLS, nil) },
			[]ActionKind{CloseSession}},
		{"an alert after the Finished", func(l *lab, id uint64) {
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(44, true), Output: finished(1)})
			l.expect(SendMessage)
			l.m.SessionFailed(l.now, id, errTLS, nil)
		}, []ActionKind{CloseSession}},
		{"no answer", func(l *lab, id uint64) { l.wait(30 * time.Second) }, []ActionKind{SendMessage, CloseSession}},
		{"Protection Established too early", func(l *lab, id uint64) { l.tellEstablished(4) }, []ActionKind{CloseSession}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, server := establishedClient(t), peerKeys(t, 3, false, 3)
			for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
				id := l.session(t)
				c.happens(l, id)
				l.expect(c.then...)
				check.That(t, opens(t, server, l.keys), "the keys in use are gone")
				l.wait(pause*time.Second - 1)
				l.expect()
				l.wait(1)
			}
			id := l.session(t)
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, true), Output: finished(1)})
			l.expect(SendMessage)
			l.tellEstablished(4)
			l.expect(StoreRestart, CloseSession)
			check.That(t, opens(t, peerKeys(t, 4, false, 4), l.keys), "the keys are of the wrong session")
			check.Equal(t, "counts", l.m.Stats(), Stats{Established: 2, Failed: 8})
		})
	}
}

// session returns the session that the Manager has begun, or begins now.
func (l *lab) session(t testing.TB) (id uint64) {
	t.Helper()
	if l.m.session == nil {
		return l.beginRekey()
	}
	a := l.expect(StartSession)[0]
	check.That(t, a.IsClient && a.Epoch == 4, "%+v", a)
	l.m.SessionWrote(l.now, a.Session, hello(1))
	l.expect(SendMessage)
	return a.Session
}

// A server whose client does not go on tells it so, by a record that no client can read.
func TestServerGivesARekeyUp(t *testing.T) {
	l := establishedServer(t)
	l.tell(4, hello(1))
	l.expect(StartSession, FeedSession)
	l.wait(30 * time.Second)
	check.Slice(t, "message", l.expect(SendMessage, CloseSession)[0].Data, []byte{4, 21, 3, 3, 0, 2, 2, 80})
	l.tell(4, finished(1))
	l.expect()
	check.Equal(t, "messages of no session", l.m.Stats().Ignored, 1)
	l.tell(4, hello(2))
	l.expect() // the peer has to wait
	l.wait(time.Second)
	l.expect(StartSession, FeedSession)
}

// After the Finished the server may have changed its keys: no time-out takes them back.
func TestClientWaitsForProtectionEstablished(t *testing.T) {
	l := establishedClient(t)
	id := l.beginRekey()
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, false), Output: finished(1)})
	l.expect(SendMessage)
	l.m.SetBlocked(l.now, true)
	l.wait(30 * time.Minute)
	l.m.SetBlocked(l.now, false)
	l.wait(5 * time.Minute)
	l.expect()
	check.That(t, opens(t, peerKeys(t, 4, false, 4), l.keys) && opens(t, peerKeys(t, 3, false, 3), l.keys),
		"keys to open with are gone")
	l.tellEstablished(4)
	l.expect(CloseSession)
}

// When keys cannot be replaced they serve until a limit, and then the association ends.
func TestKeysExpire(t *testing.T) {
	// req dtlskeys-7-3
	for _, c := range []struct {
		name    string
		happens func(l *lab)
		after   time.Duration
		err     error
	}{
		{"too old", func(l *lab) {}, 2*time.Hour - time.Second, errTimeout},
		{"records", func(l *lab) {
			for l.keys.Sealer().Left() > 0 {
				_, _ = l.keys.Append(make([]byte, 0, 64), []byte{1, 2, 3, 4})
			}
		}, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "records" && testing.Short() {
				t.Skip("seals as many records as a key may")
			}
			l := establishedClient(t)
			c.happens(l)
			for c.after > 0 { // no ServerHello ever comes
				step := min(c.after, time.Minute)
				l.wait(step - 1)
				check.That(t, l.m.failure == nil, "%v, %v before the end", l.m.failure, c.after)
				l.wait(1)
				c.after -= step
			}
			l.m.HandleTimeout(l.now)
			f := l.m.failure
			check.That(t, f != nil && f.Why == KeysExpired && (c.err == nil || errors.Is(f, c.err)), "%v", f)
		})
	}
}

// The policy: an hour, by default; and before a certificate expires.
func TestRekeyIsBegun(t *testing.T) {
	// req dtlskeys-3.4-1, dtlskeys-3.4-2
	// req dtlskeys-3.4-3
	for _, c := range []struct {
		name      string
		expiresIn time.Duration
		want      time.Duration
	}{
		{"by age", 0, time.Hour},
		{"by age, before a certificate", 100 * time.Hour, time.Hour},
		{"by a certificate", time.Hour, 50 * time.Minute},
		{"by a certificate that has little time", 6 * time.Minute, 3 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, Config{})
			id := l.expect(StartSession)[0].Session
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(3, false), ExpiresIn: c.expiresIn})
			l.expect(Protect, SendMessage, CloseSession)
			l.wait(c.want - 1)
			l.expect()
			l.wait(1)
			l.expect(StartSession)
			if c.expiresIn == time.Hour {
				l.wait(10 * time.Minute)
				check.That(t, l.m.failure != nil && l.m.failure.Why == KeysExpired, "%v", l.m.failure)
			}
		})
	}
}

// The peer may ask for a rekey once a second.
func TestRateOfThePeersRekeys(t *testing.T) {
	l := establishedServer(t)
	for epoch := uint64(4); epoch < 10; epoch++ {
		l.tell(epoch, hello(1))
		if epoch > 4 {
			l.expect()
			l.wait(time.Second / 2)
			l.tell(epoch, hello(2)) // the later one counts
			l.m.Rekey()             // and comes before one of our own
			l.wait(time.Second/2 - 1)
			l.expect()
			l.wait(1)
		}
		list := l.expect(StartSession, FeedSession)
		l.m.SessionDone(l.now, list[0].Session, Outcome{Secrets: secretsOf(epoch, false)})
		l.expect(SendMessage, CloseSession)
	}
	check.Equal(t, "epoch", l.m.Epoch(), 9)
}

// Nobody else's session changes anything.
func TestSessionsThatAreOver(t *testing.T) {
	l := establishedClient(t)
	id := l.beginRekey()
	for _, other := range []uint64{0, id - 1, id + 1} {
		if other != id-1 { // which may still write its close_notify
			l.m.SessionWrote(l.now, other, hello(1))
		}
		l.m.SessionDone(l.now, other, Outcome{Secrets: secretsOf(5, false)})
		l.m.SessionFailed(l.now, other, errTLS, []byte{21, 3, 3, 0, 2, 2, 42})
	}
	for _, epoch := range []uint64{2, 3, 5, 6} {
		l.tell(epoch, hello(1))
		l.tellEstablished(epoch)
	}
	l.m.HandleMessage(l.now, []byte{0x84, 2}) // a control message of a later draft
	l.expect()
	check.Equal(t, "messages of no session", l.m.Stats().Ignored, 9)
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, false), Output: finished(1)})
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(5, false), Output: finished(1)}) // twice
	l.expect(SendMessage)
}

// Seven bits of the epoch turn, and so do the two of the records.
func Test200Epochs(t *testing.T) {
	l := establishedServer(t)
	for epoch := uint64(4); epoch < 204; epoch++ {
		l.wait(200 * time.Second)
		l.tell(epoch, hello(1))
		list := l.expect(StartSession, FeedSession)
		l.m.SessionDone(l.now, list[0].Session, Outcome{Secrets: secretsOf(epoch, true)})
		check.Slice(t, "message", l.expect(StoreRestart, SendMessage, CloseSession)[1].Data, []byte{0x80 | byte(epoch)&0x7f, 1})
		l.m.MessagesAcked(l.now, epoch-2)
	}
	check.That(t, opens(t, peerKeys(t, 203, true, 203), l.keys), "the last keys do not open")
}

// A key whose records come to an end is made to last until there is another one.
func TestSendingSlowsDown(t *testing.T) {
	l := establishedClient(t)
	check.Equal(t, "interval, of a key that is fresh", l.m.SendInterval(l.now), 0)
	limits := seal.Limits{Records: 100}
	keys := seal.NewKeyring(limits, 0)
	l = newLab(t, Config{})
	l.keys, l.m = keys, New(l.now, Config{FailureTime: failureTime}, keys)
	check.Equal(t, "interval, without a key", l.m.SendInterval(l.now), 0)
	l.rekeyAsServer(3)
	l.rekeyAsServer(4)
	for range 100 {
		_, _ = keys.Append(nil, []byte{1, 2, 3, 4})
	}
	left := time.Duration(keys.Sealer().Left())
	check.Equal(t, "interval, while nothing is confirmed", l.m.SendInterval(l.now), (failureTime+10*time.Second)/left+1)
	l.m.MessagesAcked(l.now, l.m.sent)
	check.Equal(t, "interval, while the last keys drain", l.m.SendInterval(l.now), (20*time.Second)/left+1)
	l.wait(10 * time.Second) // and a rekey begins
	check.That(t, l.m.session != nil, "no rekey has begun")
	check.Equal(t, "interval, while the keys are replaced", l.m.SendInterval(l.now), (10*time.Second)/left+1)
}

// rekeyAsServer goes through a handshake that the peer begins.
func (l *lab) rekeyAsServer(epoch uint64) {
	l.t.Helper()
	l.wait(time.Second)
	l.tell(epoch, hello(1))
	l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(epoch, false)})
	for _, ok := l.m.Next(); ok; _, ok = l.m.Next() {
	}
}

// Both sides begin, and the peer's ClientHello comes before the own one is written. That is not
// sent any more: the peer would take it for the end of the session that goes on.
func TestLateHelloOfAnAbandonedSession(t *testing.T) {
	l := establishedServer(t)
	l.m.Rekey()
	l.wait(0)
	own := l.expect(StartSession)[0].Session
	l.tell(4, hello(1))
	peers := l.expect(CloseSession, StartSession, FeedSession)[1].Session
	l.m.SessionWrote(l.now, own, hello(2))
	l.expect()
	l.m.SessionWrote(l.now, peers, serverHello(1))
	l.expect(SendMessage)
	l.m.SessionDone(l.now, peers, Outcome{Secrets: secretsOf(4, true)})
	l.expect(StoreRestart, SendMessage, CloseSession)
	l.m.SessionWrote(l.now, peers, []byte{21, 3, 3, 0, 2, 1, 0}) // its close_notify is
	l.expect(SendMessage)
}
