package rdma

import (
	"context"
	"net"
	"slices"
	"sync"
)

// CompChannel is a completion channel: one goroutine waits there for the completions of several CQs
// (ibv_comp_channel). Those are made by its CreateCQ. As in libibverbs, an event says that there is
// something to poll, not what:
//
//	err = cq.Arm(false)              // each CQ, before its first completion
//	cq, err := channel.GetEvent(ctx) // which CQ
//	err = cq.AckEvents(1)            // or many at once, now and then
//	cq.Arm(false)                    // for the next event
//	n, err := cq.Poll(wcs)           // until nothing is left
type CompChannel struct {
	dev *Device

	mu         sync.Mutex // a leaf lock
	numCQs     int        // that report here
	pendingCQs []*CQ      // with an event, the oldest first, each once
	destroyed  bool

	ready    signal
	ctxWatch contextWatch
}

// CreateCompChannel makes a completion channel.
func (d *Device) CreateCompChannel() *CompChannel {
	return &CompChannel{dev: d, ready: d.newSignal()}
}

// CreateCQ makes a completion queue as Device.CreateCQ does. It reports to the channel whenever it
// is armed and when it overflows.
func (h *CompChannel) CreateCQ(depth int) (*CQ, error) {
	c, err := h.dev.CreateCQ(depth)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed {
		return nil, ErrDestroyed
	}
	h.numCQs++
	c.channel = h
	return c, nil
}

// GetEvent waits for the next event and returns its CQ. Each must be acknowledged by CQ.AckEvents.
// A CQ has one event at most that nobody has got. It fails with the context's error, with
// net.ErrClosed after Device.Close, and with ErrDestroyed. One goroutine at a time may wait for
// events of a channel.
func (h *CompChannel) GetEvent(ctx context.Context) (*CQ, error) {
	for {
		c, err := h.takeEvent()
		if c != nil || err != nil {
			return c, err
		}
		h.ctxWatch.watchContext(ctx, h.dev)
		if h.ready.Wait(ctx.Done(), h.dev.closed.Done()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, net.ErrClosed
	}
}

// Ready gets a token when an event has come, for use in select; GetEvent then returns at once.
// There may be more events than tokens: get all that are there, with a context that has ended.
func (h *CompChannel) Ready() <-chan struct{} { return h.ready.C() }

func (h *CompChannel) takeEvent() (*CQ, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.destroyed {
		return nil, ErrDestroyed
	}
	if len(h.pendingCQs) == 0 {
		return nil, nil
	}
	c := h.pendingCQs[0]
	h.pendingCQs = slices.Delete(h.pendingCQs, 0, 1)
	c.eventPending = false
	c.unackedEvents++
	return c, nil
}

// putEvent reports an event of c. The caller holds no connection lock.
func (h *CompChannel) putEvent(c *CQ) {
	h.mu.Lock()
	fresh := !c.eventPending && !c.hasLeftChannel
	if fresh {
		c.eventPending = true
		h.pendingCQs = append(h.pendingCQs, c)
	}
	h.mu.Unlock()
	if fresh {
		h.ready.Set()
	}
}

// AckEvents acknowledges n events that the CQ's CompChannel has given. Destroy then knows that
// nobody is about to look at the CQ. More than there are is a *LimitError.
func (c *CQ) AckEvents(n int) error {
	h := c.channel
	if h == nil {
		return &LimitError{"number of events of a CQ without a completion channel", n, 0}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n < 1 || n > c.unackedEvents {
		return &LimitError{"number of events to acknowledge", n, c.unackedEvents}
	}
	if c.unackedEvents -= n; c.unackedEvents == 0 {
		select {
		case c.allAcked <- struct{}{}:
		default:
		}
	}
	return nil
}

// removeCQ takes a CQ off the channel, with an event that nobody has got. It waits until the others
// are acknowledged.
func (h *CompChannel) removeCQ(ctx context.Context, c *CQ) error {
	h.mu.Lock()
	if !c.hasLeftChannel {
		c.hasLeftChannel = true
		h.numCQs--
		h.pendingCQs = slices.DeleteFunc(h.pendingCQs, func(d *CQ) bool { return d == c })
	}
	for c.unackedEvents > 0 {
		h.mu.Unlock()
		select {
		case <-c.allAcked:
		case <-ctx.Done():
			return ctx.Err()
		}
		h.mu.Lock()
	}
	h.mu.Unlock()
	return nil
}

// Destroy ends the channel; callers that wait for its events get ErrDestroyed. It fails with an
// *InUseError while CQs report to it. Destroying it again returns nil.
func (h *CompChannel) Destroy() error {
	h.mu.Lock()
	if h.numCQs > 0 {
		defer h.mu.Unlock()
		return &InUseError{"completion channel", "CQs", h.numCQs}
	}
	h.destroyed = true
	h.mu.Unlock()
	h.ready.Set()
	return nil
}
