package main

import "strconv"

// usrsctpCommand runs usrsctp/end.c, which speaks as our own ends do.
func usrsctpCommand(b *bench, e *end) []string {
	role, kind, server := "client", "bulk", e.Remote
	if e.Server {
		role, server = "server", e.Local
	}
	if e.PingPong {
		kind = "pingpong"
	}
	return []string{b.usrsctp, role, e.Link, server.String(), strconv.Itoa(e.PathMTU), strconv.Itoa(e.Buffer),
		strconv.Itoa(e.Size),
		strconv.FormatFloat(e.Seconds, 'f', -1, 64), kind}
}
