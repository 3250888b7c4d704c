// Package attack puts a host between an attacker and a friend, in virtual time, from a seed or a
// fuzzer's octets. Whatever the attacker sends (test/attack/attacker), this holds:
//
//   - Nothing panics, and no code contradicts itself.
//   - No octet outside what is open to the attacker's sessions is read or written. None of memory
//     that was given back is sent any more.
//   - The program is handed no octet that its peer did not send.
//   - What associations keep count of is right (assoc.Audit). What they keep alive is measured by a
//     walk over it (internal/test/heapsize). It is at most 1.25 times what they say they hold, and
//     16 KiB.
//   - What is done for a packet is bounded, in counted steps, and so is what is done in all for the
//     octets that came and went.
//   - The friend's requests complete.
package attack
