package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// bench is a server and a client's device in one process.
type bench struct {
	t      *testing.T
	dir    string
	s      *server
	client *rdma.Device
	addr   netip.AddrPort
	ctx    context.Context
	stop   context.CancelFunc // stops the server
	ended  chan struct{}

	said chan string // lines of the server
}

func newBench(t *testing.T, kind string) *bench {
	t.Helper()
	link := cli.LinkFlags{Kind: kind}
	self := must.Get(link.Devices(nil, nil))(t)
	sdev := self.Server
	b := &bench{t: t, dir: t.TempDir(), ended: make(chan struct{}), said: make(chan string, 100)}
	b.client = self.Client
	l := must.Get(self.Listen(0))(t)
	root := must.Get(os.OpenRoot(b.dir))(t)
	b.addr = netip.AddrPortFrom(self.Addr, l.Port())
	b.s = &server{dev: sdev, root: root, maxSize: 64 << 20, patience: time.Minute, disk: newDisk(50),
		say: func(format string, args ...any) {
			b.said <- fmt.Sprintf(format, args...)
		}}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	serving, stop := context.WithCancel(b.ctx)
	b.stop = stop
	go func() {
		defer close(b.ended)
		b.s.accept(serving, l)
	}()
	t.Cleanup(func() {
		b.client.Close()
		stop()
		<-b.ended
		sdev.Close()
		root.Close()
		cancel()
	})
	return b
}

// contentOf makes n octets that do not repeat.
func contentOf(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// sendFile copies data under name as the program does.
func (b *bench) sendFile(name string, data []byte) error {
	u := &upload{offer: offer{uint64(len(data)), name}, src: bytes.NewReader(data), patience: time.Minute}
	acked := 0
	u.progress = func(n int) { acked += n }
	sum, err := u.run(b.ctx, b.client, b.addr)
	if err != nil {
		return err
	}
	if want := sha256.Sum256(data); !bytes.Equal(sum, want[:]) {
		b.t.Errorf("the client reports the SHA-256 %x, want %x", sum, want)
	}
	check.Equal(b.t, "octets of progress", acked, len(data))
	return nil
}

// waitServerDone has the server finish what it is doing.
func (b *bench) waitServerDone() {
	b.stop()
	<-b.ended
}

// checkFiles checks that the directory holds these files and no others.
func (b *bench) checkFiles(want map[string][]byte) {
	b.t.Helper()
	entries := must.Get(os.ReadDir(b.dir))(b.t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for name, data := range want {
		got := must.Get(os.ReadFile(filepath.Join(b.dir, name)))(b.t)
		check.That(b.t, bytes.Equal(got, data), "%s has %d octets that are not the %d wanted", name, len(got),
			len(data))
	}
	if len(names) != len(want) {
		b.t.Errorf("the directory holds %q, want %d files", names, len(want))
	}
}

func TestCopyIsTheFileOctetByOctet(t *testing.T) {
	for _, kind := range []string{"mem", "udp", "tcp"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, kind)
			want := make(map[string][]byte)
			for name, n := range map[string]int{
				"no octets": 0, "one octet": 1, "one Write": chunk, "a Write and a bit": chunk + 3,
				"the ring exactly": ring * chunk, "round the ring and ends odd": 2*ring*chunk + chunk + 12345,
			} {
				want[name] = contentOf(n)
				err := b.sendFile(name, want[name])
				check.That(t, err == nil, "%s: %v", name, err)
			}
			b.waitServerDone()
			b.checkFiles(want)
		})
	}
}

func TestCopiesAtATime(t *testing.T) {
	b := newBench(t, "mem")
	want := make(map[string][]byte)
	var all sync.WaitGroup
	for i := range 6 {
		name, data := string(rune('a'+i)), contentOf(1<<20+i)
		want[name] = data
		all.Go(func() {
			err := b.sendFile(name, data)
			check.That(t, err == nil, "%s: %v", name, err)
		})
	}
	all.Wait()
	b.waitServerDone()
	b.checkFiles(want)
}

// An older file stays whole until the new one is, and then gives way to it.
func TestReplacesOnlyByWhatIsComplete(t *testing.T) {
	b := newBench(t, "mem")
	older, newer := contentOf(1000), contentOf(3000)
	path := filepath.Join(b.dir, "f")
	must.OK(t, os.WriteFile(path, older, 0o600))
	reader := must.Get(os.Open(path))(t)
	defer reader.Close()

	c := b.newHostile(offer{3000, "f"})
	c.writeData(newer, 0)
	got, err := os.ReadFile(path)
	check.That(t, err == nil && bytes.Equal(got, older),
		"with the copy under way: %d octets, %v; want the older file", len(got), err)
	c.sealFile(3000, sha256.Sum256(newer))
	v := c.readVerdict()
	must.That(t, v.stored, "not stored: %s", v.text)
	c.e.close()
	b.waitServerDone()
	b.checkFiles(map[string][]byte{"f": newer})
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, older) {
		t.Errorf("who had the older file open reads %d octets, %v; it must be untouched", len(got), err)
	}
}

