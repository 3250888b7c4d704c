//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/keystore"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The honest client has an encrypted association too. Attackers are on its path: they know its tag,
// and see its packets, and cannot open them.
const (
	portSealed   = 5003  // of the victim
	friendSealed = 40002 // of the honest client
	flowSealed   = "encrypted"
)

// What forged records may cost, as many times as datagrams of the same length that nobody can
// decode.
const (
	mostOfShort = 1.5
	mostOfFull  = 3
)

// fullRecord is the record of a packet of 1500 octets, for either family.
const fullRecord = 1400

// leastRecord is the shortest record that may open.
const leastRecord = 20

// sealedConfig is that of an encrypted association which may be restarted.
func sealedConfig() (*sctp.Config, error) {
	var f cli.TLSFlags
	fs := cli.NewFlags("hostile")
	f.Add(fs)
	if err := fs.Parse([]string{"--insecure-self-signed"}); err != nil {
		return nil, err
	}
	if err := f.Open("hostile", false, io.Discard); err != nil {
		return nil, err
	}
	cfg := f.Config("")
	cfg.ClientAuth = tls.RequireAnyClientCert
	return &sctp.Config{TLS: cfg, RestartStore: new(keystore.Memory)}, nil
}

// serveSealed echoes what comes over encrypted associations.
func (v *victim) serveSealed() error {
	cfg, err := sealedConfig()
	if err != nil {
		return err
	}
	l, err := v.dev.Transport().Listen(portSealed, cfg)
	if err == nil {
		go v.acceptAssocs(l)
	}
	return err
}

// isSealed reports whether an association is the encrypted one.
func isSealed(c *sctp.Conn) bool {
	_, is := c.ConnectionState()
	return is
}

// sealedStats is what the victim tells of its encrypted association.
type sealedStats struct {
	NotOpened, Unprotected, Restarts uint64
}

// sealedStats sums up those of all.
func (v *victim) sealedStats() (sum sealedStats) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.conns {
		if isSealed(c) {
			s := c.Stats()
			sum.NotOpened += s.NotOpened
			sum.Unprotected += s.Unprotected
			sum.Restarts += s.Restarts
		}
	}
	return sum
}

// startSealed has a message go to and fro over an encrypted association, and returns what ends it.
func (f *honestClient) startSealed(ctx, running context.Context) (stop func(), err error) {
	cfg, err := sealedConfig()
	if err != nil {
		return nil, err
	}
	cfg.LocalPort, cfg.LocalAddrs = friendSealed, []netip.Addr{f.friendAddr}
	c, err := f.dev.Transport().Dial(ctx, f.victimPort(portSealed), cfg)
	if err != nil {
		return nil, err
	}
	c.Upper().Peek(func(a *assoc.Assoc) { f.sealedTag.Store(a.PeerTag()) })
	if _, err := c.WriteMsg([]byte(askEcho), sctp.SendInfo{}); err != nil {
		return nil, err
	}
	go func() {
		b := make([]byte, 64)
		for err := error(nil); err == nil; time.Sleep(slowPace) {
			if _, err = c.WriteMsg(b, sctp.SendInfo{}); err == nil {
				_, _, err = c.ReadMsg(b)
			}
			if err != nil {
				f.noteFailure(running, flowSealed, err)
				return
			}
			f.octets[flowSealed].Add(uint64(len(b)))
		}
	}()
	return func() { c.Abort("") }, nil
}

// onSealed makes steps that each send a packet in the client's name, with the right tag, on the
// encrypted association.
func onSealed(chunk func(x *attackEnv) []byte) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		var tag uint32
		if err := x.friend.callAgent("sealed", nil, &tag); err != nil {
			return nil, err
		}
		if err := x.victim.callAgent("sealed", nil, &x.sealed); err != nil {
			return nil, err
		}
		x.sealedSent = 0
		return func(int) error {
			x.sealedSent++
			from := netip.AddrPortFrom(x.friendAddr, friendSealed)
			return x.w.sendSCTP(from, x.victimPort(portSealed), tag, chunk(x))
		}, nil
	}
}

// forgedRecord is a DTLS chunk of the epoch in use that nobody has sealed.
func forgedRecord(x *attackEnv, restart bool, n int) []byte {
	b := wire.AppendDTLSHeader(nil, restart, n)
	b = append(b, 0x28|3)
	b = append(b, randomOctets(x, n-1)...)
	return append(b, wire.Padding(len(b))...)
}

// countedAs checks that each packet of an attack was counted, and has restarted nothing.
func countedAs(count func(*sealedStats) uint64) func(x *attackEnv) error {
	return func(x *attackEnv) error {
		var now sealedStats
		if err := x.victim.callAgent("sealed", nil, &now); err != nil {
			return err
		}
		if got := count(&now) - count(&x.sealed); got < uint64(x.sealedSent)*9/10 { // a queue may have lost some
			return fmt.Errorf("%d packets of %d are counted", got, x.sealedSent)
		}
		if now.Restarts != x.sealed.Restarts {
			return errors.New("the association was restarted")
		}
		return nil
	}
}

// sealedAttacks are those on the path of an encrypted association.
func sealedAttacks() (list []attack) {
	notOpened := countedAs(func(s *sealedStats) uint64 { return s.NotOpened })
	unprotected := countedAs(func(s *sealedStats) uint64 { return s.Unprotected })
	for _, c := range []struct {
		name    string
		restart bool
		n       int
		times   float64
	}{
		{"short forged records", false, leastRecord, mostOfShort},
		{"full forged records", false, fullRecord, mostOfFull},
		{"short forged records of a restart", true, leastRecord, mostOfShort},
		{"full forged records of a restart", true, fullRecord, mostOfFull},
	} {
		list = append(list, attack{name: c.name, rfc: "DTLS chunk 5.2, 5.4", undecodable: c.times, finish: notOpened,
			start: onSealed(func(x *attackEnv) []byte { return forgedRecord(x, c.restart, c.n) })})
	}
	for _, c := range []struct {
		name  string
		chunk []byte
	}{
		{"ABORT", wire.AppendAbort(nil, false)},
		{"SHUTDOWN", wire.AppendShutdown(nil, 0)},
		{"DATA", dataChunk(nil, 1, whole, 0, 0, 0, []byte("in the clear"))},
	} {
		list = append(list, attack{name: c.name + " in the clear, with the right tag, on an encrypted association",
			rfc: "DTLS chunk 5.2", finish: unprotected, start: onSealed(func(*attackEnv) []byte { return c.chunk })})
	}
	return list
}

// answerSealed is what agents answer about the encrypted association.
func (v *victim) answerSealed(json.RawMessage) (any, error) { return v.sealedStats(), nil }
func (f *honestClient) answerSealed(json.RawMessage) (any, error) {
	return f.sealedTag.Load(), nil
}
