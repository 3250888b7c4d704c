package keymgmt

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// What was sealed with the old keys is opened until they have drained. That is 120 s after the peer
// is known to have the last message, else as long as the association may take to fail.
func TestOldKeysDrain(t *testing.T) {
	// req dtlskeys-6.2.2-6
	// req dtlskeys-6.2.3-2
	// req dtlskeys-6.2.3-3
	for _, c := range []struct {
		name    string
		client  bool
		ackedIn time.Duration // -1: never
		want    time.Duration
	}{
		{"client, which has the answer", true, -1, 120 * time.Second},
		{"server, acknowledged", false, time.Second, 121 * time.Second},
		{"server, acknowledged late", false, 300 * time.Second, failureTime},
		{"server, never acknowledged", false, -1, failureTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l *lab
			if c.client {
				l = establishedClient(t)
				id := l.beginRekey()
				l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, false), Output: finished(1)})
				l.tellEstablished(4)
				l.expect(SendMessage, CloseSession)
			} else {
				l = establishedServer(t)
				l.tell(4, hello(1))
				l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(4, false)})
				l.expect(StartSession, FeedSession, SendMessage, CloseSession)
			}
			old := peerKeys(t, 3, !c.client, 3)
			began := l.now
			l.m.MessagesAcked(l.now, l.m.sent-1) // not the last
			if c.ackedIn >= 0 {
				l.wait(c.ackedIn)
				l.m.MessagesAcked(l.now, l.m.sent)
			}
			l.wait(began.Add(c.want).Sub(l.now) - 1)
			check.That(t, opens(t, old, l.keys), "the old keys are gone before the end")
			l.wait(1)
			check.That(t, !opens(t, old, l.keys), "the old keys are there after the end")
			check.That(t, opens(t, peerKeys(t, 4, !c.client, 4), l.keys), "the new keys are gone")
			l.expect()
		})
	}
}

// The association may fail sooner than in 120 s.
func TestDrainLastsAtLeast120Seconds(t *testing.T) {
	l := newLab(t, Config{})
	l.m.cfg.FailureTime = 5 * time.Second
	l.rekeyAsServer(3)
	l.rekeyAsServer(4)
	l.wait(120*time.Second - 1)
	check.That(t, opens(t, peerKeys(t, 3, true, 3), l.keys), "the old keys are gone")
	l.wait(1)
	check.That(t, !opens(t, peerKeys(t, 3, true, 3), l.keys), "the old keys are there")
}

// A rekey of our own waits until the last keys have drained; one of the peer's ends the draining.
func TestRekeyWhileKeysDrain(t *testing.T) {
	// req dtlskeys-6.2.5-1
	// req dtlskeys-6.2.5-3
	l := newLab(t, Config{})
	l.rekeyAsServer(3)
	l.rekeyAsServer(4)
	l.m.MessagesAcked(l.now, l.m.sent)
	l.m.Rekey()
	l.wait(120*time.Second - 1)
	l.expect()
	l.tell(5, hello(1))
	l.expect(StartSession, FeedSession)
	check.That(t, !opens(t, peerKeys(t, 3, true, 3), l.keys), "keys of three epochs")
	l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(5, false)})
	l.expect(SendMessage, CloseSession)
	check.That(t, opens(t, peerKeys(t, 4, true, 4), l.keys) && opens(t, peerKeys(t, 5, true, 5), l.keys),
		"keys of two epochs are missing")
	l.m.MessagesAcked(l.now, l.m.sent)
	l.m.Rekey()
	l.wait(120 * time.Second)
	l.expect(StartSession)
}

// Keys that are worn, and not only old, are replaced after a short time.
func TestWornKeysDrainFast(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits seal.Limits
		want   time.Duration
	}{
		{"old", seal.Limits{Age: time.Second}, 120 * time.Second},
		{"many octets", seal.Limits{Octets: 4}, 10 * time.Second},
		{"many records", seal.Limits{Records: 1}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := seal.NewKeyring(c.limits, 0)
			l := newLab(t, Config{})
			l.keys, l.m = keys, New(l.now, Config{FailureTime: failureTime}, keys)
			l.rekeyAsServer(3)
			l.rekeyAsServer(4)
			must.Do(keys.Append(nil, []byte{1, 2, 3, 4}))(t)
			l.m.MessagesAcked(l.now, l.m.sent)
			l.wait(c.want - 1)
			l.expect()
			l.wait(1)
			l.expect(StartSession)
		})
	}
}

