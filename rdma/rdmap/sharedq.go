package rdmap

import "github.com/rddp-go/rddp/ddp"

// SharedQueue is a receive queue from which several QPs of one Protection Domain take buffers. It
// holds no lock: its owner serialises the calls, which come from different associations.
//
// A buffer is posted, then taken by the QP for which a Send begins to arrive, then released with
// the completion of that Send. A QP may hold Config.MaxRecv of them at a time (section 8.1.2 item
// 8).
type SharedQueue struct {
	resolver   *ddp.Stream // never attached: resolves STags for the Protection Domain
	maxSGE     int
	slots      []sharedSlot
	freeSlots  []uint32 // places that hold nothing
	postedRing []uint32 // ring of places that hold a posted buffer
	head       int
	numPosted  int
}

type sharedSlot struct {
	buf    ddp.RecvBuffer
	id     uint64
	pieces ddp.Gather
}

// noStream is a stream ID that no region is scoped to. Only regions open to the whole Protection
// Domain can be posted to a shared queue.
const noStream = ^ddp.StreamID(0)

// NewSharedQueue makes a queue for depth buffers of up to maxSGE pieces. It fails with a
// *ConfigError.
func NewSharedQueue(table *ddp.Table, pd ddp.PD, depth, maxSGE int) (*SharedQueue, error) {
	switch {
	case table == nil:
		return nil, &ConfigError{Field: "Table"}
	case depth < 1 || depth > MaxDepth:
		return nil, &ConfigError{Field: "MaxRecv", Min: 1, Max: MaxDepth}
	case maxSGE < 1 || maxSGE > maxSGEs:
		return nil, &ConfigError{Field: "MaxSGE", Min: 1, Max: maxSGEs}
	}
	s := &SharedQueue{
		resolver:   ddp.NewStream(ddp.StreamConfig{ID: noStream, PD: pd, Table: table}),
		maxSGE:     maxSGE,
		slots:      make([]sharedSlot, depth),
		freeSlots:  make([]uint32, depth),
		postedRing: make([]uint32, depth),
	}
	pieces := make(ddp.Gather, depth*maxSGE)
	for i := range s.slots {
		s.slots[i].pieces = pieces[i*maxSGE : i*maxSGE : (i+1)*maxSGE]
		s.freeSlots[i] = uint32(depth - 1 - i)
	}
	return s, nil
}

// Post adds a buffer. Errors: ErrQueueFull, ErrSGECount, ErrTooLong, *SGEError.
func (s *SharedQueue) Post(wr *RecvWR) error {
	if len(s.freeSlots) == 0 {
		return ErrQueueFull
	}
	place := s.freeSlots[len(s.freeSlots)-1]
	slot := &s.slots[place]
	g, n, err := resolveSGL(s.resolver, slot.pieces, s.maxSGE, wr.SGL, ddp.LocalWrite)
	if err != nil {
		return err
	}
	slot.buf, slot.id = ddp.RecvBuffer{Pieces: g, Len: n, Token: uint64(place)}, wr.ID
	s.freeSlots = s.freeSlots[:len(s.freeSlots)-1]
	s.postedRing[(s.head+s.numPosted)%len(s.postedRing)] = place
	s.numPosted++
	return nil
}

// TakeBuffer lends the oldest posted buffer, or returns false when there is none.
func (s *SharedQueue) TakeBuffer() (ddp.RecvBuffer, bool) {
	if s.numPosted == 0 {
		return ddp.RecvBuffer{}, false
	}
	place := s.postedRing[s.head]
	s.head = (s.head + 1) % len(s.postedRing)
	s.numPosted--
	return s.slots[place].buf, true
}

// ReleaseBuffer takes a lent buffer back and returns the ID of its work request.
func (s *SharedQueue) ReleaseBuffer(token uint64) (id uint64) {
	s.freeSlots = append(s.freeSlots, uint32(token))
	slot := &s.slots[token]
	slot.buf = ddp.RecvBuffer{}
	return slot.id
}

// Len returns the number of buffers posted and not lent: what a low-water mark is compared with.
func (s *SharedQueue) Len() int { return s.numPosted }

// Flush removes the oldest posted buffer and returns the ID of its work request, to destroy the
// queue. Repeat it until it returns false.
func (s *SharedQueue) Flush() (id uint64, ok bool) {
	b, ok := s.TakeBuffer()
	if !ok {
		return 0, false
	}
	return s.ReleaseBuffer(b.Token), true
}
