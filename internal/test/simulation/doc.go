// Package simulation runs whole stacks, from packets to RDMA, against each other in virtual time.
// One seed decides the network's faults, the operations, the ends of sessions and associations, and
// the secrets, so that a run is repeated exactly by its seed. An oracle that knows nothing of the
// implementation checks every octet and the order of everything (RFC 5040 section 5.5; order.go and
// judge.go).
//
// A [World] joins two [Host]s on a [Ground], which is virtual time and a rawio/simnet network
// between [Node]s. Its loop plays the part that the shells sctp and rdma play in production, with
// the same cores. Sessions follow each other on lanes (lane.go): each ends at any moment, by either
// side or both, gracefully or not, by an access that is forbidden, by memory that is revoked under
// it (window.go), or with its association (doom.go). What was under way then may have been carried
// out or not, octet by octet; nothing else may have changed, and nothing changes later.
//
// A world has its ground for itself ([New]), or shares it with others that come and go as they like
// ([Join]): there its association may be lost, and its machines may crash, at any moment.
package simulation
