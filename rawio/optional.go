package rawio

import (
	"net/netip"
	"slices"
	"time"
)

// The interfaces that a link may implement besides Link. The table in the package comment says
// which link implements which, and what happens where one does not.

// Features are what a link can do besides moving packets.
type Features uint8

const (
	// DontFragment: packets without Packet.Fragment leave whole, with DF set, or not at all,
	// whatever the system believes of the path. A path MTU can be probed only over such a link (RFC
	// 8899 sections 3 and 4.5). Other links' MTU is taken as given (RFC 6951 section 5.6).
	DontFragment Features = 1 << iota
	// ECNField: Packet.ECN is reported on receive and set on transmit.
	ECNField
	// Interruptible: the link is an Interrupter, and Interrupt works.
	Interruptible
	// Waitable: the link is a Waiter, and Wait works.
	Waitable
	// Marking: Packet.DSCP and FlowLabel are set on transmit.
	Marking
	// PointToPoint: all packets go to one peer and come from it, by one path. The addresses of the
	// two ends are names that mean nothing to the peer. An association over such a link keeps to
	// RFC 8261 section 6.1, and an INIT for a port that is not open yet waits for that.
	PointToPoint
)

// Featurer is implemented by links that report what they can do.
type Featurer interface {
	Features() Features
	// ReceiveBuffer returns how many octets of packets the kernel holds before it drops more, 0
	// where there is no such buffer. A receiver that advertises a larger window invites losses of
	// its own making.
	ReceiveBuffer() int
}

// FeaturesOf returns the features of a link, none where it is no Featurer.
func FeaturesOf(l Link) Features {
	if f, ok := l.(Featurer); ok {
		return f.Features()
	}
	return 0
}

// ReceiveBufferOf returns the receive buffer of a link, 0 where it is no Featurer.
func ReceiveBufferOf(l Link) int {
	if f, ok := l.(Featurer); ok {
		return f.ReceiveBuffer()
	}
	return 0
}

// Addresser is implemented by links that know their own addresses. The first is the default source.
// A port in them is that of UDP encapsulation (RFC 6951), 0 on a link without.
type Addresser interface {
	LocalAddrs() []netip.AddrPort
}

// Owner is implemented by links that know all addresses of their host, also those that the link is
// not bound to.
type Owner interface {
	// Owns says whether an address is one of this host's now: packets to it come back.
	Owns(a netip.Addr) bool
}

// Owns asks a link whether an address is one of its host's. A link that is no Owner owns only its
// own addresses: see Addresser.
func Owns(l Link, a netip.Addr) bool {
	switch l := l.(type) {
	case Owner:
		return l.Owns(a)
	case Addresser:
		return slices.ContainsFunc(l.LocalAddrs(), func(own netip.AddrPort) bool {
			return own.Addr().Unmap() == a.Unmap()
		})
	}
	return false
}

// Watcher is implemented by links that are notified of changes of this host's interfaces.
type Watcher interface {
	// Watch calls changed when an interface has gone down or come up, or has other addresses or
	// another MTU. It does so even if packets cannot leave from these addresses. usable are the own
	// addresses that packets can leave from, link-local ones with their zones. Watch returns after
	// Close.
	Watch(changed func(usable []netip.Addr))
}

// BaseSizer is implemented by links that know a length that every path of theirs carries, as of
// BASE_PLPMTU (RFC 8899 section 5.1.2). The search for the path MTU begins there.
type BaseSizer interface {
	// BaseMTU returns that length, in octets of an SCTP packet, 0 where none is known.
	BaseMTU(local, remote netip.Addr) int
}

// BaseMTUOf returns the BaseMTU of a link, nil where it is no BaseSizer.
func BaseMTUOf(l Link) func(local, remote netip.Addr) int {
	if s, ok := l.(BaseSizer); ok {
		return s.BaseMTU
	}
	return nil
}

// Batcher is implemented by links that never bring more than some packets at once. Their reader
// needs memory for no more.
type Batcher interface {
	// MaxBatch returns the most packets that a ReadBatch fills, 0 for any number.
	MaxBatch() int
}

// MaxBatchOf returns the MaxBatch of a link, 0 where it is no Batcher.
func MaxBatchOf(l Link) int {
	if b, ok := l.(Batcher); ok {
		return b.MaxBatch()
	}
	return 0
}

// ErrorDetection is an alternate error detection method of RFC 9653, by its identifier.
type ErrorDetection uint32

const (
	// NoErrorDetection: packets may come with other octets than they were sent with.
	NoErrorDetection ErrorDetection = 0
	// DTLSErrorDetection: packets are carried by DTLS, which drops what has changed on the way (RFC
	// 9653 section 4.1).
	DTLSErrorDetection ErrorDetection = 1
)

