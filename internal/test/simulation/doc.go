// Package simulation runs whole stacks, from packets to RDMA, against each other in virtual time.
//
//   - In: a seed. It decides the network's faults, the operations, the ends of sessions and
//     associations, and the secrets.
//   - Out: the verdict of an oracle that knows nothing of the implementation. It checks every octet
//     and the order of everything (RFC 5040 section 5.5; order.go and completions.go).
//   - Invariant: a run is repeated exactly by its seed.
//   - Read first: world.go, session_slot.go, completions.go.
//
// # Worlds
//
// A [World] joins two [Host]s in an [Env], which is virtual time and a rawio/simnet network
// between [Node]s. Its loop plays the part that the shells sctp and rdma play in production, with
// the same cores.
//
// Sessions follow each other on lanes (session_slot.go). Each ends at any moment, by either side or
// both, gracefully or not. It may end by an access that is forbidden, by memory that is revoked
// under it (window.go), or with its association (assoc_killer.go). What was under way then may have
// been carried out or not, octet by octet. Nothing else may have changed, and nothing changes
// later.
//
// In a world over TCP ([NewOverTCP]) each session has a connection of its own, with the core of mpa
// on a stream of octets (tcp.go). In an encrypted one ([NewEncrypted]) associations are sealed, and
// their keys change. A machine may crash, and restart its association by keys that it has kept
// (keys.go). No key ever seals a number twice (key_ledger.go).
//
// A world has its ground for itself ([New]), or shares it with others that come and go as they like
// ([Join]). On a shared ground its association may be lost, and its machines may crash, at any
// moment.
package simulation
