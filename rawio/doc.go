// Package rawio moves whole SCTP packets (RFC 9260 section 3) between a protocol stack and a link.
// It knows addresses, lengths and memory, and nothing of what a packet says.
//
//   - In: [Link.ReadBatch] fills a slice of [Packet]. Each is a view into a reference-counted
//     [Buf].
//   - Out: [Link.WriteBatch] writes packets. Each is a vector of pieces, written in order.
//   - Invariant: a link may lose and reorder packets, and gives each Buf back exactly once.
//   - Read first: rawio.go (the types), optional.go (what a link may also be).
//
// # Links
//
// Links live in the packages below: raw IP sockets, a TUN device, UDP encapsulation (RFC 6951), an
// in-process pair (mem), and any connection that keeps packets apart, such as DTLS (netconn). Package pcap is a tap that records any of them. Package simnet is a
// simulated network for tests in virtual time; it is no Link but is fed with the same packets.
//
// Do not confuse two lengths. An IP-level MTU counts the IP header, as ip(8) and ICMP do; links are
// configured with it. [Link.MTU] is the room left for the SCTP packet. [Overhead] is the
// difference.
//
// # A link of one's own
//
// Anything that carries packets, unreliably and in any order, can be a link. sctp.NewTransport and
// rdma.NewDevice need only the four methods of [Link]; the example of Link has some 40 lines. A
// link may be more than that. The table says which link is what, and what the stack does over one
// that is not:
//
//	               raw udp tun mem pcap conn
//	Featurer        x   x   x   x   x   x   takes the MTU of paths as given, uses neither ECN nor DSCP, lets nobody take turns at reading
//	Addresser       x   x   x   x   x   x   leaves it to the link from which address packets go, and believes Config.LocalAddrs
//	Owner           x   x           x       takes LocalAddrs for all addresses of the host
//	Watcher         x   x           x       learns from silence that an own interface is down
//	Fragmenter          x           x   x   takes any packet that is too long to leave in fragments
//	BaseSizer                       x   x   begins the search for a path MTU at the size of RFC 8899
//	Batcher                         x   x   has memory for 128 packets at once
//	ErrorDetector                   x   x   needs checksums
//	PortBinder      x           x   x       keeps ports apart within this process alone
//	Interrupter     x   x   x   x   x       has one goroutine read, which wakes those that wait for packets
//	Poller          x   x   x   x   x       answers what one ReadBatch has brought, whatever has come meanwhile
//	Waiter          x   x   x       x       leaves it to ReadBatch how long it polls before it blocks
//	Sharder             x   x       x       reads one queue
//	Prompter        x   x   x   x   x   x   writes in a goroutine of its own, from a copy, and waits for it for 100 ms
//
// (The UDP link of other systems than Linux is an Addresser and an Owner, and nothing else. It
// ignores Packet.Local: see package udp.) A link that encapsulates in UDP has to be an Addresser,
// since its ports show that. One that several programs of a host share has to be a PortBinder. Path
// MTUs are searched for only where a Featurer promises DontFragment. A link that leads to one peer,
// as those of netconn do, is PointToPoint. The others are for speed. The tap of package pcap is all
// of it, as far as the link inside is.
package rawio
