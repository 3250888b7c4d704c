package rdma

import (
	"crypto/tls"
	"net/netip"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// What QPs, Listeners and a Device need of what carries their messages. SCTP has it in the files
// sctp_*.go, and TCP in tcp_*.go. Nothing else in this package knows of either.

// connection carries the sessions of one peer, such as an SCTP association. Its methods are for the
// holder of its lock, where they do not say otherwise.
type connection interface {
	// lock takes the connection lock and returns the time. It is for anybody.
	lock() rawio.Time
	// unlock sends what has become ready and gives the lock up. No lock is held when it returns.
	unlock()
	// unlockAt is unlock for a caller that has done so little since now that the clock need not be
	// read again.
	unlockAt(now rawio.Time)
	// peek calls look under the lock, which it takes for that long only. It is for anybody.
	peek(look func())
	// remoteAddr returns the address and port of the peer. It is for anybody.
	remoteAddr() netip.AddrPort
	// remoteAddrLocked is remoteAddr for the holder of the lock.
	remoteAddrLocked() netip.AddrPort
	// connectionState returns what TLS knows of the peer, false in the clear. It is for anybody.
	connectionState() (tls.ConnectionState, bool)
	// flushLater has peer.runQPWork called once what was taken for sending is written.
	flushLater()
	// detach copies what is on its way of memory inside within, for a session. It is for anybody.
	detach(s session, within []byte)
	// breakOff ends the connection because code above it has contradicted itself.
	breakOff(err *rdmap.InternalError)
	// waitLeft returns when what is below is the program's again, if it will be, behind a Reject.
	// It is for anybody.
	waitLeft()
	// peerStats returns what the peer has done to this side. It is for anybody.
	peerStats() PeerStats
	// abortFor ends the connection, and with it all its sessions. It is for anybody.
	abortFor(reason string)
	// sweepIdle ends the connection if it has had no session for some sweeps. It is for anybody.
	sweepIdle()
}

// session carries the DDP stream of one QP, from the request on. Its methods are for the holder of
// the connection lock.
type session interface {
	// Active says that this side has asked for it.
	Active() bool
	// Err returns why it has ended.
	Err() error
	// MULPDU returns the longest DDP segment in octets.
	MULPDU() int
	Stats() StreamStats
	// Abort ends it abruptly.
	Abort()
	// Detach copies what is on its way of memory inside within (nil: of all). more says that this
	// was a part: let others have the lock, and call it again.
	Detach(within []byte) (more bool)
	// streamNumber is that of its pair of SCTP streams, -1 for none.
	streamNumber() int
	// setOwner says whose it is: a *Request, and then a *QP.
	setOwner(owner any)
	// awaitsAnswer says that the peer has asked for it, and nobody has answered.
	awaitsAnswer() bool
	// accept answers the peer, in its kind. setup is not nil if the peer negotiates.
	accept(now rawio.Time, stream *ddp.Stream, setup *Setup, private []byte) error
	// reject answers the peer. setup may be nil.
	reject(now rawio.Time, setup *Setup, private []byte) error
}

// lowerListener is the transport's part of a Listener.
type lowerListener interface {
	Port() uint16
	Close() error
}

// signal is a token that makes a waiting goroutine look again. Its methods may be called from
// several goroutines.
type signal interface {
	// C has the token while the signal is set, for use in select.
	C() <-chan struct{}
	// Set sets the signal, and wakes one goroutine that waits for it.
	Set()
	// Brings counts one of the things that the signal is set for.
	Brings()
	// Wait blocks until the signal is set, which it reports and undoes, or a channel is closed. A
	// nil channel never is. Code that closes one calls Device.rouse afterwards. No lock may be
	// held.
	Wait(a, b <-chan struct{}) (set bool)
}
