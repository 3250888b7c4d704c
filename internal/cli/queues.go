package cli

// Octets that the places of queues take, at most: a server that counts what clients make it allocate counts them too.
// TestQueuesTakeWhatIsCounted of ddpbench and ddpping hold them against the heap.
const (
	queuePair    = 16 << 10 // the QP itself, its stream and session
	sendPlace    = 320      // without pieces and inline octets
	piecePlace   = 64
	recvPlace    = 224
	readPlace    = 512 // outstanding, in one direction
	completionWC = 80
)

// Queues are the depths of a QP and of its part of a completion queue.
type Queues struct {
	Send, Recv, Reads, Completions int
	Pieces                         int // of a request
	Inline                         int // octets
}

// Memory returns how many octets they take.
func (q Queues) Memory() int64 {
	send := int64(q.Send+1) * int64(sendPlace+q.Pieces*piecePlace+q.Inline)
	recv := int64(q.Recv) * int64(recvPlace+q.Pieces*piecePlace)
	return queuePair + send + recv + 2*int64(max(q.Reads, 0))*readPlace + int64(q.Completions)*completionWC
}
