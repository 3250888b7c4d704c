// Package account counts the memory that peers make a host hold, so that no peer gets more than its
// share of it.
//
// There is one Account for each association. It draws on one Host for each peer address, an IPv4
// address or the /64 of an IPv6 one, and that on the Total of a Transport. An Account draws in
// steps, so that what all share is touched when an association has grown by Quantum, and not for
// each packet.
//
// # Shares
//
// A Host may hold half of the Total, so that hosts behind one address translator are not starved by
// being many behind one address. When the Total is nearly used up, a Host may hold an equal share
// of it. An association may hold an equal share of what its Host may. All of these limits are soft
// below 7/8 and hard at the whole: beyond 7/8 of its share an association that is part of a Host
// under pressure is to give back what it can, and at the whole the greediest is to go. Who stays
// within 7/8 of a fair share is never asked to give anything, and there is always somebody who does
// not: that is arithmetic, as equal shares of a sum cannot all be exceeded by nobody.
package account
