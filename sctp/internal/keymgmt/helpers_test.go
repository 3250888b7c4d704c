package keymgmt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

const (
	start       rawio.Time = 1e9
	failureTime            = 363 * time.Second
)

var testParams = Params{Client: []byte{0x80, 6, 0, 10, 1, 2, 3, 4, 1, 192}, Server: []byte{0x80, 6, 0, 10, 5, 6, 7, 8, 2, 192}}

// lab is one Manager, whose peer and whose TLS are the test's script.
type lab struct {
	t    testing.TB
	now  rawio.Time
	m    *Manager
	keys *seal.Keyring
}

func newLab(t testing.TB, cfg Config) *lab {
	cfg.FailureTime = failureTime
	l := &lab{t: t, now: start, keys: seal.NewKeyring(seal.Limits{}, 0)}
	l.m = New(l.now, cfg, l.keys)
	return l
}

// wait lets time pass, up to each deadline.
func (l *lab) wait(d time.Duration) {
	l.t.Helper()
	end := l.now.Add(d)
	for range 1000 {
		at := l.m.Deadline(l.now)
		if at > end {
			l.now = end
			return
		}
		l.now = max(l.now, at)
		l.m.HandleTimeout(l.now)
	}
	l.t.Fatalf("no end of deadlines at %v", l.now)
}

// expect compares what the Manager wants to have done with the kinds that are named, and returns
// that.
func (l *lab) expect(kinds ...ActionKind) (list []Action) {
	l.t.Helper()
	var got []ActionKind
	for a, ok := l.m.Next(); ok; a, ok = l.m.Next() {
		list, got = append(list, a), append(got, a.Kind)
	}
	must.Slice(l.t, "actions", got, kinds)
	return list
}

// secretsOf are those of a session; both ends have the same.
func secretsOf(seed uint64, withRestart bool) *Secrets {
	export := func(label string, context []byte, n int) ([]byte, error) {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte(label), context...), seed))
		return sum[:n], nil
	}
	s, err := Export(export, seal.AES128GCM, testParams, withRestart)
	if err != nil {
		panic(err)
	}
	return s
}

// hello and serverHello are how the records of the flights begin.
func hello(tag byte) []byte       { return []byte{22, 3, 1, 0, 3, 1, 0, tag} }
func serverHello(tag byte) []byte { return []byte{22, 3, 3, 0, 3, 2, 0, tag} }
func finished(tag byte) []byte    { return []byte{23, 3, 3, 0, 1, tag} }

func retry() []byte {
	b := append([]byte{22, 3, 3, 0, 38, 2, 0, 0, 34, 3, 3}, retryRandom...)
	return b
}

// tell gives the Manager a message of the peer.
func (l *lab) tell(epoch uint64, records []byte) {
	l.m.HandleMessage(l.now, appendMessage(nil, epoch, records))
}

func (l *lab) tellEstablished(epoch uint64) { l.m.HandleMessage(l.now, establishedMessage(epoch)) }

// peerKeys is the Keyring of the other end, with the keys of an epoch.
func peerKeys(t testing.TB, epoch uint64, isClient bool, seed uint64) *seal.Keyring {
	t.Helper()
	k := seal.NewKeyring(seal.Limits{}, 0)
	send, receive := ByServer, ByClient
	if isClient {
		send, receive = receive, send
	}
	for e := uint64(seal.FirstEpoch); e <= epoch; e++ {
		s := secretsOf(seed, false)
		if e != epoch {
			s = secretsOf(99, false) // of no interest
		}
		must.OK(t, k.InstallReceive(0, e, &s.Primary[receive]))
		must.OK(t, k.InstallSend(0, e, &s.Primary[send]))
		if e > seal.FirstEpoch {
			k.RemoveReceive(e - 1)
		}
	}
	return k
}

// opens reports whether a record that from seals is opened by to.
func opens(t testing.TB, from, to *seal.Keyring) bool {
	t.Helper()
	b, err := from.Append(nil, []byte{1, 2, 3, 4})
	if err != nil {
		return false
	}
	got, _, err := to.Open(0, b[:len(b)-3], nil)
	return err == nil && bytes.Equal(got, []byte{1, 2, 3, 4})
}

// establishedClient and establishedServer are at the end of the first handshake.
func establishedClient(t testing.TB) *lab {
	t.Helper()
	l := newLab(t, Config{IsClient: true})
	id := l.expect(StartSession)[0].Session
	l.m.SessionWrote(l.now, id, hello(1))
	l.expect(SendMessage)
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(3, true), Output: finished(1)})
	l.expect(SendMessage)
	l.tellEstablished(3)
	l.expect(Protect, StoreRestart, CloseSession)
	l.wait(time.Second)
	return l
}

func establishedServer(t testing.TB) *lab {
	t.Helper()
	l := newLab(t, Config{})
	id := l.expect(StartSession)[0].Session
	l.tell(3, hello(1))
	l.expect(FeedSession)
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(3, true)})
	l.expect(Protect, StoreRestart, SendMessage, CloseSession)
	l.m.MessagesAcked(l.now, 1)
	l.wait(time.Second)
	return l
}

// beginRekey asks for a rekey, and returns its session.
func (l *lab) beginRekey() (id uint64) {
	l.t.Helper()
	l.m.Rekey()
	l.wait(0)
	a := l.expect(StartSession)[0]
	check.That(l.t, a.IsClient, "the side that rekeys is the client")
	l.m.SessionWrote(l.now, a.Session, hello(1))
	l.expect(SendMessage)
	return a.Session
}

var errTLS = errors.New("tls: something is wrong")
