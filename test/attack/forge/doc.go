// Package forge makes packets by hand, right ones and wrong ones, for peers that attack: in one
// process (test/attack, test/attack/rdmapeer) and over the wire (test/attack/live).
//
//   - In: the fields of a packet, chunk, segment or session control message.
//   - Out: its octets. DDP segments have the L bit, DV and RV 1 and no reserved bit; an attack changes
//     that.
//   - Read first: sctp.go, ddp.go.
package forge
