// Pion is an echo server of github.com/pion/sctp over UDP, as a target for aim. Each pair of UDP
// address and SCTP port that sends to it gets an association of its own. It is a module of its own
// because of the release that it names. That is v1.8.16 of April 2024, which ends with a panic on
// lengths that lie. The fault was mended and published in July 2024 (pion/sctp#339).
// docs/dev/reliability.md says how soon aim finds it.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

// conn is what one SCTP port of one peer sends and is sent.
type conn struct {
	net.PacketConn
	peer net.Addr
	in   chan []byte
	once sync.Once
	done chan struct{}
}

func (c *conn) Read(b []byte) (int, error) {
	select {
	case p := <-c.in:
		return copy(b, p), nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *conn) Write(b []byte) (int, error)      { return c.WriteTo(b, c.peer) }
func (c *conn) RemoteAddr() net.Addr             { return c.peer }
func (c *conn) Close() error                     { c.once.Do(func() { close(c.done) }); return nil }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func main() {
	addr := flag.String("addr", "127.0.0.1:9899", "UDP address")
	flag.Parse()
	s, err := net.ListenPacket("udp", *addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	conns := make(map[string]*conn)
	b := make([]byte, 65536)
	for {
		n, peer, err := s.ReadFrom(b)
		if err != nil {
			return
		}
		if n < 12 {
			continue
		}
		key := fmt.Sprint(peer, binary.BigEndian.Uint16(b))
		c := conns[key]
		if c != nil {
			select {
			case <-c.done:
				c = nil
			default:
			}
		}
		if c == nil {
			if len(conns) > 200 {
				for k, old := range conns {
					old.Close()
					delete(conns, k)
				}
			}
			c = &conn{PacketConn: s, peer: peer, in: make(chan []byte, 100), done: make(chan struct{})}
			conns[key] = c
			go serve(c)
		}
		select {
		case c.in <- append([]byte(nil), b[:n]...):
		default:
		}
	}
}

// serve echoes what comes on each stream.
func serve(c *conn) {
	defer c.Close()
	f := logging.NewDefaultLoggerFactory()
	f.DefaultLogLevel = logging.LogLevelDisabled
	a, err := sctp.Server(sctp.Config{NetConn: c, LoggerFactory: f})
	if err != nil {
		return
	}
	defer a.Close()
	for {
		st, err := a.AcceptStream()
		if err != nil {
			return
		}
		go func() {
			b := make([]byte, 65536)
			for {
				n, err := st.Read(b)
				if err != nil {
					return
				}
				st.Write(b[:n])
			}
		}()
	}
}
