package rawio_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/rawio/pcap"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
)

// The table in the package comment says of each link what it is.
func TestTableOfLinksIsTrue(t *testing.T) {
	is := map[string]func(rawio.Link) bool{
		"Featurer": implements[rawio.Featurer], "Addresser": implements[rawio.Addresser],
		"PortBinder":  implements[rawio.PortBinder],
		"Interrupter": implements[rawio.Interrupter],
		"Poller":      implements[rawio.Poller], "Waiter": implements[rawio.Waiter],
		"Sharder": implements[rawio.Sharder],
		"Watcher": implements[rawio.Watcher], "Owner": implements[rawio.Owner],
		"Fragmenter": implements[rawio.Fragmenter],
		"Prompter":   implements[rawio.Prompter], "BaseSizer": implements[rawio.BaseSizer],
		"Batcher":       implements[rawio.Batcher],
		"ErrorDetector": implements[rawio.ErrorDetector],
	}
	rows := regexp.MustCompile(`(?m)^//\t(\w+(?:er|or)) .{34}`).FindAllStringSubmatch(
		string(must.Get(os.ReadFile("doc.go"))(t)), -1)
	must.Equal(t, "rows", len(rows), len(is))
	for _, row := range rows {
		for i, l := range []rawio.Link{(*raw.Link)(nil), (*udp.Link)(nil), (*tun.Link)(nil), (*mem.Link)(nil),
			(*pcap.Link)(nil), (*netconn.Link)(nil)} {
			check.Equal(t, row[1]+" of "+[]string{"raw", "udp", "tun", "mem", "pcap", "netconn"}[i],
				row[0][len("//\t")+16+4*i] == 'x', is[row[1]](l))
		}
	}
}

func implements[I any](l rawio.Link) bool {
	_, ok := l.(I)
	return ok
}