// ErrorDetector is implemented by links whose carrier detects errors at least as well as the CRC32c
// of SCTP. Two ends that both say so by the same method may agree to leave the checksum 0 (RFC
// 9653). A link that says so without right delivers damaged data.
type ErrorDetector interface {
	ErrorDetection() ErrorDetection
}

// ErrorDetectionOf returns the method of a link, NoErrorDetection where it is no ErrorDetector.
func ErrorDetectionOf(l Link) ErrorDetection {
	if d, ok := l.(ErrorDetector); ok {
		return d.ErrorDetection()
	}
	return NoErrorDetection
}

// Fragmenter is implemented by links that do not send every packet as Packet.Fragment asks.
type Fragmenter interface {
	// CutFrom returns the length in octets, a multiple of four, from which on an SCTP packet from
	// local to remote is fragmented. That holds for a packet longer than Packet.Fragment; a shorter
	// one goes whole. 0 means any length, less than 0 that no packet is fragmented.
	CutFrom(local, remote netip.Addr) int
}

// CutFromOf returns the CutFrom of a link, nil where it cuts any packet.
func CutFromOf(l Link) func(local, remote netip.Addr) int {
	if f, ok := l.(Fragmenter); ok {
		return f.CutFrom
	}
	return nil
}

// PortBinder is implemented by links that need to know which SCTP ports this process owns. So two
// programs on one host do not take each other's packets.
type PortBinder interface {
	// BindPort takes a port at some of the link's addresses, or at all if none are named. They add
	// to those at which the link has it already. It fails with ErrPortInUse when another program
	// holds the port there.
	BindPort(port uint16, at ...netip.Addr) error
	// UnbindPort gives a port up, at all addresses.
	UnbindPort(port uint16)
}

// Interrupter is implemented by links whose ReadBatch can be interrupted, so that goroutines can
// take turns at it. Interrupt makes a ReadBatch that blocks, or the next one, return
// ErrInterrupted. It may be called at any time; several calls may count as one.
type Interrupter interface {
	Interrupt()
}

// Prompter is implemented by links whose WriteBatch never blocks for long. A Transport writes to
// any other link in a goroutine of its own, from a copy of the packets. It waits for that for at
// most 100 ms.
type Prompter interface {
	// Prompt returns the link itself, or nil if its WriteBatch may block. A type that embeds a
	// prompt link and has a WriteBatch of its own is therefore not taken for prompt.
	Prompt() Link
}

// PromptOf says whether a link is a Prompter that is prompt.
func PromptOf(l Link) bool {
	p, ok := l.(Prompter)
	return ok && p.Prompt() == l
}

// Poller is implemented by links, and shards, that can say that nothing has come.
type Poller interface {
	// PollBatch is ReadBatch, but where that would block it returns 0. An error is left to
	// ReadBatch, or Wait, to find.
	PollBatch(pkts []Packet) (n int)
}

// Waiter is implemented by links, and shards, whose reader may decide how it waits between two
// calls of PollBatch. ReadBatch decides that by itself.
type Waiter interface {
	Poller
	// Wait returns when there may be something to read. It fails as ReadBatch does.
	Wait(p Pause) error
	// Polling returns how long a reader polls before it blocks. 0 means as long as it pays, less
	// than 0 never.
	Polling() time.Duration
}

// Pause is what a reader does when nothing has come.
type Pause uint8

const (
	// Yield lets other goroutines go first, and returns.
	Yield Pause = iota
	// Cede lets other threads of the host go first as well.
	Cede
	// Block waits in the kernel, for a moment: the thread keeps its place.
	Block
	// Park waits in the runtime's poller.
	Park
	// Sleep lets the goroutines that are ready run first, then waits in the kernel as Block does,
	// but until a packet comes.
	Sleep
)

// Sharder is implemented by links with several queues of incoming packets. Packets of one flow,
// which is addresses and ports, come through one of them.
type Sharder interface {
	// Shards returns the queues beside the link's own. Each is read, until it returns
	// net.ErrClosed.
	Shards() []Shard
}

// Shard is a queue of incoming packets, for one goroutine at a time, as ReadBatch of a Link is. It
// may be a Poller, or a Waiter.
type Shard interface {
	ReadBatch(pkts []Packet) (n int, err error)
}

// ShardsOf returns the further queues of a link.
func ShardsOf(l Link) []Shard {
	if s, ok := l.(Sharder); ok {
		return s.Shards()
	}
	return nil
}

// MaxShards is how many queues a link may have in all.
const MaxShards = 64
