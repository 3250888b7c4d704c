//go:build linux

package main

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// Over UDP a port is one thing more to lie about.
func udpAttacks(f *family) []attack {
	list := []attack{
		{name: "another encapsulation port in the client's name, with guessed tags", rfc: "6951 5.4",
			start: withoutAssoc(func(x *attackEnv, i int) error {
				b := forge.Packet(friendSCTP, portSCTP, x.w.randomTag(), wire.AppendHeartbeat(nil, make([]byte, 4)))
				return x.w.sendIP(x.w.carrySCTP(x.friendAddr, x.victimAddr, uint16(1024+i%60000), b))
			})},
		{name: "INIT flood from ever other encapsulation ports", rfc: "6951 5.4, 9260 5.1.3", must: []string{"INIT ACK"},
			start: withoutAssoc(func(x *attackEnv, i int) error {
				src := x.freshAddr()
				b := forge.Packet(src.Port(), portSCTP, 0, initChunk(x.w.randomTag(), 1, 1<<16, nil))
				return x.w.sendIP(x.w.carrySCTP(src.Addr(), x.victimAddr, uint16(1024+i%60000), b))
			})},
		{name: "INIT flood in the names of third parties", rfc: "5062 9", must: []string{"INIT ACK" + third}, echo: 4,
			start: withoutAssoc(func(x *attackEnv, i int) error {
				from := x.innocentAddr(i)
				return x.w.sendSCTP(from, x.victimPort(portSCTP), 0, initChunk(x.w.randomTag(), 1, 1<<16, nil))
			})},
		{name: "ABORT with guessed tags, T bit on and off", rfc: "5062 3.2, 9260 8.5.1",
			start: asClient(func(_ *attackEnv, i int) []byte { return wire.AppendAbort(nil, tBitOfOdd(i)) })},
		{name: f.port.name + " with guessed tags", rfc: "6951 5.5",
			start: reportICMP(f.port, 0)},
		{name: fmt.Sprintf("%s, MTU %d, with guessed tags", f.tooBig.name, f.leastMTU), rfc: "6951 5.6, 8899 4.6",
			start: reportICMP(f.tooBig, f.leastMTU), finish: checkMTUKept},
		{name: "datagrams that are no SCTP", rfc: "6951 5.4",
			start: withoutAssoc(func(x *attackEnv, i int) error {
				return x.w.sendIP(udpDatagram(hostAddr(x.attackers, i%200), x.victimAddr, uint16(1024+i%60000),
					randomOctets(x, i%1400)))
			})},
		{name: "bad checksums", rfc: "9260 6.8",
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				b := forge.Packet(friendSCTP, portSCTP, x.w.randomTag(),
					dataChunk(nil, 1, whole, 0, 0, 0, make([]byte, 1000)))
				b[8]++
				return x.w.sendIP(x.w.carrySCTP(x.friendAddr, x.victimAddr, encapPort, b))
			})},
		{name: "associations that say nothing", rfc: "5042 6.4.1", most: 3000, must: []string{"INIT ACK", "COOKIE ACK"}, may: []string{"HEARTBEAT"},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				p.stopReceiving()
				return err
			})},
		{name: "Write with a forged STag", rfc: "5042 6.1.1", must: []string{"Terminate 1/1/0"},
			may:   []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK", "Accept", "session Terminate"},
			start: writeAttack("none", regionBase)},
	}
	list = append(list, nobodyAttacks(f)...)
	for i := range list {
		list[i].udp = true
	}
	return list
}
