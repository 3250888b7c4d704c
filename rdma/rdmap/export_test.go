package rdmap

import "github.com/rddp-go/rddp/ddp"

// What tests see of the inside.
const MaxSGEs = maxSGEs

var (
	Advance      = ReadRequest.advanceBy
	RemoteStatus = remoteStatus
	UntaggedRsvd = untaggedRsvd
)

func Check(c Config) error                 { return c.checkFields() }
func FreeSends(q *QP) int                  { return q.sq.freePlaces() }
func NoSends(q *QP) bool                   { return q.sq.isEmpty() }
func ReadHeaders(q *QP) int                { return len(q.sq.readHeaders) }
func PostBehind(q *QP, token uint64) error { return q.rq.queue.Post(ddp.RecvBuffer{Token: token}) }
func KeptAtomics(q *QP) (one, two [AtomicResponseLen]byte) {
	return q.resp.sources[0].atomicResponse, q.resp.sources[1].atomicResponse
}
