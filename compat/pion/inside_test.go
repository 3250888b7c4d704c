package sctp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/rddp-go/rddp/rawio"
	stack "github.com/rddp-go/rddp/sctp"
)

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Each field of a Config, and each option, reaches its setting, and what is out of range is
// refused.
func TestOptionsReachTheirSettings(t *testing.T) {
	conn, factory := net.Conn(new(pipeEnd)), logging.LoggerFactory(logging.NewDefaultLoggerFactory())
	all := Config{LoggerFactory: factory, Name: "n", NetConn: conn, BlockWrite: true, EnableZeroChecksum: true, MTU: 1300,
		MaxReceiveBufferSize: 1, MaxMessageSize: 2, RTOMax: 3, MinCwnd: 4, FastRtxWnd: 5, CwndCAStep: 6}
	for name, row := range map[string]struct {
		o    AssociationOption
		is   func(s *settings) bool
		fail error
	}{
		"logger":            {WithLoggerFactory(factory), func(s *settings) bool { return s.LoggerFactory == factory }, nil},
		"no logger":         {WithLoggerFactory(nil), nil, errNoLogger},
		"name":              {WithName("x"), func(s *settings) bool { return s.Name == "x" }, nil},
		"conn":              {WithNetConn(conn), func(s *settings) bool { return s.NetConn == conn }, nil},
		"no conn":           {WithNetConn(nil), nil, errNoConn},
		"writes wait":       {WithBlockWrite(true), func(s *settings) bool { return s.BlockWrite }, nil},
		"no checksums":      {WithEnableZeroChecksum(true), func(s *settings) bool { return s.EnableZeroChecksum }, nil},
		"MTU":               {WithMTU(minMTU), func(s *settings) bool { return s.MTU == minMTU }, nil},
		"small MTU":         {WithMTU(minMTU - 1), nil, errMTU},
		"window":            {WithMaxReceiveBufferSize(1), func(s *settings) bool { return s.MaxReceiveBufferSize == 1 }, nil},
		"no window":         {WithMaxReceiveBufferSize(0), nil, errZero},
		"message":           {WithMaxMessageSize(1), func(s *settings) bool { return s.MaxMessageSize == 1 }, nil},
		"no message":        {WithMaxMessageSize(0), nil, errZero},
		"RTO":               {WithRTOMax(0.5), func(s *settings) bool { return s.RTOMax == 0.5 }, nil},
		"no RTO":            {WithRTOMax(0), nil, errRTOMax},
		"SNAP":              {WithSNAP([]byte("a"), []byte("b")), func(s *settings) bool { return string(s.tokens.Own) == "a" && string(s.tokens.Peer) == "b" }, nil},
		"SNAP of one":       {WithSNAP([]byte("a"), nil), nil, errToken},
		"SNAP of the other": {WithSNAP(nil, []byte("b")), nil, errToken},
		"RACK":              {WithRACKOptions(nil, WithRackMinRTTWnd(1), WithRackReoWndFloor(0), WithRackWCDelAck(1)), func(*settings) bool { return true }, nil},
		"RACK, a window":    {WithRACKOptions(WithRackMinRTTWnd(0)), nil, errRACK},
		"RACK, a floor":     {WithRACKOptions(WithRackReoWndFloor(-1)), nil, errRACK},
		"RACK, a delay":     {WithRACKOptions(WithRackWCDelAck(0)), nil, errRACK},
		"a Config":          {all, func(s *settings) bool { return s.Config == all }, nil},
		"an empty Config": {Config{}, func(s *settings) bool {
			return s.MTU == defaultMTU && s.MaxMessageSize == defaultMaxMessageSize && s.LoggerFactory != nil && s.NetConn == nil
		}, nil},
		"a Config of a small MTU": {Config{MTU: minMTU - 1}, nil, errMTU},
	} {
		client, err := settingsOf([]ClientOption{nil, row.o}, ClientOption.setForClient)
		server, other := settingsOf([]ServerOption{row.o, nil}, ServerOption.setForServer)
		if err != row.fail || other != row.fail || row.fail == nil && (!row.is(client) || !row.is(server)) {
			t.Errorf("%s: %+v and %+v, %v and %v, want %v", name, client, server, err, other, row.fail)
		}
	}
	s, err := settingsOf([]ClientOption{all, Config{}}, ClientOption.setForClient) // which takes back two flags alone
	kept := all
	kept.BlockWrite, kept.EnableZeroChecksum = false, false
	equal(t, "an empty Config behind another", s.Config, kept)
	equal(t, "error", err, nil)
	if _, err = ServerWithOptions(WithMTU(1)); err != errMTU {
		t.Errorf("a server: %v", err)
	}
	if _, err = GenerateOutOfBandToken(WithMTU(1)); err != errMTU {
		t.Errorf("a token: %v", err)
	}
	if _, err = Client(Config{}); err != errNoConn {
		t.Errorf("a client without a connection: %v", err)
	}
}

