package rdma

import (
	"context"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/quota"
)

// EventKind says what an Event reports. Fields of Event that a kind does not name are zero.
type EventKind uint8

// The asynchronous events of a Device (RFC 5042 section 2.2.7), with their names in libibverbs
// where they have one.
const (
	// EventQPFatal (IBV_EVENT_QP_FATAL): the stream of QP failed, Err is why. An end that either
	// program asked for is no failure.
	EventQPFatal EventKind = iota + 1
	// EventCQError (IBV_EVENT_CQ_ERR): CQ has overflowed; Err is ErrCQOverflow. Its QPs fail.
	EventCQError
	// EventSRQLimit (IBV_EVENT_SRQ_LIMIT_REACHED): SRQ has fewer buffers than SRQ.SetLimit asked
	// for, and QP took the last of them.
	EventSRQLimit
	// EventHighWater: QP has more receives in process than QP.SetHighWater allows. Its peer begins
	// messages that it does not complete.
	EventHighWater
	// EventAssocUp: an association with Remote is established.
	EventAssocUp
	// EventAssocDown: the association with Remote has ended. Err is nil for a graceful end.
	EventAssocDown
)

var eventNames = [...]string{"none", "QP fatal", "CQ error", "SRQ limit reached", "receives in process",
	"association up", "association down"}

// String returns a short name, for traces.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one asynchronous event of a Device.
type Event struct {
	Kind   EventKind
	QP     *QP
	CQ     *CQ
	SRQ    *SRQ
	Remote netip.AddrPort // address and SCTP port of the peer, also where QP is set
	Err    error
	// Lost counts the events that were dropped right before this one, because Limits.MaxEvents
	// before them were not read. Look at everything then.
	Lost int
}

// NextEvent returns the oldest event not yet returned and blocks for one.
//
// A Device keeps Limits.MaxEvents, at most half of them about one address. It takes no more than as
// many from one address in a second. Further ones are dropped and counted in Event.Lost of the
// next. So peers cannot make it hold more, or hide events of others. Nothing else depends on events
// being read. After Close it fails with net.ErrClosed, and with the context's error if that ends
// first.
func (d *Device) NextEvent(ctx context.Context) (Event, error) {
	for {
		if ev, some := d.events.pop(); some {
			return ev, nil
		}
		select {
		case <-d.events.ready:
		case <-d.closed.Done():
			return Event{}, net.ErrClosed
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// queuedEvent is an event that has not been read.
type queuedEvent struct {
	Event
	peerAddr netip.Addr
}

// eventQueue is a ring of fixed size.
type eventQueue struct {
	mu        sync.Mutex // a leaf lock
	ring      []queuedEvent
	head, n   int
	shares    quota.ClientShares // of what waits
	rate      quota.RateLimiter  // of those about one address
	lost      int
	totalLost uint64 // of lost
	ready     chan struct{}
}

func (q *eventQueue) init(size int) {
	q.ring, q.ready = make([]queuedEvent, size), make(chan struct{}, 1)
	q.rate = quota.RateLimiter{All: math.MaxInt, Each: size}
}

// push adds an event or counts it as lost.
func (q *eventQueue) push(ev Event) {
	q.mu.Lock()
	who := ev.Remote.Addr()
	free := len(q.ring) - q.n
	if free == 0 || who.IsValid() && (q.shares.RoomFor(who, int64(free)) == 0 || !q.rate.Allow(time.Now(), who)) {
		q.lost++
		q.totalLost++
	} else {
		ev.Lost, q.lost = q.lost, 0
		q.ring[(q.head+q.n)%len(q.ring)] = queuedEvent{ev, who}
		q.n++
		if who.IsValid() {
			q.shares.AddHeld(who, 1)
		}
	}
	q.mu.Unlock()
	q.wakeReader()
}

func (q *eventQueue) lostEvents() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.totalLost
}

func (q *eventQueue) wakeReader() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *eventQueue) pop() (ev Event, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return ev, false
	}
	first := q.ring[q.head]
	q.ring[q.head] = queuedEvent{}
	if first.peerAddr.IsValid() {
		q.shares.AddHeld(first.peerAddr, -1)
	}
	q.head = (q.head + 1) % len(q.ring)
	if q.n--; q.n > 0 {
		q.wakeReader() // the next reader
	}
	return first.Event, true
}

// deferEvent has ev reported when the connection lock is free. Owner only. The address is read
// here: a holder of a leaf lock may not take a connection lock, whose owner may report events
// itself.
func (q *QP) deferEvent(ev Event) {
	if p := q.peer.Load(); p != nil {
		ev.Remote = p.conn.remoteAddrLocked()
		p.deferCall(func() { q.dev.reportEvent(ev) })
	}
}

// reportConn reports the beginning and the end of the connection when its lock is free. addTo, if
// it is not nil, adds what is final to the counters of the Device.
func (p *peer) reportConn(up bool, err error, addTo func(*Stats)) {
	if up == p.isUp {
		return
	}
	p.isUp = up
	ev := Event{Kind: EventAssocDown, Err: err}
	if up {
		ev.Kind = EventAssocUp
	}
	ev.Remote = p.conn.remoteAddrLocked()
	// The table changes at once. Two goroutines may do what is deferred, the end before the
	// beginning.
	p.dev.mu.Lock()
	if addTo != nil {
		addTo(&p.dev.stats)
		p.dev.latency.Add(&p.latency)
	}
	if up {
		p.dev.peers[p] = struct{}{}
	} else {
		delete(p.dev.peers, p)
	}
	p.dev.mu.Unlock()
	p.deferCall(func() { p.dev.reportEvent(ev) })
}