// restarted is one side after a restart under restart keys of epoch 9.
func restarted(t testing.TB, isClient bool) (l *lab, peer *seal.Keyring) {
	t.Helper()
	s := secretsOf(9, true)
	keys := seal.NewKeyring(seal.Limits{}, 0)
	must.OK(t, keys.InstallRestart(0, 9, &s.Restart[ByClient], &s.Restart[ByServer]))
	must.OK(t, keys.UseRestart(0, 9))
	peer = seal.NewKeyring(seal.Limits{}, 0)
	must.OK(t, peer.InstallRestart(0, 9, &s.Restart[ByServer], &s.Restart[ByClient]))
	must.OK(t, peer.UseRestart(0, 9))
	l = &lab{t: t, now: start, keys: keys}
	l.m = New(start, Config{IsClient: isClient, RestartEpoch: 9, FailureTime: failureTime}, keys)
	return l, peer
}

// After a restart there is protection at once, and a handshake for epoch 3. The restart keys in use
// open what is under way, then the new ones take their place.
func TestKeysAfterARestart(t *testing.T) {
	// req dtlskeys-6.3.2-2
	// req dtlskeys-6.3.2-4
	// req dtlskeys-6.3.2-5
	// req dtlskeys-6.3.2-6
	// req dtlskeys-6.3.2-7
	// req dtlschunk-5.4-13
	for _, isClient := range []bool{true, false} {
		l, peer := restarted(t, isClient)
		if isClient {
			check.Equal(t, "epoch", l.expect(Protect, StartSession)[1].Epoch, 3)
			id := l.m.session.id
			l.m.SessionWrote(l.now, id, hello(1))
			l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(3, true), Output: finished(1)})
			l.expect(SendMessage, SendMessage)
			l.tellEstablished(3)
			l.expect(CloseSession)
		} else {
			l.expect(Protect)
			l.wait(10 * time.Second) // the client has its time
			l.tell(3, hello(1))
			check.Equal(t, "epoch", l.expect(StartSession, FeedSession)[0].Epoch, 3)
			l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(3, true)})
			l.expect(SendMessage, CloseSession)
			l.m.MessagesAcked(l.now, l.m.sent)
		}
		check.That(t, l.keys.Sealer().Epoch() == 3 && !l.keys.Sealer().IsRestart(), "what is sealed with has not changed")
		l.wait(10*time.Second - 1)
		check.That(t, opens(t, peer, l.keys), "the restart keys are gone before they have drained")
		l.wait(1)
		stored, s := l.expect(StoreRestart)[0].Restart, secretsOf(3, true)
		send, receive := s.Restart[ByServer], s.Restart[ByClient]
		if isClient {
			send, receive = receive, send
		}
		check.That(t, *stored == RestartKeys{3, send, receive}, "%+v", stored)
		check.That(t, !opens(t, peer, l.keys), "the restart keys are there after they have drained")
		check.OK(t, l.keys.UseRestart(l.now, 3))
	}
}

// The next rekey of the peer may come before the restart keys have drained.
func TestRekeySoonAfterARestart(t *testing.T) {
	l, peer := restarted(t, false)
	l.expect(Protect)
	l.tell(3, hello(1))
	l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(3, true)})
	l.expect(StartSession, FeedSession, SendMessage, CloseSession)
	l.wait(2 * time.Second)
	l.tell(4, hello(1))
	l.expect(StoreRestart, StartSession, FeedSession)
	check.That(t, !opens(t, peer, l.keys), "the restart keys are still there")
	l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(4, true)})
	l.expect(StoreRestart, SendMessage, CloseSession)
	check.That(t, opens(t, peerKeys(t, 3, true, 3), l.keys) && opens(t, peerKeys(t, 4, true, 4), l.keys),
		"keys of two epochs are missing")
}

// A handshake that fails after a restart leaves the restart keys in use.
func TestFailedHandshakeAfterARestart(t *testing.T) {
	l, peer := restarted(t, true)
	id := l.expect(Protect, StartSession)[1].Session
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(33, true), Output: finished(1)})
	l.m.SessionFailed(l.now, id, errTLS, nil)
	l.expect(SendMessage, CloseSession)
	check.That(t, opens(t, peer, l.keys) && opens(t, l.keys, peer), "the restart keys are gone")
	l.m.Rekey()
	l.wait(time.Second)
	l.expect(StartSession)
	l.m.SessionDone(l.now, l.m.session.id, Outcome{Secrets: secretsOf(3, true), Output: finished(1)})
	l.tellEstablished(3)
	l.expect(SendMessage, CloseSession)
	check.That(t, opens(t, peerKeys(t, 3, false, 3), l.keys), "the keys are of the wrong session")
}