// hostile is a client that speaks the protocol by hand.
type hostile struct {
	b     *bench
	e     *end
	where grant
}

func (b *bench) newHostile(o offer) *hostile {
	b.t.Helper()
	e := must.Get(newEnd(b.client, 8))(b.t)
	answer := must.Get(e.qp.Connect(b.ctx, b.addr, o.encode()))(b.t)
	c := &hostile{b: b, e: e}
	must.OK(b.t, c.where.decode(answer))
	return c
}

// writeData puts data at off of the window and waits for the acknowledgement.
func (c *hostile) writeData(data []byte, off uint64) {
	c.b.t.Helper()
	if wc, err := c.tryWrite(data, off); err != nil || wc.Opcode != rdmap.WCWrite {
		c.b.t.Fatalf("%v: %v", wc, err)
	}
}

func (c *hostile) tryWrite(data []byte, off uint64) (rdma.WC, error) {
	mr := must.Get(c.e.pd.Register(data, 0, nil))(c.b.t)
	err := c.e.qp.PostSend(&rdma.SendWR{
		Op: rdma.OpWrite, SGL: []rdma.SGE{mr.SGE(0, len(data))}, RemoteSTag: rdma.STag(c.where.stag),
		RemoteTO: c.where.to + off,
	})
	if err != nil {
		return rdma.WC{}, err // the stream has failed
	}
	return c.e.next(c.b.ctx, time.Minute)
}

// writeUntilRefused ends with the test if it never is. A Write is acknowledged before its refusal
// is known.
func (c *hostile) writeUntilRefused(data []byte, off uint64) {
	c.b.t.Helper()
	for {
		if _, err := c.tryWrite(data, off); err != nil {
			must.OK(c.b.t, c.b.ctx.Err())
			return
		}
	}
}

func (c *hostile) sealFile(size uint64, sum [sha256.Size]byte) {
	c.b.t.Helper()
	s := seal{size, sum}
	must.OK(c.b.t, c.e.say(s.encode()))
}

func (c *hostile) readVerdict() (v verdict) {
	c.b.t.Helper()
	for {
		wc := must.Get(c.e.next(c.b.ctx, time.Minute))(c.b.t)
		if wc.Opcode == rdmap.WCRecv {
			must.OK(c.b.t, v.decode(c.e.received(wc)))
			return v
		}
	}
}

// Whatever a client does that is not a whole copy leaves nothing behind, and an older file as it
// was.
func TestNothingIsKept(t *testing.T) {
	data := contentOf(100000)
	sum := sha256.Sum256(data)
	for _, test := range []struct {
		name  string
		does  func(c *hostile)
		heard string // what the client is told, if anything
	}{
		{"the SHA-256 is another one", func(c *hostile) {
			c.writeData(data, 0)
			c.sealFile(100000, [32]byte{1})
		}, "its SHA-256 is another one"},
		{"an octet is wrong", func(c *hostile) {
			bad := slices.Clone(data)
			bad[99999] ^= 1
			c.writeData(bad, 0)
			c.sealFile(100000, sum)
		}, "its SHA-256 is another one"},
		{"a part was never written", func(c *hostile) {
			c.writeData(data[:99999], 0)
			c.sealFile(100000, sum)
		}, "1 of its octets never came"},
		{"the sealed size is another one", func(c *hostile) {
			c.writeData(data, 0)
			c.sealFile(99999, sum)
		}, "sealed with 99999"},
		{"the seal is not one", func(c *hostile) {
			c.writeData(data, 0)
			must.OK(c.b.t, c.e.say([]byte("done")))
		}, "does not speak"},
		{"it leaves in order, unsealed", func(c *hostile) {
			c.writeData(data, 0)
			c.e.qp.Disconnect(c.b.ctx)
		}, ""},
		{"it ends the session in the middle", func(c *hostile) {
			c.writeData(data[:5000], 0)
			c.e.qp.Close()
		}, ""},
		{"its association is aborted in the middle", func(c *hostile) {
			c.writeData(data[:5000], 0)
			c.b.client.Close()
		}, ""},
		{"it writes beyond the window", func(c *hostile) {
			c.writeUntilRefused(data, 1)
			var e *rdmap.StreamError
			if err := c.e.qp.Err(); !errors.As(err, &e) || !e.Remote {
				c.b.t.Errorf("the stream has ended with %v, want the server's Terminate", err)
			}
		}, ""},
		{"it writes more than it announced", func(c *hostile) {
			c.writeData(data, 0)
			c.writeUntilRefused(data[:10], 0)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "mem")
			older := contentOf(10)
			must.OK(t, os.WriteFile(filepath.Join(b.dir, "f"), older, 0o600))
			c := b.newHostile(offer{100000, "f"})
			test.does(c)
			if test.heard != "" {
				v := c.readVerdict()
				check.That(t, !v.stored && strings.Contains(v.text, test.heard), "verdict %+v, want %q", v, test.heard)
			}
			c.e.close()
			b.waitServerDone()
			b.checkFiles(map[string][]byte{"f": older})
		})
	}
}

