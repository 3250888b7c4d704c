package assoc

import (
	"net/netip"
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// dataState holds the sending and the receiving half of an association. They are more than a third
// of its memory, and hardly needed while there is no DATA. So an association that has sent and
// received none for IdleAfter, or none yet, has no halves. It gets them back when something has to
// do with DATA again. HEARTBEATs and MTU probes do without.
//
// With very many associations, the processor takes longer to find a page of memory than to read it.
// So the halves, with the runtime's header, take half a page and never lie on two. They have space
// for what a short message needs on its way out, and in.
type dataState struct {
	sender   tx.Sender
	receiver rx.Receiver
	_        [pageSize/2 - objectHeaderSize - unsafe.Sizeof(tx.Sender{}) - unsafe.Sizeof(rx.Receiver{})]byte
}

// page is the length of a page, or a part of it. header is what the runtime puts before an object
// of that length that has pointers.
const (
	pageSize         = 4096
	objectHeaderSize = 8
)

// sender returns the sending half. From then on there is one, and a receiving half too, until
// GoIdle.
func (a *Assoc) sender() *tx.Sender {
	if h := a.dataState.Load(); h != nil {
		return &h.sender
	}
	return a.restoreDataState()
}

// ensureDataState returns the halves, which are empty if there were none.
func (a *Assoc) ensureDataState() *dataState {
	if a.IsIdle() {
		a.dataState.Store(new(dataState))
	}
	return a.dataState.Load()
}

// replaceSender replaces the sending half, without paths.
func (a *Assoc) replaceSender() {
	s := &a.ensureDataState().sender
	if sent := s.Stats(); sent != (tx.Stats{}) {
		a.rareCounters().addSenderStats(sent)
	}
	if list := a.failedSenders(); len(list) > 0 && list[len(list)-1] == s { // report its messages from a copy
		list[len(list)-1] = s.Copy()
	}
	a.initSender(s)
}

// initSender makes a sending half, without paths.
func (a *Assoc) initSender(s *tx.Sender) {
	s.Init(tx.Config{TSN: a.life.localTSN, SendBuffer: a.cfg.SendBuffer, MaxBurst: max(a.cfg.MaxBurst, 0),
		MaxSegment: a.cfg.MaxSegment, StrictRFC: a.cfg.RFC9260, NoDelay: a.cfg.NoDelay,
		NoFragments: a.cfg.DisableFragments,
		RTTs:        &a.stats.rttSamples, Rand: a.randUint32, Steps: &a.stats.workSteps})
	a.connectUpper(s)
	s.SetECN(a.ecn.enabled)
}

// receiverConfig returns the configuration of a receiving half.
func (a *Assoc) receiverConfig(peerTSN wire.TSN) rx.Config {
	return rx.Config{PeerTSN: peerTSN, RecvBuffer: a.cfg.initialWindow(), MaxBuffer: a.cfg.maxWindow(),
		MaxMessage: a.cfg.MaxMessage, PartialPoint: a.cfg.PartialDelivery,
		PMDCS: a.primaryPath().PMDCS(), SackDelay: a.cfg.SackDelay, LoneSackDelay: a.cfg.LoneSackDelay,
		StrictRFC: a.cfg.RFC9260, InStreams: int(a.agreed.inStreams), MayAbandon: a.peerSendsForwardTSN(),
		Interleaved: a.interleaves(), Steps: &a.stats.workSteps}
}

// startData makes the receiving half, or restarts it, and gives the sending half the peer's window.
func (a *Assoc) startData(peerRwnd uint32, peerTSN wire.TSN) {
	if a.peerReconfigures() || a.changesAddresses() {
		a.ensureRareState().peerTSN = peerTSN
	}
	a.sender().SetPeer(peerRwnd, int(a.agreed.outStreams))
	a.startExtensions()
	if cfg := a.receiverConfig(peerTSN); a.recv == nil {
		a.recv = &a.ensureDataState().receiver
		a.recv.Init(cfg)
	} else {
		a.recv.Restart(cfg)
	}
	a.sacks.path, a.sacks.local = a.primaryPath(), netip.AddrPort{}
}

// outstandingChunks returns how many DATA chunks are outstanding.
func (a *Assoc) outstandingChunks() int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().Outstanding()
}