// pipeEnd is a connection that nobody uses.
type pipeEnd struct{ net.Conn }

// What the settings are for the stack: sizes within what it takes, and times in their unit.
func TestSettingsOfTheStack(t *testing.T) {
	for _, row := range []struct {
		s                          settings
		recv, most, unsent         int
		rtoMax, rtoInitial, rtoMin time.Duration
		linkMTU                    int
		detection                  rawio.ErrorDetection
		interleaves                bool
	}{
		{settings{Config: Config{MTU: 1200}}, 0, longestMessage, 0, 0, 0, 0, 1200, 0, true},
		{settings{Config: Config{MTU: 1200, BlockWrite: true}, noInterleaving: true}, 0, longestMessage, 4800, 0, 0, 0, 1200, 0, false},
		{settings{Config: Config{MTU: 1, MaxReceiveBufferSize: 1, RTOMax: 0.5}}, 1500, longestMessage, 0, 500 * time.Microsecond,
			500 * time.Microsecond, 500 * time.Microsecond, 556, 0, true},
		{settings{Config: Config{MTU: math.MaxUint32, MaxReceiveBufferSize: math.MaxUint32, RTOMax: 5000, EnableZeroChecksum: true}},
			math.MaxInt32, math.MaxInt32, 0, 5 * time.Second, time.Second, time.Second, rawio.MaxMTU - 20, rawio.DTLSErrorDetection, true},
	} {
		c, l := stackConfig(&row.s), linkConfig(&row.s)
		got := fmt.Sprint(c.RecvBuffer, c.MaxMessage, c.MaxUnsent, c.RTOMax, c.RTOInitial, c.RTOMin, l.MTU, l.ErrorDetection, c.Interleaving)
		equal(t, fmt.Sprintf("%+v", row.s.Config), got, fmt.Sprint(row.recv, row.most, row.unsent, row.rtoMax, row.rtoInitial,
			row.rtoMin, row.linkMTU, row.detection, row.interleaves))
		if c.LocalPort != port || c.OutStreams != 65535 || c.InStreams != 65535 || c.AssocMaxRetrans != neverGivesUp ||
			c.HeartbeatInterval >= 0 || c.SendBuffer != unbounded || !c.PartialReliability || c.StreamReset != stack.AllowStreamReset ||
			c.Events != maxEvents || !slices.Equal(c.EventKinds, []stack.EventKind{stack.EventSendLow, stack.EventStreamsReset}) || c.NewScheduler == nil {
			t.Errorf("%+v", c)
		}
	}
}

// lines is a logger that keeps what it is told, with the level.
type lines struct {
	logging.LeveledLogger
	all []string
}

func (l *lines) add(level, format string, args []any) {
	l.all = append(l.all, level+" "+fmt.Sprintf(format, args...))
}

func (l *lines) NewLogger(string) logging.LeveledLogger { return l }

func (l *lines) Warnf(format string, args ...any)  { l.add("warn", format, args) }
func (l *lines) Infof(format string, args ...any)  { l.add("info", format, args) }
func (l *lines) Debugf(format string, args ...any) { l.add("debug", format, args) }

