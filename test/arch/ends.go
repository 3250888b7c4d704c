package arch

// ends are all the calls that end an association, a session or a QP for good, as function:
// argument, and what the package comment calls that end. A new way to end has a line here and
// there, or the test fails.
var ends = []struct {
	pkg   string
	calls string // that end: a regular expression with the error as its last group
	list  map[string]string
}{
	{"sctp/assoc", `\.endAssoc\(\w+, (&?[\w.]+)`, map[string]string{
		"endForSuccessor: ErrSucceeded":   "[ErrSucceeded]",
		"endForRestart: ErrSucceeded":     "[ErrSucceeded]",
		"requireAllReceived: &AbortError": "[AbortError] with any other cause",
		"Fail: err":                       "What [Assoc.Fail] was given",
		"abortWithCause: &AbortError":     "[AbortError] with cause 12", "endIfInconsistent: err": "[InternalError]",
		"handleAbort: &AbortError":   "[AbortError] with ByPeer",
		"countPathError: ErrTimeout": "[ErrTimeout]", "countPathError: &StuckError": "[StuckError]",
		"handleT1Timeout: ErrInitTimeout":              "[ErrInitTimeout]",
		"handleStaleCookie: ErrInitTimeout":            "[ErrInitTimeout]",
		"handleInitAck: ErrOvertaken":                  "[ErrOvertaken]",
		"handleInitAck: &AbortError":                   "[AbortError] with any other cause",
		"handleInitAck: err":                           "[AdaptationError]",
		"AbortForMemory: &MemoryError":                 "[MemoryError]",
		"handleICMP: ErrProtoUnreachable":              "[ErrProtoUnreachable]",
		"endByRefusal: &NoRouteError":                  "[NoRouteError]",
		"endByRefusal: &RefusedError":                  "[RefusedError]",
		"handleT5Timeout: ErrShutdownTimeout":          "[ErrShutdownTimeout]",
		"handleReconfigTimeout: ErrTSNResetUnanswered": "[ErrTSNResetUnanswered]",
		"handleShutdownAck: ErrShutdown":               "[ErrShutdown]",
		"handleShutdownComplete: ErrShutdown":          "[ErrShutdown]",
		"doKeyActions: act.Failure":                    "[KeyFailure]",
	}},
	{"ddpadapt", `\.(?:endSession|endRefused|endAll|endWithAssoc)\(([\w.]+)`, map[string]string{
		"Abort: nil": "nil", "terminateForFault: err": "[llp.TerminatedError] with a [SequenceError]",
		"receiveTerminate: err": "[llp.TerminatedError] with ByPeer",
		"receiveAnswer: err":    "[llp.RejectedError]", "receiveAfterEnd: s.err": "nil",
		"startIncarnation: ErrRestarted": "[ErrRestarted]",
		"HandleEvent: e.Err":             "the error that the association ended by",
		"endAll: err":                    "the error that the association ended by",
	}},
	{"mpa", `\.(?:endConn|refuseFrame|leave|Lost|Break)\(([&\w.]+)`, map[string]string{
		"HandleTimeout: ErrStartupTimeout": "[ErrStartupTimeout]", "HandleTimeout: ErrLingerTimeout": "[ErrLingerTimeout]",
		"Abort: nil": "nil", "Break: err": "[InternalError]", "changeState: invariant.Violation": "[InternalError]",
		"Lost: &Error": "[Error] with CodeLost", "PeerFinished: ErrTruncated": "[ErrTruncated]",
		"PeerFinished: ErrClosedEarly": "[ErrClosedEarly]", "endIfBothClosed: nil": "nil",
		"refuseFrame: &Error": "[Error] with CodeFrame", "receiveFrame: err": "[FrameError]",
		"receiveFrame: &FrameError": "[FrameError]", "receiveReply: &FrameError": "[FrameError]",
		"Receive: &FrameError": "[FrameError]", "receiveFPDUs: &FrameError": "[FrameError]",
		"receiveReply: err": "[llp.RejectedError]", "finishReject: nil": "nil",
	}},
	{"rdma", `\.(?:abortSession|finishSetup|finishSession|Refuse)\((?:rdmap\.\w+, )?([\w.]+)`, map[string]string{
		"sweepIdle: ErrIdle": "[ErrIdle]", "notifyWaiters: ErrCQOverflow": "[ErrCQOverflow]",
		"Close: net.ErrClosed":       "[net.ErrClosed]",
		"handleSessionEvent: ev.Err": "[llp.RejectedError]", "handleSessionEvent: nil": "nil",
		"abortSession: reason": "[net.ErrClosed]", "handleEvents: cmp.Or": "[net.ErrClosed]",
		"handleEvents: ev.Err":  "over TCP the error that the connection ended by",
		"handleTerminated: err": "[llp.TerminatedError]",
		"handleAccepted: err":   "[llp.ErrNoRTR]", "Accept: err": "[llp.ErrInsufficientIRD]",
		"applySetup: err": "[llp.ErrInsufficientIRD]",
	}},
	{"rdma/rdmap", `\.failWithoutTerminate\(&StreamError\{.*: ([\w.]+)`, map[string]string{
		"Fatal: e.Cause": "error of the session", "PeerClosed: ErrPeerClosed": "[rdmap.ErrPeerClosed]",
		"Abort: reason":          "[net.ErrClosed]",
		"Failed: err":            "error of the session",
		"receiveTerminate: true": "[rdmap.StreamError] with Terminate and Remote",
	}},
}
