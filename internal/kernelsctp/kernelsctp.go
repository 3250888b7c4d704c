// Package kernelsctp detects the SCTP of this host's kernel, which answers packets that are for
// this library, and says what to do.
package kernelsctp

import (
	"os"
	"path/filepath"
)

// Root is where the file system begins; tests have one of their own.
var Root = "/"

// IsLoaded says whether the kernel has an SCTP of its own loaded.
func IsLoaded() bool {
	for _, p := range []string{"proc/net/sctp", "sys/module/sctp"} {
		if _, err := os.Stat(filepath.Join(Root, p)); err == nil {
			return true
		}
	}
	return false
}

// Rule keeps the kernel from answering: no program's socket has sent what it drops.
const Rule = `nft 'add table inet rddp; add chain inet rddp out { type filter hook output priority 0; }; ` +
	`add rule inet rddp out meta l4proto sctp meta skuid >= 0 accept; add rule inet rddp out meta l4proto sctp drop'`

// Advice says what is in the way, and what to do.
const Advice = "this kernel has an SCTP of its own, which answers our packets with ABORT and so ends our " +
	"associations: unload it (rmmod sctp), go over UDP (--link udp, or RDDP_LINK=udp), or keep it from answering and ask for " +
	"raw IP (RDDP_LINK=raw): " + Rule
