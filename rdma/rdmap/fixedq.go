package rdmap

import "github.com/rddp-go/rddp/ddp"

// fixedQueue is an untagged queue for messages that RDMAP takes itself. Its buffers are posted from
// the start, and again after use.
type fixedQueue struct {
	*ddp.Queue
	memory     []byte // the buffers, one behind the other
	bufferSize int    // of one
}

func (f *fixedQueue) init(depth, size int) {
	f.Queue = ddp.NewQueue(depth)
	f.memory, f.bufferSize = make([]byte, depth*size), size
	pieces := make(ddp.Gather, depth)
	for i := range pieces {
		pieces[i] = ddp.Piece{Mem: ddp.Bytes(f.bufferAt(uint64(i))), Len: uint64(size)}
		// There is room for each.
		_ = f.Post(ddp.RecvBuffer{Pieces: pieces[i : i+1 : i+1], Len: uint32(size), Token: uint64(i)})
	}
}

// bufferAt returns the buffer with a token.
func (f *fixedQueue) bufferAt(token uint64) []byte {
	i := int(token) * f.bufferSize
	return f.memory[i : i+f.bufferSize : i+f.bufferSize]
}

// repostFirst retires the first buffer and posts it again.
func (f *fixedQueue) repostFirst() {
	if b, ok := f.Pop(); ok {
		_ = f.Post(b) // there is room: a buffer has just been taken out
	}
}
