package sctp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/rddp-go/rddp/rawio/udp"
	"golang.org/x/sys/unix"
)

// programEnv has the test binary be another program of this host: what it does, for whom.
const programEnv = "RDDP_TEST_PROGRAM"

func init() {
	what := os.Getenv(programEnv)
	if what == "" {
		return
	}
	f := strings.Fields(what)
	if uid, _ := strconv.Atoi(f[0]); uid > 0 {
		if err := errors.Join(syscall.Setgid(uid), syscall.Setuid(uid)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println(actAs(f[1], f[2:]))
	os.Stdout.Close()
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends it
	os.Exit(0)
}

// errName is an errno by its name, as the test reads it, or a text.
func errName(err error) string {
	var errno syscall.Errno
	for _, e := range []syscall.Errno{syscall.EADDRINUSE, syscall.EACCES, syscall.ECONNREFUSED, syscall.EMFILE} {
		if errors.Is(err, e) {
			errno = e
		}
	}
	return strings.Join(strings.Fields(fmt.Sprint(unix.ErrnoName(errno), " ", err)), " ")
}

// actAs does what another program does, and says what came of it.
func actAs(what string, args []string) string {
	links := &sharedLinks{allowedKinds: func() ([]linkKind, error) { return []linkKind{udpLink}, nil }}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch what {
	case "listen": // on an address, and tell all who come who one is
		l, err := (&ListenConfig{links: links}).Listen(ctx, "sctp", args[0])
		if err != nil {
			return errName(err)
		}
		go greetAll(l)
		return fmt.Sprint(l.EncapPort())
	case "dial":
		return greetingOf((&Dialer{links: links}).Dial(ctx, "sctp", args[0]))
	case "udp": // have a UDP port
		_, err := net.ListenPacket("udp4", ":"+args[0])
		return fmt.Sprint(err)
	case "names": // have many names that once meant something
		for i := range 800 {
			if _, err := net.ListenPacket("unixgram", fmt.Sprintf("@rddp/udp/%s/%d/*", args[0], i)); err != nil {
				return err.Error()
			}
		}
	case "mute": // have the name of a port, and not listen
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@rddp/port/" + args[0]})
		}
		return fmt.Sprint(err)
	case "name": // have the name of a port, and say so much to who asks
		l, err := net.Listen("unix", "@rddp/port/"+args[0])
		if err != nil {
			return err.Error()
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if len(args) > 1 {
					fmt.Fprintf(c, "rddp\n* %s\n\n", args[1])
				}
			}
		}()
	}
	return "done"
}

func greetAll(l *Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		_, _ = c.WriteMsg(strconv.AppendInt(nil, int64(os.Getuid()), 10), SendInfo{})
	}
}

// greetingOf returns who has greeted, or why nobody has.
func greetingOf(c *Conn, err error) string {
	if err != nil {
		return errName(err)
	}
	defer c.Abort("")
	b := make([]byte, 100)
	n, _, err := c.ReadMsg(b)
	return fmt.Sprint("user ", string(b[:n]), " ", err)
}

