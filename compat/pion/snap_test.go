package sctp_test

import (
	"sync"
	"testing"

	"github.com/pion/sctp"
)

// Both ends begin with the tokens of both, and no packet is needed.
func TestOutOfBandTokens(t *testing.T) { inBubble(testOutOfBandTokens)(t) }

func testOutOfBandTokens(t *testing.T) {
	var tokens [2][]byte
	for i := range tokens {
		var err error
		tokens[i], err = sctp.GenerateOutOfBandToken(sctp.WithMaxReceiveBufferSize(1<<20), sctp.WithEnableZeroChecksum(true))
		ok(t, err)
	}
	e := new(ends)
	e.conns[0], e.conns[1] = newPipe()
	for _, c := range e.conns {
		c.loseSome(func([]byte) bool { return true })
	}
	for i := range e.assoc {
		a, err := sctp.ClientWithOptions(sctp.WithNetConn(e.conns[i]), sctp.WithSNAP(tokens[i], tokens[1-i]),
			sctp.WithMaxReceiveBufferSize(1<<20), sctp.WithEnableZeroChecksum(true))
		ok(t, err)
		defer a.Close()
		e.assoc[i] = a
	}
	for _, c := range e.conns {
		c.loseSome(nil)
	}
	var both sync.WaitGroup
	for i := range e.assoc {
		both.Go(func() {
			s, err := e.assoc[i].OpenStream(uint16(i), 53)
			ok(t, err)
			_, err = s.Write(make([]byte, 50_000))
			ok(t, err)
			in, err := e.assoc[i].AcceptStream()
			ok(t, err)
			n, err := in.Read(make([]byte, 1<<16))
			ok(t, err)
			want(t, "octets", n, 50_000)
			want(t, "stream", in.StreamIdentifier(), uint16(1-i))
		})
	}
	both.Wait()
	m, _ := e.assoc[0].Metadata()
	want(t, "zero checksum", m.ZeroChecksumSendingEnabled, true)
	want(t, "partial reliability", m.PartialReliabilityMode != sctp.PartialReliabilityModeNone, true)
}

func TestTokensThatAreNone(t *testing.T) {
	good, err := sctp.GenerateOutOfBandToken()
	ok(t, err)
	for name, tokens := range map[string][2][]byte{
		"none": {nil, nil}, "no chunk": {good, []byte("x")}, "another chunk": {good, append([]byte{3}, good[1:]...)},
		"own is none": {[]byte("nonsense"), good}, "cut off": {good, good[:len(good)-3]},
	} {
		a, b := newPipe()
		if _, err := sctp.ClientWithOptions(sctp.WithNetConn(a), sctp.WithSNAP(tokens[0], tokens[1])); err == nil {
			t.Errorf("%s is accepted", name)
		}
		a.Close()
		b.Close()
	}
}
