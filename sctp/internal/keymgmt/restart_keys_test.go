package keymgmt

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

func testRecord(suite seal.Suite) RestartRecord {
	part := func(n int, x byte) []byte { return bytes.Repeat([]byte{x}, n) }
	m := func(x byte) seal.Material {
		m, _ := seal.NewMaterial(suite, part(suite.KeyLen(), x), part(suite.KeyLen(), x+1), part(seal.IVLen, x+2))
		return m
	}
	return RestartRecord{Name: "7-8-192.0.2.1", Keys: RestartKeys{Epoch: 9, Send: m(10), Receive: m(20)}, Peer: part(700, 30)}
}

// equalRecords compares two records.
func equalRecords(a, b *RestartRecord) bool {
	return a.Name == b.Name && a.Keys == b.Keys && bytes.Equal(a.Peer, b.Peer)
}

// A record comes back as it was, and nothing that was cut or changed is a record.
func TestRestartRecord(t *testing.T) {
	for _, suite := range seal.Suites() {
		r := testRecord(suite)
		b := r.Append([]byte("before"))[len("before"):]
		got := must.Get(ParseRestartRecord(b))(t)
		check.That(t, equalRecords(&got, &r), "%v: %+v", suite, got)
		for n := range b {
			_, err := ParseRestartRecord(b[:n])
			check.Error(t, "a part of it", err, ErrRestartRecord)
			changed := bytes.Clone(b)
			changed[n]++
			_, err = ParseRestartRecord(changed)
			check.Error(t, "another octet", err, ErrRestartRecord)
		}
	}
}

// resum ends a changed record with the sum that it then has to have.
func resum(b []byte) []byte {
	body := b[:len(b)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

func TestRestartRecordsThatAreNone(t *testing.T) {
	r := testRecord(seal.AES128GCM)
	b := r.Append(nil)
	nameAt := len(restartMagic) + 10 + 2*(16+16+12)
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"of another version", resum([]byte(strings.Replace(string(b), "restart 1", "restart 2", 1)))},
		{"of an epoch before the first", resum(append(append([]byte(restartMagic), 0, 0, 0, 0, 0, 0, 0, 2), b[len(restartMagic)+8:]...))},
		{"of no suite", resum(append(append(bytes.Clone(b[:len(restartMagic)+8]), 0x13, 0x09), b[len(restartMagic)+10:]...))},
		{"of a suite with longer keys", resum(append(append(bytes.Clone(b[:len(restartMagic)+8]), 0x13, 0x02), b[len(restartMagic)+10:nameAt]...))},
		{"with a name that is too long", resum(append(append(bytes.Clone(b[:nameAt]), 0xff, 0xff, 0xff, 0xff), b[nameAt+4:]...))},
		{"with more behind it", resum(append(bytes.Clone(b), 1))},
		{"longer than any", resum(append(bytes.Clone(b), make([]byte, MaxRestartRecord)...))},
	} {
		_, err := ParseRestartRecord(c.b)
		check.Error(t, c.name, err, ErrRestartRecord)
	}
}

// FuzzRestartRecord reads what a file may hold, with a right sum. What is a record is written as it
// was.
func FuzzRestartRecord(f *testing.F) {
	for _, suite := range seal.Suites() {
		r := testRecord(suite)
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, b := range [][]byte{in, resum(append(bytes.Clone(in), make([]byte, sha256.Size)...))} {
			r, err := ParseRestartRecord(b)
			if err != nil {
				must.That(t, equalRecords(&r, &RestartRecord{}), "%+v with %v", r, err)
				continue
			}
			must.That(t, bytes.Equal(r.Append(nil), b), "%+v is written otherwise", r)
		}
	})
}

// What is stored is of the session that both sides have keys of: the client stores when the server
// says so, and not if the handshake fails at last.
func TestClientStoresWhatTheServerHas(t *testing.T) {
	l := establishedClient(t)
	id := l.beginRekey()
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(4, true), Output: finished(1)})
	l.expect(SendMessage)
	l.m.SessionFailed(l.now, id, errTLS, nil)
	l.expect(CloseSession)
	l.wait(minRetryTime)
	id = l.session(t)
	l.m.SessionDone(l.now, id, Outcome{Secrets: secretsOf(5, true), Output: finished(1)})
	l.expect(SendMessage)
	l.tellEstablished(4)
	stored, s := l.expect(StoreRestart, CloseSession)[0].Restart, secretsOf(5, true)
	check.That(t, *stored == RestartKeys{4, s.Restart[ByClient], s.Restart[ByServer]}, "%+v", stored)
}

// A side that has restarted itself is nothing without the next handshake, in either role.
func TestHandshakeAfterAnOwnRestart(t *testing.T) {
	for _, isClient := range []bool{true, false} {
		l, _ := restarted(t, isClient)
		l.m = New(l.now, Config{IsClient: isClient, RestartEpoch: 9, AwaitsPeer: true, FailureTime: failureTime}, l.keys)
		id := l.expect(Protect, StartSession)[1].Session
		if isClient {
			l.m.SessionFailed(l.now, id, errTLS, nil)
		} else {
			l.wait(defaultHandshakeTimeout)
		}
		why := l.expect(CloseSession, Abort)[1].Failure.Why
		check.Equal(t, "failure", why, map[bool]Reason{true: HandshakeFailed, false: HandshakeTimeout}[isClient])
	}
}

func TestParamsHaveRestart(t *testing.T) {
	with := func(b []byte, bit byte) []byte {
		b = bytes.Clone(b)
		b[8] |= bit
		return b
	}
	for _, c := range []struct{ client, server, want bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		bits := map[bool]byte{true: 4}
		p := Params{with(testParams.Client, bits[c.client]), with(testParams.Server, bits[c.server])}
		check.Equal(t, "both take restarts", p.HasRestart(), c.want)
	}
	check.That(t, !(Params{testParams.Client[:4], with(testParams.Server, 4)}).HasRestart(), "half a parameter")
	check.That(t, !(Params{with(testParams.Client, 4), nil}).HasRestart(), "no parameter")
}
