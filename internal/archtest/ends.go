package archtest

// ends are all the calls that end an association, a session or a QP for good, as function: argument, and what the
// package comment calls that end. A new way to end has a line here and there, or the test fails.
var ends = []struct {
	pkg   string
	calls string // that end: a regular expression with the error as its last group
	list  map[string]string
}{
	{"sctp/assoc", `\.down\(\w+, (&?[\w.]+)`, map[string]string{
		"succeeded: ErrSucceeded": "[ErrSucceeded]", "hasAll: &AbortError": "[AbortError] with any other cause", "Fail: err": "What [Assoc.Fail] was given",
		"abort: &AbortError": "[AbortError] with cause 12", "unsound: err": "[InternalError]", "handleAbort: &AbortError": "[AbortError] with ByPeer",
		"pathError: ErrTimeout": "[ErrTimeout]", "pathError: &StuckError": "[StuckError]", "setupTimeout: ErrInitTimeout": "[ErrInitTimeout]", "handleStale: ErrInitTimeout": "[ErrInitTimeout]",
		"handleInitAck: ErrOvertaken": "[ErrOvertaken]", "handleInitAck: &AbortError": "[AbortError] with any other cause", "handleInitAck: err": "[AdaptationError]",
		"AbortForMemory: &MemoryError": "[MemoryError]", "handleICMP: ErrProtoUnreachable": "[ErrProtoUnreachable]", "endRefused: &NoRouteError": "[NoRouteError]",
		"endRefused: &RefusedError":          "[RefusedError]",
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