// startProgram starts another program of a user, in the namespace of the calling thread, and
// returns what it says and how to end it.
func startProgram(t *testing.T, attr *syscall.SysProcAttr, uid int, what string) (said string, end func()) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", programEnv, uid, what))
	cmd.SysProcAttr = attr
	in, out := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	said, _ = bufio.NewReader(out).ReadString('\n')
	ended := false
	end = func() {
		if !ended {
			ended = true
			in.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	return strings.TrimSpace(said), end
}

// What a local user may do to Dial and Listen of others is what it may do with TCP: have a port
// first that needs no privilege. Users are 0 (root, as this test), 1000 and 65534, who is hostile.
// Each step is a program, and what it says begins so.
func TestLocalUsersHaveNoMoreThanWithTCP(t *testing.T) {
	race.Costly(t)
	testpriv.Require(t, "CAP_SETUID")
	type step struct {
		uid  int
		do   string
		want string
	}
	for i, row := range []struct {
		name  string
		steps []step
	}{
		{"a server of root's, and its clients", []step{{0, "listen :700", "9899"}, {0, "dial 127.0.0.1:700", "user 0"}, {1000, "dial 127.0.0.1:700", "user 0"}, {1000, "dial [::1]:700", "user 0"}}},
		{"a server of a user's, dialled by all", []step{{65534, "udp 9899", "<nil>"}, {1000, "listen :7000", ""}, {0, "dial 127.0.0.1:7000", "user 1000"}, {1000, "dial 127.0.0.1:7000", "user 1000"}, {65534, "dial [::1]:7000", "user 1000"}}},
		{"two servers beside each other, the second by a UDP port of its own", []step{{1000, "listen :7001", "9899"}, {0, "listen :7000", ""}, {1000, "dial 127.0.0.1:7000", "user 0"}, {0, "dial 127.0.0.1:7001", "user 1000"}}},
		{"the first comer has the port", []step{{65534, "listen :7000", "9899"}, {0, "listen :7000", "EADDRINUSE"}, {1000, "listen 127.0.0.1:7000", "EADDRINUSE"}}},
		{"and keeps it, at every address", []step{{0, "listen :7000", "9899"}, {65534, "listen :7000", "EADDRINUSE"}, {65534, "listen 127.0.0.7:7000", "EADDRINUSE"}, {65534, "name 7000 1", "listen unix"}, {0, "dial 127.0.0.7:7000", "user 0"}}},
		{"the name of a privileged port is taken before its server comes", []step{{65534, "name 700 9", "done"}, {0, "listen :700", "9899"}, {0, "dial 127.0.0.1:700", "user 0"}, {1000, "dial [::1]:700", "user 0"}}},
		{"and its owner says nothing, nor delays Dial", []step{{65534, "name 700", "done"}, {0, "listen :700", "9899"}, {0, "dial 127.0.0.1:700", "user 0"}}},
		{"and does not even listen", []step{{65534, "mute 700", "<nil>"}, {0, "listen :700", "9899"}, {0, "dial 127.0.0.1:700", "user 0"}}},
		{"a privileged port over UDP port 9899 of a user who has no privilege", []step{{65534, "listen :700", "9899"}, {0, "dial 127.0.0.1:700", "EACCES"}, {1000, "dial [::1]:700", "EACCES"}, {65534, "dial 127.0.0.1:700", "user 65534"}}},
		{"the same, and the server of root's has come second", []step{{65534, "listen :700", "9899"}, {0, "listen :700", ""}, {0, "dial 127.0.0.1:700", "EACCES"}}},
		{"a name for a UDP port of another user", []step{{0, "listen :7001", "9899"}, {65534, "name 7000 9899", "done"}, {0, "dial 127.0.0.1:7000", "EACCES"}}},
		{"a name for a UDP port of nobody", []step{{65534, "name 7000 9", "done"}, {0, "dial 127.0.0.1:7000", "ECONNREFUSED"}}},
		{"a name for raw IP alone", []step{{65534, "name 7000 0", "done"}, {0, "dial 127.0.0.1:7000", "ECONNREFUSED"}}},
		{"names that once meant something", []step{{65534, "names 7000", "done"}, {0, "listen :7000", "9899"}, {0, "dial 127.0.0.1:7000", "user 0"}}},
		{"programs of one user share a port by address", []step{{1000, "listen 127.0.0.1:7000", "9899"}, {1000, "listen 127.0.0.2:7000", ""}, {1000, "listen 127.0.0.2:7000", "EADDRINUSE"}, {1000, "listen :7000", "EADDRINUSE"},
			{0, "dial 127.0.0.1:7000", "user 1000"}, {0, "dial 127.0.0.2:7000", "user 1000"}, {0, "dial 127.0.0.3:7000", "ECONNREFUSED"}, {65534, "listen 127.0.0.3:7000", "EADDRINUSE"}}},
	} {
		if race.Enabled && testing.Short() && i == 4 { // each step starts a program, which takes its time
			break
		}
		t.Run(row.name, func(t *testing.T) {
			testns.New(t).Do(func() error {
				for _, s := range row.steps {
					said, _ := startProgram(t, nil, s.uid, s.do)
					check.That(t, strings.HasPrefix(said, s.want), "user %d, %s: %q, want %q", s.uid, s.do, said,
						s.want)
				}
				return nil
			})
		})
	}
}

// A user namespace makes nobody root of the host: its root is the user who has made it, and whom it
// does not know may have no privileged port.
func TestRootOfAUserNamespaceIsNotRoot(t *testing.T) {
	race.Costly(t)
	testpriv.Require(t, "CAP_SETUID")
	in := func(uid int) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{NoSetGroups: true},
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}}
	}
	testns.New(t).Do(func() error {
		said, end := startProgram(t, in(65534), 0, "listen :700")
		check.That(t, said == "9899", "in a user namespace: %s", said)
		said, _ = startProgram(t, nil, 0, "dial 127.0.0.1:700")
		check.That(t, strings.HasPrefix(said, "EACCES"), "root dials a root who is none: %s", said)
		end()
		startProgram(t, nil, 1000, "listen :7000")
		said, _ = startProgram(t, in(65534), 0, "dial 127.0.0.1:7000")
		check.That(t, strings.HasPrefix(said, "user 1000"), "out of the user namespace: %s", said)
		startProgram(t, nil, 1000, "name 701 9899")
		said, _ = startProgram(t, in(65534), 0, "dial 127.0.0.1:701")
		check.That(t, strings.HasPrefix(said, "EACCES"), "a user who is not known has a privileged port: %s", said)
		return nil
	})
}