// Once sealed, the content can be changed no more: what was checked is what is kept.
func TestSealClosesTheWindow(t *testing.T) {
	b := newBench(t, "mem")
	data := contentOf(50000)
	c := b.newHostile(offer{50000, "f"})
	c.writeData(data, 0)
	c.sealFile(50000, sha256.Sum256(data))
	v := c.readVerdict()
	must.That(t, v.stored, "not stored: %s", v.text)
	c.writeUntilRefused([]byte("other"), 0)
	c.e.close()
	b.waitServerDone()
	b.checkFiles(map[string][]byte{"f": data})
}

// A client that is there but sends nothing does not hold its place.
func TestSilentClient(t *testing.T) {
	b := newBench(t, "mem")
	b.s.patience = 50 * time.Millisecond
	c := b.newHostile(offer{1000, "f"})
	v := c.readVerdict()
	check.That(t, !v.stored && strings.Contains(v.text, "nothing has come for"), "verdict %+v", v)
	c.e.close()
	b.waitServerDone()
	b.checkFiles(nil)
}

// A client that moves hardly anything does not hold the last place; where there are others it may.
func TestSlowClient(t *testing.T) {
	d := &download{patience: 10 * time.Second}
	for _, row := range []struct {
		name string
		n    int64
		full bool
		want string
	}{
		{"nothing", 0, false, "nothing has come"},
		{"an octet, with room for others", 1, false, ""},
		{"an octet, with none", 1, true, "no place for others"},
		{"just less than it has to", 10*slow - 1, true, "no place for others"},
		{"enough", 10 * slow, true, ""},
	} {
		d.full = func() bool { return row.full }
		err := d.pace(row.n)
		check.That(t, (err == nil) == (row.want == "") && (err == nil || strings.Contains(err.Error(), row.want)),
			"%s: %v, want %q", row.name, err, row.want)
	}
}

// A client learns why the server ends the copy although its Writes go on meanwhile.
func TestStoppedServerUnderLoad(t *testing.T) {
	b := newBench(t, "mem")
	u := &upload{offer: offer{64 << 20, "f"}, patience: time.Minute}
	var first sync.Once
	u.progress = func(int) { first.Do(b.stop) }
	reads := 0
	u.src = readerFunc(func(p []byte) (int, error) {
		if reads++; reads == 4*ring { // the file does not end before the server does
			<-b.said
		}
		return len(p), nil
	})
	_, err := u.run(b.ctx, b.client, b.addr)
	var refused *refusedError
	check.That(t, errors.As(err, &refused) && refused.text == "the server is being stopped", "run fails with %v", err)
	<-b.ended
	b.checkFiles(nil)
}

