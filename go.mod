module github.com/rddp-go/rddp

go 1.26.0

require (
	github.com/google/gopacket v1.1.19
	github.com/klauspost/crc32 v1.3.0
	github.com/spf13/pflag v1.0.10
	github.com/vishvananda/netlink v1.3.1
	golang.org/x/crypto v0.58.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require github.com/vishvananda/netns v0.0.5 // indirect
