package rdma

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// broken is a device that fails.
type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error)  { return 0, errors.New("no such disk") }
func (broken) WriteAt([]byte, int64) (int, error) { return 0, errors.New("no such disk") }

// Every counter counts: there is a row for each field. Those of ddpadapt have theirs in that
// package; one of them shows that they are passed on. What a Terminate was sent for counts by the
// attacks of test/attack/rdmapeer, which check it for each; here are those that it has no attack
// for.
func TestEveryCounterCounts(t *testing.T) {
	failing := func(t *testing.T) *lab { // a stream that b terminates, for want of a receive
		x := newLab(t, nil)
		a, b := x.join(nil)
		a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
		<-b.qp.Done()
		<-a.qp.Done()
		return x
	}
	onB := func(f func(t *testing.T) *lab) func(*testing.T) *Device {
		return func(t *testing.T) *Device { return f(t).b }
	}
	onDisk := func(op rdmap.WROpcode) func(t *testing.T) *Device {
		return func(t *testing.T) *Device {
			x := newLab(t, nil)
			a, b := x.join(nil)
			mr := must.Get(b.pd.RegisterDevice(broken{}, 100, RemoteWrite|RemoteRead, nil))(t)
			a.post(SendWR{Op: op, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: mr.STag()})
			<-b.qp.Done()
			return x.b
		}
	}
	refuse := func(t *testing.T) *Device {
		x := newLab(t, nil)
		_, err := x.connect(newSide(t, x.a, nil, nil).qp, nil, func(r *Request) error { return r.Reject(nil) })
		must.That(t, err != nil, "not rejected")
		return x.b
	}
	rows := map[string]func(t *testing.T) *Device{
		"Connected": func(t *testing.T) *Device {
			x := newLab(t, nil)
			x.join(nil)
			return x.a
		},
		"Accepted": func(t *testing.T) *Device {
			x := newLab(t, nil)
			x.join(nil)
			return x.b
		},
		"Rejected":      refuse,
		"StreamsFailed": onB(failing), "TerminatesOut": onB(failing), "Faults.UntaggedNoBuffer": onB(failing),
		"TerminatesIn": func(t *testing.T) *Device { return failing(t).a },
		"StreamsLost": func(t *testing.T) *Device {
			x := newLab(t, nil)
			_, b := x.join(nil)
			x.a.Close()
			<-b.qp.Done()
			return x.b
		},
		"RequestsDropped": func(t *testing.T) *Device {
			x := newLab(t, &Config{Limits: Limits{MaxRequests: 2}}) // one of them for one address
			short, cancel := context.WithCancel(ctx(t))
			defer cancel()
			waiting := newSide(t, x.a, nil, nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = waiting.qp.Connect(short, x.addr, nil)
			}()
			for x.l.places.UsedUnits() == 0 {
				if p := x.b.Peers(); len(p) > 0 {
					p[0].Stats() // takes its turn at the association
				}
			}
			_, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), x.addr, nil)
			check.That(t, err != nil, "the second request is not ended")
			cancel()
			<-done
			return x.b
		},
		"LimitsRefused": func(t *testing.T) *Device {
			x := newLab(t, &Config{Limits: Limits{MaxRegions: 1}})
			pd := x.a.AllocPD()
			for range 2 {
				_, _ = pd.Register(make([]byte, 8), LocalWrite, nil)
			}
			return x.a
		},
		"IdleEnded": func(t *testing.T) *Device {
			x := newLab(t, nil)
			x.join(nil)
			for range 2 * sweepsPerTimeout {
				x.b.sweepIdle()
			}
			return x.b
		},
		"VacantEnded": func(t *testing.T) *Device {
			x := newLab(t, nil)
			x.vacant(t)
			return x.b
		},
		"CQOverflows": func(t *testing.T) *Device {
			x := newLab(t, nil)
			small := must.Get(x.a.CreateCQ(1))(t)
			a, b := x.join(func(c *QPConfig) {
				if c.PD.dev == x.a {
					c.SendCQ, c.MaxSend = small, 1
				}
			})
			var err error
			for err == nil || errors.Is(err, rdmap.ErrQueueFull) {
				err = a.qp.PostSend(&SendWR{Op: OpWrite, RemoteSTag: b.mr.STag()})
			}
			event(t, x.a, EventCQError)
			return x.a
		},
		"SRQLimits": func(t *testing.T) *Device {
			x := newLab(t, nil)
			srq := must.Get(x.a.AllocPD().CreateSRQ(8, 1))(t)
			srq.SetLimit(1)
			return x.a
		},
		"HighWaters": func(t *testing.T) *Device {
			x := newLab(t, nil)
			a, b := x.join(nil)
			b.recv(1, 0, 100)
			b.qp.SetHighWater(0)
			a.post(SendWR{Op: OpSend, Inline: []byte("x")})
			event(t, x.b, EventHighWater)
			return x.b
		},
		"EventsLost": func(t *testing.T) *Device {
			x := newLab(t, &Config{Limits: Limits{MaxEvents: 1}})
			a, b := x.join(nil)
			a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
			<-b.qp.Done()
			return x.b
		},
		"Faults.LocalCatastrophic":  onDisk(OpWrite),
		"Faults.RemoteCatastrophic": onDisk(OpRead),
		"Faults.Setup": func(t *testing.T) *Device {
			x := newLab(t, nil)
			a, b := newSide(t, x.a, nil, depths(4, 4, true, false)), newSide(t, x.b, nil, nil)
			must.Fails(x.connect(a.qp, nil, b.demands(Setup{IRD: 9, ORD: 5})))(t, "error", llp.ErrInsufficientIRD)
			return x.a
		},
		"Faults.Other": func(t *testing.T) *Device { // nothing sends one
			x := newLab(t, nil)
			x.a.countFailure(&rdmap.StreamError{Terminate: &rdmap.Terminate{Layer: 9}})
			return x.a
		},
		"Sessions.Requests": refuse,
	}
	startup := func(say string) func(t *testing.T) *Device {
		return func(t *testing.T) *Device {
			x := newTCPLab(t, &Config{Limits: Limits{MaxRequests: 2},
				TCP: TCPConfig{StartupTimeout: 10 * time.Millisecond}})
			r := x.dialRaw()
			if say == "" { // the second is one too many
				x.dialRaw().ends("a second connection")
			}
			must.Do(r.nc.Write([]byte(say)))(t)
			r.ends("a connection that " + say)
			must.OK(t, x.b.Wait(ctx(t)))
			return x.b
		}
	}
	rows["TCP.Connections"], rows["TCP.StartupFaults"] = startup("GET /"), startup("GET /")
	rows["TCP.StartupTimeouts"], rows["TCP.Dropped"] = startup("MPA ID"), startup("")
	rows["TCP.TLSFaults"] = func(t *testing.T) *Device {
		ca := certs.New(t)
		x := newTLSLab(t, networkTCP, nil, ca.Listener(t), nil, nil)
		_, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), x.addr, nil)
		check.That(t, err != nil, "a peer in the clear is let in")
		until(t, "count", func() bool { return x.b.Stats().TCP.TLSFaults > 0 })
		return x.b
	}
	counters.Each(Stats{}, func(name string, _ uint64) {
		drive := rows[name]
		if drive == nil && (strings.HasPrefix(name, "Sessions.") || strings.HasPrefix(name, "Faults.")) {
			return
		}
		t.Run(name, func(t *testing.T) {
			must.That(t, drive != nil, "nothing here makes it count")
			s := drive(t).Stats()
			sum := uint64(0)
			counters.Each(s.Faults, func(_ string, v uint64) { sum += v })
			counters.Each(s, func(other string, v uint64) {
				check.That(t, other != name || v != 0, "it did not count")
			})
			check.That(t, sum == s.TerminatesOut && s.StreamsFailed == s.TerminatesIn+s.TerminatesOut+s.StreamsLost,
				"the sums do not agree: %+v", s)
		})
	})
}