// The stack's lines are one level lower, with the association's name and what they are about.
func TestLinesOfTheStack(t *testing.T) {
	to := new(lines)
	log := transportConfig(&settings{Config: Config{Name: "n", LoggerFactory: to}}, to).Logger
	log.Error("a", "k", 1)
	log.With("of", "x").WithGroup("g").Warn("b", "k", 2, "m", 3)
	log.With("p", 1).With("q", 2).Info("c")
	log.Log(t.Context(), slog.LevelWarn-1, "d")
	log.Debug("e")
	equal(t, "lines", strings.Join(to.all, "\n"), "warn [n] a k=1\ninfo [n] b of=x k=2 m=3\ndebug [n] c p=1 q=2\ndebug [n] d\ndebug [n] e")
}

// The stack has no logger where a factory of pion/logging writes none of its lines.
func TestLoggersThatWriteNothing(t *testing.T) {
	ofSCTP := func(l logging.LogLevel) map[string]logging.LogLevel { return map[string]logging.LogLevel{"sctp": l} }
	for name, row := range map[string]struct {
		f    logging.LoggerFactory
		want bool
	}{
		"errors":            {&logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelError}, true},
		"warnings":          {&logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelWarn}, false},
		"errors of sctp":    {&logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelTrace, ScopeLevels: ofSCTP(logging.LogLevelError)}, true},
		"debugging of sctp": {&logging.DefaultLoggerFactory{ScopeLevels: ofSCTP(logging.LogLevelDebug)}, false},
		"a program's own":   {new(lines), false},
	} {
		equal(t, name, writesNothing(row.f), row.want)
		equal(t, name, transportConfig(&settings{Config: Config{LoggerFactory: row.f}}, new(lines)).Logger == nil, row.want)
	}
}

// All associations have one budget of memory, of which each peer has a share.
func TestAssociationsShareABudget(t *testing.T) {
	one, other := transportConfig(new(settings), new(lines)), transportConfig(new(settings), new(lines))
	if one.MemoryBudget == nil || one.MemoryBudget != other.MemoryBudget {
		t.Errorf("budgets %p and %p", one.MemoryBudget, other.MemoryBudget)
	}
}

// What is a packet to the original's fuzzers, and what payload types are called.
func TestPacketsAndNames(t *testing.T) {
	head := make([]byte, 12)
	chunk := []byte{6, 0, 0, 4}
	for name, row := range map[string]struct {
		b    []byte
		want int
	}{
		"nothing": {nil, 0}, "half a header": {head[:8], 0}, "a chunk": {append(head[:12:12], chunk...), 1},
		"two": {append(append(head[:12:12], chunk...), chunk...), 1}, "one and a half": {append(append(head[:12:12], chunk...), 6, 0), 0},
		"one that is too long": {append(head[:12:12], 6, 0, 0, 9), 0},
	} {
		equal(t, name, TryMarshalUnmarshal(row.b), row.want)
	}
	for p, want := range map[PayloadProtocolIdentifier]string{0: "Unknown Payload Protocol Identifier: 0", 50: "WebRTC DCEP",
		51: "WebRTC String", 52: "Unknown Payload Protocol Identifier: 52", 53: "WebRTC Binary", 56: "WebRTC String (Empty)",
		57: "WebRTC Binary (Empty)", 1 << 31: "Unknown Payload Protocol Identifier: 2147483648"} {
		equal(t, "name", p.String(), want)
	}
}

