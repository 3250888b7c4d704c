//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

const (
	cables    = 2
	cableMTU  = 1500
	smallest  = 1280
	longFault = 1500 * time.Millisecond // no cable is out for longer
)

// network is two hosts, namespaces a and b, with two cables between them that lose packets.
type network struct {
	a, b string
}

// runCommand runs a command line, for which there is no shell.
func runCommand(format string, args ...any) error {
	f := strings.Fields(fmt.Sprintf(format, args...))
	if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(f, " "), err, out)
	}
	return nil
}

// hostAddrs are addresses of one host on both cables. Host a has 1, and 11 for the mortal client.
// Over UDP each process is an SCTP stack of its own. Two at one address may take the same port. To
// the server they would be one peer that has restarted (RFC 6951 has one stack at an address). Host
// b has 2, and 12, which nobody uses.
func hostAddrs(last byte) []netip.Addr {
	var addrs []netip.Addr
	for k := range cables {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 81, byte(k), last}))
	}
	return addrs
}

func newNetwork(name string, loss float64) (*network, error) {
	n := &network{name + "-a", name + "-b"}
	err := n.buildNetwork(loss)
	if err != nil {
		n.removeNetwork()
	}
	return n, err
}

func (n *network) buildNetwork(loss float64) error {
	if err := errors.Join(runCommand("ip netns add %s", n.a), runCommand("ip netns add %s", n.b)); err != nil {
		return err
	}
	for k := range cables {
		if err := runCommand("ip link add veth%d netns %s type veth peer name veth%d netns %s", k, n.a, k,
			n.b); err != nil {
			return err
		}
		for i, ns := range []string{n.a, n.b} {
			if err := errors.Join(
				runCommand("ip -n %s address add %s/24 dev veth%d", ns, hostAddrs(byte(1 + i))[k], k),
				runCommand("ip -n %s address add %s/24 dev veth%d", ns, hostAddrs(byte(11 + i))[k], k),
				runCommand("ip -n %s link set veth%d mtu %d up", ns, k, cableMTU),
				n.setLoss(ns, k, loss)); err != nil {
				return err
			}
		}
	}
	return errors.Join(runCommand("ip -n %s link set lo up", n.a), runCommand("ip -n %s link set lo up", n.b))
}

// setLoss drops a part of what arrives. Ingress comes before raw sockets and everything else.
func (n *network) setLoss(ns string, k int, percent float64) error {
	cmd := exec.Command("ip", "netns", "exec", ns, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`table netdev loss%d {
	chain ingress {
		type filter hook ingress device "veth%d" priority 0
		meta l4proto { 132, 17 } numgen random mod 10000 < %d counter drop
	}
}
`, k, k, int(percent*100)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

func (n *network) removeNetwork() {
	runCommand("ip netns del %s", n.a)
	runCommand("ip netns del %s", n.b)
}

// injectFault makes one fault of a random kind, waits, and repairs it. It returns what it did.
func (n *network) injectFault(rng *rand.Rand) (string, error) {
	ns, k := n.a, rng.IntN(cables)
	if rng.IntN(2) == 0 {
		ns = n.b
	}
	span := 50*time.Millisecond + time.Duration(rng.Int64N(int64(longFault)))
	pull := func(k int, how string) error { return runCommand("ip -n %s link set veth%d %s", ns, k, how) }
	var err error
	switch rng.IntN(4) {
	case 0, 1:
		err = pull(k, "down")
		time.Sleep(span)
		return "flap", errors.Join(err, pull(k, "up"))
	case 2:
		err = errors.Join(pull(0, "down"), pull(1, "down"))
		time.Sleep(span)
		return "outage", errors.Join(err, pull(0, "up"), pull(1, "up"))
	}
	// What is longer vanishes without a report when only the far end of the cable is smaller.
	mtu := smallest + rng.IntN(cableMTU-smallest)
	err = runCommand("ip -n %s link set veth%d mtu %d", ns, k, mtu)
	time.Sleep(2 * span)
	return "mtu", errors.Join(err, runCommand("ip -n %s link set veth%d mtu %d", ns, k, cableMTU))
}

// numDropped adds up what the loss has cost.
func (n *network) numDropped() (packets uint64) {
	for _, ns := range []string{n.a, n.b} {
		out, _ := exec.Command("ip", "netns", "exec", ns, "nft", "list", "ruleset").Output()
		for line := range strings.Lines(string(out)) {
			if _, after, ok := strings.Cut(line, "counter packets "); ok {
				var p uint64
				fmt.Sscan(after, &p)
				packets += p
			}
		}
	}
	return packets
}
