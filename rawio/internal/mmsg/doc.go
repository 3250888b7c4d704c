// Package mmsg moves datagrams through Linux sockets in batches, by sendmmsg and recvmmsg over
// message arrays of its own. It scatters and gathers straight from and into the callers' memory,
// and allocates nothing per packet. It waits in Go's network poller, so closing wakes a reader.
//
// A Group is one or two sockets (IPv4, IPv6) that are read together. Each has a Codec, which turns
// datagrams into rawio.Packets and back. ICMP errors come in through the sockets' error queues
// (IP_RECVERR). The reader looks at them before it goes to sleep and whenever the kernel reports a
// pending error. So data packets pay nothing for them.
//
// Off Linux the package is empty.
package mmsg
