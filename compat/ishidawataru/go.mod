module github.com/ishidawataru/sctp

go 1.26.0

require github.com/rddp-go/rddp v0.0.0

require (
	github.com/klauspost/crc32 v1.3.0 // indirect
	github.com/vishvananda/netlink v1.3.1 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/rddp-go/rddp => ../..