// A server that goes without a word after the seal leaves the client in doubt, and it says so.
func TestMissingVerdict(t *testing.T) {
	for _, test := range []struct {
		name   string
		sealed bool
		text   string
	}{
		{"unsealed", false, "nothing was stored: "},
		{"sealed", true, "the server may have stored the file or not"},
	} {
		t.Run(test.name, func(t *testing.T) {
			link := cli.LinkFlags{Kind: "mem"}
			self := must.Get(link.OpenSelf())(t)
			server := must.Get(rdma.NewDevice(self.Server, nil))(t)
			defer server.Close()
			client := must.Get(rdma.NewDevice(self.Client, nil))(t)
			defer client.Close()
			l := must.Get(server.Listen(rdma.DefaultPort))(t)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			go func() { // a server that leaves as soon as it has the seal, or before
				req, err := l.Accept(ctx)
				if err != nil {
					return
				}
				e, err := newEnd(server, 1)
				if err != nil || req.Accept(e.qp, (&grant{}).encode()) != nil {
					return
				}
				if test.sealed {
					e.next(ctx, time.Minute)
				}
				e.close()
			}()
			u := &upload{offer: offer{0, "f"}, patience: time.Minute}
			if !test.sealed {
				u.size, u.progress = 1, func(int) {}
				u.src = readerFunc(func(p []byte) (int, error) {
					<-u.e.qp.Done()
					return len(p), nil
				})
			}
			_, err := u.run(ctx, client, netip.AddrPortFrom(self.Addr, rdma.DefaultPort))
			check.That(t, err != nil && strings.HasPrefix(err.Error(), test.text), "run fails with %v, want %q", err,
				test.text)
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestStoppedServer(t *testing.T) {
	b := newBench(t, "mem")
	c := b.newHostile(offer{1000, "f"})
	b.stop()
	v := c.readVerdict()
	check.That(t, !v.stored && v.text == "the server is being stopped", "verdict %+v", v)
	c.e.close()
	<-b.ended
	b.checkFiles(nil)
}

func TestServerRefusesNamesOutsideItsFolderAndSaysWhy(t *testing.T) {
	b := newBench(t, "mem")
	must.OK(t, os.Mkdir(filepath.Join(b.dir, "dir"), 0o700))
	for _, test := range []struct {
		name    string
		private []byte
		heard   string
	}{
		{"a parent", (&offer{1, "../f"}).encode(), "path"},
		{"an absolute path", (&offer{1, "/etc/passwd"}).encode(), "path"},
		{"a Windows path", (&offer{1, `..\f`}).encode(), "path"},
		{"the parent itself", (&offer{1, ".."}).encode(), "not that of a file"},
		{"the directory itself", (&offer{1, "."}).encode(), "not that of a file"},
		{"no name", (&offer{1, ""}).encode(), "empty"},
		{"a NUL", (&offer{1, "f\x00.txt"}).encode(), "control"},
		{"a terminal's command", (&offer{1, "f\x1b[2J"}).encode(), "control"},
		{"a line break", (&offer{1, "f\ng"}).encode(), "control"},
		{"not UTF-8", (&offer{1, "f\xff"}).encode(), "UTF-8"},
		{"too long", (&offer{1, strings.Repeat("x", 256)}).encode(), "longer"},
		{"a temporary name", (&offer{1, tempPrefix + "AAAA"}).encode(), "reserved"},
		{"too large", (&offer{64<<20 + 1, "f"}).encode(), "more than the server takes"},
		{"as large as can be", (&offer{1<<64 - 1, "f"}).encode(), "more than the server takes"},
		{"no private data", nil, "protocol"},
		{"another protocol", []byte("ddpping1........................"), "protocol"},
		{"cut short", (&offer{1, "f"}).encode()[:10], "protocol"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := must.Get(newEnd(b.client, 1))(t)
			defer e.close()
			_, err := e.qp.Connect(b.ctx, b.addr, test.private)
			var rejected *llp.RejectedError
			check.That(t, errors.As(err, &rejected) && strings.Contains(string(rejected.Private), test.heard),
				"the answer is %v, want a refusal with %q", err, test.heard)
		})
	}
	t.Run("the name of a directory", func(t *testing.T) {
		var refused *refusedError
		err := b.sendFile("dir", contentOf(10))
		check.That(t, errors.As(err, &refused), "the answer is %v, want a refusal", err)
	})
	b.waitServerDone()
	must.OK(t, os.Remove(filepath.Join(b.dir, "dir")))
	b.checkFiles(nil)
}

// More than half of maxCopies from one address at a time are refused, and welcome when there is
// room again.
func TestTooManyCopies(t *testing.T) {
	b := newBench(t, "mem")
	var held []*hostile
	for range maxCopies / 2 {
		held = append(held, b.newHostile(offer{10, "held"}))
	}
	var rejected *llp.RejectedError
	err := b.sendFile("f", contentOf(10))
	check.That(t, errors.As(err, &rejected), "the answer is %v, want a refusal", err)
	for _, c := range held {
		c.sealFile(0, [32]byte{}) // a wrong one ends the copy
		c.readVerdict()
		c.e.close()
	}
	b.waitServerDone()
	b.checkFiles(nil)
}

// A file that changes under the client's hands is not stored by half.
func TestSourceFails(t *testing.T) {
	for _, test := range []struct {
		name string
		src  io.Reader
		text string
	}{
		{"it became shorter", bytes.NewReader(contentOf(chunk + 5)), "shorter"},
		{"it cannot be read", iotest.ErrReader(errors.New("input/output error")), "input/output error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "mem")
			u := &upload{offer: offer{3 * chunk, "f"}, src: test.src, patience: time.Minute, progress: func(int) {}}
			_, err := u.run(b.ctx, b.client, b.addr)
			var source *sourceError
			check.That(t, errors.As(err, &source) && strings.Contains(err.Error(), test.text),
				"run fails with %v, want %q", err, test.text)
			b.waitServerDone()
			b.checkFiles(nil)
		})
	}
}

func TestMoreThanTheDiskHas(t *testing.T) {
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	defer root.Close()
	in, err := create(root, 1<<55)
	if err == nil {
		in.discard()
		t.Skip("this file system takes a file of 2^55 octets")
	}
	entries, _ := os.ReadDir(root.Name())
	check.That(t, len(entries) == 0, "%v is left", entries)
}
