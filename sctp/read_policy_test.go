package sctp

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What a program sees of the shell does not depend on who reads the link, how the reader waits, and
// what is sent together.
func TestProgramsSeeNothingOfTheReadPolicy(t *testing.T) {
	for _, policy := range []struct {
		name   string
		simple bool
	}{{"adaptive", false}, {"simple", true}} {
		for _, tt := range []struct {
			name string
			run  func(t *testing.T, p *pair)
		}{
			{"messages of several associations come whole and in order", exchangeWithSeveral},
			{"a read ends at its deadline", readPastDeadline},
			{"a write ends at its deadline", writePastDeadline},
			{"an abort ends reads at both ends", abortWhileReading},
			{"a graceful end comes behind what was written", closeBehindMessages},
			{"what comes while the lock is held waits in the backlog", exchangeThroughBacklog},
		} {
			t.Run(policy.name+": "+tt.name, func(t *testing.T) {
				la, lb := mempair.New(t, mem.Options{MTU: 1500})
				p := &pair{bAddr: lb.LocalAddrs()[0].Addr()}
				p.a, p.b = must.Get(newTransport(la, nil, policy.simple))(t),
					must.Get(newTransport(lb, nil, policy.simple))(t)
				t.Cleanup(func() {
					p.a.Close()
					p.b.Close()
				})
				_, simple := p.a.readerRole.rx.policy.(simplePolicy)
				must.Equal(t, "whether the policy is the simple one", simple, policy.simple)
				tt.run(t, p)
			})
		}
	}
}

// readErrOf is the error of a read.
func readErrOf(c *Conn) error {
	_, _, err := c.ReadMsg(make([]byte, 9))
	return err
}

func exchangeWithSeveral(t *testing.T, p *pair) {
	const associations, messages = 5, 40
	l := must.Get(p.b.Listen(0, nil))(t)
	go func() {
		for range associations {
			s, err := l.Accept(deadlineCtx(t))
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 10_000)
				for n, _, err := s.ReadMsg(buf); err == nil; n, _, err = s.ReadMsg(buf) {
					s.WriteMsg(buf[:n], SendInfo{})
				}
			}()
		}
	}()
	var conns []*Conn
	for range associations {
		conns = append(conns, must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t))
	}
	buf := make([]byte, 10_000)
	for i := range messages {
		for k, c := range conns {
			must.Do(c.WriteMsg(patternOf(i+k, 1+200*i), SendInfo{}))(t)
		}
		for k, c := range conns {
			n, _, err := c.ReadMsg(buf)
			must.That(t, err == nil && bytes.Equal(buf[:n], patternOf(i+k, 1+200*i)),
				"answer %d of %d: %d octets, %v", i,
				k, n, err)
		}
	}
	for _, c := range conns {
		c.Abort("")
	}
}

func readPastDeadline(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	must.OK(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	check.Error(t, "nothing has come", readErrOf(c), os.ErrDeadlineExceeded)
	must.OK(t, c.SetReadDeadline(time.Time{}))
	must.Do(s.WriteMsg([]byte("later"), SendInfo{}))(t)
	readOne(t, c)
}

func writePastDeadline(t *testing.T, p *pair) {
	c, _ := p.connect(t, &Config{SendBuffer: 5000}, &Config{RecvBuffer: 5000})
	must.OK(t, c.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	var err error
	for err == nil { // until both buffers are full, as nobody reads
		_, err = c.WriteMsg(make([]byte, 1000), SendInfo{})
	}
	check.Error(t, "nobody reads", err, os.ErrDeadlineExceeded)
}

func abortWhileReading(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	ended := make(chan error)
	go func() { ended <- readErrOf(s) }()
	c.Abort("enough")
	check.Error(t, "the peer's read", <-ended, syscall.ECONNRESET)
	check.Error(t, "the own read", readErrOf(c), net.ErrClosed)
}

func closeBehindMessages(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	for range 9 {
		must.Do(c.WriteMsg(make([]byte, 1400), SendInfo{}))(t)
	}
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	for range 9 {
		readOne(t, s)
	}
	check.Error(t, "behind them", readErrOf(s), io.EOF)
	check.OK(t, <-closed)
	<-s.Done()
	check.Error(t, "why it has ended", s.Err(), assoc.ErrShutdown)
}

func exchangeThroughBacklog(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	sendTogether(t, s, 1, func() error { _, err := c.WriteMsg([]byte("waits"), SendInfo{}); return err })
	readOne(t, s)
}
