package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// rigMemory is what each end of a rig registers, in octets, unless a message is longer. Messages
// use it in turn. So the caches have the same load with any number of QPs, associations and
// regions.
const rigMemory = 64 << 20

// maxRigMessages limits what is outstanding on all QPs together, in messages and in octets. One
// message is always allowed.
const (
	maxRigMessages = 256
	maxRigOctets   = 16 << 20
)

// rigScale is the size of a rig.
type rigScale struct {
	Size    int  `json:"size"` // octets of a message
	QPs     int  `json:"qps"`
	Own     bool `json:"own_associations"` // one for each QP, instead of one for all
	Regions int  `json:"regions"`
}

// sweepRig is both ends of a set-up of any scale. RDMA Writes go from one end to the other, over
// the QPs and into the regions in turn.
type sweepRig struct {
	rigScale
	devices *cli.Devices
	cq      *rdma.CQ
	qps     []*rdma.QP
	src     *rdma.MR
	dst     []*rdma.MR  // each is all of the server's memory
	pds     [2]*rdma.PD // of the client, of the server

	qpRing    []int  // a QP for each request that can be outstanding, the next one first
	posted    uint64 // messages; the first of the ring is at posted modulo its length
	completed uint64 // the ring ends here
	wcs       [64]rdma.WC
	sgl       [1]rdma.SGE
}

// newRig opens and connects everything.
func newRig(ctx context.Context, link *cli.LinkFlags, s rigScale) (*sweepRig, error) {
	r := &sweepRig{rigScale: s}
	cfg := &rdma.Config{Limits: rdma.Limits{MaxStreams: max(min(r.QPs, math.MaxUint16), 1024)}}
	var err error
	if r.devices, err = link.Devices(cfg, nil); err != nil {
		return nil, err
	}
	if err = r.registerRegions(); err == nil {
		err = r.connectQPs(ctx)
	}
	if err != nil {
		r.devices.Close()
		return nil, err
	}
	return r, nil
}

// memoryOctets is how many octets each end registers.
func (r *sweepRig) memoryOctets() int { return max(rigMemory, r.Size) }

// queueDepth is how many messages a QP may have outstanding.
func (r *sweepRig) queueDepth() int {
	return max(1, min(maxRigMessages, maxRigOctets/r.Size)/r.QPs)
}

func (r *sweepRig) registerRegions() (err error) {
	r.pds = [2]*rdma.PD{r.devices.Client.AllocPD(), r.devices.Server.AllocPD()}
	if r.src, err = r.pds[0].Register(make([]byte, r.memoryOctets()), 0, nil); err != nil {
		return err
	}
	target := make([]byte, r.memoryOctets())
	for range r.Regions {
		mr, err := r.pds[1].Register(target, rdma.RemoteWrite, nil)
		if err != nil {
			return err
		}
		r.dst = append(r.dst, mr)
	}
	return nil
}

// connectQPs makes and connects the QPs.
func (r *sweepRig) connectQPs(ctx context.Context) error {
	l, err := r.devices.Listen(0)
	if err != nil {
		return err
	}
	defer l.Close()
	accepted := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		err := r.acceptQPs(ctx, l)
		if err != nil {
			cancel(err) // nobody waits for QPs that are not accepted
		}
		accepted <- err
	}()
	if r.cq, err = r.devices.Client.CreateCQ(r.QPs * (r.queueDepth() + 1)); err != nil {
		return err
	}
	for range r.QPs {
		qp, err := r.devices.Client.CreateQP(&rdma.QPConfig{PD: r.pds[0], SendCQ: r.cq, RecvCQ: r.cq,
			MaxSend: r.queueDepth(), MaxRecv: 1, MaxSGE: 1,
			IRD: -1, ORD: -1, OwnAssociation: r.Own})
		if err != nil {
			return err
		}
		if _, err := qp.Connect(ctx, netip.AddrPortFrom(r.devices.Addr, l.Port()), nil); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		r.qps = append(r.qps, qp)
	}
	// One request of each QP comes first, then another of each.
	for range r.queueDepth() {
		for i := range r.qps {
			r.qpRing = append(r.qpRing, i)
		}
	}
	return <-accepted
}

func (r *sweepRig) acceptQPs(ctx context.Context, l *rdma.Listener) error {
	cq, err := r.devices.Server.CreateCQ(2 * r.QPs)
	if err != nil {
		return err
	}
	for range r.QPs {
		req, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		qp, err := r.devices.Server.CreateQP(&rdma.QPConfig{PD: r.pds[1], SendCQ: cq, RecvCQ: cq, MaxSend: 1,
			MaxRecv: 1, MaxSGE: 1, IRD: -1, ORD: -1})
		if err != nil {
			return err
		}
		if err := req.Accept(qp, nil); err != nil {
			return err
		}
	}
	return nil
}

// runFor keeps messages outstanding, equally on all QPs in use. It ends after d, but not before so
// many more messages are done.
func (r *sweepRig) runFor(ctx context.Context, d time.Duration, messages uint64) error {
	least := r.completed + messages
	for end := time.Now().Add(d); r.completed < least || time.Now().Before(end); {
		if err := r.postAndPoll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// postAndPoll posts as much as may be outstanding, and takes completions.
func (r *sweepRig) postAndPoll(ctx context.Context) error {
	flight := uint64(min(len(r.qpRing), maxRigMessages, max(1, maxRigOctets/r.Size)))
	for r.posted-r.completed < flight {
		if err := r.postWrite(r.qpRing[r.posted%uint64(len(r.qpRing))]); err != nil {
			return err
		}
	}
	n, err := r.cq.Poll(r.wcs[:])
	if err == nil && n == 0 {
		err = r.cq.Wait(ctx)
	}
	if err != nil {
		return err
	}
	for i := range r.wcs[:n] {
		wc := &r.wcs[i]
		if wc.Status != rdmap.StatusSuccess {
			return fmt.Errorf("%v: %v: %w", wc.Opcode, wc.Status, r.qps[wc.ID].Err())
		}
		r.qpRing[r.completed%uint64(len(r.qpRing))] = int(wc.ID)
		r.completed++
	}
	return nil
}

// postWrite posts one message on QP i.
func (r *sweepRig) postWrite(i int) error {
	off := int(r.posted % uint64(r.memoryOctets()/r.Size) * uint64(r.Size))
	mr := r.nextRegion()
	r.sgl[0] = r.src.SGE(off, r.Size)
	r.posted++
	return r.qps[i].PostSend(&rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, SGL: r.sgl[:],
		RemoteSTag: mr.STag(), RemoteTO: mr.Base() + uint64(off)})
}

// nextRegion returns the target of the next message. It is far from the last one, as the number of
// regions and the step have no common factor.
func (r *sweepRig) nextRegion() *rdma.MR { return r.dst[r.posted*regionStep%uint64(len(r.dst))] }

const regionStep = 7919
