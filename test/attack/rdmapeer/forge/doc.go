// Package forge makes DDP segments and session control messages by hand, right ones and wrong ones,
// for peers that attack: in one process (package hostile) and over the wire (test/attack/live). All
// have the L bit, DV and RV 1 and no reserved bit; an attack changes that.
package forge
