package random

import (
	"fmt"
	"io"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/cc"
)

var controllers = []cc.Factory{nil, cc.NewReno, cc.NewCubic, cc.NewBBR}

// Tally counts what has come to pass.
type Tally struct {
	Seeds   int
	Virtual time.Duration
	Busy    time.Duration // seconds in which something of a user got through
	Events  uint64
	Net     simnet.Stats
	Acts    [kinds]int

	Assocs   int // each side counted
	Restarts int
	Graceful int // ends of associations, by their kind, each side counted
	Aborted  int
	TimedOut int
	Said     int // messages handed over for sending
	Heard    int // messages delivered whole
	Failed   int // messages that were reported as failed,
	GivenUp  int // and those of them that were given up by their policy
	Resets   int // requests to reset or add streams that were begun
	Between  int // pieces that came between those of other messages
	Octets   int // of messages delivered
	Pieces   int // messages delivered in more than one

	Encrypted int // association ends that had keys
	Rekeys    int // handshakes of theirs behind the first
	Records   int // that were sealed

	Damaged uint64
	RDMA    simulation.Coverage
	OverTCP simulation.Coverage // RDMA over TCP
}

// readCounters reads the counters of a run.
func (t *Tally) readCounters(r *run) {
	t.Seeds, t.Virtual, t.Events, t.Net = 1, time.Duration(r.g.Now()), r.g.Events(), r.g.Net().Stats()
	t.Records = r.keys.Records()
	for _, u := range r.users {
		if p, ok := u.(*rdmaPair); ok {
			sum := &t.RDMA
			if p.spec.Use == RDMAOverTCP {
				sum = &t.OverTCP
			}
			sum.Add(p.w.Coverage())
		}
	}
}

// Add adds the counts of another run.
func (t *Tally) Add(o *Tally) {
	t.Seeds += o.Seeds
	t.Virtual += o.Virtual
	t.Busy += o.Busy
	t.Events += o.Events
	addStats(&t.Net, &o.Net)
	for i, n := range o.Acts {
		t.Acts[i] += n
	}
	t.Assocs += o.Assocs
	t.Restarts += o.Restarts
	t.Graceful += o.Graceful
	t.Aborted += o.Aborted
	t.TimedOut += o.TimedOut
	t.Said += o.Said
	t.Heard += o.Heard
	t.Failed += o.Failed
	t.GivenUp += o.GivenUp
	t.Between += o.Between
	t.Resets += o.Resets
	t.Octets += o.Octets
	t.Pieces += o.Pieces
	t.Encrypted += o.Encrypted
	t.Rekeys += o.Rekeys
	t.Records += o.Records
	t.RDMA.Add(&o.RDMA)
	t.OverTCP.Add(&o.OverTCP)
}

func addStats(t, o *simnet.Stats) {
	t.Sent += o.Sent
	t.Delivered += o.Delivered
	t.Unrouted += o.Unrouted
	t.Partitioned += o.Partitioned
	t.TooBig += o.TooBig
	t.QueueDropped += o.QueueDropped
	t.BurstLost += o.BurstLost
	t.Lost += o.Lost
	t.Duplicated += o.Duplicated
	t.Reordered += o.Reordered
	t.Corrupted += o.Corrupted
	t.Reports += o.Reports
	t.Marked += o.Marked
	t.Fragmented += o.Fragmented
}

// opcodes are short names of rdmap.WROpcode.
var opcodes = [...]string{"Send", "SendSE", "SendInv", "SendSEInv", "Write", "Read", "Imm", "ImmSE", "WriteImm",
	"WriteImmSE", "Atomic"}

// Write prints the counts.
func (t *Tally) Write(w io.Writer) {
	n := &t.Net
	fmt.Fprintf(w, "%d seeds: %.1f virtual hours, %.1f of them with traffic; %d packets, %d events\n",
		t.Seeds, t.Virtual.Hours(), t.Busy.Hours(), n.Sent, t.Events)
	fmt.Fprintf(w,
		"  packets lost %d, too long %d, in full queues %d, in partitions %d; doubled %d, overtaken %d, damaged %d, marked %d, fragmented %d; ICMP %d\n",
		n.Lost+n.BurstLost, n.TooBig, n.QueueDropped, n.Partitioned, n.Duplicated, n.Reordered, n.Corrupted, n.Marked,
		n.Fragmented, n.Reports)
	fmt.Fprint(w, " ")
	for k := Starve; k < kinds; k++ {
		fmt.Fprintf(w, " %v %d", k, t.Acts[k])
	}
	fmt.Fprintf(w, "\n  association ends set up %d; restarts %d; ended gracefully %d, by abort %d, timed out %d\n",
		t.Assocs, t.Restarts, t.Graceful, t.Aborted, t.TimedOut)
	fmt.Fprintf(w, "  messages %d, delivered %d of %d MB, in pieces %d (%d between others), failed %d, given up %d; streams reset %d times\n",
		t.Said, t.Heard, t.Octets>>20, t.Pieces, t.Between, t.Failed, t.GivenUp, t.Resets)
	fmt.Fprintf(w, "  encrypted association ends %d, rekeys %d, records sealed %d\n", t.Encrypted, t.Rekeys, t.Records)
	writeRDMA(w, "SCTP", &t.RDMA)
	writeRDMA(w, "TCP", &t.OverTCP)
}

func writeRDMA(w io.Writer, over string, r *simulation.Coverage) {
	fmt.Fprintf(w,
		"  RDMA over %s: sessions %d, cut off %d, violations of access %d, windows closed %d and hit %d, receives used up %d, associations or connections lost %d\n  requests",
		over, r.Sessions, r.CutOff, r.Violated, r.Windows, r.Revoked, r.Droughts, r.Losses)
	for op, n := range r.Ops {
		fmt.Fprintf(w, " %s %d", opcodes[op], n)
	}
	fmt.Fprintln(w)
}
