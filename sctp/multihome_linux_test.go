package sctp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/vishvananda/netlink"
)

// Two hosts with two cables between them, over real sockets: links of every address, on which paths
// choose their source themselves. Cables are pulled and plugged in again in the middle of a
// transfer. An association with nothing to send hears of that too.
func TestTransferSurvivesItsCables(t *testing.T) {
	for name, open := range map[string]func() (rawio.Link, error){
		"raw": func() (rawio.Link, error) { return raw.Open(raw.Config{}) },
		"udp": func() (rawio.Link, error) { return udp.Open(udp.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ns := [2]*testns.NS{testns.New(t), testns.New(t)}
			var addrs [2][]netip.Addr
			for k := range 2 {
				at := func(host byte) netip.Prefix {
					return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(1 + k), 0, host}), 24)
				}
				testns.Veth(ns[0], ns[1], cableName(k), 1500, at(1), at(2))
				for i := range addrs {
					addrs[i] = append(addrs[i], at(byte(1+i)).Addr())
				}
			}
			p := &pair{bAddr: addrs[1][0]}
			for i, to := range []**Transport{&p.a, &p.b} {
				ns[i].Do(func() error {
					link, err := open()
					if err != nil {
						return err
					}
					*to, err = NewTransport(link, nil)
					return err
				})
				defer (*to).Close()
			}
			c, s := p.connect(t, quickTimers(addrs[0]), quickTimers(addrs[1]))
			awaitEvent(t, c, EventPathUp, addrs[1][1])
			idle, _ := p.connect(t, &Config{Events: 64, LocalAddrs: addrs[0], HeartbeatInterval: time.Hour,
				DisablePMTUD: true}, &Config{LocalAddrs: addrs[1], HeartbeatInterval: time.Hour})
			awaitEvent(t, idle, EventPathUp, addrs[1][1])
			left := func() bool { return idle.Stats().PathsSuspected > 0 }
			pull := func(k int, plug bool) {
				ns[0].Do(func() error {
					dev, err := netlink.LinkByName(cableName(k))
					if err != nil {
						return err
					}
					if plug {
						return netlink.LinkSetUp(dev)
					}
					return netlink.LinkSetDown(dev)
				})
			}
			const count, size = 4000, 1000
			received := make(chan error, 1)
			go func() {
				buf := make([]byte, size)
				for i := range uint32(count) {
					n, _, err := s.ReadMsg(buf)
					if err != nil || n != size || binary.BigEndian.Uint32(buf) != i {
						received <- fmt.Errorf("message %d: %d octets, number %d, %w", i, n,
							binary.BigEndian.Uint32(buf), err)
						return
					}
				}
				received <- nil
			}()
			steps := map[int]func(){
				count / 5: func() {
					pull(0, false)
					awaitEvent(t, c, EventPathPotentiallyFailed, addrs[1][0])
					until(t, "the idle one leaves the path", left)
				},
				2 * count / 5: func() { pull(0, true); awaitEvent(t, c, EventPathUp, addrs[1][0]) },
				3 * count / 5: func() { pull(1, false); awaitEvent(t, c, EventPathPotentiallyFailed, addrs[1][1]) },
				4 * count / 5: func() { pull(1, true); awaitEvent(t, c, EventPathUp, addrs[1][1]) },
			}
			msg := make([]byte, size)
			for i := range uint32(count) {
				if step := steps[int(i)]; step != nil {
					step()
				}
				binary.BigEndian.PutUint32(msg, i)
				must.Do(c.WriteMsg(msg, SendInfo{}))(t)
			}
			select {
			case err := <-received:
				check.OK(t, err)
			case <-time.After(30 * time.Second):
				t.Error("not all has arrived")
			}
			for i, st := range c.Paths() {
				check.That(t, st.Local.Addr() == addrs[0][i] && st.Remote.Addr() == addrs[1][i], "%+v", st)
			}
		})
	}
}

func cableName(k int) string { return fmt.Sprintf("cable%d", k) }
