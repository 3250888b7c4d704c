// Package mmsg moves datagrams through Linux sockets in batches, by sendmmsg and recvmmsg over
// message arrays of its own. Off Linux it is empty.
//
//   - In, out: datagrams, straight from and into the callers' memory. A Codec turns them into
//     rawio.Packets and back. ICMP errors come in through the sockets' error queues (IP_RECVERR).
//   - Invariant: nothing is allocated for a packet. The error queues cost data packets nothing: the
//     reader looks at them before it sleeps and when the kernel reports an error.
//   - Read first: Group, which is one or two sockets (IPv4, IPv6) that are read together. It waits
//     in Go's network poller, so closing wakes a reader.
package mmsg