// When the program that has the name of a port ends, one of those that share it by address goes on
// with it, and nobody else gets it.
func TestNameOfAPortOutlivesItsFirstProgram(t *testing.T) {
	race.Costly(t)
	testpriv.Require(t, "CAP_SETUID")
	testns.New(t).Do(func() error {
		_, first := startProgram(t, nil, 1000, "listen 127.0.0.1:7000")
		_, second := startProgram(t, nil, 1000, "listen 127.0.0.2:7000")
		startProgram(t, nil, 1000, "listen 127.0.0.3:7000")
		for _, end := range []func(){first, second} {
			end()
			said, _ := startProgram(t, nil, 65534, "listen :7000")
			check.That(t, strings.HasPrefix(said, "EADDRINUSE"), "another user, once it has ended: %s", said)
			said, _ = startProgram(t, nil, 0, "dial 127.0.0.3:7000")
			check.That(t, strings.HasPrefix(said, "user 1000"), "Dial to one that goes on: %s", said)
		}
		return nil
	})
}

// What is served by raw IP alone is not looked for at UDP port 9899, which is another program's.
func TestDialKnowsWhoListensByRawIPAlone(t *testing.T) {
	testns.New(t).Do(func() error {
		server, client := onlyLinks(t, rawLink), onlyLinks(t, rawLink, udpLink)
		l := must.Get((&ListenConfig{links: server}).Listen(t.Context(), "sctp", ":0"))(t)
		go greetAll(l)
		said := greetingOf((&Dialer{links: client}).Dial(deadlineCtx(t), "sctp", fmt.Sprintf("127.0.0.1:%d", l.Port())))
		check.That(t, strings.HasPrefix(said, "user"), "a server by raw IP alone: %s", said)
		_, err := (&Dialer{links: onlyLinks(t, udpLink)}).Dial(deadlineCtx(t), "sctp",
			fmt.Sprintf("127.0.0.1:%d", l.Port()))
		check.That(t, errors.Is(err, syscall.ECONNREFUSED) && strings.Contains(err.Error(), "raw IP alone"),
			"the same by UDP alone: %v", err)
		must.OK(t, l.Close())
		return nil
	})
}

