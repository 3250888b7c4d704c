// Package mmsg moves datagrams through Linux sockets in batches: sendmmsg and recvmmsg over message
// arrays of its own, scatter and gather straight from and into the callers' memory, and no
// allocation per packet. It waits in Go's network poller, so closing wakes a reader.
//
// A Group is one or two sockets (IPv4, IPv6) that are read together and a Codec for each, which
// turns datagrams into rawio.Packets and back. ICMP errors come in through the sockets' error
// queues (IP_RECVERR), which the reader looks at before it goes to sleep and whenever the kernel
// reports a pending error, so that data packets pay nothing for them.
//
// Off Linux the package is empty.
package mmsg
