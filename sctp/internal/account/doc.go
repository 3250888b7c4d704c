// Package account counts the memory that peers make a host hold, so that no peer gets more than its
// share of it.
//
//   - In: how many octets an association holds now (Account.Charge, Account.Trim).
//   - Out: whether memory is short, and whether the association has more than its share.
//   - Invariant: an association within 7/8 of a fair share is never asked to give anything.
//   - Read first: account.go; docs/dev/memory.md has the picture.
//
// There is one Account for each association. It draws on one Host for each peer address, and the
// Host draws on the Total of a Transport. An Account draws in steps of a Quantum, and not for each
// packet.
//
// # Shares
//
// A Host may hold half of the Total, so that hosts behind one address translator are not starved.
// When the Total is nearly used up, a Host may hold an equal share of it. An association may hold
// an equal share of what its Host may.
//
// All of these limits are soft below 7/8 and hard at the whole. An association beyond 7/8 of its
// share, of a Host under pressure, is to give back what it can. At the whole the greediest is to
// go. An association within 7/8 of a fair share is never asked to give anything. There is always
// another one to ask: when 7/8 of a sum are in use, so are 7/8 of one of its equal shares.
package account
