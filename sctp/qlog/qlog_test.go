package qlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// disk is one that may be full, or hang.
type disk struct {
	bytes.Buffer
	room int
	hang chan struct{}
}

func (d *disk) Write(b []byte) (int, error) {
	if d.hang != nil {
		<-d.hang
	}
	n := min(len(b), d.room)
	d.room -= n
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *disk) Close() error { return nil }

func (d *disk) openFile(string) (io.WriteCloser, error) { return d, nil }

var peer = netip.MustParseAddrPort("192.0.2.1:5043")

func newEvent(kind sctp.TraceKind) *sctp.TraceEvent {
	e := &sctp.TraceEvent{Kind: kind, At: time.Now(), Assoc: 1, Remote: peer, Local: 7}
	e.Path.Remote, e.Stats.OctetsOut = peer, 123
	return e
}

// eventNames reads a trace, and returns the names of its events, or what was dropped.
func eventNames(t *testing.T, r io.Reader) (list []string, bad int) {
	_, bad, err := Read(r, func(e *Record) error {
		s := strings.TrimPrefix(e.Name, "sctp:")
		if e.Name == NameDropped {
			s += string(e.Data)
		}
		list = append(list, s)
		return nil
	})
	must.OK(t, err)
	return list, bad
}

// Each event is written under its name with what it says, in the form of the draft; docs/trace.md
// names it, and each field.
func TestEveryEventIsWrittenAndDocumented(t *testing.T) {
	doc := string(must.Get(os.ReadFile("../../docs/trace.md"))(t))
	name := filepath.Join(t.TempDir(), "a.sqlog")
	f := must.Get(Create(name, &Options{Title: "it", Vantage: "client"}))(t)
	trace := f.Tracer("client").Trace
	evil := errors.New("bad \x1e\n\"</script>")
	for kind := sctp.TraceStarted; kind < sctp.TraceNotice; kind++ {
		e := newEvent(kind)
		e.Lost.Timeouts, e.Stats.State = 2, assoc.Established
		trace(e)
	}
	for _, kind := range []assoc.EventKind{sctp.EventPathDown, sctp.EventMTUChanged, sctp.EventRestart,
		sctp.EventPeerError, sctp.EventUp, sctp.EventDown} {
		e := newEvent(sctp.TraceNotice)
		e.Event = assoc.Event{Kind: kind, Err: evil}
		trace(e)
	}
	must.OK(t, f.Close())
	must.OK(t, f.Close())
	trace(newEvent(sctp.TraceStarted)) // too late
	raw := must.Get(os.ReadFile(name))(t)
	check.Equal(t, "records", bytes.Count(raw, []byte{recordSeparator}), 11)
	for _, want := range []string{"\x1e" +
		`{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","title":"it","trace":{"common_fields":{"time_format":"relative_to_epoch","reference_time":{"clock_type":"monotonic","epoch":"unknown","wall_clock_time":"`,
		`"vantage_point":{"type":"client"},"event_schemas":["` + Schema + `"]}}` + "\n",
		`"name":"sctp:association_started","group_id":"client-1","data":{"local_port":7,"peer":"192.0.2.1:5043","initiator":"local"}}`,
		`{"old":"CLOSED","new":"ESTABLISHED"}`, `"bytes_sent":123,`, `"timeouts":2,`,
		`"reason":"bad \u001e\n\"\u003c/script\u003e"`} {
		check.That(t, strings.Contains(string(raw), want), "no %q in\n%s", want, raw)
	}
	var got []string
	_, _, err := Read(bytes.NewReader(raw), func(r *Record) error {
		got = append(got, strings.TrimPrefix(r.Name, "sctp:"))
		var fields map[string]any
		must.OK(t, json.Unmarshal(r.Data, &fields))
		for _, field := range append(keysOf(fields), r.Name) {
			check.That(t, strings.Contains(doc, "`"+field+"`"), "docs/trace.md does not have %s", field)
		}
		return nil
	})
	must.OK(t, err)
	check.Equal(t, "events", strings.Join(got, " "),
		"association_started association_state_updated metrics_updated data_retransmitted path_updated "+
			"mtu_updated association_restarted error_received association_notified association_closed")
	check.That(t, strings.Contains(doc, Schema) && strings.Contains(doc, NameDropped),
		"docs/trace.md is of another schema")
}

func keysOf(m map[string]any) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// A disk that is full or hangs delays nobody, and the trace says what it is short of.
func TestDiskNeverStopsTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // full, and then not
		d := &disk{room: 1 << 20}
		f := must.Get(createWith("x", &Options{Queue: 100}, d.openFile))(t)
		for _, step := range []struct {
			room    int
			dropped uint64
		}{{1 << 20, 0}, {500, 2}, {0, 7}, {50, 12}, {1 << 20, 12}} { // 500 octets hold three, and a part of a fourth
			d.room = step.room
			for range 5 {
				f.Tracer("a").Trace(newEvent(sctp.TraceStarted))
			}
			time.Sleep(time.Second)
			synctest.Wait()
			check.Equal(t, "dropped", f.Dropped(), step.dropped)
		}
		check.Equal(t, "error", f.Close(), error(syscall.ENOSPC))
		list, bad := eventNames(t, &d.Buffer)
		got := strings.Join(list, " ")
		check.That(t, bad == 2 && got == strings.Repeat("association_started ", 8)+`events_dropped{"events":12}`+
			strings.Repeat(" association_started", 5),
			"%d cut off: %s", bad, got)
	})
	synctest.Test(t, func(t *testing.T) { // hangs
		d := &disk{room: 1 << 20, hang: make(chan struct{})}
		f := must.Get(createWith("x", &Options{Queue: 10}, d.openFile))(t)
		time.Sleep(time.Second)
		begun := time.Now()
		for range 100 {
			f.Tracer("a").Trace(newEvent(sctp.TraceMetrics))
		}
		check.Equal(t, "time for it", time.Since(begun), 0)
		check.Equal(t, "dropped", f.Dropped(), 90)
		check.Equal(t, "end", f.Close(), os.ErrDeadlineExceeded)
		check.Equal(t, "time to close", time.Since(begun), closeTimeout)
		close(d.hang)
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) { // gone from the start, and back: the head is there
		d := &disk{}
		f := must.Get(createWith("x", nil, d.openFile))(t)
		f.Tracer("a").Trace(newEvent(sctp.TraceStarted))
		time.Sleep(time.Second)
		synctest.Wait()
		d.room = 1 << 20
		f.Tracer("a").Trace(newEvent(sctp.TraceState))
		f.Close()
		list, _ := eventNames(t, &d.Buffer)
		check.Equal(t, "events", strings.Join(list, " "), `events_dropped{"events":1} association_state_updated`)
	})
}

