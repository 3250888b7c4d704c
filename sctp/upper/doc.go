// Package upper is what a protocol above SCTP implements and what it gets. A program that sends and
// receives messages has no use for it: it uses package sctp.
//
// A Protocol comes between the association and the user. It places each DATA chunk at arrival,
// without a queue between, and supplies messages when they can be sent. sctp.Config.NewUpper makes
// one for each association. The methods Upper of sctp.Conn, sctp.Transport and sctp.Config return
// what it gets: an [Association], a [Transport] and [Options]. Nothing here has a goroutine or a
// lock of its own. Read [Protocol] first, then package ddpadapt, which is one.
package upper
