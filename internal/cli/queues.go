package cli

// These are the most octets that the places of queues take. A server that counts what clients make
// it allocate counts them too. TestQueuesTakeWhatIsCounted of ddpbench and ddpping compares them
// with the heap.
const (
	queuePairOctets  = 16 << 10 // the QP itself, its stream and session
	sendSlotOctets   = 320      // without pieces and inline octets
	sgeOctets        = 64
	recvSlotOctets   = 224
	readSlotOctets   = 512 // outstanding, in one direction
	completionOctets = 80
)

// Queues are the depths of a QP and of its part of a completion queue.
type Queues struct {
	Send, Recv, Reads, Completions int
	SGEs                           int // of a request
	Inline                         int // octets
}

// Memory returns how many octets the queues take.
func (q Queues) Memory() int64 {
	send := int64(q.Send+1) * int64(sendSlotOctets+q.SGEs*sgeOctets+q.Inline)
	recv := int64(q.Recv) * int64(recvSlotOctets+q.SGEs*sgeOctets)
	return queuePairOctets + send + recv + 2*int64(max(q.Reads, 0))*readSlotOctets +
		int64(q.Completions)*completionOctets
}
