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

// rigMemory is what each end of a rig registers, in octets, unless a message is longer: messages use it in turn, so
// that what caches do is the same however many QPs, associations and regions there are.
const rigMemory = 64 << 20

// rigFlight is how much is outstanding on all QPs together, in messages and in octets. One message always is.
const (
	rigFlight = 256
	rigOctets = 16 << 20
)

// scale is what a rig is made of.
type scale struct {
	Size    int  `json:"size"` // octets of a message
	QPs     int  `json:"qps"`
	Own     bool `json:"own_associations"` // one for each QP, instead of one for all
	Regions int  `json:"regions"`
}

// rig is both ends of a set-up of any scale: RDMA Writes go from the one to the other, to the QPs and the
// regions in turn.
type rig struct {
	scale
	ends *cli.Devices
	cq   *rdma.CQ
	qps  []*rdma.QP
	src  *rdma.MR
	dst  []*rdma.MR  // each of them all of the server's memory
	pds  [2]*rdma.PD // of the client, of the server

	ring   []int  // a QP for each request that can be outstanding, whose turn it is comes first
	posted uint64 // messages; the first of the ring is at posted modulo its length
	done   uint64 // the ring ends here
	wcs    [64]rdma.WC
	sgl    [1]rdma.SGE
}

// newRig opens and connects everything.
func newRig(ctx context.Context, link *cli.LinkFlags, s scale) (*rig, error) {
	r := &rig{scale: s}
	cfg := &rdma.Config{Limits: rdma.Limits{MaxStreams: max(min(r.QPs, math.MaxUint16), 1024)}}
	var err error
	if r.ends, err = link.Devices(cfg, nil); err != nil {
		return nil, err
	}
	if err = r.register(); err == nil {
		err = r.connect(ctx)
	}
	if err != nil {
		r.ends.Close()
		return nil, err
	}
	return r, nil
}

// memory is how many octets each end registers.
func (r *rig) memory() int { return max(rigMemory, r.Size) }

// depth is how many messages a QP may have outstanding.
func (r *rig) depth() int {
	return max(1, min(rigFlight, rigOctets/r.Size)/r.QPs)
}

func (r *rig) register() (err error) {
	r.pds = [2]*rdma.PD{r.ends.Client.AllocPD(), r.ends.Server.AllocPD()}
	if r.src, err = r.pds[0].Register(make([]byte, r.memory()), 0, nil); err != nil {
		return err
	}
	target := make([]byte, r.memory())
	for range r.Regions {
		mr, err := r.pds[1].Register(target, rdma.RemoteWrite, nil)
		if err != nil {
			return err
		}
		r.dst = append(r.dst, mr)
	}
	return nil
}

// connect makes and connects the QPs.
func (r *rig) connect(ctx context.Context) error {
	l, err := r.ends.Server.Listen(0)
	if err != nil {
		return err
	}
	defer l.Close()
	accepted := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		err := r.accept(ctx, l)
		if err != nil {
			cancel(err) // nobody waits for those that are not accepted
		}
		accepted <- err
	}()
	if r.cq, err = r.ends.Client.CreateCQ(r.QPs * (r.depth() + 1)); err != nil {
		return err
	}
	for range r.QPs {
		qp, err := r.ends.Client.CreateQP(&rdma.QPConfig{PD: r.pds[0], SendCQ: r.cq, RecvCQ: r.cq, MaxSend: r.depth(), MaxRecv: 1, MaxSGE: 1,
			IRD: -1, ORD: -1, OwnAssociation: r.Own})
		if err != nil {
			return err
		}
		if _, err := qp.Connect(ctx, netip.AddrPortFrom(r.ends.Addr, l.Port()), nil); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		r.qps = append(r.qps, qp)
	}
	// In turns: one request of each QP, then another.
	for range r.depth() {
		for i := range r.qps {
			r.ring = append(r.ring, i)
		}
	}
	return <-accepted
}

func (r *rig) accept(ctx context.Context, l *rdma.Listener) error {
	cq, err := r.ends.Server.CreateCQ(2 * r.QPs)
	if err != nil {
		return err
	}
	for range r.QPs {
		req, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		qp, err := r.ends.Server.CreateQP(&rdma.QPConfig{PD: r.pds[1], SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 1, MaxSGE: 1, IRD: -1, ORD: -1})
		if err != nil {
			return err
		}
		if err := req.Accept(qp, nil); err != nil {
			return err
		}
	}
	return nil
}

// run keeps messages outstanding, all QPs in use alike, for a while and until so many more are done.
func (r *rig) run(ctx context.Context, d time.Duration, messages uint64) error {
	least := r.done + messages
	for end := time.Now().Add(d); r.done < least || time.Now().Before(end); {
		if err := r.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn posts what may be outstanding, and takes completions.
func (r *rig) turn(ctx context.Context) error {
	flight := uint64(min(len(r.ring), rigFlight, max(1, rigOctets/r.Size)))
	for r.posted-r.done < flight {
		if err := r.write(r.ring[r.posted%uint64(len(r.ring))]); err != nil {
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
		r.ring[r.done%uint64(len(r.ring))] = int(wc.ID)
		r.done++
	}
	return nil
}

// write posts one message on QP i.
func (r *rig) write(i int) error {
	off := int(r.posted % uint64(r.memory()/r.Size) * uint64(r.Size))
	mr := r.region()
	r.sgl[0] = r.src.SGE(off, r.Size)
	r.posted++
	return r.qps[i].PostSend(&rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, SGL: r.sgl[:],
		RemoteSTag: mr.STag(), RemoteTO: mr.Base() + uint64(off)})
}

// region is where the next message goes: far from the last one, as the number of regions and the step have no common factor.
func (r *rig) region() *rdma.MR { return r.dst[r.posted*regionStep%uint64(len(r.dst))] }

const regionStep = 7919
