package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// ends are all the calls that end an association, a session or a QP for good, as function: argument, and what the
// package comment calls that end. A new way to end has a line here and there, or the test fails.
var ends = []struct {
	pkg   string
	calls string // that end: a regular expression with the error as its last group
	list  map[string]string
}{
	{"sctp/assoc", `\.down\(\w+, (&?[\w.]+)`, map[string]string{
		"abort: &AbortError": "[AbortError] with cause 12", "unsound: err": "[InternalError]", "handleAbort: &AbortError": "[AbortError] with ByPeer",
		"pathError: ErrTimeout": "[ErrTimeout]", "setupTimeout: ErrInitTimeout": "[ErrInitTimeout]", "handleStale: ErrInitTimeout": "[ErrInitTimeout]",
		"handleInitAck: ErrOvertaken": "[ErrOvertaken]", "handleInitAck: &AbortError": "[AbortError] with any other cause", "handleInitAck: err": "[AdaptationError]",
		"AbortForMemory: &MemoryError": "[MemoryError]", "handleICMP: ErrProtoUnreachable": "[ErrProtoUnreachable]", "noRoute: &NoRouteError": "[NoRouteError]",
		"closingTimeout: ErrShutdownTimeout": "[ErrShutdownTimeout]", "handleShutdownAck: ErrShutdown": "[ErrShutdown]",
		"handleShutdownComplete: ErrShutdown": "[ErrShutdown]",
	}},
	{"ddpadapt", `\.(?:kill|refused|endAll|lost)\(([\w.]+)`, map[string]string{
		"Abort: nil": "nil", "violate: err": "[TerminatedError] with a [SequenceError]", "peerTerminated: err": "[TerminatedError] with ByPeer",
		"answered: err": "[RejectedError]", "lastWord: s.err": "nil", "begin: ErrRestarted": "[ErrRestarted]",
		"HandleEvent: e.Err": "the error that the association ended by", "endAll: err": "the error that the association ended by",
	}},
	{"rdma", `\.(?:fail|connected|ended|Refuse)\((?:rdmap\.\w+, )?([\w.]+)`, map[string]string{
		"sweep: ErrIdle": "[ErrIdle]", "notify: ErrCQOverflow": "[ErrCQOverflow]", "Close: net.ErrClosed": "[net.ErrClosed]",
		"handle: ev.Err": "[ddpadapt.RejectedError]", "handle: nil": "nil", "terminated: ev.Err": "[ddpadapt.TerminatedError]",
		"accepted: err": "[ddpadapt.ErrNoRTR]", "Accept: err": "[ddpadapt.ErrInsufficientIRD]", "conclude: err": "[ddpadapt.ErrInsufficientIRD]",
	}},
	{"rdma/rdmap", `\.lose\(&StreamError\{.*: ([\w.]+)`, map[string]string{
		"Fatal: e.Cause": "error of the session", "PeerClosed: ErrPeerClosed": "[rdmap.ErrPeerClosed]", "Abort: reason": "[net.ErrClosed]",
		"Failed: err": "error of the session", "terminated: true": "[rdmap.StreamError] with Terminate and Remote",
	}},
}

var funcName = regexp.MustCompile(`^func (?:\(.*?\) )?(\w+)`)

// Each way in which an association, a session or a QP ends is one that the package comment lists: a program can switch on it.
func TestEveryEndIsListed(t *testing.T) {
	read := func(path string) string {
		text := must.Get(os.ReadFile(path))(t)
		return string(text)
	}
	for _, row := range ends {
		doc := read(filepath.Join(root, strings.TrimSuffix(row.pkg, "/rdmap"), "doc.go"))
		seen := make(map[string]bool)
		for _, path := range sources(t, row.pkg) {
			name := ""
			for _, line := range strings.Split(read(path), "\n") {
				if m := funcName.FindStringSubmatch(line); m != nil {
					name = m[1]
				}
				if m := regexp.MustCompile(row.calls).FindStringSubmatch(line); m != nil {
					what := name + ": " + m[1]
					seen[what] = true
					check.That(t, row.list[what] != "", "%s: %q is a way to end that is not listed", path, what)
				}
			}
		}
		for what, end := range row.list {
			check.That(t, seen[what], "%s: nothing ends by %q", row.pkg, what)
			check.That(t, regexp.MustCompile(`(?m)^//   - .*`+regexp.QuoteMeta(end)).MatchString(doc),
				"%s: the package comment does not list %q", row.pkg, end)
		}
	}
}