// A listener says by which UDP port it is reached, and the log by whom it has not got 9899.
func TestListenerSaysItsUDPPort(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	testns.New(t).Do(func() error {
		for _, row := range []struct {
			kinds []linkKind
			want  uint16
		}{{[]linkKind{rawLink}, 0}, {[]linkKind{rawLink, udpLink}, udp.DefaultPort}, {[]linkKind{udpLink}, 1}} {
			l := must.Get((&ListenConfig{links: onlyLinks(t, row.kinds...)}).Listen(t.Context(), "sctp", ":0"))(t)
			check.That(t, l.EncapPort() == row.want || row.want == 1 && l.EncapPort() >= firstOther &&
				l.EncapPort() != udp.DefaultPort, "over %v: UDP port %d", row.kinds, l.EncapPort())
			said := strings.Contains(log.String(), fmt.Sprintf(`by="a program of user %d" port=%d`, os.Getuid(),
				l.EncapPort()))
			check.That(t, said == (row.want == 1), "over %v the log says: %s", row.kinds, log.String())
		}
		return nil
	})
}

// firstOther is above the ports that need a privilege.
const firstOther = 1024

// The owner of a port that says late where it is served is heard, and keeps Dial no longer than its
// context.
func TestOwnerThatAnswersLateIsHeard(t *testing.T) {
	testns.New(t).Do(func() error {
		owner, at := must.Get(net.Listen("unix", "@rddp/port/7000"))(t), netip.MustParseAddr("127.0.0.1")
		defer owner.Close()
		client := onlyLinks(t, udpLink)
		ts, _ := must.Two(client.usableTransports(false))(t)
		n := askLocalRegistry(7000)
		defer n.close()
		w := n.routeTo(at, time.Now())
		check.That(t, w.noAnswerYet && errors.Is(w.err, os.ErrDeadlineExceeded), "before it has answered: %+v", w)
		ctx, cancel := context.WithCancel(t.Context())
		a := dialAttempt{ts[0], udpLink, netip.AddrPortFrom(at, 7000), w, askLocalRegistry(7000)}
		cancel()
		_, err := a.dial(ctx, &Config{})
		check.Error(t, "Dial whose context ends meanwhile", err, context.Canceled)
		_, err = a.registry.question.AwaitAnswer(time.Now())
		// not os.ErrDeadlineExceeded: that ended the wait
		check.Error(t, "what it waited for", err, syscall.ECONNREFUSED)
		encap := ts[0].link.(*udp.Link).Port()
		c := must.Get(owner.Accept())(t)
		must.Get(fmt.Fprintf(c, "rddp\n* 0\n127.0.0.2 7\n127.0.0.1 %d\n\n", encap))(t)
		check.Equal(t, "once it has", n.routeTo(at, time.Now().Add(10*time.Second)), localRoute{encapPort: encap})
		return nil
	})
}

// Without a descriptor Dial says so, whatever address of this host it is to, and asks no program
// that has nothing to do with it.
func TestDialWithoutDescriptorsSaysSo(t *testing.T) {
	ns := testns.New(t)
	testns.Veth(ns, testns.New(t), "eth", 1500, netip.MustParsePrefix("10.8.0.1/24"),
		netip.MustParsePrefix("10.8.0.2/24"))
	ns.Do(func() error {
		other, server, client := onlyLinks(t, udpLink), onlyLinks(t, udpLink), onlyLinks(t, udpLink)
		must.Get((&ListenConfig{links: other}).Listen(t.Context(), "sctp", ":7001"))(t) // with UDP port 9899
		must.Get((&ListenConfig{links: server}).Listen(t.Context(), "sctp", ":7000"))(t)
		must.Get((&Dialer{links: client}).Dial(deadlineCtx(t), "sctp", "10.8.0.1:7000"))(t)
		must.OK(t, testns.Refuse(syscall.EMFILE, unix.SYS_SOCKET))
		for _, to := range []string{"127.0.0.1:7002", "10.8.0.1:7000", "10.8.0.1:7002", "[::1]:7000"} {
			_, err := (&Dialer{links: client}).Dial(deadlineCtx(t), "sctp", to)
			check.Error(t, to, err, syscall.EMFILE)
		}
		return nil
	})
}
