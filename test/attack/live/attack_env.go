//go:build linux

package main

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rdma"
)

// attack is a row of the table.
type attack struct {
	name, rfc string
	udp       bool   // over UDP encapsulation
	flow      string // of the honest client that is measured beside it
	rate      int    // packets a second; 0 is the common rate
	most      int    // packets in the quiet phase; 0 is as many as the rate gives
	least     int    // and at least

	// start prepares the attack and returns a step of it, which is called again and again with
	// growing i. A step sends one packet or a few.
	start func(x *attackEnv) (step func(i int) error, err error)
	// finish looks for damage of another kind than those that are always looked for.
	finish func(x *attackEnv) error

	any  bool     // every reaction towards the attacker is right
	must []string // reactions that have to be seen
	may  []string // and those that may; all others are wrong
	echo float64  // octets to third parties for each octet of the attack, at most; default 0: none
	idle int64    // octets of buffers that the link keeps after it, to use again: no account has them
	// undecodable is how many times the processor time of as many datagrams that nobody can decode it
	// may take; 0: it is not compared
	undecodable float64
	mass        int // octets that the victim may hold because of the attack; 0 is the common bound
}

// attackEnv is what an attack works with.
type attackEnv struct {
	*family
	w       *wireTap
	victim  *agent
	friend  *agent
	regions map[string]rdma.STag
	peers   []*peer
	used    int

	bystander  uint8       // of the present attack
	sealed     sealedStats // before it
	sealedSent int         // packets of it
}

// freshAddr returns an address and port of the attacker that were not used before.
func (x *attackEnv) freshAddr() netip.AddrPort {
	x.used++
	return netip.AddrPortFrom(hostAddr(x.attackers, x.used/40000), uint16(10000+x.used%40000))
}

// innocentAddr returns an address of a third party, and a port that was not used before.
func (x *attackEnv) innocentAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(hostAddr(x.innocents, i%5000), x.freshAddr().Port())
}

// newPeer returns an association from an address that was not used before, yet to be set up.
func (x *attackEnv) newPeer(to netip.AddrPort, params []byte) *peer {
	p := x.w.newPeer(x.freshAddr(), to)
	p.inits = params
	x.peers = append(x.peers, p)
	return p
}

// openAssoc sets an association up.
func (x *attackEnv) openAssoc(to netip.AddrPort, params []byte) (*peer, error) {
	p := x.newPeer(to, params)
	return p, p.connectAssoc()
}

// clearAttack ends what the attack has left.
func (x *attackEnv) clearAttack() {
	for _, p := range x.peers {
		p.abortAssoc()
	}
	x.peers = x.peers[:0]
}

// dropPeer forgets an association that is over.
func (x *attackEnv) dropPeer(p *peer) {
	p.stopReceiving()
	for i := len(x.peers) - 1; i >= 0; i-- {
		if x.peers[i] == p {
			x.peers = append(x.peers[:i], x.peers[i+1:]...)
			return
		}
	}
}

// withoutAssoc makes a step that sends a packet without an association.
func withoutAssoc(f func(x *attackEnv, i int) error) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		return func(i int) error { return f(x, i) }, nil
	}
}

// onOneAssoc makes steps that all use one association, to the SCTP server and after its first
// message.
func onOneAssoc(first string, f func(x *attackEnv, p *peer, i int) error) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		p, err := x.openAssoc(x.victimPort(portSCTP), nil)
		if err != nil {
			return nil, err
		}
		if first != "" {
			if err := p.sendMessage(first); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			p.drainPackets()
			return f(x, p, i)
		}, nil
	}
}

// onNewAssocs makes steps that each set an association up and have it ended by the victim.
func onNewAssocs(f func(x *attackEnv, p *peer, i int) error) func(*attackEnv) (func(int) error, error) {
	return withoutAssoc(func(x *attackEnv, i int) error {
		p, err := x.openAssoc(x.victimPort(portSCTP), nil)
		if err != nil {
			return err
		}
		if err := f(x, p, i); err != nil {
			return err
		}
		if _, err := p.waitForChunk(0xFF); err != errAborted {
			p.abortAssoc()
			return fmt.Errorf("the association was not aborted: %w", err)
		}
		x.dropPeer(p)
		return nil
	})
}
