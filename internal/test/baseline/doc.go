// Package baseline moves packets over a bare link as fast as it goes, with no protocol above: the
// ceiling that the stack is measured against. With [Config.Work] both ends do what no SCTP can
// leave out: the checksum on either side and one copy at the receiver.
//
// What the receiver counts is the result; what was lost on the way is reported beside it. A pump
// has no protocol to hold it back, so a [Gate], a counter in memory that both ends see, does that.
package baseline