// The peer's ABORT matches what the original's does, and what the stack's does.
func TestAbortOfThePeer(t *testing.T) {
	a := new(Association)
	a.carrier = new(recordedConn)
	for name, row := range map[string]struct {
		causes []stack.Cause
		byUser bool
	}{
		"without a cause": {nil, false}, "by the program": {[]stack.Cause{{Code: 12}}, true}, "for another cause": {[]stack.Cause{{Code: 13}}, false},
		"for several": {[]stack.Cause{{Code: 13}, {Code: 12}}, true},
	} {
		is := &stack.AbortError{ByPeer: true, Causes: row.causes}
		err := a.endOf(fmt.Errorf("ended: %w", is))
		var found *stack.AbortError
		if !errors.Is(err, ErrChunk) || errors.Is(err, ErrUserInitiatedAbort) != row.byUser || !errors.As(err, &found) || found != is ||
			errors.Is(err, io.EOF) || err.Error() != is.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
	own := &stack.AbortError{}
	equal(t, "an own ABORT", a.endOf(own), error(own))
	equal(t, "another end", a.endOf(io.ErrNoProgress), io.ErrNoProgress)
	link := &stack.LinkError{Err: io.ErrClosedPipe}
	equal(t, "the end of the link", a.endOf(link), io.ErrClosedPipe)
	read := io.ErrUnexpectedEOF
	a.carrier.readErr.Store(&read)
	equal(t, "the end of the link, as a read has heard it", a.endOf(link), read)
}

// firstIn is a scheduler of a program. It takes chunks off in the order in which they came.
type firstIn struct {
	list  []StreamSchedulerChunk
	fails bool // Pop does
}

func (s *firstIn) Reset()                      { s.list = nil }
func (s *firstIn) Push(c StreamSchedulerChunk) { s.list = append(s.list, c) }
func (s *firstIn) Peek() StreamSchedulerChunk {
	if len(s.list) == 0 {
		return nil
	}
	return s.list[0]
}

func (s *firstIn) Pop(c StreamSchedulerChunk) error {
	if s.fails {
		return io.ErrNoProgress
	}
	s.list = s.list[1:]
	return nil
}

// A program's scheduler has one token of each stream that has something to send; where it is of no
// use streams take turns.
func TestSchedulerOfTheProgram(t *testing.T) {
	of := &firstIn{list: make([]StreamSchedulerChunk, 3)}
	s := (&scheduling{custom: func() InterleavingStreamScheduler { return of }}).newScheduler()
	next := func(what string, want uint16) {
		t.Helper()
		got, ok := s.Next(false)
		if !ok || got != want {
			t.Errorf("%s: stream %d, %v, want %d", what, got, ok, want)
		}
	}
	equal(t, "chunks of before", len(of.list), 0)
	s.Activate(1)
	s.Activate(2)
	equal(t, "tokens", len(of.list), 2)
	c := of.Peek()
	c.isChunk()
	equal(t, "the first token", fmt.Sprint(c.StreamIdentifier(), c.UserDataLen() > 0, c.IsStreamReset()), "1 true false")
	for _, want := range []uint16{1, 2, 1} {
		next("in their order", want)
		s.Sent(want, 100, true)
	}
	s.Sent(1, 100, true) // which was not its turn
	next("after one out of turn", 2)
	s.SetValue(1, 7)
	s.Deactivate(2)
	next("without the one that has nothing", 1)
	s.Activate(2)
	equal(t, "tokens", len(of.list), 2)
	of.fails = true
	s.Deactivate(1)
	next("where it lets go of none", 2)
	of.Reset()
	next("where it has lost all", 2)
	for _, row := range []struct {
		s    scheduling
		want string
	}{
		{scheduling{}, "1 2 1 2 1 2"}, {scheduling{weights: map[uint16]uint16{2: 2}}, "1 2 2 1 2 2"},
		{scheduling{roundRobin: true, weights: map[uint16]uint16{2: 2}}, "1 2 1 2 1 2"},
		{scheduling{custom: func() InterleavingStreamScheduler { return nil }, weights: map[uint16]uint16{2: 2}}, "1 2 2 1 2 2"},
	} {
		s := row.s.newScheduler()
		s.Activate(1)
		s.Activate(2)
		var order []string
		for range 6 {
			id, _ := s.Next(false)
			order = append(order, fmt.Sprint(id))
			s.Sent(id, 1000, true)
		}
		equal(t, "order", strings.Join(order, " "), row.want)
	}
}
