// Package attack puts a host between an attacker and a friend, in virtual time and from a seed or a
// fuzzer's octets, and holds what must hold whatever the attacker sends (see
// ../../test/attack/attacker):
//
//   - nothing panics, and no code contradicts itself;
//   - no octet outside what is open to the attacker's sessions is read or written, and none of memory that was given back is
//     sent any more;
//   - the program is handed no octet that its peer did not send;
//   - what associations keep count of is right (assoc.Audit), and what they keep alive, measured by a walk over it (internal/test/heapsize), is at most 1.25
//     times what they say they hold, and 16 KiB;
//   - what is done for a packet, and in all for the octets that came and went, is bounded, in counted steps;
//   - the friend's requests complete.
package attack
