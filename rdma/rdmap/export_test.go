package rdmap

import "github.com/rddp-go/rddp/ddp"

// What tests see of the inside.
const MaxSGEs = maxSGEs

var (
	Advance      = ReadRequest.advance
	RemoteStatus = remoteStatus
	UntaggedRsvd = untaggedRsvd
)

func Check(c Config) error                 { return c.check() }
func FreeSends(q *QP) int                  { return q.sq.free() }
func NoSends(q *QP) bool                   { return q.sq.empty() }
func ReadHeaders(q *QP) int                { return len(q.sq.headers) }
func PostBehind(q *QP, token uint64) error { return q.rq.q.Post(ddp.RecvBuffer{Token: token}) }
func KeptAtomics(q *QP) (one, two [AtomicResponseLen]byte) {
	return q.resp.sources[0].atomic, q.resp.sources[1].atomic
}
