// Package conformance holds what the RFCs demand, one requirement a row, and finds the test that
// holds each.
//
// The rows are in the rfcNNNN.tsv files of this folder (README.md there explains the columns). A
// test cites the rows that it would fail without, in a comment inside the test function:
//
//	// req 9260-5.2.4-3, 9260-5.2.4-4: the tags decide, not the addresses.
//
// go test ./test/conformance fails when a row of level MUST, MUST NOT or RULE is neither cited nor
// waived in waivers.tsv; make conformance prints where each RFC stands.
package conformance