// A trace takes two files of the size that was asked for, each with a head, and nothing is lost
// between them.
func TestTraceIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.sqlog")
	f := must.Get(Create(name, &Options{MaxSize: 200 << 10, Queue: 1 << 16}))(t)
	for i := range 1000 {
		e := newEvent(sctp.TraceMetrics)
		e.Stats.OctetsOut = uint64(i)
		f.Tracer("a").Trace(e)
	}
	must.OK(t, f.Close())
	next := -1
	for _, n := range []string{name + ".1", name} {
		b := must.Get(os.ReadFile(n))(t)
		check.That(t, len(b) <= 200<<10, "%s has %d octets", n, len(b))
		_, _, err := Read(bytes.NewReader(b), func(r *Record) error {
			var m Metrics
			must.OK(t, json.Unmarshal(r.Data, &m))
			check.That(t, next < 0 || int(m.OctetsOut) == next, "event %d after %d", m.OctetsOut, next-1)
			next = int(m.OctetsOut) + 1
			return nil
		})
		must.OK(t, err)
	}
	check.Equal(t, "events, the last one included", next, 1000)
	// A directory that is gone is no disk either.
	var opens atomic.Int32
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: 1 << 30}
		f := must.Get(createWith(filepath.Join(t.TempDir(), "no", "x"), &Options{MaxSize: 600},
			func(string) (io.WriteCloser, error) {
				if n := opens.Add(1); n == 2 {
					return nil, os.ErrPermission
				}
				return d, nil
			}))(t)
		for range 3 {
			f.Tracer("a").Trace(newEvent(sctp.TraceMetrics))
			time.Sleep(time.Second)
		}
		f.Close()
		list, _ := eventNames(t, &d.Buffer)
		check.Equal(t, "events", fmt.Sprint(list), `[metrics_updated events_dropped{"events":1} metrics_updated]`)
	})
}

// What is no trace is refused.
func TestWhatIsNoTrace(t *testing.T) {
	for _, s := range []string{"", "hello", "\x1e{}\n", "\x1e" + `{"file_schema":"` + fileSchema +
		`","trace":{"event_schemas":["urn:ietf:params:qlog:events:quic"]}}`, strings.Repeat("x", 2*maxRecordOctets)} {
		_, _, err := Read(strings.NewReader(s), func(*Record) error { return nil })
		check.That(t, errors.Is(err, ErrNoTrace), "%.20q: %v", s, err)
	}
}

// BenchmarkTrace moves messages with a Tracer on both sides, and without.
func BenchmarkTrace(b *testing.B) {
	for _, link := range []string{"mem", "udp"} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/on=%v", link, on), func(b *testing.B) {
				x, y, at, err := baseline.Pair(link, 1500)
				must.OK(b, err)
				var cfg [2]sctp.TransportConfig
				if on {
					f := must.Get(Create(filepath.Join(b.TempDir(), "t"), nil))(b)
					defer f.Close()
					cfg[0].Tracer, cfg[1].Tracer = f.Tracer("a"), f.Tracer("b")
				}
				client, server := must.Get(sctp.NewTransport(x, &cfg[0]))(b), must.Get(sctp.NewTransport(y, &cfg[1]))(b)
				defer client.Close()
				defer server.Close()
				l := must.Get(server.Listen(9, nil))(b)
				c := must.Get(client.Dial(b.Context(), netip.AddrPortFrom(at.Addr(), 9),
					&sctp.Config{EncapPort: at.Port()}))(b)
				s := must.Get(l.Accept(b.Context()))(b)
				msg := make([]byte, 16<<10)
				b.SetBytes(int64(len(msg)))
				b.ReportAllocs()
				defer func(cpu time.Duration) {
					b.ReportMetric((baseline.CPUTime()-cpu).Seconds()/(float64(b.N)*float64(len(msg))/1e9), "cpu-s/GB")
				}(baseline.CPUTime())
				b.ResetTimer()
				go func() {
					for range b.N {
						if _, err := c.WriteMsg(msg, sctp.SendInfo{}); err != nil {
							b.Error(err)
							return
						}
					}
				}()
				buf := make([]byte, len(msg))
				for range b.N {
					if _, _, err := s.ReadMsg(buf); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Times are milliseconds, with three digits behind the point.
func TestTimesAreMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]float64{0: 0, 999: 0, time.Microsecond: 0.001, 1234567: 1.234,
		time.Hour + 56*time.Microsecond: 3600000.056} {
		check.Equal(t, d.String(), toMillis(d), want)
	}
}