// Every Terminate has its counter, and no two of different meaning share one.
func TestEachFaultHasItsCounter(t *testing.T) {
	type meaning struct {
		layer rdmap.Layer
		etype rdmap.EType // of LayerDDP
		code  uint8
	}
	seen := map[*uint64]meaning{}
	var f Faults
	for _, layer := range []rdmap.Layer{rdmap.LayerRDMA, rdmap.LayerDDP} {
		for _, etype := range []rdmap.EType{1, 2} {
			for code := range 256 {
				c := f.counterFor(&rdmap.Terminate{Layer: layer, EType: etype, Code: uint8(code)})
				m := meaning{layer, etype * rdmap.EType(layer), uint8(code)}
				if code == rdmap.CodeCatastrophicGlobal && layer == rdmap.LayerRDMA {
					m.code = rdmap.CodeCatastrophic
				}
				before, ok := seen[c]
				check.That(t, !ok || before == m || c == &f.Other, "%+v and %+v are one counter", before, m)
				seen[c] = m
			}
		}
	}
	for _, code := range []uint8{rdmap.CodeMPACRC, rdmap.CodeMPAMarker, rdmap.CodeMPALost} {
		seen[f.counterFor(&rdmap.Terminate{Layer: rdmap.LayerLLP, Code: code})] = meaning{}
	}
	all := 0
	counters.Each(f, func(string, uint64) { all++ })
	// but for LocalCatastrophic
	check.That(t, len(seen) == all-1, "%d counters of %d are reached", len(seen), all)
}

// The sums over the sessions go on when an association has ended.
func TestSessionSumsOutliveAssociations(t *testing.T) {
	x := newLab(t, nil)
	for i := range uint64(3) {
		a, _ := x.join(nil)
		must.OK(t, a.qp.Disconnect(ctx(t)))
		event(t, x.b, EventAssocDown)
		check.Equal(t, "requests", x.b.Stats().Sessions.Requests, i+1)
	}
}

// lines are those of a journal.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// The Logger of the transport gets the Device's rare events too, perhaps after the end that they
// tell of.
func TestJournalOfADevice(t *testing.T) {
	log := make(lines, 100)
	cfg := &Config{}
	cfg.Transport.Logger = slog.New(slog.NewTextHandler(log, nil))
	a, _ := newLab(t, cfg).join(nil)
	a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
	want := regexp.MustCompile(`level=WARN msg="rdma: QP fatal" remote=10.0.0.1:\d+ qp=\d+ reason=`)
	for line := ""; !want.MatchString(line); {
		select {
		case line = <-log:
		case <-ctx(t).Done():
			t.Fatalf("no line with %s", want)
		}
	}
}
