// Package world runs whole stacks, from packets to RDMA, against each other in virtual time. One seed
// decides the network's faults, the operations and the secrets, so that a run is repeated exactly by
// its seed. An oracle that knows nothing of the implementation checks every octet.
//
// A [World] joins two [Host]s by a rawio/simnet network; its loop plays the part that the shells sctp
// and rdma play in production, with the same cores.
package world
