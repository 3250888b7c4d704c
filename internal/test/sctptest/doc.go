// Package sctptest lets SCTP endpoints live in virtual time, for the tests of sctp/assoc,
// sctp/endpoint, ddpadapt and fuzz/sctp.
//
// A World is two endpoints joined by simulated networks: NewWorld one plain wire with a judge over
// each packet, NewMulti several networks that fail and return, NewRoad links with an MTU and
// congestion marks of their own. A Lab is one endpoint whose peer is a script: the test builds each
// packet that it receives and looks at each packet that it sends.
//
// Nothing here sleeps, and the same calls give the same packets.
package sctptest
